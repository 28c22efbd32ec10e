//! What interpreting a library tells, against the generated source that it was compiled from and against the answers
//! beside it.
//!
//! `target/corpus` (see `testdata/README.md`) has libraries of many releases and compilers; without it those in
//! `testdata/artifacts` are read.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use aoti_inspect::container;
use aoti_inspect::image::{Architecture, Format, Image};
use aoti_inspect::interpret::{self, Options, Recovery};
use aoti_inspect::model::{Constant, Dim, Expr, Interface, KernelKind, Launch, TensorSpec};
use aoti_inspect::source::{Region, open_file};
use aoti_inspect::wrapper;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// A library, its source and its answer.
struct Case {
    group: String,
    name: String,
    recovery: Recovery,
    source: Option<Interface>,
    answer: Value,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files() -> Vec<PathBuf> {
    let corpus = root().join("target/corpus");
    let mut folders = vec![if corpus.is_dir() { corpus } else { root().join("testdata/artifacts") }];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()) {
            let text = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if (text.ends_with(".so") || text.ends_with(".pt2"))
                && !["hostile", "negatives", "cpp_only", "standalone"].iter().any(|w| text.contains(w))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn answer(path: &Path) -> Value {
    let text = std::fs::read_to_string(format!("{}.expected.json", path.display())).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// Interprets a library when there is a processor for it.
fn interpret(region: Region<'_>) -> Option<Recovery> {
    let image = Image::open(region).ok()?;
    if image.format() != Format::Elf || image.architecture() != Architecture::X86_64 {
        return None;
    }
    Some(interpret::recover(&image, Options::default()).unwrap())
}

/// All libraries, bare and packed. A package's source is its member, a bare library's lies in `sources/`.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let group = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let answer = answer(&path);
        if name.ends_with(".so") {
            let bytes = open_file(&path).unwrap();
            let Some(recovery) = interpret(Region::whole(bytes.as_ref())) else { continue };
            let source = path.with_file_name(format!("sources/{name}.wrapper.cpp"));
            let source = std::fs::read(source).ok().and_then(|text| wrapper::read(&text, None).ok());
            let source = source.map(|read| read.to_interface("wrapper"));
            cases.push(Case { group, name, recovery, source, answer });
            continue;
        }
        let container = container::open(&path).unwrap();
        for model in container.models() {
            let Some(recovery) = container.library(model).ok().flatten().and_then(interpret) else { continue };
            let text = model.wrapper.and_then(|id| container.member(id)).and_then(|m| m.bytes(1 << 26).ok());
            let source = text.and_then(|text| wrapper::read(text, None).ok()).map(|read| read.to_interface("wrapper"));
            let group = format!("{group} packed");
            cases.push(Case { group, name: name.clone(), recovery, source, answer: answer.clone() });
        }
    }
    cases
}

/// Names symbols by first appearance, so that two interfaces can be compared.
#[derive(Default)]
struct Canonical(HashMap<String, String>);

impl Canonical {
    fn dim(&mut self, dim: Option<&Dim>) -> String {
        let Some(dim) = dim else { return "?".to_owned() };
        let expr = dim.expr();
        for symbol in expr.symbols() {
            let next = format!("${}", self.0.len());
            self.0.entry(symbol.to_owned()).or_insert(next);
        }
        expr.substitute(&|s| self.0.get(s).map(Expr::symbol)).to_string()
    }
    fn dims(&mut self, dims: Option<&Vec<Option<Dim>>>) -> String {
        match dims {
            None => "unknown".to_owned(),
            Some(dims) => format!("{:?}", dims.iter().map(|d| self.dim(d.as_ref())).collect::<Vec<_>>()),
        }
    }
}

fn bounds(input: &TensorSpec) -> String {
    let bounds: Vec<_> = input
        .shape
        .iter()
        .flatten()
        .map(|d| d.as_ref().map(|d| if d.as_static().is_some() { (None, None) } else { d.bounds() }))
        .collect();
    format!("{bounds:?}")
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

/// Count of right and of all facts, and the differences.
#[derive(Default)]
struct Score {
    right: BTreeMap<&'static str, (usize, usize)>,
    wrong: Vec<String>,
}

impl Score {
    fn fact(&mut self, what: &'static str, lines: Vec<String>, name: &str) {
        let (right, all) = self.right.entry(what).or_default();
        *all += 1;
        *right += usize::from(lines.is_empty());
        self.wrong.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
    }
}

fn differ(lines: &mut Vec<String>, what: &str, found: &str, wanted: &str) {
    if found != wanted {
        lines.push(format!("{what}: {found}, not {wanted}"));
    }
}

fn release(answer: &Value) -> u32 {
    let text = answer["torch"].as_str().unwrap_or_default();
    text.split(['.', '+']).nth(1).and_then(|n| n.parse().ok()).unwrap_or(99)
}

fn compare_inputs(case: &Case, source: &Interface, score: &mut Score) {
    let found = &case.recovery.interface;
    let (mut a, mut b) = (Canonical::default(), Canonical::default());
    for wanted in &source.inputs {
        let index = wanted.index;
        let mut lines = Vec::new();
        let Some(input) = found.inputs.get(index) else {
            score.fact("inputs", vec![format!("inputs[{index}] is missing")], &case.name);
            continue;
        };
        let at = |what: &str| format!("inputs[{index}].{what}");
        differ(&mut lines, &at("name"), &text(input.name.as_ref()), &text(wanted.name.as_ref()));
        if release(&case.answer) >= 7 {
            differ(&mut lines, &at("dtype"), &text(input.dtype.as_ref()), &text(wanted.dtype.as_ref()));
            differ(&mut lines, &at("device"), &text(input.device.as_ref()), &text(wanted.device.as_ref()));
            differ(&mut lines, &at("rank"), &text(input.rank.as_ref()), &text(wanted.rank.as_ref()));
            differ(&mut lines, &at("shape"), &a.dims(input.shape.as_ref()), &b.dims(wanted.shape.as_ref()));
            differ(&mut lines, &at("bounds"), &bounds(input), &bounds(wanted));
            differ(&mut lines, &at("stride"), &a.dims(input.stride.as_ref()), &b.dims(wanted.stride.as_ref()));
        }
        score.fact("inputs", lines, &case.name);
    }
    let subjects = |i: &Interface| i.relations.iter().map(|r| r.subject.clone()).collect::<Vec<_>>();
    let mut lines = Vec::new();
    if release(&case.answer) >= 7 {
        differ(&mut lines, "relations", &format!("{:?}", subjects(found)), &format!("{:?}", subjects(source)));
    }
    score.fact("relations", lines, &case.name);
}

fn constant(constant: &Constant, with_device: bool) -> String {
    let mut shown = constant.clone();
    (shown.file_offset, shown.storage_offset, shown.is_opaque) = (None, None, false);
    if !with_device || shown.folded == Some(true) {
        shown.device = None;
    }
    format!("{shown:?}")
}

fn compare_constants(case: &Case, source: &Interface, score: &mut Score) {
    let found = &case.recovery.interface;
    let minor = release(&case.answer);
    for wanted in &source.constants {
        let mut lines = Vec::new();
        match found.constants.get(wanted.index) {
            None => lines.push(format!("constants[{}] is missing", wanted.index)),
            Some(constant_found) => {
                let with_device = minor >= 11 && constant_found.device.is_some();
                let (mut a, mut b) = (constant_found.clone(), wanted.clone());
                if minor < 8 {
                    (a.size_bytes, b.size_bytes) = (None, None);
                }
                if minor < 6 {
                    (a.kind, b.kind) = (None, None);
                }
                if minor < 3 {
                    (a.fqn, b.fqn, a.folded, b.folded) = (None, None, None, None);
                }
                differ(&mut lines, "constant", &constant(&a, with_device), &constant(&b, with_device));
            }
        }
        score.fact("constants", lines, &case.name);
    }
}

fn example(dim: &Value) -> i64 {
    dim.as_i64().or_else(|| dim["example"].as_i64()).unwrap_or(-1)
}

fn compare_outputs(case: &Case, score: &mut Score) {
    let found = &case.recovery.interface;
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut symbols: HashMap<String, i64> = HashMap::new();
    for (input, wanted) in found.inputs.iter().zip(list(&case.answer, "inputs")) {
        for (dim, size) in input.shape.iter().flatten().zip(list(&wanted, "shape")) {
            if let Some(Dim::Symbol { symbol, .. }) = dim {
                symbols.insert(symbol.clone(), example(&size));
            }
        }
    }
    for (index, wanted) in list(&case.answer, "outputs").iter().enumerate() {
        let mut lines = Vec::new();
        let Some(output) = found.outputs.get(index) else {
            score.fact("outputs", vec![format!("outputs[{index}] is missing")], &case.name);
            continue;
        };
        let value = |s: &str| symbols.get(s).copied();
        let sizes = |dims: &Option<Vec<Option<Dim>>>| -> Vec<Option<i64>> {
            dims.iter().flatten().map(|d| d.as_ref().and_then(|d| d.expr().eval(&value))).collect()
        };
        let at = |what: &str| format!("outputs[{index}].{what}");
        let wanted_shape: Vec<_> = list(wanted, "shape").iter().map(|d| Some(example(d))).collect();
        if output.shape.is_none() {
            // C++ tensors are followed as far as that stays small
            if release(&case.answer) >= 6 {
                lines.push(at("shape is unknown"));
            }
        } else if release(&case.answer) >= 7 || sizes(&output.shape).iter().all(Option::is_some) {
            let shown = |s: &[Option<i64>]| format!("{s:?}");
            differ(&mut lines, &at("shape"), &shown(&sizes(&output.shape)), &shown(&wanted_shape));
        }
        if let Some(dtype) = &output.dtype {
            differ(&mut lines, &at("dtype"), dtype.name(), wanted["dtype"].as_str().unwrap_or_default());
        }
        score.fact("outputs", lines, &case.name);
    }
}

/// A copy in which an exported function begins with other code.
fn with_code(bytes: &[u8], export: &str, code: &[u8]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    let at = {
        let image = Image::open(Region::whole(&copy)).unwrap();
        let address = image.export(export).unwrap().address;
        usize::try_from(image.file_offset(address).unwrap()).unwrap()
    };
    copy.get_mut(at..at + code.len()).unwrap().copy_from_slice(code);
    copy
}

#[test]
fn hostile_code_ends_in_a_clear_reason() {
    const CREATE: &str = "AOTInductorModelContainerCreateWithDevice";
    let bytes = std::fs::read(root().join("testdata/artifacts/2.15.0-cpu-mlp_dynamic.so")).unwrap();
    let cases: &[(&str, &[u8], &str)] = &[
        ("a loop", &[0xeb, 0xfe], "budget"),
        ("a recursion", &[0xe8, 0xfb, 0xff, 0xff, 0xff], "nested deeper"),
        // mov eax, 0x12345678; jmp rax
        ("a wild jump", &[0xb8, 0x78, 0x56, 0x34, 0x12, 0xff, 0xe0], "where no code is"),
        // xor eax, eax; jmp rax
        ("a null call", &[0x31, 0xc0, 0xff, 0xe0], "null pointer"),
        // mov byte [rip-7], 0x90; jmp to the start
        ("code that writes itself", &[0xc6, 0x05, 0xf9, 0xff, 0xff, 0xff, 0x90, 0xeb, 0xf7], "written while it runs"),
        // mov rcx, -1; rep movsb
        ("a huge copy", &[0x48, 0xc7, 0xc1, 0xff, 0xff, 0xff, 0xff, 0xf3, 0xa4], "movsb"),
        // mov ecx, 0x3fffff; repne scasb; jmp to the start
        ("searches without end", &[0xb9, 0xff, 0xff, 0x3f, 0x00, 0xf2, 0xae, 0xeb, 0xf7], "budget"),
        // mov [rdi], al; add rdi, 0x1000; jmp to the start
        ("a page after the other", &[0x88, 0x07, 0x48, 0x81, 0xc7, 0x00, 0x10, 0x00, 0x00, 0xeb, 0xf5], "memory"),
        // push rax; jmp to the start
        ("a stack without end", &[0x50, 0xeb, 0xfd], "budget"),
        ("no instruction", &[0x06], "not modelled"),
    ];
    for (what, code, reason) in cases {
        let hostile = with_code(&bytes, CREATE, code);
        let recovery = interpret(Region::whole(&hostile)).unwrap();
        let stopped = recovery.stopped.clone().unwrap_or_default();
        assert!(stopped.contains(reason), "{what}: {stopped}");
        assert!(recovery.instructions <= recovery.budget, "{what}");
        assert!(recovery.interface.unknown.iter().any(|u| u.reason.contains(reason)), "{what}");
        assert_eq!(recovery.interface.device, None, "{what}");
    }
}

/// Changed bytes in code and tables end in facts or reasons, never in a panic.
#[test]
fn damaged_code_never_panics() {
    let bytes = std::fs::read(root().join("testdata/artifacts/2.15.0-cpu-mlp_dynamic.so")).unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    for _ in 0..150 {
        let mut copy = bytes.clone();
        for _ in 0..=next(40) {
            let at = next(copy.len());
            *copy.get_mut(at).unwrap() = u8::try_from(next(256)).unwrap();
        }
        if let Ok(image) = Image::open(Region::whole(&copy)) {
            let Ok(recovery) = interpret::recover(&image, Options::default()) else { continue };
            assert!(recovery.instructions <= recovery.budget);
        }
    }
}

/// A copy as `strip` leaves it: no section table, and so no symbols but the dynamic ones.
fn without_sections(bytes: &[u8]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    // e_shoff; e_shentsize, e_shnum and e_shstrndx
    for field in [0x28..0x30, 0x3a..0x40] {
        copy.get_mut(field).unwrap().fill(0);
    }
    copy
}

#[test]
fn stripped_libraries_say_the_same() {
    let mut count = 0;
    for path in files().into_iter().filter(|p| p.extension().is_some_and(|e| e == "so")) {
        let bytes = std::fs::read(&path).unwrap();
        let Some(whole) = interpret(Region::whole(&bytes)) else { continue };
        let stripped = without_sections(&bytes);
        let stripped = interpret(Region::whole(&stripped)).unwrap();
        count += 1;
        let facts = |r: &Recovery| {
            let i = &r.interface;
            format!(
                "{:?} {:?} {:#?} {:#?} {:#?} {:?} {:?} {:?} {:?}",
                i.device, i.input_count, i.inputs, i.outputs, i.constants, i.weights, i.in_spec, i.operators, r.stopped
            )
        };
        assert_eq!(facts(&whole), facts(&stripped), "{}", path.display());
    }
    assert!(count > 0);
}

#[test]
fn the_parser_of_device_strings_can_be_interpreted_as_well() {
    let mut count = 0;
    for path in files().into_iter().filter(|p| p.extension().is_some_and(|e| e == "so")) {
        let bytes = open_file(&path).unwrap();
        let image = Image::open(Region::whole(bytes.as_ref())).unwrap();
        let Some(hooked) = interpret(Region::whole(bytes.as_ref())) else { continue };
        let whole = interpret::recover(&image, Options { answers_device_parser: false, ..Options::default() }).unwrap();
        count += 1;
        let facts = |r: &Recovery| format!("{:?} {:#?} {:?}", r.interface.device, r.interface.inputs, r.stopped);
        assert_eq!(facts(&hooked), facts(&whole), "{}", path.display());
        assert!(whole.instructions <= whole.budget);
    }
    assert!(count > 0);
}

/// Example sizes behind the symbols of a witness.
fn examples(interface: &Interface, answer: &Value) -> HashMap<String, i64> {
    let mut symbols = HashMap::new();
    for (input, wanted) in interface.inputs.iter().zip(answer["inputs"].as_array().into_iter().flatten()) {
        for (dim, size) in input.shape.iter().flatten().zip(wanted["shape"].as_array().into_iter().flatten()) {
            if let Some(Dim::Symbol { symbol, .. }) = dim {
                symbols.insert(symbol.clone(), example(size));
            }
        }
    }
    symbols
}

fn compare_kernels(case: &Case, source: &Interface, score: &mut Score) {
    let found = &case.recovery.interface;
    if release(&case.answer) < 6 && case.recovery.stopped.is_some() {
        return; // C++ tensors are followed as far as that stays small
    }
    let (a, b) = (examples(found, &case.answer), examples(source, &case.answer));
    for wanted in source.kernels.iter().filter(|k| !k.launches.is_empty() && k.kind != KernelKind::Extern) {
        let mut lines = Vec::new();
        let at = |what: &str| format!("kernel {}.{what}", wanted.name);
        let Some(kernel) = found.kernels.iter().find(|k| k.name == wanted.name) else {
            score.fact("kernels", vec![at("is missing")], &case.name);
            continue;
        };
        if wanted.kind == KernelKind::Triton {
            differ(&mut lines, &at("file"), &text(kernel.file.as_ref()), &text(wanted.file.as_ref()));
            differ(&mut lines, &at("warps"), &text(kernel.num_warps.as_ref()), &text(wanted.num_warps.as_ref()));
            differ(&mut lines, &at("shared"), &text(kernel.shared_bytes.as_ref()), &text(wanted.shared_bytes.as_ref()));
            for (n, launch) in wanted.launches.iter().enumerate() {
                let grid = |launch: Option<&Launch>, symbols: &HashMap<String, i64>| -> Vec<Option<i64>> {
                    let value = |s: &str| symbols.get(s).copied();
                    launch.map_or(Vec::new(), |l| {
                        l.grid.iter().map(|side| side.as_ref().and_then(|e| e.eval(&value))).collect()
                    })
                };
                let (mine, theirs) = (grid(kernel.launches.get(n), &a), grid(Some(launch), &b));
                if theirs.iter().all(Option::is_some) {
                    differ(&mut lines, &at("grid"), &format!("{mine:?}"), &format!("{theirs:?}"));
                }
            }
        }
        score.fact("kernels", lines, &case.name);
    }
}

#[test]
fn code_says_what_was_compiled() {
    let mut groups: BTreeMap<String, Score> = BTreeMap::new();
    let mut most = (0, String::new());
    for case in cases() {
        let score = groups.entry(case.group.clone()).or_default();
        let found = &case.recovery.interface;
        if case.recovery.instructions > most.0 {
            most = (case.recovery.instructions, case.name.clone());
        }
        let mut lines = Vec::new();
        differ(&mut lines, "device", &text(found.device.as_ref()), case.answer["device"].as_str().unwrap_or("unknown"));
        score.fact("device", lines, &case.name);
        if release(&case.answer) >= 6 {
            let stopped: Vec<String> = case.recovery.stopped.iter().cloned().collect();
            score.fact("whole", stopped, &case.name);
        }
        if let Some(source) = &case.source {
            let mut lines = Vec::new();
            let counts = |i: &Interface| format!("{:?} {:?} {:?}", i.input_count, i.output_count, i.constant_count);
            differ(&mut lines, "counts", &counts(found), &counts(source));
            differ(&mut lines, "in_spec", &text(found.in_spec.as_ref()), &text(source.in_spec.as_ref()));
            differ(&mut lines, "out_spec", &text(found.out_spec.as_ref()), &text(source.out_spec.as_ref()));
            let names = |list: &[TensorSpec]| format!("{:?}", list.iter().map(|t| t.name.clone()).collect::<Vec<_>>());
            differ(&mut lines, "output names", &names(&found.outputs), &names(&source.outputs));
            score.fact("counts", lines, &case.name);
            compare_inputs(&case, source, score);
            compare_constants(&case, source, score);
            compare_kernels(&case, source, score);
        }
        compare_outputs(&case, score);
    }
    let mut wrong = 0;
    for (group, score) in &groups {
        println!("{group}: {:?}", score.right);
        for line in &score.wrong {
            println!("    {line}");
        }
        wrong += score.wrong.len();
    }
    println!("most instructions: {most:?}");
    assert_eq!(wrong, 0);
}
