//! What was seen, as facts: a visit becomes a testimony.

mod inputs;
mod kernels;
mod layout;
mod names;
mod outputs;
mod plan;
mod symbols;
mod weights;

use super::session::Visit;
use crate::image::Image;
use crate::model::{Checks, Constant, Device, DeviceKind, Evidence, Interface, Unknown, Witness};
use names::Names;
use symbols::Symbols;

pub use weights::WeightsRelation;

/// The environment variable of the input checks (aoti_runtime/model_base.h, 2.7+).
const ENVIRONMENT: &str = "AOTI_RUNTIME_CHECK_INPUTS";

/// Everything that a visit tells.
pub struct Observed {
    /// the testimony
    pub interface: Interface,
    /// what the file of appended weights has to satisfy
    pub weights: Vec<WeightsRelation>,
}

/// Turns a visit into a testimony; with `traces` also what the run did, step by step.
pub fn observe(visit: &mut Visit<'_>, image: &Image<'_>, traces: bool) -> Observed {
    let mut interface = Interface { witness: Some(Witness::Code), ..Interface::default() };
    [interface.input_count, interface.output_count, interface.constant_count] = visit.counts;
    [interface.in_spec, interface.out_spec] = visit.specs.clone();
    let symbols = Symbols::of_run(visit);
    interface.inputs = inputs::inputs(visit, &symbols, &mut interface);
    // these look at the rows of the getters, which then become the constants: there may be thousands
    let names = Names::of_run(visit);
    interface.weights = weights::location(visit, image);
    interface.constants = constants(visit, image, &mut interface);
    interface.outputs = outputs::outputs(visit, &symbols, &mut interface);
    interface.has_lower_bounds = inputs::has_lower_bounds(&interface.inputs);
    interface.kernels = kernels::kernels(visit, &symbols, &names);
    interface.operators = kernels::operators(visit, &symbols);
    interface.checks = visit.has_run.then(|| checks(visit, &symbols));
    device(visit, &mut interface);
    for (phase, reason) in &visit.failures {
        interface.unknown.push(Unknown::behind(*phase, reason));
    }
    for reason in &visit.alternative_failures {
        interface
            .unknown
            .push(Unknown::new("kernels", format!("another branch of the code was not followed: {reason}")));
    }
    interface.trace = traces.then(|| plan::trace(visit, &symbols, &names, &interface));
    let weights = weights::relations(visit);
    if weights.iter().any(|relation| !relation.holds) {
        // what was mapped is not where the weights are
        interface.constants.iter_mut().for_each(|constant| constant.file_offset = None);
    }
    Observed { interface, weights }
}

fn checks(visit: &Visit<'_>, symbols: &Symbols) -> Checks {
    let asks = visit.machine.host.asked_for_checks;
    Checks {
        compiled_in: asks || symbols.has_input_checks,
        enabled_by: asks.then(|| ENVIRONMENT.to_owned()),
        disabled_by: None,
    }
}

/// The device that the container accepted, and what the library did with it.
fn device(visit: &Visit<'_>, interface: &mut Interface) {
    let said = |detail: String| Evidence::new(Witness::Code, detail);
    if visit.container.is_none() {
        interface.unknown.push(Unknown::new("device", "no model could be created from the code"));
        return;
    }
    let mut kinds: Vec<DeviceKind> = Vec::new();
    let mut note = |kind: &DeviceKind, evidence: Evidence| {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
            interface.device_evidence.push(evidence);
        }
    };
    if !visit.machine.host.functions.is_empty() {
        let count = visit.machine.host.functions.len();
        note(&visit.device, said(format!("loads {count} GPU kernels")));
    }
    for constant in &interface.constants {
        if let Some(device) = &constant.device {
            note(&device.kind, said(format!("constant on {device}")));
        }
    }
    for (what, list) in [("input checked to be on", &interface.inputs), ("output on", &interface.outputs)] {
        for device in list.iter().filter_map(|tensor| tensor.device.as_ref()) {
            note(&device.kind, said(format!("{what} {device}")));
        }
    }
    // a GPU speaks for itself; single tensors on the host do not make a CPU model
    let kind = kinds.iter().find(|kind| **kind != DeviceKind::Cpu).or(kinds.first()).unwrap_or(&visit.device).clone();
    interface.default_input_device = Some(kind.clone());
    interface.device = Some(Device::new(kind));
}

