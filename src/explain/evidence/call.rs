//! How the model is called: number of inputs, call spec, alignment, single-threaded entry.

use super::super::case::{Case, Diagnosis, input_name, tensor};
use super::super::log::Hit;
use super::inputs;
use crate::model::{Model, Release, Witness};

/// `in-count`: groups inputs or outputs, wanted, given.
pub fn count(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let (side, wanted, given) = (hit.found.group(1).unwrap_or("inputs"), hit.found.number(2), hit.found.number(3));
    let Some((_, model)) = case.model() else { return said };
    let list = if side == "outputs" { &model.outputs } else { &model.inputs };
    let Some(list) = list else { return said };
    let mine = list.len();
    for spec in list.iter().take(16) {
        let name = if side == "outputs" { format!("outputs[{}]", spec.index) } else { input_name(spec) };
        said.say(Witness::Source, format!("{name}: {}", tensor(spec)));
    }
    if mine > 16 {
        said.say(Witness::Source, format!("and {} more {side}", mine - 16));
    }
    if let Some(wanted) = wanted
        && i64::try_from(mine).ok() != Some(wanted)
    {
        said.sentence = Some(format!(
            "This log does not come from this artefact: it takes {mine} {side}, the log's model takes {wanted}."
        ));
        said.fix = Some("Give the artefact that was loaded when the log was written.".to_owned());
        return said;
    }
    let given = given.map(|g| format!(" and the caller gave {g}")).unwrap_or_default();
    let names: Vec<&str> = list.iter().filter_map(|s| s.path.as_deref().or(s.name.as_deref())).take(12).collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    said.sentence = Some(format!("The model takes {mine} {side}{names}{given}."));
    if !model.baked_in.is_empty() {
        said.say(
            Witness::Metadata,
            format!(
                "baked in at export, so no inputs: {}",
                model.baked_in.iter().take(12).cloned().collect::<Vec<_>>().join(", ")
            ),
        );
    }
    said
}

/// Arguments that do not fit the exported structure.
pub fn spec(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    let Some(inputs) = &model.inputs else { return said };
    let paths: Vec<&str> = inputs.iter().filter_map(|s| s.path.as_deref()).collect();
    if paths.is_empty() {
        said.say(Witness::Source, format!("the call spec was not read; the model takes {} tensors", inputs.len()));
        return said;
    }
    let keywords: Vec<&str> =
        paths.iter().filter_map(|p| p.strip_prefix("kwargs['").and_then(|rest| rest.split('\'').next())).collect();
    let args = paths.iter().filter_map(|p| p.strip_prefix("args[")?.split(']').next()?.parse::<usize>().ok()).max();
    let positional = args.map_or(0, |n| n.saturating_add(1));
    let keywords = if keywords.is_empty() {
        "no keyword arguments".to_owned()
    } else {
        format!("the keyword arguments {}", quoted(&keywords))
    };
    said.say(
        Witness::Source,
        format!("flat order of the tensors: {}", paths.iter().take(24).copied().collect::<Vec<_>>().join(", ")),
    );
    if !model.baked_in.is_empty() {
        said.say(
            Witness::Metadata,
            format!("leaves baked in at export, to be given with the same value: {}", quoted(&model.baked_in)),
        );
    }
    said.sentence = Some(format!(
        "The call has another structure than the export, which had {positional} positional arguments and {keywords}."
    ));
    said.fix = Some(format!("Call it with {positional} positional arguments and {keywords}."));
    said
}

fn quoted(names: &[impl AsRef<str>]) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for name in names {
        if !unique.contains(&name.as_ref()) {
            unique.push(name.as_ref());
        }
    }
    unique.iter().take(24).map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ")
}

/// Alignment of inputs and constants.
pub fn alignment(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let named = match hit.found.pattern.id {
        "align-27" => case.input(hit.found.number(1)),
        "align-26" => case.inputs().iter().find(|s| s.name.as_deref() == hit.found.group(1)),
        _ => None,
    };
    if let Some(spec) = named {
        let bytes = hit.found.number(2).unwrap_or(16);
        said.say(Witness::Source, format!("{}: {}", input_name(spec), tensor(spec)));
        said.sentence = Some(if hit.found.pattern.id == "align-27" {
            format!(
                "{} does not begin at a multiple of {bytes} bytes: it is copied at each call, which is slow and harmless.",
                input_name(spec)
            )
        } else {
            format!("{} does not begin at a multiple of {bytes} bytes, which this artefact refuses.", input_name(spec))
        });
    }
    for spec in case.inputs().iter().filter(|s| s.alignment_bytes.is_some()).take(16) {
        let bytes = spec.alignment_bytes.unwrap_or_default();
        said.say(Witness::Source, format!("{} is assumed to begin at a multiple of {bytes} bytes", input_name(spec)));
    }
    if hit.found.pattern.id == "misaligned" {
        inputs::unchecked(case, &mut said);
    }
    said
}

/// Capture, streams and threads: what entries the library has.
pub fn single_threaded(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    if model.capabilities.iter().any(|c| c == "run_single_threaded") {
        said.say(
            Witness::Exports,
            "the library has the single-threaded entry (AOTInductorModelContainerRunSingleThreaded)",
        );
        said.fix = Some(
            "Load it with run_single_threaded=True and one runner; warm it up once before the capture.".to_owned(),
        );
    } else if is_before(model, Release::new(2, 7)) {
        said.say(Witness::Exports, "the library has no single-threaded entry");
        said.sentence = Some(
            "This artefact has no entry that can be captured: torch up to 2.6 compiles only the one that synchronises."
                .to_owned(),
        );
        said.fix = Some("Compile with torch 2.7 or newer and load it with run_single_threaded=True.".to_owned());
    }
    said
}

fn is_before(model: &Model, release: Release) -> bool {
    model.compiled_by.torch_max.is_some_and(|r| r < release)
}
