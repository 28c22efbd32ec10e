//! Index out of bounds, the whole path: assertion → kernel → launch → argument → symbol → input and dim → range.

use super::super::case::{Case, Diagnosis, input_name};
use super::super::log::Hit;
use super::fault;
use super::inputs::check_switch;
use crate::checks::assertions::{self, Assertion, BoundOrigin};
use crate::model::{DType, Evidence, Expr, Kernel, Model, TensorSpec, Witness};

/// Kernels that hold an assertion, with its position in each.
fn holders<'a>(model: &'a Model, text: &str, is_cut: bool) -> Vec<(&'a Kernel, usize)> {
    let plain = |t: &str| t.split_whitespace().collect::<String>();
    let wanted = plain(text);
    let mut found = Vec::new();
    for kernel in &model.kernels {
        for (position, held) in kernel.assertions.iter().enumerate() {
            let held = plain(held);
            let fits = held == wanted || (is_cut && held.starts_with(&wanted)) || held.ends_with(&wanted);
            if fits && !found.iter().any(|(k, _): &(&Kernel, usize)| k.name == kernel.name) {
                found.push((kernel, position));
            }
        }
    }
    found
}

/// `ioob`, `device-assert` and `dsa`.
pub fn assertion(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else {
        said.fix = Some(
            "Give the artefact too: the assertion is traced to the kernel, the input and the dim behind its bound."
                .to_owned(),
        );
        return said;
    };
    let all: Vec<&Kernel> = model.kernels.iter().filter(|k| !k.assertions.is_empty()).collect();
    let text = match hit.found.pattern.id {
        "ioob" => hit.found.text.trim_end_matches(['`', '\'', '"']).trim_end_matches(" failed").to_owned(),
        "device-assert" => hit.found.group(1).unwrap_or_default().to_owned(),
        _ => {
            for kernel in all.iter().take(8) {
                said.say(Witness::Kernel, format!("{} holds: {}", kernel.name, kernel.assertions.join("; ")));
            }
            if all.len() == 1 && all.iter().all(|k| k.assertions.len() == 1) {
                let (kernel, text) = (all.first().copied(), all.first().and_then(|k| k.assertions.first()).cloned());
                if let (Some(kernel), Some(text)) = (kernel, text) {
                    said.say(Witness::Inferred, "it is the only assertion in the artefact's own kernels");
                    trace(case, model, &[(kernel, 0)], &text, &mut said);
                }
            } else if all.is_empty() {
                said.say(Witness::Kernel, "no assertion is known in the artefact's own kernels: the failing kernel may belong to an operator of torch");
            }
            return said;
        }
    };
    let text = text.trim_end_matches([')', ',']).to_owned();
    let text = if text.matches('(').count() > text.matches(')').count() { format!("{text})") } else { text };
    let is_cut = Assertion::from_text(&text).is_none_or(|a| a.upper.is_none());
    let found = holders(model, &text, is_cut);
    if found.is_empty() {
        if all.is_empty() {
            said.say(
                Witness::Kernel,
                "no assertion text could be read in the kernels of this artefact, so which kernel it is stays open",
            );
            bound_by_name(case, model, &text, &mut said);
        } else {
            said.say(
                Witness::Kernel,
                "no kernel of this artefact holds this assertion: the log comes from another artefact",
            );
            said.sentence =
                Some("This log does not come from this artefact: none of its kernels holds that assertion.".to_owned());
            said.fix = Some("Give the artefact that was loaded when the log was written.".to_owned());
        }
        return said;
    }
    if is_cut {
        said.say(
            Witness::Log,
            "the text is cut off in the log; every kernel with a text that begins like this is listed",
        );
    }
    trace(case, model, &found, &text, &mut said);
    fault::kernel_in_frames(case, &mut said);
    said
}

/// Without the kernels' texts: what the bound would be in each kernel, by the order of its arguments.
fn bound_by_name<'a>(case: &Case<'a>, model: &'a Model, text: &str, said: &mut Diagnosis) {
    let Some(assertion) = Assertion::from_text(text) else { return };
    let Some(upper) = assertion.upper else { return };
    let possible = |k: &&Kernel| assertions::origins(k, upper, None).iter().any(|o| o.bound.is_ok());
    let kernels: Vec<&Kernel> = model.kernels.iter().filter(possible).collect();
    let mut dims: Vec<(&TensorSpec, usize)> = Vec::new();
    for kernel in kernels.iter().take(8) {
        said.say(Witness::Inferred, format!("if it is {}:", kernel.name));
        for origin in assertions::origins(kernel, upper, None) {
            let verdict = follow(case, model, kernel, upper, &origin, said);
            dims.extend(verdict.dims);
        }
        index_source(case, kernel, assertion.index, said);
    }
    if let [kernel] = kernels.as_slice() {
        let bound = assertions::origins(kernel, upper, None).into_iter().find_map(|o| o.bound.ok());
        said.sentence = Some(sentence(model, Some(kernel), &dims, bound.as_ref(), text));
        said.fix = Some(remedies(case, model, &dims, Some(kernel)));
        return;
    }
    if kernels.is_empty() {
        said.say(Witness::Inferred, format!("the index has to stay below `{upper}`, one of the sizes of the inputs"));
        for range in model.symbols.iter().take(12) {
            said.say(
                Witness::Source,
                format!("{} is {}", span(&range.symbol, range.min, range.max), range.subjects.join(", ")),
            );
        }
    }
    said.fix = Some(remedies(case, model, &dims, None));
}

