//! CSV (RFC 4180): one row per model, or per artefact of a report.

use super::escape::plain;
use crate::model::{Artifact, KernelKind, Model, word};
use crate::report::{ArtifactReport, Outcome, Report};
use std::io::{Error, Result, Write};

/// A column of `show`: its name and what stands in it. Unknown is an empty field.
type Column = (&'static str, fn(&Artifact, Option<&Model>) -> Option<String>);

const COLUMNS: &[Column] = &[
    ("path", |a, _| Some(a.path.clone())),
    ("kind", |a, _| Some(word(&a.kind))),
    ("size_bytes", |a, _| Some(a.size_bytes.to_string())),
    ("model", |_, m| Some(m?.name.clone())),
    ("device", |_, m| m?.device.as_ref().map(ToString::to_string)),
    ("os", |_, m| Some(m?.platform.as_ref()?.os.clone())),
    ("arch", |_, m| Some(m?.platform.as_ref()?.arch.clone())),
    ("compiled_by_min", |_, m| m?.compiled_by.torch_min.map(|r| r.to_string())),
    ("compiled_by_max", |_, m| m?.compiled_by.torch_max.map(|r| r.to_string())),
    ("inputs", |_, m| m?.inputs.as_ref().map(|list| list.len().to_string())),
    ("outputs", |_, m| m?.outputs.as_ref().map(|list| list.len().to_string())),
    ("constants", |_, m| m?.constants.as_ref().map(|list| list.len().to_string())),
    ("weights", |_, m| m?.weights.location.as_ref().map(word)),
    ("weights_bytes", |_, m| Some(m?.weights.totals.iter().map(|t| t.size_bytes).sum::<u64>().to_string())),
    ("gpu_kernels", |_, m| Some(m?.kernels.iter().filter(|k| k.kind == KernelKind::Triton).count().to_string())),
    ("gpu_targets", |_, m| {
        let mut archs: Vec<String> = m?.kernels.iter().flat_map(|k| &k.archs).map(ToString::to_string).collect();
        archs.sort();
        archs.dedup();
        Some(archs.join(" "))
    }),
    ("requires_torch_min", |_, m| m?.requires.torch_min.map(|r| r.to_string())),
    ("requires_glibc", |_, m| m?.requires.glibc.clone()),
    ("interface_id", |a, _| a.interface_id.clone()),
    ("sha256", |a, _| a.sha256.clone()),
    ("error", |a, _| a.error.clone()),
];

/// One row per model; a file without one has a row of its own.
///
/// # Errors
/// Those of the writer.
pub fn render_show(artifacts: &[Artifact], out: &mut dyn Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(COLUMNS.iter().map(|(name, _)| name)).map_err(Error::other)?;
    for artifact in artifacts {
        let models: Vec<Option<&Model>> = match artifact.models.as_slice() {
            [] => vec![None],
            models => models.iter().map(Some).collect(),
        };
        for model in models {
            let fields = COLUMNS.iter().map(|(_, field)| field(artifact, model).unwrap_or_default());
            table.write_record(fields.map(|text| cell(&text))).map_err(Error::other)?;
        }
    }
    table.flush()
}

/// One row per finding, cause and change; an artefact without any has a row of its own.
///
/// # Errors
/// Those of the writer.
pub fn render_report(report: &Report, out: &mut dyn Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let head = ["path", "verdict", "target", "outcome", "level", "code", "subject", "message", "fix"];
    table.write_record(head).map_err(Error::other)?;
    for artifact in &report.artifacts {
        for row in rows(artifact) {
            table.write_record(row.iter().map(|text| cell(text))).map_err(Error::other)?;
        }
    }
    table.flush()
}

fn rows(artifact: &ArtifactReport) -> Vec<[String; 9]> {
    let row = |rest: [String; 7]| {
        let [target, outcome, level, code, subject, message, fix] = rest;
        [artifact.path.clone(), word(&artifact.verdict), target, outcome, level, code, subject, message, fix]
    };
    let none = String::new;
    let findings = artifact.findings.iter().map(|f| {
        let outcome = match &f.waived {
            Some(_) if f.outcome != Outcome::Pass => "waived".to_owned(),
            _ => word(&f.outcome),
        };
        let text = |v: &Option<String>| v.clone().unwrap_or_default();
        let (code, subject) = (f.code.to_owned(), f.subject.clone());
        row([text(&f.target), outcome, word(&f.level), code, subject, f.message.clone(), text(&f.fix)])
    });
    let causes = artifact.causes.iter().map(|c| {
        let fix = c.fix.clone().unwrap_or_default();
        row([none(), "cause".into(), none(), c.pattern.clone(), c.class.clone(), c.sentence.clone(), fix])
    });
    let changes = artifact
        .changes
        .iter()
        .map(|c| row([none(), word(&c.grade), none(), none(), c.subject.clone(), super::change_line(c), none()]));
    let mut rows: Vec<[String; 9]> = findings.chain(causes).chain(changes).collect();
    if rows.is_empty() {
        let message = artifact.error.clone().unwrap_or_default();
        rows.push(row([none(), none(), none(), none(), none(), message, none()]));
    }
    rows
}

/// A spreadsheet takes a field that begins so for a formula.
fn cell(text: &str) -> String {
    let text = plain(text);
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.into_owned() }
}
