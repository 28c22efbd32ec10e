//! Device of the load, of the inputs and of the constants against device of the artefact.

use super::super::case::{Case, Diagnosis, input_name, tensor};
use super::super::log::Hit;
use super::super::pattern::decode_device;
use super::inputs;
use crate::model::{DeviceKind, Evidence, Kind, Witness};

/// Every witness of the artefact's device.
fn witnesses(case: &Case, said: &mut Diagnosis) -> Option<DeviceKind> {
    let (_, model) = case.model()?;
    if let Some(device) = &model.device {
        said.say(Witness::Inferred, format!("the artefact is compiled for {device}"));
    }
    said.evidence.extend(model.device_evidence.iter().take(6).cloned());
    for target in model.kernels.iter().flat_map(|k| k.archs.first()).take(1) {
        said.say(Witness::Kernel, format!("it holds GPU kernels, the first for {target}"));
    }
    model.device.as_ref().map(|d| d.kind.clone())
}

/// `chk-device`: groups input, expected number (printed twice), name, given number.
pub fn input(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let expected = hit.found.group(3).map(str::to_owned);
    let given = hit.found.group(4).map(decode_device);
    if let Some(spec) = case.input(hit.found.number(1)) {
        said.say(Witness::Source, format!("{}: {}", input_name(spec), tensor(spec)));
        let mine = spec.device.as_ref().map(|d| d.kind.name().to_owned());
        if let (Some(mine), Some(expected)) = (&mine, &expected)
            && mine != expected
        {
            said.say(Witness::Inferred, format!("this artefact wants {mine} there, the log's check wanted {expected}: the log comes from another artefact"));
        }
        if let Some(expected) = expected.or(mine) {
            let given = given.as_ref().map(|g| format!(" and was given on {g}")).unwrap_or_default();
            said.sentence = Some(format!("{} has to be on {expected}{given}.", input_name(spec)));
            said.fix = Some(format!(
                "Move it before the call (`x.to('{expected}')`); the message prints the device number twice (`11` is 1, cuda)."
            ));
        }
    }
    witnesses(case, &mut said);
    said
}

/// An operator refused the device of a tensor.
pub fn operator(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let device = witnesses(case, &mut said);
    inputs::all_inputs(case, &mut said);
    mixed_constants(case, &mut said);
    if let Some(device) = device {
        said.sentence =
            Some(format!("The model is compiled for {device}, and an input or the load is on another device."));
        said.fix = Some(format!("Load it for {device} and put every input on {device}."));
    }
    inputs::unchecked(case, &mut said);
    said
}

/// Constants on more than one device are said.
fn mixed_constants(case: &Case, said: &mut Diagnosis) {
    let Some((_, model)) = case.model() else { return };
    let mut kinds: Vec<&DeviceKind> =
        model.constants.iter().flatten().filter_map(|c| c.device.as_ref().map(|d| &d.kind)).collect();
    kinds.dedup();
    kinds.sort_by_key(|k| k.name());
    kinds.dedup();
    if kinds.len() > 1 {
        let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
        said.say(Witness::Constants, format!("its constants are on {}", names.join(" and ")));
    }
}

/// The load asked for a device that the host or the artefact does not have.
pub fn load(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let device = witnesses(case, &mut said);
    mixed_constants(case, &mut said);
    if let Some(asked) = &case.load.device {
        said.say(Witness::LoadConfiguration, format!("it was loaded for {asked}"));
    }
    let id = hit.found.pattern.id;
    let about_cuda = matches!(id, "host-mem" | "driver-old" | "no-cuda-device" | "no-driver" | "rt-arg" | "no-gpu");
    let (sentence, fix) = match device {
        Some(DeviceKind::Cpu) if about_cuda => (
            "The artefact is compiled for cpu and was loaded as cuda.".to_owned(),
            "Load it as cpu (`device=\"cpu\"`, AOTIModelContainerRunnerCpu), or compile the model on cuda.".to_owned(),
        ),
        Some(DeviceKind::Cuda) if id == "host-mem" || id == "rt-arg" => (
            "The artefact is compiled for cuda; its constants, its runner or its inputs are in host memory.".to_owned(),
            "Use the CUDA runner and put every input on the GPU.".to_owned(),
        ),
        Some(DeviceKind::Cuda) if about_cuda => (
            "The artefact is compiled for cuda and this process has no usable GPU.".to_owned(),
            "Run it where `torch.cuda.is_available()` is true (driver, container option `--gpus all`, CUDA_VISIBLE_DEVICES), or compile the model for cpu.".to_owned(),
        ),
        Some(device) => (
            format!("The artefact is compiled for {device}; this loader or host does not serve it as it was asked."),
            format!("Load it with a torch build that has {device}, for that device."),
        ),
        None => return said,
    };
    (said.sentence, said.fix) = (Some(sentence), Some(fix));
    said
}

