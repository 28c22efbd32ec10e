//! How a caller's arguments become inputs, and names that people use for them.

use crate::metadata::call_spec::{self, Leaf};
use crate::metadata::symbol_number;
use crate::model::{
    Constant, ConstantKind, Dim, Evidence, Exported, Interface, Label, MetadataEntry, TensorSpec, Unknown, Witness,
};

/// Gives inputs and outputs their call paths; returns the paths of leaves that were baked in at export.
pub fn paths(interface: &mut Interface) -> Vec<String> {
    let mut baked_in = Vec::new();
    match interface.in_spec.as_deref().map(call_spec::input_leaves) {
        None => {}
        Some(Ok(None)) => without_spec("inputs", interface.inputs.len(), &mut interface.unknown),
        Some(Ok(Some(leaves))) => baked_in = input_paths(interface, &leaves),
        Some(Err(error)) => {
            let reason = format!("the call spec cannot be read: {}", error.message());
            interface.unknown.push(Unknown::new("inputs", reason));
        }
    }
    match interface.out_spec.as_deref().map(call_spec::output_leaves) {
        Some(Ok(Some(leaves))) if leaves.len() == interface.outputs.len() => {
            for (output, leaf) in interface.outputs.iter_mut().zip(leaves) {
                output.path = Some(leaf.path);
            }
        }
        Some(Ok(Some(leaves))) => {
            let reason = format!("the call spec has {} leaves for {} outputs", leaves.len(), interface.outputs.len());
            each("outputs", interface.outputs.len(), &reason, &mut interface.unknown);
        }
        Some(Ok(None)) => without_spec("outputs", interface.outputs.len(), &mut interface.unknown),
        Some(Err(error)) => {
            let reason = format!("the call spec cannot be read: {}", error.message());
            each("outputs", interface.outputs.len(), &reason, &mut interface.unknown);
        }
        None => {}
    }
    baked_in
}

fn input_paths(interface: &mut Interface, leaves: &[Leaf]) -> Vec<String> {
    let names: Vec<Option<String>> = interface.inputs.iter().map(|i| i.name.clone()).collect();
    let mapped = call_spec::map_inputs(leaves.len(), &names, lifted(&interface.constants));
    let path = |leaf: usize| leaves.get(leaf).map(|l| l.path.clone());
    for (input, leaf) in interface.inputs.iter_mut().zip(&mapped.leaf_of_input) {
        input.path = leaf.and_then(path);
        if mapped.is_inferred && input.path.is_some() {
            input.inferred.push("path".to_owned());
            let rule = "path: the numbers in the internal names tell tensors from other arguments";
            input.evidence.push(Evidence::new(Witness::Inferred, rule));
        }
    }
    if let Some(note) = &mapped.note {
        each("inputs", interface.inputs.len(), note, &mut interface.unknown);
    }
    mapped.baked_in.into_iter().filter_map(path).collect()
}

/// Parameters and buffers take numbers of the graph's arguments before the inputs do.
fn lifted(constants: &[Constant]) -> usize {
    let is_lifted = |c: &&Constant| matches!(c.kind, Some(ConstantKind::Parameter | ConstantKind::Buffer));
    constants.iter().filter(is_lifted).count()
}

fn without_spec(list: &str, count: usize, unknown: &mut Vec<Unknown>) {
    each(list, count, "the model was built without a call spec; only the order is known", unknown);
}

fn each(list: &str, count: usize, reason: &str, unknown: &mut Vec<Unknown>) {
    unknown.extend((0..count).map(|index| Unknown::new(format!("{list}[{index}].path"), reason)));
}

/// Takes parameter names from an exported program, when it is the program that this model was compiled from: as many
/// inputs, of the same types and ranks.
pub fn labels(inputs: &mut [TensorSpec], program: &Exported) {
    let fits = |(compiled, exported): (&TensorSpec, &TensorSpec)| {
        let same = |a: Option<usize>, b: Option<usize>| a.is_none() || b.is_none() || a == b;
        (compiled.dtype.is_none() || compiled.dtype == exported.dtype) && same(compiled.rank, exported.rank)
    };
    if inputs.len() != program.inputs.len() || !inputs.iter().zip(&program.inputs).all(fits) {
        return;
    }
    for (input, exported) in inputs.iter_mut().zip(&program.inputs) {
        let new: Vec<Label> = exported.labels.iter().filter(|label| !input.labels.contains(label)).cloned().collect();
        let support: Vec<Evidence> = new.iter().filter_map(|label| symbol_support(input, &label.name)).collect();
        input.evidence.extend(support);
        input.labels.extend(new);
        if input.path.is_none() {
            input.path.clone_from(&exported.path);
        }
    }
}

/// A symbol whose number is the hash of a parameter's name supports that name (format reference, 7.3).
fn symbol_support(input: &TensorSpec, label: &str) -> Option<Evidence> {
    let (parameter, path) = label.split_at_checked(label.find(['[', '.']).unwrap_or(label.len()))?;
    let mut dims = input.shape.iter().flatten().enumerate();
    dims.find_map(|(d, dim)| match dim {
        Some(Dim::Symbol { symbol, .. }) if symbol_number::supports(symbol, parameter, path, d) => {
            let detail = format!("{symbol} has the number that export gives dim {d} of {label}");
            Some(Evidence::new(Witness::Inferred, detail))
        }
        _ => None,
    })
}

/// Metadata keys under which people keep the names of the inputs, as a JSON list or separated by commas or blanks.
const NAME_LISTS: &[&str] = &["input_names", "inputs", "input_keys", "forward_arg_names", "arg_names"];

/// Labels from the user's metadata, where a list has one name for each input.
pub fn labels_of_user(inputs: &mut [TensorSpec], metadata: &[MetadataEntry]) {
    let count = inputs.len();
    for entry in metadata.iter().filter(|entry| NAME_LISTS.contains(&entry.key.as_str())) {
        let names: Vec<String> = serde_json::from_str(&entry.value).unwrap_or_else(|_| {
            entry.value.split([',', ' ']).map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned).collect()
        });
        if names.len() != count {
            continue;
        }
        for (input, name) in inputs.iter_mut().zip(names) {
            input.evidence.extend(symbol_support(input, &name));
            if !input.labels.iter().any(|label| label.name == name) {
                input.labels.push(Label { name, source: Witness::Metadata });
            }
        }
    }
}
