//! The load configuration: each field that is set asks for checks.

use super::cpu::Cpu;
use super::gpu::{Driver, Gpu};
use super::libtorch::Libtorch;
use super::{InputCase, InputRequests, OpLibrary, PlatformName, TorchVersion, Version, WeightsFile};
use crate::model::{Device, Exported};

/// Which loader opens the artefact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// `AOTIModelPackageLoader` in a process without Python
    Cpp,
    /// `torch._inductor.aoti_load_package`
    Python,
    /// the library's C interface or a runner class, without a package
    So,
}

/// A fact of this machine that its files do not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostUnknown {
    /// the flag's name: `gpu`, `glibc`
    pub topic: &'static str,
    /// why, and what to do
    pub reason: String,
}

/// How the artefact is going to be loaded. What is not set is not asked.
#[derive(Debug, Clone, Default)]
pub struct LoadConfig {
    /// name of the target in the report
    pub name: Option<String>,
    /// the one model of a package that is loaded
    pub model: Option<String>,
    /// device that the loader is told
    pub device: Option<Device>,
    /// what the caller passes
    pub inputs: InputRequests,
    /// many recorded lists of inputs
    pub cases: Vec<InputCase>,
    /// GPUs: `H100`, `sm_90`, `9.0`
    pub gpus: Vec<Gpu>,
    /// GPU driver, `550.54`
    pub driver: Option<Driver>,
    /// memory of the GPU
    pub gpu_memory_bytes: Option<u64>,
    /// CPU as the person names it: `avx2`, `x86-64-v3`, `neoverse-v1`
    pub cpu: Option<Cpu>,
    /// `torch.__version__` of the target: `2.9.1+cu128`
    pub torch: Option<TorchVersion>,
    /// exports of the target's libtorch
    pub libtorch: Option<Libtorch>,
    /// which loader
    pub loader: Option<Loader>,
    /// `linux-x86_64`
    pub platform: Option<PlatformName>,
    /// glibc of the target, `2.31`
    pub glibc: Option<Version>,
    /// libstdc++ of the target, `3.4.30`
    pub libstdcxx: Option<Version>,
    /// page size of the target
    pub page_size_bytes: Option<u64>,
    /// safetensors files that the caller loads; several when the weights are sharded
    pub weights: Vec<WeightsFile>,
    /// metadata keys that must be there, with the value they must have
    pub metadata: Vec<(String, Option<String>)>,
    /// the exported program that the artefact was compiled from
    pub exported: Option<Exported>,
    /// facts of this machine that were asked for with `--this-host` and cannot be read
    pub host_unknown: Vec<HostUnknown>,
    /// operators that the target has registered: `mylib::blend`, `mylib::*`
    pub ops: Vec<String>,
    /// libraries that register operators on the target
    pub op_libraries: Vec<OpLibrary>,
    /// sizes that must not be exceeded
    pub budget: super::project::Budget,
    /// the interface that the project agreed to, as `interface_id` of `show --json`
    pub interface_id: Option<String>,
}
