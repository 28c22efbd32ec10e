//! dtype, sizes and strides of inputs: what the message wants against what this artefact states.

use super::super::case::{Case, Diagnosis, input_name, range_of, tensor};
use super::super::log::Hit;
use super::super::pattern::{decode_dtype, render};
use crate::model::{DType, Dim, Model, Release, TensorSpec, Witness};

/// Which end of a range a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// "too small"
    Lower,
    /// "too large"
    Upper,
}

/// The input that a check names, and what is known about it.
fn named<'a>(hit: &Hit, case: &Case<'a>, said: &mut Diagnosis) -> Option<&'a TensorSpec> {
    let number = hit.found.number(1)?;
    let spec = case.input(Some(number));
    match spec {
        Some(spec) => said.evidence.push(spec.evidence.first().cloned().map_or_else(
            || crate::model::Evidence::new(Witness::Source, format!("{}: {}", input_name(spec), tensor(spec))),
            |e| crate::model::Evidence { detail: format!("{}: {}", input_name(spec), tensor(spec)), ..e },
        )),
        None if case.model().is_some_and(|(_, m)| m.inputs.is_some()) => {
            other_artifact(said, &format!("it has {} inputs, so there is no inputs[{number}]", case.inputs().len()));
        }
        None => {}
    }
    spec
}

/// The log contradicts the file.
fn other_artifact(said: &mut Diagnosis, why: &str) {
    said.say(Witness::Inferred, format!("the log comes from another artefact than this one: {why}"));
    said.sentence = Some(format!("This log does not come from this artefact: {why}."));
    said.fix = Some(
        "Give the artefact that was loaded when the log was written (another build, or another model of the package)."
            .to_owned(),
    );
}

fn dim_of(spec: &TensorSpec, at: Option<i64>) -> Option<&Dim> {
    spec.shape.as_ref()?.get(usize::try_from(at?).ok()?)?.as_ref()
}

fn rank_contradiction(spec: &TensorSpec, at: Option<i64>) -> Option<String> {
    let (rank, at) = (spec.rank?, usize::try_from(at?).ok()?);
    (at >= rank).then(|| format!("{} has {rank} dims, so there is no dim {at}", input_name(spec)))
}

/// `chk-dtype`: groups input, expected number, enumerator, given number.
pub fn dtype(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some(spec) = named(hit, case, &mut said) else { return said };
    let expected = hit.found.group(2).map(decode_dtype).or_else(|| hit.found.group(3).map(decode_dtype));
    if let (Some(mine), Some(expected)) = (&spec.dtype, &expected)
        && mine.name() != expected
    {
        other_artifact(
            &mut said,
            &format!("it takes {mine} as {}, the log's check wanted {expected}", input_name(spec)),
        );
        return said;
    }
    let expected = expected.or_else(|| spec.dtype.as_ref().map(ToString::to_string));
    if let Some(expected) = expected {
        let given = hit.found.group(4).map(|n| format!(" and was given {}", decode_dtype(n))).unwrap_or_default();
        said.sentence = Some(format!("{} takes {expected}{given}.", input_name(spec)));
        said.fix = Some(format!(
            "Convert it before the call (`x.to(torch.{expected})`), or compile with an example of the other dtype."
        ));
    }
    said
}

