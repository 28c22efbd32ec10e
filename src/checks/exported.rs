//! The compiled model against the exported program that it was compiled from: what was promised and is not there.

use super::codes::{Code, Page};
use super::inputs::bounds_text;
use super::inputs::shapes::Shapes;
use super::sizes::Holds;
use super::{Judgement, Subject};
use crate::model::{Condition, Dim, Exported, Expr, Guard, TensorSpec};
use crate::report::{Finding, Level, Outcome};
use std::collections::BTreeMap;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "export-mismatch",
        summary: "the model was not compiled from that exported program",
        level: Level::Deny,
        page: Page {
            compares: "Number, dtype and rank of the inputs of the exported program with those of the compiled model.",
            matters: "Ranges and guards of another program say nothing about this model.",
            reports: "Packages that hold an exported program and a compiled model of different origin.",
            fix: "Give the program that this model was compiled from.",
        },
    },
    Code {
        id: "export-dim-specialized",
        summary: "a dim is dynamic in the exported program and fixed in the compiled code",
        level: Level::Deny,
        page: Page {
            compares: "Each dynamic dim of the exported program with the same dim of the compiled model.",
            matters: "A pass of the compiler fixed the dim at the example's size without a word; other sizes give wrong \
                      numbers or an illegal access.",
            reports: "pytorch issue 150364.",
            fix: "Find the pass that specialised it (TORCH_LOGS=dynamic), or export the dim as static on purpose.",
        },
    },
    Code {
        id: "export-dim-narrowed",
        summary: "a dim takes fewer sizes than the exported program promises",
        level: Level::Deny,
        page: Page {
            compares: "The range constraints of the exported program with the bounds in the compiled checks.",
            matters: "Sizes that the author declared are refused, or run without promise. A lower bound of 2 where 0 or \
                      1 was declared is the usual 0/1 specialisation and only a warning.",
            reports: "deepmd-kit pull request 5407, pytorch pull requests 169430 and 196131.",
            fix: "Compile with an example inside the wanted range, and for 0 and 1 with \
                  `aot_inductor.check_lowerbound=False` (2.10 and newer).",
        },
    },
    Code {
        id: "export-guard-broken",
        summary: "given sizes break a guard of the exported program",
        level: Level::Deny,
        page: Page {
            compares: "Guards of the exported program, evaluated with the sizes given for the inputs.",
            matters: "The compiled code has no such check: it computes on wrong memory without a message.",
            reports: "Measured with 2.15: a model that views (n, 5) as (n/4, 4, 5) has no check for n % 4.",
            fix: "Pass sizes that keep the guard, or export a model without it.",
        },
    },
    Code {
        id: "export-guard-unenforced",
        summary: "the exported program has a guard that the compiled code does not check",
        level: Level::Warn,
        page: Page {
            compares: "Guards of the exported program with what the compiled checks can express: fixed sizes, bounds, \
                       equal dims.",
            matters: "Divisibility and comparisons between dims are lost in compilation; inputs that break them run \
                      silently.",
            reports: "Measured with 2.15: a model that views (n, 5) as (n/4, 4, 5) has no check for n % 4.",
            fix: "Check it in the code that calls the model.",
        },
    },
];

/// Compares with the program given, or with the one in the same file when it fits the model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let Some(inputs) = &subject.model.inputs else { return };
    let program = match (&subject.config.exported, &subject.artifact.exported) {
        (Some(given), _) => given,
        // a package may hold the program of another model: it is not asked for, so it only speaks when it fits
        (None, Some(packed)) if mismatch(packed, inputs).is_none() => packed,
        _ => return,
    };
    if let Some(message) = mismatch(program, inputs) {
        judgement.push(
            Finding::new("export-mismatch", Outcome::Fail, subject.path("inputs"), message)
                .fix("give the program that this model was compiled from"),
        );
        return;
    }
    let message = format!("the model fits the exported program {}", program.name);
    judgement.push(Finding::new("export-mismatch", Outcome::Pass, subject.path("inputs"), message));
    for (compiled, exported) in inputs.iter().zip(&program.inputs) {
        let shapes = compiled.shape.iter().flatten().zip(exported.shape.iter().flatten()).enumerate();
        for (d, (ours, promised)) in shapes {
            if let (Some(ours), Some(promised)) = (ours, promised) {
                judge_dim(subject, compiled, d, ours, promised, judgement);
            }
        }
    }
    let tensors = subject.config.inputs.resolve(inputs).tensors;
    let shapes = Shapes::new(inputs, &tensors, &subject.config.inputs.dims);
    for guard in &program.guards {
        judge_guard(subject, guard, &shapes, judgement);
    }
}

