//! Output formats: each file writes one report, or one list of artefacts, to the writer it is given.

pub mod csv;
pub mod escape;
pub mod github;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub mod severity;
pub mod text;

use crate::model::word;
use crate::report::{ArtifactReport, Change, Grade, Outcome, Report};
use severity::{Severity, severity};

/// The last line per artefact, the same in every text-like format, made to be searched for:
/// `FAIL ranker.pt2: 1 failed, 0 unknown, 11 passed`.
pub fn verdict_line(artifact: &ArtifactReport) -> String {
    let verdict = word(&artifact.verdict).to_uppercase();
    if let Some(error) = &artifact.error {
        return format!("{verdict} {}: {error}", artifact.path);
    }
    if artifact.findings.is_empty()
        && let Some(first) = artifact.causes.first()
    {
        let verdict = if artifact.verdict == crate::report::Verdict::Pass { "RECOGNISED" } else { "NOT RECOGNISED" };
        return format!("{verdict} {}: {} {}", artifact.path, first.class, first.pattern);
    }
    if !artifact.changes.is_empty() {
        let count = |grade| artifact.changes.iter().filter(|c| c.grade == grade).count();
        let (breaking, compatible, cosmetic) =
            (count(Grade::Breaking), count(Grade::Compatible), count(Grade::Cosmetic));
        return format!(
            "{verdict} {}: {breaking} breaking, {compatible} compatible, {cosmetic} cosmetic",
            artifact.path
        );
    }
    let count = |wanted: &dyn Fn(Outcome, Severity) -> bool| {
        artifact.findings.iter().filter(|f| wanted(f.outcome, severity(f))).count()
    };
    let failed = count(&|outcome, severity| severity == Severity::Error && outcome != Outcome::Unknown);
    let unknown = count(&|outcome, severity| severity == Severity::Error && outcome == Outcome::Unknown);
    let passed = count(&|outcome, _| outcome == Outcome::Pass);
    format!("{verdict} {}: {failed} failed, {unknown} unknown, {passed} passed", artifact.path)
}

/// One change of `diff` as a line.
pub fn change_line(change: &Change) -> String {
    let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "–".to_owned());
    format!(
        "{} for the {}: {} {}: {} → {}",
        word(&change.grade),
        word(&change.side),
        change.subject,
        change.kind,
        value(&change.old),
        value(&change.new),
    )
}

/// Names of the targets of all artefacts, each once, in order of first use.
pub fn target_names(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for target in report.artifacts.iter().flat_map(|a| &a.targets) {
        if !names.contains(&target.name.as_str()) {
            names.push(&target.name);
        }
    }
    names
}
