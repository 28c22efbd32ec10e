//! Extensions and page size, from procfs.

use super::{Host, text_file};
use crate::target::cpu::Cpu;
use std::path::Path;

/// `AT_PAGESZ` (linux/auxvec.h).
const PAGE_SIZE_KEY: u64 = 6;

pub(super) fn read(root: &Path, arch: &str, host: &mut Host) {
    // another word on each machine
    const FLAGS: &[&str] = &["flags", "Features"];
    let info = text_file(&root.join("proc/cpuinfo")).unwrap_or_default();
    let value = |key: &str| {
        info.lines().find_map(|line| line.split_once(':').filter(|(k, _)| k.trim() == key)).map(|(_, v)| v.trim())
    };
    host.cpu_model = value("model name").or_else(|| value("CPU part")).map(str::to_owned);
    match FLAGS.iter().find_map(|key| value(key)) {
        Some(flags) => {
            let cpu = Cpu::from_flags("native", arch, flags.split_whitespace());
            let features: Vec<String> = cpu.features.into_iter().collect();
            host.cpu = (!features.is_empty()).then(|| features.join(","));
        }
        None => host.says_unknown("cpu", "/proc/cpuinfo lists no flags; give --cpu"),
    }
    host.page_size = page_size(root).map(|n| n.to_string());
}

fn page_size(root: &Path) -> Option<u64> {
    let bytes = std::fs::read(root.join("proc/self/auxv")).ok()?;
    let mut words = bytes.chunks_exact(8).filter_map(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        if key == PAGE_SIZE_KEY {
            return Some(value).filter(|n| n.is_power_of_two());
        }
    }
    None
}
