//! From an error to its cause: error texts as data, log reading, and what the artefact says about them.
//!
//! The earliest text of rank cause wins; where a text proves nothing (a fault, an opaque message, no text at all)
//! what the file itself shows to be wrong goes before it. Context and phase only explain.

pub mod address;
mod case;
pub mod class;
mod evidence;
pub mod exit;
pub mod frame;
pub mod log;
pub mod pattern;
mod redact;
mod runtime;

pub use case::Case;
pub use redact::redact;

use crate::limits;
use crate::model::{Evidence, Model, Release, Witness};
use crate::report::{ArtifactReport, Cause, Verdict};
use case::{Diagnosis, log_line};
use evidence::Precondition;
use log::Hit;
use pattern::{Origin, Rank, render};

/// Readable form of a mangled name; the name itself when it is not mangled.
pub fn demangle(name: &str) -> String {
    let text = name.strip_prefix('_').filter(|n| n.starts_with("_Z")).unwrap_or(name);
    if !text.starts_with("_Z") || text.len() > limits::SHOWN_TEXT_BYTES {
        return name.to_owned();
    }
    cpp_demangle::Symbol::new(text).ok().and_then(|s| s.demangle().ok()).unwrap_or_else(|| name.to_owned())
}

/// Explains one case. `verdict` of the report is pass when something was recognised and unknown when not.
pub fn explain(case: &Case) -> ArtifactReport {
    let mut causes = causes(case);
    let recognised = !causes.is_empty();
    if causes.is_empty() {
        causes.push(unrecognised(case).unwrap_or_else(|| nothing(case)));
    }
    for (rank, cause) in causes.iter_mut().enumerate() {
        cause.rank = rank.saturating_add(1);
    }
    let path = case.artifact.map_or_else(|| "log".to_owned(), |a| a.path.clone());
    let mut report = ArtifactReport::new(path, if recognised { Verdict::Pass } else { Verdict::Unknown });
    report.summary = case.artifact.map_or_else(|| "no artefact given".to_owned(), crate::model::Artifact::summary);
    report.causes = causes;
    report
}

/// Likely causes, best first.
fn causes(case: &Case) -> Vec<Cause> {
    let hits = distinct(case);
    let found: Vec<(Cause, bool)> = hits
        .iter()
        .filter(|h| h.found.pattern.rank == Rank::Cause)
        .map(|hit| {
            let said = evidence::look_up(hit, case);
            let is_open = said.is_open;
            (cause(hit, said, case), is_open)
        })
        .collect();
    let nothing_proved = found.first().is_none_or(|(_, is_open)| *is_open);
    let died = matches!(case.exit, Some(exit::Exit::Signal(_)));
    let has_stack = case.reading.frames.iter().any(frame::Frame::is_in_artifact);
    let was_error = died || has_stack || !case.reading.hits.is_empty() || case.reading.last_exception.is_some();
    let mut before = Vec::new();
    let mut after = Vec::new();
    if nothing_proved && was_error {
        for condition in ordered_for_exit(case, evidence::preconditions(case)) {
            let is_proved = condition.is_proved;
            let cause = from_precondition(condition, case);
            if is_proved { before.push(cause) } else { after.push(cause) }
        }
    } else if !was_error {
        before.extend(runtime::consequences(case));
    }
    let mut causes = before;
    causes.extend(found.into_iter().map(|(cause, _)| cause));
    causes.extend(after);
    if has_stack && hits.is_empty() {
        causes.push(stack(case));
    }
    if causes.is_empty() && died {
        causes.extend(silent_death(case));
    }
    // a shim's call is told by its own row
    let is_shim = |h: &&Hit| h.found.group(1).is_some_and(|c| c.contains("aoti_torch_"));
    let phases = || case.reading.ranked(Rank::Phase).filter(|h| !is_shim(h));
    let has_text = !causes.is_empty();
    if !has_text {
        match phases().next().or(case.reading.ranked(Rank::Phase).next()) {
            Some(hit) => causes.push(opaque(hit, case)),
            None if !hits.is_empty() => causes.extend(unrecognised(case)),
            None => {}
        }
    }
    for hit in hits.iter().filter(|h| h.found.pattern.rank == Rank::Context) {
        let said = evidence::look_up(hit, case);
        causes.push(cause(hit, said, case));
    }
    if let Some(first) = causes.first_mut() {
        for hit in phases().take(if has_text { 2 } else { 0 }) {
            first.evidence.push(phase(hit));
        }
        other_build(case, first);
        if case.artifact.is_none() {
            let next = "Give the artefact too (`aoti-inspect explain MODEL LOG`): it shows both sides.";
            first.fix = Some(match first.fix.take() {
                Some(fix) if !fix.is_empty() => format!("{fix} {next}"),
                _ => next.to_owned(),
            });
        }
    }
    causes
}