/// With sizes given a guard is evaluated for all of them; without, the ones that nothing checks are named.
fn judge_guard(subject: &Subject, guard: &Guard, shapes: &Shapes, judgement: &mut Judgement) {
    let path = subject.path("inputs");
    let places = guard.condition.as_ref().map(Condition::names).unwrap_or_default();
    let sizes: Option<BTreeMap<&str, Expr>> =
        places.iter().map(|place| Some((*place, shapes.size_at(place)?))).collect();
    if let (Some(condition), Some(sizes)) = (&guard.condition, sizes.filter(|sizes| !sizes.is_empty())) {
        let mut names: Vec<&str> = sizes.values().flat_map(Expr::symbols).collect();
        names.sort_unstable();
        names.dedup();
        let claim = |value: &dyn Fn(&str) -> Option<i64>| condition.eval(&|place| sizes.get(place)?.eval(value));
        judgement.push(match shapes.variables.always(&names, &claim) {
            Holds::Always => Finding::new("export-guard-broken", Outcome::Pass, path, format!("{guard} holds")),
            Holds::Not { part, .. } => {
                let part = part.map(|part| format!(" ({part})")).unwrap_or_default();
                let message = format!("the exported program asks for {guard}, which the given sizes break{part}");
                Finding::new("export-guard-broken", Outcome::Fail, path, message)
                    .fix("pass sizes that keep it; the compiled code has no check for it")
            }
            Holds::Undecided => {
                let message = format!("cannot settle whether the given sizes always keep {guard}");
                Finding::new("export-guard-broken", Outcome::Unknown, path, message)
            }
        });
    } else if !is_enforced(&guard.code) {
        judgement.push(
            Finding::new(
                "export-guard-unenforced",
                Outcome::Warn,
                path,
                format!("the exported program asks for {guard}; the compiled code has no check for it"),
            )
            .fix("check it in the code that calls the model"),
        );
    }
}

/// Why `program` cannot be the one.
fn mismatch(program: &Exported, inputs: &[TensorSpec]) -> Option<String> {
    if program.inputs.len() != inputs.len() {
        let (theirs, ours) = (program.inputs.len(), inputs.len());
        return Some(format!("the exported program has another number of inputs: {theirs}, the compiled model {ours}"));
    }
    inputs.iter().zip(&program.inputs).find_map(|(ours, theirs)| {
        let name = ours.called("input");
        if let (Some(a), Some(b)) = (&ours.dtype, &theirs.dtype)
            && a != b
        {
            return Some(format!("{name} is {b} in the exported program and {a} in the compiled model"));
        }
        match (ours.rank, theirs.rank) {
            (Some(a), Some(b)) if a != b => {
                Some(format!("{name} has {b} dims in the exported program and {a} in the compiled model"))
            }
            _ => other_sizes(ours, theirs),
        }
    })
}

/// Compilation may fix a dim, and never frees one: a fixed size of the program stays as it is.
fn other_sizes(ours: &TensorSpec, theirs: &TensorSpec) -> Option<String> {
    let dims = ours.shape.iter().flatten().zip(theirs.shape.iter().flatten()).enumerate();
    dims.filter_map(|(d, (ours, theirs))| Some((d, ours.as_ref()?, theirs.as_ref()?.as_static()?)))
        .find(|(_, compiled, size)| compiled.as_static() != Some(*size))
        .map(|(d, compiled, size)| {
            let (min, max) = compiled.bounds();
            let compiled = compiled.as_static().map_or_else(|| bounds_text(min, max), |n| n.to_string());
            let name = ours.called("input");
            format!("{name} dim {d} is fixed at {size} in the exported program and {compiled} in the compiled model")
        })
}

fn judge_dim(subject: &Subject, input: &TensorSpec, d: usize, ours: &Dim, promised: &Dim, judgement: &mut Judgement) {
    let path = subject.path(&format!("inputs[{}].shape[{d}]", input.index));
    let name = input.called("input");
    let (low, high) = promised.bounds();
    if promised.as_static().is_some() {
        return;
    }
    if let Some(size) = ours.as_static() {
        judgement.push(
            Finding::new(
                "export-dim-specialized",
                Outcome::Fail,
                path,
                format!(
                    "{name} dim {d} takes {} in the exported program and only {size} in the code",
                    bounds_text(low, high)
                ),
            )
            .sides(bounds_text(low, high), size)
            .fix("find out what specialised it (TORCH_LOGS=dynamic) and compile again"),
        );
        return;
    }
    let (min, max) = ours.bounds();
    let lower = min.is_some_and(|min| low.unwrap_or(0) < min);
    let upper = max.is_some_and(|max| high.is_none_or(|high| high > max));
    let code = "export-dim-narrowed";
    let message = format!(
        "{name} dim {d} takes {} in the exported program and {} in the code",
        bounds_text(low, high),
        bounds_text(min, max)
    );
    let finding = match (lower, upper, min) {
        (false, false, _) => {
            Finding::new(code, Outcome::Pass, path, format!("{name} dim {d} takes all promised sizes"))
        }
        (true, false, Some(2)) => {
            Finding::new(code, Outcome::Warn, path, format!("{message}: export fixes 0 and 1 by default"))
                .level(Level::Warn)
        }
        _ => Finding::new(code, Outcome::Fail, path, message).fix("compile with an example inside the wanted range"),
    };
    judgement.push(finding.sides(bounds_text(low, high), bounds_text(min, max)));
}

