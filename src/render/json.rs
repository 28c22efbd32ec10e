//! JSON, version 1: one document for `show`, one for reports. Also line by line.

use super::escape::PlainJson;
use crate::model::Artifact;
use crate::report::{ArtifactReport, Report};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{Result, Write};

/// The version of the documents: new fields may come within it, none changes meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Who wrote a document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tool {
    /// `aoti-inspect`
    name: &'static str,
    /// its version
    version: &'static str,
}

const TOOL: Tool = Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

/// What `show` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShowDocument<'a> {
    schema_version: u32,
    tool: Tool,
    /// in the order given
    artifacts: &'a [Artifact],
}

/// What `verify`, `explain` and `diff` print.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReportDocument<'a> {
    schema_version: u32,
    tool: Tool,
    #[serde(flatten)]
    report: &'a Report,
}

/// One line of `--format jsonl`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Line<'a, T> {
    schema_version: u32,
    tool: Tool,
    /// only in reports
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(flatten)]
    entry: &'a T,
}

/// The JSON schema of every document that we print.
pub fn schema() -> serde_json::Value {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator();
    let documents = [
        generator.subschema_for::<ShowDocument>(),
        generator.subschema_for::<ReportDocument>(),
        generator.subschema_for::<Line<Artifact>>(),
        generator.subschema_for::<Line<ArtifactReport>>(),
    ];
    serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of aoti-inspect, version 1",
        "anyOf": documents,
        "$defs": generator.take_definitions(true),
    })
}

/// `show` as one document; `only` names the facts that are kept, all when empty.
///
/// # Errors
/// Those of the writer.
pub fn render_show(artifacts: &[Artifact], only: &[String], out: &mut dyn Write) -> Result<()> {
    write_trimmed(&ShowDocument { schema_version: SCHEMA_VERSION, tool: TOOL, artifacts }, only, true, out)
}

/// `show`, one artefact a line.
///
/// # Errors
/// Those of the writer.
pub fn render_show_lines(artifacts: &[Artifact], only: &[String], out: &mut dyn Write) -> Result<()> {
    for entry in artifacts {
        let line = Line { schema_version: SCHEMA_VERSION, tool: TOOL, command: None, entry };
        write_trimmed(&line, only, false, out)?;
    }
    Ok(())
}

/// A report as one document.
///
/// # Errors
/// Those of the writer.
pub fn render_report(report: &Report, out: &mut dyn Write) -> Result<()> {
    let document = ReportDocument { schema_version: SCHEMA_VERSION, tool: TOOL, report };
    serde_json::to_writer_pretty(PlainJson(&mut *out), &document)?;
    writeln!(out)
}

/// A report, one artefact a line.
///
/// # Errors
/// Those of the writer.
pub fn render_report_lines(report: &Report, out: &mut dyn Write) -> Result<()> {
    for entry in &report.artifacts {
        let line = Line { schema_version: SCHEMA_VERSION, tool: TOOL, command: Some(&report.command), entry };
        serde_json::to_writer(PlainJson(&mut *out), &line)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Facts that `--only` can name: keys of an artefact and of a model.
pub const FACTS: &[&str] = &[
    "archive",
    "exported",
    "problems",
    "device",
    "platform",
    "compiled_by",
    "inputs",
    "outputs",
    "symbols",
    "constants",
    "weights",
    "kernels",
    "operators",
    "trace",
    "requires",
    "capabilities",
    "checks",
    "metadata",
    "conflicts",
];

/// Keys that stay whatever is asked: they say what the rest is about.
const ALWAYS: &[&str] = &[
    "schema_version",
    "tool",
    "path",
    "kind",
    "size_bytes",
    "interface_id",
    "error",
    "models",
    "unknown",
    "name",
    "library",
];

fn write_trimmed(document: &impl Serialize, only: &[String], pretty: bool, out: &mut dyn Write) -> Result<()> {
    if only.is_empty() {
        if pretty {
            serde_json::to_writer_pretty(PlainJson(&mut *out), document)?;
        } else {
            serde_json::to_writer(PlainJson(&mut *out), document)?;
        }
        return writeln!(out);
    }
    let mut value = serde_json::to_value(document)?;
    match value.get_mut("artifacts").and_then(serde_json::Value::as_array_mut) {
        Some(artifacts) => artifacts.iter_mut().for_each(|artifact| trim(artifact, only)),
        None => trim(&mut value, only),
    }
    if pretty {
        serde_json::to_writer_pretty(PlainJson(&mut *out), &value)?;
    } else {
        serde_json::to_writer(PlainJson(&mut *out), &value)?;
    }
    writeln!(out)
}

fn trim(artifact: &mut serde_json::Value, only: &[String]) {
    let wanted = |key: &str| {
        let stem = key.strip_suffix("_evidence").unwrap_or(key);
        ALWAYS.contains(&key) || only.iter().any(|fact| fact == stem)
    };
    let Some(fields) = artifact.as_object_mut() else { return };
    fields.retain(|key, _| wanted(key));
    for model in fields.get_mut("models").and_then(|m| m.as_array_mut()).into_iter().flatten() {
        if let Some(fields) = model.as_object_mut() {
            fields.retain(|key, _| wanted(key));
        }
    }
    // what was left out needs no reason for being unknown
    if let Some(unknown) = fields.get_mut("unknown").and_then(|u| u.as_array_mut()) {
        unknown.retain(|entry| {
            let fact = entry.get("fact").and_then(|f| f.as_str()).unwrap_or_default();
            let below = fact.split_once("].").map_or(fact, |(_, rest)| rest);
            wanted(below.split(['.', '[']).next().unwrap_or_default())
        });
    }
}
