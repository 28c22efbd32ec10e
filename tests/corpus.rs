//! Whole artefacts against their right answers ("How to compare" in the corpus README): device, inputs, outputs,
//! constants.
//!
//! Reads `testdata/artifacts`, and `target/corpus` where it has been unpacked.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot read its artefact has failed")]

use aoti_inspect::model::{Artifact, Dim, Model, WeightsLocation};
use aoti_inspect::{CodeReading, Settings};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Artefacts with answers below the corpus and testdata whose name ends in `ending`; damaged ones and look-alikes have
/// tests of their own.
fn artifacts(ending: &str) -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["testdata/artifacts", "target/corpus"] {
        walk(&root.join(folder), ending, &mut found);
    }
    assert!(found.len() > 10, "testdata/artifacts is there");
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn walk(folder: &Path, ending: &str, found: &mut Vec<(PathBuf, Value)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "hostile" && name != "negatives" {
            walk(&path, ending, found);
        }
        if path.is_file() && name.ends_with(ending) {
            let answer = path.with_file_name(format!("{name}.expected.json"));
            if let Ok(text) = std::fs::read_to_string(answer) {
                found.push((path, serde_json::from_str(&text).unwrap()));
            }
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The size of a dim of the answer: a number, or the example of a symbol.
fn example(dim: &Value) -> i64 {
    dim.as_i64().or_else(|| dim["example"].as_i64()).unwrap()
}

fn minor(answer: &Value) -> u32 {
    answer["torch"].as_str().and_then(|t| t.split('.').nth(1)).and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// Every difference between a model and its answer, one line each.
struct Comparison<'a> {
    model: &'a Model,
    answer: &'a Value,
    minor: u32,
    /// example sizes of symbols
    symbols: HashMap<String, i64>,
    wrong: Vec<String>,
}

impl Comparison<'_> {
    fn same(&mut self, what: String, found: impl std::fmt::Debug, expected: impl std::fmt::Debug) {
        let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
        if found != expected {
            self.wrong.push(format!("{what}: {found}, not {expected}"));
        }
    }

    fn run(mut self, device: Option<&str>) -> Vec<String> {
        let model = self.model;
        self.same("device".into(), model.device.as_ref().map(ToString::to_string), device.map(str::to_owned));
        self.same("inputs".into(), model.inputs.as_ref().map(Vec::len), Some(list(self.answer, "inputs").len()));
        self.same("outputs".into(), model.outputs.as_ref().map(Vec::len), Some(list(self.answer, "outputs").len()));
        self.inputs();
        self.outputs();
        self.constants();
        self.wrong
    }

    fn inputs(&mut self) {
        let has_lower = !self.answer["options"].to_string().contains("lowerbound");
        for (spec, expected) in self.model.inputs.iter().flatten().zip(list(self.answer, "inputs")) {
            let at = format!("inputs[{}]", spec.index);
            let dims = list(expected, "shape");
            for (dim, wanted) in spec.shape.iter().flatten().flatten().zip(dims) {
                if let Dim::Symbol { symbol, .. } = dim {
                    self.symbols.insert(symbol.clone(), example(wanted));
                }
            }
            if self.minor < 7 && spec.shape.is_none() {
                continue;
            }
            self.same(format!("{at}.dtype"), spec.dtype.as_ref().map(|d| d.name()), expected["dtype"].as_str());
            self.same(format!("{at}.rank"), spec.rank, Some(dims.len()));
            let device = spec.device.as_ref().map(ToString::to_string);
            self.same(format!("{at}.device"), device.as_deref(), expected["device"].as_str());
            for (position, (dim, wanted)) in spec.shape.iter().flatten().zip(dims).enumerate() {
                let at = format!("{at}.shape[{position}]");
                let Some(size) = wanted.as_i64() else {
                    let (min, max) = dim.as_ref().map_or((None, None), Dim::bounds);
                    let wanted_min = wanted["min"].as_i64().map(|m| m.max(2)).filter(|_| has_lower);
                    self.same(format!("{at}.min"), min, wanted_min);
                    // a compiled bound may be narrower than the declared one
                    let widest = wanted["max"].as_i64().unwrap_or(i64::MAX);
                    self.same(format!("{at}.max"), max.unwrap_or(i64::MAX) <= widest, true);
                    continue;
                };
                self.same(at, dim.as_ref().and_then(Dim::as_static), Some(size));
            }
            let strides: Vec<Option<i64>> =
                spec.stride.iter().flatten().map(|s| s.as_ref().and_then(|s| self.value(s))).collect();
            let wanted: Vec<Option<i64>> = list(expected, "stride").iter().map(Value::as_i64).collect();
            // a stride that no check states is open where the layout is not contiguous
            let open = |(found, wanted): (&Option<i64>, &Option<i64>)| found.is_none() || found == wanted;
            self.same(
                format!("{at}.stride"),
                (strides.len(), strides.iter().zip(&wanted).all(open)),
                (wanted.len(), true),
            );
        }
    }

    fn value(&self, dim: &Dim) -> Option<i64> {
        dim.expr().eval(&|symbol| self.symbols.get(symbol).copied())
    }

    fn outputs(&mut self) {
        for (spec, expected) in self.model.outputs.iter().flatten().zip(list(self.answer, "outputs")) {
            let at = format!("outputs[{}]", spec.index);
            // the layout of an operator's result is stated from 2.13 on; symbols before 2.7 have no sizes to put in
            let is_open = |dims: &Option<Vec<Option<Dim>>>| {
                dims.iter().flatten().any(|d| d.as_ref().is_none_or(|d| self.value(d).is_none()))
            };
            // what an operator of another library returns is not in the code
            let is_custom = !self.model.requires.custom_ops.is_empty() && is_open(&spec.shape);
            if (spec.shape.is_none() && self.minor < 13) || (self.minor < 7 && is_open(&spec.shape)) || is_custom {
                continue;
            }
            self.same(format!("{at}.dtype"), spec.dtype.as_ref().map(|d| d.name()), expected["dtype"].as_str());
            for (what, dims) in [("shape", &spec.shape), ("stride", &spec.stride)] {
                let found: Vec<Option<i64>> =
                    dims.iter().flatten().map(|d| d.as_ref().and_then(|d| self.value(d))).collect();
                let wanted: Vec<Option<i64>> = list(expected, what).iter().map(|d| Some(example(d))).collect();
                self.same(format!("{at}.{what}"), found, wanted);
            }
        }
    }

    fn constants(&mut self) {
        let answer = self.answer["constants"].as_object().unwrap();
        let Some(constants) = &self.model.constants else {
            self.wrong.push("constants: unknown".into());
            return;
        };
        for constant in constants.iter().filter(|c| c.folded != Some(true)) {
            let name = constant.name.clone().unwrap_or_default();
            // 2.2 names them after the module path and has no FQN
            let by_name = || answer.keys().find(|fqn| name.ends_with(&fqn.replace('.', "_"))).cloned();
            let fqn = constant.fqn.clone().or_else(by_name).unwrap_or(name);
            let expected = answer.get(&fqn).cloned().unwrap_or(Value::Null);
            let shape: Option<Vec<i64>> = expected["shape"].as_array().map(|s| s.iter().map(example).collect());
            self.same(format!("{fqn}.dtype"), constant.dtype.as_ref().map(|d| d.name()), expected["dtype"].as_str());
            self.same(format!("{fqn}.shape"), constant.shape.clone(), shape);
            let bytes = expected["bytes"].as_u64().unwrap_or(u64::MAX);
            let is_size =
                constant.size_bytes.is_some_and(|n| n == bytes || Some(n) == bytes.checked_next_multiple_of(64));
            self.same(format!("{fqn}.bytes"), is_size, true);
        }
    }
}

fn differences(artifact: &Artifact, answer: &Value) -> Vec<String> {
    if let Some(error) = &artifact.error {
        return vec![error.clone()];
    }
    let mut wrong = Vec::new();
    let mut answers: Vec<(String, &Value)> = Vec::new();
    match answer["models"].as_object() {
        Some(models) => answers.extend(models.iter().map(|(name, answer)| (name.clone(), answer))),
        None => answers.push((artifact.models.first().map_or(String::new(), |m| m.name.clone()), answer)),
    }
    if artifact.models.len() != answers.len() {
        wrong.push(format!("{} models, not {}", artifact.models.len(), answers.len()));
    }
    for (name, answer_of_model) in answers {
        let Some(model) = artifact.models.iter().find(|m| m.name == name) else {
            wrong.push(format!("no model {name}"));
            continue;
        };
        let comparison = Comparison {
            model,
            answer: answer_of_model,
            minor: minor(answer),
            symbols: HashMap::new(),
            wrong: Vec::new(),
        };
        wrong.extend(comparison.run(answer["device"].as_str()));
        wrong.extend(contradictions(model, minor(answer)));
        wrong.extend(unexplained(artifact, model));
    }
    wrong
}

/// An untouched artefact contradicts itself nowhere, and its release lies in the dated range.
fn contradictions(model: &Model, minor: u32) -> Vec<String> {
    let mut wrong: Vec<String> = model.conflicts.iter().map(|c| format!("{}: {:?}", c.code, c.sides)).collect();
    let by = &model.compiled_by;
    let fits = by.torch_min.is_none_or(|r| u32::from(r.minor) <= minor)
        && by.torch_max.is_none_or(|r| u32::from(r.minor) >= minor);
    if !fits {
        wrong.push(format!("{:?}, not 2.{minor}: {:?}", by.range(), by.evidence));
    }
    wrong
}

/// Facts that are unknown without a reason.
fn unexplained(artifact: &Artifact, model: &Model) -> Vec<String> {
    let index = artifact.models.iter().position(|m| m.name == model.name).unwrap();
    let mut facts = Vec::new();
    for (list, tensors) in [("inputs", &model.inputs), ("outputs", &model.outputs)] {
        for tensor in tensors.iter().flatten() {
            let missing = [tensor.dtype.is_none(), tensor.shape.is_none(), tensor.stride.is_none()];
            for (fact, _) in ["dtype", "shape", "stride"].iter().zip(missing).filter(|(_, is)| *is) {
                facts.push(format!("models[{index}].{list}[{}].{fact}", tensor.index));
            }
        }
    }
    if model.weights.location.is_none() {
        facts.push(format!("models[{index}].weights.location"));
    }
    facts.retain(|fact| artifact.unknown_reason(fact).is_none());
    facts.into_iter().map(|fact| format!("{fact} is unknown without a reason")).collect()
}

fn inspect(path: &Path) -> Artifact {
    aoti_inspect::inspect(path, &Settings::default()).unwrap()
}

fn report(all: &[(PathBuf, Value)], settings: &Settings) {
    let mut text = String::new();
    let mut wrong = 0;
    for (path, answer) in all {
        let lines = differences(&aoti_inspect::inspect(path, settings).unwrap(), answer);
        wrong += usize::from(!lines.is_empty());
        for line in lines {
            text.push_str(&format!("{}: {line}\n", path.file_name().unwrap().to_string_lossy()));
        }
    }
    assert_eq!(wrong, 0, "{wrong} of {} artefacts read wrongly\n{text}", all.len());
}

#[test]
fn packages_are_what_was_compiled() {
    report(&artifacts(".pt2"), &Settings::default());
}

#[test]
fn source_and_code_of_packages_agree() {
    report(&artifacts(".pt2"), &Settings { code: CodeReading::Always, ..Settings::default() });
}

#[test]
fn bare_libraries_are_what_was_compiled() {
    report(&artifacts(".so"), &Settings::default());
}

/// The only library of an artefact; `None` where there are several, or none.
fn library_of(path: &Path) -> Option<Vec<u8>> {
    let container = aoti_inspect::container::open(path).unwrap();
    let [folder] = container.models() else { return None };
    let region = container.library(folder).unwrap()?;
    Some(region.all(1 << 30).unwrap().to_vec())
}

/// Every library renamed and alone in a folder, as it is and after `strip --strip-all`.
#[test]
fn bare_and_stripped_copies_are_what_was_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let (bare, stripped) = (folder.path().join("bare.so"), folder.path().join("stripped.so"));
    let (mut copies, mut stripped_copies, mut wrong) = (0, 0, Vec::new());
    for (path, answer) in artifacts(".pt2").into_iter().chain(artifacts(".so")) {
        let Some(library) = library_of(&path) else { continue };
        std::fs::write(&bare, library).unwrap();
        let strip = std::process::Command::new("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(&bare).output();
        // of this machine alone: other formats and processors need a strip of their own
        let is_stripped = strip.unwrap().status.success();
        for copy in [Some(&bare), is_stripped.then_some(&stripped)].into_iter().flatten() {
            copies += 1;
            stripped_copies += usize::from(copy == &stripped);
            let lines = differences(&inspect(copy), &answer);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            wrong.extend(lines.into_iter().map(|line| format!("{name} {}: {line}", copy.display())));
        }
    }
    eprintln!("{copies} bare copies, {stripped_copies} of them stripped");
    assert!(stripped_copies >= 10, "only {stripped_copies} libraries could be stripped");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn weights_are_where_the_options_put_them() {
    for (file, location) in [
        ("2.15.0-cpu-mlp_dynamic.pt2", WeightsLocation::Library),
        ("2.15.0-cpu-mmap_weights.pt2", WeightsLocation::Appended),
        ("2.15.0-cpu-blob_weights.pt2", WeightsLocation::Blob),
        ("2.15.0-cpu-pickle_weights.pt2", WeightsLocation::Pickled),
        ("2.15.0-cpu-weights_outside.pt2", WeightsLocation::Absent),
        ("2.15.0-cpu-zero.pt2", WeightsLocation::None),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(file);
        let artifact = inspect(&path);
        let weights = &artifact.models.first().unwrap().weights;
        assert_eq!(weights.location, Some(location), "{file}: {:?}", weights.evidence);
        let has_bytes =
            matches!(location, WeightsLocation::Library | WeightsLocation::Appended | WeightsLocation::Blob);
        if has_bytes {
            assert_eq!(weights.size_bytes, weights.expected_bytes, "{file}");
        }
    }
}

/// The generated source inside a package.
fn source_of(package: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(package);
    let container = aoti_inspect::container::open(&path).unwrap();
    let member = container.members().find(|m| m.name().ends_with(".wrapper.cpp")).unwrap();
    member.bytes(1 << 20).unwrap().to_vec()
}

#[test]
fn a_source_beside_a_library_is_believed_only_when_it_fits() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/2.15.0-cpu-mlp_dynamic.so");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("renamed.so");
    std::fs::copy(library, &copy).unwrap();
    for (package, is_its_own) in [("2.15.0-cpu-mlp_dynamic.pt2", true), ("2.15.0-cpu-multi_io.pt2", false)] {
        std::fs::write(copy.with_extension("cpp"), source_of(package)).unwrap();
        for code in [CodeReading::WhenNeeded, CodeReading::Never] {
            let artifact = aoti_inspect::inspect(&copy, &Settings { code, ..Settings::default() }).unwrap();
            let model = artifact.models.first().unwrap();
            let codes: Vec<&str> = model.conflicts.iter().map(|c| c.code.as_str()).collect();
            assert_eq!(codes, if is_its_own { vec![] } else { vec!["source-stale"] }, "{package} {code:?}");
            // PyTorch's names of symbols are in the source alone
            let has_names = model.symbols.iter().any(|s| s.symbol.starts_with('s'));
            assert_eq!(has_names, is_its_own, "{package} {code:?}");
        }
    }
}
