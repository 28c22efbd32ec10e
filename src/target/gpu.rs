//! GPUs as people name them, their capabilities, and the drivers that know them.
//!
//! All numbers stand in `data/gpus.toml`, with their sources.

mod name;
mod runs_on;

pub use runs_on::{CommonGpus, RunsOn, common_gpus, kernel_runs_on, ptx_cuda_version, runs_on};

use super::UsageError;
use std::fmt;
use std::sync::LazyLock;

/// A GPU of the load configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// `H100`, or the capability as `sm_90` when only that was given
    pub name: String,
    /// what is known about it
    pub kind: GpuKind,
}

/// Whose GPU it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuKind {
    /// NVIDIA's
    Nvidia {
        /// capability times ten: 90 is 9.0, 121 is 12.1
        sm: u16,
        /// its memory, where the name tells one size
        memory_bytes: Option<u64>,
    },
    /// another vendor's, by its target's name (`gfx942`): kernels are not checked against it
    Other(String),
}

impl Gpu {
    /// Reads a name (`H100`, `NVIDIA H100 80GB HBM3`, `Tesla T4`), a capability (`9.0`, `(9, 0)`, `sm_90a`,
    /// `90`) or another vendor's target (`gfx942`).
    ///
    /// # Errors
    /// Names and capabilities that the table does not have, with those that resemble them.
    pub fn from_text(text: &str) -> Result<Self, UsageError> {
        name::read(text)
    }

    /// Opt-in limit of shared memory per block, where the capability is known.
    pub fn shared_limit_bytes(&self) -> Option<u64> {
        self.capability()?.shared_kib.map(|kib| kib * 1024)
    }

    /// Its memory, where the name tells one size.
    pub fn memory_bytes(&self) -> Option<u64> {
        match self.kind {
            GpuKind::Nvidia { memory_bytes, .. } => memory_bytes,
            GpuKind::Other(_) => None,
        }
    }

    /// Lowest driver that knows this GPU, with the CUDA version that brought it.
    pub fn first_driver(&self) -> Option<(&'static Driver, &'static str)> {
        let version = self.capability()?.first_cuda.as_deref()?;
        TABLE.cuda.iter().find(|row| row.version == version).map(|row| (&row.driver, version))
    }

    /// Last toolkit that compiles for this GPU, where newer ones do not.
    pub fn last_toolkit(&self) -> Option<&'static str> {
        self.capability()?.last_cuda.as_deref()
    }

    /// `Hopper`
    pub fn generation(&self) -> Option<&'static str> {
        self.capability().map(|row| row.name.as_str())
    }

    /// Last driver branch that supports this GPU, where its support has ended.
    pub fn last_driver_branch(&self) -> Option<u32> {
        self.capability()?.last_driver
    }

    fn capability(&self) -> Option<&'static Capability> {
        match self.kind {
            GpuKind::Nvidia { sm, .. } => capability(sm),
            GpuKind::Other(_) => None,
        }
    }
}

impl fmt::Display for Gpu {
    /// `H100 (sm_90)`, `sm_90`, `gfx942`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            GpuKind::Nvidia { sm, .. } if !self.name.starts_with("sm_") => f.pad(&format!("{} (sm_{sm})", self.name)),
            _ => f.pad(&self.name),
        }
    }
}

/// A driver's version, `550.54.14`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Driver {
    numbers: Vec<u32>,
    /// as written: `580.65.06` has a zero that a number loses
    text: String,
}

impl Driver {
    /// Two or three numbers with dots, or the branch alone; `None` for anything else.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let numbers: Vec<u32> = text.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        // AOTInductor's oldest CUDA, 11.8, came with branch 520; anything below 300 is a CUDA version
        let is_driver = numbers.len() <= 4 && numbers.first().is_some_and(|branch| (300..10_000).contains(branch));
        is_driver.then(|| Self { numbers, text: text.to_owned() })
    }
    /// True when it is not older. A version given in part (`550.54`) stands for all that begin so.
    pub fn is_at_least(&self, lowest: &Self) -> bool {
        self.numbers.iter().zip(&lowest.numbers).find(|(a, b)| a != b).is_none_or(|(a, b)| a > b)
    }
    /// `550` of `550.54.14`
    pub fn branch(&self) -> u32 {
        self.numbers.first().copied().unwrap_or_default()
    }
}

impl TryFrom<String> for Driver {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::from_text(&text).ok_or_else(|| format!("{text:?} is no driver version"))
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Lowest Linux driver that brings a CUDA version; `None` for versions that the table does not have.
pub fn driver_for_cuda(version: (u16, u16)) -> Option<&'static Driver> {
    let version = format!("{}.{}", version.0, version.1);
    TABLE.cuda.iter().find(|row| row.version == version).map(|row| &row.driver)
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    capability: Vec<Capability>,
    cuda: Vec<CudaRow>,
    products: Products,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Products {
    list: Vec<Product>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Capability {
    sm: u16,
    /// `Hopper`
    name: String,
    shared_kib: Option<u64>,
    first_cuda: Option<String>,
    /// last toolkit that compiles for it
    last_cuda: Option<String>,
    last_driver: Option<u32>,
    #[serde(default)]
    tegra: bool,
    #[serde(default)]
    family: Vec<u16>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct CudaRow {
    version: String,
    driver: Driver,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Product {
    sm: u16,
    name: String,
    #[serde(default)]
    also: Vec<String>,
    memory_gib: Option<u64>,
    #[serde(default)]
    size_is_host_memory: bool,
    #[serde(default)]
    common: bool,
}

/// A broken table is empty, and the tests below refuse it.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/gpus.json"))).unwrap_or_default());

fn capability(sm: u16) -> Option<&'static Capability> {
    TABLE.capability.iter().find(|row| row.sm == sm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_and_covers_5_0_to_12_1() {
        let table: Table =
            serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/gpus.json"))).expect("the table");
        for sm in [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121] {
            assert!(table.capability.iter().any(|c| c.sm == sm), "{sm}");
            assert!(table.products.list.iter().any(|p| p.sm == sm), "no product for {sm}");
        }
        for product in &table.products.list {
            assert!(table.capability.iter().any(|c| c.sm == product.sm), "{}", product.name);
        }
        for row in &table.capability {
            for version in row.first_cuda.iter().chain(&row.last_cuda) {
                assert!(table.cuda.iter().any(|c| c.version == *version), "{version}");
            }
        }
        for pair in table.cuda.windows(2) {
            assert!(pair[1].driver.is_at_least(&pair[0].driver), "{}", pair[1].version);
        }
    }

    #[test]
    fn drivers_compare_by_their_numbers() {
        let driver = |t| Driver::from_text(t).expect("a driver");
        assert!(driver("550.54.15").is_at_least(&driver("550.54.14")));
        assert!(driver("550.54").is_at_least(&driver("550.54.14")), "given in part");
        assert!(!driver("535.104.05").is_at_least(&driver("550.54.14")));
        assert!(driver("1000.1").is_at_least(&driver("999.99")));
        assert_eq!(Driver::from_text("12.4"), None, "a CUDA version is no driver");
        assert_eq!(Driver::from_text("550.x"), None);
        assert_eq!(driver_for_cuda((12, 4)).map(ToString::to_string), Some("550.54.14".into()));
        assert_eq!(driver_for_cuda((13, 0)).map(ToString::to_string), Some("580.65.06".into()), "its zero stays");
        assert_eq!(driver_for_cuda((19, 0)), None);
    }
}
