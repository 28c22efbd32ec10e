//! What the caller passes against what the model takes. The verdict is the one of the runtime with its input checks
//! on, and stricter only where the runtime is blind (format reference 5.3, 9.6): rank, and relations between dims.

mod cases;
mod codes;
mod empty_range;
pub(super) mod shapes;
mod strides;
#[cfg(test)]
mod tests;

pub use codes::CODES;
pub use shapes::bounds_text;

use super::{Judgement, Subject};
use crate::model::{Device, Expr, Model, SymbolRange, TensorSpec};
use crate::report::{Finding, Level, Outcome};
use crate::target::{InputRequests, TensorRequest};
use shapes::Shapes;
use std::collections::BTreeMap;

/// Where results of one list of inputs go. For many lists in a row only what does not hold is kept.
pub(super) struct Sink<'a, 's> {
    /// whose inputs
    pub subject: &'a Subject<'s>,
    out: Judgement,
    keeps_passes: bool,
}

impl<'a, 's> Sink<'a, 's> {
    fn new(subject: &'a Subject<'s>, keeps_passes: bool) -> Self {
        Self { subject, out: Judgement::default(), keeps_passes }
    }
    fn push(&mut self, finding: Finding) {
        self.out.push(finding);
    }
    fn pass(&mut self, code: &'static str, fact: &str, message: impl FnOnce() -> String) {
        if self.keeps_passes {
            self.out.push(Finding::new(code, Outcome::Pass, self.subject.path(fact), message()));
        }
    }
    fn fail(&mut self, code: &'static str, fact: &str, message: String, more: impl FnOnce(Finding) -> Finding) {
        self.out.push(more(Finding::new(code, Outcome::Fail, self.subject.path(fact), message)));
    }
    fn undecided(&mut self, code: &'static str, fact: &str, message: String) {
        self.out.push(Finding::new(code, Outcome::Unknown, self.subject.path(fact), message));
    }
    /// Unknown because the file does not tell.
    fn unknown(&mut self, code: &'static str, fact: &str, what: &str) {
        let finding = self.subject.unknown(code, fact, what);
        self.out.push(finding);
    }
    fn not_asked(&mut self, topic: String) {
        self.out.not_asked(topic);
    }
}

/// What the model's symbols are for given shapes: numbers, or expressions over the given names. Whether the shapes fit
/// is what the checks tell.
pub fn symbol_values(model: &Model, requests: &InputRequests) -> BTreeMap<String, Expr> {
    let inputs = model.inputs.as_deref().unwrap_or_default();
    let shapes = Shapes::new(inputs, &requests.resolve(inputs).tensors, &requests.dims);
    let value = |range: &SymbolRange| Some((range.symbol.clone(), shapes.value_of(&Expr::symbol(&range.symbol))?));
    model.symbols.iter().filter_map(value).collect()
}

/// All that is asked about the inputs of one model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let requests = &subject.config.inputs;
    if requests.is_empty() && subject.config.cases.is_empty() {
        judgement.not_asked("inputs");
    }
    if !requests.is_empty() {
        let mut sink = Sink::new(subject, true);
        judge_requests(&mut sink);
        judgement.findings.append(&mut sink.out.findings);
        sink.out.not_asked.into_iter().for_each(|topic| judgement.not_asked(topic));
    }
    cases::check(subject, judgement);
    note_checks(subject, judgement);
    note_limits(subject, judgement);
}

fn judge_requests(sink: &mut Sink) {
    let requests = &sink.subject.config.inputs;
    let Some(inputs) = &sink.subject.model.inputs else {
        sink.unknown("input-count", "inputs", "whether the model takes these inputs");
        return;
    };
    if let Some(count) = requests.count {
        judge_count(sink, inputs.len(), count);
    }
    let resolved = requests.resolve(inputs);
    if requests.count.is_none()
        && let Some(last) = resolved.surplus.last()
    {
        judge_count(sink, inputs.len(), last + 1);
    }
    for (name, error) in &resolved.missing {
        let message = error.to_string();
        sink.fail("input-missing", "inputs", message, |f| f.sides(format!("{} inputs", inputs.len()), name));
    }
    for error in &resolved.twice {
        sink.fail("input-ambiguous", "inputs", error.to_string(), |f| f.fix("ask each part of an input once"));
    }
    judge_tensors(sink, inputs, &resolved.tensors);
    note_not_asked(sink, inputs, &resolved.tensors);
}

fn judge_count(sink: &mut Sink, wanted: usize, given: usize) {
    if wanted == given {
        sink.pass("input-count", "inputs", || format!("the model takes {wanted} {}", plural(wanted)));
    } else {
        let plural = plural(wanted);
        sink.fail("input-count", "inputs", format!("the model takes {wanted} {plural}, {given} are given"), |f| {
            f.sides(wanted, given).fix("pass all tensors of the call in flat order; `show --call` prints them")
        });
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "input" } else { "inputs" }
}

/// One list of inputs by position: rank, dtype, sizes, strides, device.
fn judge_tensors(sink: &mut Sink, inputs: &[TensorSpec], tensors: &BTreeMap<usize, TensorRequest>) {
    let mut shapes = Shapes::new(inputs, tensors, &sink.subject.config.inputs.dims);
    for (position, tensor) in tensors {
        let Some(input) = inputs.get(*position) else { continue };
        judge_dtype(sink, input, tensor);
        judge_rank(sink, input, tensor);
        shapes.judge(sink, input);
        strides::judge(sink, &mut shapes, input, tensor);
        judge_device(sink, input, tensor);
    }
    empty_range::judge(sink, &shapes);
}

