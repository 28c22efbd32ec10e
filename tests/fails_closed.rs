//! Damage and misuse that must not end in a pass.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed unwrap fails the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PACKAGE: &str = "testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2";
const LIBRARY: &str = "testdata/artifacts/2.15.0-cpu-mlp_dynamic.so";

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aoti-inspect")).args(args).output().unwrap()
}

fn code(args: &[&str]) -> Option<i32> {
    run(args).status.code()
}

fn at(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// File offset and size of a section.
fn section(library: &Path, name: &str) -> (usize, usize) {
    let bytes = aoti_inspect::source::open_file(library).unwrap();
    let image = aoti_inspect::image::Image::open(aoti_inspect::source::Region::whole(&*bytes)).unwrap();
    let section = image.section(name).unwrap();
    (usize::try_from(section.offset.unwrap()).unwrap(), usize::try_from(section.size).unwrap())
}

/// The library with a section full of zeros.
fn without(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    let mut bytes = std::fs::read(LIBRARY).unwrap();
    let (offset, size) = section(Path::new(LIBRARY), name);
    bytes[offset..offset + size].fill(0);
    let copy = folder.path().join(format!("{}.so", name.trim_start_matches('.')));
    std::fs::write(&copy, bytes).unwrap();
    copy
}

#[test]
fn code_that_cannot_create_a_model_confirms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let asked = ["--device", "cpu", "--shape", "8x10"];
    // of relocations the dynamic table says how many there are, so that their loss is damage
    for (name, verdict) in [(".text", 4), (".plt", 4), (".rela.dyn", 3), (".init", 4)] {
        let library = without(&folder, name);
        let args = [&["verify", library.to_str().unwrap()], &asked[..]].concat();
        assert_eq!(code(&args), Some(verdict), "{name}");
    }
    // a getter that gives up, and a machine that there is no processor for
    for (name, machine, code_bytes) in [("getter.so", 62u16, Some(0xf4)), ("machine.so", 0xffff, None)] {
        let mut bytes = std::fs::read(LIBRARY).unwrap();
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        if let Some(byte) = code_bytes {
            let image = aoti_inspect::image::Image::open(aoti_inspect::source::Region::whole(&bytes)).unwrap();
            let getter = image.export("AOTInductorModelContainerGetCallSpec").unwrap().address;
            let segment = image.segments().iter().find(|s| s.is_executable).unwrap();
            let at = usize::try_from(getter - segment.address + segment.file_offset).unwrap();
            bytes[at] = byte;
        }
        let copy = at(&folder, name);
        std::fs::write(&copy, bytes).unwrap();
        assert_eq!(code(&[&["verify", copy.as_str()], &asked[..]].concat()), Some(4), "{name}");
    }
    // the same in a package, whose source still claims everything
    let mut package = std::fs::read(PACKAGE).unwrap();
    let container = aoti_inspect::container::open(Path::new(PACKAGE)).unwrap();
    let library = container.library(&container.models()[0]).unwrap().unwrap().all(1 << 24).unwrap();
    let start = memchr::memmem::find(&package, library).unwrap();
    let alone = folder.path().join("alone.so");
    std::fs::write(&alone, library).unwrap();
    let (offset, size) = section(&alone, ".text");
    package[start + offset..start + offset + size].fill(0);
    let copy = at(&folder, "zeroed.pt2");
    std::fs::write(&copy, package).unwrap();
    let args = [&["verify", copy.as_str()], &asked[..]].concat();
    assert_eq!(code(&args), Some(4));
    assert_eq!(code(&[&args[..], &["--allow-unknown=code-unread"]].concat()), Some(0));
}

#[test]
fn a_damaged_table_of_versions_is_no_old_host() {
    let folder = tempfile::tempdir().unwrap();
    let library = without(&folder, ".gnu.version_r");
    let args = ["verify", library.to_str().unwrap(), "--glibc", "2.17", "--libstdcxx", "3.4.19"];
    assert_eq!(code(&args), Some(3));
    assert_eq!(code(&["verify", LIBRARY, "--glibc", "2.17"]), Some(1));
}

#[test]
fn cases_that_state_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = at(&folder, "cases.jsonl");
    for line in [r#"{"inputs":[{"dtypes":"float16","shap":[1,1]}]}"#, r#"{"inputs":[{}]}"#, r#"[[{"dtype":"f32"}],1]"#]
    {
        std::fs::write(&file, line).unwrap();
        assert_eq!(code(&["verify", PACKAGE, "--cases", &file]), Some(2), "{line}");
    }
}

#[test]
fn what_is_looked_at_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let copy = at(&folder, "m.pt2");
    std::fs::copy(PACKAGE, &copy).unwrap();
    for flag in ["--write-baseline", "--output"] {
        assert_eq!(code(&["verify", &copy, "--no-config", flag, &copy]), Some(2), "{flag}");
    }
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(PACKAGE).unwrap());
    // by another name of the same file, and what the configuration is read from
    let (cases, other) = (at(&folder, "cases.jsonl"), at(&folder, "other.json"));
    let line = r#"{"inputs":[{"dtype":"float32","shape":[8,10]}]}"#;
    std::fs::write(&cases, line).unwrap();
    std::fs::hard_link(&copy, &other).unwrap();
    assert_eq!(code(&["verify", &copy, "-o", &format!("json={other}")]), Some(2));
    assert_eq!(code(&["verify", &copy, "--cases", &cases, "-o", &cases]), Some(2));
    assert_eq!(code(&["explain", &copy, "--log", &cases, "-o", &cases]), Some(2));
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(PACKAGE).unwrap());
    assert_eq!(std::fs::read(&cases).unwrap(), line.as_bytes());
}

