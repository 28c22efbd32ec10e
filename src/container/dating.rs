//! Names and layout of a package that narrow the torch release which wrote it (format reference 1.3, 2.1 and 10).

use super::{Container, ModelFolder};
use crate::model::{Dated, Evidence, Kind, Release, Witness};

/// Endings of file names in a model folder, and the minor releases of torch 2 that write such files; 0 and 99 are open.
const NAMES: &[(&str, (u16, u16))] = &[
    (".wrapper.so", (7, OPEN)),
    (".wrapper.pyd", (10, OPEN)),
    (".kernel.cpp", (7, OPEN)),
    (".fatbin", (8, OPEN)),
    ("weights_config.json", (8, OPEN)),
    ("kernel_information.json", (9, OPEN)),
    ("_weights.blob", (10, OPEN)),
    (".weights.o", (9, OPEN)),
    ("CMakeLists.txt", (7, OPEN)),
    ("script.ld", (7, OPEN)),
    ("build_package.py", (5, 5)),
    ("_abicompat.so", (15, OPEN)),
];
const OPEN: u16 = 99;

fn dated(range: (u16, u16), evidence: Evidence) -> Dated {
    let release = |minor: u16| (minor > 0 && minor < OPEN).then(|| Release::new(2, minor));
    Dated { min: release(range.0), max: release(range.1), evidence }
}

/// What the layout tells about the release; empty for a bare library.
pub fn date(container: &Container, model: &ModelFolder) -> Vec<Dated> {
    if container.kind() == Kind::Library {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut say = |range, detail: &str, member: Option<&str>| {
        let evidence = Evidence::new(Witness::Archive, detail);
        found.push(dated(
            range,
            match member {
                Some(member) => evidence.in_member(member),
                None => evidence,
            },
        ));
    };
    match container.is_version_key_new() {
        Some(true) => say((8, OPEN), "archive_version", None),
        Some(false) => say((5, 7), "version instead of archive_version", None),
        None => {}
    }
    if model.is_flat {
        say((5, 5), "files directly in data/aotinductor", None);
    }
    if !model.other_libraries.is_empty() {
        say((13, OPEN), "several libraries in one model folder", None);
    }
    for id in model.files() {
        let Some(member) = container.member(id) else { continue };
        let file = member.file_name();
        for (ending, range) in NAMES.iter().filter(|(ending, _)| file.ends_with(ending)) {
            say(*range, ending, Some(member.name()));
        }
    }
    let library = model.library.and_then(|id| container.member(id));
    if let Some(member) = library.filter(|m| m.file_name().ends_with(".so") && !m.file_name().ends_with(".wrapper.so"))
    {
        say((6, 6), "library without .wrapper in its name", Some(member.name()));
    }
    // 2.7 always writes it, later releases only with objects in it
    let objects = model.custom_objs_config.and_then(|id| container.member(id));
    if let Some(member) = objects.filter(|m| m.bytes(64).is_ok_and(|text| text.trim_ascii() == b"{}")) {
        say((7, 7), "custom_objs_config.json is empty", Some(member.name()));
    }
    found
}
