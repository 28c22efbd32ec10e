//! Packages of every release against its own loader, and real packages with one thing changed.

use aoti_inspect::model::Artifact;
use aoti_inspect::report::{ArtifactReport, Outcome, Verdict};
use aoti_inspect::target::LoadConfig;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn inspect(path: &Path) -> Artifact {
    aoti_inspect::inspect(path, &aoti_inspect::Settings::default())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn artifact(name: &str) -> Artifact {
    inspect(&root().join("testdata").join(name))
}

fn verify(artifact: &Artifact, torch: Option<&str>) -> ArtifactReport {
    let config = LoadConfig {
        torch: torch.and_then(|t| aoti_inspect::target::TorchVersion::from_text(t).ok()),
        ..LoadConfig::default()
    };
    aoti_inspect::verify(artifact, &config)
}

fn outcomes(report: &ArtifactReport, code: &str) -> Vec<Outcome> {
    assert!(aoti_inspect::checks::codes::find(code).is_some(), "{code} is not registered");
    report.findings.iter().filter(|f| f.code == code).map(|f| f.outcome).collect()
}

/// Findings about what loaders do with packages, kernels, constants and operators.
const SUBJECTS: &[&str] = &["package-", "kernel-", "weights-", "constant", "operator-", "input-alignment", "load-cost"];

fn failures(report: &ArtifactReport) -> Vec<String> {
    let mine = |f: &&aoti_inspect::report::Finding| SUBJECTS.iter().any(|s| f.code.starts_with(s));
    let failed = report.findings.iter().filter(mine).filter(|f| f.verdict() != Verdict::Pass);
    failed.map(|f| format!("{:?} {}: {}", f.outcome, f.code, f.message)).collect()
}

/// Artefacts of the test data and, where it is there, of the corpus, with the release in their names.
fn genuine() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("testdata/artifacts")];
    for folder in ["linux-x86_64-cuda/2.11.0", "models", "packages", "variants", "aarch64", "macos", "windows"] {
        folders.push(root().join("target/corpus").join(folder));
    }
    for entry in std::fs::read_dir(root().join("target/corpus/linux-x86_64-cpu")).into_iter().flatten().flatten() {
        folders.push(entry.path());
    }
    for folder in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_artifact = [".pt2", ".so", ".pyd", ".dylib", ".dll"].iter().any(|e| name.ends_with(e));
            let release = name.split('-').next().filter(|r| r.starts_with("2.")).map(str::to_owned);
            if let Some(release) = release.filter(|_| is_artifact) {
                files.push((path, release));
            }
        }
    }
    files
}

