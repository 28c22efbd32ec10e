//! What a model needs from its host, in a line or two.

use super::TextOptions;
use super::table::write_parts;
use crate::model::{DeviceKind, Model, Release};
use crate::target::gpu::{CommonGpus, common_gpus};
use std::io::{Result, Write};

/// Writes the needs of one model.
pub fn write_needs(model: &Model, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let mut parts = vec![torch_text(model)];
    parts.extend(gpu_text(model, options));
    parts.extend(cpu_text(model));
    let requires = &model.requires;
    for (name, version) in [("glibc", &requires.glibc), ("GLIBCXX", &requires.glibcxx)] {
        parts.extend(version.as_ref().map(|version| format!("{name} {version}")));
    }
    let ops: Vec<&str> =
        requires.custom_ops.iter().map(|op| op.name.as_deref().unwrap_or("one without a name")).collect();
    if !ops.is_empty() {
        parts.push(format!("custom operators {}", ops.join(", ")));
    }
    write_parts(&parts, options.width, out)
}

fn torch_text(model: &Model) -> String {
    let requires = &model.requires;
    // C++ of libtorch fits the release that compiled it
    let compiled_by = model.compiled_by.torch_min.zip(model.compiled_by.torch_max);
    let (torch_min, torch_max) = match compiled_by.filter(|_| !requires.leaked_cxx.is_empty()) {
        Some((min, max)) => (Some(min), Some(max)),
        None => (requires.torch_min, requires.torch_max),
    };
    let range = match (torch_min, torch_max) {
        (Some(min), Some(max)) if min == max => format!("torch {min}"),
        (Some(min), Some(max)) => format!("torch {min} to {max}"),
        (Some(min), None) if min <= OLDEST => "any torch".to_owned(),
        (Some(min), None) => format!("torch {min} or newer"),
        (None, Some(max)) => format!("torch {max} or older"),
        (None, None) => "torch of an unknown release".to_owned(),
    };
    match model.device.as_ref().map(|d| &d.kind) {
        Some(DeviceKind::Cuda) => format!("{range}, CUDA build"),
        Some(DeviceKind::Xpu) => format!("{range}, XPU build"),
        Some(DeviceKind::Mps) => format!("{range}, on macOS"),
        _ => range,
    }
}

/// The first release with AOTInductor artefacts.
const OLDEST: Release = Release::new(2, 2);

/// Targets of the kernels, each once, and the common GPUs that run them all.
fn gpu_text(model: &Model, options: &TextOptions) -> Option<String> {
    let mut archs: Vec<String> = Vec::new();
    for arch in model.kernels.iter().flat_map(|k| &k.archs).map(ToString::to_string) {
        if !archs.contains(&arch) {
            archs.push(arch);
        }
    }
    let common = common_gpus(&model.kernels).map(|common| format!(" ({})", common_text(&common, options)));
    (!archs.is_empty()).then(|| format!("a GPU for {}{}", archs.join(", "), common.unwrap_or_default()))
}

/// GPUs named per verdict on the first screen.
const GPUS_NAMED: usize = 5;

fn common_text(common: &CommonGpus, options: &TextOptions) -> String {
    if options.shows_all || options.is_verbose {
        return common.to_string();
    }
    let short = |list: &[&'static str]| {
        let mut names = list.iter().take(GPUS_NAMED).copied().collect::<Vec<_>>().join(", ");
        if list.len() > GPUS_NAMED {
            names.push_str(&format!(" and {} more", list.len() - GPUS_NAMED));
        }
        names
    };
    [
        ("runs on", &common.runs),
        ("after compilation by the driver on", &common.runs_after_jit),
        ("not on", &common.does_not),
        ("not known for", &common.unknown),
    ]
    .iter()
    .filter(|(_, list)| !list.is_empty())
    .map(|(words, list)| format!("{words} {}", short(list)))
    .collect::<Vec<_>>()
    .join("; ")
}

fn cpu_text(model: &Model) -> Option<String> {
    let isa = &model.requires.cpu_isa;
    match (&isa.used, &isa.declared) {
        (Some(used), _) if !used.is_empty() => Some(format!("CPU with {}", used.join(", "))),
        (None, Some(declared)) => Some(format!("CPU with {declared} (as its metadata says)")),
        _ => None,
    }
}