/// The loader's device string, or a device index, does not fit.
pub fn runner(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let device = witnesses(case, &mut said);
    let from_package = case.artifact.is_some_and(|a| matches!(a.kind, Kind::Package | Kind::Directory))
        || case.reading.uses_package_loader;
    match hit.found.pattern.id {
        "bad-runner" => {
            let runner = hit.found.group(1).map(DeviceKind::from_name);
            // the package loader takes the runner from the metadata: the type agrees, so an index was given
            if device.is_some() && device == runner || (device.is_none() && from_package) {
                said.class = Some("C02");
                let name = runner.map_or_else(|| "cpu".to_owned(), |r| r.name().to_owned());
                said.sentence = Some(format!(
                    "A device index was given for a {name} artefact: `{name}` has none, its runner takes plain `{name}`."
                ));
                said.fix = Some(format!("Leave the device index out (`device_index=-1`, or just `{name}`)."));
            } else if let (Some(device), Some(runner)) = (device, runner) {
                said.sentence =
                    Some(format!("The artefact is compiled for {device} and the {runner} runner was used."));
                said.fix = Some(format!("Use the runner for {device}."));
            }
        }
        "dev-idx" => {
            let (asked, found) = (hit.found.group(1).unwrap_or_default(), hit.found.group(2).unwrap_or_default());
            let kind = |d: &str| d.split(':').next().unwrap_or_default().to_owned();
            if kind(asked) == kind(found) {
                let range = case.model().map(|(_, m)| compiled_by(m)).unwrap_or_default();
                said.sentence = Some(format!(
                    "Only the index differs ({asked} against {found}): the runtime inside the artefact{range} does not move constants to another index."
                ));
                said.fix = Some("Load it on the index it was compiled on, or compile with torch 2.6 or newer; the package loader takes an index from 2.8 on.".to_owned());
            } else {
                said.class = Some("C01");
                said.sentence = Some(format!("The artefact's data are on {found} and it was loaded for {asked}."));
                said.fix = Some("Use the runner of the artefact's device.".to_owned());
            }
        }
        "ordinal" => {
            said.say(Witness::Inferred, "an artefact states a device type and no index: the index is the caller's")
        }
        _ => {}
    }
    said
}

fn compiled_by(model: &crate::model::Model) -> String {
    match (model.compiled_by.torch_min, model.compiled_by.torch_max) {
        (Some(min), Some(max)) if min == max => format!(" (torch {min})"),
        (Some(min), Some(max)) => format!(" (torch {min} to {max})"),
        (Some(min), None) => format!(" (torch {min} or newer)"),
        (None, Some(max)) => format!(" (torch up to {max})"),
        (None, None) => String::new(),
    }
}

/// Devices of the artefact's constants, as evidence.
pub fn constant_devices(case: &Case) -> Vec<Evidence> {
    let Some((_, model)) = case.model() else { return Vec::new() };
    model
        .weights
        .totals
        .iter()
        .filter_map(|t| {
            let device = t.device.as_ref()?;
            Some(Evidence::new(
                Witness::Constants,
                format!("{} constants, {} bytes, on {device}", t.count, t.size_bytes),
            ))
        })
        .collect()
}

/// Device of one constant, as evidence.
pub fn device_of(constant: &crate::model::Constant) -> Vec<Evidence> {
    let name = constant.fqn.as_deref().or(constant.name.as_deref()).unwrap_or("?");
    let device = constant.device.as_ref().map_or_else(|| "an unknown device".to_owned(), ToString::to_string);
    vec![Evidence::new(Witness::Constants, format!("`{name}` is on {device}"))]
}
