//! Versions of host libraries and of torch itself, as people and programs print them.

use super::UsageError;
use super::release_tables::{NEWEST, RELEASES, ShimClass};
use crate::model::Release;
use std::fmt;

/// Numbers with dots, compared as numbers: glibc `2.31`, libstdc++ `3.4.30`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u32>);

impl Version {
    /// Two to four numbers; `None` for anything else.
    pub fn from_text(text: &str) -> Option<Self> {
        let numbers: Option<Vec<u32>> = text.trim().split('.').map(|n| n.parse().ok()).collect();
        numbers.filter(|n| (2..=4).contains(&n.len())).map(Self)
    }
    /// glibc's version: `2.31`, `GLIBC_2.31`, `glibc 2.31`.
    ///
    /// # Errors
    /// Says what a glibc version looks like.
    pub fn glibc(text: &str) -> Result<Self, UsageError> {
        let bare = text.trim().trim_start_matches("GLIBC_").trim_start_matches("glibc").trim();
        Self::from_text(bare).filter(|v| v.0.first() == Some(&2)).ok_or_else(|| {
            UsageError::new(format!("glibc `{text}`: give what `ldd --version` ends its first line with, `2.31`"))
        })
    }
    /// libstdc++'s version, the highest `GLIBCXX_` that it defines: `3.4.30`, `GLIBCXX_3.4.30`, `libstdc++.so.6.0.30`.
    ///
    /// # Errors
    /// Says what a libstdc++ version looks like.
    pub fn libstdcxx(text: &str) -> Result<Self, UsageError> {
        let bare = text.trim().trim_start_matches("GLIBCXX_");
        // the file name's last number is that of the symbol version
        let bare = match bare.rsplit_once("so.6.0.") {
            Some((_, last)) => format!("3.4.{last}"),
            None => bare.to_owned(),
        };
        Self::from_text(&bare).filter(|v| v.0.starts_with(&[3, 4])).ok_or_else(|| {
            UsageError::new(format!("libstdc++ `{text}`: give its highest GLIBCXX version, `3.4.30` (GCC 12 has it)"))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&parts.join("."))
    }
}

/// Devices that a build of torch is for, from the part behind `+`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Build {
    /// `+cpu`
    Cpu,
    /// `+cu128`: CUDA 12.8
    Cuda {
        /// CUDA's major version
        major: u16,
        /// and its minor one
        minor: u16,
    },
    /// `+rocm6.4`
    Rocm,
    /// `+xpu`
    Xpu,
}

impl Build {
    /// True when the build has the shims of that class; ROCm builds have the CUDA ones.
    pub fn has(&self, class: ShimClass) -> bool {
        match class {
            ShimClass::Any | ShimClass::Cpu => true,
            ShimClass::Cuda => matches!(self, Self::Cuda { .. } | Self::Rocm),
            ShimClass::Xpu => *self == Self::Xpu,
            ShimClass::Mps => false,
        }
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.pad("CPU build"),
            Self::Cuda { major, minor } => f.pad(&format!("CUDA {major}.{minor} build")),
            Self::Rocm => f.pad("ROCm build"),
            Self::Xpu => f.pad("XPU build"),
        }
    }
}

/// `torch.__version__` of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchVersion {
    /// as given
    pub text: String,
    /// its minor release
    pub release: Release,
    /// what the part behind `+` tells; `None` when it tells nothing (a wheel from PyPI, a source build)
    pub build: Option<Build>,
    /// a build before the release (`2.6.0a0`, `.dev20250101`, `rc1`): functions of that release may be missing
    pub is_prerelease: bool,
}

impl TorchVersion {
    /// Reads `2.9`, `2.9.1+cu128`, `2.6.0a0+git1234`, `2.10.0.dev20250901+cpu`.
    ///
    /// # Errors
    /// Says what `torch.__version__` looks like, and which releases have no AOTInductor.
    pub fn from_text(text: &str) -> Result<Self, UsageError> {
        let bare = text.trim().trim_start_matches("torch").trim_start_matches("==").trim_start_matches('v').trim();
        let (public, local) = match bare.split_once('+') {
            Some((public, local)) => (public, Some(local)),
            None => (bare, None),
        };
        let release = Release::from_text(public).filter(|_| local != Some("")).ok_or_else(|| {
            UsageError::new(format!("torch `{text}`: give what torch.__version__ prints, such as `2.9.1+cu128`"))
        })?;
        let oldest = RELEASES.first().copied().unwrap_or(NEWEST);
        if release < oldest || release.major != NEWEST.major {
            return Err(UsageError::new(format!("torch `{text}`: AOTInductor is in torch {oldest} and newer 2.x")));
        }
        let is_prerelease = ["a0", ".dev", "rc", "b0"].iter().any(|mark| public.contains(mark));
        Ok(Self { text: text.trim().to_owned(), release, build: local.and_then(build_of), is_prerelease })
    }
    /// The release whose row of the tables judges it: the newest one for newer releases.
    pub fn judged_as(&self) -> Release {
        self.release.min(NEWEST)
    }
}