/// `chk-dim`: groups input, dim, expected, given.
pub fn dim(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some(spec) = named(hit, case, &mut said) else { return said };
    let (at, expected, given) = (hit.found.number(2), hit.found.number(3), hit.found.number(4));
    if let Some(why) = rank_contradiction(spec, at) {
        other_artifact(&mut said, &why);
        return said;
    }
    let Some(at_dim) = at else { return said };
    match (dim_of(spec, at), expected) {
        (Some(Dim::Static { size }), Some(expected)) if *size != expected => {
            other_artifact(
                &mut said,
                &format!("dim {at_dim} of {} is {size} in it, the log's check wanted {expected}", input_name(spec)),
            );
            return said;
        }
        (Some(dim), Some(expected)) if dim.as_static().is_none() && matches!(dim, Dim::Symbol { .. }) => {
            other_artifact(
                &mut said,
                &format!(
                    "dim {at_dim} of {} is dynamic in it, the log's check wanted exactly {expected}",
                    input_name(spec)
                ),
            );
            return said;
        }
        _ => {}
    }
    let given = given.map(|g| format!(" and was given {g}")).unwrap_or_default();
    if let Some(expected) = expected.or_else(|| dim_of(spec, at).and_then(Dim::as_static)) {
        said.sentence = Some(format!("Dim {at_dim} of {} is compiled as exactly {expected}{given}.", input_name(spec)));
    }
    let dynamic: Vec<String> = case
        .inputs()
        .iter()
        .flat_map(|s| s.shape.iter().flatten().enumerate().map(move |(d, dim)| (s, d, dim)))
        .filter_map(|(s, d, dim)| {
            let dim = dim.as_ref()?;
            dim.as_static().is_none().then(|| {
                format!("dim {d} of inputs[{}] ({})", s.index, range_of(dim).unwrap_or_else(|| dim.to_string()))
            })
        })
        .take(8)
        .collect();
    said.say(
        Witness::Source,
        if dynamic.is_empty() {
            "no dim of any input is dynamic in this artefact".to_owned()
        } else {
            format!("dynamic are: {}", dynamic.join(", "))
        },
    );
    said.fix = Some(format!(
        "Give that size, or export again with that dim dynamic (`dynamic_shapes` with `torch.export.Dim` for dim {at_dim}) and compile."
    ));
    said
}

/// `chk-low`, `chk-high`: groups input, dim, bound, given.
pub fn bound(hit: &Hit, case: &Case, end: End) -> Diagnosis {
    let mut said = Diagnosis::default();
    let (at, bound, given) = (hit.found.number(2), hit.found.number(3), hit.found.number(4));
    let spec = named(hit, case, &mut said);
    if let Some(spec) = spec {
        if let Some(why) = rank_contradiction(spec, at) {
            other_artifact(&mut said, &why);
            return said;
        }
        if let (Some(dim), Some(bound)) = (dim_of(spec, at), bound) {
            let (min, max) = dim.bounds();
            let mine = if end == End::Lower { min } else { max };
            if mine.is_some_and(|m| m != bound) {
                let range = range_of(dim).unwrap_or_else(|| dim.to_string());
                other_artifact(
                    &mut said,
                    &format!(
                        "dim {} of {} has the range {range} in it, the log's check wanted {bound}",
                        at.unwrap_or_default(),
                        input_name(spec)
                    ),
                );
                return said;
            }
        }
        if let (Some(at), Some(bound)) = (at, bound) {
            let (word, side) = if end == End::Lower { ("at least", "below") } else { ("at most", "above") };
            let given = given.map(|g| format!(", and was given {g}")).unwrap_or_default();
            said.sentence = Some(format!(
                "Dim {at} of {} has to be {word} {bound}{given}: {side} the range that was compiled.",
                input_name(spec)
            ));
        }
        if let Some(dim) = dim_of(spec, at) {
            let same: Vec<String> = same_symbol(case, dim);
            if same.len() > 1 {
                said.say(Witness::Source, format!("the same size `{dim}` is also {}", same.join(", ")));
            }
        }
    }
    let switch = match end {
        End::Lower => "`aot_inductor.check_lowerbound=False` (2.10+)",
        End::Upper => "`aot_inductor.check_upperbound=False` (2.15+)",
    };
    said.fix = Some(match (end, bound) {
        (End::Lower, Some(2)) => format!(
            "2 is most often the 0/1 specialisation of torch.export, not a limit of the model: export with `Dim(..., min=0)` or `Dim.AUTO` and an example larger than 1, with backed_size_oblivious, or compile with {switch}, which leaves the lower check out. Else pad the input to 2."
        ),
        (End::Lower, _) => format!("Give a larger size, export with a smaller `Dim(min=…)`, or compile with {switch}."),
        (End::Upper, _) => format!(
            "Give a smaller size (split the batch), export with a larger `Dim(max=…)`, or compile with {switch}."
        ),
    });
    said
}

