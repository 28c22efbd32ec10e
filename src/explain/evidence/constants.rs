//! Constants: names, bytes, devices, memory.

use super::super::case::{Case, Diagnosis};
use super::super::log::Hit;
use super::super::pattern::decode_device;
use super::devices::constant_devices;
use crate::model::{Constant, Model, WeightsLocation, Witness};

/// Bytes as a person reads them.
pub fn amount(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

/// Where the weights are, in words.
pub fn place(model: &Model) -> Option<String> {
    let weights = &model.weights;
    let size = weights.size_bytes.map(|b| format!(", {}", amount(b))).unwrap_or_default();
    let member = weights.member.as_deref().unwrap_or_default();
    Some(match weights.location? {
        WeightsLocation::None => "the model has no weights".to_owned(),
        WeightsLocation::Library => format!("the weights are in a section of the library{size}"),
        WeightsLocation::Appended => format!("the weights are appended to the library file{size}"),
        WeightsLocation::Blob => format!("the weights are in {member}{size}"),
        WeightsLocation::Pickled => format!("the weights are pickled in the package{size}"),
        WeightsLocation::Absent => {
            "the artefact holds no weights: the caller has to load them before the first run".to_owned()
        }
    })
}

/// Bytes that are there against bytes that the table asks for.
pub fn bytes(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    if let Some(text) = place(model) {
        said.say(Witness::Constants, text);
    }
    said.evidence.extend(model.weights.evidence.iter().take(6).cloned());
    let (there, wanted) = (model.weights.size_bytes, model.weights.expected_bytes);
    if let (Some(there), Some(wanted)) = (there, wanted) {
        said.say(Witness::Constants, format!("{there} bytes of weights are there, the constants ask for {wanted}"));
        if there < wanted {
            said.sentence = Some(format!("The weights are cut off: {there} of {wanted} bytes are in the file."));
            said.fix = Some("Copy the file again and compare its size and checksum.".to_owned());
        }
    }
    if model.weights.location == Some(WeightsLocation::Absent) {
        said.sentence = Some("The artefact holds no weights, and none were loaded from outside.".to_owned());
        said.fix = Some("Load them (`load_constants` with every original name) before the first run, or package with the weights inside.".to_owned());
    }
    if let (Some(offset), Some(page)) = (model.weights.offset, case.load.page_size_bytes.or(model.requires.page_size))
        && page > 0
    {
        let rest = offset.checked_rem(page).unwrap_or_default();
        let word = if rest == 0 { "a multiple" } else { "no multiple" };
        said.say(Witness::Header, format!("the weights begin at offset {offset:#x}: {word} of a page of {page} bytes"));
    }
    said
}

/// What the constants need in memory.
pub fn memory(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    let total: u64 = model.weights.totals.iter().map(|t| t.size_bytes).fold(0, u64::saturating_add);
    said.evidence.extend(constant_devices(case));
    if let Some(text) = place(model) {
        said.say(Witness::Constants, text);
    }
    if hit.found.pattern.id == "diskfull" {
        let size = case.artifact.map(|a| a.size_bytes).unwrap_or_default();
        said.say(Witness::Archive, format!("the package unpacks to {}", amount(size)));
        said.sentence = Some(format!(
            "The loader unpacks the whole package ({}) into a temporary folder, once per process, and the disk is full.",
            amount(size)
        ));
        return said;
    }
    if total > 0 {
        said.say(Witness::Constants, format!("the constants need {} for each loaded copy of the model", amount(total)));
        let limit = case.load.gpu_memory_bytes;
        let verdict = match limit {
            Some(limit) if total > limit => format!("more than the {} of the device", amount(limit)),
            Some(limit) => format!(
                "of {} on the device: something else holds the rest (eager weights, other models, activations)",
                amount(limit)
            ),
            None => "activations and other models come on top".to_owned(),
        };
        said.sentence =
            Some(format!("Memory is used up; the constants of this artefact need {}, {verdict}.", amount(total)));
    }
    said
}

fn find<'a>(model: &'a Model, name: &str) -> Option<&'a Constant> {
    let list = model.constants.as_deref()?;
    list.iter()
        .find(|c| c.name.as_deref() == Some(name) || c.fqn.as_deref() == Some(name))
        .or_else(|| list.iter().find(|c| c.fqn.as_deref().is_some_and(|f| plain(f) == plain(name))))
}

