//! What changed between two artefacts, graded for the code that calls the model and the machine that runs it.
//!
//! Content hashes, build paths, symbol names and internal names that no caller writes are not compared: a
//! rebuild that differs only in them is "no change".

mod constants;
mod host;
mod interface;

use crate::model::{Artifact, Model};
use crate::report::{ArtifactReport, Change, Grade, Side, Verdict};

/// Collects changes of one side below one subject.
struct Changes<'a> {
    found: &'a mut Vec<Change>,
    prefix: String,
}

impl Changes<'_> {
    fn push(&mut self, subject: &str, side: Side, grade: Grade, old: Option<String>, new: Option<String>) {
        let kind = match (&old, &new) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        };
        let subject = if self.prefix.is_empty() { subject.to_owned() } else { format!("{}.{subject}", self.prefix) };
        self.found.push(Change { subject, kind: kind.to_owned(), grade, side, old, new });
    }

    /// A fact that must stay as it is. One that became unknown counts as broken, one that became known does not.
    fn equal<T: PartialEq + ToString>(&mut self, subject: &str, side: Side, old: Option<&T>, new: Option<&T>) {
        if old == new {
            return;
        }
        let text = |v: Option<&T>| Some(v.map_or_else(|| "unknown".to_owned(), T::to_string));
        let grade = if old.is_none() { Grade::Compatible } else { Grade::Breaking };
        self.push(subject, side, grade, text(old), text(new));
    }

    /// A list in which every entry that disappears or appears is a change of its own.
    fn list<T: PartialEq + ToString>(
        &mut self,
        subject: &str,
        side: Side,
        (old, new): (&[T], &[T]),
        (removed, added): (Grade, Grade),
    ) {
        for gone in old.iter().filter(|v| !new.contains(v)) {
            self.push(subject, side, removed, Some(gone.to_string()), None);
        }
        for came in new.iter().filter(|v| !old.contains(v)) {
            self.push(subject, side, added, None, Some(came.to_string()));
        }
    }
}

/// All changes from `old` to `new`, in the order device, inputs, outputs, constants, kernels, needs, sizes.
pub fn changes(old: &Artifact, new: &Artifact) -> Vec<Change> {
    let mut found = Vec::new();
    for (old_model, new_model) in pairs(&old.models, &new.models) {
        match (old_model, new_model) {
            (Some((_, a)), Some((index, b))) => {
                let mut changes = Changes { found: &mut found, prefix: format!("models[{index}]") };
                if a.name != b.name {
                    changes.equal("name", Side::Caller, Some(&a.name), Some(&b.name));
                }
                interface::compare(a, b, &mut changes);
                constants::compare(a, b, &mut changes);
                host::compare(a, b, &mut changes);
            }
            (Some((_, a)), None) => Changes { found: &mut found, prefix: String::new() }.push(
                "models",
                Side::Caller,
                Grade::Breaking,
                Some(a.name.clone()),
                None,
            ),
            (None, Some((_, b))) => Changes { found: &mut found, prefix: String::new() }.push(
                "models",
                Side::Caller,
                Grade::Compatible,
                None,
                Some(b.name.clone()),
            ),
            (None, None) => {}
        }
    }
    let mut whole = Changes { found: &mut found, prefix: String::new() };
    if old.kind != new.kind {
        let word = |a: &Artifact| Some(crate::model::word(&a.kind));
        whole.push("kind", Side::Caller, Grade::Breaking, word(old), word(new));
    }
    host::compare_size("size_bytes", old.size_bytes, new.size_bytes, &mut whole);
    found
}

/// `diff` as a report over the new artefact; `fail_on` is the lowest grade that fails.
pub fn report(old: &Artifact, new: &Artifact, fail_on: Grade) -> ArtifactReport {
    let changes = changes(old, new);
    let worst = changes.iter().map(|c| c.grade).max();
    let verdict = if worst.is_some_and(|w| w >= fail_on) { Verdict::Fail } else { Verdict::Pass };
    let summary = match changes.len() {
        0 => format!("no change against {}", old.path),
        1 => format!("1 change against {}", old.path),
        n => format!("{n} changes against {}", old.path),
    };
    ArtifactReport { summary, changes, ..ArtifactReport::new(&new.path, verdict) }
}

type Pair<'a> = (Option<(usize, &'a Model)>, Option<(usize, &'a Model)>);

/// Models by name; two artefacts with one model each are compared whatever its name.
fn pairs<'a>(old: &'a [Model], new: &'a [Model]) -> Vec<Pair<'a>> {
    if let ([a], [b]) = (old, new) {
        return vec![(Some((0, a)), Some((0, b)))];
    }
    let find = |models: &'a [Model], name: &str| models.iter().enumerate().find(|(_, m)| m.name == name);
    old.iter()
        .enumerate()
        .map(|(i, a)| (Some((i, a)), find(new, &a.name)))
        .chain(new.iter().enumerate().filter(|(_, b)| find(old, &b.name).is_none()).map(|b| (None, Some(b))))
        .collect()
}
