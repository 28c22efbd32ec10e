//! `show --trace`: one line for each thing that the model does, then what memory it takes.

use super::show::dims_text;
use super::table::{write_table, write_wrapped};
use super::theme::{BAD, DIM, TITLE, WARN, paint};
use super::{TextOptions, bytes_text, count_text};
use crate::model::{Argument, Dim, Model, Peak, Step, SymbolSize, Trace};
use std::collections::BTreeMap;
use std::io::{Result, Write};
use unicode_width::UnicodeWidthStr;

/// Writes the trace of a model; `why` says why there is none.
pub fn write_trace(model: &Model, why: &str, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let Some(trace) = model.trace() else {
        writeln!(out, "{}", paint(TITLE, "Trace"))?;
        return write_wrapped("  unknown: ", why, 4, options.width, out);
    };
    let title = match trace.sizes.as_slice() {
        [] => "Trace".to_owned(),
        sizes => format!("Trace for {}", sizes_text(sizes)),
    };
    writeln!(out, "{}", paint(TITLE, &title))?;
    write_steps(trace, model, options, out)?;
    write_end(trace, model, options, out)?;
    writeln!(out, "{}", paint(TITLE, "Memory"))?;
    write_memory(trace, model, options, out)?;
    let count = format!("{} of {} instructions interpreted", grouped(trace.instructions), grouped(trace.budget));
    writeln!(out, "  {}", paint(DIM, &count))
}

/// `s27 = 8, s77 = 16`
fn sizes_text(sizes: &[SymbolSize]) -> String {
    sizes.iter().map(|s| format!("{} = {}", s.symbol, s.size)).collect::<Vec<_>>().join(", ")
}

/// Numbers of seven digits are read in groups: `3,000,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn write_steps(trace: &Trace, model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let rows: Vec<Vec<String>> = trace.steps.iter().filter_map(allocation_row).collect();
    // allocations stand in columns; calls are as long as they are
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width().min(WIDEST));
        }
    }
    let number_width = trace.steps.len().to_string().len();
    for (at, step) in trace.steps.iter().enumerate() {
        let (action, text) = match allocation_row(step) {
            Some(row) => ("allocate", padded(&row, &widths)),
            None => call_text(step, model),
        };
        let lead = format!("  {:>number_width$}  {action:<8}  ", at.saturating_add(1));
        let hang = lead.width().saturating_add(2);
        write_wrapped(&lead, text.trim_end(), hang, options.width, out)?;
    }
    if trace.steps.is_empty() && trace.is_whole() {
        writeln!(out, "  nothing: no buffer is made and nothing is called")?;
    }
    Ok(())
}

/// A column wider than this does not push the others away.
const WIDEST: usize = 48;

fn padded(row: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (cell, width) in row.iter().zip(widths) {
        text.push_str(cell);
        let blanks = width.saturating_sub(cell.width()).saturating_add(2);
        text.extend(std::iter::repeat_n(' ', blanks));
    }
    text
}

fn allocation_row(step: &Step) -> Option<Vec<String>> {
    let Step::Allocate { tensor, dtype, shape, bytes, device, operator } = step else { return None };
    let known = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    Some(vec![
        tensor.clone(),
        known(dtype.as_ref().map(ToString::to_string)),
        dims_text(shape.as_deref(), None),
        bytes.as_ref().map_or_else(|| "? B".to_owned(), |b| format!("{b} B")),
        known(device.as_ref().map(ToString::to_string)),
        operator.as_ref().map(|name| format!("by {name}")).unwrap_or_default(),
    ])
}

/// What is done, and with what.
fn call_text(step: &Step, model: &Model) -> (&'static str, String) {
    let tensor = |name: &str| tensor_text(name, model);
    let tensors = |list: &[String]| list.iter().map(|name| tensor(name)).collect::<Vec<_>>();
    let number = |dim: &Option<Dim>| dim.as_ref().map_or_else(|| "?".to_owned(), Dim::to_string);
    let triple = |sides: &[Option<Dim>; 3]| format!("[{}]", sides.each_ref().map(number).join(", "));
    let arguments = |list: &[Option<Argument>]| -> Vec<String> {
        list.iter()
            .map(|argument| match argument {
                Some(Argument::Tensor { tensor: name }) => tensor(name),
                Some(Argument::Number(dim)) => dim.to_string(),
                None => "?".to_owned(),
            })
            .collect()
    };
    match step {
        Step::Allocate { .. } => ("allocate", String::new()),
        Step::Free { tensor: name } => ("free", tensor(name)),
        Step::Operator { name, tensors: list } => ("operator", format!("{name}({})", tensors(list).join(", "))),
        Step::CustomOperator { number: index, name, integers, tensors: list } => {
            let name = name.clone().unwrap_or_else(|| format!("number {index} of the extern nodes"));
            let integers = integers.iter().map(number);
            ("custom", format!("{name}({})", tensors(list).into_iter().chain(integers).collect::<Vec<_>>().join(", ")))
        }
        Step::Kernel { name, arguments: list, has_more } => {
            let mut all = arguments(list);
            all.extend(has_more.then(|| "…".to_owned()));
            ("kernel", format!("{name}({})", all.join(", ")))
        }
        Step::Launch { name, grid, block, shared_bytes, arguments: list } => (
            "launch",
            format!(
                "{name}({})  grid {}  block {}  shared {} B",
                arguments(list).join(", "),
                triple(grid),
                triple(block),
                number(shared_bytes)
            ),
        ),
    }
}

