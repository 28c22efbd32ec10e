//! GitHub workflow commands: annotations of a run, most severe first, because the page shows ten of each kind.
//!
//! An annotation points at the line of the configuration that asked for the artefact. Artefacts are build
//! outputs and not in the repository, so nothing ever points at them.

use super::escape::{workflow_data, workflow_line, workflow_property};
use super::severity::{Severity, by_severity, severity};
use crate::report::{ArtifactReport, Finding, Outcome, Report};
use std::io::{Result, Write};

/// Writes all findings: those that matter as commands, the others as plain lines in a folded group.
///
/// # Errors
/// Those of the writer.
pub fn render(report: &Report, out: &mut dyn Write) -> Result<()> {
    for artifact in &report.artifacts {
        if let Some(error) = &artifact.error {
            command(out, "error", artifact, "unreadable", &format!("{}: {error}", artifact.path))?;
        }
    }
    for (artifact, finding) in by_severity(report) {
        let word = match severity(finding) {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
            Severity::Silent => continue,
        };
        command(out, word, artifact, finding.code, &sentence(artifact, finding))?;
    }
    for artifact in &report.artifacts {
        for cause in &artifact.causes {
            let fix = cause.fix.as_deref().map(|f| format!(" Fix: {f}")).unwrap_or_default();
            command(out, "notice", artifact, &cause.pattern, &format!("{}{fix}", cause.sentence))?;
        }
        for change in &artifact.changes {
            let word = match change.grade {
                crate::report::Grade::Breaking => "error",
                crate::report::Grade::Compatible => "notice",
                crate::report::Grade::Cosmetic => "debug",
            };
            command(out, word, artifact, &change.subject, &super::change_line(change))?;
        }
        rest(out, artifact)?;
    }
    Ok(())
}

fn sentence(artifact: &ArtifactReport, finding: &Finding) -> String {
    let target = finding.target.as_deref().map(|t| format!(" [{t}]")).unwrap_or_default();
    let fix = finding.fix.as_deref().map(|f| format!(" Fix: {f}")).unwrap_or_default();
    format!("{}{target}: {} ({}){fix}", artifact.path, finding.message, finding.subject)
}

fn command(out: &mut dyn Write, word: &str, artifact: &ArtifactReport, title: &str, text: &str) -> Result<()> {
    let place = artifact
        .asked_at
        .as_ref()
        .map(|at| format!("file={},line={},col={},", workflow_property(&at.file), at.line, at.column));
    let place = place.unwrap_or_default();
    writeln!(out, "::{word} {place}title={}::{}", workflow_property(title), workflow_data(text))
}

/// What was waived, allowed or passed, and the verdict, as lines of the log.
fn rest(out: &mut dyn Write, artifact: &ArtifactReport) -> Result<()> {
    let quiet: Vec<&Finding> = artifact.findings.iter().filter(|f| severity(f) == Severity::Silent).collect();
    if !quiet.is_empty() {
        writeln!(out, "::group::{} more findings of {}", quiet.len(), workflow_data(&artifact.path))?;
        for finding in quiet {
            let word = match (finding.outcome, &finding.waived) {
                (Outcome::Pass, _) => "passed",
                (_, Some(_)) => "waived",
                _ => "allowed",
            };
            let text = format!("{word} {}: {} ({})", finding.code, finding.message, finding.subject);
            writeln!(out, "{}", workflow_line(&text))?;
        }
        writeln!(out, "::endgroup::")?;
    }
    writeln!(out, "{}", workflow_line(&super::verdict_line(artifact)))
}
