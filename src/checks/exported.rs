//! The compiled model against the exported program that it was compiled from: what was promised and is not there.

use super::codes::{Code, Page};
use super::inputs::bounds_text;
use super::{Judgement, Subject};
use crate::model::{Dim, Exported, TensorSpec};
use crate::report::{Finding, Level, Outcome};

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
    for (compiled, exported) in inputs.iter().zip(&program.inputs) {
        let shapes = compiled.shape.iter().flatten().zip(exported.shape.iter().flatten()).enumerate();
        for (d, (ours, promised)) in shapes {
            if let (Some(ours), Some(promised)) = (ours, promised) {
                judge_dim(subject, compiled, d, ours, promised, judgement);
            }
        }
    }
    for guard in program.guards.iter().filter(|guard| !is_enforced(&guard.code)) {
        judgement.push(
            Finding::new(
                "export-guard-unenforced",
                Outcome::Warn,
                subject.path("inputs"),
                format!("the exported program asks for {guard}; the compiled code has no check for it"),
            )
            .fix("check it in the code that calls the model"),
        );
    }
}

/// Why `program` cannot be the one.
fn mismatch(program: &Exported, inputs: &[TensorSpec]) -> Option<String> {
    if program.inputs.len() != inputs.len() {
        return Some(format!(
            "the exported program takes {} inputs, the compiled model {}",
            program.inputs.len(),
            inputs.len()
        ));
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
            _ => None,
        }
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
