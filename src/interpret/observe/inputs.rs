//! Inputs: what the checks and the assertions in front of the model require.

use super::symbols::{Range, Symbols};
use crate::interpret::session::Visit;
use crate::interpret::tensors::TensorId;
use crate::interpret::value::{Origin, Property};
use crate::model::{DType, Device, DeviceKind, Dim, Evidence, Interface, Relation, TensorSpec, Unknown, Witness};

/// Why inputs of old libraries have no types and shapes.
const NO_CHECKS: &str = "libraries of torch 2.6 and older contain no input checks";

/// All inputs, with their open relations and unknowns.
pub fn inputs(visit: &Visit<'_>, symbols: &Symbols, interface: &mut Interface) -> Vec<TensorSpec> {
    let count = visit.counts[0].unwrap_or(0);
    let has_checks = symbols.has_input_checks || visit.machine.host.asked_for_checks;
    let lower_bounds_off = has_checks && free_dims(visit, symbols).any(|range| range.min.is_none());
    let followed = followed(visit, symbols);
    let mut list = Vec::with_capacity(count);
    for index in 0..count {
        let mut input =
            TensorSpec { index, name: visit.input_names.get(index).cloned().flatten(), ..TensorSpec::default() };
        if let Some(id) = visit.inputs.get(index).copied() {
            type_and_device(&mut input, id, symbols);
            if has_checks && index < followed {
                input.evidence.push(Evidence::new(Witness::Code, "input checks, interpreted"));
                dims(visit, &mut input, id, symbols, interface, lower_bounds_off);
            }
        }
        let reason = if !has_checks && visit.has_run {
            NO_CHECKS.to_owned()
        } else if visit.has_run {
            "the code has no check for it".to_owned()
        } else {
            "the code could not be followed to its checks".to_owned()
        };
        for (fact, is_missing) in [("dtype", input.dtype.is_none()), ("shape", input.shape.is_none())] {
            let fact = format!("inputs[{index}].{fact}");
            if is_missing && interface.unknown.iter().all(|u| u.fact != fact) {
                interface.unknown.push(Unknown::new(fact, reason.clone()));
            }
        }
        list.push(input);
    }
    list
}

/// How many inputs had all their checks followed. They are checked one after the other before anything else is done; in a
/// run that ended among the checks, nothing is known of the last input that was seen and of those behind it.
fn followed(visit: &Visit<'_>, symbols: &Symbols) -> usize {
    let has_begun_to_work = visit.run_ends_at > visit.run_starts_at;
    if visit.has_run || has_begun_to_work {
        return visit.inputs.len();
    }
    visit.inputs.iter().rposition(|id| symbols.is_checked(*id)).unwrap_or(0)
}

fn type_and_device(input: &mut TensorSpec, id: TensorId, symbols: &Symbols) {
    let single = |property| symbols.range(Origin::Tensor(id, property)).and_then(Range::single);
    let number = |property| single(property).and_then(|n| i32::try_from(n).ok());
    input.dtype = number(Property::DType)
        .map(|n| DType::from_aten(n).unwrap_or_else(|| DType::Other(format!("scalar type {n}"))));
    input.device = number(Property::Device)
        .map(|n| DeviceKind::from_aten(n).unwrap_or_else(|| DeviceKind::Other(format!("device type {n}"))))
        .map(Device::new);
}

/// Ranges of the sizes that are checked and not fixed.
fn free_dims<'s>(visit: &'s Visit<'_>, symbols: &'s Symbols) -> impl Iterator<Item = Range> + 's {
    visit.inputs.iter().flat_map(|id| (0..64).map(move |dim| Origin::Tensor(*id, Property::Size(dim)))).filter_map(
        |origin| {
            symbols
                .range(origin)
                .or_else(|| symbols.used.contains(&origin).then(Range::default))
                .filter(|range| range.single().is_none())
        },
    )
}

fn dims(
    visit: &Visit<'_>,
    input: &mut TensorSpec,
    id: TensorId,
    symbols: &Symbols,
    interface: &mut Interface,
    lower_bounds_off: bool,
) {
    let size_of = |dim: u8| Origin::Tensor(id, Property::Size(dim));
    let stride_of = |dim: u8| Origin::Tensor(id, Property::Stride(dim));
    let is_known = |origin: Origin| {
        symbols.range(origin).is_some() || symbols.substitution(origin).is_some() || symbols.used.contains(&origin)
    };
    let asserted =
        symbols.range(Origin::Tensor(id, Property::Rank)).and_then(Range::single).and_then(|n| u8::try_from(n).ok());
    let shown = (0..64u8).rev().find(|dim| is_known(size_of(*dim)) || is_known(stride_of(*dim)));
    let rank = asserted.unwrap_or(shown.map_or(0, |dim| dim + 1));
    let is_scalar = symbols.used.contains(&Origin::Tensor(id, Property::Item));
    let last_stride = rank.checked_sub(1).and_then(|last| symbols.range(stride_of(last))).and_then(Range::single);
    if asserted.is_none() && lower_bounds_off && last_stride != Some(1) && !is_scalar {
        let reason = "lower bounds are switched off in this artefact, so that dims without any check may follow";
        interface.unknown.push(Unknown::new(format!("inputs[{}].shape", input.index), reason));
        return;
    }
    if rank == 0 && asserted.is_none() && !is_scalar {
        let rule = "neither size nor stride is checked, so it has no dims";
        input.evidence.push(Evidence::new(Witness::Inferred, rule));
        input.inferred.push("shape".to_owned());
    }
    let is_used = symbols.used_tensors.contains(&id);
    let mut shape = Vec::new();
    let mut stride = Vec::new();
    for dim in 0..rank {
        let origin = size_of(dim);
        let range = symbols.range(origin).unwrap_or_default();
        let expression = symbols.resolve(visit, origin, 0);
        let is_free = range.single().is_none() && symbols.substitution(origin).is_none();
        if is_free && asserted.is_none() && is_used && !symbols.used.contains(&origin) {
            // a function of symbols that are bound, or it would be loaded itself; `assemble` settles which
            interface.relations.push(Relation {
                subject: format!("inputs[{}].shape[{dim}]", input.index),
                candidates: Vec::new(),
                evidence: vec![Evidence::new(Witness::Code, "the model uses the input and never loads this size")],
            });
        }
        shape.push(expression.map(|e| Dim::from_expr(e, range.min, range.max)));
        let origin = stride_of(dim);
        let is_stated =
            symbols.range(origin).and_then(Range::single).is_some() || symbols.substitution(origin).is_some();
        let stated = if is_stated { symbols.resolve(visit, origin, 0) } else { None };
        stride.push(stated.map(|e| Dim::from_expr(e, None, None)));
    }
    (input.rank, input.shape, input.stride) = (Some(usize::from(rank)), Some(shape), Some(stride));
}

/// `Some(false)` when a free dim has no lower bound: they are switched off in this library (`check_lowerbound`, 2.10+).
pub fn has_lower_bounds(inputs: &[TensorSpec]) -> Option<bool> {
    let mut any = None;
    for dim in inputs.iter().flat_map(|i| i.shape.iter().flatten().flatten()) {
        if let Dim::Symbol { min, .. } | Dim::Expr { min, .. } = dim {
            if min.is_none() {
                return Some(false);
            }
            any = Some(true);
        }
    }
    any
}
