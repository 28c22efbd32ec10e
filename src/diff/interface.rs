//! What a caller sees: device, inputs, outputs, call paths, checks, metadata.

use super::Changes;
use crate::model::{Dim, Expr, Model, TensorSpec};
use crate::report::{Grade, Side};
use std::collections::HashMap;

pub(super) fn compare(old: &Model, new: &Model, changes: &mut Changes<'_>) {
    changes.equal("device", Side::Caller, old.device.as_ref(), new.device.as_ref());
    let before = Before::of(old, new);
    tensors("inputs", old.inputs.as_deref(), new.inputs.as_deref(), &before, changes);
    tensors("outputs", old.outputs.as_deref(), new.outputs.as_deref(), &before, changes);
    changes.list("baked_in", Side::Caller, (&old.baked_in, &new.baked_in), (Grade::Breaking, Grade::Breaking));
    changes.list(
        "capabilities",
        Side::Caller,
        (&old.capabilities, &new.capabilities),
        (Grade::Breaking, Grade::Compatible),
    );
    checks(old, new, changes);
    metadata(old, new, changes);
}

/// What the old build had where the new one has a symbol. With it expressions of both compare, whatever
/// their symbols are called: `s0` here and `s77` there, or a fixed 2 here and a symbol there.
struct Before(HashMap<String, Expr>);

impl Before {
    fn of(old: &Model, new: &Model) -> Self {
        let mut before = HashMap::new();
        for (a, b) in old.inputs.iter().flatten().zip(new.inputs.iter().flatten()) {
            let sizes = (a.shape.iter().flatten().flatten(), b.shape.iter().flatten().flatten());
            for (was, is) in sizes.0.zip(sizes.1) {
                if let Dim::Symbol { symbol, .. } = is {
                    before.entry(symbol.clone()).or_insert_with(|| was.expr());
                }
            }
        }
        Self(before)
    }

    /// True when every old value of `was` is a value of `is`, apart from bounds.
    fn covers(&self, was: &Dim, is: &Dim) -> bool {
        is.expr().substitute(&|name| self.0.get(name).cloned()) == was.expr()
    }
}

fn tensors(
    what: &str,
    old: Option<&[TensorSpec]>,
    new: Option<&[TensorSpec]>,
    before: &Before,
    changes: &mut Changes<'_>,
) {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (old, new) => {
            let count = |list: Option<&[TensorSpec]>| list.map(<[_]>::len);
            return changes.equal(what, Side::Caller, count(old).as_ref(), count(new).as_ref());
        }
    };
    for (a, b) in old.iter().zip(new) {
        let at = format!("{what}[{}]", a.index);
        let fact = |name: &str| format!("{at}.{name}");
        changes.equal(&fact("path"), Side::Caller, a.path.as_ref(), b.path.as_ref());
        changes.equal(&fact("dtype"), Side::Caller, a.dtype.as_ref(), b.dtype.as_ref());
        changes.equal(&fact("device"), Side::Caller, a.device.as_ref(), b.device.as_ref());
        let is_input = what == "inputs";
        dims(&fact("shape"), is_input, (&a.shape, &b.shape), before, changes);
        dims(&fact("stride"), is_input, (&a.stride, &b.stride), before, changes);
        if a.aliases != b.aliases {
            let grade = if b.aliases.is_some() { Grade::Breaking } else { Grade::Compatible };
            changes.push(&fact("aliases"), Side::Caller, grade, a.aliases.clone(), b.aliases.clone());
        }
    }
    let text = |t: &TensorSpec| Some(t.path.clone().or_else(|| t.name.clone()).unwrap_or_else(|| t.index.to_string()));
    let common = old.len().min(new.len());
    for gone in old.iter().skip(common) {
        changes.push(what, Side::Caller, Grade::Breaking, text(gone), None);
    }
    for came in new.iter().skip(common) {
        changes.push(what, Side::Caller, Grade::Breaking, None, text(came));
    }
}

type Shape = Option<Vec<Option<Dim>>>;

fn dims(at: &str, is_input: bool, (old, new): (&Shape, &Shape), before: &Before, changes: &mut Changes<'_>) {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) if old.len() == new.len() => (old, new),
        (old, new) => {
            let rank = |s: &Shape| s.as_ref().map(|s| format!("{} dims", s.len()));
            return changes.equal(at, Side::Caller, rank(old).as_ref(), rank(new).as_ref());
        }
    };
    for (d, (a, b)) in old.iter().zip(new).enumerate() {
        let at = format!("{at}[{d}]");
        match (a, b) {
            (Some(a), Some(b)) => {
                let covers = before.covers(a, b);
                if covers && (!is_input || a.bounds() == b.bounds()) {
                    continue;
                }
                let grade = if covers && is_no_narrower(a, b) { Grade::Compatible } else { Grade::Breaking };
                changes.push(&at, Side::Caller, grade, Some(describe(a)), Some(describe(b)));
            }
            (a, b) => {
                changes.equal(&at, Side::Caller, a.as_ref().map(describe).as_ref(), b.as_ref().map(describe).as_ref())
            }
        }
    }
}

/// True when the bounds of `new` contain those of `old`.
fn is_no_narrower(old: &Dim, new: &Dim) -> bool {
    let ((old_min, old_max), (new_min, new_max)) = (old.bounds(), new.bounds());
    new_min.is_none_or(|n| old_min.is_some_and(|o| o >= n)) && new_max.is_none_or(|n| old_max.is_some_and(|o| o <= n))
}

fn describe(dim: &Dim) -> String {
    match dim.bounds() {
        _ if dim.as_static().is_some() => dim.to_string(),
        (None, None) => dim.to_string(),
        (min, max) => {
            let end = |v: Option<i64>| v.map(|n| n.to_string()).unwrap_or_default();
            format!("{dim} in {}..{}", end(min), end(max))
        }
    }
}

fn checks(old: &Model, new: &Model, changes: &mut Changes<'_>) {
    let state = |m: &Model| m.checks.as_ref().map(|c| if c.compiled_in { "compiled in" } else { "not compiled in" });
    let (was, is) = (state(old), state(new));
    if was != is {
        let grade = if is == Some("compiled in") { Grade::Compatible } else { Grade::Breaking };
        let text = |s: Option<&str>| Some(s.unwrap_or("unknown").to_owned());
        changes.push("checks", Side::Caller, grade, text(was), text(is));
    }
}

/// The user's own keys; those of AOTInductor are claims about facts that are compared themselves.
fn metadata(old: &Model, new: &Model, changes: &mut Changes<'_>) {
    let get = |m: &Model, key: &str| m.metadata.iter().find(|e| e.key == key).map(|e| e.value.clone());
    let mut keys: Vec<&str> = old.metadata.iter().chain(&new.metadata).map(|e| e.key.as_str()).collect();
    keys.retain(|k| !k.starts_with("AOTI_"));
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let (was, is) = (get(old, key), get(new, key));
        if was != is {
            let grade = match (&was, &is) {
                (_, None) => Grade::Breaking,
                (None, _) => Grade::Compatible,
                _ => Grade::Cosmetic,
            };
            changes.push(&format!("metadata[{key:?}]"), Side::Caller, grade, was, is);
        }
    }
}
