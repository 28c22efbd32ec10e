//! What the binary asks of the system while it looks at a file: nothing is run, nothing is sent, nothing is written, and
//! no file is read but those that belong to the artefact.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail by panicking and say why it was skipped")]

use aoti_inspect::container;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// System calls of the traced classes that may occur at all. Everything else of these classes, sockets, `unlink`,
/// `rename`, `mkdir`, `kill` or `wait4` for instance, fails the test by not being here.
const CALLS: &[&str] = &[
    // once: the binary itself
    "execve",
    // only with CLONE_THREAD: workers that read several files at once
    "clone",
    "clone3",
    "exit",
    "exit_group",
    // opening for reading, checked below
    "open",
    "openat",
    // looking whether something is there
    "access",
    "faccessat",
    "faccessat2",
    "fstat",
    "getcwd",
    "getdents64",
    "lstat",
    "newfstatat",
    "readlink",
    "readlinkat",
    "stat",
    "statfs",
    "statx",
];

/// What the dynamic loader and Rust's runtime open before and beside our own work.
const SYSTEM: &[&str] = &[
    // dynamic loader: its cache, libc, libgcc_s, libm
    "/etc/ld.so.",
    "/lib/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib64/",
    // bounds of the main thread's stack, for the guard page
    "/proc/self/maps",
    // how many CPUs this container may use: the number of workers
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/sys/fs/cgroup/",
    "/sys/devices/system/cpu/",
];

/// Files below `folder` that a run reads; panics on anything that it must not do.
fn reads(folder: &Path, args: &[&str]) -> BTreeSet<String> {
    let own = opened(folder, args).into_iter().filter(|path| !SYSTEM.iter().any(|start| path.starts_with(start)));
    own.map(|path| {
        let inside = Path::new(&path).strip_prefix(folder).unwrap_or_else(|_| panic!("{args:?} opens {path}"));
        inside.display().to_string()
    })
    .collect()
}

/// All files that a run opens, by their full paths; panics on calls that it must not make.
fn opened(folder: &Path, args: &[&str]) -> BTreeSet<String> {
    // a file of its own: standard error is the binary's
    let trace = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "-s", "4096", "-e", "trace=process,network,file", "-o"])
        .arg(trace.path())
        .arg(env!("CARGO_BIN_EXE_aoti-inspect"))
        .args(args)
        .current_dir(folder)
        .env_remove("CI")
        // what cargo sets so that tests find libraries makes the loader look in more places
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    assert!(matches!(status.status.code(), Some(0 | 1 | 4)), "{args:?}: {}", String::from_utf8_lossy(&status.stderr));
    let text = std::fs::read_to_string(trace.path()).unwrap();
    let mut started = 0;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        // `PID  call(arguments) = result`; ends of calls and of processes are told apart by their marks
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest).trim_start();
        if rest.starts_with("<...") || rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        let call = rest.split('(').next().unwrap();
        assert!(CALLS.contains(&call), "{args:?} calls {rest}");
        match call {
            "execve" => started += 1,
            "clone" | "clone3" => assert!(rest.contains("CLONE_THREAD"), "{args:?} starts a process: {rest}"),
            "open" | "openat" => {
                assert!(
                    rest.contains("O_RDONLY") && !rest.contains("O_CREAT") && !rest.contains("O_TRUNC"),
                    "{args:?} opens for writing: {rest}"
                );
                let full = folder.join(rest.split('"').nth(1).unwrap());
                let is_ours = full.starts_with(folder);
                // listing an unpacked package
                if !(is_ours && rest.contains("O_DIRECTORY")) {
                    found.insert(full.display().to_string());
                }
            }
            _ => {}
        }
    }
    assert_eq!(started, 1, "{args:?} starts something:\n{text}");
    found
}

fn has_strace() -> bool {
    let found = Command::new("strace").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: strace is not installed (.ci/run installs it)");
    }
    found
}

fn artifact(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(name)
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// What lies about in a folder with models, and is none of our business.
fn clutter(folder: &Path) {
    for name in [".env", "notes.txt", "other.cpp", "other.json", "other.so", "model.pt", "model_notes.json", "id_rsa"] {
        std::fs::write(folder.join(name), "of no concern").unwrap();
    }
}

#[test]
fn a_package_is_all_that_is_read() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    clutter(folder.path());
    for name in ["2.15.0-cpu-mlp_dynamic.pt2", "2.11.0-cuda-multi_arch.pt2"] {
        std::fs::copy(artifact(name), folder.path().join("model.pt2")).unwrap();
        assert_eq!(reads(folder.path(), &["show", "model.pt2"]), set(["model.pt2"]));
        assert_eq!(reads(folder.path(), &["show", "--deep", "model.pt2"]), set(["model.pt2"]));
        let verify = ["verify", "--torch", "2.9.1", "--gpu", "A100", "--cpu", "avx2", "model.pt2"];
        assert_eq!(reads(folder.path(), &verify), set(["model.pt2"]));
    }
}

#[test]
fn a_library_is_read_with_what_belongs_to_it() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    clutter(folder.path());
    std::fs::copy(artifact("2.15.0-cpu-custom_op.so"), folder.path().join("model.so")).unwrap();
    assert_eq!(reads(folder.path(), &["show", "model.so"]), set(["model.so"]));
    std::fs::copy(artifact("2.15.0-cpu-custom_op.json"), folder.path().join("model.json")).unwrap();
    std::fs::write(folder.path().join("model_metadata.json"), r#"{"AOTI_DEVICE_KEY": "cpu"}"#).unwrap();
    let own = set(["model.json", "model.so", "model_metadata.json"]);
    assert_eq!(reads(folder.path(), &["show", "--deep", "model.so"]), own);
    assert_eq!(reads(folder.path(), &["verify", "--torch", "2.15", "model.so"]), own);
}

