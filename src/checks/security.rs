//! Does it do what a model has no business with?

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::{Artifact, Member, Role, WeightsLocation};
use crate::report::{Finding, Level, Outcome};
use crate::target::LoadConfig;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "security-suspicious-import",
        summary: "the library imports functions that start processes, use the network or load code",
        level: Level::Warn,
        page: Page {
            compares: "The imported C functions with a list of those that start processes, use the network, load further code \
                       or change files, none of which torch's generated code uses (a Triton CPU model of 2.13 and newer \
                       uses dlopen).",
            matters: "Opening a library runs its code with all rights of the process. Such imports are a reason to ask where \
                      the file comes from; their absence proves nothing.",
            reports: "Imports of artefacts of 2.2 to 2.15 on Linux, macOS and Windows.",
            fix: "Load only what you built yourself; find out which object of the link brought the import.",
        },
    },
    Code {
        id: "security-pickle",
        summary: "the package holds pickled data",
        level: Level::Warn,
        page: Page {
            compares: "Members whose names or roles say that they are read with Python's pickle.",
            matters: "Unpickling runs what the file says. torch reads such members with `weights_only=True` in most places, not \
                      in all.",
            reports: "torch/export/pt2_archive and torch/_inductor/package of 2.8 to 2.15.",
            fix: "Package the weights as a blob or inside the library, or load only what you built yourself.",
        },
    },
];

/// Endings of members that are read with pickle.
const PICKLED: &[&str] = &[".pkl", ".pickle", ".pt", ".pth"];
/// Names in one message.
const NAMED: usize = 6;

/// Judges one model's library.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let requires = &subject.model.requires;
    let path = subject.path("requires.suspicious_imports");
    if !requires.suspicious_imports.is_empty() {
        let shown = requires.suspicious_imports.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = requires.suspicious_imports.len().saturating_sub(NAMED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!("imports {shown}{rest}");
        judgement.push(Finding::new("security-suspicious-import", Outcome::Warn, path, message));
    } else if !requires.other_imports.is_empty() {
        let message = "imports nothing that starts processes, uses the network or loads code";
        judgement.push(Finding::new("security-suspicious-import", Outcome::Pass, path, message));
    }
}

/// Judges the members of a package.
pub fn check_artifact(artifact: &Artifact, _: &LoadConfig, judgement: &mut Judgement) {
    let Some(archive) = &artifact.archive else { return };
    let has_pickled_weights = artifact.models.iter().any(|m| m.weights.location == Some(WeightsLocation::Pickled));
    let is_pickled = |m: &&Member| {
        let ending = PICKLED.iter().any(|ending| m.name.ends_with(ending));
        ending || has_pickled_weights && m.role == Role::Weights && m.name.contains("data/weights/")
    };
    let pickled: Vec<&str> = archive.members.iter().filter(is_pickled).map(|m| m.name.as_str()).collect();
    judgement.push(match pickled.first() {
        None => Finding::new("security-pickle", Outcome::Pass, "archive.members", "holds no pickled members"),
        Some(first) => {
            let message = match pickled.len() {
                1 => format!("{first} is read with pickle"),
                n => format!("{first} and {} more members are read with pickle", n - 1),
            };
            Finding::new("security-pickle", Outcome::Warn, "archive.members", message)
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::sample::{library, outcome};
    use super::*;
    use Outcome::{Pass, Warn};

    #[test]
    fn imports_outside_the_known_set_are_told() {
        let code = "security-suspicious-import";
        let mut model = library("2.15.0-cpu-mlp_dynamic.so");
        assert_eq!(outcome(check, &model, &LoadConfig::default(), code), [Pass]);
        model.models[0].requires.suspicious_imports.push("socket (uses the network)".into());
        assert_eq!(outcome(check, &model, &LoadConfig::default(), code), [Warn]);
    }

    #[test]
    fn pickled_members_are_told() {
        let judged = |name: &str| {
            let mut judgement = Judgement::default();
            check_artifact(&library(name), &LoadConfig::default(), &mut judgement);
            judgement.findings.iter().map(|f| f.outcome).collect::<Vec<_>>()
        };
        assert_eq!(judged("2.15.0-cpu-mlp_dynamic.pt2"), [Pass]);
        assert_eq!(judged("2.15.0-cpu-pickle_weights.pt2"), [Warn]);
        assert!(judged("2.15.0-cpu-mlp_dynamic.so").is_empty());
    }
}