/// Constants by the names that people know.
fn tensor_text(name: &str, model: &Model) -> String {
    let index = name.strip_prefix("constants[").and_then(|rest| rest.strip_suffix(']')?.parse::<usize>().ok());
    let constant = index.and_then(|n| model.constants.as_ref()?.get(n));
    let known = constant.and_then(|c| c.fqn.as_ref().or(c.name.as_ref()));
    known.map_or_else(|| name.to_owned(), Clone::clone)
}

/// Why the list ends where it does, and under which conditions it holds.
fn write_end(trace: &Trace, model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let last = trace.steps.len();
    let (cross, warning) = (format!("  {} ", paint(BAD, "×")), format!("  {} ", paint(WARN, "!")));
    if let Some(reason) = &trace.stopped {
        let text = match last {
            0 => format!("nothing is known of the run: {reason}"),
            _ => format!("what comes after step {last} is unknown, and so is the peak: {reason}"),
        };
        write_wrapped(&cross, &text, 4, options.width, out)?;
    }
    if trace.is_cut {
        let text = format!("the list is cut after {last} steps: what comes then is not shown, and the peak is unknown");
        write_wrapped(&cross, &text, 4, options.width, out)?;
    }
    let aligned = model.inputs.iter().flatten().filter_map(|input| Some((input.index, input.alignment_bytes?)));
    let mut by_bytes: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (index, bytes) in aligned {
        by_bytes.entry(bytes).or_default().push(index.to_string());
    }
    for (bytes, inputs) in by_bytes {
        let (subject, begin) = if inputs.len() == 1 { ("input", "begins") } else { ("inputs", "begin") };
        let list = inputs.join(", ");
        let text =
            format!("as long as {subject} {list} {begin} at a multiple of {bytes} bytes; else it is copied first");
        write_wrapped(&warning, &text, 4, options.width, out)?;
    }
    for assumption in &trace.assumes {
        match assumption.holds {
            Some(true) => {}
            Some(false) => {
                let text =
                    format!("for these sizes the code takes another way than the one above: not {}", assumption.text);
                write_wrapped(&cross, &text, 4, options.width, out)?;
            }
            None => {
                let text = format!("as long as {}; else the code takes another way", assumption.text);
                write_wrapped(&warning, &text, 4, options.width, out)?;
            }
        }
    }
    Ok(())
}

fn write_memory(trace: &Trace, model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let place = model.device.as_ref().map_or_else(|| "unknown device".to_owned(), ToString::to_string);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, text: String| rows.push(vec![name.to_owned(), text]);
    row("constants", trace.constant_bytes.map_or_else(|| "unknown".to_owned(), amount));
    match &trace.peak_bytes {
        Some(peak) => {
            row("peak of buffers", peak_text(peak.buffers.as_ref(), peak, |at| Some(at.buffers)));
            row("together", peak_text(peak.total.as_ref(), peak, |at| at.total));
            if let Some(at) = peak.largest.as_ref().filter(|at| !at.live.is_empty()) {
                let step = at.step.saturating_add(1);
                row("live at the peak", format!("{} (after step {step})", at.live.join(", ")));
            }
            if !peak.not_counted.is_empty() {
                let list = peak.not_counted.join(", ");
                row("not counted", format!("{list}: sizes that the code does not state"));
            }
        }
        None => row("peak of buffers", "unknown".to_owned()),
    }
    let inputs = trace.input_bytes.as_ref().map_or_else(|| "unknown".to_owned(), dim_amount);
    let count = count_text(model.inputs.as_ref().map_or(0, Vec::len), "input");
    row("inputs", format!("{inputs} ({count}): the caller's, not in the peak"));
    writeln!(out, "  {}", paint(DIM, &format!("on {place}, without what an allocator adds")))?;
    write_table(&[], &rows, options.width, out)
}

/// `65536 B (64.0 KiB)`
fn amount(bytes: u64) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { format!("{} B ({})", grouped(bytes), bytes_text(bytes)) }
}

fn dim_amount(dim: &Dim) -> String {
    match dim.as_static().and_then(|n| u64::try_from(n).ok()) {
        Some(bytes) => amount(bytes),
        None => format!("{dim} B"),
    }
}

/// `64*s27 B, at s27 = 1024: 65,536 B (64.0 KiB)`
fn peak_text(dim: Option<&Dim>, peak: &Peak, of: impl Fn(&crate::model::PeakAt) -> Option<u64>) -> String {
    let Some(dim) = dim else { return "unknown".to_owned() };
    // a buffer of unknown size can only add to it
    let lead = if peak.not_counted.is_empty() { "" } else { "at least " };
    let text = format!("{lead}{}", dim_amount(dim));
    if dim.as_static().is_some() {
        return text;
    }
    match peak.largest.as_ref().and_then(|at| Some((at, of(at)?))) {
        Some((at, bytes)) => format!("{text}, at {}: {}", sizes_text(&at.sizes), amount(bytes)),
        None => format!("{text} (no number: a size in it has no upper bound)"),
    }
}
