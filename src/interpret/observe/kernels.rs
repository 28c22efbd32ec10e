//! Kernels and operators: what a run calls, with sizes as expressions.

use super::names::Names;
use super::symbols::Symbols;
use crate::interpret::imports::ModuleSource;
use crate::interpret::session::Visit;
use crate::interpret::trace::Record;
use crate::interpret::value::Value;
use crate::model::{Argument, Dim, Evidence, Expr, Kernel, KernelKind, Launch, OperatorCall, Witness};

/// Threads of a warp; kernels for AMD's 64-wide ones are told by their own readers.
const WARP: u64 = 32;

/// All kernels in the order of their first use.
pub fn kernels(visit: &Visit<'_>, symbols: &Symbols, names: &Names) -> Vec<Kernel> {
    let text = |value: &Value| match argument(visit, symbols, names, *value) {
        Some(Argument::Tensor { tensor }) => tensor,
        Some(Argument::Number(dim)) => dim.to_string(),
        None => "?".to_owned(),
    };
    let mut kernels: Vec<Kernel> = Vec::new();
    for function in &visit.machine.host.functions {
        if kernels.iter().any(|k| k.name == function.name && k.kind == KernelKind::Triton) {
            continue;
        }
        let mut kernel = Kernel::new(function.name.clone(), KernelKind::Triton);
        kernel.symbol = Some(function.name.clone());
        kernel.shared_bytes = function.shared_bytes;
        kernel.evidence.push(match &function.source {
            ModuleSource::File(path) => {
                let base = path.rsplit(['/', '\\']).next().unwrap_or(path);
                kernel.file = Some(base.to_owned());
                kernel.build_path = (base != path).then(|| path.clone());
                Evidence::new(Witness::Code, format!("loaded from {path}"))
            }
            ModuleSource::Embedded(address) => {
                kernel.present = Some(true);
                Evidence::new(Witness::Code, format!("loaded from the library at {address:#x}"))
            }
            ModuleSource::None => Evidence::new(Witness::Code, "looked up"),
        });
        kernels.push(kernel);
    }
    for record in visit.machine.recorder.records() {
        match record {
            Record::Launch { function, grid, block, shared, arguments } => {
                let Some(name) = visit.machine.host.functions.get(*function).map(|f| &f.name) else { continue };
                let Some(kernel) = kernels.iter_mut().find(|k| k.name == *name) else { continue };
                let threads = block.iter().try_fold(1u64, |n, side| n.checked_mul(side.bits));
                kernel.shared_bytes = Some(shared.bits);
                kernel.num_warps = threads.and_then(|n| u32::try_from(n.div_ceil(WARP)).ok());
                kernel.launches.push(Launch {
                    grid: (**grid).map(|side| symbols.expression(visit, side, 4)),
                    threads: threads.and_then(|n| u32::try_from(n).ok()),
                    arguments: arguments.iter().map(text).collect(),
                    line: None,
                });
            }
            Record::Kernel { name, address, arguments, taken } => {
                let at = kernels.iter().position(|k| k.name == *name);
                let at = at.unwrap_or_else(|| {
                    let mut kernel = Kernel::new(name.clone(), KernelKind::Cpp);
                    kernel.present = Some(true);
                    kernel.evidence.push(Evidence::new(Witness::Code, format!("called at {address:#x}")));
                    kernels.push(kernel);
                    kernels.len() - 1
                });
                if let Some(kernel) = kernels.get_mut(at) {
                    kernel.launches.push(Launch {
                        grid: [None, None, None],
                        threads: None,
                        arguments: arguments.iter().take(*taken).map(text).collect(),
                        line: None,
                    });
                }
            }
            _ => {}
        }
    }
    kernels
}

/// A kernel's argument: a tensor by the trace's name or a size; `None` for what is neither.
pub fn argument(visit: &Visit<'_>, symbols: &Symbols, names: &Names, value: Value) -> Option<Argument> {
    let tensors = &visit.machine.tensors;
    if let Some(id) = tensors.id_of_data(value.bits).or_else(|| tensors.id_of(value.bits)) {
        return Some(Argument::Tensor { tensor: names.of(visit, id) });
    }
    let number = match value.shadow {
        Some(_) => symbols.expression(visit, value, 8)?,
        None if value.bits < 1 << 40 => Expr::Int(value.signed(8)),
        None => return None,
    };
    Some(Argument::Number(Dim::from_expr(number, None, None)))
}

/// Operators of libtorch and custom ones, in call order.
pub fn operators(visit: &Visit<'_>, symbols: &Symbols) -> Vec<OperatorCall> {
    let records = visit.machine.recorder.records().get(visit.run_starts_at..visit.run_ends_at).unwrap_or_default();
    let mut calls = Vec::new();
    for record in records {
        match record {
            Record::Operator { name, arguments } => {
                let integers = arguments
                    .iter()
                    .filter(|a| a.shadow.is_some())
                    .filter_map(|a| symbols.expression(visit, *a, 8))
                    .collect();
                calls.push(OperatorCall { name: name.clone(), integers });
            }
            Record::Custom { number, integers, .. } => {
                let integers: Vec<Expr> = integers.iter().filter_map(|v| symbols.expression(visit, *v, 8)).collect();
                calls.push(OperatorCall { name: format!("custom op #{number}"), integers });
            }
            _ => {}
        }
    }
    calls
}
