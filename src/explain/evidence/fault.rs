//! Faults that no text explains: what the file itself shows to be wrong, what is ruled out, what cannot be
//! checked, and which switches tell more.

use super::super::case::{Case, Diagnosis};
use super::super::log::Hit;
use super::constants;
use super::inputs;
use crate::checks;
use crate::model::{DeviceKind, Evidence, Kind, Model, Release, WeightsLocation, Witness};
use crate::report::{Finding, Outcome};

/// Something that the file shows and that can crash a process without a text.
#[derive(Debug, Clone)]
pub struct Precondition {
    /// pattern id under which it is reported
    pub id: &'static str,
    /// class of failure
    pub class: &'static str,
    /// one sentence
    pub sentence: String,
    /// what shows it
    pub evidence: Vec<Evidence>,
    /// what to do
    pub fix: String,
    /// the file or the configuration proves it; others only allow it
    pub is_proved: bool,
}

/// Codes of checks whose failure crashes a process without a text, most direct first, and their class.
/// Inputs that differ come last: they need a configuration to be known at all.
const CRASHING: &[(&str, &str)] = &[
    ("artifact-damaged", "C14"),
    ("weights-offset", "C16"),
    ("weights", "C15"),
    ("device-index", "C02"),
    ("device", "C01"),
    ("constant-unaligned", "C08"),
    ("constants", "C15"),
    ("kernel-file", "C12"),
    ("kernel-path", "C12"),
    ("kernel", "C11"),
    ("gpu-memory", "C15"),
    ("gpu", "C11"),
    ("cpu", "C13"),
    ("isa", "C13"),
    ("operator", "C17"),
    ("advisory", "C19"),
    ("libtorch", "C09"),
    ("torch", "C09"),
    ("host", "C10"),
    ("input-dtype", "C06"),
    ("input-stride", "C06"),
    ("input-not-contiguous", "C06"),
    ("input-alignment", "C08"),
    ("input-device", "C03"),
    ("input-count", "C07"),
    ("input-missing", "C07"),
    ("input-dim-01", "C05"),
    ("input-dim-range", "C05"),
    ("input-dim-relation", "C05"),
    ("input", "C04"),
    ("assert-empty-range", "C18"),
    ("source-differs-from-code", "C14"),
    ("model-missing", "C14"),
    ("package", "C14"),
    ("pkg", "C14"),
];

/// Warnings that can be behind a crash without a text.
const CRASHING_WARNINGS: &[&str] = &[
    "constants-two-devices",
    "constant-unaligned",
    "input-alignment",
    "assert-empty-range",
    "device-index",
    "advisory",
];

/// The class of a finding that says that something does not hold.
pub fn class_of(code: &str) -> Option<&'static str> {
    CRASHING.iter().find(|(stem, _)| code == *stem || code.starts_with(&format!("{stem}-"))).map(|(_, class)| *class)
}

/// All preconditions that the file shows, the most telling first.
pub fn preconditions(case: &Case) -> Vec<Precondition> {
    let Some(artifact) = case.artifact else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(error) = &artifact.error {
        found.push(Precondition {
            id: "file",
            class: "C14",
            sentence: format!("The file cannot be loaded at all: {error}"),
            evidence: vec![Evidence::new(
                Witness::Archive,
                format!("{}: {} of {} bytes", artifact.path, artifact.kind.title(), artifact.size_bytes),
            )],
            fix: "Copy the file again and compare its size and checksum.".to_owned(),
            is_proved: true,
        });
    }
    for problem in artifact.problems.iter().filter(|p| !p.affects.is_empty()).take(4) {
        let place = problem.place.to_string();
        found.push(Precondition {
            id: "file",
            class: "C14",
            sentence: format!("The file is damaged: {}.", problem.message.trim_end_matches('.')),
            evidence: vec![Evidence::new(Witness::Header, format!("{place}: {}", problem.message))],
            fix: "Copy the file again and compare its size and checksum.".to_owned(),
            is_proved: true,
        });
    }
    if artifact.kind == Kind::Sources {
        found.push(Precondition {
            id: "sources",
            class: "C14",
            sentence: "The package holds sources and no library: the loader has to compile it on this host.".to_owned(),
            evidence: vec![Evidence::new(Witness::Archive, "no member is a compiled library")],
            fix: "Compile without package_cpp_only, or install a compiler on this host.".to_owned(),
            is_proved: false,
        });
    }
    if let Some((_, model)) = case.model() {
        weights(model, &mut found);
        constants_on_two_devices(model, &mut found);
    }
    from_checks(case, &mut found);
    found.sort_by_key(|p| !p.is_proved);
    found
}

