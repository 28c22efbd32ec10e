//! The causes of `explain` as text: the likely one with evidence and remedy, the others in short.

use super::TextOptions;
use super::table::write_wrapped;
use super::theme::{DIM, TITLE, paint};
use crate::explain::class::name_of;
use crate::model::{Evidence, Witness, word};
use crate::report::{ArtifactReport, Cause};
use std::io::{Result, Write};

/// Statements shown for a cause before `-v` is needed.
const SHOWN: usize = 16;

/// Writes the causes, best first.
pub(super) fn render_causes(artifact: &ArtifactReport, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let Some((first, others)) = artifact.causes.split_first() else { return Ok(()) };
    writeln!(out, "{} {}", paint(TITLE, "Likely cause"), paint(DIM, &label(first)))?;
    write_wrapped("  ", &first.sentence, 2, options.width, out)?;
    evidence(first, options, out)?;
    fix(first, options, out)?;
    if !others.is_empty() {
        writeln!(out, "{}", paint(TITLE, "Other candidates"))?;
    }
    for cause in others {
        let text = format!("{} {}", cause.sentence, label(cause));
        write_wrapped(&format!("  {}. ", cause.rank), &text, 5, options.width, out)?;
        if options.is_verbose {
            evidence(cause, options, out)?;
            fix(cause, options, out)?;
        }
    }
    Ok(())
}

fn label(cause: &Cause) -> String {
    let line = cause.line.map(|l| format!(", line {l} of the log")).unwrap_or_default();
    format!("({} {}, {}{line})", cause.class, name_of(&cause.class), cause.pattern)
}

fn evidence(cause: &Cause, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let cap = if options.is_verbose { usize::MAX } else { SHOWN };
    for statement in cause.evidence.iter().take(cap) {
        let lead = format!("    {}  ", paint(DIM, &format!("{:<9}", source(statement))));
        write_wrapped(&lead, &statement.detail, 15, options.width, out)?;
    }
    let more = cause.evidence.len().saturating_sub(cap);
    if more > 0 { writeln!(out, "    and {more} more statements (-v)") } else { Ok(()) }
}

/// `log 17`, `source`, `kernel`.
fn source(statement: &Evidence) -> String {
    match (statement.source, statement.line) {
        (Witness::Log, Some(line)) => format!("log {line}"),
        (Witness::LoadConfiguration, _) => "asked".to_owned(),
        (Witness::CrossReference, _) => "code".to_owned(),
        (Witness::ExportedProgram, _) => "exported".to_owned(),
        (witness, _) => word(&witness).replace('_', " "),
    }
}

fn fix(cause: &Cause, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let Some(fix) = &cause.fix else { return Ok(()) };
    // numbered remedies stand one below the other
    let mut rest = fix.as_str();
    let mut lead = format!("  {}  ", paint(TITLE, "fix"));
    for number in 2..=9 {
        let mark = format!(" {number}. ");
        let Some(at) = rest.find(&mark).filter(|_| fix.starts_with("1. ")) else { break };
        let (part, tail) = rest.split_at(at);
        write_wrapped(&lead, part, 10, options.width, out)?;
        lead = "       ".to_owned();
        rest = tail.trim_start();
    }
    write_wrapped(&lead, rest, 7, options.width, out)
}