#[test]
fn an_empty_code_allows_nothing() {
    assert_eq!(code(&["verify", PACKAGE, "--ops", ""]), Some(2));
    // a device from an empty variable must not read as "not asked"
    for wrong in ["f32[8,10]@", "f32[8,10]@@cpu", "f32[8,10]::::", "f32:8x10@"] {
        assert_eq!(code(&["verify", PACKAGE, "--input", wrong]), Some(2), "{wrong}");
    }
    assert_eq!(code(&["verify", PACKAGE, "--torch", "2.15.0+"]), Some(2));
    let unknown = ["verify", "testdata/artifacts/2.11.0-cuda-multi_arch.pt2", "--driver", "550"];
    assert_eq!(code(&unknown), Some(4));
    assert_eq!(code(&[&unknown[..], &["--allow-unknown="]].concat()), Some(2));
    assert_eq!(code(&[&unknown[..], &["--allow-unknown"]].concat()), Some(0));
}

#[test]
fn builds_of_the_other_vendor_do_not_fit() {
    let cuda = "testdata/artifacts/2.11.0-cuda-multi_arch.pt2";
    assert_eq!(code(&["verify", cuda, "--torch", "2.11.0+rocm6.4"]), Some(1));
    assert_eq!(code(&["verify", cuda, "--torch", "2.11.0+cu130"]), Some(0));
}

#[test]
fn pages_that_no_system_has_are_refused() {
    for size in ["0", "3", "4097", "1GiB"] {
        assert_eq!(code(&["verify", PACKAGE, "--page-size", size]), Some(2), "{size}");
    }
    assert_eq!(code(&["verify", PACKAGE, "--page-size", "64k"]), Some(0));
}

#[test]
fn a_project_file_that_cannot_be_read_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(PACKAGE, folder.path().join("m.pt2")).unwrap();
    std::fs::create_dir(folder.path().join("aoti-inspect.toml")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_aoti-inspect"));
    let output = command.args(["verify", "m.pt2"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
#[test]
fn a_pipe_without_a_writer_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = at(&folder, "pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(code(&["show", &pipe]), Some(3));
}

#[test]
fn json_shows_no_raw_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let copy = at(&folder, "a\u{9b}31m\u{202e}b.pt2");
    std::fs::copy(PACKAGE, &copy).unwrap();
    for args in [&["show", "--json"][..], &["verify", "--format", "jsonl"]] {
        let text = String::from_utf8(run(&[args, &[copy.as_str()]].concat()).stdout).unwrap();
        assert!(!text.contains(['\u{9b}', '\u{202e}']), "{args:?}");
        assert!(text.contains("\\u009b31m\\u202eb"), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_in_a_folder_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(PACKAGE, folder.path().join("m.pt2")).unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(code(&["verify", path]), Some(0));
    std::os::unix::fs::symlink("nowhere", folder.path().join("gone.pt2")).unwrap();
    assert_eq!(code(&["verify", path]), Some(3));
}

/// What the driver maps comes last in a cubin, behind all sections.
#[test]
fn a_cut_cubin_is_damaged() {
    let mut tried = 0;
    for file in std::fs::read_dir("testdata/artifacts/kernels").unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|ending| ending != "cubin") {
            continue;
        }
        let whole = std::fs::read(&file).unwrap();
        for length in [whole.len(), whole.len() - 1, whole.len() - 16] {
            let bytes = whole[..length].to_vec();
            let read = aoti_inspect::kernel::read(aoti_inspect::source::Region::whole(&bytes));
            assert_eq!(read.is_ok(), length == whole.len(), "{} cut to {length} bytes", file.display());
        }
        tried += 1;
    }
    assert!(tried > 5, "{tried} cubins");
}

/// Each changes one field that the system's loader looks at before any code runs.
#[test]
fn what_the_loader_refuses_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(LIBRARY).unwrap();
    let word = |at: usize| usize::try_from(u64::from_le_bytes(whole[at..at + 8].try_into().unwrap())).unwrap();
    let (programs, count) = (word(32), usize::from(whole[56]));
    let program = |kind: u8| (0..count).map(|n| programs + 56 * n).find(|at| whole[*at] == kind).unwrap();
    let (load, dynamic) = (program(1), program(2));
    let rows = word(dynamic + 8)..word(dynamic + 8) + word(dynamic + 32);
    let row = |tag: u8| {
        let tags = rows.clone().step_by(16);
        tags.into_iter().find(|at| whole[*at] == tag && whole[at + 1..at + 8] == [0; 7]).unwrap() + 8
    };
    let (bloom, _) = section(Path::new(LIBRARY), ".gnu.hash");
    let small = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
    let buckets = bloom + 16 + 8 * small(bloom + 8);
    let last = vec![0xff; 4 * small(bloom)];
    let cases: [(&str, usize, &[u8]); 10] = [
        ("type", 16, &[0]),
        ("version", 20, &[9]),
        ("segment without rights", load + 4, &[0]),
        ("alignment", load + 48, &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("place in its page", load + 8, &[1]),
        ("address of the dynamic table", dynamic + 16, &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("DT_PLTREL", row(20), &[0]),
        ("DT_RELAENT", row(9), &[0]),
        ("filter of the hash table", bloom + 16, &[0; 512]),
        ("buckets of the hash table", buckets, &last),
    ];
    for (what, at, new) in cases {
        let mut bytes = whole.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        let copy = folder.path().join("m.so").to_str().unwrap().to_owned();
        std::fs::write(&copy, bytes).unwrap();
        assert_eq!(code(&["verify", &copy]), Some(3), "{what}");
    }
    assert_eq!(code(&["verify", LIBRARY]), Some(0));
}