/// One hit per pattern, the one with most groups; texts that only follow from another one are left out.
fn distinct<'a>(case: &'a Case) -> Vec<&'a Hit> {
    let mut kept: Vec<&Hit> = Vec::new();
    let present = |h: &Hit| h.found.groups.iter().flatten().count();
    for hit in &case.reading.hits {
        match kept.iter_mut().find(|h| h.found.pattern.id == hit.found.pattern.id) {
            Some(known) if present(hit) > present(known) => *known = hit,
            Some(_) => {}
            None => kept.push(hit),
        }
    }
    let named = kept.iter().any(|h| matches!(h.found.pattern.id, "ioob" | "device-assert" | "index-op"));
    kept.retain(|h| !(named && h.found.pattern.id == "dsa"));
    kept.sort_by_key(|h| h.line);
    kept
}

fn cause(hit: &Hit, said: Diagnosis, case: &Case) -> Cause {
    let pattern = hit.found.pattern;
    let mut lines = vec![log_line(hit)];
    lines.extend(said.evidence);
    if let Some((_, model)) = case.model() {
        lines.extend(release_contradiction(hit, model));
    }
    let fix = said.fix.unwrap_or_else(|| pattern.fix.to_owned());
    Cause {
        rank: 0,
        pattern: pattern.id.to_owned(),
        class: said.class.unwrap_or(pattern.class).to_owned(),
        line: Some(hit.line),
        sentence: said.sentence.unwrap_or_else(|| render(pattern.sentence, &hit.found)),
        evidence: unique(lines),
        fix: Some(fix).filter(|f| !f.is_empty()),
    }
}

fn unique(lines: Vec<Evidence>) -> Vec<Evidence> {
    let mut kept: Vec<Evidence> = Vec::new();
    for line in lines {
        if !kept.contains(&line) {
            kept.push(line);
        }
    }
    kept
}

/// A text that only other releases compile into an artefact.
fn release_contradiction(hit: &Hit, model: &Model) -> Option<Evidence> {
    let pattern = hit.found.pattern;
    if pattern.origin != Origin::Artifact {
        return None;
    }
    let (min, max) = (model.compiled_by.torch_min, model.compiled_by.torch_max);
    let too_old = matches!((pattern.since, max), (Some(since), Some(max)) if max < since);
    let too_new = matches!((pattern.until, min), (Some(until), Some(min)) if min > until);
    if !too_old && !too_new {
        return None;
    }
    let range = |a: Option<Release>, b: Option<Release>| match (a, b) {
        (Some(a), Some(b)) if a == b => format!("torch {a}"),
        (Some(a), Some(b)) => format!("torch {a} to {b}"),
        (Some(a), None) => format!("torch {a} or newer"),
        (None, Some(b)) => format!("torch {b} or older"),
        (None, None) => "an unknown torch".to_owned(),
    };
    Some(Evidence::new(
        Witness::Inferred,
        format!(
            "this text is compiled into artefacts by {}, and this artefact was compiled by {}: the log comes from another artefact",
            range(pattern.since, pattern.until),
            range(min, max)
        ),
    ))
}

/// The log names a library file that this package does not hold.
fn other_build(case: &Case, first: &mut Cause) {
    let Some(archive) = case.artifact.and_then(|a| a.archive.as_ref()) else { return };
    let named: Vec<&str> =
        case.reading.frames.iter().filter_map(|f| f.module_name()).filter(|m| m.ends_with(".wrapper.so")).collect();
    let Some(file) = named.first() else { return };
    let held = |name: &str| archive.members.iter().any(|m| m.name.rsplit('/').next() == Some(name));
    if !named.iter().any(|n| held(n)) && archive.members.iter().any(|m| m.name.ends_with(".wrapper.so")) {
        first.evidence.push(Evidence::new(
            Witness::Archive,
            format!(
                "the log names the library {file}, which is not in this package: it may be another build of the model"
            ),
        ));
    }
}

fn phase(hit: &Hit) -> Evidence {
    let call = hit.found.group(1).unwrap_or_default();
    let when = match call {
        c if c.starts_with("create") || c.contains("ContainerCreate") => "it failed while the model was loaded",
        c if c.starts_with("run") || c.contains("ContainerRun") => "it failed while the model ran",
        c if c.contains("update") || c.contains("Update") => "it failed while constants were updated",
        _ => "it failed in a call of the model's interface",
    };
    let line = usize::try_from(hit.line).unwrap_or(usize::MAX);
    Evidence::new(Witness::Log, format!("{when} (`{call}`)")).at_line(line)
}

