//! The trace of a model against the generated source that it was compiled from, and against numbers worked out by hand
//! from that source.
//!
//! Reads `testdata/artifacts`, and `target/corpus` where it has been unpacked.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use aoti_inspect::container;
use aoti_inspect::metadata::expression::parse_expression;
use aoti_inspect::model::{Argument, Artifact, Dim, Expr, Model, Step, SymbolSize, Trace};
use aoti_inspect::{CodeReading, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn inspect(path: &Path) -> Artifact {
    aoti_inspect::inspect(path, &Settings { traces: true, ..Settings::default() }).unwrap()
}

fn model(name: &str) -> Model {
    inspect(&root().join("testdata/artifacts").join(name)).models.into_iter().next().unwrap()
}

/// One line per step, as short as it can be compared.
fn lines(trace: &Trace) -> Vec<String> {
    let number = |dim: &Option<Dim>| dim.as_ref().map_or("?".to_owned(), Dim::to_string);
    let numbers = |list: &[Option<Dim>]| list.iter().map(number).collect::<Vec<_>>().join(", ");
    let arguments = |list: &[Option<Argument>]| {
        let text = |argument: &Option<Argument>| match argument {
            Some(Argument::Tensor { tensor }) => tensor.clone(),
            Some(Argument::Number(dim)) => dim.to_string(),
            None => "?".to_owned(),
        };
        list.iter().map(text).collect::<Vec<_>>().join(", ")
    };
    let line = |step: &Step| match step {
        Step::Allocate { tensor, dtype, shape, bytes, device, .. } => {
            let dtype = dtype.as_ref().map_or("?", |d| d.name());
            let device = device.as_ref().map_or("?".to_owned(), ToString::to_string);
            let shape = shape.as_ref().map_or("?".to_owned(), |s| numbers(s));
            format!("{tensor} = {dtype}[{shape}] {} {device}", number(bytes))
        }
        Step::Free { tensor } => format!("free {tensor}"),
        Step::Operator { name, tensors } => format!("{name}({})", tensors.join(", ")),
        Step::CustomOperator { number, name, integers, tensors } => {
            format!("{number} {}({}; {})", name.as_deref().unwrap_or("?"), tensors.join(", "), numbers(integers))
        }
        Step::Kernel { name, arguments: list, has_more } => {
            format!("{name}({}{})", arguments(list), if *has_more { ", …" } else { "" })
        }
        Step::Launch { name, grid, block, shared_bytes, arguments: list } => {
            format!("{name}<[{}] [{}] {}>({})", numbers(grid), numbers(block), number(shared_bytes), arguments(list))
        }
    };
    trace.steps.iter().map(line).collect()
}

/// The function `run_impl` of generated source, one statement a line.
fn run_impl(source: &str) -> Vec<String> {
    let start = source.find("void AOTInductorModel::run_impl(").unwrap();
    let body = source.get(start..).unwrap();
    let end = body.find("} // AOTInductorModel::run_impl").or_else(|| body.find("\n}\n")).unwrap();
    body.get(..end).unwrap().lines().map(|line| line.trim().to_owned()).filter(|line| !line.starts_with("//")).collect()
}

/// Shims that are no operators: they hand out or ask handles.
const NO_OPERATORS: &[&str] = &[
    "_reinterpret_tensor",
    "as_strided",
    "get_",
    "new_tensor_handle",
    "new_uninitialized",
    "delete_",
    "assign_",
    "clone",
    "item_",
    "scalar_to_tensor",
    "create_",
    "check",
    "grad_mode",
    "proxy_executor",
    "dtype_",
    "device_type_",
    "layout_",
    "memory_format_",
    "warn",
    "mps_set",
    "mps_start",
    "mps_dispatch",
    "mps_shared",
];

/// What the text of `run_impl` does, in order: `allocate float32 [s27, 16]`, `operator …`, `kernel …`, `launch …`.
fn stated(source: &str) -> Vec<String> {
    let mut arrays: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for line in run_impl(source) {
        if let Some((head, list)) = line.split_once("[] = {") {
            let name = head.rsplit([' ', '*']).next().unwrap();
            arrays.insert(name.to_owned(), list.split('}').next().unwrap().to_owned());
        }
        let word: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let is_call = line.get(word.len()..).is_some_and(|rest| rest.starts_with('('));
        if is_call && word.starts_with("cpp_") {
            found.push(format!("kernel {word}"));
        } else if is_call && word.starts_with("call_") {
            found.push(format!("launch {}", word.trim_start_matches("call_")));
        } else if line.contains("launchKernel(kernels.") {
            let name = line.split("launchKernel(kernels.").nth(1).unwrap().split([',', '.']).next().unwrap();
            found.push(format!("launch {}", name.trim()));
        } else if line.contains("proxy_executor_call_function(") {
            let number = line.split("call_function(proxy_executor,").nth(1).unwrap().split(',').next().unwrap();
            found.push(format!("custom {}", number.trim()));
        } else if let Some((_, rest)) = line.split_once("aoti_torch_empty_strided") {
            let pieces: Vec<&str> = rest.split(['(', ',']).map(str::trim).collect();
            let [_, _, sizes, _, dtype, ..] = pieces.as_slice() else { panic!("{line}") };
            let dtype = dtype.trim_start_matches("cached_torch_dtype_");
            let sizes = arrays.get(*sizes).map_or("", String::as_str);
            found.push(format!("allocate {dtype} [{}]", normal(sizes)));
        } else if let Some((_, rest)) = line.split_once("aoti_torch_")
            && rest.contains('(')
            && !line.contains("static auto")
        {
            let name = rest.split('(').next().unwrap();
            if !NO_OPERATORS.iter().any(|start| name.starts_with(start)) {
                found.push(format!("operator aoti_torch_{name}"));
            }
        }
    }
    found
}

/// Sizes of an array in our own form: `s27, 8L*s77` in source is `s27, 8*s77`.
fn normal(sizes: &str) -> String {
    let parts = sizes.split(',').map(str::trim).filter(|part| !part.is_empty());
    let plain = |part: &str| {
        let mut text = String::new();
        let mut before = ' ';
        for c in part.chars() {
            if !(c == 'L' && before.is_ascii_digit()) {
                text.push(c);
            }
            before = c;
        }
        text
    };
    let one = |part: &str| parse_expression(&plain(part)).map_or_else(|| part.to_owned(), |e| e.to_string());
    parts.map(one).collect::<Vec<_>>().join(", ")
}

/// The same of a trace. Results of operators and copies have no allocation in the source.
fn traced(trace: &Trace) -> Vec<String> {
    let line = |step: &Step| match step {
        Step::Allocate { dtype, shape: Some(shape), operator: None, .. } => {
            let dims: Vec<String> = shape.iter().map(|d| d.as_ref().map_or("?".to_owned(), Dim::to_string)).collect();
            Some(format!("allocate {} [{}]", dtype.as_ref().map_or("?", |d| d.name()), dims.join(", ")))
        }
        Step::Allocate { .. } | Step::Free { .. } => None,
        Step::Operator { name, .. } => Some(format!("operator {name}")),
        Step::CustomOperator { number, .. } => Some(format!("custom {number}")),
        Step::Kernel { name, .. } => Some(format!("kernel {name}")),
        Step::Launch { name, .. } => Some(format!("launch {name}")),
    };
    trace.steps.iter().filter_map(line).collect()
}

fn files() -> Vec<PathBuf> {
    let mut folders = vec![root().join("testdata/artifacts"), root().join("target/corpus")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
            let text = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if (text.ends_with(".pt2") || text.ends_with(".so"))
                && !["hostile", "negatives", "/2.2.2-", "/2.3.1-", "/2.4.1-", "/2.5.1-"].iter().any(|w| text.contains(w))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Shapes with symbols become `[…]`: a library without source calls them by other names.
fn without_symbols(lines: Vec<String>) -> Vec<String> {
    let plain = |line: String| match line.split_once('[') {
        Some((head, sizes)) if sizes.contains(|c: char| c.is_alphabetic()) => format!("{head}[…]"),
        _ => line,
    };
    lines.into_iter().map(plain).collect()
}

/// Stripped libraries name no kernels, and those that only copy cannot be told from other functions.
fn without_kernels(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| !line.starts_with("kernel")).collect()
}

/// Allocations, operators, kernels and launches, in number, order and size, against the source of every artefact that
/// has one.
#[test]
fn the_code_does_what_the_source_says() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(opened) = container::open(&path) else { continue };
        let artifact = inspect(&path);
        for (folder, model) in opened.models().iter().zip(&artifact.models) {
            let member = folder.wrapper.and_then(|id| opened.member(id)).and_then(|m| m.bytes(1 << 26).ok());
            let beside = path.with_file_name(format!("sources/{name}.wrapper.cpp"));
            let source = member.map(<[u8]>::to_vec).or_else(|| std::fs::read(beside).ok());
            let Some((source, trace)) = source.zip(model.trace()) else { continue };
            compared += 1;
            let (mut mine, mut theirs) = (traced(trace), stated(&String::from_utf8_lossy(&source)));
            if member.is_none() {
                (mine, theirs) = (without_symbols(mine), without_symbols(theirs));
            }
            if mine.iter().any(|line| line.starts_with("kernel 0x")) {
                (mine, theirs) = (without_kernels(mine), without_kernels(theirs));
            }
            let at = mine.iter().zip(&theirs).position(|(a, b)| a != b).unwrap_or(mine.len().min(theirs.len()));
            if mine != theirs {
                let (found, wanted) = (mine.get(at), theirs.get(at));
                wrong.push(format!("{name}: {at}: {found:?}, not {wanted:?} ({} and {})", mine.len(), theirs.len()));
            }
            wrong.extend(trace.stopped.iter().map(|reason| format!("{name}: {reason}")));
        }
    }
    assert!(compared > 10);
    println!("{compared} compared");
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong.join("\n"));
}
