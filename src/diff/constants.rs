//! Constants by the name that load-constants calls use, and where their bytes are.

use super::Changes;
use crate::model::{Constant, Model, WeightsLocation};
use crate::report::{Grade, Side};
use std::collections::HashMap;

pub(super) fn compare(old: &Model, new: &Model, changes: &mut Changes<'_>) {
    let where_ = |m: &Model| m.weights.location.map(|l| crate::model::word(&l));
    let (was, is) = (where_(old), where_(new));
    if was != is {
        // bytes that the caller now has to bring break a load; bytes that came in do not
        let brings =
            |m: &Model| matches!(m.weights.location, None | Some(WeightsLocation::Absent | WeightsLocation::Pickled));
        let grade = if brings(new) && !brings(old) { Grade::Breaking } else { Grade::Compatible };
        let text = |w: Option<String>| Some(w.unwrap_or_else(|| "unknown".to_owned()));
        changes.push("weights.location", Side::Caller, grade, text(was), text(is));
    }
    let (Some(a), Some(b)) = (&old.constants, &new.constants) else {
        let count = |m: &Model| m.constants.as_ref().map(Vec::len);
        return changes.equal("constants", Side::Caller, count(old).as_ref(), count(new).as_ref());
    };
    let by_name = |list: &'_ [Constant]| -> HashMap<String, usize> {
        list.iter().enumerate().map(|(i, c)| (name(c), i)).collect()
    };
    let (old_names, new_names) = (by_name(a), by_name(b));
    let added = match new.weights.location {
        Some(WeightsLocation::Absent | WeightsLocation::Pickled) => Grade::Breaking,
        _ => Grade::Compatible,
    };
    for constant in a.iter().filter(|c| c.folded != Some(true)) {
        let key = name(constant);
        match new_names.get(&key).and_then(|i| b.get(*i)) {
            None => changes.push("constants", Side::Caller, Grade::Breaking, Some(describe(constant)), None),
            Some(other) => {
                let (was, is) = (layout(constant), layout(other));
                if was != is {
                    changes.push(&format!("constants[{key:?}]"), Side::Caller, Grade::Breaking, Some(was), Some(is));
                }
            }
        }
    }
    for constant in b.iter().filter(|c| c.folded != Some(true) && !old_names.contains_key(&name(c))) {
        changes.push("constants", Side::Caller, added, None, Some(describe(constant)));
    }
    let total = |m: &Model| m.weights.totals.iter().map(|t| t.size_bytes).sum::<u64>();
    super::host::compare_size("weights.size_bytes", total(old), total(new), changes);
}

fn name(constant: &Constant) -> String {
    constant
        .fqn
        .clone()
        .filter(|f| !f.is_empty())
        .or_else(|| constant.name.clone())
        .unwrap_or_else(|| format!("#{}", constant.index))
}

fn layout(constant: &Constant) -> String {
    let known = |v: Option<String>| v.unwrap_or_else(|| "unknown".to_owned());
    let numbers = |v: &Option<Vec<i64>>| known(v.as_ref().map(|v| format!("{v:?}")));
    format!(
        "{} {}{} {}",
        known(constant.dtype.as_ref().map(ToString::to_string)),
        numbers(&constant.shape),
        constant.stride.as_ref().map(|s| format!(" stride {s:?}")).unwrap_or_default(),
        known(constant.device.as_ref().map(ToString::to_string)),
    )
}

fn describe(constant: &Constant) -> String {
    format!("{} {}", name(constant), layout(constant))
}
