//! What an explanation goes by: the log, the artefact, the load configuration, and how the process ended.

use super::address::Located;
use super::exit::Exit;
use super::log::{Hit, Reading};
use crate::model::{Artifact, Evidence, Model, TensorSpec, Witness};
use crate::target::LoadConfig;

/// One case.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// the log; empty when none was given
    pub reading: &'a Reading,
    /// the artefact; `None` when none was given
    pub artifact: Option<&'a Artifact>,
    /// crash addresses of the log, followed into the artefact's libraries ([`super::address::locate`])
    pub places: &'a [Located],
    /// how it was loaded, as far as the person says
    pub load: &'a LoadConfig,
    /// how the process ended, when the person says
    pub exit: Option<Exit>,
}

impl<'a> Case<'a> {
    /// The model that the log is about, with its position: the one asked for, the one whose files the log names,
    /// the only one, else the first.
    pub fn model(&self) -> Option<(usize, &'a Model)> {
        let models = &self.artifact?.models;
        let named = |name: &String| models.iter().position(|m| m.name == *name);
        let by_library = || {
            models.iter().position(|m| {
                let file = m.library.as_deref().and_then(|l| l.rsplit('/').next());
                file.is_some_and(|f| self.reading.frames.iter().any(|x| x.module_name() == Some(f)))
            })
        };
        let asked = self.load.model.as_ref().and_then(named);
        let in_log = || self.reading.models.iter().find_map(named);
        let index = asked.or_else(by_library).or_else(in_log).unwrap_or(0);
        models.get(index).map(|m| (index, m))
    }
    /// The inputs of that model; empty when they are not known.
    pub fn inputs(&self) -> &'a [TensorSpec] {
        self.model().and_then(|(_, m)| m.inputs.as_deref()).unwrap_or_default()
    }
    /// The input with this number in a message.
    pub fn input(&self, number: Option<i64>) -> Option<&'a TensorSpec> {
        self.inputs().get(usize::try_from(number?).ok()?)
    }
}

/// The line of the log that a hit is.
pub fn log_line(hit: &Hit) -> Evidence {
    let times = if hit.count > 1 { format!(" ({} times)", hit.count) } else { String::new() };
    let line = usize::try_from(hit.line).unwrap_or(usize::MAX);
    Evidence::new(Witness::Log, format!("{}{times}", hit.shown)).at_line(line)
}

/// What is said about one hit.
#[derive(Debug, Clone, Default)]
pub struct Diagnosis {
    /// class, where the artefact shows another one than the text
    pub class: Option<&'static str>,
    /// the cause in one sentence, where the artefact says more than the text
    pub sentence: Option<String>,
    /// both sides
    pub evidence: Vec<Evidence>,
    /// what to do, where the artefact says more
    pub fix: Option<String>,
    /// nothing is proved by the text: what the file itself shows to be wrong goes before it
    pub is_open: bool,
}

impl Diagnosis {
    /// Adds a statement.
    pub fn say(&mut self, source: Witness, detail: impl Into<String>) {
        self.evidence.push(Evidence::new(source, detail));
    }
}

/// `inputs[0] (args[0], arg4_1)`: position, call path, label, internal name.
pub fn input_name(spec: &TensorSpec) -> String {
    let mut names: Vec<&str> = Vec::new();
    names.extend(spec.labels.first().map(|l| l.name.as_str()));
    names.extend(spec.path.as_deref());
    names.extend(spec.name.as_deref());
    if names.is_empty() {
        format!("inputs[{}]", spec.index)
    } else {
        format!("inputs[{}] ({})", spec.index, names.join(", "))
    }
}

/// `float32 [s27, 10], strides [10, 1], on cuda`; what is unknown is left out, and said when nothing is known.
pub fn tensor(spec: &TensorSpec) -> String {
    let dims = |list: &[Option<crate::model::Dim>]| {
        list.iter()
            .map(|d| d.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = spec.dtype.as_ref().map_or_else(String::new, ToString::to_string);
    if let Some(shape) = &spec.shape {
        text.push_str(&format!(" [{}]", dims(shape)));
        let ranges: Vec<String> = shape.iter().flatten().filter_map(range_of).collect();
        if !ranges.is_empty() {
            text.push_str(&format!(" ({})", ranges.join(", ")));
        }
    }
    if let Some(stride) = spec.stride.as_ref().filter(|s| !s.is_empty()) {
        text.push_str(&format!(", strides [{}]", dims(stride)));
    }
    if let Some(device) = &spec.device {
        text.push_str(&format!(", on {device}"));
    }
    let text = text.trim().trim_start_matches(", ").to_owned();
    if text.is_empty() { "nothing about it is stated in the file".to_owned() } else { text }
}

/// `s27: 2..1024` for a dim that is no number.
pub fn range_of(dim: &crate::model::Dim) -> Option<String> {
    if dim.as_static().is_some() {
        return None;
    }
    let end = |b: Option<i64>| b.map_or_else(String::new, |v| v.to_string());
    match dim.bounds() {
        (None, None) => None,
        (min, max) => Some(format!("{dim}: {}..{}", end(min), end(max))),
    }
}
