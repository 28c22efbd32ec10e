//! One model: its witnesses asked, weighed and put together.

use super::device::{self, Statement};
use super::library::{self, Library};
use super::witnesses::{self, Source};
use super::{CodeReading, Settings, call, claims, constants, kernels, symbols, trace, weigh};
use crate::container::{self, Container, ModelFolder};
use crate::error::{Error, Result};
use crate::image::{Image, dating, isa};
use crate::model::{
    Checks, Conflict, Constant, Device, Evidence, Interface, Kind, Model, Problem, Release, TensorSpec, Unknown,
    Witness,
};

use std::collections::HashMap;

/// A model, and what could not be read of it. Facts are paths below the model.
#[derive(Debug)]
pub struct Drawn {
    /// the model
    pub model: Model,
    /// unknown facts
    pub unknown: Vec<Unknown>,
    /// damage
    pub problems: Vec<Problem>,
    /// there is a library, and it cannot be read: why
    pub broken_library: Option<String>,
}

/// Puts one model folder together. Interpreting its code takes from `instructions`.
pub fn draw(container: &Container, folder: &ModelFolder, settings: &Settings, instructions: &mut u64) -> Drawn {
    let mut problems = Vec::new();
    let mut broken_library = None;
    let image = open(container, folder).unwrap_or_else(|error| {
        problems.push(damaged(&error));
        broken_library = Some(error.to_string());
        None
    });
    let member = folder.library.and_then(|id| container.member(id)).map(|m| m.name().to_owned());
    let name = member.as_deref().unwrap_or_default();
    let mut library = image.as_ref().map(|image| library::read(image, name)).unwrap_or_default();
    let source = witnesses::source(container, folder, &mut problems);
    let (mut interface, mut conflicts, missing) =
        testimony(container, image.as_ref(), settings, source.as_ref(), instructions);
    forget_tensors_of_cxx(&mut interface, &library, settings.traces);

    let claims = claims::metadata(container, folder, &mut problems);
    conflicts.extend(claims.conflicts);
    let statements = device_statements(&interface, &library, claims.device);
    let (device, mut device_evidence, device_conflicts) = device::settle(&statements);
    device_evidence.append(&mut library.device_evidence);
    conflicts.extend(device_conflicts);
    let device = device.map(|device| Device::new(device.kind));

    constants::place_on_device(&mut interface.constants, device.as_ref());
    let weights = constants::weights(container, folder, image.as_ref(), &mut interface, &mut problems);
    for input in &mut interface.inputs {
        expect_device(input, device.as_ref());
    }
    let symbols = symbols::settle(&mut interface);
    scan_instructions(image.as_ref(), settings, &mut library);
    let baked_in = call::paths(&mut interface);
    call::labels_of_user(&mut interface.inputs, &claims.entries);
    library.requires.custom_ops = claims::custom_ops(container, folder, &interface.operators, &mut problems);
    if settings.code == CodeReading::Always {
        claims::find_registered(container, &mut library.requires.custom_ops, &mut problems);
    }
    library.requires.cpu_isa.declared = claims.cpu_isa;

    let mut unknown = std::mem::take(&mut interface.unknown);
    unknown.append(&mut library.unknown);
    unknown.extend(claims.unknown);
    let mut found_kernels = std::mem::take(&mut interface.kernels);
    let unused = kernels::find_files(container, folder, &mut found_kernels, &mut problems, &mut unknown);
    if let Some(image) = &image {
        kernels::find_embedded(image, &mut found_kernels, &mut problems);
        kernels::find_assertions(image, &mut found_kernels, &mut problems);
        kernels::find_host_fatbins(image, &mut found_kernels, &mut problems);
    }
    let layout = container::dating::date(container, folder);
    layout.into_iter().chain(claims.dating).for_each(|d| library.dating.narrow_by(d));
    for mut dated in source.iter().flat_map(|s| s.read.dating.iter().cloned()) {
        dated.evidence.member = source.as_ref().map(|s| s.member.clone());
        library.dating.narrow_by(dated);
    }

    let mut model = Model {
        name: folder.name.clone(),
        device,
        device_evidence,
        platform: library.platform,
        compiled_by: library.dating.finish(),
        inputs: listed(std::mem::take(&mut interface.inputs), interface.input_count),
        baked_in,
        outputs: listed(std::mem::take(&mut interface.outputs), interface.output_count),
        symbols,
        relations: std::mem::take(&mut interface.relations),
        constants: known_constants(&interface),
        weights,
        kernels: found_kernels,
        unused_kernel_files: unused,
        operators: std::mem::take(&mut interface.operators),
        trace: settings.traces.then_some(None),
        requires: library.requires,
        capabilities: library.capabilities,
        checks: interface.checks.clone(),
        metadata: claims.entries,
        library: member,
        conflicts,
    };
    // tables are read when they are asked for: what is odd about them is known now
    problems.extend(image.iter().flat_map(Image::problems).map(|mut problem| {
        problem.place.member = problem.place.member.or_else(|| model.library.clone());
        problem
    }));
    if let Some(found) = interface.trace.take().filter(|_| settings.traces) {
        let (found, gaps) = trace::complete(found, &model);
        unknown.extend(gaps);
        model.trace = Some(Some(found));
    }
    explain_gaps(&mut model, missing.as_deref(), &mut unknown);
    Drawn { model, unknown, problems, broken_library }
}