/// Dims of inputs that are the same symbol.
fn same_symbol(case: &Case, dim: &Dim) -> Vec<String> {
    let Dim::Symbol { symbol, .. } = dim else { return Vec::new() };
    let subjects =
        case.model().and_then(|(_, m)| m.symbols.iter().find(|s| s.symbol == *symbol)).map(|s| s.subjects.clone());
    subjects.unwrap_or_default()
}

/// `chk-stride`: groups input, position, expected, given.
pub fn stride(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some(spec) = named(hit, case, &mut said) else { return said };
    let (at, expected, given) = (hit.found.number(2), hit.found.number(3), hit.found.number(4));
    if let Some(why) = rank_contradiction(spec, at) {
        other_artifact(&mut said, &why);
        return said;
    }
    let mine = spec.stride.as_ref().and_then(|s| s.get(usize::try_from(at?).ok()?)?.as_ref()?.as_static());
    if let (Some(mine), Some(expected)) = (mine, expected)
        && mine != expected
    {
        other_artifact(
            &mut said,
            &format!(
                "stride {} of {} is {mine} in it, the log's check wanted {expected}",
                at.unwrap_or_default(),
                input_name(spec)
            ),
        );
        return said;
    }
    if let (Some(at), Some(expected)) = (at, expected) {
        let given = given.map(|g| format!(" and was given {g}")).unwrap_or_default();
        said.sentence = Some(format!(
            "Stride {at} of {} is compiled as {expected}{given}: the memory layout differs.",
            input_name(spec)
        ));
    }
    said.fix = Some("Give a tensor with the compiled strides: `x.contiguous()`, or `x.to(memory_format=torch.channels_last)` where the strides above are channels-last; a transposed view has to be copied.".to_owned());
    said
}

/// An operator refused sizes that the checks did not see.
pub fn operator_shape(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis { is_open: false, ..Diagnosis::default() };
    let (wanted, given) = sizes(hit);
    let fits = |dim: &Dim| wanted.iter().any(|w| dim.as_static() == Some(*w));
    let mut suspects: Vec<String> = Vec::new();
    for spec in case.inputs() {
        for (at, dim) in spec.shape.iter().flatten().enumerate() {
            if dim.as_ref().is_some_and(fits) {
                suspects.push(format!(
                    "dim {at} of {} is compiled as {}",
                    input_name(spec),
                    dim.as_ref().map(ToString::to_string).unwrap_or_default()
                ));
            }
        }
    }
    for suspect in suspects.iter().take(8) {
        said.say(Witness::Source, suspect.clone());
    }
    all_inputs(case, &mut said);
    if let Some(operator) = case.reading.hit("shim-call") {
        said.say(Witness::Log, render(operator.found.pattern.sentence, &operator.found));
    }
    if let (Some(first), Some(given)) = (suspects.first(), given.first()) {
        let more = if suspects.len() > 1 { " (or another dim listed below)" } else { "" };
        said.sentence = Some(format!(
            "An input has the size {given} where the model was compiled for {}: {first}{more}.",
            wanted.first().unwrap_or(given)
        ));
    }
    unchecked(case, &mut said);
    said
}

/// Sizes that a message states: what was wanted, and what was given.
fn sizes(hit: &Hit) -> (Vec<i64>, Vec<i64>) {
    let n = |i| hit.found.number(i);
    match hit.found.pattern.id {
        "mm-shape" => (n(3).into_iter().collect(), n(2).into_iter().collect()),
        "resized" => {
            let list = |i: usize| -> Vec<i64> {
                hit.found
                    .group(i)
                    .unwrap_or_default()
                    .split(|c: char| !c.is_ascii_digit())
                    .filter_map(|w| w.parse().ok())
                    .collect()
            };
            let (had, needed) = (list(1), list(2));
            let differ: Vec<(i64, i64)> =
                had.iter().copied().zip(needed.iter().copied()).filter(|(a, b)| a != b).collect();
            (differ.iter().map(|d| d.0).collect(), differ.iter().map(|d| d.1).collect())
        }
        "op-shape" | "size-stride" => (n(2).into_iter().collect(), n(1).into_iter().collect()),
        _ => (Vec::new(), Vec::new()),
    }
}