#[test]
fn the_loader_of_its_own_release_takes_a_package() {
    let files = genuine();
    assert!(files.len() > 20);
    let mut wrong = Vec::new();
    for (path, release) in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // what these are is the point of them
        let is_special = name.contains("standalone") || name.contains("no_sources") || name.contains("two_models");
        let artifact = inspect(path);
        if artifact.models.is_empty() || is_special {
            continue;
        }
        let found = failures(&verify(&artifact, Some(release)));
        wrong.extend(found.into_iter().map(|f| format!("{name}: {f}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn models_whose_names_begin_alike() {
    let artifact = artifact("artifacts/2.15.0-cpu-two_models.pt2");
    let code = "package-model-prefix";
    assert!(outcomes(&verify(&artifact, Some("2.12.0")), code).contains(&Outcome::Fail));
    assert!(!outcomes(&verify(&artifact, Some("2.15.0")), code).contains(&Outcome::Fail));
    assert!(outcomes(&verify(&artifact, None), code).contains(&Outcome::Warn));
}

#[test]
fn absent_weights_are_a_normal_state() {
    let report = verify(&artifact("artifacts/2.15.0-cpu-weights_outside.pt2"), None);
    assert_eq!(outcomes(&report, "weights-absent"), [Outcome::Warn]);
    for name in ["mmap_weights", "blob_weights", "mlp_dynamic"] {
        let report = verify(&artifact(&format!("artifacts/2.15.0-cpu-{name}.pt2")), None);
        assert_eq!(outcomes(&report, "weights-truncated"), [Outcome::Pass], "{name}");
        assert_eq!(outcomes(&report, "weights-absent"), [], "{name}");
    }
    let report = verify(&artifact("artifacts/2.15.0-cpu-mmap_weights.pt2"), None);
    assert_eq!(outcomes(&report, "weights-offset"), [Outcome::Warn], "99 * 16384 is no multiple of 64 KiB");
}

#[test]
fn altered_and_hostile_packages_are_found_out() {
    let metadata = verify(&artifact("hostile/no_metadata.pt2"), Some("2.15.0"));
    assert_eq!(outcomes(&metadata, "package-metadata-missing"), [Outcome::Fail]);
    for name in ["hostile/traversal.pt2", "hostile/symlink.pt2"] {
        // a hazard of the loaders: a warning until one of them is named
        let found = |torch| outcomes(&verify(&artifact(name), torch), "package-unsafe-name");
        assert!(found(None).contains(&Outcome::Warn) && !found(None).contains(&Outcome::Fail), "{name}");
        assert!(found(Some("2.15.0")).contains(&Outcome::Fail), "{name}");
    }
}

#[test]
fn packages_of_2_9_are_not_found_by_the_loader_of_2_7() {
    let new = artifact("artifacts/2.9.1-cpu-multi_io.pt2");
    assert_eq!(outcomes(&verify(&new, Some("2.7.1")), "package-root"), [Outcome::Fail]);
    assert_eq!(outcomes(&verify(&new, Some("2.9.1")), "package-root"), [Outcome::Pass]);
    let old = artifact("artifacts/2.7.1-cpu-multi_io.pt2");
    assert_eq!(outcomes(&verify(&old, Some("2.15")), "package-root"), [Outcome::Pass]);
}

#[test]
fn custom_operators_are_listed_until_somebody_says_what_the_target_has() {
    let artifact = artifact("artifacts/2.15.0-cpu-custom_op.so");
    let code = "operator-missing";
    assert_eq!(outcomes(&verify(&artifact, None), code), [Outcome::Warn]);
    let names: Vec<String> = artifact.models[0].requires.custom_ops.iter().filter_map(|o| o.name.clone()).collect();
    assert!(!names.is_empty());
    let ops = |list: Vec<String>| LoadConfig { ops: list, ..LoadConfig::default() };
    let known = aoti_inspect::verify(&artifact, &ops(names));
    assert!(outcomes(&known, code).iter().all(|o| *o == Outcome::Pass));
    let other = aoti_inspect::verify(&artifact, &ops(vec!["other::*".into()]));
    assert!(outcomes(&other, code).contains(&Outcome::Fail));
}

#[test]
fn an_operator_library_of_the_package_counts() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model/data/aotinductor/model");
    std::fs::create_dir_all(&model).unwrap();
    let artifacts = Path::new("testdata/artifacts");
    std::fs::copy(artifacts.join("2.15.0-cpu-custom_op.so"), model.join("abc.wrapper.so")).unwrap();
    std::fs::copy(artifacts.join("2.15.0-cpu-custom_op.json"), model.join("abc.wrapper.json")).unwrap();
    let libraries = folder.path().join("model/custom_op_libs");
    std::fs::create_dir_all(&libraries).unwrap();
    let finding = |schemas: &[u8], args: &[&str]| {
        std::fs::write(libraries.join("ops.so"), [b"\x7fELF\0xplat\0", schemas].concat()).unwrap();
        let verify = Command::new(env!("CARGO_BIN_EXE_aoti-inspect"))
            .args(["verify", "--json"])
            .args(args)
            .arg(folder.path())
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&verify.stdout).unwrap();
        let findings = report["artifacts"][0]["findings"].as_array().unwrap().clone();
        let of_code = findings.into_iter().filter(|f| f["code"] == "operator-missing");
        of_code.map(|f| f["outcome"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = b"split2(Tensor x) -> (Tensor, Tensor)\0sine_scale(Tensor x) -> Tensor\0";
    assert_eq!(finding(both, &[]), ["warn"]);
    assert_eq!(finding(both, &["--ops", "other::*"]), ["pass", "pass"]);
    assert_eq!(finding(b"split2(Tensor x) -> (Tensor, Tensor)\0", &["--ops", "other::*"]), ["pass", "fail"]);
}
