//! Folders that are no package: what could be an artefact below them.

use super::directory::{self, Form};
use super::recognise::{self, Format};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::source;
use std::path::{Path, PathBuf};

/// What lies below a folder.
#[derive(Debug, Default)]
pub struct Walk {
    /// packages, unpacked packages and host libraries, sorted. Opening tells which are AOTInductor artefacts: those
    /// that are not count as other files, unless their name ends in `.pt2`
    pub candidates: Vec<PathBuf>,
    /// files that begin like none of these
    pub other_files: usize,
    /// what was passed over, with the reason: folders that could not be listed or lie too deep
    pub skipped: Vec<(PathBuf, String)>,
    /// links to folders, which are not followed
    pub links: Vec<PathBuf>,
}

/// Walks a folder. An unpacked package is one candidate and is not entered. Links to folders are not followed.
///
/// # Errors
/// `folder` itself cannot be listed.
pub fn walk(folder: &Path) -> Result<Walk> {
    let mut found = Walk::default();
    let mut open = vec![(folder.to_path_buf(), 0usize)];
    while let Some((at, depth)) = open.pop() {
        if depth > 0 && !matches!(directory::look(&at), Ok(Form::Plain) | Err(_)) {
            found.candidates.push(at);
            continue;
        }
        let rows = match std::fs::read_dir(&at) {
            Ok(rows) => rows,
            Err(e) if depth == 0 => return Err(Error::new(ErrorKind::Io, format!("cannot list: {e}"))),
            Err(e) => {
                found.skipped.push((at, format!("cannot list: {e}")));
                continue;
            }
        };
        for row in rows.flatten() {
            let path = row.path();
            let Ok(kind) = row.file_type() else { continue };
            if kind.is_dir() {
                if depth < limits::FOLDER_DEPTH {
                    open.push((path, depth.saturating_add(1)));
                } else {
                    found.skipped.push((path, format!("more than {} folders deep", limits::FOLDER_DEPTH)));
                }
            } else if kind.is_symlink() && path.is_dir() {
                // they may lead in circles
                found.links.push(path);
            } else if kind.is_symlink() && !path.exists() && is_named_so(&path) {
                found.candidates.push(path);
            } else if kind.is_file() || path.is_file() {
                if found.candidates.len().saturating_add(found.other_files) >= limits::MEMBERS {
                    found.skipped.push((at, format!("more than {} files", limits::MEMBERS)));
                    found.candidates.sort();
                    return Ok(found);
                }
                if is_candidate(&path) { found.candidates.push(path) } else { found.other_files += 1 }
            }
        }
    }
    found.candidates.sort();
    Ok(found)
}

fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "pt2")
}

fn is_candidate(path: &Path) -> bool {
    let is_named_so = is_named_so(path);
    let Ok(bytes) = source::open_file(path) else { return is_named_so };
    let file = source::Region::whole(bytes.as_ref());
    is_named_so
        || matches!(
            recognise::recognise_head(file.head(recognise::HEAD_BYTES), file.len()),
            Format::Zip | Format::HostLibrary
        )
}
