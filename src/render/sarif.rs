//! SARIF 2.1.0 (OASIS), the part that we use.
//!
//! Locations are the configuration line that asked, else the artefact as a whole (code scanning refuses results without
//! a physical location), and the fact's path as a logical location.

use super::escape::PlainJson;
use super::severity::{Severity, severity};
use crate::report::{ArtifactReport, Finding, Grade, Outcome, Report};
use serde_json::{Value, json};
use std::io::{Error, Result, Write};

/// Writes one run with all findings; what passed has kind `pass`, what is undecided kind `open`.
///
/// # Errors
/// Those of the writer.
pub fn render(report: &Report, out: &mut dyn Write) -> Result<()> {
    let results: Vec<Value> = report.artifacts.iter().flat_map(results).collect();
    let mut ids: Vec<&str> = results.iter().filter_map(|r| r.get("ruleId").and_then(Value::as_str)).collect();
    ids.sort_unstable();
    ids.dedup();
    let notifications: Vec<Value> = report.artifacts.iter().filter_map(unreadable).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "aoti-inspect",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": ids.iter().map(|id| rule(id)).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": notifications.is_empty(),
                "exitCode": report.exit() as i32,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(PlainJson(&mut *out), &log).map_err(Error::other)?;
    writeln!(out)
}

fn rule(id: &str) -> Value {
    match crate::checks::codes::find(id) {
        Some(code) => json!({"id": id, "shortDescription": {"text": code.summary}, "help": {"text": code.page.fix}}),
        None => json!({"id": id}),
    }
}

fn unreadable(artifact: &ArtifactReport) -> Option<Value> {
    let text = format!("{}: {}", artifact.path, artifact.error.as_ref()?);
    Some(json!({"level": "error", "message": {"text": text}}))
}

fn results(artifact: &ArtifactReport) -> Vec<Value> {
    let findings = artifact.findings.iter().map(|f| finding(artifact, f));
    let causes = artifact.causes.iter().map(|cause| {
        let mut result = json!({
            "ruleId": cause.pattern,
            "kind": "fail",
            "level": "error",
            "rank": 100.0 / cause.rank.max(1) as f64,
            "message": {"text": sentence(&cause.sentence, cause.fix.as_deref())},
        });
        place(&mut result, artifact, &cause.class);
        result
    });
    let changes = artifact.changes.iter().map(|change| {
        let level = match change.grade {
            Grade::Breaking => "error",
            Grade::Compatible | Grade::Cosmetic => "note",
        };
        let mut result = json!({
            "ruleId": format!("diff-{}", crate::model::word(&change.grade)),
            "kind": "fail",
            "level": level,
            "message": {"text": super::change_line(change)},
        });
        place(&mut result, artifact, &change.subject);
        result
    });
    findings.chain(causes).chain(changes).collect()
}

fn finding(artifact: &ArtifactReport, finding: &Finding) -> Value {
    let (kind, level) = match (finding.outcome, severity(finding)) {
        (Outcome::Pass, _) => ("pass", "none"),
        (Outcome::Unknown, _) => ("open", "none"),
        (_, Severity::Error) => ("fail", "error"),
        (_, Severity::Warning) => ("fail", "warning"),
        _ => ("fail", "note"),
    };
    let mut result = json!({
        "ruleId": finding.code,
        "kind": kind,
        "level": level,
        "message": {"text": sentence(&finding.message, finding.fix.as_deref())},
        "partialFingerprints": {"aotiInspect/v1": finding.fingerprint},
        "properties": {
            "policy": finding.level,
            "target": finding.target,
            "expected": finding.expected,
            "found": finding.found,
        },
    });
    if let (Some(waived), Some(map)) = (&finding.waived, result.as_object_mut()) {
        map.insert("suppressions".into(), json!([{"kind": "external", "justification": waived.reason}]));
    }
    place(&mut result, artifact, &finding.subject);
    result
}

fn sentence(text: &str, fix: Option<&str>) -> String {
    fix.map_or_else(|| text.to_owned(), |fix| format!("{text}\nFix: {fix}"))
}

fn place(result: &mut Value, artifact: &ArtifactReport, subject: &str) {
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": format!("{}#{subject}", artifact.path)}]});
    let physical = match &artifact.asked_at {
        Some(at) => json!({
            "artifactLocation": {"uri": uri(&at.file)},
            "region": {"startLine": at.line, "startColumn": at.column},
        }),
        None => json!({"artifactLocation": {"uri": uri(&artifact.path)}}),
    };
    if let Some(map) = location.as_object_mut() {
        map.insert("physicalLocation".into(), physical);
    }
    if let Some(map) = result.as_object_mut() {
        map.insert("locations".into(), json!([location]));
    }
}

/// A relative or absolute path as a URI reference (RFC 3986): all but unreserved characters and `/` encoded.
fn uri(path: &str) -> String {
    path.bytes().fold(String::new(), |mut out, b| {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(b)),
            b'\\' => out.push('/'),
            b => out.push_str(&format!("%{b:02X}")),
        }
        out
    })
}