/// Names that differ only in what exporters add and replace: `L__self___fc1.weight` and `fc1_weight`.
fn plain(name: &str) -> String {
    name.trim_start_matches("L__self___").trim_start_matches("model.").replace(['.', '/'], "_")
}

fn describe(constant: &Constant) -> String {
    let mut text = format!(
        "internal name `{}`, original name `{}`",
        constant.name.as_deref().unwrap_or("?"),
        constant.fqn.as_deref().unwrap_or("?")
    );
    if let Some(dtype) = &constant.dtype {
        text.push_str(&format!(", {dtype}"));
    }
    if let Some(shape) = &constant.shape {
        text.push_str(&format!(" {shape:?}"));
    }
    if let Some(kind) = constant.kind {
        text.push_str(&format!(", {}", format!("{kind:?}").to_lowercase()));
    }
    if let Some(device) = &constant.device {
        text.push_str(&format!(", on {device}"));
    }
    text
}

/// A constant named in the text.
pub fn name(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    let asked = hit.found.group(1).unwrap_or_default();
    let found = find(model, asked);
    if let Some(constant) = found {
        said.say(Witness::Constants, describe(constant));
    }
    let names: Vec<&str> =
        model.constants.iter().flatten().filter(|c| c.folded != Some(true)).filter_map(|c| c.fqn.as_deref()).collect();
    if !names.is_empty() {
        said.say(
            Witness::Constants,
            format!(
                "original names of its {} constants: {}{}",
                names.len(),
                names.iter().take(12).copied().collect::<Vec<_>>().join(", "),
                if names.len() > 12 { ", …" } else { "" }
            ),
        );
    }
    if let Some(text) = place(model) {
        said.say(Witness::Constants, text);
    }
    let absent = model.weights.location == Some(WeightsLocation::Absent);
    match (hit.found.pattern.id, found) {
        ("const-miss", Some(constant)) => {
            let fqn = constant.fqn.as_deref().unwrap_or(asked);
            said.sentence = Some(if absent {
                format!("The artefact holds no weights and `{fqn}` was not loaded.")
            } else {
                format!("An update left out `{fqn}` (internal name `{asked}`).")
            });
            said.fix =
                Some(format!("Load a value for `{fqn}` and every other original name above before the first run."));
        }
        ("const-name", Some(constant)) => {
            let fqn = constant.fqn.as_deref().unwrap_or(asked);
            said.sentence = Some(format!("`{asked}` is not the original name of a constant; `{fqn}` is."));
            said.fix = Some(format!("Use `{fqn}`."));
        }
        ("const-name" | "const-miss", None) if model.constants.is_some() => {
            said.sentence = Some(format!(
                "This artefact has no constant called `{asked}`, neither by internal nor by original name."
            ));
            said.fix = Some("Use the original names above, or the artefact that the names belong to.".to_owned());
        }
        ("const-warn", Some(constant)) => {
            let fqn = constant.fqn.as_deref().unwrap_or(asked);
            said.sentence = Some(format!("An update of the constants left out `{fqn}`; its old value stays."));
        }
        _ => {}
    }
    said
}

/// Devices of constants against device of the load or of new values.
pub fn device(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    said.evidence.extend(constant_devices(case));
    if let Some(device) = &model.device {
        said.say(Witness::Inferred, format!("the artefact is compiled for {device}"));
    }
    if let Some(asked) = &case.load.device {
        said.say(Witness::LoadConfiguration, format!("it was loaded for {asked}"));
    }
    let Some(constant) = hit.found.group(1).and_then(|n| find(model, n)) else { return said };
    said.say(Witness::Constants, describe(constant));
    let fqn = constant.fqn.as_deref().unwrap_or_default();
    if let (Some(device), "const-dev") = (&constant.device, hit.found.pattern.id) {
        let given = hit.found.group(2).map(decode_device).unwrap_or_default();
        said.sentence = Some(format!("The model keeps `{fqn}` on {device} and the new value is on {given}."));
        said.fix = Some(format!("Move the new values to {device} before the update."));
    }
    if let (Some(device), "mixed") = (&model.device, hit.found.pattern.id) {
        said.sentence = Some(format!(
            "The artefact is compiled for {device} and its constant `{fqn}` does not fit the device it was loaded for."
        ));
        said.fix = Some(format!("Load it for {device}."));
    }
    said
}
