//! The memory and launch plan of one run, for `show --trace`.

use super::kernels::argument;
use super::layout;
use super::names::{Names, is_buffer};
use super::symbols::Symbols;
use crate::image::imports::demangled;
use crate::interpret::explore::Constraint;
use crate::interpret::session::Visit;
use crate::interpret::tensors::{Kind, TensorId};
use crate::interpret::trace::Record;
use crate::interpret::value::{Relation, Value};
use crate::limits;
use crate::model::{Argument, Assumption, Comparison, Condition, Dim, Expr, Interface, Phase, Step, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Conditions that a trace lists; real ones have a few.
const CONDITIONS: usize = 256;

/// Everything the run did, in order. What could not be created or followed leaves a reason, and what came before it.
pub fn trace(visit: &Visit<'_>, symbols: &Symbols, names: &Names, interface: &Interface) -> Trace {
    let records = visit.machine.recorder.records();
    let planner = Planner { visit, symbols, names, interface };
    let mut plan = Plan::default();
    for record in records.get(visit.run_starts_at..visit.run_ends_at).unwrap_or_default() {
        planner.add(record, &mut plan);
    }
    // a getter that fails leaves the run as it is
    let failure = visit.failures.iter().find(|(phase, _)| *phase != Phase::Getters);
    let stopped = failure.map(|(phase, reason)| format!("{phase}: {reason}"));
    let mut assumes = planner.assumptions();
    let too_many =
        (assumes.len() > CONDITIONS).then(|| format!("run: it depends on more than {CONDITIONS} conditions"));
    assumes.truncate(CONDITIONS);
    Trace {
        steps: plan.steps,
        assumes,
        // runs along other branches come after this one
        is_cut: visit.machine.recorder.is_cut && visit.run_ends_at >= limits::TRACE_ENTRIES,
        stopped: stopped.or(too_many).or_else(|| (!visit.has_run).then(|| "the model could not be run".to_owned())),
        ..Trace::default()
    }
}

struct Planner<'a, 'v> {
    visit: &'a Visit<'v>,
    symbols: &'a Symbols,
    names: &'a Names,
    interface: &'a Interface,
}

/// A plan under construction.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    /// handles to each buffer: it is free when the last one goes
    held: BTreeMap<TensorId, usize>,
    /// handles without memory, which a custom operator fills in
    open: BTreeSet<TensorId>,
}

impl Planner<'_, '_> {
    fn add(&self, record: &Record, plan: &mut Plan) {
        let step = self.step(record, plan);
        plan.steps.extend(step);
        let Record::Custom { number, tensors, .. } = record else { return };
        for id in tensors {
            if plan.open.remove(id) {
                let step = self.allocation(*id, Some(format!("custom op #{number}")));
                plan.steps.extend(step);
            }
        }
    }

    fn step(&self, record: &Record, plan: &mut Plan) -> Option<Step> {
        let tensors = &self.visit.machine.tensors;
        match record {
            Record::Tensor(id) if is_buffer(self.visit, tensors.owner(*id)) => {
                let owner = tensors.owner(*id);
                let count = plan.held.entry(owner).or_insert(0);
                *count = count.saturating_add(1);
                let is_open = tensors.get(owner).is_some_and(|t| t.kind == Kind::Empty && t.sizes.is_none());
                match (owner == *id, is_open) {
                    (true, true) => {
                        plan.open.insert(owner);
                        None
                    }
                    (true, false) => self.allocation(owner, None),
                    (false, _) => None,
                }
            }
            Record::Release(id) => {
                let owner = tensors.owner(*id);
                let count = plan.held.get_mut(&owner).filter(|count| **count > 0)?;
                *count = count.saturating_sub(1);
                (*count == 0).then(|| Step::Free { tensor: self.name(owner) })
            }
            Record::Operator { name, arguments } => {
                let ids = arguments.iter().filter_map(|v| tensors.id_of(v.bits));
                Some(Step::Operator { name: operator_name(name), tensors: ids.map(|id| self.name(id)).collect() })
            }
            Record::Custom { number, integers, tensors } => Some(Step::CustomOperator {
                number: *number,
                name: None,
                integers: integers.iter().map(|v| self.number(*v, 8)).collect(),
                tensors: tensors.iter().map(|id| self.name(*id)).collect(),
            }),
            Record::Kernel { name, arguments, taken, .. } => Some(Step::Kernel {
                name: name.clone(),
                arguments: arguments.iter().take(*taken).map(|a| self.argument(*a)).collect(),
                // further ones lie on the stack, whose number the code does not state; none at all means not decoded
                has_more: *taken == arguments.len() || *taken == 0,
            }),
            Record::Launch { function, grid, block, shared, arguments } => Some(Step::Launch {
                name: self.visit.machine.host.functions.get(*function).map_or_else(String::new, |f| f.name.clone()),
                grid: Box::new((**grid).map(|side| self.number(side, 4))),
                block: Box::new((**block).map(|side| self.number(side, 4))),
                shared_bytes: self.number(*shared, 4),
                arguments: arguments.iter().map(|a| self.argument(*a)).collect(),
            }),
            Record::Tensor(_) | Record::DeviceBytes(_) => None,
        }
    }

    fn name(&self, id: TensorId) -> String {
        self.names.of(self.visit, id)
    }

