//! Checks as a witness's testimony about the inputs.

use super::{Check, CheckKind, CheckValue, CrossReference};
use crate::model::{Checks, Device, Dim, Evidence, Interface, TensorSpec, Unknown, Witness};
use std::collections::BTreeMap;

/// The environment variable (aoti_runtime/model_base.h and the generated `__check_inputs_outputs`, 2.7+).
const ENVIRONMENT: &str = "AOTI_RUNTIME_CHECK_INPUTS";

/// The facts about one input while they are gathered.
#[derive(Default)]
struct Facts {
    dims: BTreeMap<usize, DimFacts>,
    strides: BTreeMap<usize, Option<i64>>,
    spec: TensorSpec,
}

#[derive(Default, Clone)]
struct DimFacts {
    fixed: Option<i64>,
    min: Option<i64>,
    max: Option<i64>,
    is_unknown: bool,
}

impl CrossReference {
    /// What the checks state: dtype, device, sizes, bounds and strides of the inputs.
    ///
    /// The list of inputs reaches to the highest one that is checked; `input_count` is left open, because a
    /// symbolic scalar has no check. Dims with bounds get a symbol each (`d0`, `d1`, …): checks do not say
    /// which of them are the same size. Rank is the highest dim or stride that is checked plus one; an input
    /// without such a check has no rank here (0-d, or all dims free).
    pub fn to_interface(&self) -> Interface {
        let mut interface = Interface { witness: Some(Witness::CrossReference), ..Interface::default() };
        if self.checks.is_empty() && self.unresolved.is_empty() {
            return interface;
        }
        interface.checks = Some(Checks {
            compiled_in: true,
            enabled_by: self.has_environment.then(|| ENVIRONMENT.to_owned()),
            disabled_by: None,
        });
        let highest = self.checks.iter().map(|c| c.input).chain(self.unresolved.iter().map(|u| u.input)).max();
        let mut inputs: Vec<Facts> = Vec::new();
        inputs.resize_with(highest.map_or(0, |input| input.saturating_add(1)), Facts::default);
        for check in &self.checks {
            if let Some(facts) = inputs.get_mut(check.input) {
                facts.add(check, &mut interface.unknown);
            }
        }
        for unresolved in &self.unresolved {
            let subject = subject(unresolved.input, unresolved.kind);
            interface.unknown.push(Unknown::new(subject, unresolved.reason));
            if let Some(facts) = inputs.get_mut(unresolved.input) {
                facts.spoil(unresolved.kind);
            }
        }
        interface.has_lower_bounds = has_lower_bounds(&inputs);
        let mut symbols = 0;
        interface.inputs =
            inputs.into_iter().enumerate().map(|(index, facts)| facts.into_spec(index, &mut symbols)).collect();
        for input in interface.inputs.iter().filter(|input| input.rank.is_none()) {
            let fact = format!("inputs[{}].rank", input.index);
            interface.unknown.push(Unknown::new(fact, "the checks name none of its dims"));
        }
        interface
    }
}

fn subject(input: usize, kind: CheckKind) -> String {
    let fact = match kind {
        CheckKind::Dtype => "dtype".to_owned(),
        CheckKind::Device => "device".to_owned(),
        CheckKind::Static { dim } | CheckKind::Lower { dim } | CheckKind::Upper { dim } => format!("shape[{dim}]"),
        CheckKind::Stride { dim } => format!("stride[{dim}]"),
    };
    format!("inputs[{input}].{fact}")
}

/// `Some(false)` when a dim that is not fixed has no lower bound: they are switched off in this library
/// (`check_lowerbound`, 2.10+). `None` when no dim shows it.
fn has_lower_bounds(inputs: &[Facts]) -> Option<bool> {
    let mut free =
        inputs.iter().flat_map(|f| f.dims.values()).filter(|d| d.fixed.is_none() && !d.is_unknown).peekable();
    free.peek()?;
    Some(free.all(|dim| dim.min.is_some()))
}

impl Facts {
    fn add(&mut self, check: &Check, unknown: &mut Vec<Unknown>) {
        if let Some(compared) = check.compared.as_ref().filter(|compared| **compared != check.value) {
            let subject = subject(check.input, check.kind);
            let reason = format!("its message says {}, the code compares with {}", show(&check.value), show(compared));
            unknown.push(Unknown::new(subject, reason));
            return self.spoil(check.kind);
        }
        let detail = format!("{} at {:#x}", show(&check.value), check.address);
        match (check.kind, &check.value) {
            (CheckKind::Dtype, CheckValue::Dtype(dtype)) => {
                self.spec.dtype = Some(dtype.clone());
                self.spec.evidence.push(Evidence::new(Witness::CrossReference, format!("check of dtype {detail}")));
            }
            (CheckKind::Device, CheckValue::Device(kind)) => self.spec.device = Some(Device::new(kind.clone())),
            (CheckKind::Static { dim }, CheckValue::Number(n)) => self.dim(dim).fixed = Some(*n),
            (CheckKind::Lower { dim }, CheckValue::Number(n)) => self.dim(dim).min = Some(*n),
            (CheckKind::Upper { dim }, CheckValue::Number(n)) => self.dim(dim).max = Some(*n),
            (CheckKind::Stride { dim }, CheckValue::Number(n)) => *self.stride(dim) = Some(*n),
            _ => {}
        }
    }

    /// A check that is there and cannot be read.
    fn spoil(&mut self, kind: CheckKind) {
        match kind {
            CheckKind::Dtype => self.spec.dtype = None,
            CheckKind::Device => self.spec.device = None,
            CheckKind::Static { dim } | CheckKind::Lower { dim } | CheckKind::Upper { dim } => {
                self.dim(dim).is_unknown = true;
            }
            CheckKind::Stride { dim } => *self.stride(dim) = None,
        }
    }

    fn dim(&mut self, dim: usize) -> &mut DimFacts {
        self.dims.entry(dim).or_default()
    }

    fn stride(&mut self, dim: usize) -> &mut Option<i64> {
        self.strides.entry(dim).or_default()
    }

    fn into_spec(mut self, index: usize, symbols: &mut usize) -> TensorSpec {
        let highest = self.dims.keys().chain(self.strides.keys()).max();
        let rank = highest.map_or(0, |dim| dim.saturating_add(1));
        let mut spec = TensorSpec { index, ..std::mem::take(&mut self.spec) };
        if rank == 0 {
            return spec;
        }
        let mut dim = |facts: DimFacts| match facts {
            DimFacts { is_unknown: true, .. } => None,
            DimFacts { fixed: Some(size), .. } => Some(Dim::fixed(size)),
            DimFacts { min, max, .. } => {
                let symbol = format!("d{symbols}");
                *symbols = symbols.saturating_add(1);
                Some(Dim::Symbol { symbol, min, max })
            }
        };
        spec.rank = Some(rank);
        spec.shape = Some((0..rank).map(|d| dim(self.dims.remove(&d).unwrap_or_default())).collect());
        spec.stride = Some((0..rank).map(|d| self.strides.get(&d).copied().flatten().map(Dim::fixed)).collect());
        spec
    }
}

fn show(value: &CheckValue) -> String {
    match value {
        CheckValue::Number(n) => n.to_string(),
        CheckValue::Dtype(dtype) => dtype.to_string(),
        CheckValue::Device(kind) => kind.to_string(),
    }
}
