//! `show`: what a file is, what its models take and give, what they need, and what a person should know.

use super::needs::write_needs;
use super::table::{write_parts, write_table, write_wrapped};
use super::theme::{BAD, TITLE, WARN, paint};
use super::trace::write_trace;
use super::{TextOptions, bytes_text, count_text};
use crate::checks::{Policy, verify_artifact};
use crate::model::{Artifact, Constant, Dim, Kernel, Model, Platform, TensorSpec, WeightsLocation, word};
use crate::render::escape;
use crate::report::{Finding, Outcome};
use crate::target::LoadConfig;
use std::collections::HashSet;
use std::io::{Result, Write};

/// Constants and kernels listed without `--all`.
const LISTED: usize = 10;
/// Inputs and outputs listed without `--all`.
const TENSORS_LISTED: usize = 24;

/// Writes one artefact.
///
/// # Errors
/// Those of the writer.
pub fn render_show(artifact: &Artifact, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let title = escape::plain(&artifact.path);
    let mut head = vec![artifact.kind.title().to_owned()];
    if artifact.archive.is_some() && artifact.error.is_none() {
        head.push(count_text(artifact.models.len(), "model"));
    }
    head.push(bytes_text(artifact.size_bytes));
    writeln!(out, "{}   {}", paint(TITLE, &title), head.join(" · "))?;
    if let Some(error) = &artifact.error {
        write_wrapped(&format!("  {} ", paint(BAD, "×")), error, 4, options.width, out)?;
    }
    if let Some(exported) = &artifact.exported
        && (artifact.error.is_some() || options.wants("exported"))
    {
        writeln!(out, "\n{}", paint(TITLE, &format!("Exported program {}: inputs", escape::plain(&exported.name))))?;
        write_tensors(&exported.inputs, options, out)?;
    }
    for (index, model) in artifact.models.iter().enumerate() {
        if artifact.models.len() > 1 {
            writeln!(out, "\n{}", paint(TITLE, &format!("Model {}", escape::plain(&model.name))))?;
        }
        render_model(artifact, index, model, options, out)?;
    }
    if artifact.error.is_none() {
        write_notes(artifact, options, out)?;
    }
    if options.is_verbose {
        write_unknown(artifact, options, out)?;
        write_members(artifact, options, out)?;
    }
    Ok(())
}

fn render_model(
    artifact: &Artifact,
    index: usize,
    model: &Model,
    options: &TextOptions,
    out: &mut dyn Write,
) -> Result<()> {
    if ["device", "platform", "compiled_by", "weights"].iter().any(|s| options.wants(s)) {
        write_parts(&summary(model), options.width, out)?;
        writeln!(out)?;
    }
    let why = |fact: &str| {
        let fact = format!("models[{index}].{fact}");
        artifact.unknown_reason(&fact).unwrap_or("nothing in the file states them").to_owned()
    };
    if options.wants("inputs") {
        write_section("Inputs", model.inputs.as_deref(), &why("inputs"), options, out)?;
        write_symbols(model, options, out)?;
        if !model.baked_in.is_empty() {
            let list = model.baked_in.join(", ");
            write_wrapped("     fixed at export, not passed: ", &list, 5, options.width, out)?;
        }
    }
    if options.wants("outputs") {
        write_section("Outputs", model.outputs.as_deref(), &why("outputs"), options, out)?;
    }
    if options.wants("constants") {
        write_constants(model, &why("constants"), options, out)?;
    }
    if options.wants("kernels") {
        write_kernels(model, options, out)?;
    }
    if options.wants("requires") {
        writeln!(out, "{}", paint(TITLE, "Needs"))?;
        write_needs(model, options, out)?;
    }
    if options.wants("metadata") {
        write_metadata(model, options, out)?;
    }
    if options.wants("trace") && model.trace.is_some() {
        write_trace(model, &why("trace"), options, out)?;
    }
    Ok(())
}

/// The author's own keys; those that torch writes are said elsewhere, and shown on demand.
fn write_metadata(model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let shows_all = options.is_verbose || options.shows_all || !options.only.is_empty();
    let entries = model.metadata.iter().filter(|m| shows_all || !m.key.starts_with("AOTI_"));
    let rows: Vec<Vec<String>> = entries.map(|m| vec![m.key.clone(), m.value.clone()]).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", paint(TITLE, "Metadata"))?;
    write_table(&[], &rows, options.width, out)
}

/// Device, platform, compiler, constants in one line.
fn summary(model: &Model) -> Vec<String> {
    let device = model.device.as_ref().map_or_else(|| "an unknown device".to_owned(), ToString::to_string);
    let mut parts = vec![match &model.platform {
        Some(Platform { os, arch, .. }) => format!("for {device}, {os} {arch}"),
        None => format!("for {device}, without a compiled library"),
    }];
    parts.extend(model.compiled_by.range());
    if let Some(cxx) = &model.compiled_by.cxx {
        parts.push(cxx.clone());
    }
    if let Some(constants) = &model.constants {
        parts.push(weights_text(model, constants));
    }
    parts
}