fn weights(model: &Model, found: &mut Vec<Precondition>) {
    let list = &model.weights;
    let evidence = || -> Vec<Evidence> {
        constants::place(model)
            .map(|p| Evidence::new(Witness::Constants, p))
            .into_iter()
            .chain(list.evidence.iter().take(4).cloned())
            .collect()
    };
    let is_short = matches!((list.size_bytes, list.expected_bytes), (Some(there), Some(wanted)) if there < wanted);
    if list.location == Some(WeightsLocation::Absent) {
        let names: Vec<&str> = model
            .constants
            .iter()
            .flatten()
            .filter(|c| c.folded != Some(true))
            .filter_map(|c| c.fqn.as_deref())
            .take(8)
            .collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        found.push(Precondition {
            id: "weights-absent",
            class: "C15",
            sentence: "The artefact holds no weights: a run before they are loaded reads null pointers and faults.".to_owned(),
            evidence: evidence(),
            fix: format!("Load every constant{names} with `load_constants(…, check_full_update=True)` before the first run, ship the weights file with the package, or package with the weights inside."),
            is_proved: true,
        });
    } else if is_short && list.size_bytes == Some(0) {
        found.push(Precondition {
            id: "weights-missing",
            class: "C15",
            sentence: format!(
                "The weights ({} bytes) are kept apart from the library and are not in the artefact: a run before they are loaded reads null pointers and faults.",
                list.expected_bytes.unwrap_or_default()
            ),
            evidence: evidence(),
            fix: "Ship the weights file with the package (package it again and keep all members), or load every constant before the first run.".to_owned(),
            is_proved: true,
        });
    } else if is_short {
        found.push(Precondition {
            id: "weights-truncated",
            class: "C15",
            sentence: format!(
                "The weights are cut off: {} of {} bytes are in the file.",
                list.size_bytes.unwrap_or_default(),
                list.expected_bytes.unwrap_or_default()
            ),
            evidence: evidence(),
            fix: "Copy the file again and compare its size and checksum.".to_owned(),
            is_proved: true,
        });
    }
}

fn constants_on_two_devices(model: &Model, found: &mut Vec<Precondition>) {
    let Some(device) = model.device.as_ref().map(|d| &d.kind) else { return };
    let strange = model.constants.iter().flatten().find(|c| c.device.as_ref().is_some_and(|d| d.kind != *device));
    // runtimes before 2.11 copy every constant to the model's device without a word
    if let Some(constant) = strange.filter(|_| model.compiled_by.torch_max.is_some_and(|r| r < Release::new(2, 11))) {
        let name = constant.fqn.as_deref().or(constant.name.as_deref()).unwrap_or("?");
        found.push(Precondition {
            id: "constants-mixed",
            class: "C15",
            sentence: format!("The constants are on two devices (`{name}` is not on {device}), which runtimes before 2.11 do not handle."),
            evidence: super::devices::device_of(constant),
            fix: "Compile again with torch 2.11 or newer, or keep every constant on the model's device.".to_owned(),
            is_proved: false,
        });
    }
}

/// What the checks say with the configuration that the person gave.
fn from_checks(case: &Case, found: &mut Vec<Precondition>) {
    let Some(artifact) = case.artifact else { return };
    let judgement = checks::judge(artifact, case.load);
    let mut ranked: Vec<(usize, &Finding)> = judgement
        .findings
        .iter()
        .filter(|f| matches!(f.outcome, Outcome::Fail | Outcome::Warn))
        .filter_map(|f| {
            let rank =
                CRASHING.iter().position(|(stem, _)| f.code == *stem || f.code.starts_with(&format!("{stem}-")))?;
            Some((rank, f))
        })
        .collect();
    // what the checks only warn of has to be able to crash a process
    ranked.retain(|(_, f)| f.outcome == Outcome::Fail || CRASHING_WARNINGS.contains(&f.code));
    ranked.sort_by_key(|(rank, _)| *rank);
    for (_, finding) in ranked.into_iter().take(12) {
        let class = class_of(finding.code).unwrap_or("C23");
        let known = found.iter().any(|p| {
            p.class == class
                && (p.id == finding.code
                    || (class == "C15" && p.id.starts_with("weights"))
                    || (class == "C14" && p.id == "file"))
        });
        if known {
            continue;
        }
        found.push(Precondition {
            id: finding.code,
            class,
            sentence: sentence(&finding.message),
            evidence: finding.evidence.iter().take(4).cloned().collect(),
            fix: finding.fix.clone().unwrap_or_default(),
            is_proved: finding.outcome == Outcome::Fail,
        });
    }
}

fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let text = format!("{first}{}", chars.as_str());
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// What the file lets rule out, and what it cannot tell.
pub fn ruled_out(case: &Case) -> Vec<Evidence> {
    let mut lines = Vec::new();
    let mut out = |text: String| lines.push(Evidence::new(Witness::Inferred, text));
    let Some((_, model)) = case.model() else { return lines };
    match model.weights.location {
        Some(WeightsLocation::None) => out("ruled out: missing weights (the model has none)".to_owned()),
        Some(WeightsLocation::Absent) | None => {}
        Some(_) => {
            if let (Some(there), Some(wanted)) = (model.weights.size_bytes, model.weights.expected_bytes)
                && there >= wanted
            {
                out(format!("ruled out: missing or cut weights ({there} bytes are there, {wanted} are needed)"));
            }
        }
    }
    if !model.kernels.is_empty()
        && model.kernels.iter().filter(|k| k.file.is_some()).all(|k| k.present == Some(true))
        && model.kernels.iter().any(|k| k.file.is_some())
    {
        out("ruled out: missing kernel files (all are there)".to_owned());
    }
    if model.requires.custom_ops.is_empty() && !model.requires.shims.is_empty() {
        out("ruled out: custom operators (the model calls none through the proxy executor)".to_owned());
    }
    if let (Some(device), Some(constants)) = (&model.device, &model.constants)
        && !constants.is_empty()
        && constants.iter().all(|c| c.device.as_ref().is_some_and(|d| d.kind == device.kind))
    {
        out(format!("ruled out: constants on another device (all {} are on {device})", constants.len()));
    }
    if case.load.cpu.is_none() && model.requires.cpu_isa.used.as_ref().is_some_and(Vec::is_empty) {
        out("ruled out: CPU instruction sets (the code needs none beyond the base)".to_owned());
    }
    out("cannot be checked from here: dtype, shape, strides, device and storage offset of the tensors that were given (state them with --input to have them compared), values of indices, threads that share a runner, the host's memory".to_owned());
    lines
}

/// Switches that tell more, for this artefact.
pub fn switches(case: &Case) -> String {
    let model = case.model().map(|(_, m)| m);
    let mut advice = match model {
        Some(model) => inputs::check_switch(model),
        None => "Run once with AOTI_RUNTIME_CHECK_INPUTS=1 (artefacts of torch 2.7 or newer).".to_owned(),
    };
    let is_cuda = match model.and_then(|m| m.device.as_ref()) {
        Some(device) => device.kind == DeviceKind::Cuda,
        None => case.reading.hits.iter().any(|h| h.shown.contains("CUDA") || h.shown.contains("cuda")),
    };
    if is_cuda {
        advice.push_str(" With CUDA_LAUNCH_BLOCKING=1 the failing call is the one that is named, with PYTORCH_NO_CUDA_MEMORY_CACHING=1 reads beyond a tensor fault at once, and compute-sanitizer names the kernel.");
    }
    advice
}

/// A text that says only that memory was wrong.
pub fn fault(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis { is_open: true, ..Diagnosis::default() };
    kernel_in_frames(case, &mut said);
    located(case, &mut said);
    said.evidence.extend(ruled_out(case));
    inputs::all_inputs(case, &mut said);
    said.fix = Some(switches(case));
    said
}

/// Frames and crash addresses alone.
pub fn where_it_stood(case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    kernel_in_frames(case, &mut said);
    located(case, &mut said);
    said
}