fn open<'a>(container: &'a Container, folder: &ModelFolder) -> Result<Option<Image<'a>>> {
    let Some(region) = container.library(folder)? else { return Ok(None) };
    let name = folder.library.and_then(|id| container.member(id)).map_or("", |m| m.name());
    let image = Image::open(region).map_err(|error| error.in_member(name))?;
    if image.export("AOTInductorModelContainerRun").is_none() {
        image.exports().map_err(|error| error.in_member(name))?;
        let error = Error::damaged("does not export AOTInductorModelContainerRun: it is no library of a model");
        return Err(error.in_member(name).help("pack the model again"));
    }
    Ok(Some(image))
}

/// A library that cannot be read spoils every fact of its model.
fn damaged(error: &Error) -> Problem {
    Problem { place: error.place().clone(), message: error.message().to_owned(), affects: vec![String::new()] }
}

/// Source and code against each other. The last part says why facts may be missing.
fn testimony(
    container: &Container,
    image: Option<&Image<'_>>,
    settings: &Settings,
    source: Option<&Source>,
    instructions: &mut u64,
) -> (Interface, Vec<Conflict>, Option<String>) {
    let mut claim = source.map(|source| source.interface.clone());
    let is_beside = container.kind() == Kind::Library;
    let code = witnesses::code(image, settings, claim.as_ref().filter(|_| !is_beside), instructions);
    // both fill in what rules give, so that like is compared with like
    claim.as_mut().map(symbols::settle);
    let code = code.map(|mut code| {
        symbols::settle(&mut code);
        code
    });
    let stopped: Vec<Unknown> =
        code.iter().flat_map(|code| &code.unknown).filter(|u| u.fact.is_empty()).cloned().collect();
    let (mut interface, mut conflicts, missing) = match (claim, code) {
        (Some(claim), Ok(code)) => {
            let name = if is_beside { "source-stale" } else { "source-differs-from-code" };
            let (merged, conflicts) = weigh::weigh(claim, &code, name);
            match conflicts.first() {
                // one contradiction shows that it belongs to another build: nothing of it is believed
                Some(first) if is_beside => (code, vec![first.clone()], None),
                _ => (merged, conflicts, None),
            }
        }
        (None, Ok(code)) => (code, Vec::new(), None),
        (Some(claim), Err(why)) if is_beside => match image.map(|image| stale(image, &claim)) {
            Some(None) => (claim, Vec::new(), Some(why)),
            Some(Some(conflict)) => (Interface::default(), vec![conflict], Some(why)),
            None => (Interface::default(), Vec::new(), Some(why)),
        },
        (Some(claim), Err(why)) => (claim, Vec::new(), Some(why)),
        (None, Err(why)) => (Interface::default(), Vec::new(), Some(why)),
    };
    // what a claim says stands unconfirmed where the code could not be followed
    interface.unknown.extend(stopped.into_iter().filter(|u| u.stopped_in.is_some()));
    interface.unknown.dedup();
    if settings.code == CodeReading::Always
        && let Some(image) = image
        && let Some(second) = witnesses::cross_references(image)
    {
        conflicts.extend(weigh::cross_check(&interface, &second));
    }
    (interface, conflicts, missing)
}

