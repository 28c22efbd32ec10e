//! Markdown for a job summary or an issue tracker.

use super::escape::markdown;
use super::severity::{Severity, severity};
use crate::report::{ArtifactReport, Finding, Grade, Report, Verdict};
use std::io::{Result, Write};

/// Writes one section per artefact: verdict, what matters as a table, the rest folded.
///
/// # Errors
/// Those of the writer.
pub fn render(report: &Report, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "## aoti-inspect {}\n", markdown(&report.command))?;
    matrix(report, out)?;
    for artifact in &report.artifacts {
        section(artifact, out)?;
    }
    Ok(())
}

fn symbol(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✅ pass",
        Verdict::Fail => "❌ fail",
        Verdict::Unknown => "❔ unknown",
        Verdict::Unreadable => "⛔ unreadable",
    }
}

/// Artefacts against targets, when there are several of one.
fn matrix(report: &Report, out: &mut dyn Write) -> Result<()> {
    let names = super::target_names(report);
    if report.artifacts.len() < 2 && names.len() < 2 {
        return Ok(());
    }
    write!(out, "| artefact |")?;
    for name in &names {
        write!(out, " {} |", markdown(name))?;
    }
    writeln!(out, " all |\n|---|{}---|", "---|".repeat(names.len()))?;
    for artifact in &report.artifacts {
        write!(out, "| {} |", markdown(&artifact.path))?;
        for name in &names {
            let verdict = artifact.targets.iter().find(|t| t.name == *name).map_or("", |t| symbol(t.verdict));
            write!(out, " {verdict} |")?;
        }
        writeln!(out, " {} |", symbol(artifact.verdict))?;
    }
    writeln!(out)
}

fn section(artifact: &ArtifactReport, out: &mut dyn Write) -> Result<()> {
    // beside the cause of a crash the file's own verdict would be read as the answer
    let verdict = if artifact.causes.is_empty() { symbol(artifact.verdict) } else { "explained:" };
    writeln!(out, "### {verdict} {}\n", markdown(&artifact.path))?;
    if !artifact.summary.is_empty() {
        writeln!(out, "{}\n", markdown(&artifact.summary))?;
    }
    if let Some(error) = &artifact.error {
        writeln!(out, "{}\n", markdown(error))?;
    }
    causes(artifact, out)?;
    changes(artifact, out)?;
    findings(artifact, out)?;
    for (title, list) in
        [("Not asked", &artifact.not_asked), ("Cannot be known from this file", &artifact.not_knowable)]
    {
        if !list.is_empty() {
            let items: Vec<String> = list.iter().map(|text| markdown(text)).collect();
            writeln!(out, "{title}: {}\n", items.join(" · "))?;
        }
    }
    Ok(())
}

fn findings(artifact: &ArtifactReport, out: &mut dyn Write) -> Result<()> {
    let mut loud: Vec<&Finding> = artifact.findings.iter().filter(|f| severity(f) != Severity::Silent).collect();
    loud.sort_by_key(|f| severity(f));
    if !loud.is_empty() {
        writeln!(out, "| | code | what | fix |\n|---|---|---|---|")?;
        for finding in loud {
            let sign = match severity(finding) {
                Severity::Error => "❌",
                Severity::Warning => "⚠️",
                _ => "❔",
            };
            let target = finding.target.as_deref().map(|t| format!("{}: ", markdown(t))).unwrap_or_default();
            writeln!(
                out,
                "| {sign} | {} | {target}{} ({}) | {} |",
                markdown(finding.code),
                markdown(&finding.message),
                markdown(&finding.subject),
                markdown(finding.fix.as_deref().unwrap_or_default()),
            )?;
        }
        writeln!(out)?;
    }
    let silent: Vec<&Finding> = artifact.findings.iter().filter(|f| severity(f) == Severity::Silent).collect();
    if !silent.is_empty() {
        writeln!(out, "<details><summary>{} passed, waived or allowed</summary>\n", silent.len())?;
        for finding in silent {
            let waived = finding.waived.as_ref().map(|w| format!(" — waived: {}", markdown(&w.reason)));
            writeln!(
                out,
                "- {}: {} ({}){}",
                markdown(finding.code),
                markdown(&finding.message),
                markdown(&finding.subject),
                waived.unwrap_or_default(),
            )?;
        }
        writeln!(out, "\n</details>\n")?;
    }
    Ok(())
}

fn causes(artifact: &ArtifactReport, out: &mut dyn Write) -> Result<()> {
    for cause in &artifact.causes {
        writeln!(
            out,
            "{}. **{}** ({}, {})",
            cause.rank,
            markdown(&cause.sentence),
            cause.class,
            markdown(&cause.pattern)
        )?;
        for evidence in &cause.evidence {
            writeln!(out, "   - {}", markdown(&evidence.detail))?;
        }
        if let Some(fix) = &cause.fix {
            writeln!(out, "   - Fix: {}", markdown(fix))?;
        }
    }
    if artifact.causes.is_empty() { Ok(()) } else { writeln!(out) }
}

fn changes(artifact: &ArtifactReport, out: &mut dyn Write) -> Result<()> {
    if artifact.changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "| grade | for | fact | before | after |\n|---|---|---|---|---|")?;
    let mut changes: Vec<_> = artifact.changes.iter().collect();
    changes.sort_by_key(|c| std::cmp::Reverse(c.grade));
    for change in changes {
        let grade = match change.grade {
            Grade::Breaking => "❌ breaking",
            Grade::Compatible => "compatible",
            Grade::Cosmetic => "cosmetic",
        };
        let text = |v: &Option<String>| markdown(v.as_deref().unwrap_or("–"));
        let side = crate::model::word(&change.side);
        writeln!(
            out,
            "| {grade} | {side} | {} | {} | {} |",
            markdown(&change.subject),
            text(&change.old),
            text(&change.new)
        )?;
    }
    writeln!(out)
}
