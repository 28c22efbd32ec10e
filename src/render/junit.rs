//! JUnit: a test suite per artefact, a test case per finding.

use super::severity::{Severity, severity};
use crate::report::{ArtifactReport, Finding, Grade, Outcome, Report};
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use std::io::{Error, Result, Write};

/// Writes the report; what fails is a failure, what is unknown an error, what is waived is skipped.
///
/// # Errors
/// Those of the writer.
pub fn render(report: &Report, out: &mut dyn Write) -> Result<()> {
    let mut junit = Junit::new(format!("aoti-inspect {}", report.command));
    junit.add_test_suites(report.artifacts.iter().map(suite));
    junit.serialize(&mut *out).map_err(Error::other)
}

fn suite(artifact: &ArtifactReport) -> TestSuite {
    let mut suite = TestSuite::new(super::escape::plain(&artifact.path).as_ref());
    if let Some(error) = &artifact.error {
        suite.add_test_case(case(
            "unreadable",
            &artifact.path,
            non_success(NonSuccessKind::Error, "unreadable", error),
        ));
    }
    for finding in &artifact.findings {
        suite.add_test_case(finding_case(artifact, finding));
    }
    for cause in &artifact.causes {
        let status = non_success(NonSuccessKind::Failure, &cause.class, &cause.sentence);
        suite.add_test_case(case(&cause.pattern, &artifact.path, status));
    }
    for change in &artifact.changes {
        let line = super::change_line(change);
        let status = match change.grade {
            Grade::Breaking => non_success(NonSuccessKind::Failure, "breaking", &line),
            Grade::Compatible | Grade::Cosmetic => TestCaseStatus::success(),
        };
        let mut case = case(&change.subject, &artifact.path, status);
        case.set_system_out(super::escape::plain(&line).as_ref());
        suite.add_test_case(case);
    }
    suite
}

fn finding_case(artifact: &ArtifactReport, finding: &Finding) -> TestCase {
    let target = finding.target.as_deref().map(|t| format!("{t} / ")).unwrap_or_default();
    let name = format!("{target}{} {}", finding.code, finding.subject);
    let text = match &finding.fix {
        Some(fix) => format!("{}; fix: {fix}", finding.message),
        None => finding.message.clone(),
    };
    let status = match (&finding.waived, severity(finding), finding.outcome) {
        (Some(waived), _, outcome) if outcome != Outcome::Pass => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(super::escape::plain(&format!("waived: {}", waived.reason)).as_ref());
            status
        }
        (_, Severity::Error, Outcome::Unknown) => non_success(NonSuccessKind::Error, "unknown", &text),
        (_, Severity::Error, _) => non_success(NonSuccessKind::Failure, finding.code, &text),
        _ => TestCaseStatus::success(),
    };
    let mut case = case(&name, &artifact.path, status);
    case.set_system_out(super::escape::plain(&text).as_ref());
    case
}

fn case(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(super::escape::plain(name).as_ref(), status);
    case.set_classname(super::escape::plain(class).as_ref());
    case
}

fn non_success(kind: NonSuccessKind, type_: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let text = super::escape::plain(text);
    // viewers show one or the other
    status.set_type(type_).set_message(text.as_ref()).set_description(text.as_ref());
    status
}
