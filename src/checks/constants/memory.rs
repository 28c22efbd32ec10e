//! What the constants and the load cost: device memory, host memory, temporary files.

use super::CONSTANT_ALIGNMENT;
use crate::checks::{Judgement, Subject};
use crate::model::{Constant, DeviceKind, Kind, WeightsLocation};
use crate::report::{Finding, Level, Outcome};

/// Memory of the GPU, and the costs of a load.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let needs = Needs::read(subject);
    check_gpu(subject, &needs, judgement);
    let Some(needs) = needs else { return };
    let mut parts = Vec::new();
    if subject.artifact.kind == Kind::Package {
        parts.push(format!("each process unpacks {} to its temporary folder", bytes(unpacked(subject))));
    }
    if needs.device > 0 {
        parts.push(format!("constants take {} on the GPU", bytes(needs.device)));
    }
    let location = subject.model.weights.location;
    let mapped = matches!(location, Some(WeightsLocation::Appended | WeightsLocation::Blob));
    if needs.host > 0 {
        let how = if mapped { "mapped from the file" } else { "of host memory" };
        parts.push(format!("constants take {} {how}", bytes(needs.host)));
    }
    if !parts.is_empty() {
        let finding = Finding::new("load-cost", Outcome::Pass, subject.path("weights"), parts.join("; "));
        judgement.push(finding.level(Level::Allow));
    }
}

struct Needs {
    device: u64,
    host: u64,
}

impl Needs {
    /// `None` when a size is not known.
    fn read(subject: &Subject) -> Option<Self> {
        let mut needs = Self { device: 0, host: 0 };
        for constant in subject.model.constants.as_ref()? {
            let device = constant.device.as_ref().or(subject.model.device.as_ref())?;
            let sum = if device.kind == DeviceKind::Cpu { &mut needs.host } else { &mut needs.device };
            *sum = sum.saturating_add(placed_bytes(constant)?);
        }
        Some(needs)
    }
}

/// In memory each constant begins at a multiple of 64; folded ones have no size in the table.
fn placed_bytes(constant: &Constant) -> Option<u64> {
    let from_shape = || {
        let mut bytes = constant.dtype.as_ref()?.size_bytes()?;
        for size in constant.shape.as_ref()? {
            bytes = bytes.checked_mul(u64::try_from(*size).ok()?)?;
        }
        Some(bytes)
    };
    let bytes = match constant.size_bytes {
        Some(bytes) if constant.folded != Some(true) => Some(bytes),
        stated => from_shape().or(stated),
    };
    bytes?.checked_next_multiple_of(CONSTANT_ALIGNMENT)
}

fn check_gpu(subject: &Subject, needs: &Option<Needs>, judgement: &mut Judgement) {
    let config = subject.config;
    let by_name = config.gpus.iter().filter_map(|g| g.memory_bytes().map(|b| (b, g.to_string())));
    let limits: Vec<(u64, String)> = match config.gpu_memory_bytes {
        Some(limit) => vec![(limit, "--gpu-memory".to_owned())],
        None => by_name.collect(),
    };
    if limits.is_empty() {
        return;
    }
    judgement.not_knowable("memory of activations, workspace and the CUDA context");
    let path = subject.path("constants");
    let Some(needs) = needs else {
        let what = "how much memory the constants need";
        let finding = subject.unknown("gpu-memory", "constants", what);
        // nobody asked when only the GPU's name was given
        let level = if config.gpu_memory_bytes.is_some() { Level::Deny } else { Level::Warn };
        judgement.push(finding.level(level));
        return;
    };
    for (limit, who) in limits {
        let (needed, there) = (bytes(needs.device), bytes(limit));
        let finding = if needs.device > limit {
            let message = format!("constants alone need {needed} on the GPU, {who} has {there}");
            Finding::new("gpu-memory", Outcome::Fail, &path, message)
                .fix("use a GPU with more memory, or a smaller dtype")
        } else {
            let message = format!("constants need {needed} of {there} ({who}); activations come on top");
            Finding::new("gpu-memory", Outcome::Pass, &path, message)
        };
        judgement.push(finding.sides(needs.device, limit));
    }
}

/// What the loader unpacks for this model: the members of its folder.
fn unpacked(subject: &Subject) -> u64 {
    let Some(archive) = &subject.artifact.archive else { return 0 };
    let root = if archive.root.is_empty() { String::new() } else { format!("{}/", archive.root) };
    let folder = format!("{root}data/aotinductor/{}/", subject.model.name);
    archive.members.iter().filter(|m| m.name.starts_with(&folder)).fold(0, |sum, m| sum.saturating_add(m.size_bytes))
}

fn bytes(count: u64) -> String {
    const UNITS: &[(u64, &str)] = &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", count as f64 / *unit as f64),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{cpu, find, outcome, with_kernel_files};
    use crate::report::Outcome::{Fail, Pass, Unknown};
    use crate::target::LoadConfig;
    use crate::target::gpu::Gpu;

    #[test]
    fn constants_must_fit_into_the_gpu() {
        let mut artifact = with_kernel_files(&[]);
        let limit = |bytes| LoadConfig { gpu_memory_bytes: Some(bytes), ..LoadConfig::default() };
        assert_eq!(outcome(check, &artifact, &limit(1280), "gpu-memory"), [Pass]);
        assert_eq!(outcome(check, &artifact, &limit(1279), "gpu-memory"), [Fail]);
        // folded constants have no bytes in the file and need memory all the same
        let mut folded = artifact.models[0].constants.as_ref().expect("constants")[0].clone();
        (folded.folded, folded.size_bytes) = (Some(true), Some(0));
        artifact.models[0].constants.as_mut().expect("constants").push(folded);
        assert_eq!(outcome(check, &artifact, &limit(1919), "gpu-memory"), [Fail]);
        assert_eq!(outcome(check, &artifact, &limit(1920), "gpu-memory"), [Pass]);
        artifact.models[0].constants = None;
        assert_eq!(outcome(check, &artifact, &limit(1), "gpu-memory"), [Unknown]);
    }

    #[test]
    fn a_gpu_by_name_brings_its_memory() {
        let mut artifact = with_kernel_files(&[]);
        artifact.models[0].constants.as_mut().expect("constants")[0].size_bytes = Some(20 << 30);
        let gpu = |name| LoadConfig { gpus: vec![Gpu::from_text(name).expect("a GPU")], ..LoadConfig::default() };
        assert_eq!(outcome(check, &artifact, &gpu("Tesla T4"), "gpu-memory"), [Fail]);
        assert_eq!(outcome(check, &artifact, &gpu("A10"), "gpu-memory"), [Pass]);
        assert_eq!(outcome(check, &artifact, &gpu("9.0"), "gpu-memory"), [], "a capability has no memory");
    }

    #[test]
    fn the_cost_of_a_load_is_told() {
        let found = find(check, &cpu(), &LoadConfig::default(), "load-cost");
        assert_eq!(
            found[0].message,
            "each process unpacks 4.9 KiB to its temporary folder; constants take 1.2 KiB of host memory"
        );
    }
}
