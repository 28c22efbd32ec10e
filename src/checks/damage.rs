//! Damage that the readers met: reading went on, judging must not pretend that nothing is missing.

use super::Judgement;
use super::codes::{Code, Page};
use crate::model::Artifact;
use crate::report::{DAMAGED, Finding, Level, Outcome};
use crate::target::LoadConfig;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: DAMAGED,
        summary: "a part of the file that checks need is damaged",
        level: Level::Deny,
        page: Page {
            compares: "Sizes, offsets, checksums and texts of the file with each other; each contradiction that hides a \
                       fact is one finding with member, section and offset.",
            matters: "A cut or altered artefact fails at load with an unspecific error, or loads and misbehaves. What \
                      cannot be read cannot be vouched for, so the verdict is `unreadable` (exit 3).",
            reports: "Cut uploads, Git LFS pointers and hand-edited packages in PyTorch's issue tracker, class C14 of \
                      the failure study.",
            fix: "Copy or download the artefact again and compare its checksum; if it is the same, compile it again.",
        },
    },
    Code {
        id: "artifact-odd",
        summary: "the file is readable and unusual in a way that other readers may take amiss",
        level: Level::Warn,
        page: Page {
            compares: "The form of the file with what torch writes; nothing that a check needs is missing.",
            matters: "Loaders of other releases, or other tools, may read such a file differently.",
            reports: "Packages changed by zip tools and by hand; see the package layout rules of \
                      torch/csrc/inductor/aoti_package.",
            fix: "Write the package with `torch._inductor.aoti_compile_and_package` and leave it as it is.",
        },
    },
];

/// One finding per problem of the readers.
pub fn check(artifact: &Artifact, _: &LoadConfig, judgement: &mut Judgement) {
    for (index, problem) in artifact.problems.iter().enumerate() {
        let place = problem.place.to_string();
        let separator = if place.is_empty() { "" } else { ": " };
        let message = format!("{place}{separator}{}", problem.message);
        let (code, outcome) =
            if problem.affects.is_empty() { ("artifact-odd", Outcome::Warn) } else { (DAMAGED, Outcome::Fail) };
        judgement.push(Finding::new(code, outcome, format!("problems[{index}]"), message));
    }
}