/// Why a source beside a library does not belong to it, as far as that shows without interpreting code: a name that is not
/// among the library's texts, or a check with another number.
fn stale(image: &Image<'_>, claim: &Interface) -> Option<Conflict> {
    /// A handful of names tells builds apart.
    const NAMES: usize = 64;
    let tensors = claim.inputs.iter().chain(&claim.outputs).filter_map(|t| t.name.as_deref());
    let constants = claim.constants.iter().filter_map(|c| c.fqn.as_deref().or(c.name.as_deref()));
    // the longest names are the most telling, and short ones may be immediates in the code
    let mut names: Vec<&str> = tensors.chain(constants).filter(|name| name.len() >= 8).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let missing = names.into_iter().take(NAMES).find(|name| !dating::has_text(image, name.as_bytes()));
    if let Some(name) = missing {
        let header = Evidence::new(Witness::Strings, format!("the library has no text {name}"));
        let mut source = Evidence::new(Witness::Source, format!("names {name}"));
        source.member.clone_from(&claim.member);
        let sides = vec![header, source];
        return Some(Conflict { code: "source-stale".into(), subject: "inputs".into(), sides });
    }
    let second = witnesses::cross_references(image)?;
    let conflict = weigh::cross_check(claim, &second).into_iter().next()?;
    let sides = conflict.sides.into_iter().rev().collect();
    Some(Conflict { code: "source-stale".into(), sides, ..conflict })
}

/// The first releases pass C++ tensors about, whose fields the interpreter only partly models, and never check inputs: what it
/// makes of their sizes is no fact.
fn forget_tensors_of_cxx(interface: &mut Interface, library: &Library, asks_trace: bool) {
    const FIRST_WITH_CHECKS: Release = Release::new(2, 4);
    let is_older = library.dating.clone().finish().torch_max.is_some_and(|max| max < FIRST_WITH_CHECKS);
    if is_older {
        // `show` without --trace has no use for the reason
        if asks_trace {
            let reason = "libraries of torch 2.3 and older work on C++ tensors, whose calls are only partly read";
            interface.unknown.push(Unknown::new("trace", reason));
        }
        interface.trace = None;
    }
    if interface.witness != Some(Witness::Code) || !is_older {
        return;
    }
    let reason = "libraries of torch 2.3 and older work on C++ tensors and contain no input checks";
    for (list, tensors) in [("inputs", &mut interface.inputs), ("outputs", &mut interface.outputs)] {
        for tensor in tensors {
            let (index, name) = (tensor.index, tensor.name.take());
            *tensor = TensorSpec { index, name, ..TensorSpec::default() };
            for fact in ["dtype", "shape"] {
                interface.unknown.push(Unknown::new(format!("{list}[{index}].{fact}"), reason));
            }
        }
    }
    interface.relations.clear();
    interface.checks = Some(Checks { compiled_in: false, enabled_by: None, disabled_by: None });
}

/// In order of trust: imports, what code or source say, metadata.
fn device_statements(interface: &Interface, library: &Library, metadata: Vec<Statement>) -> Vec<Statement> {
    let mut statements: Vec<Statement> = library.device.iter().cloned().collect();
    if let Some(device) = &interface.device {
        let is_proof = matches!(interface.witness, Some(Witness::Code));
        let mut lines = interface.device_evidence.iter().cloned();
        let first = lines.next().unwrap_or_else(|| {
            let mut evidence = Evidence::new(interface.witness.unwrap_or(Witness::Inferred), device.to_string());
            evidence.member.clone_from(&interface.member);
            evidence
        });
        statements.push(Statement { device: device.clone(), evidence: first, is_proof });
    }
    statements.extend(metadata);
    statements
}

