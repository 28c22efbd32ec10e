//! What a model needs from its host.

use super::{Evidence, Release};
use schemars::JsonSchema;
use serde::Serialize;

/// Instruction set extensions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct CpuIsa {
    /// `AOTI_CPU_ISA` of the metadata: the vectoriser's choice, a claim
    pub declared: Option<String>,
    /// extensions found in the code, lower-case as in /proc/cpuinfo; `None` when the code was not decoded
    pub used: Option<Vec<String>>,
    /// which functions need what
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionIsa>,
}

/// The extensions of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FunctionIsa {
    /// its name, or `nearest_export+0x10` in a stripped library
    pub function: String,
    /// extensions, as in [`CpuIsa::used`]
    pub features: Vec<String>,
    /// reached only after a run-time test of the CPU
    pub is_guarded: bool,
}

/// A custom operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CustomOp {
    /// `mylib::blend.Tensor`; `None` when only its number is known
    pub name: Option<String>,
    /// its index in the extern-node list
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// how it is called: `proxy_executor` or `shim`
    pub through: String,
    /// defined in Python, so that no process without Python can run it
    pub is_python_only: Option<bool>,
    /// member of the package whose schema texts register it; looked for by `verify` and `show --deep`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered_by: Option<String>,
}

/// Where a library's C++ runtime (exceptions, `std::`) comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CxxRuntime {
    /// a shared library, as in all that torch builds on Linux and macOS
    Shared,
    /// linked in, and kept to itself
    StaticHidden,
    /// linked in, and exported: a second one in the process that others may bind to
    StaticExported,
}

/// Needs of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Requires {
    /// libraries named as needed, in file order
    pub libraries: Vec<String>,
    /// run paths
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run_paths: Vec<String>,
    /// needed libraries that provide nothing that is imported, where that can be told
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_libraries: Vec<String>,
    /// C shims of libtorch that are imported, sorted
    pub shims: Vec<String>,
    /// lowest usable torch release
    pub torch_min: Option<Release>,
    /// highest usable torch release; absent when no shim was withdrawn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch_max: Option<Release>,
    /// shims that no release of the table has
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_shims: Vec<String>,
    /// imported C++ of torch, at, c10, demangled
    pub leaked_cxx: Vec<String>,
    /// the same as they are linked, mangled
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaked_symbols: Vec<String>,
    /// imports of ExecuTorch's own runtime: not for libtorch
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executorch_shims: Vec<String>,
    /// imports that start processes, use the network, load code: `socket (uses the network)`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspicious_imports: Vec<String>,
    /// imports of the GPU driver and runtime
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_runtime: Vec<String>,
    /// all other imports
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_imports: Vec<String>,
    /// highest `GLIBC_` version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glibc: Option<String>,
    /// highest `GLIBCXX_` version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glibcxx: Option<String>,
    /// highest `CXXABI_` version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cxxabi: Option<String>,
    /// highest `GOMP_` version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gomp: Option<String>,
    /// the library asks for an executable stack
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable_stack: Option<bool>,
    /// `cxx11` or `pre-cxx11`, where the library shows it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_abi: Option<String>,
    /// where the C++ runtime comes from, where the library shows it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cxx_runtime: Option<CxxRuntime>,
    /// page size that appended weights must be a multiple of
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u64>,
    /// instruction sets
    pub cpu_isa: CpuIsa,
    /// custom operators
    pub custom_ops: Vec<CustomOp>,
    /// who says so
    pub evidence: Vec<Evidence>,
}