/// Compilers split functions: `k.cold`, `k._omp_fn.0`, `k.omp_outlined`, `k.constprop.0` are parts of `k`.
fn is_part_of(function: &str, kernel: &str) -> bool {
    function.strip_prefix(kernel).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Frames of the artefact: which kernels the process was in, else the innermost entry.
pub fn kernel_in_frames(case: &Case, said: &mut Diagnosis) {
    let kernels = case.model().map(|(_, m)| m.kernels.as_slice()).unwrap_or_default();
    let mut seen: Vec<&str> = Vec::new();
    let mut innermost = None;
    for frame in case.reading.frames.iter().filter(|f| f.is_in_artifact()) {
        let Some(function) = &frame.function else { continue };
        let name = function.split('(').next().unwrap_or(function);
        let line = usize::try_from(frame.line).unwrap_or(usize::MAX);
        let kernel = kernels.iter().find(|k| is_part_of(name, &k.name));
        if kernel.is_none() && !name.starts_with("cpp_fused_") {
            innermost.get_or_insert((name, line));
            continue;
        }
        if seen.contains(&name) || seen.len() >= 4 {
            continue;
        }
        seen.push(name);
        let ops = kernel.map(|k| k.source_ops.join(", ")).filter(|o| !o.is_empty());
        let ops = ops.map(|o| format!(", made from {o}")).unwrap_or_default();
        said.evidence
            .push(Evidence::new(Witness::Log, format!("the process was in the kernel {name}{ops}")).at_line(line));
    }
    if let Some((name, line)) = innermost.filter(|_| seen.is_empty()) {
        said.evidence.push(Evidence::new(Witness::Log, format!("the process was in {name}")).at_line(line));
    }
}

/// Every crash address that was followed into the artefact.
pub fn located(case: &Case, said: &mut Diagnosis) {
    for place in case.places.iter().take(8) {
        let line = usize::try_from(place.line).unwrap_or(usize::MAX);
        let at = match (&place.function, &place.nearest_export, place.bounds) {
            (Some(function), ..) => function.clone(),
            (None, Some((export, distance)), Some((start, end))) => {
                format!("a function without a name ({start:#x} to {end:#x}; {distance:#x} behind the export {export})")
            }
            (None, Some((export, distance)), None) => format!("code {distance:#x} behind the export {export}"),
            (None, None, Some((start, end))) => format!("a function without a name ({start:#x} to {end:#x})"),
            (None, None, None) => "code without a name".to_owned(),
        };
        let name = place.function.as_deref().map(|f| f.split('(').next().unwrap_or(f));
        let kernel =
            case.model().and_then(|(_, m)| m.kernels.iter().find(|k| name.is_some_and(|n| is_part_of(n, &k.name))));
        let ops = kernel.map(|k| k.source_ops.join(", ")).filter(|o| !o.is_empty());
        let ops = ops.map(|o| format!(", a kernel made from {o}")).unwrap_or_default();
        let shim =
            place.nearest_shim.as_ref().map(|s| format!("; the last shim called before it is {s}")).unwrap_or_default();
        said.evidence.push(
            Evidence::new(Witness::Code, format!("{:#x} is in {at}{ops}{shim}", place.address))
                .in_member(place.member.clone())
                .at_line(line),
        );
    }
}

/// The instruction that the processor did not have: sentence and remedy.
pub fn illegal_instruction(case: &Case, said: &mut Diagnosis) -> Option<(String, String)> {
    let place = case.places.iter().find(|p| p.event.as_deref() == Some("trap invalid opcode"))?;
    let instruction = place.instruction.as_ref()?;
    let at = place.function.clone().unwrap_or_else(|| format!("{:#x} of {}", place.address, place.member));
    said.evidence.push(
        Evidence::new(
            Witness::Code,
            format!(
                "at {:#x}: {} ({})",
                place.address,
                instruction.mnemonic.as_deref().unwrap_or("no valid instruction"),
                instruction.bytes
            ),
        )
        .in_member(place.member.clone()),
    );
    let Some(mnemonic) = &instruction.mnemonic else {
        return Some((
            format!(
                "The bytes at the address in {at} are no instruction: the file was changed, or is not the one that ran."
            ),
            "Compare the file with the one on the machine that crashed.".to_owned(),
        ));
    };
    if mnemonic == "ud2" {
        return Some((
            format!(
                "{at} ran into `ud2`, which compilers put where code must not come: no CPU feature is missing, the code itself gave up."
            ),
            "Give the whole log; a noexcept function that throws, or a broken build, ends there.".to_owned(),
        ));
    }
    let features = instruction.features.join(", ");
    Some((
        format!("The instruction `{mnemonic}` in {at} needs the CPU feature {features}, which this processor does not have (or the system does not enable)."),
        "Compile on a host like the target, or for a lower instruction set (ATEN_CPU_CAPABILITY=avx2, `-march` of the target); `aoti-inspect verify MODEL --cpu NAME` tells beforehand.".to_owned(),
    ))
}