/// An operator refused dtypes that the checks did not see.
pub fn operator_dtype(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let dtypes: Vec<DType> = (1..=4)
        .filter_map(|i| hit.found.group(i))
        .filter_map(|word| {
            let word = word.trim_end_matches("Tensor").rsplit('.').next().unwrap_or(word);
            let lower = word.to_ascii_lowercase();
            DType::from_enumerator(word).or_else(|| DType::from_name(&lower))
        })
        .collect();
    let compiled: Vec<&TensorSpec> =
        case.inputs().iter().filter(|s| s.dtype.as_ref().is_some_and(|d| dtypes.contains(d))).collect();
    let strange: Vec<&DType> =
        dtypes.iter().filter(|d| !case.inputs().iter().any(|s| s.dtype.as_ref() == Some(*d))).collect();
    for spec in compiled.iter().take(8) {
        said.say(Witness::Source, format!("{} is compiled as {}", input_name(spec), tensor(spec)));
    }
    if let (Some(given), Some(spec)) = (strange.first(), compiled.first()) {
        let mine = spec.dtype.as_ref().map(ToString::to_string).unwrap_or_default();
        let which = if compiled.len() == 1 { input_name(spec) } else { format!("one of {} inputs", compiled.len()) };
        said.sentence = Some(format!("An input was given as {given}, and the model was compiled for {mine}: {which}."));
        said.fix = Some(format!("Convert the input to {mine} before the call."));
    } else {
        all_inputs(case, &mut said);
    }
    unchecked(case, &mut said);
    said
}

/// One line per input, at most sixteen.
pub fn all_inputs(case: &Case, said: &mut Diagnosis) {
    let inputs = case.inputs();
    for spec in inputs.iter().take(16) {
        said.say(Witness::Source, format!("{}: {}", input_name(spec), tensor(spec)));
    }
    if inputs.len() > 16 {
        said.say(Witness::Source, format!("and {} more inputs", inputs.len() - 16));
    }
}

/// Says that the checks of the artefact are off, and how to switch them on.
pub fn unchecked(case: &Case, said: &mut Diagnosis) {
    let advice = match case.model() {
        Some((_, model)) => check_switch(model),
        None => CHECK_SWITCH.to_owned(),
    };
    said.say(Witness::Inferred, format!("nothing compared the inputs before the operators ran: {advice}"));
    let fix = said.fix.take().unwrap_or_else(|| "Give the inputs as they were compiled.".to_owned());
    said.fix = Some(format!("{fix} {advice}"));
}

const CHECK_SWITCH: &str = "Set AOTI_RUNTIME_CHECK_INPUTS=1 in the process that runs the model (artefacts of torch 2.7 or newer read it at run time) and the message names the input.";

/// How the input checks of this artefact are switched on.
pub fn check_switch(model: &Model) -> String {
    let old = model.compiled_by.torch_max.is_some_and(|r| r < Release::new(2, 7));
    match &model.checks {
        Some(checks) if checks.compiled_in => match &checks.enabled_by {
            Some(variable) => format!("Set {variable}=1 in the process that runs the model (it is read at run time) and the message names the input."),
            None => "The checks of this artefact are always on.".to_owned(),
        },
        Some(_) if old => "This artefact has no input checks (torch up to 2.6 compiles them in only with aot_inductor.debug_compile): compile with torch 2.7 or newer, where AOTI_RUNTIME_CHECK_INPUTS=1 switches them on at run time.".to_owned(),
        Some(_) => "This artefact has no input checks: compare the inputs with `aoti-inspect verify`.".to_owned(),
        None => CHECK_SWITCH.to_owned(),
    }
}
