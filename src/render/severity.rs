//! How loudly a finding is shown: the one order that all formats share.

use crate::report::{ArtifactReport, Finding, Level, Outcome, Report};

/// From loudest to silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// changes the verdict
    Error,
    /// somebody should look
    Warning,
    /// an unknown that is allowed
    Note,
    /// passed, waived or allowed
    Silent,
}

/// Severity of one finding.
pub fn severity(finding: &Finding) -> Severity {
    match (finding.outcome, finding.level, &finding.waived) {
        (Outcome::Pass, _, _) | (_, Level::Allow, _) | (_, _, Some(_)) => Severity::Silent,
        (_, Level::Deny, None) => Severity::Error,
        (Outcome::Unknown, Level::Warn, None) => Severity::Note,
        (_, Level::Warn, None) => Severity::Warning,
    }
}

/// All findings of all artefacts, loudest first, otherwise in the order of the report.
pub fn by_severity(report: &Report) -> Vec<(&ArtifactReport, &Finding)> {
    let mut all: Vec<_> = report.artifacts.iter().flat_map(|a| a.findings.iter().map(move |f| (a, f))).collect();
    all.sort_by_key(|(_, finding)| severity(finding));
    all
}
