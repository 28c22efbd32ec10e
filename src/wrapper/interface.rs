//! The wrapper's testimony in the common form.

use super::WrapperSource;
use super::run::{Layout, Position, Storage, Tensor};
use crate::model::{
    Checks, Constant, Device, DeviceKind, Dim, Evidence, Expr, Interface, Relation, TensorSpec, Unknown,
    WeightsLocation, Witness,
};
use std::collections::BTreeSet;

/// Why inputs of old sources have no types and shapes.
const NO_CHECKS: &str = "the source of torch 2.6 and older states no input checks";

impl WrapperSource {
    /// What this source says about the model; `member` is its name, for evidence.
    pub fn to_interface(&self, member: &str) -> Interface {
        let mut interface = Interface {
            witness: Some(Witness::Source),
            member: Some(member.to_owned()),
            input_count: Some(self.constructor.input_count),
            output_count: Some(self.constructor.output_count),
            constant_count: Some(self.constructor.constant_count),
            constants: self.constructor.constants.clone(),
            in_spec: self.constructor.in_spec.clone(),
            out_spec: self.constructor.out_spec.clone(),
            kernels: self.kernels.clone(),
            operators: self.run.operators.clone(),
            checks: Some(self.stated_checks()),
            include_weights: self.constructor.include_weights,
            weights: self.weights(),
            ..Interface::default()
        };
        self.device_facts(member, &mut interface);
        for kernel in &mut interface.kernels {
            kernel.evidence.iter_mut().for_each(|e| e.member = Some(member.to_owned()));
        }
        interface.has_lower_bounds = self.has_lower_bounds();
        let mut fresh = FreshSymbols::new(self);
        for index in 0..self.constructor.input_count {
            let input = self.input(index, member, &mut fresh, &mut interface);
            interface.inputs.push(input);
        }
        for index in 0..self.constructor.output_count {
            let output = self.output(index, member, &interface);
            let facts = [("dtype", output.dtype.is_none()), ("shape", output.shape.is_none())];
            for (fact, _) in facts.into_iter().filter(|(_, is_missing)| *is_missing) {
                let reason = "the source does not state what the operator behind it returns";
                interface.unknown.push(Unknown::new(format!("outputs[{index}].{fact}"), reason));
            }
            interface.outputs.push(output);
        }
        interface
            .unknown
            .extend(self.constructor.contradictions.iter().take(8).map(|text| Unknown::new("constants", text.clone())));
        interface
    }

    fn stated_checks(&self) -> Checks {
        self.checks.gate.clone().unwrap_or(Checks {
            compiled_in: self.checks.are_compiled_in,
            enabled_by: None,
            disabled_by: None,
        })
    }

    fn weights(&self) -> Option<WeightsLocation> {
        let has_macro = |name: &str| self.commands.iter().any(|c| c.macros.iter().any(|m| m == name));
        if self.constructor.constants.iter().all(|c| c.folded == Some(true)) {
            return Some(WeightsLocation::None);
        }
        if has_macro("USE_MMAP_SELF") {
            return Some(WeightsLocation::Appended);
        }
        if has_macro("USE_MMAP_EXTERNAL") {
            return Some(WeightsLocation::Blob);
        }
        match self.constructor.include_weights {
            Some(true) => Some(WeightsLocation::Library),
            Some(false) => Some(WeightsLocation::Absent),
            None => None,
        }
    }

    /// All that speaks for a device, a GPU before the CPU: a GPU model may keep single tensors on the host.
    fn device_facts(&self, member: &str, interface: &mut Interface) {
        let mut words: Vec<(Device, Evidence)> = Vec::new();
        let mut add = |device: Device, detail: String, line: Option<usize>| {
            let mut evidence = Evidence::new(Witness::Source, detail).in_member(member);
            evidence.line = line;
            words.push((device, evidence));
        };
        let of = |word: &str| Device::new(DeviceKind::from_name(word));
        if let Some(word) = &self.included_device {
            add(of(word), format!("includes aoti_include/{word}.h"), Some(1));
        }
        if let Some((word, line)) = &self.kernels_device {
            add(of(word), format!("kernels for {word}"), Some(*line));
        }
        const MACROS: [(&str, &str); 4] =
            [("USE_CUDA", "cuda"), ("USE_ROCM", "cuda"), ("USE_XPU", "xpu"), ("USE_MPS", "mps")];
        for command in self.commands.iter().filter(|c| !c.is_link) {
            for (_, word) in MACROS.iter().filter(|(name, _)| command.macros.iter().any(|m| m == name)) {
                add(of(word), format!("compiled with {word} switched on"), Some(command.line));
            }
        }
        for (device, line) in &self.run.devices {
            add(Device::new(device.kind.clone()), format!("run_impl works on {device}"), Some(*line));
        }
        let lines = self.constructor.constant_lines.iter();
        let mut seen = BTreeSet::new();
        for (constant, line) in self.constructor.constants.iter().zip(lines) {
            if let Some(device) = &constant.device
                && seen.insert(device.to_string())
            {
                add(device.clone(), format!("constant on {device}"), Some(*line));
            }
        }
        for check in self.checks.inputs.values() {
            if let Some(kind) = &check.device
                && seen.insert(format!("input {kind}"))
            {
                add(Device::new(kind.clone()), format!("input checked to be on {kind}"), check.line);
            }
        }
        let gpu = words.iter().find(|(device, _)| device.kind != DeviceKind::Cpu).or(words.first());
        interface.device = gpu.map(|(device, _)| device.clone());
        interface.default_input_device = interface.device.as_ref().map(|d| d.kind.clone());
        interface.device_evidence = words.into_iter().map(|(_, evidence)| evidence).collect();
        if interface.device.is_none() {
            interface.unknown.push(Unknown::new("device", "the source names no device"));
        }
    }

