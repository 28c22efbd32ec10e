//! Outputs: the tensors that the run left behind.

use super::layout::{self, Source};
use super::symbols::Symbols;
use crate::interpret::session::Visit;
use crate::interpret::tensors::{Kind, Tensor, TensorId};
use crate::model::{Dim, Evidence, Expr, Interface, TensorSpec, Unknown, Witness};

/// All outputs, with what is unknown about them.
pub fn outputs(visit: &Visit<'_>, symbols: &Symbols, interface: &mut Interface) -> Vec<TensorSpec> {
    let count = visit.counts[1].unwrap_or(0);
    (0..count).map(|index| output(visit, symbols, index, interface)).collect()
}

fn output(visit: &Visit<'_>, symbols: &Symbols, index: usize, interface: &mut Interface) -> TensorSpec {
    let mut output =
        TensorSpec { index, name: visit.output_names.get(index).cloned().flatten(), ..TensorSpec::default() };
    let tensor = visit.outputs.get(index).copied().flatten().and_then(|id| Some((id, visit.machine.tensors.get(id)?)));
    let mut reason = "the code could not be followed to its end".to_owned();
    if let Some((id, tensor)) = tensor {
        describe(visit, symbols, &mut output, id, tensor, interface);
        reason = match &tensor.kind {
            Kind::Result { operator } => format!("the code does not state what {operator} returns"),
            Kind::Stray => "it is a tensor of unknown origin".to_owned(),
            _ => "it is the result of something that is not modelled".to_owned(),
        };
    }
    if visit.conditional_outputs.contains(&index) {
        (output.rank, output.shape, output.stride) = (None, None, None);
        reason = "its shape depends on a branch that the library takes at run time".to_owned();
    }
    let is_partial = output.shape.as_ref().is_none_or(|shape| shape.iter().any(Option::is_none));
    for (fact, is_missing) in [("dtype", output.dtype.is_none()), ("shape", is_partial)] {
        if is_missing {
            interface.unknown.push(Unknown::new(format!("outputs[{index}].{fact}"), reason.clone()));
        }
    }
    output
}

fn describe(
    visit: &Visit<'_>,
    symbols: &Symbols,
    output: &mut TensorSpec,
    id: TensorId,
    tensor: &Tensor,
    interface: &Interface,
) {
    let (root, shares) = visit.machine.tensors.root(id);
    let base = visit.machine.tensors.get(root).map(|t| &t.kind);
    if shares {
        output.aliases = match base {
            Some(Kind::Input(n)) => Some(format!("inputs[{n}]")),
            Some(Kind::Constant(n)) => table_position(interface, *n).map(|n| format!("constants[{n}]")),
            _ => None,
        };
    }
    output.dtype = layout::dtype(symbols, tensor);
    output.device = layout::device(symbols, tensor);
    // an input handed back, whole, has the input's facts
    let source = visit.inputs.iter().position(|input| *input == tensor.symbols);
    if let Some(input) = source.and_then(|n| interface.inputs.get(n)).filter(|_| tensor.sizes.is_none()) {
        output.dtype = output.dtype.take().or_else(|| input.dtype.clone());
        output.device = output.device.take().or_else(|| input.device.clone());
        (output.rank, output.shape, output.stride) = (input.rank, input.shape.clone(), input.stride.clone());
        output.evidence.push(Evidence::new(Witness::Code, format!("inputs[{}], handed back", input.index)));
        return;
    }
    if let Some(found) = layout::layout(visit, symbols, tensor) {
        let dims = |list: Vec<Option<Expr>>| -> Vec<Option<Dim>> {
            list.into_iter().map(|e| e.map(|e| Dim::from_expr(e, None, None))).collect()
        };
        output.rank = Some(found.shape.len());
        let has_strides = tensor.strides.is_some() || found.source == Source::Assertion;
        output.shape = Some(dims(found.shape));
        output.stride = has_strides.then(|| dims(found.stride));
        output.evidence.push(Evidence::new(
            Witness::Code,
            match found.source {
                Source::Allocation => "allocation, interpreted",
                Source::Assertion => "asserted, interpreted",
            },
        ));
    }
    if visit.machine.host.has_cxx_tensors {
        let rule = "read through the layout of C++ tensors in torch 2.2 to 2.5";
        output.evidence.push(Evidence::new(Witness::Inferred, rule));
        output.inferred.extend(["dtype", "shape"].map(str::to_owned));
        // operators that write into a tensor without elements give it their own size
        if output.shape.iter().flatten().flatten().any(|dim| dim.as_static() == Some(0)) {
            (output.rank, output.shape, output.stride) = (None, None, None);
        }
    }
}

/// Position in the table of the `n`-th constant that has bytes.
fn table_position(interface: &Interface, n: usize) -> Option<usize> {
    interface.constants.iter().filter(|c| c.folded != Some(true)).nth(n).map(|c| c.index)
}
