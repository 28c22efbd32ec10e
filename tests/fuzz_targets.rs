//! The fuzz targets build and hold: hostile files and some artefacts through every reader, whatever their format.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "../fuzz/src/targets.rs"]
mod targets;

use std::path::{Path, PathBuf};

/// Small files of each format that the readers read, and of some that they do not.
const ARTIFACTS: &[&str] = &[
    "artifacts/2.15.0-cpu-mlp_dynamic.pt2",
    "artifacts/2.15.0-cpu-mlp_dynamic.so",
    "artifacts/2.15.0-cpu-mlp_dynamic-macos_arm64.pt2",
    "artifacts/2.15.0-cpu-mlp_dynamic-mingw-stripped.pt2",
    "artifacts/2.15.0-cpu-ep_and_aoti.pt2",
    "artifacts/kernels/fatbinary-13.5-lz4.fatbin",
    "artifacts/kernels/fatbinary-13.5-zstd.fatbin",
    "artifacts/kernels/ptxas-12.9-sm_90.cubin",
    "artifacts/kernels/scale.sm_90.ptx",
    "artifacts/kernels/torch-2.11-multi_arch.fatbin",
    "logs/2.11.0-cuda-no_so_in_package.log",
];

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let hostile = std::fs::read_dir(root.join("hostile")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = hostile.filter(|path| path.is_file()).collect();
    files.extend(ARTIFACTS.iter().map(|name| root.join(name)));
    files
}

#[test]
fn every_reader_takes_every_file() {
    let files = files();
    for (_, reader) in targets::READERS {
        reader(b"");
        for path in &files {
            reader(&std::fs::read(path).unwrap());
        }
    }
}

/// A member goes to the readers as it is: libraries, sources, metadata and programs of packages.
#[test]
fn every_reader_takes_every_member() {
    for name in ARTIFACTS.iter().filter(|name| name.ends_with(".pt2")) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
        let package = aoti_inspect::container::open(&path).unwrap();
        let members: Vec<&[u8]> = package.members().filter_map(|m| m.bytes(1 << 20).ok()).collect();
        assert!(members.len() > 3, "{name}");
        for (_, reader) in targets::READERS {
            members.iter().for_each(|member| reader(member));
        }
    }
}