impl fmt::Display for TorchVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn build_of(local: &str) -> Option<Build> {
    if local.starts_with("cpu") {
        return Some(Build::Cpu);
    }
    if local.starts_with("xpu") {
        return Some(Build::Xpu);
    }
    if local.starts_with("rocm") {
        return Some(Build::Rocm);
    }
    let digits: String = local.strip_prefix("cu")?.chars().take_while(char::is_ascii_digit).collect();
    let number: u16 = digits.parse().ok().filter(|n| (90..1000).contains(n))?;
    Some(Build::Cuda { major: number / 10, minor: number % 10 })
}

/// System and machine of a target: `linux-x86_64`, `macos-arm64`, `windows-amd64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformName {
    /// `linux`, `macos`, `windows`
    pub os: &'static str,
    /// `x86_64`, `aarch64`, `s390x`, `ppc64`
    pub arch: &'static str,
}

/// Words that people and Python (`sys.platform`, `platform.machine()`) have for systems and machines.
const SYSTEMS: &[(&str, &str)] = &[
    ("linux", "linux"),
    ("manylinux", "linux"),
    ("macos", "macos"),
    ("macosx", "macos"),
    ("darwin", "macos"),
    ("windows", "windows"),
    ("win32", "windows"),
    ("win", "windows"),
];
const MACHINES: &[(&str, &str)] = &[
    ("x86_64", "x86_64"),
    ("amd64", "x86_64"),
    ("x64", "x86_64"),
    ("aarch64", "aarch64"),
    ("arm64", "aarch64"),
    ("s390x", "s390x"),
    ("ppc64le", "ppc64"),
    ("ppc64", "ppc64"),
];

impl PlatformName {
    /// Reads `linux-x86_64`, also with `_` or `/` between the two.
    ///
    /// # Errors
    /// Names the words that are known.
    pub fn from_text(text: &str) -> Result<Self, UsageError> {
        let lower = text.trim().to_ascii_lowercase();
        let system = SYSTEMS.iter().filter(|row| lower.starts_with(row.0)).max_by_key(|row| row.0.len());
        let machine = MACHINES.iter().filter(|row| lower.ends_with(row.0)).max_by_key(|row| row.0.len());
        let (Some(system), Some(machine)) = (system, machine) else {
            return Err(UsageError::new(format!(
                "platform `{text}`: give system and machine, such as linux-x86_64, linux-aarch64, macos-arm64, windows-amd64"
            )));
        };
        Ok(Self { os: system.1, arch: machine.1 })
    }
}

impl fmt::Display for PlatformName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.os, self.arch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_torch_versions_as_printed() {
        let read = |text: &str| TorchVersion::from_text(text).unwrap();
        let wheel = read("2.9.1+cu128");
        assert_eq!((wheel.release, wheel.build), (Release::new(2, 9), Some(Build::Cuda { major: 12, minor: 8 })));
        assert_eq!(read("2.10.0+cu130").build, Some(Build::Cuda { major: 13, minor: 0 }));
        assert_eq!(read("2.15").build, None);
        assert_eq!(read("2.6.0+cpu").build, Some(Build::Cpu));
        let nightly = read("2.6.0a0+ecf3bae40a.nv25.01");
        assert!(nightly.is_prerelease && nightly.build.is_none());
        assert!(read("2.10.0.dev20250901+rocm6.4").is_prerelease);
        assert_eq!(read("2.99.0").judged_as(), NEWEST);
        for wrong in ["", "cu128", "1.13.1", "2", "3.0.0", "2.1.0", "2.9.1+"] {
            assert!(TorchVersion::from_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reads_versions_of_libraries() {
        assert!(Version::glibc("2.4").unwrap() < Version::glibc("GLIBC_2.31").unwrap());
        assert_eq!(Version::libstdcxx("libstdc++.so.6.0.30").unwrap(), Version::libstdcxx("3.4.30").unwrap());
        assert!(
            Version::glibc("31").is_err() && Version::libstdcxx("12").is_err() && Version::glibc("3.4.30").is_err()
        );
    }

    #[test]
    fn reads_platforms() {
        let read = |text: &str| PlatformName::from_text(text).map(|p| p.to_string());
        assert_eq!(read("linux-x86_64").as_deref(), Ok("linux-x86_64"));
        assert_eq!(read("manylinux_2_28_aarch64").as_deref(), Ok("linux-aarch64"));
        assert_eq!(read("darwin/arm64").as_deref(), Ok("macos-aarch64"));
        assert_eq!(read("win32-AMD64").as_deref(), Ok("windows-x86_64"));
        assert!(read("linux").is_err() && read("x86_64").is_err());
    }
}