    fn argument(&self, value: Value) -> Option<Argument> {
        let found = argument(self.visit, self.symbols, self.names, value)?;
        // data of C++ tensors (up to 2.5) is behind fields that are not modelled
        let is_lost = self.visit.machine.host.has_cxx_tensors && found == Argument::Number(Dim::fixed(0));
        (!is_lost).then_some(found)
    }

    fn number(&self, value: Value, len: usize) -> Option<Dim> {
        self.symbols.expression(self.visit, value, len).map(|e| Dim::from_expr(e, None, None))
    }

    /// A buffer that came into being; its extent follows from sizes and strides.
    fn allocation(&self, id: TensorId, by: Option<String>) -> Option<Step> {
        let tensor = self.visit.machine.tensors.get(id).filter(|_| is_buffer(self.visit, id))?;
        let layout = layout::layout_or_input(self.visit, self.symbols, id, self.interface);
        let input = layout::input_of(self.visit, tensor, self.interface);
        let dtype = layout::dtype(self.symbols, tensor).or_else(|| input?.dtype.clone());
        let device = layout::device(self.symbols, tensor).or_else(|| input?.device.clone());
        let item = dtype.as_ref().and_then(|d| d.size_bytes()).and_then(|n| i64::try_from(n).ok());
        let bytes = layout.as_ref().and_then(|found| span(&found.shape, &found.stride)).zip(item);
        let dims =
            |list: Vec<Option<Expr>>| list.into_iter().map(|e| e.map(|e| Dim::from_expr(e, None, None))).collect();
        Some(Step::Allocate {
            tensor: self.name(id),
            dtype,
            shape: layout.map(|found| dims(found.shape)),
            bytes: bytes.map(|(elements, item)| Dim::from_expr(elements.mul(&Expr::Int(item)), None, None)),
            device,
            operator: by.or_else(|| match &tensor.kind {
                Kind::Result { operator } => Some(operator_name(operator)),
                Kind::Alias { is_copy: true } => Some("aoti_torch_clone".to_owned()),
                _ => None,
            }),
        })
    }

    /// Branches of the run that the library may take either way, each once.
    fn assumptions(&self) -> Vec<Assumption> {
        let range = self.visit.run_constraints_at..self.visit.run_constraints_end;
        let constraints = self.visit.machine.explorer.constraints.get(range).unwrap_or_default();
        let open = constraints.iter().filter(|c| !c.is_required).filter_map(|c| self.condition(c));
        let by_text: BTreeMap<String, Condition> =
            open.map(|condition| (condition.to_string(), condition)).take(CONDITIONS.saturating_add(1)).collect();
        by_text.into_iter().map(|(text, condition)| Assumption { text, holds: None, condition }).collect()
    }

    fn condition(&self, constraint: &Constraint) -> Option<Condition> {
        let side = |shadow| self.symbols.expression(self.visit, Value { bits: 0, shadow: Some(shadow) }, 8);
        let (left, right) = (side(constraint.left)?, side(constraint.right)?);
        let how = match constraint.relation.as_signed() {
            Relation::Equal => Comparison::Equal,
            Relation::NotEqual => Comparison::NotEqual,
            Relation::Less => Comparison::Less,
            Relation::LessEqual => Comparison::LessOrEqual,
            Relation::Greater => Comparison::Greater,
            Relation::GreaterEqual => Comparison::GreaterOrEqual,
            _ => return None,
        };
        let condition = Condition::Compare(how, left, right);
        // without a symbol there is nothing to decide
        (!condition.names().is_empty()).then_some(condition)
    }
}

/// Shims as they are; C++ functions (up to 2.5) without their parameters: `at::_ops::addmm_out::call`.
fn operator_name(symbol: &str) -> String {
    let name = demangled(symbol);
    name.split('(').next().filter(|head| !head.is_empty()).map_or_else(|| symbol.to_owned(), str::to_owned)
}

/// Elements that a tensor spans: `1 + sum of (size - 1) * stride`.
fn span(shape: &[Option<Expr>], stride: &[Option<Expr>]) -> Option<Expr> {
    if shape.len() != stride.len() {
        return None;
    }
    if shape.iter().flatten().any(|size| *size == Expr::Int(0)) {
        return Some(Expr::Int(0));
    }
    let sides = shape.iter().zip(stride);
    sides
        .into_iter()
        .try_fold(Expr::Int(1), |sum, (size, stride)| Some(sum.add(&distribute(size.as_ref()?, stride.as_ref()?)?)))
}

/// `(size - 1) * stride`, written out so that like terms meet: contiguous tensors end up as the product of their sizes.
fn distribute(size: &Expr, stride: &Expr) -> Option<Expr> {
    // so many terms are no size of a real model
    const TERMS: usize = 256;
    let terms = |e: &Expr| match e {
        Expr::Sum(terms) => terms.clone(),
        other => vec![other.clone()],
    };
    let (left, right) = (terms(&size.sub(&Expr::Int(1))), terms(stride));
    if left.len().saturating_mul(right.len()) > TERMS {
        return None;
    }
    let products = left.iter().flat_map(|a| right.iter().map(|b| a.mul(b)));
    Some(products.fold(Expr::Int(0), |sum, product| sum.add(&product)))
}