fn span(name: &str, min: Option<i64>, max: Option<i64>) -> String {
    let end = |b: Option<i64>| b.map_or_else(String::new, |v| v.to_string());
    format!("`{name}` ({}..{})", end(min), end(max))
}

/// What one launch shows about the bound.
#[derive(Clone)]
struct Verdict<'a> {
    /// dims that make the bound: input and dim
    dims: Vec<(&'a TensorSpec, usize)>,
    bound: Option<Expr>,
}

fn trace<'a>(case: &Case<'a>, model: &'a Model, found: &[(&'a Kernel, usize)], text: &str, said: &mut Diagnosis) {
    let mut verdicts: Vec<(&Kernel, Verdict)> = Vec::new();
    for (kernel, position) in found {
        let held = kernel.assertions.get(*position).map_or(text, String::as_str);
        let Some(parsed) = Assertion::from_text(held) else {
            said.say(Witness::Kernel, format!("{} holds: {held}", kernel.name));
            continue;
        };
        let ops = if kernel.source_ops.is_empty() {
            String::new()
        } else {
            format!(", made from {}", kernel.source_ops.join(", "))
        };
        said.say(Witness::Kernel, format!("{} holds `{held}`{ops}", kernel.name));
        let Some(upper) = parsed.upper else { continue };
        for origin in assertions::origins(kernel, upper, Some(*position)) {
            verdicts.push((kernel, follow(case, model, kernel, upper, &origin, said)));
        }
        index_source(case, kernel, parsed.index, said);
    }
    let first = verdicts.iter().find(|(_, v)| !v.dims.is_empty()).or(verdicts.first());
    let dims: Vec<(&TensorSpec, usize)> = first.map(|(_, v)| v.dims.clone()).unwrap_or_default();
    let kernel = first.map(|(k, _)| *k).or(found.first().map(|f| f.0));
    let bound = first.and_then(|(_, v)| v.bound.clone());
    said.sentence = Some(sentence(model, kernel, &dims, bound.as_ref(), text));
    said.fix = Some(remedies(case, model, &dims, kernel));
}

fn sentence(
    model: &Model,
    kernel: Option<&Kernel>,
    dims: &[(&TensorSpec, usize)],
    bound: Option<&Expr>,
    text: &str,
) -> String {
    let kernel_name = kernel.map_or("A kernel", |k| k.name.as_str());
    let subject = match dims {
        [] => None,
        [(spec, dim)] => Some(format!("dim {dim} of {}", input_name(spec))),
        many => {
            Some(many.iter().map(|(s, d)| format!("dim {d} of {}", input_name(s))).collect::<Vec<_>>().join(" and "))
        }
    };
    match (bound, subject) {
        (Some(Expr::Int(size)), _) => format!(
            "{kernel_name} got an index outside 0..{size}: that size is fixed, so an input holds an index that is too large or negative."
        ),
        (Some(bound), Some(subject)) => {
            let (min, max) = assertions::range(bound, model);
            let ends = format!(
                "{}..{}",
                min.map_or_else(String::new, |m| m.to_string()),
                max.map_or_else(String::new, |m| m.to_string())
            );
            let verdict = if min.is_none_or(|m| m <= 0) {
                "which may be 0 or too small: every index is then out of bounds".to_owned()
            } else {
                format!(
                    "compiled for {ends}: smaller, above all empty, inputs make every index out of bounds, and the check that would refuse them is off by default"
                )
            };
            format!("{kernel_name} got an index that is not below `{bound}`, the size of {subject}, {verdict}.")
        }
        (Some(bound), None) => format!("{kernel_name} got an index that is not below `{bound}`."),
        (None, _) => format!("{kernel_name} failed the assertion `{text}`."),
    }
}

