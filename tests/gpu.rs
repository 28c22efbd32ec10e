//! Whole CUDA artefacts: which kernels they want and hold, and on which GPUs they run.

use aoti_inspect::model::{Arch, Artifact, Kernel, KernelKind};
use aoti_inspect::report::{ArtifactReport, Outcome, Verdict};
use aoti_inspect::target::LoadConfig;
use aoti_inspect::target::gpu::{Driver, Gpu, common_gpus};
use std::path::{Path, PathBuf};

fn inspect(path: &Path) -> Artifact {
    aoti_inspect::inspect(path, &aoti_inspect::Settings::default())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn artifact(name: &str) -> Artifact {
    inspect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(name))
}

fn verify(artifact: &Artifact, gpu: &str, driver: Option<&str>) -> ArtifactReport {
    let config = LoadConfig {
        gpus: vec![Gpu::from_text(gpu).expect("a GPU")],
        driver: driver.map(|d| Driver::from_text(d).expect("a driver")),
        ..LoadConfig::default()
    };
    aoti_inspect::verify(artifact, &config)
}

fn outcomes(report: &ArtifactReport, code: &str) -> Vec<Outcome> {
    report.findings.iter().filter(|f| f.code == code).map(|f| f.outcome).collect()
}

fn gpu_kernels(artifact: &Artifact) -> Vec<&Kernel> {
    artifact.models.iter().flat_map(|m| &m.kernels).filter(|k| k.kind == KernelKind::Triton).collect()
}

#[test]
fn cubins_fatbins_and_embedded_kernels_run_on_hopper_alone() {
    for name in ["2.11.0-cuda-assert_idx.pt2", "2.11.0-cuda-multi_arch.pt2", "2.11.0-cuda-embed_cubin.so"] {
        let artifact = artifact(name);
        let kernels = gpu_kernels(&artifact);
        assert!(!kernels.is_empty(), "{name}");
        for kernel in &kernels {
            assert_eq!(kernel.present, Some(true), "{name}: {}", kernel.name);
            assert_eq!(kernel.archs, [Arch::Sm { number: 90, suffix: Some('a') }], "{name}: {}", kernel.name);
            assert!(kernel.registers.is_some_and(|r| r > 0), "{name}: {}", kernel.name);
        }
        for gpu in ["H100", "NVIDIA H200", "9.0"] {
            let report = verify(&artifact, gpu, Some("580.95.05"));
            assert_eq!(outcomes(&report, "gpu-arch"), [Outcome::Pass], "{name} on {gpu}");
            assert_eq!(outcomes(&report, "gpu-driver"), [Outcome::Pass], "{name} on {gpu}");
        }
        for gpu in ["A10G", "NVIDIA A100-SXM4-80GB", "Tesla T4", "B200", "RTX 5090", "sm_100a"] {
            let report = verify(&artifact, gpu, None);
            assert_eq!(outcomes(&report, "gpu-arch"), [Outcome::Fail], "{name} on {gpu}");
            assert_eq!(report.verdict, Verdict::Fail, "{name} on {gpu}");
        }
        let common = common_gpus(&artifact.models[0].kernels).expect("GPU kernels");
        assert_eq!(common.runs, ["H100", "H200", "GH200"], "{name}");
    }
}

#[test]
fn a_package_called_multi_arch_is_judged_by_its_kernels() {
    let report = verify(&artifact("2.11.0-cuda-multi_arch.pt2"), "H100", None);
    assert_eq!(outcomes(&report, "kernel-multi-arch"), [Outcome::Warn]);
}

#[test]
fn all_kernel_files_of_a_package_are_wanted_and_there() {
    let report = verify(&artifact("2.11.0-cuda-assert_idx.pt2"), "H100", None);
    assert_eq!(outcomes(&report, "kernel-file-missing"), [Outcome::Pass]);
    assert_eq!(outcomes(&report, "kernel-file-unused"), []);
    assert_eq!(outcomes(&report, "kernel-symbol-missing"), [Outcome::Pass]);
}

#[test]
fn a_package_without_one_of_its_cubins_fails() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/2.11.0-cuda-assert_idx.pt2");
    let mut bytes = std::fs::read(path).expect("readable");
    // the member's name, in its own header and in the directory
    let ending = b".cubin";
    let places: Vec<usize> = (0..bytes.len() - ending.len()).filter(|at| bytes[*at..].starts_with(b".cubin")).collect();
    for at in places {
        // names inside the library and the source are C texts and quoted; member names are followed by other bytes
        if !matches!(bytes[at + ending.len()], 0 | b'"' | b'\'') || bytes[at + 6..].starts_with(b"\0\0PK") {
            bytes[at - 1] ^= 1;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.pt2");
    std::fs::write(&path, bytes).expect("writable");
    let artifact = inspect(&path);
    if gpu_kernels(&artifact).iter().all(|k| k.present == Some(true)) {
        panic!("the member was not renamed: {:?}", artifact.problems);
    }
    let report = verify(&artifact, "H100", None);
    assert_eq!(outcomes(&report, "kernel-file-missing"), [Outcome::Fail]);
    assert_eq!(outcomes(&report, "kernel-file-unused"), [Outcome::Warn]);
}

/// All CUDA artefacts of the corpus; a fresh clone has none.
#[test]
fn every_cuda_artefact_of_the_corpus_is_for_hopper() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["linux-x86_64-cuda/2.11.0", "models"] {
        let Ok(entries) = std::fs::read_dir(corpus.join(folder)) else { return };
        files.extend(entries.flatten().map(|e| e.path()).filter(|p| p.to_string_lossy().ends_with(".pt2")));
    }
    let mut kernels = 0;
    for path in files.iter().filter(|p| p.to_string_lossy().contains("-cuda-")) {
        let artifact = inspect(path);
        for kernel in gpu_kernels(&artifact) {
            assert_eq!(kernel.present, Some(true), "{}: {}", path.display(), kernel.name);
            assert_eq!(
                kernel.archs,
                [Arch::Sm { number: 90, suffix: Some('a') }],
                "{}: {}",
                path.display(),
                kernel.name
            );
            let threads = kernel.images.iter().find_map(|i| i.required_threads);
            assert_eq!(threads, kernel.num_warps.map(|w| w * 32), "{}: {}", path.display(), kernel.name);
            kernels += 1;
        }
        let report = verify(&artifact, "H100", Some("580.95.05"));
        for code in ["gpu-arch", "gpu-shared-memory", "gpu-driver"] {
            assert_eq!(outcomes(&report, code), [Outcome::Pass], "{}: {code}", path.display());
        }
        assert_eq!(outcomes(&verify(&artifact, "L40S", None), "gpu-arch"), [Outcome::Fail], "{}", path.display());
    }
    assert!(kernels >= 60, "{kernels}");
}
