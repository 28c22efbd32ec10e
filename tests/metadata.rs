//! JSON members of real packages.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
use aoti_inspect::container::{self, Container};
use aoti_inspect::limits;
use aoti_inspect::metadata::{aoti, exported_program, extern_nodes, flags, objects, weights_config};
use std::path::Path;

fn open(name: &str) -> Container {
    container::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)).unwrap()
}

fn text(container: &Container, id: Option<container::MemberId>) -> &[u8] {
    container.member(id.unwrap()).unwrap().bytes(limits::JSON_BYTES).unwrap()
}

#[test]
fn metadata_of_a_recent_package() {
    let package = open("artifacts/2.11.0-cuda-multi_arch.pt2");
    let model = package.models().first().unwrap();
    let copies: Vec<_> = model.metadata.iter().map(|id| aoti::read(text(&package, Some(*id)), "m")).collect();
    assert_eq!(copies.len(), 2);
    let first = copies.first().unwrap();
    assert_eq!(first.device().unwrap().0.to_string(), "cuda");
    assert_eq!(first.compute_capability().unwrap().0.to_string(), "sm_90");
    assert_eq!(first.get(aoti::MACHINE), Some("x86_64"));
    assert!(first.problems.is_empty());
    assert!(aoti::differences(first, copies.get(1).unwrap()).is_empty());
}

#[test]
fn hostile_metadata_is_a_problem() {
    let package = open("hostile/bad_metadata.pt2");
    let id = package.models().first().unwrap().metadata.first().copied();
    let got = aoti::read(text(&package, id), "x.wrapper_metadata.json");
    assert!(got.entries.is_empty() && got.problems.len() == 1);
    let package = open("hostile/terminal_escape.pt2");
    let id = package.models().first().unwrap().metadata.first().copied();
    let got = aoti::read(text(&package, id), "x");
    assert!(got.entries.iter().any(|e| e.value.contains('\u{1b}')), "kept as it is; escaping is the renderers' work");
}

#[test]
fn weights_flags_nodes_and_objects() {
    let pickled = open("artifacts/2.15.0-cpu-pickle_weights.pt2");
    let weights = weights_config::read(text(&pickled, pickled.models().first().unwrap().weights_config)).unwrap();
    let names: Vec<_> = weights.iter().map(|w| (w.fqn.as_str(), w.file.as_str(), w.shape.as_slice())).collect();
    assert!(names.contains(&("fc1.weight", "weight_0", &[16, 10][..])), "{names:?}");

    let sources = open("artifacts/2.15.0-cpu-cpp_only.pt2");
    let model = sources.models().first().unwrap();
    let compile = flags::read(text(&sources, model.compile_flags)).unwrap();
    assert_eq!((compile.compiler.as_str(), compile.cxx_standard()), ("g++", Some("c++20")));
    let link = flags::read(text(&sources, model.linker_flags)).unwrap();
    assert!(link.libraries.contains(&"torch_cpu".to_owned()) && !link.compile_only);

    let library = open("artifacts/2.15.0-cpu-custom_op.so");
    let nodes = extern_nodes::read(text(&library, library.models().first().unwrap().extern_nodes)).unwrap();
    let ops = extern_nodes::custom_ops(&nodes);
    let names: Vec<_> = ops.iter().map(|op| (op.name.as_deref().unwrap(), op.is_python_only)).collect();
    assert_eq!(names, [("xplat::split2", Some(true)), ("xplat::sine_scale", Some(true))]);

    let old = open("artifacts/2.7.1-cpu-multi_io.pt2");
    let map = objects::custom_objects(text(&old, old.models().first().unwrap().custom_objs_config)).unwrap();
    assert!(map.is_empty());
}

#[test]
fn an_exported_program_states_its_inputs() {
    for (name, folder) in [("2.15.0-cpu-ep_only.pt2", "negatives"), ("2.15.0-cpu-ep_and_aoti.pt2", "artifacts")] {
        let package = open(&format!("{folder}/{name}"));
        let member = package.exported().next().unwrap();
        let got = exported_program::read(member.bytes(limits::JSON_BYTES).unwrap(), "model", member.name()).unwrap();
        let input = got.inputs.first().unwrap();
        assert_eq!(got.inputs.len(), 1);
        assert_eq!(input.path.as_deref(), Some("args[0]"));
        assert_eq!(input.labels.first().unwrap().name, "x");
        let shape: Vec<_> = input.shape.iter().flatten().map(|d| d.as_ref().unwrap().to_string()).collect();
        assert_eq!((input.dtype.as_ref().unwrap().name(), shape), ("float32", vec!["2".into(), "10".into()]));
        assert_eq!(got.outputs.first().unwrap().shape.as_ref().unwrap().len(), 2);
        assert!(got.torch_version.is_some_and(|v| v.starts_with("2.15")));
    }
}
