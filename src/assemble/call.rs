//! How a caller's arguments become inputs, and names that people use for them.

use crate::metadata::call_spec::{self, Leaf};
use crate::model::{Constant, ConstantKind, Evidence, Exported, Interface, Label, TensorSpec, Unknown, Witness};

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
        input.labels.extend(new);
    }
}
