//! Libraries for other platforms than Linux on x86-64, interpreted, against the generated source in their packages.

use aoti_inspect::container;
use aoti_inspect::image::Image;
use aoti_inspect::interpret::{self, Options};
use aoti_inspect::limits;
use aoti_inspect::model::{Constant, Dim, Interface, TensorSpec};
use aoti_inspect::wrapper;
use std::path::{Path, PathBuf};

/// Packages of a platform, by a part of their names: in the corpus, and in a fresh clone.
fn packages(corpus: &str, part: &str) -> Vec<PathBuf> {
    let folders = [Path::new("target/corpus").join(corpus), PathBuf::from("testdata/artifacts")];
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "pt2"))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part)))
        .collect();
    found.sort();
    found
}

/// What code and source both state about sizes and strides: numbers and bounds. Names of symbols differ.
fn dims(dims: Option<&Vec<Option<Dim>>>) -> Vec<String> {
    let text = |dim: &Option<Dim>| match dim {
        Some(Dim::Static { size }) => size.to_string(),
        Some(Dim::Symbol { min, max, .. }) => format!("{min:?}..{max:?}"),
        Some(Dim::Expr { .. }) | None => "?".to_owned(),
    };
    dims.map_or_else(Vec::new, |dims| dims.iter().map(text).collect())
}

fn input(spec: &TensorSpec) -> String {
    let strides: Vec<_> = spec.stride.iter().flatten().map(|s| s.as_ref().and_then(Dim::as_static)).collect();
    let device = spec.device.as_ref().map(|device| device.kind.to_string());
    let (shape, rank) = (dims(spec.shape.as_ref()), spec.rank);
    format!("{:?} {:?} {rank:?} {shape:?} {strides:?} {device:?}", spec.name, spec.dtype)
}

/// Rank, dtype and numbers; sizes that are expressions are not compared.
fn output(spec: &TensorSpec) -> String {
    let sizes: Vec<_> = spec.shape.iter().flatten().map(|s| s.as_ref().and_then(Dim::as_static)).collect();
    format!("{:?} {:?} {sizes:?}", spec.name, spec.dtype)
}

fn constant(constant: &Constant) -> String {
    let Constant { name, fqn, dtype, shape, stride, folded, kind, .. } = constant;
    format!("{name:?} {fqn:?} {dtype:?} {shape:?} {stride:?} {folded:?} {kind:?}")
}

fn lines<T>(list: &[T], line: fn(&T) -> String) -> Vec<String> {
    list.iter().map(line).collect()
}

fn compare(name: &str, code: &Interface, source: &Interface, failures: &mut Vec<String>) {
    let mut same = |what: &str, code: Vec<String>, source: Vec<String>| {
        if code != source {
            failures.push(format!("{name}: {what}: code {code:?}, source {source:?}"));
        }
    };
    same("inputs", lines(&code.inputs, input), lines(&source.inputs, input));
    same("outputs", lines(&code.outputs, output), lines(&source.outputs, output));
    same("constants", lines(&code.constants, constant), lines(&source.constants, constant));
    let device = |i: &Interface| i.device.iter().map(|d| d.kind.to_string()).collect::<Vec<_>>();
    same("device", device(code), device(source));
    let specs = |i: &Interface| vec![format!("{:?} {:?}", i.in_spec, i.out_spec)];
    same("call spec", specs(code), specs(source));
}

/// Interprets the libraries, with and without the shortcut for device strings.
fn check(corpus: &str, part: &str) {
    let mut failures = Vec::new();
    let mut count = 0;
    for path in packages(corpus, part) {
        let container = container::open(&path).expect("open");
        for model in container.models() {
            let library = container.library(model).expect("readable").expect("a library");
            let image = Image::open(library).expect("image");
            let wrapper = model.wrapper.and_then(|id| container.member(id)).expect("a source");
            let source = wrapper::read(wrapper.bytes(limits::SOURCE_BYTES).expect("source"), None).expect("read");
            let source = source.to_interface("source");
            for answers_device_parser in [true, false] {
                count += 1;
                let name = format!("{} {} {answers_device_parser}", path.display(), model.name);
                let read = interpret::recover(&image, Options { answers_device_parser, ..Options::default() })
                    .expect("recover");
                if read.stopped.is_some() || !read.unknown_imports.is_empty() {
                    failures.push(format!("{name}: {:?} {:?}", read.stopped, read.unknown_imports));
                }
                compare(&name, &read.interface, &source, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let is_clone_alone = !Path::new("target/corpus").exists();
    assert!(is_clone_alone || count >= 2, "no package was there");
}

#[test]
fn linux_on_arm() {
    check("aarch64", "aarch64");
}

#[test]
fn macos_on_arm() {
    check("macos", "macos_arm64");
}

#[test]
fn windows_by_mingw() {
    check("windows", "mingw");
}
