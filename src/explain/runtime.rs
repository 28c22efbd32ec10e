//! Without an error: what a load configuration that does not hold leads to at run time, on this artefact's release.

use super::case::Case;
use super::evidence::{check_switch, class_of};
use crate::checks;
use crate::model::{Evidence, Model, Release, Witness};
use crate::report::{Cause, Finding, Outcome};

/// What happens when nothing stops the load: per stem of a finding's code.
struct Consequence {
    stem: &'static str,
    unchecked: &'static str,
}

const CONSEQUENCES: &[Consequence] = &[
    Consequence {
        stem: "input-count",
        unchecked: "the call throws `expected inputs vector size to be …`; this is compared always",
    },
    Consequence {
        stem: "input-dtype",
        unchecked: "kernels read the bytes as the other dtype: silently wrong numbers, or an operator of torch complains",
    },
    Consequence {
        stem: "input-device",
        unchecked: "kernels follow a pointer of the other device: an illegal memory access, a segmentation fault, or silently nothing",
    },
    Consequence {
        stem: "input-stride",
        unchecked: "kernels read the memory in the compiled order: silently wrong numbers",
    },
    Consequence {
        stem: "input-not-contiguous",
        unchecked: "kernels read the memory in the compiled order: silently wrong numbers",
    },
    Consequence {
        stem: "input",
        unchecked: "kernels use the compiled sizes: silently wrong numbers, reads beyond the tensor, or an operator of torch complains about shapes",
    },
    Consequence {
        stem: "device",
        unchecked: "loading or the first run fails: the runner and the constants are on different devices",
    },
    Consequence {
        stem: "gpu",
        unchecked: "the first launch fails with `CUDA driver error: no kernel image is available` (or `device kernel image is invalid`)",
    },
    Consequence {
        stem: "kernel",
        unchecked: "the first run fails with `CUDA driver error: file not found`, which names no file",
    },
    Consequence { stem: "libtorch", unchecked: "dlopen fails with `undefined symbol`" },
    Consequence { stem: "torch", unchecked: "dlopen fails with `undefined symbol`" },
    Consequence { stem: "cpu", unchecked: "the process dies with SIGILL at the first such instruction" },
    Consequence { stem: "isa", unchecked: "the process dies with SIGILL at the first such instruction" },
    Consequence { stem: "host", unchecked: "dlopen fails and names the library or version" },
    Consequence {
        stem: "weights",
        unchecked: "the first run reads null pointers: a segmentation fault, or an illegal memory access",
    },
    Consequence { stem: "operator", unchecked: "loading fails with `Could not find schema for …`" },
    Consequence {
        stem: "assert-empty-range",
        unchecked: "the kernel's assertion `index out of bounds` fails: on CUDA a device-side assert that takes the process with it",
    },
];

/// One cause per thing that does not hold.
pub fn consequences(case: &Case) -> Vec<Cause> {
    let Some(artifact) = case.artifact else { return Vec::new() };
    let judgement = checks::judge(artifact, case.load);
    judgement
        .findings
        .iter()
        .filter(|f| {
            matches!(f.outcome, Outcome::Fail) || (f.outcome == Outcome::Warn && f.code == "assert-empty-range")
        })
        .filter_map(|finding| {
            let known = |c: &&Consequence| finding.code == c.stem || finding.code.starts_with(&format!("{}-", c.stem));
            let consequence = CONSEQUENCES.iter().find(known)?;
            Some(cause(finding, consequence, case))
        })
        .collect()
}

fn cause(finding: &Finding, consequence: &Consequence, case: &Case) -> Cause {
    let model = case.model().map(|(_, m)| m);
    let mut evidence: Vec<Evidence> = vec![Evidence::new(Witness::Inferred, finding.message.clone())];
    evidence.extend(finding.evidence.iter().take(4).cloned());
    let is_input = finding.code.starts_with("input-") && finding.code != "input-count";
    let sentence = match model {
        Some(model) if is_input && has_checks(model) => format!(
            "{}: with the input checks off (the default) {}; with them on the run is refused with a message that names the input.",
            finding.message.trim_end_matches('.'),
            consequence.unchecked
        ),
        Some(model) if is_input && is_before(model, Release::new(2, 7)) => format!(
            "{}: this artefact has no input checks (torch before 2.7), so {}.",
            finding.message.trim_end_matches('.'),
            consequence.unchecked
        ),
        _ => format!("{}: {}.", finding.message.trim_end_matches('.'), consequence.unchecked),
    };
    let mut fix = finding.fix.clone().unwrap_or_default();
    if let Some(model) = model.filter(|_| is_input) {
        fix = format!("{fix} {}", check_switch(model)).trim().to_owned();
    }
    Cause {
        rank: 0,
        pattern: finding.code.to_owned(),
        class: class_of(finding.code).unwrap_or("C23").to_owned(),
        line: None,
        sentence,
        evidence,
        fix: Some(fix).filter(|f| !f.is_empty()),
    }
}

fn has_checks(model: &Model) -> bool {
    model.checks.as_ref().is_some_and(|c| c.compiled_in && c.enabled_by.is_some())
}

fn is_before(model: &Model, release: Release) -> bool {
    model.compiled_by.torch_max.is_some_and(|r| r < release)
}
