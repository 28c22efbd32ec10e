//! Features of the source that narrow the torch release it was written by (format reference, section 10).

use super::WrapperSource;
use super::checks::GateForm;
use super::constructor::Form;
use super::literal;
use crate::model::{Dated, Evidence, Release, Witness};

/// Lowest and highest minor release of torch 2; 0 and 99 are open ends.
type Range = (u16, u16);
const OPEN: u16 = 99;

/// Forms met while reading statements (names as in `run` and `kernels`).
const FORMS: [(&str, Range); 13] = [
    ("assert_size_stride", (13, OPEN)),
    ("assert_size_stride with dtype", (14, OPEN)),
    ("assert_alignment", (15, OPEN)),
    ("division guard", (12, OPEN)),
    ("unsorted source nodes", (0, 4)),
    ("launch helper", (7, 11)),
    ("noinline launch helper", (12, OPEN)),
    ("global_scratch", (7, OPEN)),
    ("profile_scratch", (9, OPEN)),
    ("loaded_modules_", (13, OPEN)),
    ("dependent launch argument", (15, OPEN)),
    ("aligned to 16 bytes", (6, 6)),
    ("compiled as aligned", (7, OPEN)),
];

/// Texts of the generated part.
const TEXTS: [(&[u8], Range); 10] = [
    (b"throw std::runtime_error(std::move(ss).str())", (13, OPEN)),
    (b"throw std::runtime_error(ss.str())", (4, 12)),
    (b"AOTI_NOINLINE static void check_input_", (8, OPEN)),
    (b"alloc_tensors_by_stealing_from_handles(", (2, 5)),
    (b"].device_type = cached_torch_device_type_", (11, OPEN)),
    (b"].type = static_cast<int32_t>(torch::aot_inductor::ConstantType", (6, OPEN)),
    (b"].original_fqn = ", (3, OPEN)),
    (b"].dtype = cached_torch_dtype_", (11, OPEN)),
    (b"async_compile.triton('", (8, OPEN)),
    (b"\", \"triton_\", ", (2, 5)),
];

/// All features of `source` that date it; `generated` is the text behind the pasted interface.
pub fn features(source: &WrapperSource, generated: &str) -> Vec<Dated> {
    let mut found = Vec::new();
    let mut add = |feature: &str, line: Option<usize>, (min, max): Range| {
        let mut evidence = Evidence::new(Witness::Source, feature);
        evidence.line = line;
        let (min, max) = ((min > 0).then(|| Release::new(2, min)), (max < OPEN).then(|| Release::new(2, max)));
        found.push(Dated { min, max, evidence });
    };
    let constructor = &source.constructor;
    let (form, range) = match constructor.form {
        Form::NoDevice => ("constructor without a device string", (2, 2)),
        Form::WithDevice => ("constructor without include_weights", (3, 5)),
        Form::WeightsParameter => ("constructor with the parameter include_weights", (6, 7)),
        Form::WeightsLiteral => ("constructor with a literal include_weights", (8, OPEN)),
    };
    add(form, Some(constructor.line), range);
    match constructor.spec_form {
        Some(literal::Form::Escaped) => add("call spec as an escaped literal", None, (0, 7)),
        Some(literal::Form::Raw) => add("call spec as a raw literal", None, (8, OPEN)),
        Some(literal::Form::SplitRaw) => add("call spec split into raw literals", None, (9, OPEN)),
        None => {}
    }
    match source.checks.gate_form {
        Some(GateForm::Number) => add("environment test against the number 0", None, (7, 7)),
        Some(GateForm::Digit) => add("environment test against the digit 0", None, (8, OPEN)),
        None => {}
    }
    for (form, line) in source.run.forms.iter().chain(&source.kernel_forms) {
        if let Some((_, range)) = FORMS.iter().find(|(name, _)| name == form) {
            add(form, Some(*line), *range);
        }
    }
    for (text, range) in TEXTS {
        if memchr::memmem::find(generated.as_bytes(), text).is_some() {
            add(&String::from_utf8_lossy(text), None, range);
        }
    }
    if let Some(command) = source.commands.iter().find(|c| !c.is_link) {
        let line = Some(command.line);
        match command.standard.as_deref() {
            Some("c++17") => add("compiled as C++17", line, (0, 11)),
            // on Windows earlier releases ask for it too
            Some("c++20") if !command.compiler.ends_with("cl") => add("compiled as C++20", line, (12, OPEN)),
            _ => {}
        }
        if command.macros.iter().any(|m| m == "TORCH_INDUCTOR_PRECOMPILE_HEADERS") {
            add("macro TORCH_INDUCTOR_PRECOMPILE_HEADERS", line, (12, OPEN));
        }
        for flag in ["-fno-omit-frame-pointer", "-g1"].into_iter().filter(|f| command.code_flags.iter().any(|g| g == f))
        {
            add(&format!("flag {flag}"), line, (13, OPEN));
        }
    }
    if source.symbols_are_counted() {
        add("symbols numbered in sequence", None, (0, 7));
    }
    found
}
