//! The memory and launch plan of one run, for `show --trace`.

use super::kernels::argument;
use super::symbols::Symbols;
use crate::interpret::session::Visit;
use crate::interpret::tensors::{Kind, TensorId};
use crate::interpret::trace::{Record, Step, Trace};
use crate::interpret::value::Value;
use crate::model::{DType, DeviceKind, Expr, Interface};
use std::collections::BTreeMap;

/// A tensor's name in the trace: `inputs[0]`, `constants[2]`, or `buf7` by its number.
pub fn name_of(visit: &Visit<'_>, id: TensorId) -> String {
    let (root, _) = visit.machine.tensors.root(id);
    match visit.machine.tensors.get(root).map(|t| &t.kind) {
        Some(Kind::Input(n)) => format!("inputs[{n}]"),
        Some(Kind::Constant(n)) => format!("constants[{n}]"),
        _ => format!("buf{root}"),
    }
}

/// Everything the run did, in order.
pub fn trace(visit: &Visit<'_>, symbols: &Symbols, interface: &Interface) -> Trace {
    let mut trace = Trace { is_cut: visit.machine.recorder.is_cut, ..Trace::default() };
    let records = visit.machine.recorder.records().get(visit.run_starts_at..visit.run_ends_at).unwrap_or_default();
    // handles to each buffer that are still held: a buffer is free when the last one goes
    let mut held: BTreeMap<TensorId, usize> = BTreeMap::new();
    let tensors = |values: &[Value]| -> Vec<String> {
        values.iter().filter_map(|v| visit.machine.tensors.id_of(v.bits)).map(|id| name_of(visit, id)).collect()
    };
    for record in records {
        let step = match record {
            Record::Tensor(id) => {
                let (root, shares) = visit.machine.tensors.root(*id);
                let owner = if shares { root } else { *id };
                *held.entry(owner).or_insert(0) += 1;
                if owner == *id { allocation(visit, symbols, *id) } else { None }
            }
            Record::Release(id) => {
                let (root, shares) = visit.machine.tensors.root(*id);
                let owner = if shares { root } else { *id };
                let is_own = visit
                    .machine
                    .tensors
                    .get(owner)
                    .is_some_and(|t| !matches!(t.kind, Kind::Input(_) | Kind::Constant(_)));
                match held.get_mut(&owner) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        (*count == 0 && is_own).then(|| Step::Free { tensor: name_of(visit, owner) })
                    }
                    _ => None,
                }
            }
            Record::Operator { name, arguments } => {
                Some(Step::Operator { name: name.clone(), tensors: tensors(arguments) })
            }
            Record::Custom { number, integers, tensors } => Some(Step::CustomOperator {
                number: *number,
                integers: integers.iter().map(|v| symbols.expression(visit, *v, 8)).collect(),
                tensors: tensors.iter().map(|id| name_of(visit, *id)).collect(),
            }),
            Record::Kernel { name, arguments, .. } => Some(Step::Kernel {
                name: name.clone(),
                arguments: arguments.iter().map(|a| argument(visit, symbols, *a)).collect(),
            }),
            Record::Launch { function, grid, block, shared, arguments } => Some(Step::Launch {
                name: visit.machine.host.functions.get(*function).map_or_else(String::new, |f| f.name.clone()),
                grid: grid.map(|side| symbols.expression(visit, side, 4)),
                block: block.map(|side| symbols.expression(visit, side, 4)),
                shared_bytes: shared.shadow.is_none().then_some(shared.bits),
                arguments: arguments.iter().map(|a| argument(visit, symbols, *a)).collect(),
            }),
            Record::DeviceBytes(_) => None,
        };
        trace.steps.extend(step);
    }
    let bytes = |c: &crate::model::Constant| {
        c.size_bytes.or_else(|| {
            let size = c.dtype.as_ref()?.size_bytes()?;
            c.shape.as_ref()?.iter().try_fold(size, |n, d| n.checked_mul(u64::try_from(*d).ok()?))
        })
    };
    // each constant begins at a multiple of 64 (format reference 4.6)
    trace.constant_bytes = interface
        .constants
        .iter()
        .map(bytes)
        .try_fold(0u64, |sum, size| sum.checked_add(size?.checked_next_multiple_of(64)?));
    trace
}

/// A buffer that came into being; its extent follows from sizes and strides.
fn allocation(visit: &Visit<'_>, symbols: &Symbols, id: TensorId) -> Option<Step> {
    let tensor = visit.machine.tensors.get(id)?;
    if matches!(tensor.kind, Kind::Input(_) | Kind::Constant(_)) {
        return None;
    }
    let dims = |values: Option<&Vec<Value>>| -> Vec<Option<Expr>> {
        values.into_iter().flatten().map(|v| symbols.expression(visit, *v, 8)).collect()
    };
    let shape = dims(tensor.sizes.as_ref());
    let strides = dims(tensor.strides.as_ref());
    let dtype = tensor.dtype.and_then(DType::from_aten);
    let item = dtype.as_ref().and_then(DType::size_bytes).and_then(|n| i64::try_from(n).ok());
    // 1 + sum of (size - 1) * stride elements
    let extent = shape.iter().zip(&strides).try_fold(Expr::Int(1), |sum, (size, stride)| {
        Some(sum.add(&size.as_ref()?.sub(&Expr::Int(1)).mul(stride.as_ref()?)))
    });
    let bytes = match (tensor.sizes.is_some(), extent, item) {
        (true, Some(extent), Some(item)) => Some(extent.mul(&Expr::Int(item))),
        _ => None,
    };
    Some(Step::Allocate {
        tensor: name_of(visit, id),
        shape,
        dtype: dtype.map(|d| d.name().to_owned()),
        device: tensor.device.and_then(DeviceKind::from_aten).map(|d| d.name().to_owned()),
        bytes,
    })
}