    /// Some dynamic dim has a lower bound; `false` when one has none (`check_lowerbound` off, 2.10+).
    fn has_lower_bounds(&self) -> Option<bool> {
        let mut any = None;
        let dims = self.checks.inputs.values().flat_map(|check| check.dims.values());
        for dim in dims.filter(|dim| dim.equal.is_none()) {
            if dim.min.is_none() {
                return Some(false);
            }
            any = Some(true);
        }
        for (position, (expression, _)) in &self.run.positions {
            let is_checked =
                self.checks.inputs.get(&position.input).is_some_and(|c| c.dims.contains_key(&position.dim));
            let is_size = !position.is_stride && !matches!(expression, Expr::Int(_));
            if is_size && !is_checked && self.checks.are_compiled_in {
                return Some(false);
            }
        }
        any
    }

    fn input(&self, index: usize, member: &str, fresh: &mut FreshSymbols, interface: &mut Interface) -> TensorSpec {
        let mut input = TensorSpec {
            index,
            name: self.constructor.input_names.get(index).cloned().flatten(),
            alignment_bytes: self.run.aligned.contains(&index).then_some(16),
            ..TensorSpec::default()
        };
        let said = |detail: &str, line: usize| Evidence::new(Witness::Source, detail).in_member(member).at_line(line);
        let check = self.checks.inputs.get(&index);
        let asserted = self.run.asserted.get(&index);
        if let Some(line) = check.and_then(|c| c.line) {
            input.evidence.push(said("input checks", line));
        }
        if let Some((_, line)) = asserted {
            input.evidence.push(said("assert_size_stride", *line));
        }
        input.dtype = check.and_then(|c| c.dtype.clone());
        input.device = check.and_then(|c| c.device.clone()).map(Device::new);
        if let Some((symbol, dtype, line)) = self.run.scalars.get(&index) {
            input.evidence.push(said(&format!("read as the number {symbol}"), *line));
            input.dtype = input.dtype.or_else(|| dtype.clone());
            (input.rank, input.shape, input.stride) = (Some(0), Some(Vec::new()), Some(Vec::new()));
        } else if check.is_some() || asserted.is_some() {
            self.dims(index, &mut input, member, fresh, interface);
        }
        for (fact, is_missing) in [("shape", input.shape.is_none()), ("dtype", input.dtype.is_none())] {
            let fact = format!("inputs[{index}].{fact}");
            // `dims` may have said more about this very input, last
            if is_missing && interface.unknown.last().is_none_or(|u| u.fact != fact) {
                let reason = if self.checks.are_compiled_in { "the source has no check for it" } else { NO_CHECKS };
                interface.unknown.push(Unknown::new(fact, reason));
            }
        }
        input
    }