fn from_precondition(condition: Precondition, case: &Case) -> Cause {
    let mut lines = condition.evidence;
    if let Some(exit::Exit::Signal(signal)) = case.exit {
        lines.push(Evidence::new(
            Witness::Log,
            format!("the process was killed by {}: {}", signal.name, signal.meaning),
        ));
    }
    Cause {
        rank: 0,
        pattern: condition.id.to_owned(),
        class: condition.class.to_owned(),
        line: None,
        sentence: condition.sentence,
        evidence: unique(lines),
        fix: Some(condition.fix).filter(|f| !f.is_empty()),
    }
}

/// The signal says which preconditions are likely: an illegal instruction is a matter of the CPU.
fn ordered_for_exit(case: &Case, mut conditions: Vec<Precondition>) -> Vec<Precondition> {
    let Some(exit) = case.exit else { return conditions };
    let fits = |class: &str| match class {
        "C13" => exit.is_signal("SIGILL"),
        "C14" => exit.is_signal("SIGBUS"),
        "C15" => exit.is_signal("SIGSEGV") || exit.is_signal("SIGKILL"),
        _ => false,
    };
    conditions.sort_by_key(|c| (!c.is_proved, !fits(c.class)));
    conditions
}

/// Only stack frames: where the process stood, without a claim about why.
fn stack(case: &Case) -> Cause {
    let said = evidence::where_it_stood(case);
    let first = case.reading.frames.iter().find(|f| f.is_in_artifact());
    let function = first.and_then(|f| f.function.as_deref()).unwrap_or("the model's library");
    let mut lines = said.evidence;
    lines.extend(evidence::ruled_out(case));
    Cause {
        rank: 0,
        pattern: "stack".to_owned(),
        class: "C19".to_owned(),
        line: first.map(|f| f.line),
        sentence: format!("The log holds stack frames and no error text: the process stood in {function}."),
        evidence: unique(lines),
        fix: Some(format!("Give the lines before the frames too. {}", evidence::switches(case))),
    }
}

/// Killed by a signal, no text, and the file shows nothing wrong.
fn silent_death(case: &Case) -> Option<Cause> {
    let Some(exit::Exit::Signal(signal)) = case.exit else { return None };
    case.artifact?;
    let class = match signal.name {
        "SIGILL" => "C13",
        "SIGKILL" => "C15",
        _ => "C19",
    };
    let mut lines =
        vec![Evidence::new(Witness::Log, format!("the process was killed by {}: {}", signal.name, signal.meaning))];
    lines.extend(evidence::ruled_out(case));
    Some(Cause {
        rank: 0,
        pattern: "exit-status".to_owned(),
        class: class.to_owned(),
        line: None,
        sentence: format!(
            "Nothing in the file explains {} ({}); what is left are the inputs, which nothing compares while the checks are off, and the host.",
            signal.name, signal.meaning
        ),
        evidence: lines,
        fix: Some(evidence::switches(case)),
    })
}

/// Only the phase is known: the line before it, which holds the cause, when there is one.
fn opaque(hit: &Hit, case: &Case) -> Cause {
    let pattern = hit.found.pattern;
    let said = case.reading.errors.iter().rev().find(|s| s.line <= hit.line && !s.text.contains("API call failed"));
    let mut lines = vec![log_line(hit), phase(hit)];
    let sentence = match said {
        Some(said) => {
            lines.push(
                Evidence::new(Witness::Log, said.text.clone())
                    .at_line(usize::try_from(said.line).unwrap_or(usize::MAX)),
            );
            format!("The cause stands in line {}: {}", said.line, said.text)
        }
        None => render(pattern.sentence, &hit.found),
    };
    Cause {
        rank: 0,
        pattern: pattern.id.to_owned(),
        class: pattern.class.to_owned(),
        line: Some(hit.line),
        sentence,
        evidence: lines,
        fix: Some(format!("{} {}", pattern.fix, evidence::switches(case)).trim().to_owned()),
    }
}

/// No known text: what the log ends with, without a claim.
fn unrecognised(case: &Case) -> Option<Cause> {
    let known = case.reading.errors.iter().find(|s| !s.text.contains("API call failed"));
    let said = known.or(case.reading.last_exception.as_ref())?;
    Some(Cause {
        rank: 0,
        pattern: "exception".to_owned(),
        class: "C23".to_owned(),
        line: Some(said.line),
        sentence: format!("No known text of AOTInductor is in the log; it ends with: {}", said.text),
        evidence: Vec::new(),
        fix: Some(format!("Keep stderr of the process and give it too (`2>&1`). {}", evidence::switches(case))),
    })
}

/// Neither a known text nor an exception.
fn nothing(case: &Case) -> Cause {
    Cause {
        rank: 0,
        pattern: "nothing".to_owned(),
        class: "C23".to_owned(),
        line: None,
        sentence: format!("Nothing in the {} lines of the log is an error text that is known.", case.reading.lines),
        evidence: Vec::new(),
        fix: Some(
            "Keep stderr of the process and give it too (`2>&1`), or say with --exit how the process ended.".to_owned(),
        ),
    }
}
