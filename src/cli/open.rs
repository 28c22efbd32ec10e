//! From the paths that a person gives to artefacts, several at a time; one bad file never stops the others.

use super::CliError;
use super::arguments::FileArgs;
use super::load::read_text;
use crate::error::{Error, ErrorKind};
use crate::model::{Artifact, Kind};
use crate::{Settings, assemble, container, limits, source};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// What is read for a person, in the order given.
pub struct Opened {
    /// one entry per artefact; those that cannot be read say so in `error`
    pub artifacts: Vec<Artifact>,
    /// remarks for standard error
    pub remarks: Vec<String>,
}

/// Opens files, folders (walked) and `-`.
pub fn open(paths: &[PathBuf], settings: &Settings) -> Result<Opened, CliError> {
    let mut remarks = Vec::new();
    // what could not be looked into must not pass for being fine
    let mut skipped: Vec<(PathBuf, String)> = Vec::new();
    let mut files: Vec<(PathBuf, bool)> = Vec::new();
    for path in paths {
        if path.is_dir() && container::open(path).is_err() {
            match container::walk(path) {
                Ok(found) => {
                    remarks.extend(remarks_of(path, &found));
                    files.extend(found.candidates.into_iter().map(|path| (path, false)));
                    skipped.extend(found.skipped);
                }
                Err(error) => skipped.push((path.clone(), error.message().to_owned())),
            }
        } else {
            files.push((path.clone(), true));
        }
        if files.len() > limits::MEMBERS {
            return Err(CliError::usage(format!("more than {} files", limits::MEMBERS)));
        }
    }
    let (paths, named): (Vec<PathBuf>, Vec<bool>) = files.into_iter().unzip();
    // what a walk meets and is no artefact of ours is only counted
    let is_ours =
        |path: &Path, artifact: &Artifact| artifact.kind.is_aoti() || path.extension().is_some_and(|e| e == "pt2");
    let read: Vec<Option<Artifact>> = read_all(&paths, settings)
        .into_iter()
        .zip(paths.iter().zip(named))
        .map(|(artifact, (path, is_named))| (is_named || is_ours(path, &artifact)).then_some(artifact))
        .collect();
    let others = read.iter().filter(|a| a.is_none()).count();
    if others > 0 {
        remarks.push(format!("{others} libraries that are no AOTInductor artefacts were left out"));
    }
    let skipped = skipped.into_iter().map(|(path, why)| {
        let error = Error::new(ErrorKind::Io, why);
        unreadable(&path.display().to_string(), &error)
    });
    Ok(Opened { artifacts: read.into_iter().flatten().chain(skipped).collect(), remarks })
}

/// What the command line names: arguments, and lines of `--files-from`.
pub fn given(args: &FileArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut paths = args.artifacts.clone();
    if let Some(list) = &args.files_from {
        let text = if list == Path::new("-") {
            let wrong = |e: String| CliError::Io(format!("--files-from -: {e}"));
            let bytes = source::read_capped(std::io::stdin().lock(), limits::JSON_BYTES);
            String::from_utf8(bytes.map_err(|e| wrong(e.to_string()))?).map_err(|e| wrong(e.to_string()))?
        } else {
            read_text(list, limits::JSON_BYTES)?
        };
        paths.extend(text.lines().filter(|line| !line.is_empty()).map(PathBuf::from));
    }
    Ok(paths)
}

/// Reads many files at once; the result has their order. A terminal sees how far it is.
pub fn read_all(paths: &[PathBuf], settings: &Settings) -> Vec<Artifact> {
    // threads cost more than to read a small file
    if let [path] = paths {
        return vec![read(path, settings)];
    }
    let progress = match paths.len() {
        0..=8 => indicatif::ProgressBar::hidden(),
        // draws to standard error, and only when that is a terminal
        many => indicatif::ProgressBar::new(many as u64),
    };
    let read = |path: &PathBuf| {
        let artifact = read(path, settings);
        progress.inc(1);
        artifact
    };
    let artifacts = paths.par_iter().map(read).collect();
    progress.finish_and_clear();
    artifacts
}

fn remarks_of(folder: &Path, found: &container::Walk) -> Vec<String> {
    let mut remarks = Vec::new();
    if found.candidates.is_empty() {
        remarks.push(format!("{}: no artefact in it ({} other files)", folder.display(), found.other_files));
    } else if found.other_files > 0 {
        remarks.push(format!("{}: {} other files were left out", folder.display(), found.other_files));
    }
    let links = found.links.iter().map(|link| format!("{}: a link to a folder, not followed", link.display()));
    remarks.extend(links);
    remarks
}

fn read(path: &Path, settings: &Settings) -> Artifact {
    let shown = path.display().to_string();
    let opened = if path == Path::new("-") {
        source::read_stream(std::io::stdin().lock()).map(|bytes| container::open_bytes(bytes, None))
    } else {
        container::open(path)
    };
    match opened {
        Ok(container) => assemble::assemble(&shown, &container, settings),
        Err(error) => unreadable(&shown, &error),
    }
}

/// A file that could not even be opened.
pub fn unreadable(path: &str, error: &Error) -> Artifact {
    Artifact {
        path: path.to_owned(),
        kind: Kind::Unknown,
        size_bytes: 0,
        interface_id: None,
        sha256: None,
        archive: None,
        error: Some(error.to_string()),
        models: Vec::new(),
        exported: None,
        unknown: Vec::new(),
        problems: Vec::new(),
    }
}
