//! The hash over what callers can tell apart.

use crate::model::{Dim, Expr, Model, TensorSpec};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;

/// Hash over inputs, outputs, constants (name, dtype, shape) and device of all models: equal for builds that differ only in
/// hashes, paths, names of symbols or values of constants. `None` without a model.
pub fn interface_id(models: &[Model]) -> Option<String> {
    let mut text = String::new();
    for model in models {
        // symbols are numbered by appearance: their names change from release to release
        let mut names = HashMap::new();
        let _ = writeln!(text, "model {} {}", model.name, shown(model.device.as_ref()));
        for (what, list) in [("input", &model.inputs), ("output", &model.outputs)] {
            let _ = writeln!(text, "{what}s {:?}", list.as_ref().map(Vec::len));
            for tensor in list.iter().flatten() {
                tensor_text(what, tensor, &mut names, &mut text);
            }
        }
        let mut constants: Vec<String> = model
            .constants
            .iter()
            .flatten()
            .filter(|c| c.folded != Some(true))
            .map(|c| {
                let name = c.fqn.as_deref().or(c.name.as_deref()).unwrap_or_default();
                format!("constant {name} {} {:?}", shown(c.dtype.as_ref()), c.shape)
            })
            .collect();
        constants.sort_unstable();
        constants.iter().for_each(|line| {
            let _ = writeln!(text, "{line}");
        });
    }
    if models.is_empty() {
        return None;
    }
    let digest = Sha256::digest(text.as_bytes());
    Some(digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

fn shown(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "?".to_owned(), ToString::to_string)
}

fn tensor_text(what: &str, tensor: &TensorSpec, names: &mut HashMap<String, String>, text: &mut String) {
    let mut dims = |list: &Option<Vec<Option<Dim>>>| -> String {
        let Some(list) = list else { return "?".to_owned() };
        let shown: Vec<String> =
            list.iter().map(|dim| dim.as_ref().map_or("?".to_owned(), |d| dim_text(d, names))).collect();
        shown.join(", ")
    };
    let shape = dims(&tensor.shape);
    // outputs may be laid out anew by every release
    let stride = if what == "input" { dims(&tensor.stride) } else { String::new() };
    let path = tensor.path.as_deref().unwrap_or_default();
    let (dtype, device) = (shown(tensor.dtype.as_ref()), shown(tensor.device.as_ref()));
    let _ = writeln!(text, "{what} {} {path} {dtype} [{shape}] [{stride}] {device}", tensor.index);
}

fn dim_text(dim: &Dim, names: &mut HashMap<String, String>) -> String {
    let expr = dim.expr();
    for symbol in expr.symbols() {
        let number = names.len();
        names.entry(symbol.to_owned()).or_insert_with(|| format!("${number}"));
    }
    let renamed = expr.substitute(&|symbol| names.get(symbol).map(Expr::symbol));
    format!("{renamed} {:?}", dim.bounds())
}
