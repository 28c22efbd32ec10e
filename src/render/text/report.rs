//! The report of `verify` and `diff` as text: what fails and what is unknown, with remedies; passes are counted.

use super::TextOptions;
use super::table::write_wrapped;
use super::theme::{BAD, DIM, GOOD, TITLE, WARN, paint};
use crate::model::word;
use crate::render::severity::{Severity, severity};
use crate::render::{change_line, escape, target_names, verdict_line};
use crate::report::{ArtifactReport, Finding, Outcome, Report, Verdict};
use std::io::{Result, Write};

/// Writes every artefact; the last line of each can be searched for.
///
/// # Errors
/// Those of the writer.
pub fn render_report(report: &Report, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    for artifact in &report.artifacts {
        render_artifact(report, artifact, options, out)?;
    }
    matrix(report, options, out)
}

fn render_artifact(
    report: &Report,
    artifact: &ArtifactReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let title = escape::plain(&artifact.path);
    let separator = if artifact.summary.is_empty() { "" } else { " · " };
    writeln!(out, "{}{separator}{}", paint(TITLE, &title), escape::plain(&artifact.summary))?;
    let mut findings: Vec<&Finding> = artifact.findings.iter().collect();
    findings.sort_by_key(|finding| severity(finding));
    for finding in findings {
        let is_shown = options.is_verbose || severity(finding) != Severity::Silent;
        if is_shown {
            render_finding(finding, options, out)?;
        }
    }
    super::causes::render_causes(artifact, options, out)?;
    for change in &artifact.changes {
        writeln!(out, "  {}", escape::plain(&change_line(change)))?;
    }
    if report.command == "verify" && artifact.error.is_none() {
        foot(artifact, options, out)?;
    }
    let style = match artifact.verdict {
        Verdict::Pass => GOOD,
        Verdict::Unknown => WARN,
        Verdict::Fail | Verdict::Unreadable => BAD,
    };
    writeln!(out, "{}", paint(style, &escape::plain(&verdict_line(artifact))))
}

fn render_finding(finding: &Finding, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let (word, style) = match (finding.outcome, severity(finding)) {
        (Outcome::Pass, _) => ("pass", GOOD),
        (_, Severity::Silent) => ("note", DIM),
        (Outcome::Unknown, _) => ("unknown", WARN),
        (_, Severity::Error) => ("FAIL", BAD),
        _ => ("warn", WARN),
    };
    let target = finding.target.as_ref().map(|t| format!("{}: ", escape::plain(t))).unwrap_or_default();
    let first = format!("  {}  {}  {target}", paint(style, word), paint(TITLE, finding.code));
    let hang = 2 + word.len() + 2 + finding.code.len() + 2;
    write_wrapped(&first, &finding.message, if hang > 40 { 8 } else { hang }, options.width, out)?;
    if finding.outcome == Outcome::Pass {
        return Ok(());
    }
    if let Some(waived) = &finding.waived {
        let until = waived.until.as_ref().map(|day| format!(" (until {day})")).unwrap_or_default();
        return write_wrapped(
            &format!("        {}  ", paint(DIM, "waived")),
            &format!("{}{until}", waived.reason),
            16,
            options.width,
            out,
        );
    }
    if let Some(fix) = &finding.fix {
        write_wrapped(&format!("        {}  ", paint(DIM, "fix")), fix, 13, options.width, out)?;
    }
    if options.is_verbose {
        for evidence in &finding.evidence {
            let member = evidence.member.as_ref().map(|m| format!(" ({m})")).unwrap_or_default();
            let text = format!("{}: {}{member}", word_of(&evidence.source), evidence.detail);
            write_wrapped(&format!("        {}  ", paint(DIM, "by ")), &text, 13, options.width, out)?;
        }
    }
    Ok(())
}

fn word_of(witness: &crate::model::Witness) -> String {
    word(witness).replace('_', " ")
}

/// What was counted, not asked, and cannot be known.
fn foot(artifact: &ArtifactReport, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let passed = artifact.findings.iter().filter(|f| f.outcome == Outcome::Pass).count();
    let mut parts = vec![if options.is_verbose || passed == 0 {
        format!("{passed} passed")
    } else {
        format!("{passed} passed (-v lists them)")
    }];
    let waived = artifact.findings.iter().filter(|f| f.waived.is_some()).count();
    if waived > 0 {
        parts.push(format!("{waived} waived"));
    }
    if !artifact.not_asked.is_empty() {
        parts.push(format!("not asked: {}", artifact.not_asked.join(", ")));
    }
    write_wrapped("  ", &parts.join(" · "), 4, options.width, out)?;
    for topic in &artifact.not_knowable {
        write_wrapped("  cannot be known from this file: ", topic, 4, options.width, out)?;
    }
    Ok(())
}

/// Artefacts against targets, when there are several targets.
fn matrix(report: &Report, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let names = target_names(report);
    if names.len() < 2 {
        return Ok(());
    }
    let mut header = vec!["artefact"];
    header.extend(&names);
    let rows: Vec<Vec<String>> = report
        .artifacts
        .iter()
        .map(|artifact| {
            let mut row = vec![artifact.path.clone()];
            row.extend(names.iter().map(|name| {
                let target = artifact.targets.iter().find(|t| t.name == *name);
                target.map_or_else(|| "–".to_owned(), |t| word(&t.verdict))
            }));
            row
        })
        .collect();
    writeln!(out)?;
    super::table::write_table(&header, &rows, options.width, out)
}