fn weights_text(model: &Model, constants: &[Constant]) -> String {
    // of weights that are elsewhere the file has no bytes
    let size = model.weights.size_bytes.filter(|n| *n > 0).or(model.weights.expected_bytes);
    let size = size.map(|n| format!(", {}", bytes_text(n))).unwrap_or_default();
    let place = match model.weights.location {
        _ if constants.is_empty() => return "no constants".to_owned(),
        Some(WeightsLocation::None) => return format!("{}, computed at load", count_text(constants.len(), "constant")),
        Some(WeightsLocation::Library) => "inside the library",
        Some(WeightsLocation::Appended) => "appended to the library",
        Some(WeightsLocation::Blob) => "in a file of their own",
        Some(WeightsLocation::Pickled) => "pickled in the package",
        Some(WeightsLocation::Absent) => "not in this file: the caller loads them",
        None => "place unknown",
    };
    format!("{}{size}, {place}", count_text(constants.len(), "constant"))
}

fn write_section(
    title: &str,
    tensors: Option<&[TensorSpec]>,
    why: &str,
    options: &TextOptions,
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(out, "{}", paint(TITLE, title))?;
    match tensors {
        None => write_wrapped("  unknown: ", why, 4, options.width, out),
        Some([]) => writeln!(out, "  none"),
        Some(tensors) => write_tensors(tensors, options, out),
    }
}

fn write_tensors(tensors: &[TensorSpec], options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let has_labels = tensors.iter().any(|t| !t.labels.is_empty());
    let mut header = vec!["#", "call path", "dtype", "shape", "strides", "device"];
    if has_labels {
        header.push("label");
    }
    let limit = if options.shows_all { usize::MAX } else { TENSORS_LISTED };
    let rows: Vec<Vec<String>> = tensors
        .iter()
        .take(limit)
        .map(|t| {
            let known = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
            let mut row = vec![
                t.index.to_string(),
                known(call_path(t)),
                known(t.dtype.as_ref().map(ToString::to_string)),
                dims_text(t.shape.as_deref(), t.rank),
                dims_text(t.stride.as_deref(), t.rank),
                known(t.device.as_ref().map(ToString::to_string)),
            ];
            if has_labels {
                row.push(t.labels.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", "));
            }
            row
        })
        .collect();
    write_table(&header, &rows, options.width, out)?;
    write_rest(tensors.len().saturating_sub(rows.len()), out)
}

/// The call path; PyTorch's keystr of a value that is returned alone is empty.
fn call_path(tensor: &TensorSpec) -> Option<String> {
    match tensor.path.as_deref() {
        Some("") => Some("(the result)".to_owned()),
        path => path.map(str::to_owned).or_else(|| tensor.name.clone()),
    }
}

fn write_rest(left: usize, out: &mut dyn Write) -> Result<()> {
    if left > 0 { writeln!(out, "  … {left} more (--all lists them)") } else { Ok(()) }
}

/// `[s27, 8]`; an unknown element is `?`.
pub fn dims_text(dims: Option<&[Option<Dim>]>, rank: Option<usize>) -> String {
    match (dims, rank) {
        (Some(dims), _) => {
            let parts: Vec<String> =
                dims.iter().map(|d| d.as_ref().map_or_else(|| "?".to_owned(), Dim::to_string)).collect();
            format!("[{}]", parts.join(", "))
        }
        (None, Some(rank)) => format!("? ({})", count_text(rank, "dim")),
        (None, None) => "?".to_owned(),
    }
}

/// `s27: 2*..1024   s77: 2..77`: ranges, and where a symbol stands.
fn write_symbols(model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    if model.symbols.is_empty() {
        return Ok(());
    }
    let mut is_specialised = false;
    let mut parts = Vec::new();
    for range in &model.symbols {
        let star = if range.min == Some(2) { "*" } else { "" };
        is_specialised |= range.min == Some(2);
        let text = match (range.min, range.max) {
            (None, None) => "any size".to_owned(),
            (min, max) => {
                let min = min.map_or_else(|| "0".to_owned(), |n| n.to_string());
                format!("{min}{star}..{}", max.map(|n| n.to_string()).unwrap_or_default())
            }
        };
        let mut inputs: Vec<&str> = range.subjects.iter().filter_map(|s| input_of(s)).collect();
        inputs.dedup();
        let shared = match inputs.as_slice() {
            [] | [_] => String::new(),
            several => format!(" (the same in inputs {})", several.join(", ")),
        };
        parts.push(format!("{}: {text}{shared}", range.symbol));
    }
    let limit = if options.shows_all { parts.len() } else { LISTED };
    if parts.len() > limit {
        let more = format!("… {} more (--all)", parts.len() - limit);
        parts.truncate(limit);
        parts.push(more);
    }
    if is_specialised {
        parts.push("* 0/1 fixed by export".to_owned());
    }
    write_wrapped("     ", &parts.join("   "), 5, options.width, out)
}

