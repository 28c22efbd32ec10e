//! The trace of a model against the generated source that it was compiled from, and against numbers worked out by hand
//! from that source.
//!
//! Reads `testdata/artifacts`, and `target/corpus` where it has been unpacked.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use aoti_inspect::Settings;
use aoti_inspect::container;
use aoti_inspect::image::Image;
use aoti_inspect::metadata::expression::parse_expression;
use aoti_inspect::model::{Argument, Artifact, Dim, Model, Step, SymbolSize, Trace};
use aoti_inspect::source::Region;
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
            format!(
                "{name}<[{}] [{}] {}>({})",
                numbers(&grid[..]),
                numbers(&block[..]),
                number(shared_bytes),
                arguments(list)
            )
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
            // the source beside this one is of the static model
            } else if text.ends_with("mlp_dynamic-aarch64.so") {
                continue;
            } else if (text.ends_with(".pt2") || text.ends_with(".so"))
                && !["hostile", "negatives", "/2.2.2-", "/2.3.1-", "/2.4.1-", "/2.5.1-"]
                    .iter()
                    .any(|w| text.contains(w))
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

fn sizes(list: &[(&str, i64)]) -> Vec<SymbolSize> {
    list.iter().map(|(symbol, size)| SymbolSize { symbol: (*symbol).to_owned(), size: *size }).collect()
}

/// Peak of buffers, and with constants, as they are printed.
fn peak(trace: &Trace) -> (String, String) {
    let peak = trace.peak_bytes.as_ref().unwrap();
    (peak.buffers.as_ref().unwrap().to_string(), peak.total.as_ref().unwrap().to_string())
}

/// `linear(10, 16)`, relu, `linear(16, 1)` without its bias, sigmoid; constants of 640, 64 and 64 bytes. The source makes
/// buf0 of `{s77, 16}`, buf2 of `{1}`, buf4 of `{s77, 1}`, all float32, and gives the first two back before the end.
#[test]
fn one_dynamic_dim() {
    let mut model = model("2.15.0-cpu-mlp_dynamic.pt2");
    let trace = model.trace().unwrap();
    assert_eq!(
        lines(trace),
        [
            "buf0 = float32[s77, 16] 64*s77 cpu",
            "aoti_torch_cpu_addmm_out(buf0, constants[1], inputs[0], constants[0])",
            "buf1 = float32[1] 4 cpu",
            "cpp_fused_relu_0(buf0, buf1, s77)",
            "buf2 = float32[s77, 1] 4*s77 cpu",
            "aoti_torch_cpu_addmm_out(buf2, buf1, buf0, constants[2])",
            "free buf0",
            "free buf1",
            "cpp_fused_sigmoid_1(buf2, s77)",
        ]
    );
    assert_eq!(trace.constant_bytes, Some(768));
    assert_eq!(peak(trace), ("68*s77 + 4".to_owned(), "68*s77 + 772".to_owned()));
    let largest = trace.peak_bytes.as_ref().unwrap().largest.clone().unwrap();
    assert_eq!((largest.sizes, largest.buffers, largest.total), (sizes(&[("s77", 1024)]), 69_636, Some(70_404)));
    assert_eq!((largest.step, largest.live), (4, ["buf0", "buf1", "buf2"].map(str::to_owned).to_vec()));
    assert_eq!(trace.input_bytes.as_ref().unwrap().to_string(), "40*s77");
    assert!(trace.instructions > 1_000 && trace.instructions < trace.budget);
    assert_eq!(model.set_trace_sizes(&sizes(&[("s77", 2)])), None);
    let trace = model.trace().unwrap();
    assert_eq!(peak(trace), ("140".to_owned(), "908".to_owned()));
    assert_eq!(lines(trace).first().unwrap(), "buf0 = float32[2, 16] 128 cpu");
    assert_eq!(trace.input_bytes, Some(Dim::fixed(80)));
}

