//! The trace of a model in the names of the rest, with constants, inputs and the peak.

use crate::model::{Constant, Device, Dim, Expr, Image, Interface, Model, Step, TensorSpec, Trace, Unknown};
use std::collections::{BTreeSet, HashMap};

/// Gives the symbols of the code's trace the names that the source has for them. One that the source does not name, and
/// whose own name means something else there, gets the next free number.
pub fn rename(claim: &mut Interface, names: &HashMap<String, Expr>) {
    let Some(mut trace) = claim.trace.take() else { return };
    let mut taken: BTreeSet<String> = names.values().flat_map(Expr::symbols).map(str::to_owned).collect();
    for tensor in claim.inputs.iter().chain(&claim.outputs) {
        for dim in tensor.shape.iter().chain(&tensor.stride).flatten().flatten() {
            taken.extend(dim.expr().symbols().into_iter().map(str::to_owned));
        }
    }
    let mut all = names.clone();
    for symbol in trace.symbols() {
        if all.contains_key(&symbol) || !taken.contains(&symbol) {
            continue;
        }
        let stem = symbol.trim_end_matches(|c: char| c.is_ascii_digit());
        let free = (0u32..).map(|n| format!("{stem}{n}")).find(|name| !taken.contains(name));
        if let Some(free) = free {
            taken.insert(free.clone());
            all.insert(symbol, Expr::symbol(free));
        }
    }
    trace.substitute(&|symbol| all.get(symbol).cloned());
    claim.trace = Some(trace);
}

/// Completes a trace by what only the whole model tells, and says what stays unknown of it.
pub fn complete(mut trace: Trace, model: &Model) -> (Trace, Vec<Unknown>) {
    let mut unknown = Vec::new();
    trace.constant_bytes = model.constants.as_ref().and_then(|list| constant_bytes(list, model.device.as_ref()));
    if trace.constant_bytes.is_none() {
        unknown.push(Unknown::new("trace.constant_bytes", "the sizes of the constants are not all known"));
    }
    trace.input_bytes = model.inputs.as_ref().and_then(|list| input_bytes(list)).map(|e| Dim::from_expr(e, None, None));
    if trace.input_bytes.is_none() {
        unknown.push(Unknown::new("trace.input_bytes", "types, sizes or strides of the inputs are not all known"));
    }
    for step in &mut trace.steps {
        match step {
            Step::CustomOperator { number, name, .. } => {
                let op = model.requires.custom_ops.iter().find(|op| op.number.map(i64::from) == Some(*number));
                *name = op.and_then(|op| op.name.clone());
            }
            Step::Launch { name, arguments, .. } => {
                // a launch passes no count; what follows the kernel's own parameters lies on the stack by chance
                if let Some(count) = parameters(model, name) {
                    arguments.truncate(count);
                }
            }
            _ => {}
        }
    }
    if trace.steps.iter().any(has_gap) {
        let reason = "what an operator returns, and numbers that are not made of sizes, are not stated in the code";
        unknown.push(Unknown::new("trace.steps", reason));
    }
    trace.settle(model.device.as_ref(), &model.symbols);
    match &trace.peak_bytes {
        None => {
            let reason = trace.stopped.clone().unwrap_or_else(|| "the list of steps was cut at its cap".to_owned());
            unknown.push(Unknown::new("trace.peak_bytes", reason));
        }
        Some(peak) if peak.buffers.is_none() => {
            let reason = "which moment is the worst depends on the sizes in too many ways";
            unknown.push(Unknown::new("trace.peak_bytes", reason));
        }
        Some(peak) if peak.total.is_none() => {
            unknown.push(Unknown::new("trace.peak_bytes.total", "the sizes of the constants are not all known"));
        }
        Some(_) => {}
    }
    (trace, unknown)
}

/// How many parameters the kernel files state for a GPU kernel.
fn parameters(model: &Model, kernel: &str) -> Option<usize> {
    let named = model.kernels.iter().filter(|k| k.name == kernel || k.symbol.as_deref() == Some(kernel));
    let count = |image: &Image| Some(image.parameter_bytes.len()).filter(|count| *count > 0);
    named.flat_map(|k| &k.images).find_map(count)
}

/// Something in a step that is `null`.
fn has_gap(step: &Step) -> bool {
    match step {
        Step::Allocate { dtype, shape, bytes, device, .. } => {
            let is_partial = shape.as_ref().is_none_or(|shape| shape.iter().any(Option::is_none));
            dtype.is_none() || is_partial || bytes.is_none() || device.is_none()
        }
        Step::Free { .. } | Step::Operator { .. } => false,
        Step::CustomOperator { name, integers, .. } => name.is_none() || integers.iter().any(Option::is_none),
        Step::Kernel { arguments, .. } => arguments.iter().any(Option::is_none),
        Step::Launch { grid, block, shared_bytes, arguments, .. } => {
            grid.iter().chain(block.iter()).any(Option::is_none)
                || shared_bytes.is_none()
                || arguments.iter().any(Option::is_none)
        }
    }
}

/// Each constant begins at a multiple of 64 (format reference 4.6).
fn constant_bytes(constants: &[Constant], device: Option<&Device>) -> Option<u64> {
    let is_there = |c: &&Constant| match (device, &c.device) {
        (Some(model), Some(constant)) => model.kind == constant.kind,
        _ => true,
    };
    let size = |c: &Constant| {
        c.size_bytes.or_else(|| {
            let item = c.dtype.as_ref()?.size_bytes()?;
            c.shape.as_ref()?.iter().try_fold(item, |n, d| n.checked_mul(u64::try_from(*d).ok()?))
        })
    };
    constants.iter().filter(is_there).try_fold(0u64, |sum, c| sum.checked_add(size(c)?.checked_next_multiple_of(64)?))
}

fn input_bytes(inputs: &[TensorSpec]) -> Option<Expr> {
    inputs.iter().try_fold(Expr::Int(0), |sum, input| {
        let item = i64::try_from(input.dtype.as_ref()?.size_bytes()?).ok()?;
        let sizes = input.shape.as_ref()?.iter();
        let elements = sizes.clone().try_fold(Expr::Int(1), |n, dim| Some(n.mul(&dim.as_ref()?.expr())))?;
        Some(sum.add(&elements.mul(&Expr::Int(item))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(symbol: &str) -> Option<Dim> {
        Some(Dim::Symbol { symbol: symbol.to_owned(), min: None, max: None })
    }
    fn custom(symbols: &[&str]) -> Step {
        let integers = symbols.iter().map(|s| dim(s)).collect();
        Step::CustomOperator { number: 0, name: None, integers, tensors: Vec::new() }
    }

    #[test]
    fn symbols_have_the_names_of_the_source_and_none_means_two_things() {
        let input = TensorSpec { shape: Some(vec![dim("s27"), dim("u0")]), ..TensorSpec::default() };
        let trace = Trace { steps: vec![custom(&["d0", "u0", "u1"])], ..Trace::default() };
        let mut claim = Interface { inputs: vec![input], trace: Some(trace), ..Interface::default() };
        // the source calls the code's u1 u0; the code's own u0 is something else
        let names = HashMap::from([("d0".to_owned(), Expr::symbol("s27")), ("u1".to_owned(), Expr::symbol("u0"))]);
        rename(&mut claim, &names);
        assert_eq!(claim.trace.unwrap().steps, [custom(&["s27", "u1", "u0"])]);
    }
}