/// The constants table: getters, the tensors made over the weights, and the table in memory.
fn constants(visit: &mut Visit<'_>, image: &Image<'_>, interface: &mut Interface) -> Vec<Constant> {
    let blobs = std::mem::take(&mut visit.machine.host.blobs);
    let mut rows = std::mem::take(&mut visit.constants);
    if visit.counts[2].is_none() && visit.container.is_some() {
        // 2.2 has no getters for constants: there are as many as tensors were made for
        rows.resize_with(blobs.len(), Default::default);
        interface.constant_count = Some(blobs.len());
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let names: Vec<u64> = rows.iter().map(|row| row.name_at).collect();
    let has_names = names.iter().all(|at| *at != 0);
    let mut table = super::constants::find(&mut visit.machine, rows.len(), has_names.then_some(names.as_slice()));
    let mut blob = blobs.into_iter();
    let mut constants = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        let mut constant = Constant {
            index,
            name: row.name,
            fqn: row.fqn,
            dtype: row.dtype,
            shape: table.as_mut().and_then(|t| t.shapes.get_mut(index).map(std::mem::take)),
            stride: table.as_mut().and_then(|t| t.strides.get_mut(index).map(std::mem::take)),
            storage_offset: None,
            size_bytes: row.size_bytes,
            kind: row.kind,
            folded: row.folded,
            device: None,
            is_opaque: false,
            file_offset: None,
        };
        if constant.name.is_none() {
            let at = table.as_ref().and_then(|t| t.names.get(index)).copied();
            constant.name = at.and_then(|at| String::from_utf8(visit.machine.text(at).ok()?).ok());
        }
        // each tensor made at creation is one constant that has bytes, in table order
        if constant.folded != Some(true)
            && let Some((id, data)) = blob.next()
        {
            weights::describe(visit, image, &mut constant, id, data);
        }
        for (fact, is_missing) in [("shape", constant.shape.is_none()), ("dtype", constant.dtype.is_none())] {
            if is_missing {
                let reason = "the constants table was not found in memory";
                interface.unknown.push(Unknown::new(format!("constants[{index}].{fact}"), reason));
            }
        }
        constants.push(constant);
    }
    constants
}

#[cfg(test)]
mod tests {
    use super::super::session;
    use super::*;
    use crate::source::{self, Region};

    /// Wherever the budget ends a run, what is stated is what the whole run states.
    #[test]
    fn a_run_that_is_cut_states_nothing_wrong() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/2.15.0-cpu-custom_op.so");
        let bytes = source::open_file(&path).unwrap();
        let image = Image::open(Region::whole(&*bytes)).unwrap();
        let facts = |allowance: Option<u64>| {
            let mut visit = session::create(&image, &crate::interpret::Options::default()).unwrap();
            visit.ask_all();
            let before = visit.machine.bus.remaining;
            visit.machine.bus.remaining = allowance.unwrap_or(before).min(before);
            visit.run();
            let spent = allowance.unwrap_or(before).saturating_sub(visit.machine.bus.remaining);
            (observe(&mut visit, &image, false).interface, spent)
        };
        let (whole, spent) = facts(None);
        assert!(whole.inputs.iter().chain(&whole.outputs).all(|t| t.shape.is_some()));
        let mut cut = 0;
        for allowance in (0..spent).step_by(usize::try_from(spent / 60).unwrap().max(1)) {
            let (part, _) = facts(Some(allowance));
            for (part, whole) in part.inputs.iter().chain(&part.outputs).zip(whole.inputs.iter().chain(&whole.outputs))
            {
                cut += usize::from(part.shape.is_none());
                assert!(part.shape.is_none() || part.shape == whole.shape, "after {allowance} instructions: {part:?}");
                assert!(part.dtype.is_none() || part.dtype == whole.dtype, "after {allowance} instructions: {part:?}");
            }
        }
        assert!(cut > 20, "{cut} shapes were cut");
    }
}
