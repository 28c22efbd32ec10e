//! What layout and JSON members contribute to an artefact, look-alikes and hostile files as a whole.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
use aoti_inspect::model::{Artifact, Kind};
use aoti_inspect::{Settings, inspect};
use std::path::Path;

fn artifact(name: &str) -> Artifact {
    inspect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name), &Settings::default()).unwrap()
}

fn paths(artifact: &Artifact) -> (Vec<String>, Vec<String>) {
    let model = artifact.models.first().unwrap();
    let of = |list: &Option<Vec<aoti_inspect::model::TensorSpec>>| {
        list.iter().flatten().map(|t| t.path.clone().unwrap_or("?".into())).collect()
    };
    (of(&model.inputs), of(&model.outputs))
}

#[test]
fn call_paths_come_from_the_call_spec() {
    for name in ["2.15.0-cpu-multi_io.pt2", "2.9.1-cpu-multi_io.pt2", "2.7.1-cpu-multi_io.pt2"] {
        let (inputs, outputs) = paths(&artifact(&format!("artifacts/{name}")));
        assert_eq!(inputs, ["args[0]", "args[1]", "args[2]", "kwargs['bias']"], "{name}");
        assert_eq!(outputs, ["['logits']", "['pooled'][0]", "['pooled'][1]"], "{name}");
    }
    let (inputs, outputs) = paths(&artifact("artifacts/2.15.0-cpu-dtypes.pt2"));
    assert_eq!(inputs.first().map(String::as_str), Some("args[0]['f16']"));
    assert_eq!(outputs.last().map(String::as_str), Some("[8]"));
    assert_eq!(paths(&artifact("artifacts/2.6.0-cpu-mlp_dynamic.pt2")), (vec!["args[0]".into()], vec![String::new()]));
}

#[test]
fn metadata_and_custom_operators() {
    let package = artifact("artifacts/2.11.0-cuda-multi_arch.pt2");
    let model = package.models.first().unwrap();
    let keys: Vec<_> = model.metadata.iter().map(|e| e.key.as_str()).collect();
    assert!(keys.contains(&"AOTI_DEVICE_KEY") && keys.len() == 5, "{keys:?}");
    assert!(model.device_evidence.iter().any(|e| e.detail == "AOTI_DEVICE_KEY=cuda"));
    let library = artifact("artifacts/2.15.0-cpu-custom_op.so");
    let ops: Vec<_> = library.models.first().unwrap().requires.custom_ops.iter().map(|op| op.name.clone()).collect();
    assert_eq!(ops, [Some("xplat::split2".into()), Some("xplat::sine_scale".into())]);
}

#[test]
fn an_exported_program_of_another_model_gives_no_labels() {
    let mixed = artifact("artifacts/2.15.0-cpu-ep_and_aoti.pt2");
    assert_eq!(mixed.exported.as_ref().map(|p| p.inputs.len()), Some(1));
    assert!(mixed.models.first().unwrap().inputs.iter().flatten().all(|i| i.labels.is_empty()));
}

#[test]
fn look_alikes_have_a_kind_and_a_sentence() {
    for (name, kind) in [
        ("2.15.0-cpu-ep_only.pt2", Kind::ExportedProgram),
        ("2.15.0-cpu-extra_only.pt2", Kind::Unknown),
        ("2.15.0-cpu-torch_save.pt", Kind::TorchSave),
        ("2.15.0-cpu-torch_save_legacy.pt2", Kind::TorchSave),
        ("2.15.0-cpu-torchscript.pt", Kind::Torchscript),
        ("_json.cpython-311-x86_64-linux-gnu.so", Kind::PythonExtension),
        ("lfs_pointer.pt2", Kind::Unknown),
        ("page.pt2", Kind::Unknown),
    ] {
        let got = artifact(&format!("negatives/{name}"));
        assert_eq!(got.kind, kind, "{name}");
        assert!(got.error.is_some_and(|e| e.starts_with("this is ")), "{name}");
        assert!(got.models.is_empty());
    }
    let program = artifact("negatives/2.15.0-cpu-ep_only.pt2").exported.unwrap();
    assert_eq!(program.inputs.first().unwrap().labels.first().unwrap().name, "x");
}

#[test]
fn hostile_files_are_unreadable_or_shown_with_their_problems() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/hostile");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".expected.json") {
            continue;
        }
        let got = artifact(&format!("hostile/{name}"));
        let readable = [
            "bad_metadata.pt2",
            "cpu_metadata_cuda_so.pt2",
            "no_metadata.pt2",
            "prefix_junk.pt2",
            "terminal_escape.pt2",
        ];
        if readable.contains(&name.as_str()) {
            assert_eq!(got.error, None, "{name}");
            let is_clean = matches!(name.as_str(), "cpu_metadata_cuda_so.pt2" | "terminal_escape.pt2");
            assert_eq!(got.problems.is_empty(), is_clean, "{name}: {:?}", got.problems);
        } else if name != "truncated.so" {
            assert!(got.error.is_some(), "{name}: {:?}", got.problems);
        }
    }
    let mismatch = artifact("hostile/cpu_metadata_cuda_so.pt2");
    let conflicts = &mismatch.models.first().unwrap().conflicts;
    let device = conflicts.iter().find(|c| c.code == "device-conflict").unwrap();
    assert!(device.sides.iter().any(|s| s.detail.contains("AOTI_DEVICE_KEY=cpu")), "{device:?}");
    assert_eq!(mismatch.models.first().unwrap().device.as_ref().unwrap().to_string(), "cuda");
}
