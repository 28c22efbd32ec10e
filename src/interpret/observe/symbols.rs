//! Names and ranges of the symbols of a run.

use crate::interpret::explore::{bounds, normal};
use crate::interpret::session::Visit;
use crate::interpret::tensors::{Kind, TensorId};
use crate::interpret::trace::Record;
use crate::interpret::value::{Origin, Property, Shadow, Value};
use crate::model::Expr;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Values that a symbol may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// smallest
    pub min: Option<i64>,
    /// largest
    pub max: Option<i64>,
}

impl Range {
    /// The value, when there is only one.
    pub fn single(self) -> Option<i64> {
        self.min.filter(|n| self.max == Some(*n))
    }
    fn narrow(&mut self, min: Option<i64>, max: Option<i64>) {
        self.min = self.min.max(min);
        self.max = match (self.max, max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// What the required relations of a run say about its symbols.
pub struct Symbols {
    ranges: BTreeMap<Origin, Range>,
    substitutions: BTreeMap<Origin, Shadow>,
    names: RefCell<BTreeMap<Origin, String>>,
    made_up: RefCell<usize>,
    /// symbols that appear in what the model computes, not only in its checks
    pub used: BTreeSet<Origin>,
    /// input tensors that the model does something with
    pub used_tensors: BTreeSet<TensorId>,
    /// some relation restricts an input's type, size, stride or device
    pub has_input_checks: bool,
}

impl Symbols {
    /// Gathers ranges, equalities and uses, and names the free sizes of the inputs `d0`, `d1`, … in order.
    pub fn of_run(visit: &mut Visit<'_>) -> Self {
        let mut symbols = Self {
            ranges: BTreeMap::new(),
            substitutions: BTreeMap::new(),
            names: RefCell::new(BTreeMap::new()),
            made_up: RefCell::new(0),
            used: BTreeSet::new(),
            used_tensors: BTreeSet::new(),
            has_input_checks: false,
        };
        symbols.gather(visit);
        symbols.gather_uses(visit);
        symbols.name_inputs(visit);
        symbols
    }

    /// True when something is required of a tensor.
    pub fn is_checked(&self, id: TensorId) -> bool {
        self.ranges.keys().any(|origin| matches!(origin, Origin::Tensor(tensor, _) if *tensor == id))
    }

    fn gather(&mut self, visit: &mut Visit<'_>) {
        let from = visit.run_constraints_at;
        let constraints =
            visit.machine.explorer.constraints.get(from..visit.run_constraints_end).unwrap_or_default().to_vec();
        let substitutions = visit.machine.explorer.substitutions.clone();
        let expressions = &mut visit.machine.bus.expressions;
        for (symbol, by) in substitutions {
            if let Some(origin) = expressions.origin(symbol) {
                self.substitutions.insert(origin, by);
            }
        }
        for constraint in constraints {
            let form = normal(expressions, constraint.relation, constraint.left, constraint.right);
            if form.terms.len() > 1 {
                let mut found = Vec::new();
                form.terms.iter().for_each(|t| expressions.symbols(t.0, &mut found));
                self.used.extend(found.into_iter().filter_map(|s| expressions.origin(s)));
            }
            if !constraint.is_required || constraint.is_violated {
                continue;
            }
            let [(atom, factor)] = form.terms.as_slice() else { continue };
            let Some(origin) = expressions.origin(*atom) else { continue };
            if let Some((min, max)) = bounds(&form, *factor) {
                self.ranges.entry(origin).or_default().narrow(min, max);
            }
        }
        self.has_input_checks = self.ranges.keys().any(|origin| match origin {
            Origin::Tensor(id, _) => visit.inputs.contains(id),
            _ => false,
        });
    }

    fn gather_uses(&mut self, visit: &Visit<'_>) {
        let machine = &visit.machine;
        let mut note = |value: &Value| {
            let Some(shadow) = value.shadow else { return };
            let mut found = Vec::new();
            machine.bus.expressions.symbols(shadow, &mut found);
            self.used.extend(found.into_iter().filter_map(|s| machine.bus.expressions.origin(s)));
        };
        let mut tensors = Vec::new();
        let mut note_tensor = |value: &Value| {
            tensors.extend(machine.tensors.id_of(value.bits).or_else(|| machine.tensors.id_of_data(value.bits)));
        };
        let records = machine.recorder.records().get(visit.run_starts_at..visit.run_ends_at).unwrap_or_default();
        for record in records {
            match record {
                Record::Tensor(id) => {
                    let Some(tensor) = machine.tensors.get(*id) else { continue };
                    if matches!(tensor.kind, Kind::Empty | Kind::View) {
                        tensor.sizes.iter().flatten().chain(tensor.strides.iter().flatten()).for_each(&mut note);
                        note(&tensor.offset);
                    }
                    if let Some(base) = tensor.base {
                        note_tensor(&Value::new(crate::interpret::tensors::Tensors::handle(base)));
                    }
                }
                Record::Release(_) => {}
                Record::Operator { arguments, .. } | Record::Kernel { arguments, .. } => {
                    arguments.iter().for_each(&mut note);
                    arguments.iter().for_each(&mut note_tensor);
                }
                Record::Custom { integers, tensors: given, .. } => {
                    integers.iter().for_each(&mut note);
                    for id in given {
                        note_tensor(&Value::new(crate::interpret::tensors::Tensors::handle(*id)));
                    }
                }
                Record::Launch { grid, arguments, .. } => {
                    grid.iter().chain(arguments).for_each(&mut note);
                    arguments.iter().for_each(&mut note_tensor);
                }
                Record::DeviceBytes(bytes) => note(bytes),
            }
        }
        for output in visit.outputs.iter().flatten() {
            note_tensor(&Value::new(crate::interpret::tensors::Tensors::handle(*output)));
        }
        for id in tensors {
            self.used_tensors.insert(id);
            self.used_tensors.insert(machine.tensors.root(id).0);
        }
    }

    fn name_inputs(&mut self, visit: &Visit<'_>) {
        let mut next = 0;
        let names = self.names.get_mut();
        for id in &visit.inputs {
            for dim in 0..64 {
                let origin = Origin::Tensor(*id, Property::Size(dim));
                let is_single = self.ranges.get(&origin).is_some_and(|r| r.single().is_some());
                let is_known = self.ranges.contains_key(&origin) || self.used.contains(&origin);
                if is_known && !is_single && !self.substitutions.contains_key(&origin) {
                    names.insert(origin, format!("d{next}"));
                    next += 1;
                }
            }
        }
        *self.made_up.get_mut() = next;
    }

    /// Values that a property may have, as far as relations say.
    pub fn range(&self, origin: Origin) -> Option<Range> {
        self.ranges.get(&origin).copied()
    }
    /// A property's expression by others, when a required equality gives one.
    pub fn substitution(&self, origin: Origin) -> Option<Shadow> {
        self.substitutions.get(&origin).copied()
    }
    /// The name of a free size; a new one when it has none yet.
    pub fn name(&self, origin: Origin) -> String {
        let mut names = self.names.borrow_mut();
        let name = names.entry(origin).or_insert_with(|| {
            let mut next = self.made_up.borrow_mut();
            let prefix = if matches!(origin, Origin::Tensor(_, Property::Item)) { "u" } else { "d" };
            *next += 1;
            format!("{prefix}{}", *next - 1)
        });
        name.clone()
    }

    /// A symbol in the vocabulary of the report; `None` for what is neither fixed, expressed, nor an input's free size
    /// or a data-dependent number.
    pub fn resolve(&self, visit: &Visit<'_>, origin: Origin, depth: usize) -> Option<Expr> {
        if let Some(value) = self.range(origin).and_then(Range::single) {
            return Some(Expr::Int(value));
        }
        if let Some(by) = self.substitution(origin) {
            if depth > 32 {
                return None;
            }
            let name = |inner: Origin| self.resolve(visit, inner, depth + 1);
            return visit.machine.bus.expressions.to_model(by, &name);
        }
        match origin {
            Origin::Tensor(id, Property::Size(_)) if visit.inputs.contains(&id) => {
                Some(Expr::symbol(self.name(origin)))
            }
            Origin::Tensor(_, Property::Item) => Some(Expr::symbol(self.name(origin))),
            _ => None,
        }
    }

    /// A value in the vocabulary of the report.
    pub fn expression(&self, visit: &Visit<'_>, value: Value, len: usize) -> Option<Expr> {
        match value.shadow {
            None => Some(Expr::Int(value.signed(len))),
            Some(shadow) => visit.machine.bus.expressions.to_model(shadow, &|origin| self.resolve(visit, origin, 0)),
        }
    }
}
