//! Generated wrapper sources of real builds against their right answers.
//!
//! `target/corpus` (see `testdata/README.md`) has one source per compiled model; without it the sources in
//! `testdata/artifacts` are read.

use aoti_inspect::model::{Dim, Expr, TensorSpec, WeightsLocation};
use aoti_inspect::wrapper;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Every `*.wrapper.cpp` below the corpus that has an answer beside it, with that answer.
fn sources() -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["target/corpus", "testdata"] {
        walk(&root.join(folder), &mut found);
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn walk(folder: &Path, found: &mut Vec<(PathBuf, Value)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            walk(&path, found);
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(artifact) = name.strip_suffix(".wrapper.cpp") else { continue };
        let answer = path.with_file_name(format!("../{artifact}.expected.json"));
        if let Ok(text) = std::fs::read_to_string(answer) {
            found.push((path, serde_json::from_str(&text).expect("answer is JSON")));
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The size of a dim of the answer: a number, or the example of a symbol.
fn example(dim: &Value) -> i64 {
    dim.as_i64().or_else(|| dim["example"].as_i64()).expect("a size")
}

/// Checks one source; every difference is a line.
fn differences(path: &Path, answer: &Value) -> Vec<String> {
    let source = std::fs::read(path).expect("source");
    let read = match wrapper::read(&source, None) {
        Ok(read) => read,
        Err(error) => return vec![error.to_string()],
    };
    let interface = read.to_interface("x.wrapper.cpp");
    let mut wrong = Vec::new();
    let mut same = |what: String, found: String, expected: String| {
        if found != expected {
            wrong.push(format!("{what}: {found}, not {expected}"));
        }
    };
    same(
        "device".into(),
        format!("{:?}", interface.device.as_ref().map(ToString::to_string)),
        format!("{:?}", answer["device"].as_str()),
    );
    let inputs = list(answer, "inputs");
    let outputs = list(answer, "outputs");
    same("inputs".into(), interface.inputs.len().to_string(), inputs.len().to_string());
    same("outputs".into(), interface.outputs.len().to_string(), outputs.len().to_string());
    let release: Vec<u32> =
        answer["torch"].as_str().unwrap_or_default().split(['.', '+']).flat_map(|n| n.parse().ok()).collect();
    let states_checks = release.get(1).is_some_and(|minor| *minor >= 7);
    let lower = !answer["options"].to_string().contains("lowerbound");
    let mut symbols: HashMap<String, i64> = HashMap::new();
    let is_specialised = interface.inputs.iter().zip(inputs).any(|(spec, expected)| {
        let declared = list(expected, "shape").iter().enumerate().filter(|(_, d)| d.is_object());
        let is_bound = |dim: usize| {
            spec.shape.as_ref().map_or_else(
                || read.run.positions.keys().any(|p| p.input == spec.index && p.dim == dim),
                |shape| shape.get(dim).is_some_and(|d| d.as_ref().is_some_and(|d| d.as_static().is_none())),
            )
        };
        declared.into_iter().any(|(dim, _)| !is_bound(dim))
    });
    for (spec, expected) in interface.inputs.iter().zip(inputs) {
        let at = format!("inputs[{}]", spec.index);
        let dims = list(expected, "shape");
        bind(spec, dims, &read, &mut symbols);
        if !states_checks {
            same(format!("{at}.shape"), format!("{:?}", spec.shape), "None".into());
            continue;
        }
        same(
            format!("{at}.dtype"),
            format!("{:?}", spec.dtype.as_ref().map(|d| d.name())),
            format!("{:?}", expected["dtype"].as_str()),
        );
        same(format!("{at}.rank"), format!("{:?}", spec.rank), format!("{:?}", Some(dims.len())));
        let is_cpu_or_cuda = matches!(expected["device"].as_str(), Some("cpu" | "cuda"));
        if release.get(1).is_some_and(|minor| *minor >= 8) && is_cpu_or_cuda {
            same(
                format!("{at}.device"),
                format!("{:?}", spec.device.as_ref().map(ToString::to_string)),
                format!("{:?}", expected["device"].as_str()),
            );
        }
        for (position, (dim, wanted)) in spec.shape.iter().flatten().zip(dims).enumerate() {
            let at = format!("{at}.shape[{position}]");
            let Some(dim) = dim else {
                same(at, "unknown".into(), wanted.to_string());
                continue;
            };
            match wanted.as_i64() {
                Some(size) => same(at, format!("{dim:?}"), format!("{:?}", Dim::fixed(size))),
                None => {
                    let min = wanted["min"].as_i64().map(|m| m.max(2)).filter(|_| lower);
                    // a compiled bound may be narrower than the declared one
                    let (found_min, found_max) = dim.bounds();
                    same(format!("{at}.min"), format!("{found_min:?}"), format!("{min:?}"));
                    let widest = wanted["max"].as_i64().unwrap_or(i64::MAX);
                    same(format!("{at}.max"), (found_max.unwrap_or(i64::MAX) <= widest).to_string(), "true".into());
                }
            }
        }
        for (position, (stride, wanted)) in spec.stride.iter().flatten().zip(list(expected, "stride")).enumerate() {
            let value = |s: &str| symbols.get(s).copied();
            if let Some(value) = stride.as_ref().and_then(|s| s.expr().eval(&value)) {
                same(format!("{at}.stride[{position}]"), value.to_string(), wanted.to_string());
            }
        }
    }
    for (spec, expected) in interface.outputs.iter().zip(outputs) {
        let at = format!("outputs[{}]", spec.index);
        // a dim that was declared dynamic can have been fixed by the compilation: its example says nothing then
        if is_specialised {
            continue;
        }
        // the layout of an operator's result is stated from 2.13 on
        if spec.shape.is_none() && release.get(1).is_some_and(|minor| *minor < 13) {
            continue;
        }
        same(
            format!("{at}.dtype"),
            format!("{:?}", spec.dtype.as_ref().map(|d| d.name())),
            format!("{:?}", expected["dtype"].as_str()),
        );
        for (what, dims) in [("shape", &spec.shape), ("stride", &spec.stride)] {
            let value = |s: &str| symbols.get(s).copied();
            let found: Vec<Option<i64>> =
                dims.iter().flatten().map(|d| d.as_ref().and_then(|d| d.expr().eval(&value))).collect();
            let wanted: Vec<Option<i64>> = list(expected, what).iter().map(|d| Some(example(d))).collect();
            same(format!("{at}.{what}"), format!("{found:?}"), format!("{wanted:?}"));
        }
    }
    let constants = answer["constants"].as_object().expect("constants");
    same(
        "constants".into(),
        interface.constants.len().to_string(),
        format!("{}", interface.constant_count.unwrap_or(0)),
    );
    for constant in interface.constants.iter().filter(|c| c.folded != Some(true)) {
        let fqn =
            constant.fqn.clone().unwrap_or_else(|| old_name(constant.name.as_deref().unwrap_or_default(), constants));
        let expected = &constants.get(&fqn).cloned().unwrap_or(Value::Null);
        same(
            format!("constant {fqn}.dtype"),
            format!("{:?}", constant.dtype.as_ref().map(|d| d.name())),
            format!("{:?}", expected["dtype"].as_str()),
        );
        let shape: Option<Vec<i64>> = expected["shape"].as_array().map(|s| s.iter().map(example).collect());
        same(format!("constant {fqn}.shape"), format!("{:?}", constant.shape), format!("{shape:?}"));
        let bytes = expected["bytes"].as_u64().unwrap_or(0);
        let found = constant.size_bytes.unwrap_or(0);
        same(
            format!("constant {fqn}.bytes"),
            (found == bytes || found == bytes.div_ceil(64) * 64).to_string(),
            "true".into(),
        );
    }
    // the build folders of the corpus are named after releases, and one source lies under another release's name
    let torch = answer["torch"].as_str().unwrap_or_default().split('+').next().unwrap_or_default();
    let built_with =
        |include: &String| include.split_once("/v2.").is_some_and(|(_, rest)| !format!("2.{rest}").starts_with(torch));
    let is_misplaced = read.commands.iter().flat_map(|c| &c.includes).any(built_with);
    for dated in read.dating.iter().filter(|_| !is_misplaced) {
        let minor = release.get(1).copied().unwrap_or_default();
        let fits = dated.min.is_none_or(|min| u32::from(min.minor) <= minor)
            && dated.max.is_none_or(|max| u32::from(max.minor) >= minor);
        same(format!("dated by {}", dated.evidence.detail), fits.to_string(), "true".into());
    }
    same(
        "weights".into(),
        (interface.weights == Some(WeightsLocation::None)).to_string(),
        interface.constants.iter().all(|c| c.folded == Some(true)).to_string(),
    );
    wrong
}

/// Puts the example sizes behind the symbols.
fn bind(spec: &TensorSpec, dims: &[Value], read: &wrapper::WrapperSource, symbols: &mut HashMap<String, i64>) {
    for (dim, wanted) in spec.shape.iter().flatten().flatten().zip(dims) {
        if let Expr::Symbol(name) = dim.expr() {
            symbols.insert(name, example(wanted));
        }
    }
    for (position, (expression, _)) in &read.run.positions {
        if let (true, false, Expr::Symbol(name)) = (position.input == spec.index, position.is_stride, expression)
            && let Some(wanted) = dims.get(position.dim)
        {
            symbols.insert(name.clone(), example(wanted));
        }
    }
}

/// 2.2 names constants after the module path; the answers are keyed by FQN.
fn old_name(name: &str, constants: &serde_json::Map<String, Value>) -> String {
    let safe = |fqn: &str| fqn.replace('.', "_");
    constants.keys().find(|fqn| name.ends_with(&safe(fqn))).cloned().unwrap_or_else(|| name.to_owned())
}

#[test]
fn sources_say_what_was_compiled() {
    let all = sources();
    let mut wrong = 0;
    let mut report = String::new();
    for (path, answer) in &all {
        let lines = differences(path, answer);
        wrong += usize::from(!lines.is_empty());
        for line in lines {
            report.push_str(&format!("{}: {line}\n", path.file_name().unwrap_or_default().to_string_lossy()));
        }
    }
    assert_eq!(wrong, 0, "{wrong} of {} sources read wrongly\n{report}", all.len());
}