fn judge_dtype(sink: &mut Sink, input: &TensorSpec, tensor: &TensorRequest) {
    let Some(given) = &tensor.dtype else { return };
    let fact = format!("inputs[{}].dtype", input.index);
    let name = input.called("input");
    match &input.dtype {
        None => sink.unknown("input-dtype", &fact, &format!("whether {name} takes {given}")),
        Some(wanted) if wanted == given => sink.pass("input-dtype", &fact, || format!("{name} takes {given}")),
        Some(wanted) => sink.fail("input-dtype", &fact, format!("{name} takes {wanted}, not {given}"), |f| {
            f.sides(wanted, given)
                .fix(format!("convert the input to torch.{wanted}, or export and compile with a torch.{given} example"))
                .evidence(input.evidence.iter().cloned())
        }),
    }
}

fn judge_rank(sink: &mut Sink, input: &TensorSpec, tensor: &TensorRequest) {
    let Some(given) = tensor.shape.as_ref().map(Vec::len) else { return };
    let fact = format!("inputs[{}].rank", input.index);
    let name = input.called("input");
    let at_least = input.shape.as_ref().map_or(0, Vec::len);
    match input.rank {
        Some(wanted) if wanted == given => sink.pass("input-rank", &fact, || format!("{name} has {given} dims")),
        None if given >= at_least => {
            sink.unknown("input-rank", &fact, &format!("whether {name} takes {given} dims"));
        }
        wanted => {
            let wanted = wanted.map_or_else(|| format!("at least {at_least}"), |n| n.to_string());
            sink.fail("input-rank", &fact, format!("{name} has {wanted} dims, {given} are given"), |f| {
                f.sides(wanted, given)
                    .fix("reshape the input; the runtime itself never compares the rank")
                    .evidence(input.evidence.iter().cloned())
            });
        }
    }
}

fn judge_device(sink: &mut Sink, input: &TensorSpec, tensor: &TensorRequest) {
    let Some(given) = &tensor.device else { return };
    let fact = format!("inputs[{}].device", input.index);
    let name = input.called("input");
    // without a check of its own an input is expected where the model runs
    let Some(wanted) = input.device.as_ref().or(sink.subject.model.device.as_ref()) else {
        return sink.unknown("input-device", &fact, &format!("whether {name} is expected on {given}"));
    };
    if wanted.kind != given.kind {
        let fix = format!("move the input with .to(\"{wanted}\") before the call");
        return sink.fail("input-device", &fact, format!("{name} is expected on {wanted}, not on {given}"), |f| {
            f.sides(wanted, given).fix(fix).evidence(input.evidence.iter().cloned())
        });
    }
    let index = |device: &Device| device.index;
    match (sink.subject.config.device.as_ref().and_then(index), given.index) {
        (Some(loaded), Some(passed)) if loaded != passed => {
            let message = format!(
                "{name} lies on {given}, the model is loaded on {}:{loaded}; nothing checks this at run time",
                given.kind
            );
            sink.push(
                Finding::new("input-device", Outcome::Warn, sink.subject.path(&fact), message)
                    .level(Level::Warn)
                    .sides(format!("{}:{loaded}", given.kind), given)
                    .fix("put the inputs on the device that the model is loaded on"),
            );
        }
        _ => sink.pass("input-device", &fact, || format!("{name} is expected on {wanted}")),
    }
}

/// Inputs and parts of inputs that the requests leave open.
fn note_not_asked(sink: &mut Sink, inputs: &[TensorSpec], tensors: &BTreeMap<usize, TensorRequest>) {
    let nothing: Vec<usize> = (0..inputs.len()).filter(|n| !tensors.contains_key(n)).collect();
    if !nothing.is_empty() {
        sink.not_asked(positions("input", &nothing));
    }
    let open = |is_asked: fn(&TensorRequest) -> bool| -> Vec<usize> {
        tensors.iter().filter(|(_, t)| !is_asked(t)).map(|(n, _)| *n).collect()
    };
    for (part, open) in [("dtype", open(|t| t.dtype.is_some())), ("shape", open(|t| t.shape.is_some()))] {
        if !open.is_empty() {
            sink.not_asked(format!("{part} of {}", positions("input", &open)));
        }
    }
}

/// `inputs 1 to 25`, `inputs 0, 3`.
fn positions(what: &str, list: &[usize]) -> String {
    match list {
        [one] => format!("{what} {one}"),
        [first, .., last] if last - first + 1 == list.len() && list.len() > 2 => format!("{what}s {first} to {last}"),
        list => {
            let shown: Vec<String> = list.iter().take(8).map(usize::to_string).collect();
            format!("{what}s {}{}", shown.join(", "), if list.len() > 8 { ", …" } else { "" })
        }
    }
}

/// Input checks that are compiled in and off by default: what `show` tells and `verify` makes up for.
fn note_checks(subject: &Subject, judgement: &mut Judgement) {
    let Some(checks) = &subject.model.checks else { return };
    let message = match (&checks.enabled_by, checks.compiled_in) {
        (Some(variable), true) => {
            format!("input checks are in the file but off: wrong inputs run silently unless {variable}=1")
        }
        (None, true) => return,
        (_, false) => "the file has no input checks: wrong inputs run silently".to_owned(),
    };
    judgement.push(Finding::new("input-unchecked", Outcome::Warn, subject.path("checks"), message).level(Level::Allow));
}

fn note_limits(subject: &Subject, judgement: &mut Judgement) {
    let is_dynamic =
        |i: &TensorSpec| i.shape.iter().flatten().any(|d| d.as_ref().is_some_and(|d| d.as_static().is_none()));
    let has_guards = subject.config.exported.is_some() || subject.artifact.exported.is_some();
    if !has_guards && subject.model.inputs.iter().flatten().any(is_dynamic) {
        judgement.not_knowable(
            "divisibility of dynamic dims: the compiled file records no such guards (give --exported to see them)",
        );
    }
}
