//! Damage that the readers met: reading went on, judging must not pretend that nothing is missing.

use super::Judgement;
use super::codes::{Code, Page};
use crate::model::{Artifact, Phase};
use crate::report::{DAMAGED, Finding, Level, Outcome};
use crate::target::LoadConfig;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: DAMAGED,
        summary: "a part of the file that checks need is damaged",
        level: Level::Deny,
        page: Page {
            compares: "Sizes, offsets and texts of the file with each other; each contradiction that hides a fact is one \
                       finding with member, section and offset. Checksums of members are not computed: weights are \
                       never read.",
            matters: "A cut or altered artefact fails at load with an unspecific error, or loads and misbehaves. What \
                      cannot be read cannot be vouched for, so the verdict is `unreadable` (exit 3).",
            reports: "Cut uploads, Git LFS pointers and hand-edited packages in PyTorch's issue tracker, class C14 of \
                      the failure study.",
            fix: "Copy or download the artefact again and compare its checksum; if it is the same, compile it again.",
        },
    },
    Code {
        id: "code-unread",
        summary: "the machine code could not be followed, so that nothing vouches for what the file claims",
        level: Level::Deny,
        page: Page {
            compares: "The library's own functions, interpreted up to a model that was made and asked, with what its source \
                       and metadata claim.",
            matters: "Code that faults or does not end when the model is created will do so when it is loaded, or it is \
                      code that is not modelled here. Either way the claims are unchecked.",
            reports: "Zeroed and cut code segments, relocations and stubs; builds with instructions that are not modelled.",
            fix: "Compare the file's checksum with the original. If it is whole, allow it with \
                  `--allow-unknown=code-unread`, or leave the code out with `--no-interpret`.",
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

/// Code whose model cannot even be created is no witness for what source and metadata claim.
fn check_code(artifact: &Artifact, judgement: &mut Judgement) {
    for index in 0..artifact.models.len() {
        let subject = format!("models[{index}]");
        let stops = |phase| artifact.unknown.iter().find(|u| u.fact == subject && u.stopped_in == Some(phase));
        let phases = [Phase::Loading, Phase::Creation, Phase::Initialisers, Phase::Getters];
        if let Some(unknown) = phases.into_iter().find_map(stops) {
            let message = format!("what the file claims is not confirmed: {}", unknown.reason);
            judgement.push(Finding::new("code-unread", Outcome::Unknown, subject, message));
        }
    }
}

/// One finding per problem of the readers.
pub fn check(artifact: &Artifact, _: &LoadConfig, judgement: &mut Judgement) {
    check_code(artifact, judgement);
    for (index, problem) in artifact.problems.iter().enumerate() {
        let (code, outcome) =
            if problem.affects.is_empty() { ("artifact-odd", Outcome::Warn) } else { (DAMAGED, Outcome::Fail) };
        judgement.push(Finding::new(code, outcome, format!("problems[{index}]"), problem.to_string()));
    }
}
