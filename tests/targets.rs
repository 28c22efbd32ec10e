//! Every artefact of the corpus against the torch that made it, and against all others that the tables know.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use aoti_inspect::model::{Artifact, Release};
use aoti_inspect::report::{Finding, Outcome};
use aoti_inspect::target::cpu::Cpu;
use aoti_inspect::target::release_tables::RELEASES;
use aoti_inspect::target::{LoadConfig, TorchVersion};
use aoti_inspect::{CodeReading, Settings, inspect, verify};
use std::path::{Path, PathBuf};

/// Artefacts with the release that compiled them: the whole corpus, else the test data.
fn artifacts() -> Vec<(PathBuf, Release)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = root.join("target/corpus");
    let mut folders = vec![if corpus.is_dir() { corpus } else { root.join("testdata/artifacts") }];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if !["hostile", "negatives", "kernels"].iter().any(|f| path.ends_with(f)) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "so" || e == "pt2") {
                let release = Release::from_text(path.file_name().unwrap().to_str().unwrap());
                found.extend(release.map(|release| (path, release)));
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path, scans_instructions: bool) -> Artifact {
    let settings = Settings { code: CodeReading::Never, scans_instructions, ..Settings::default() };
    inspect(path, &settings).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn findings(artifact: &Artifact, config: &LoadConfig, prefix: &str) -> Vec<Finding> {
    verify(artifact, config).findings.into_iter().filter(|f| f.code.starts_with(prefix)).collect()
}

#[test]
fn the_compiling_release_passes_and_leaked_cxx_does_not_travel() {
    for (path, compiler) in artifacts() {
        let artifact = read(&path, false);
        for release in RELEASES {
            let torch = TorchVersion::from_text(&release.to_string()).unwrap();
            let config = LoadConfig { torch: Some(torch), ..LoadConfig::default() };
            let found = findings(&artifact, &config, "libtorch-");
            let worst = |outcome| found.iter().any(|f| f.outcome == outcome);
            let leaks = artifact.models.iter().any(|m| !m.requires.leaked_cxx.is_empty());
            assert_eq!(
                leaks,
                compiler.minor <= 5 && artifact.models.iter().any(|m| m.library.is_some()),
                "{}",
                path.display()
            );
            if leaks {
                let by = &artifact.models[0].compiled_by;
                let inside = by.torch_min.unwrap() <= release && release <= by.torch_max.unwrap();
                assert_eq!(worst(Outcome::Fail), !inside, "{} on {release}: {found:?}", path.display());
                assert_eq!(worst(Outcome::Unknown), inside, "{} on {release}: {found:?}", path.display());
            } else if release >= compiler {
                assert!(
                    !worst(Outcome::Fail) && !worst(Outcome::Unknown),
                    "{} on {release}: {found:?}",
                    path.display()
                );
            }
        }
        for model in &artifact.models {
            assert!(model.requires.torch_min.is_none_or(|min| min <= compiler), "{}", path.display());
        }
    }
}

#[test]
fn cpu_models_run_on_their_build_hosts_and_not_on_lesser_ones() {
    let on = |name: &str| LoadConfig { cpu: Cpu::from_text(name).ok(), ..LoadConfig::default() };
    for (path, _) in artifacts() {
        let artifact = read(&path, true);
        let Some(platform) = artifact.models.first().and_then(|m| m.platform.as_ref()) else { continue };
        let outcomes = |name: &str| -> Vec<Outcome> {
            let found = findings(&artifact, &on(name), "cpu-isa").into_iter().filter(|f| f.code == "cpu-isa");
            found.map(|f| f.outcome).collect()
        };
        let (enough, too_little) = match (platform.arch.as_str(), platform.os.as_str()) {
            ("x86_64", _) => ("sapphirerapids", "x86-64"),
            (_, "macos") => ("apple-m1", "armv8-a"),
            _ => ("armv8-a", "x86-64"),
        };
        assert!(outcomes(enough).iter().all(|o| *o == Outcome::Pass), "{} on {enough}", path.display());
        let name = path.to_string_lossy().into_owned();
        if !name.contains("novec") && platform.os != "macos" && platform.arch == "x86_64" {
            assert!(outcomes(too_little).contains(&Outcome::Fail), "{} on {too_little}", path.display());
        }
    }
}

#[test]
fn this_machine_can_be_written_and_taken_elsewhere() {
    let host = |arguments: &[&str]| {
        let output =
            assert_cmd::Command::cargo_bin("aoti-inspect").unwrap().arg("host").args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.toml");
    std::fs::write(&file, host(&[])).unwrap();
    let json: serde_json::Value = serde_json::from_str(&host(&["--json"])).unwrap();
    assert!(json.is_object());
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/2.15.0-cpu-mlp_dynamic-aarch64.pt2");
    let judged = |arguments: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("aoti-inspect").unwrap();
        command.arg("verify").arg(&model).args(arguments).output().unwrap()
    };
    // whatever this machine is, it is a configuration that can be judged
    let live = judged(&["--this-host"]);
    let taken = judged(&["--target", file.to_str().unwrap()]);
    assert_ne!(live.status.code(), Some(2), "{}", String::from_utf8_lossy(&live.stderr));
    assert_ne!(taken.status.code(), Some(2), "{}", String::from_utf8_lossy(&taken.stderr));
}