/// Instruction sets that the code uses, when asked for: the scan costs more than all else.
fn scan_instructions(image: Option<&Image<'_>>, settings: &Settings, library: &mut Library) {
    let fact = "requires.cpu_isa.used";
    let reason = match image {
        Some(image) if settings.scans_instructions => match isa::scan(image) {
            Ok(found) => {
                library.requires.cpu_isa = found;
                return;
            }
            Err(error) => error.message().to_owned(),
        },
        Some(_) => "the code was not decoded; `verify --cpu` does it".to_owned(),
        None => "there is no library whose code could be decoded".to_owned(),
    };
    library.unknown.push(Unknown::new(fact, reason));
}

/// An input without a device check is expected where the model runs (design: "Inference").
fn expect_device(input: &mut TensorSpec, device: Option<&Device>) {
    if input.device.is_none()
        && let Some(device) = device
    {
        input.device = Some(device.clone());
        input.inferred.push("device".to_owned());
        input.evidence.push(Evidence::new(Witness::Inferred, format!("device {device}: not checked, the model's own")));
    }
}

fn listed(tensors: Vec<TensorSpec>, count: Option<usize>) -> Option<Vec<TensorSpec>> {
    match count {
        Some(count) if tensors.len() == count => Some(tensors),
        Some(count) => Some((0..count).map(|index| TensorSpec { index, ..TensorSpec::default() }).collect()),
        None => None,
    }
}

fn known_constants(interface: &Interface) -> Option<Vec<Constant>> {
    (interface.constant_count == Some(interface.constants.len())).then(|| interface.constants.clone())
}

/// Every `None` gets a reason.
fn explain_gaps(model: &mut Model, missing: Option<&str>, unknown: &mut Vec<Unknown>) {
    // what stopped a reader is the reason for all that it did not reach
    let stopped = unknown.iter().find(|u| u.fact.is_empty()).map(|u| u.reason.clone());
    let reason = missing.map(str::to_owned).or(stopped).unwrap_or_else(|| "no witness states it".to_owned());
    let mut gaps: Vec<String> = Vec::new();
    let mut gap = |is_missing: bool, fact: String| {
        if is_missing {
            gaps.push(fact);
        }
    };
    gap(model.device.is_none(), "device".into());
    gap(model.platform.is_none() && model.library.is_some(), "platform".into());
    gap(model.constants.is_none(), "constants".into());
    gap(model.checks.is_none(), "checks".into());
    gap(model.weights.location.is_none(), "weights.location".into());
    gap(model.trace == Some(None), "trace".into());
    for (list, tensors) in [("inputs", &model.inputs), ("outputs", &model.outputs)] {
        let Some(tensors) = tensors else {
            gap(true, list.into());
            continue;
        };
        for tensor in tensors {
            let at = |fact: &str| format!("{list}[{}].{fact}", tensor.index);
            gap(tensor.dtype.is_none(), at("dtype"));
            gap(tensor.rank.is_none(), at("rank"));
            gap(tensor.path.is_none(), at("path"));
            gap(tensor.device.is_none(), at("device"));
            for (fact, dims) in [("shape", &tensor.shape), ("stride", &tensor.stride)] {
                match dims {
                    None => gap(true, at(fact)),
                    Some(dims) => {
                        dims.iter().enumerate().for_each(|(i, d)| gap(d.is_none(), at(&format!("{fact}[{i}]"))))
                    }
                }
            }
        }
    }
    for (index, constant) in model.constants.iter().flatten().enumerate() {
        gap(constant.dtype.is_none(), format!("constants[{index}].dtype"));
        gap(constant.shape.is_none(), format!("constants[{index}].shape"));
        gap(constant.size_bytes.is_none(), format!("constants[{index}].size_bytes"));
        gap(constant.device.is_none(), format!("constants[{index}].device"));
    }
    let said: HashMap<String, String> = unknown.iter().map(|u| (u.fact.clone(), u.reason.clone())).collect();
    for fact in gaps.into_iter().filter(|fact| !said.contains_key(fact)) {
        // rank and strides are unknown for the reason for which the shape is
        let of_shape = fact.strip_suffix(".rank").or_else(|| fact.strip_suffix(".stride"));
        let shape = of_shape.and_then(|tensor| said.get(&format!("{tensor}.shape")));
        let why = shape.unwrap_or(&reason).clone();
        unknown.push(Unknown::new(fact, why));
    }
}
