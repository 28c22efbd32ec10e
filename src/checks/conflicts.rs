//! Witnesses of one file that contradict each other. `assemble` finds them; the level is decided here.

use super::codes::{self, Code, Page};
use super::{Judgement, Subject};
use crate::report::{Finding, Level, Outcome};

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "device-conflict",
        summary: "parts of the file disagree about the device it was compiled for",
        level: Level::Deny,
        page: Page {
            compares: "Metadata, generated source, imports, kernels and devices of constants with each other.",
            matters: "The loader picks its runner by the metadata and the code runs on what it was compiled for: the \
                      load fails, or a host pointer reaches a GPU kernel.",
            reports: "Class C01 of the failure study, pytorch/torchchat issues 709 and 518.",
            fix: "Compile and package again for one device; do not edit metadata by hand or mix parts of two builds.",
        },
    },
    Code {
        id: "source-differs-from-code",
        summary: "the shipped source and the machine code state different facts",
        level: Level::Deny,
        page: Page {
            compares: "What the generated source states about inputs, outputs and constants with what the machine code \
                       of the library does.",
            matters: "The code runs, the source is only read: whoever trusts the source calls the model wrongly.",
            reports: "Packages that were put together from two builds; see also the package layout rules of \
                      torch/csrc/inductor/aoti_package.",
            fix: "Compile and package again in one run.",
        },
    },
    Code {
        id: "source-stale",
        summary: "a source file beside the library does not belong to it and was not used",
        level: Level::Warn,
        page: Page {
            compares: "Stem, counts and names of a generated source beside a bare library with those of the library.",
            matters: "A stale source describes another build; its ranges and names would mislead.",
            reports: "Build folders that keep the sources of earlier compilations.",
            fix: "Remove the file, or put the source of this very build beside the library.",
        },
    },
    Code {
        id: "witness-conflict",
        summary: "parts of the file disagree about a fact",
        level: Level::Deny,
        page: Page {
            compares: "Every statement about one fact with the others; code is believed before claims.",
            matters: "One of the parts belongs to another build, and it is not known which the loader will follow.",
            reports: "Packages that were put together or edited after compilation, class C14 of the failure study.",
            fix: "Compile and package again in one run.",
        },
    },
];

/// One finding per conflict, with both sides.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    for conflict in &subject.model.conflicts {
        let code = codes::find(&conflict.code).map_or("witness-conflict", |code| code.id);
        let say = |e: &crate::model::Evidence| match &e.member {
            Some(member) => format!("{} ({member})", e.detail),
            None => e.detail.clone(),
        };
        let believed = conflict.sides.first().map(say).unwrap_or_default();
        let others: Vec<String> = conflict.sides.iter().skip(1).map(say).collect();
        let outcome = match codes::find(code).map(|code| code.level) {
            Some(Level::Deny) => Outcome::Fail,
            _ => Outcome::Warn,
        };
        judgement.push(
            Finding::new(
                code,
                outcome,
                subject.path(&conflict.subject),
                format!("{}: {believed}, but {}", conflict.subject, others.join("; ")),
            )
            .sides(&believed, others.join("; "))
            .evidence(conflict.sides.iter().cloned()),
        );
    }
    let device = subject.model.conflicts.iter().any(|c| c.code == "device-conflict");
    if !device && subject.model.device_evidence.len() > 1 {
        judgement.push(
            Finding::new("device-conflict", Outcome::Pass, subject.path("device"), "all parts name the same device")
                .evidence(subject.model.device_evidence.iter().cloned()),
        );
    }
}
