//! Kernels: what the model launches, the files it wants for them, and what these hold.

use super::{Evidence, Expr};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Who wrote the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelKind {
    /// a C++ function of the library (`cpp_fused_*`)
    Cpp,
    /// a GPU kernel, generated or written by the user in Triton
    Triton,
    /// an operator of libtorch or of a custom library, called through a shim
    Extern,
    /// Metal source
    Metal,
}

/// Format of one kernel image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// machine code for one NVIDIA target
    Cubin,
    /// NVIDIA's assembly text, compiled by the driver
    Ptx,
    /// AMD code object
    Hsaco,
    /// SPIR-V
    Spirv,
    /// Intel's machine code
    Zebin,
    /// Metal library or source
    Metal,
}

/// A GPU target: `sm_90a`, or another vendor's word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Arch {
    /// NVIDIA: capability times ten, and the suffix `a` or `f` where there is one
    Sm {
        /// 90 is capability 9.0, 120 is 12.0
        number: u16,
        /// `a` (this capability alone) or `f` (this family)
        suffix: Option<char>,
    },
    /// `gfx942` and the like
    Other(String),
}

impl Arch {
    /// NVIDIA's notation, `sm_90a`; `None` for any other word.
    pub fn from_text(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix("sm_")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, suffix) = rest.split_at_checked(digits)?;
        let suffix = match suffix {
            "" => None,
            "a" => Some('a'),
            "f" => Some('f'),
            _ => return None,
        };
        Some(Self::Sm { number: number.parse().ok()?, suffix })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sm { number, suffix } => {
                f.pad(&format!("sm_{number}{}", suffix.map(String::from).unwrap_or_default()))
            }
            Self::Other(word) => f.pad(word),
        }
    }
}
super::dtype::as_text!(Arch, "Arch");

/// One image of a kernel: a cubin, an entry of a fatbin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Image {
    /// its format
    pub format: ImageFormat,
    /// its target; `None` when it cannot be told
    pub arch: Option<Arch>,
    /// PTX instruction set version, `8.8`; needs a driver of that CUDA version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptx_version: Option<(u16, u16)>,
    /// CUDA toolkit that assembled it, `13.0`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<(u16, u16)>,
    /// registers per thread
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// static shared memory per block, without the bytes that the driver reserves
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_shared_bytes: Option<u64>,
    /// threads per block that the code requires
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_threads: Option<u32>,
    /// threads per block that the code allows at most, where it states that instead
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<u32>,
    /// bytes of stack per thread; not zero means spilled registers
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<u32>,
    /// sizes in bytes of the parameters of the kernel in it, in order: 8 for a pointer, 4 or 8 for a number
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameter_bytes: Vec<u32>,
    /// names of the entry functions in it
    pub entries: Vec<String>,
}

/// The bound of an assertion, as far as the kernel's assembly text shows where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AssertionBound {
    /// index into [`Kernel::assertions`]
    pub assertion: usize,
    /// parameters that it is computed from, counted from 0 in launch order
    pub parameters: Vec<u32>,
    /// the one parameter is the bound itself, not part of an expression
    pub is_parameter: bool,
    /// the bound is this number
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant: Option<i64>,
}

/// One call of a kernel. Numbers are expressions of the input symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Launch {
    /// blocks in x, y, z; `None` where not read
    pub grid: [Option<Expr>; 3],
    /// threads per block
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// arguments as read: tensors by name, sizes as expressions
    pub arguments: Vec<String>,
    /// line of the call in the wrapper source, from 1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// A kernel that the model uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Kernel {
    /// its name
    pub name: String,
    /// who wrote it
    pub kind: KernelKind,
    /// base name of the file that is loaded for it; absent for kernels inside the library
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// the path as written by the build, when it is more than a base name
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_path: Option<String>,
    /// the file is in the package or beside the library, or the kernel is embedded; `None` when not known
    pub present: Option<bool>,
    /// symbol that is looked up in the file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// targets of its images, in file order
    pub archs: Vec<Arch>,
    /// dynamic shared memory per block, as launched
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u64>,
    /// warps per block, as launched
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_warps: Option<u32>,
    /// registers per thread, of the first image
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// what the file holds
    pub images: Vec<Image>,
    /// launch sites
    pub launches: Vec<Launch>,
    /// source operators that it came from, `aten.addmm`
    pub source_ops: Vec<String>,
    /// texts of the assertions in it, `index out of bounds: 0 <= tmp14 < ks0`
    pub assertions: Vec<String>,
    /// where the bounds of these assertions come from, where that could be followed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertion_bounds: Vec<AssertionBound>,
    /// its parameters in order, `in_ptr0`, `ks0`, where the source tells them
    pub parameters: Vec<String>,
    /// parts of its file that were not read, and why
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
    /// who says so
    pub evidence: Vec<Evidence>,
}

impl Kernel {
    /// How the text of an assertion about an index begins, on GPU and CPU (torch/_inductor/codegen/common.py,
    /// `indirect_assert`).
    pub const INDEX_ASSERTION: &'static str = "index out of bounds: ";

    /// A kernel of which only name and kind are known yet.
    pub fn new(name: impl Into<String>, kind: KernelKind) -> Self {
        Self {
            name: name.into(),
            kind,
            file: None,
            build_path: None,
            present: None,
            symbol: None,
            archs: Vec::new(),
            shared_bytes: None,
            num_warps: None,
            registers: None,
            images: Vec::new(),
            launches: Vec::new(),
            source_ops: Vec::new(),
            assertions: Vec::new(),
            assertion_bounds: Vec::new(),
            parameters: Vec::new(),
            not_read: Vec::new(),
            evidence: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_targets_are_no_targets() {
        assert_eq!(Arch::from_text("sm_120f"), Some(Arch::Sm { number: 120, suffix: Some('f') }));
        assert_eq!(Arch::from_text("sm_90x"), None);
        assert_eq!(Arch::from_text("compute_90"), None);
        assert_eq!(Arch::from_text("sm_99999999"), None);
    }
}
