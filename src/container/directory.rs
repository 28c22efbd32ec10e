//! Unpacked packages: files of a folder, mapped when they are asked for.

use super::layout;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use std::path::{Path, PathBuf};

/// A file of an unpacked package.
#[derive(Debug)]
pub(super) struct Found {
    /// path below the folder, with `/`
    pub name: String,
    pub path: PathBuf,
    pub size_bytes: u64,
    pub is_symlink: bool,
}

/// What a folder is.
#[derive(Debug)]
pub(super) enum Form {
    /// an unpacked package, or the folder around one
    Package(Vec<Found>),
    /// the folder of one model, without those above it
    ModelFolder(Vec<Found>),
    /// none of these
    Plain,
}

fn io(path: &Path, e: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot list {}: {e}", path.display()))
}

/// Looks at a folder and one level below; only an unpacked package is listed in full.
///
/// # Errors
/// The folder cannot be listed, holds more files than [`limits::MEMBERS`], or folders deeper than
/// [`limits::FOLDER_DEPTH`].
pub(super) fn look(folder: &Path) -> Result<Form> {
    let is_package = |at: &Path| {
        at.join("data/aotinductor").is_dir()
            || at.join("archive_format").is_file()
            || at.join("serialized_exported_program.json").is_file()
    };
    if is_package(folder) {
        return Ok(Form::Package(list(folder)?));
    }
    let mut packages = 0usize;
    let mut is_model_folder = false;
    for (count, entry) in std::fs::read_dir(folder).map_err(|e| io(folder, &e))?.enumerate() {
        // who lists or walks a folder with so many refuses it, or says so
        if count >= limits::MEMBERS {
            break;
        }
        let entry = entry.map_err(|e| io(folder, &e))?;
        // `file_type` does not follow links: a link to a folder elsewhere is no part of this one
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && is_package(&entry.path()) {
            packages = packages.saturating_add(1);
        } else if kind.is_file() && entry.file_name().to_str().is_some_and(layout::marks_model_folder) {
            is_model_folder = true;
        }
    }
    match (packages, is_model_folder) {
        // several are a folder of packages, to be walked
        (1, false) => Ok(Form::Package(list(folder)?)),
        (_, true) => Ok(Form::ModelFolder(list(folder)?)),
        _ => Ok(Form::Plain),
    }
}

/// All files below `folder`, sorted by name so that reports do not depend on the file system.
fn list(folder: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_path_buf(), String::new(), 0usize)];
    while let Some((at, prefix, depth)) = open.pop() {
        for entry in std::fs::read_dir(&at).map_err(|e| io(&at, &e))? {
            let entry = entry.map_err(|e| io(&at, &e))?;
            let Ok(kind) = entry.file_type() else { continue };
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                if depth < limits::FOLDER_DEPTH {
                    open.push((entry.path(), format!("{name}/"), depth.saturating_add(1)));
                    continue;
                }
                let most = limits::FOLDER_DEPTH;
                return Err(Error::limit(format!("{} lies more than {most} folders deep", entry.path().display()))
                    .help("give the package's own folder"));
            }
            if !kind.is_file() && !kind.is_symlink() {
                continue;
            }
            if found.len() >= limits::MEMBERS {
                return Err(Error::limit(format!("more than {} files below {}", limits::MEMBERS, folder.display()))
                    .help("give the package's own folder"));
            }
            let size_bytes = if kind.is_file() { entry.metadata().map_or(0, |m| m.len()) } else { 0 };
            found.push(Found { name, path: entry.path(), size_bytes, is_symlink: kind.is_symlink() });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