/// A bare library has no names of symbols, and says the rest alike.
#[test]
fn a_bare_library_has_its_own_names() {
    let bare = model("2.15.0-cpu-mlp_dynamic.so");
    let packed = model("2.15.0-cpu-mlp_dynamic.pt2");
    let renamed: Vec<String> = lines(bare.trace().unwrap()).iter().map(|line| line.replace("d0", "s77")).collect();
    assert_eq!(renamed, lines(packed.trace().unwrap()));
    assert!(bare.symbols.iter().any(|range| range.symbol == "d0"));
}

/// The source makes three outputs of `{s23, s27, 8}` float32, `{s23, 8}` float32 and `{s23, s27}` int64 that stay. The
/// 7th and further arguments of the kernel are on the stack.
#[test]
fn outputs_stay_live() {
    let mut model = model("2.15.0-cpu-multi_io.pt2");
    let trace = model.trace().unwrap();
    assert_eq!(
        lines(trace),
        [
            "buf0 = float32[s23, s27, 8] 32*s23*s27 cpu",
            "buf1 = float32[s23, 8] 32*s23 cpu",
            "buf2 = int64[s23, s27] 8*s23*s27 cpu",
            "cpp_fused_add_embedding_mul_sum_unsqueeze_where_0(inputs[2], inputs[0], constants[0], inputs[1], inputs[3], buf0, …)",
        ]
    );
    // i64[s23, s27] + f32[s23, s27, 8] + bool[s23, s27] + f32[8]
    assert_eq!(trace.input_bytes.as_ref().unwrap().to_string(), "41*s23*s27 + 32");
    assert_eq!(peak(trace).0, "32*s23 + 40*s23*s27");
    model.set_trace_sizes(&sizes(&[("s23", 2), ("s27", 6)]));
    assert_eq!(peak(model.trace().unwrap()), ("544".to_owned(), "1568".to_owned()));
}

/// Launches with grids; what is live at once is 192 + 768 + 256 bytes (source: `{4, 12}`, `{12, 16}`, `{4, 16}`).
#[test]
fn launches_of_gpu_kernels() {
    for name in ["2.11.0-cuda-multi_arch.pt2", "2.11.0-cuda-embed_cubin.so"] {
        let model = model(name);
        let trace = model.trace().unwrap();
        assert_eq!(
            lines(trace),
            [
                "buf0 = float32[4, 12] 192 cuda",
                "triton_poi_fused_addmm_0<[1, 1, 1] [32, 1, 1] 0>(inputs[0], buf0, 48, 0, 0)",
                "buf1 = float32[12, 16] 768 cuda",
                "triton_poi_fused_addmm_t_1<[2, 1, 1] [128, 1, 1] 0>(constants[0], buf1, 192, 0, 0)",
                "buf2 = float32[4, 16] 256 cuda",
                "aoti_torch_cuda_mm_out(buf2, buf0, buf1)",
                "free buf0",
                "free buf1",
                "buf3 = float32[2, 16] 128 cuda",
                "triton_poi_fused_addmm_relu_2<[1, 1, 1] [32, 1, 1] 0>(constants[1], buf2, buf3, 32, 0, 0)",
                "free buf2",
                "buf4 = float32[2, 1] 8 cuda",
                "aoti_torch_cuda_mm_out(buf4, buf3, constants[2])",
                "free buf3",
                "triton_poi_fused_addmm_sigmoid_3<[1, 1, 1] [32, 1, 1] 0>(buf4, 2, 0, 0)",
            ],
            "{name}"
        );
        assert_eq!(peak(trace), ("1216".to_owned(), "1984".to_owned()), "{name}");
        assert_eq!(trace.peak_bytes.as_ref().unwrap().largest.as_ref().unwrap().step, 4, "{name}");
    }
}

#[test]
fn a_dynamic_launch() {
    let model = model("2.11.0-cuda-assert_idx.pt2");
    assert_eq!(
        lines(model.trace().unwrap()),
        [
            "buf0 = float32[s2] 4*s2 cuda",
            "triton_red_fused_cumsum_index_mul_sub_0<[1, 1, 1] [64, 1, 1] 0>(inputs[0], inputs[1], buf0, s59, s2, 0, 0)",
        ]
    );
}

