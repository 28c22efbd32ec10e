//! Parameters, buffers and other constants, and where their bytes are.

use super::{DType, Device, Evidence};
use schemars::JsonSchema;
use serde::Serialize;

/// `torch::aot_inductor::ConstantType` (aoti_runtime/utils.h, 2.6+).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConstantKind {
    /// 0, or not stated (up to 2.5)
    Unknown,
    /// 1
    Parameter,
    /// 2
    Buffer,
    /// 3: a literal tensor
    TensorConstant,
    /// 4: computed at run time from others
    FoldedConstant,
}

impl ConstantKind {
    /// From the number of the C interface.
    pub fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Parameter,
            2 => Self::Buffer,
            3 => Self::TensorConstant,
            4 => Self::FoldedConstant,
            _ => Self::Unknown,
        }
    }
}

/// One row of the constants table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Constant {
    /// position in the table
    pub index: usize,
    /// C++-safe internal name, `fc1_weight`
    pub name: Option<String>,
    /// name for the load-constants calls, `fc1.weight`
    pub fqn: Option<String>,
    /// element type
    pub dtype: Option<DType>,
    /// sizes
    pub shape: Option<Vec<i64>>,
    /// strides in elements
    pub stride: Option<Vec<i64>>,
    /// elements skipped from the start of the storage
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_offset: Option<i64>,
    /// storage bytes as the table states them (2.4+: rounded up to 64 unless all constants are on a GPU)
    pub size_bytes: Option<u64>,
    /// what it was in the module
    pub kind: Option<ConstantKind>,
    /// computed at run time, has no bytes in the file
    pub folded: Option<bool>,
    /// device it is placed on
    pub device: Option<Device>,
    /// packed by oneDNN: bytes are not plain elements
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_opaque: bool,
    /// offset of its bytes in the library, blob or appended area
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_offset: Option<u64>,
}

/// Where the weights are (format reference 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WeightsLocation {
    /// the model has no constants that need bytes
    None,
    /// in a section of the library
    Library,
    /// at the end of the library file, mapped at load
    Appended,
    /// in a `*_weights.blob` member
    Blob,
    /// pickled under `data/weights`
    Pickled,
    /// nowhere: the caller loads them
    Absent,
}

/// The weights as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Weights {
    /// where they are
    pub location: Option<WeightsLocation>,
    /// member that holds them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// section that holds them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// offset of the first byte in that member
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// bytes that are there
    pub size_bytes: Option<u64>,
    /// bytes that the constants table asks for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_bytes: Option<u64>,
    /// totals per device and dtype, folded ones left out
    pub totals: Vec<WeightsTotal>,
    /// who says so
    pub evidence: Vec<Evidence>,
}

/// Bytes of the constants of one device and dtype.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WeightsTotal {
    /// device they are placed on
    pub device: Option<Device>,
    /// element type
    pub dtype: Option<DType>,
    /// how many constants
    pub count: usize,
    /// their storage bytes
    pub size_bytes: u64,
}