#[test]
fn an_unpacked_package_and_the_configuration_are_read() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    clutter(folder.path());
    let package = container::open(&artifact("2.15.0-cpu-mlp_dynamic.pt2")).unwrap();
    let mut inside = BTreeSet::new();
    for member in package.members() {
        let name = format!("model/{}", member.inner_name());
        let path = folder.path().join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, member.bytes(1 << 30).unwrap()).unwrap();
        inside.insert(name);
    }
    for args in [["show", "model"].as_slice(), &["verify", "--device", "cpu", "model"]] {
        let read = reads(folder.path(), args);
        assert!(read.is_subset(&inside), "{read:?}");
        assert!(read.iter().any(|name| name.ends_with(".cpp")), "{read:?}");
    }
    std::fs::write(folder.path().join("aoti-inspect.toml"), "version = 1\n").unwrap();
    let mut read = reads(folder.path(), &["verify", "--device", "cpu", "model"]);
    assert!(read.remove("aoti-inspect.toml"), "{read:?}");
    assert!(read.is_subset(&inside), "{read:?}");
}

/// What lies beside a library out of a package, under the names that a bare library's files have.
fn beside(folder: &Path, package: &str) -> BTreeSet<String> {
    let package = container::open(&artifact(package)).unwrap();
    let mut written = BTreeSet::new();
    for member in package.members().filter(|m| m.inner_name().starts_with("data/aotinductor/")) {
        let name = match member.file_name().split_once(".wrapper") {
            Some((_, ending)) => format!("model{ending}"),
            // the loader has no place for kernel source beside a library
            None if member.file_name().contains(".kernel") => continue,
            None => member.file_name().to_owned(),
        };
        std::fs::write(folder.join(&name), member.bytes(1 << 30).unwrap()).unwrap();
        written.insert(name);
    }
    written
}

#[test]
fn a_library_is_read_with_the_kernel_files_that_it_wants() {
    if !has_strace() {
        return;
    }
    for (package, ending) in [("2.11.0-cuda-multi_arch.pt2", ".fatbin"), ("2.11.0-cuda-assert_idx.pt2", ".cubin")] {
        let folder = tempfile::tempdir().unwrap();
        clutter(folder.path());
        let all = beside(folder.path(), package);
        let kernels: Vec<&String> = all.iter().filter(|name| name.ends_with(ending)).collect();
        assert!(!kernels.is_empty());
        // kernel files that the library does not name
        for name in ["other.cubin", "other.fatbin", "model.cubin", "model.fatbin"] {
            std::fs::copy(folder.path().join(kernels[0]), folder.path().join(name)).unwrap();
        }
        for args in [["show", "--deep", "model.so"].as_slice(), &["verify", "--gpu", "H100", "model.so"]] {
            assert_eq!(reads(folder.path(), args), all, "{package} {args:?}");
        }
    }
}

#[test]
fn a_library_is_read_with_its_weights() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    clutter(folder.path());
    let all = beside(folder.path(), "2.15.0-cpu-blob_weights.pt2");
    let own = set(["model.cpp", "model.so", "model_metadata.json", "model_weights.blob"]);
    assert_eq!(all, own);
    std::fs::write(folder.path().join("other_weights.blob"), "of no concern").unwrap();
    for args in [["show", "--deep", "model.so"].as_slice(), &["verify", "--device", "cpu", "model.so"]] {
        let read = reads(folder.path(), args);
        assert!(read.is_subset(&own) && read.contains("model.so"), "{args:?}: {read:?}");
    }
}

/// The list is the README's.
#[test]
fn this_host_is_read_from_the_files_that_are_stated() {
    if !has_strace() {
        return;
    }
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let stated = readme.split("`host` and `--this-host` read").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> = stated.split('`').skip(1).step_by(2).filter(|name| !name.starts_with('-')).collect();
    assert_eq!(names, ["/proc/cpuinfo", "/proc/driver/nvidia", "/proc/self/auxv", "libc.so.6", "libstdc++.so.6"]);

    let folder = tempfile::tempdir().unwrap();
    clutter(folder.path());
    std::fs::copy(artifact("2.15.0-cpu-mlp_dynamic.pt2"), folder.path().join("model.pt2")).unwrap();
    // what the loader and the runtime open in any run
    let usual = opened(folder.path(), &["verify", "--allow-unknown", "--device", "cpu", "model.pt2"]);
    let is_stated = |path: &str| {
        let system = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"].iter().any(|start| path.starts_with(start));
        match Path::new(path).file_name().and_then(|name| name.to_str()) {
            Some("libc.so.6" | "libstdc++.so.6") => system,
            _ => names.iter().any(|name| name.starts_with('/') && Path::new(path).starts_with(name)),
        }
    };
    for args in [["verify", "--this-host", "--allow-unknown", "model.pt2"].as_slice(), &["host"]] {
        let more: Vec<String> = opened(folder.path(), args).difference(&usual).cloned().collect();
        assert!(more.iter().all(|path| is_stated(path)), "{args:?} opens {more:?}");
        for path in ["/proc/cpuinfo", "/proc/self/auxv"] {
            assert!(more.iter().any(|opened| opened == path), "{args:?} opens {more:?}");
        }
    }
}