/// One launch: the argument behind `ksM`, the symbols in it, the inputs that define them, their ranges.
fn follow<'a>(
    case: &Case<'a>,
    model: &'a Model,
    kernel: &Kernel,
    upper: &str,
    origin: &BoundOrigin,
    said: &mut Diagnosis,
) -> Verdict<'a> {
    let at = origin.launch.and_then(|l| l.line);
    let mut add = |witness: Witness, text: String| {
        let evidence = Evidence::new(witness, text);
        said.evidence.push(match at {
            Some(line) => evidence.at_line(line),
            None => evidence,
        });
    };
    for (name, argument) in &origin.arguments {
        add(Witness::Source, format!("`{name}` of {} is `{argument}` where it is launched", kernel.name));
    }
    if origin.is_by_order {
        add(
            Witness::Inferred,
            "no source names the parameters; sizes are passed behind the tensors, in the order of their numbers"
                .to_owned(),
        );
    }
    let bound = match &origin.bound {
        Ok(bound) => bound.clone(),
        Err(reason) => {
            add(Witness::Inferred, format!("following the bound `{upper}` stopped: {reason}"));
            return Verdict { dims: Vec::new(), bound: None };
        }
    };
    let mut dims = Vec::new();
    for symbol in bound.symbols() {
        let Some(range) = model.symbols.iter().find(|s| s.symbol == symbol) else {
            let data = symbol.starts_with('u');
            add(
                Witness::Inferred,
                if data {
                    format!("`{symbol}` is computed from data while the model runs")
                } else {
                    format!("`{symbol}` is not the size of an input")
                },
            );
            continue;
        };
        for subject in &range.subjects {
            if let Some((spec, dim)) = locate(case, subject) {
                add(
                    Witness::Source,
                    format!(
                        "`{symbol}` is dim {dim} of {}; range {}",
                        input_name(spec),
                        span(symbol, range.min, range.max)
                    ),
                );
                dims.push((spec, dim));
            }
        }
    }
    Verdict { dims, bound: Some(bound) }
}

/// The input and dim of `inputs[1].shape[0]` (with or without `models[N].`).
fn locate<'a>(case: &Case<'a>, subject: &str) -> Option<(&'a TensorSpec, usize)> {
    let rest = subject.split_once("inputs[")?.1;
    let (input, rest) = rest.split_once("].shape[")?;
    let dim = rest.split(']').next()?.parse().ok()?;
    Some((case.inputs().get(input.parse::<usize>().ok()?)?, dim))
}

/// Whether the index comes from data, and which input may hold it.
fn index_source(case: &Case, kernel: &Kernel, index: &str, said: &mut Diagnosis) {
    let integer = |s: &&TensorSpec| {
        s.dtype
            .as_ref()
            .is_some_and(|d| [DType::INT64].contains(d) || matches!(d.name(), "int32" | "int16" | "int8" | "uint8"))
    };
    let passed = |s: &&TensorSpec| {
        let name = s.name.as_deref().unwrap_or_default();
        kernel.launches.iter().any(|l| l.arguments.iter().any(|a| assertions::identifiers(a).contains(&name)))
    };
    let direct: Vec<&TensorSpec> = case.inputs().iter().filter(integer).filter(passed).collect();
    if !direct.is_empty() {
        let names: Vec<String> = direct.iter().map(|s| input_name(s)).collect();
        said.say(
            Witness::Source,
            format!("the index `{index}` is computed from data: the kernel reads the integers of {}", names.join(", ")),
        );
        return;
    }
    let others: Vec<String> = case.inputs().iter().filter(integer).map(input_name).collect();
    if others.is_empty() {
        said.say(
            Witness::Source,
            format!("no input holds integers: the index `{index}` is computed by the model itself"),
        );
    } else {
        said.say(
            Witness::Source,
            format!(
                "the index `{index}` is computed before this kernel; inputs that hold integers: {}",
                others.join(", ")
            ),
        );
    }
}

/// The three remedies, with this model's names.
fn remedies(case: &Case, model: &Model, dims: &[(&TensorSpec, usize)], kernel: Option<&Kernel>) -> String {
    let subject = match dims.first() {
        Some((spec, dim)) => format!(
            "{}.shape[{dim}]",
            spec.path.as_deref().map_or_else(|| format!("inputs[{}]", spec.index), str::to_owned)
        ),
        None => "the size behind the bound".to_owned(),
    };
    let ops =
        kernel.map(|k| k.source_ops.join(", ")).filter(|o| !o.is_empty()).unwrap_or_else(|| "the indexing".to_owned());
    let holders: Vec<String> = case
        .inputs()
        .iter()
        .filter(|s| s.dtype.as_ref().is_some_and(|d| d.name().starts_with("int")))
        .map(input_name)
        .collect();
    let indices =
        if holders.is_empty() { "the indices".to_owned() } else { format!("the indices in {}", holders.join(", ")) };
    format!(
        "1. At the call: never give {subject} = 0 (skip the call, or pad to one element), and keep {indices} within bounds. 2. In the model ({ops}): clamp the index (`idx.clamp(0, n - 1)`) or mask the empty case before indexing, so that no out-of-bounds index is computed even where its result is thrown away. 3. At export: state the smallest size that can occur (`Dim(min=1)` for {subject}) so that the range is in the checks, and run with them on. {}",
        check_switch(model)
    )
}