fn input_of(subject: &str) -> Option<&str> {
    subject.split_once("inputs[")?.1.split(']').next()
}

fn write_constants(model: &Model, why: &str, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let Some(constants) = &model.constants else {
        writeln!(out, "{}", paint(TITLE, "Constants"))?;
        return write_wrapped("  unknown: ", why, 4, options.width, out);
    };
    if constants.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", paint(TITLE, "Constants"))?;
    let mut shown: Vec<&Constant> = constants.iter().collect();
    if !options.shows_all && shown.len() > LISTED {
        shown.sort_by_key(|c| std::cmp::Reverse(c.size_bytes.unwrap_or(0)));
        shown.truncate(LISTED);
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|c| {
            let known = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
            let list = |list: &[i64]| format!("[{}]", list.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
            let mut kind = known(c.kind.as_ref().map(word));
            if c.folded == Some(true) {
                kind.push_str(", folded");
            }
            vec![
                known(c.fqn.clone().or_else(|| c.name.clone())),
                known(c.dtype.as_ref().map(ToString::to_string)),
                known(c.shape.as_deref().map(list)),
                known(c.size_bytes.map(bytes_text)),
                kind,
                known(c.device.as_ref().map(ToString::to_string)),
            ]
        })
        .collect();
    write_table(&["name", "dtype", "shape", "bytes", "kind", "device"], &rows, options.width, out)?;
    if shown.len() < constants.len() {
        let mut parts = vec![format!("the {LISTED} largest of {} (--all lists them)", constants.len())];
        for total in &model.weights.totals {
            let place = total.device.as_ref().map_or_else(|| "unknown device".to_owned(), ToString::to_string);
            let dtype = total.dtype.as_ref().map_or("unknown dtype", |d| d.name());
            parts.push(format!("{} {dtype} on {place}: {}", total.count, bytes_text(total.size_bytes)));
        }
        write_parts(&parts, options.width, out)?;
    }
    Ok(())
}

fn write_kernels(model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    if model.kernels.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", paint(TITLE, "Kernels"))?;
    let limit = if options.shows_all { usize::MAX } else { LISTED };
    let rows: Vec<Vec<String>> = model.kernels.iter().take(limit).map(kernel_row).collect();
    write_table(&["name", "kind", "targets", "file"], &rows, options.width, out)?;
    write_rest(model.kernels.len().saturating_sub(rows.len()), out)
}

fn kernel_row(kernel: &Kernel) -> Vec<String> {
    let archs: Vec<String> = kernel.archs.iter().map(ToString::to_string).collect();
    let file = match (&kernel.file, kernel.present) {
        (Some(file), Some(false)) => format!("{file} (missing)"),
        (Some(file), _) => file.clone(),
        (None, _) => "in the library".to_owned(),
    };
    vec![kernel.name.clone(), word(&kernel.kind), archs.join(" "), file]
}

/// What the checks say without any load configuration: contradictions, hazards, notes.
fn write_notes(artifact: &Artifact, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    if !options.only.is_empty() {
        return Ok(());
    }
    let report = verify_artifact(artifact, &LoadConfig::default(), &Policy::default());
    // what holds of several models is said once
    let mut said = HashSet::new();
    let notes = report.findings.iter().filter(|finding| finding.outcome != Outcome::Pass);
    let notes: Vec<&Finding> = notes.filter(|finding| said.insert(&finding.message)).collect();
    if notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", paint(TITLE, "Good to know"))?;
    for note in notes {
        let (sign, style) = if note.outcome == Outcome::Fail { ("×", BAD) } else { ("!", WARN) };
        write_wrapped(&format!("  {} ", paint(style, sign)), &note.message, 4, options.width, out)?;
    }
    Ok(())
}

fn write_unknown(artifact: &Artifact, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    if artifact.unknown.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", paint(TITLE, "Unknown"))?;
    let rows: Vec<Vec<String>> = artifact.unknown.iter().map(|u| vec![u.fact.clone(), u.reason.clone()]).collect();
    write_table(&[], &rows, options.width, out)
}

fn write_members(artifact: &Artifact, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let Some(archive) = &artifact.archive else { return Ok(()) };
    writeln!(out, "{}", paint(TITLE, "Members"))?;
    let rows: Vec<Vec<String>> =
        archive.members.iter().map(|m| vec![m.name.clone(), word(&m.role), bytes_text(m.size_bytes)]).collect();
    write_table(&[], &rows, options.width, out)
}