/// A guard that compares one size with a number, or two sizes for equality: the code states it as a fixed size, a
/// bound or a shared symbol. Everything with arithmetic in it is lost.
fn is_enforced(guard: &str) -> bool {
    !guard.contains(['%', '*', '/', '+'])
        && !guard.contains("!=")
        && [" == ", " <= ", " >= ", " < ", " > "].iter().any(|op| {
            guard.split_once(op).is_some_and(|(a, b)| {
                let is_number = |t: &str| t.trim().parse::<i64>().is_ok();
                is_number(a) || is_number(b) || (*op == " == " && a.contains("size()") && b.contains("size()"))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Policy, sample, verify_artifact};
    use crate::model::{Comparison, DType};
    use crate::target::{InputRequests, InputTexts, LoadConfig};

    fn input(dim: Dim) -> TensorSpec {
        TensorSpec { dtype: Some(DType::FLOAT32), rank: Some(1), shape: Some(vec![Some(dim)]), ..TensorSpec::default() }
    }

    fn range(min: i64, max: i64) -> Dim {
        Dim::from_expr(Expr::symbol("s0"), Some(min), Some(max))
    }

    /// Codes that are no pass.
    fn judged(compiled: Dim, promised: Dim, guards: &[Guard], sizes: &str) -> Vec<(&'static str, Outcome)> {
        let mut artifact = sample::cpu();
        artifact.models[0].inputs = Some(vec![input(compiled)]);
        let exported = Exported {
            name: "model".into(),
            torch_version: None,
            inputs: vec![input(promised)],
            outputs: Vec::new(),
            symbols: Vec::new(),
            guards: guards.to_vec(),
        };
        let shape = [sizes.to_owned()];
        let inputs = InputRequests::from_texts(InputTexts { shape: &shape, ..InputTexts::default() }).unwrap();
        let config = LoadConfig { exported: Some(exported), inputs, ..LoadConfig::default() };
        let report = verify_artifact(&artifact, &config, &Policy::default());
        let findings = report.findings.iter().filter(|f| f.code.starts_with("export-") && f.outcome != Outcome::Pass);
        findings.map(|f| (f.code, f.outcome)).collect()
    }

    #[test]
    fn dims_must_take_what_was_promised() {
        assert_eq!(judged(range(2, 64), range(2, 64), &[], "_"), []);
        assert_eq!(judged(Dim::fixed(8), range(2, 64), &[], "_"), [("export-dim-specialized", Outcome::Fail)]);
        assert_eq!(judged(range(2, 15), range(2, 64), &[], "_"), [("export-dim-narrowed", Outcome::Fail)]);
        assert_eq!(judged(range(2, 64), range(1, 64), &[], "_"), [("export-dim-narrowed", Outcome::Warn)]);
        assert_eq!(judged(range(2, 64), Dim::fixed(8), &[], "_"), [("export-mismatch", Outcome::Fail)]);
    }

    #[test]
    fn guards_are_evaluated_where_sizes_are_given() {
        let rows = Expr::symbol("inputs[0].shape[0]");
        let guard = |code: &str, how, left: Expr, right: i64| Guard {
            code: code.to_owned(),
            condition: Some(Condition::Compare(how, left, Expr::Int(right))),
        };
        let guards = [
            guard("L['x'].size()[0] >= 2", Comparison::GreaterOrEqual, rows.clone(), 2),
            guard("L['x'].size()[0] % 4 == 0", Comparison::Equal, rows.modulo(&Expr::Int(4)), 0),
        ];
        let ask = |sizes: &str| judged(range(2, 64), range(2, 64), &guards, sizes);
        assert_eq!(ask("_"), [("export-guard-unenforced", Outcome::Warn)]);
        assert_eq!(ask("8"), []);
        assert_eq!(ask("9"), [("export-guard-broken", Outcome::Fail)]);
        assert_eq!(ask("8..9"), [("export-guard-broken", Outcome::Fail)]);
    }
}
