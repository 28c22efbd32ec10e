//! GPUs and driver, as NVIDIA's kernel module states them in procfs.

use super::{Host, text_file};
use std::path::Path;

/// GPUs of one machine.
const MOST_GPUS: usize = 64;

pub(super) fn read(root: &Path, host: &mut Host) {
    let folder = root.join("proc/driver/nvidia");
    host.driver = text_file(&folder.join("version")).as_deref().and_then(driver);
    let gpus = std::fs::read_dir(folder.join("gpus")).into_iter().flatten().flatten().take(MOST_GPUS);
    for gpu in gpus {
        let information = text_file(&gpu.path().join("information")).unwrap_or_default();
        let model = information.lines().find_map(|l| l.strip_prefix("Model:")).map(|m| m.trim().to_owned());
        host.gpu.extend(model.filter(|m| !host.gpu.contains(m)));
    }
    host.gpu.sort();
    if host.gpu.is_empty() {
        host.says_unknown("gpu", "no NVIDIA GPU is visible (a login node? give --gpu or a target file)");
    } else {
        host.says_unknown("gpu-memory", "the driver's files do not state it; give --gpu-memory");
    }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 ...`
fn driver(text: &str) -> Option<String> {
    let line = text.lines().find(|l| l.starts_with("NVRM version"))?;
    let is_version = |w: &&str| w.contains('.') && w.split('.').all(|n| n.parse::<u32>().is_ok());
    line.split_whitespace().find(is_version).map(str::to_owned)
}
