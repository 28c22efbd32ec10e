//! What a project asks beyond a host: size budgets, an agreed interface. And what its file says about findings
//! that no longer holds.

use super::Judgement;
use super::codes::{Code, Page};
use crate::model::{Artifact, Role};
use crate::report::{Finding, Level, Outcome};
use crate::target::LoadConfig;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "size-budget",
        summary: "the package, its weights or its library are larger than the project allows",
        level: Level::Deny,
        page: Page {
            compares: "Bytes of the file, of all constants and of the model libraries with `budget` of aoti-inspect.toml.",
            matters: "A loader unpacks a package to a temporary folder for each process and copies the constants to \
                      the device: sizes that grow unnoticed end in full disks and out-of-memory errors at load.",
            reports: "Reports of disk and memory use at load, class C15 of the failure study.",
            fix: "Find what grew with `aoti-inspect diff OLD NEW`; raise the budget when it is wanted.",
        },
    },
    Code {
        id: "interface-changed",
        summary: "the artefact's interface is not the one that the project agreed to",
        level: Level::Deny,
        page: Page {
            compares: "A hash over device, inputs, outputs and constants (`interface_id` of `show --json`) with \
                       `interface_id` of aoti-inspect.toml.",
            matters: "A rebuild with another example input, another torch or another export option can narrow a range, \
                      fix a dim or reorder inputs; callers notice at run time, or not at all.",
            reports: "Dims specialised silently in a rebuild, classes C04, C05 and C07 of the failure study.",
            fix: "See what changed with `aoti-inspect diff OLD NEW`; when it is wanted, write the new interface_id.",
        },
    },
    Code {
        id: "waiver-expired",
        summary: "a waiver's last day is over",
        level: Level::Warn,
        page: Page {
            compares: "`until` of each waiver with today's date in UTC.",
            matters: "Its findings count again.",
            reports: "Nothing is reported about it: it is a rule of the project file.",
            fix: "Mend what was waived, or give the waiver a new day and a reason that still holds.",
        },
    },
    Code {
        id: "waiver-unmatched",
        summary: "a waiver covers no finding",
        level: Level::Warn,
        page: Page {
            compares: "Each waiver with the findings of this run.",
            matters: "It may be left over, or misspelt and cover nothing of what it should.",
            reports: "Nothing is reported about it: it is a rule of the project file.",
            fix: "Remove it, or correct its code or path.",
        },
    },
    Code {
        id: "baseline-vanished",
        summary: "a finding of the baseline is gone",
        level: Level::Warn,
        page: Page {
            compares: "The baseline's findings of the artefacts of this run with what was found.",
            matters: "It would be accepted silently if it came back.",
            reports: "Nothing is reported about it: it is a rule of the baseline file.",
            fix: "Write the baseline again with --write-baseline.",
        },
    },
];

/// Budgets and the agreed interface, where the project sets them.
pub fn check(artifact: &Artifact, config: &LoadConfig, out: &mut Judgement) {
    let constants: u64 = artifact.models.iter().flat_map(|m| &m.weights.totals).map(|t| t.size_bytes).sum();
    let members = artifact.archive.iter().flat_map(|a| &a.members);
    let libraries: u64 = match &artifact.archive {
        Some(_) => members.filter(|m| m.role == Role::Library).map(|m| m.size_bytes).sum(),
        None => artifact.size_bytes,
    };
    let sizes = [
        ("package", config.budget.package, Some(artifact.size_bytes), "size_bytes"),
        ("weights", config.budget.weights, weights_known(artifact).then_some(constants), "models"),
        ("library", config.budget.library, Some(libraries), "archive"),
    ];
    for (what, limit, size, subject) in sizes {
        let Some(limit) = limit else { continue };
        out.push(match size {
            None => {
                Finding::new("size-budget", Outcome::Unknown, subject, format!("bytes of the {what} are not known"))
            }
            Some(size) if size > limit => {
                let message = format!("{what}: {size} bytes, {} more than the budget", size - limit);
                Finding::new("size-budget", Outcome::Fail, subject, message).sides(limit, size)
            }
            Some(size) => {
                let message = format!("{what}: {size} bytes, within the budget");
                Finding::new("size-budget", Outcome::Pass, subject, message).sides(limit, size)
            }
        });
    }
    if let Some(agreed) = &config.interface_id {
        out.push(match &artifact.interface_id {
            Some(id) if id == agreed => {
                Finding::new("interface-changed", Outcome::Pass, "interface_id", "the interface is the agreed one")
            }
            Some(id) => {
                let message = "device, inputs, outputs or constants are not the agreed ones";
                Finding::new("interface-changed", Outcome::Fail, "interface_id", message)
                    .sides(agreed, id)
                    .fix("compare with the earlier build: aoti-inspect diff OLD NEW; if it is wanted, write the new id")
            }
            None => Finding::new("interface-changed", Outcome::Unknown, "interface_id", "the interface cannot be read"),
        });
    }
}

fn weights_known(artifact: &Artifact) -> bool {
    artifact.models.iter().all(|m| m.constants.is_some())
}