    /// Rank, sizes and strides of an input that has checks or an assertion.
    fn dims(
        &self,
        index: usize,
        input: &mut TensorSpec,
        member: &str,
        fresh: &mut FreshSymbols,
        interface: &mut Interface,
    ) {
        let check = self.checks.inputs.get(&index).cloned().unwrap_or_default();
        let asserted = self.run.asserted.get(&index).map(|(layout, _)| layout);
        let bound = self.run.positions.range(
            Position { input: index, is_stride: false, dim: 0 }..Position {
                input: index.saturating_add(1),
                is_stride: false,
                dim: 0,
            },
        );
        let shown = check.dims.keys().chain(check.strides.keys()).copied();
        let rank = shown.chain(bound.map(|(p, _)| p.dim)).max().map_or(0, |d| d.saturating_add(1));
        let rank = asserted.map_or(rank, |layout| rank.max(layout.shape.len()));
        let last_is_one = rank.checked_sub(1).is_some_and(|last| check.strides.get(&last) == Some(&1));
        if asserted.is_none() && interface.has_lower_bounds == Some(false) && !last_is_one {
            let reason = "lower bounds are switched off in this artefact, so that dims without any check may follow";
            interface.unknown.push(Unknown::new(format!("inputs[{index}].shape"), reason));
            return;
        }
        if rank == 0 && asserted.is_none() {
            let rule = "neither size nor stride is checked, so it has no dims";
            input.evidence.push(Evidence::new(Witness::Inferred, rule));
            input.inferred.push("shape".to_owned());
        }
        let mut shape = Vec::with_capacity(rank);
        let mut stride = Vec::with_capacity(rank);
        for dim in 0..rank {
            let checked = check.dims.get(&dim).copied().unwrap_or_default();
            let position = |is_stride| Position { input: index, is_stride, dim };
            let expression = |is_stride: bool, list: Option<&Vec<Option<Expr>>>| {
                let stated = list.and_then(|l| l.get(dim)).cloned().flatten();
                stated.or_else(|| self.run.positions.get(&position(is_stride)).map(|(e, _)| e.clone()))
            };
            let size = match (checked.equal, expression(false, asserted.map(|l| &l.shape))) {
                (Some(size), _) => Dim::fixed(size),
                (None, Some(expression)) => Dim::from_expr(expression, checked.min, checked.max),
                (None, None) => {
                    // a function of symbols that are bound, or it would be bound itself; `assemble` settles which
                    interface.relations.push(Relation {
                        subject: format!("inputs[{index}].shape[{dim}]"),
                        candidates: Vec::new(),
                        evidence: vec![
                            Evidence::new(Witness::Source, "run_impl binds no symbol to this dim").in_member(member),
                        ],
                    });
                    Dim::Symbol { symbol: fresh.next(), min: checked.min, max: checked.max }
                }
            };
            shape.push(Some(size));
            let stated = check.strides.get(&dim).map(|s| Dim::fixed(*s));
            let symbolic = || expression(true, asserted.map(|l| &l.stride)).map(|e| Dim::from_expr(e, None, None));
            stride.push(stated.or_else(symbolic));
        }
        (input.rank, input.shape, input.stride) = (Some(rank), Some(shape), Some(stride));
    }

    fn output(&self, index: usize, member: &str, interface: &Interface) -> TensorSpec {
        let mut output = TensorSpec {
            index,
            name: self.constructor.output_names.get(index).cloned().flatten(),
            ..TensorSpec::default()
        };
        let Some((tensor, line)) = self.run.outputs.get(&index) else { return output };
        output.evidence.push(Evidence::new(Witness::Source, "allocation traced").in_member(member).at_line(*line));
        let base = match tensor.storage {
            Storage::Input(i) => interface.inputs.get(i).cloned(),
            Storage::Constant(i) => self.constructor.constants.get(i).map(as_tensor),
            Storage::Own => None,
        };
        output.dtype = tensor.dtype.clone().or_else(|| base.as_ref().and_then(|b| b.dtype.clone()));
        output.device = tensor.device.clone().or_else(|| base.as_ref().and_then(|b| b.device.clone()));
        match (&tensor.layout, base) {
            (Some(layout), _) => set_layout(&mut output, layout),
            (None, Some(base)) => (output.rank, output.shape, output.stride) = (base.rank, base.shape, base.stride),
            (None, None) => {}
        }
        output.aliases = alias(tensor);
        output
    }
}

fn alias(tensor: &Tensor) -> Option<String> {
    match tensor.storage {
        _ if tensor.is_copy => None,
        Storage::Input(i) => Some(format!("inputs[{i}]")),
        Storage::Constant(i) => Some(format!("constants[{i}]")),
        Storage::Own => None,
    }
}

fn set_layout(output: &mut TensorSpec, layout: &Layout) {
    let dims =
        |list: &[Option<Expr>]| Some(list.iter().map(|e| e.clone().map(|e| Dim::from_expr(e, None, None))).collect());
    output.rank = Some(layout.shape.len());
    output.shape = dims(&layout.shape);
    output.stride = dims(&layout.stride);
}

fn as_tensor(constant: &Constant) -> TensorSpec {
    let dims = |list: &Option<Vec<i64>>| list.as_ref().map(|l| l.iter().map(|n| Some(Dim::fixed(*n))).collect());
    TensorSpec {
        dtype: constant.dtype.clone(),
        rank: constant.shape.as_ref().map(Vec::len),
        shape: dims(&constant.shape),
        stride: dims(&constant.stride),
        device: constant.device.clone(),
        ..TensorSpec::default()
    }
}

/// Names for dims that the source gives none: `d0`, `d1`, …, none of them taken.
struct FreshSymbols {
    taken: BTreeSet<String>,
    next: usize,
}

impl FreshSymbols {
    fn new(source: &WrapperSource) -> Self {
        let bound = source.run.positions.values().flat_map(|(e, _)| e.symbols().into_iter().map(str::to_owned));
        Self { taken: bound.collect(), next: 0 }
    }
    fn next(&mut self) -> String {
        loop {
            let name = format!("d{}", self.next);
            self.next = self.next.saturating_add(1);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}
