//! This machine as a target. Only files are read: no process is started, no library is loaded.

mod cpu;
mod gpu;
mod libraries;

use super::cpu::Cpu;
use super::libtorch::Libtorch;
use super::project::TargetTable;
use super::{HostUnknown, UsageError};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// What can be told about a machine. The keys of its TOML form are those of target files, which have the flags'
/// notations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// names of the GPUs as the driver states them, each once
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu: Vec<String>,
    /// version of the NVIDIA driver
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// extensions of the CPU, with commas
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// `linux-x86_64`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// version of glibc
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glibc: Option<String>,
    /// highest `GLIBCXX_` version of libstdc++
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libstdcxx: Option<String>,
    /// page size in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<String>,
    /// C shims that the given libtorch exports
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libtorch_exports: Option<LibtorchExports>,
    /// facts that could not be read
    #[serde(skip)]
    pub unknown: Vec<HostUnknown>,
    /// the CPU's own name, for the comment
    #[serde(skip)]
    pub cpu_model: Option<String>,
}

/// The exports of a libtorch, to take elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibtorchExports {
    /// base names of the libraries that were read
    pub libraries: Vec<String>,
    /// system and machine that it is for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// C shims
    pub shims: Vec<String>,
}

impl From<LibtorchExports> for Libtorch {
    fn from(exports: LibtorchExports) -> Self {
        Self {
            folder: "target file".into(),
            libraries: exports.libraries,
            platform: exports.platform,
            shims: exports.shims.into_iter().collect(),
            cxx: None,
            versions: std::collections::BTreeSet::new(),
        }
    }
}

impl Host {
    /// Reads this machine.
    pub fn here() -> Self {
        Self::below(Path::new("/"), std::env::consts::OS, std::env::consts::ARCH)
    }

    /// Reads the machine whose file system begins at `root`; `os` and `arch` are Rust's words.
    pub fn below(root: &Path, os: &str, arch: &str) -> Self {
        let mut host = Self::default();
        let system = super::PlatformName::from_text(&format!("{os}-{arch}"));
        host.platform = system.ok().map(|p| p.to_string());
        if os != "linux" {
            for topic in ["cpu", "gpu"] {
                host.says_unknown(topic, format!("not read on {os}; give --{topic}"));
            }
            return host;
        }
        cpu::read(root, arch, &mut host);
        gpu::read(root, &mut host);
        libraries::read(root, &mut host);
        host
    }

    fn says_unknown(&mut self, topic: &'static str, reason: impl Into<String>) {
        self.unknown.push(HostUnknown { topic, reason: reason.into() });
    }

    /// Adds the exports of a libtorch.
    ///
    /// # Errors
    /// As [`Libtorch::read`].
    pub fn with_libtorch(mut self, folder: &Path) -> Result<Self, UsageError> {
        let libtorch = Libtorch::read(folder)?;
        self.libtorch_exports = Some(LibtorchExports {
            libraries: libtorch.libraries,
            platform: libtorch.platform,
            shims: libtorch.shims.into_iter().collect(),
        });
        Ok(self)
    }

    /// A target file; what is unknown stands in comments.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("# this machine, for `aoti-inspect verify --target FILE`\n");
        if let Some(model) = &self.cpu_model {
            let _ = writeln!(text, "# cpu: {}", printable(model));
        }
        for reason in &self.unknown {
            let _ = writeln!(text, "# unknown: {}: {}", reason.topic, printable(&reason.reason));
        }
        text.push_str(&toml::to_string(self).unwrap_or_default());
        text
    }
}

impl Host {
    /// The same keys as JSON, without what is unknown.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl From<Host> for TargetTable {
    fn from(host: Host) -> Self {
        Self {
            gpu: host.gpu,
            driver: host.driver,
            cpu: host.cpu,
            platform: host.platform,
            glibc: host.glibc,
            libstdcxx: host.libstdcxx,
            page_size: host.page_size,
            libtorch_exports: host.libtorch_exports,
            ..Self::default()
        }
    }
}

/// A CPU by name; `native` is this machine's.
///
/// # Errors
/// As [`Cpu::from_text`]; `native` where the system does not list the extensions.
pub fn cpu(text: &str) -> Result<Cpu, UsageError> {
    if text.trim() != "native" {
        return Cpu::from_text(text);
    }
    let here = Host::here();
    let features = here.cpu.ok_or_else(|| UsageError::new("cpu `native`: this system does not list its extensions"))?;
    Ok(Cpu { name: "native".into(), ..Cpu::from_text(&features)? })
}

/// Names from the system on one line.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// A text file of the system, at most a megabyte (procfs states no sizes).
fn text_file(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(1 << 20).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: impl AsRef<[u8]>) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn reads_a_gpu_host_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags\t\t: fpu sse2 pni ssse3 sse4_1 sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2 abm movbe avx512f hypervisor\n",
        );
        write(
            root.path(),
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version:\n",
        );
        for slot in ["0000:01:00.0", "0000:02:00.0"] {
            let name = format!("proc/driver/nvidia/gpus/{slot}/information");
            write(root.path(), &name, "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 1\n");
        }
        let mut auxv = Vec::new();
        for (key, value) in [(3u64, 64u64), (6, 65536), (0, 0)] {
            auxv.extend(key.to_ne_bytes());
            auxv.extend(value.to_ne_bytes());
        }
        write(root.path(), "proc/self/auxv", auxv);
        let host = Host::below(root.path(), "linux", "x86_64");
        assert_eq!(host.gpu, ["NVIDIA H100 80GB HBM3"]);
        assert_eq!(host.driver.as_deref(), Some("580.65.06"));
        assert_eq!(host.page_size.as_deref(), Some("65536"));
        let cpu = super::super::cpu::Cpu::from_text(host.cpu.as_deref().unwrap()).unwrap();
        assert!(cpu.features.contains("avx512f") && !cpu.features.contains("amx_tile"));
        let text = host.to_toml();
        assert!(text.contains("unknown: glibc"), "{text}");
        let table: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(table["platform"].as_str(), Some("linux-x86_64"));
    }

    #[test]
    fn no_gpu_is_unknown_not_none() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "proc/cpuinfo", "Features\t: fp asimd atomics sve2 nonsense\nCPU part\t: 0xd4f\n");
        let host = Host::below(root.path(), "linux", "aarch64");
        assert!(host.gpu.is_empty() && host.driver.is_none());
        assert!(host.unknown.iter().any(|u| u.topic == "gpu" && u.reason.contains("login node")), "{:?}", host.unknown);
        assert!(host.cpu.as_deref().is_some_and(|c| c.contains("sve2") && !c.contains("nonsense")));
    }

    /// The machine that runs the tests: whatever it is, its file must be readable again.
    #[test]
    fn this_machine_reads_back() {
        let host = Host::here();
        let table: toml::Table = toml::from_str(&host.to_toml()).unwrap();
        if let Some(cpu) = table.get("cpu").and_then(|c| c.as_str()) {
            assert!(super::super::cpu::Cpu::from_text(cpu).is_ok(), "{cpu}");
        }
        if let Some(glibc) = table.get("glibc").and_then(|c| c.as_str()) {
            assert!(super::super::Version::glibc(glibc).is_ok(), "{glibc}");
        }
        if let Some(libstdcxx) = table.get("libstdcxx").and_then(|c| c.as_str()) {
            assert!(super::super::Version::libstdcxx(libstdcxx).is_ok(), "{libstdcxx}");
        }
    }
}