/// What a custom operator returns comes into being with its call.
#[test]
fn custom_operators() {
    let model = model("2.15.0-cpu-custom_op.so");
    let lines = lines(model.trace().unwrap());
    let at = lines.iter().position(|line| line == "0 xplat::split2(buf1, buf2, buf3; )").unwrap();
    assert_eq!(lines.get(at + 1).unwrap(), "buf2 = float32[d0, 4] 16*d0 ?");
    assert_eq!(lines.get(at + 3).unwrap(), "free buf1");
    assert!(lines.contains(&"1 xplat::sine_scale(buf2, buf3, buf4; 0, 1)".to_owned()), "{lines:#?}");
    assert_eq!(peak(model.trace().unwrap()).0, "48*d0");
}

/// Sizes that no source and no check states are open, and counted as such.
#[test]
fn what_operators_return_is_not_made_up() {
    let path = root().join("target/corpus");
    if !path.is_dir() {
        return;
    }
    let mut seen = 0;
    for path in files().into_iter().filter(|p| p.to_string_lossy().contains("2.11.0-cpu-conv.")) {
        let artifact = inspect(&path);
        let trace = artifact.models.first().unwrap().trace().unwrap();
        let peak = trace.peak_bytes.as_ref().unwrap();
        assert!(!peak.not_counted.is_empty(), "{}", path.display());
        assert!(artifact.unknown_reason("models[0].trace.steps").is_some());
        seen += 1;
    }
    assert!(seen > 0);
}

/// A copy of the plain library in which an exported function begins with other code.
fn with_code(export: &str, code: &[u8]) -> Artifact {
    let mut copy = std::fs::read(root().join("testdata/artifacts/2.15.0-cpu-mlp_dynamic.so")).unwrap();
    let at = {
        let image = Image::open(Region::whole(&copy)).unwrap();
        let address = image.export(export).unwrap().address;
        usize::try_from(image.file_offset(address).unwrap()).unwrap()
    };
    copy.get_mut(at..at + code.len()).unwrap().copy_from_slice(code);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.so");
    std::fs::write(&path, copy).unwrap();
    inspect(&path)
}

#[test]
fn a_hostile_library_ends_within_its_budget_and_says_so() {
    // jmp to itself
    let endless: &[u8] = &[0xeb, 0xfe];
    for export in ["AOTInductorModelContainerCreateWithDevice", "AOTInductorModelContainerRun"] {
        let artifact = with_code(export, endless);
        let trace = artifact.models.first().unwrap().trace().unwrap();
        assert!(trace.stopped.as_ref().unwrap().contains("budget"), "{export}: {:?}", trace.stopped);
        assert!(trace.instructions <= trace.budget, "{export}");
        assert!(trace.instructions > trace.budget / 2, "{export}: {}", trace.instructions);
        assert_eq!((trace.steps.len(), &trace.peak_bytes), (0, &None), "{export}");
        let reason = artifact.unknown_reason("models[0].trace.peak_bytes").unwrap();
        assert!(reason.contains("budget"), "{export}: {reason}");
    }
}

#[test]
fn without_code_there_is_a_reason() {
    for (name, part) in [
        ("2.15.0-cpu-cpp_only.pt2", "no library"),
        ("2.15.0-cpu-standalone.pt2", "no library"),
        ("2.2.2-cpu-mlp_dynamic.so", "torch 2.3 and older"),
    ] {
        let artifact = inspect(&root().join("testdata/artifacts").join(name));
        assert_eq!(artifact.models.first().unwrap().trace, Some(None), "{name}");
        let reason = artifact.unknown_reason("models[0].trace").unwrap();
        assert!(reason.contains(part), "{name}: {reason}");
        let not_asked = aoti_inspect::inspect(Path::new(&artifact.path), &Settings::default()).unwrap();
        assert_eq!(not_asked.models.first().unwrap().trace, None, "{name}");
        assert_eq!(not_asked.unknown.iter().find(|u| u.fact.ends_with("trace")), None, "{name}");
    }
}
