//! Element types and devices, with the numbers that ATen prints.

use std::fmt;

/// A tensor's element type. [`DType::name`] is PyTorch's own name without `torch.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DType {
    /// One of the types known to torch 2.15.
    Known(KnownDType),
    /// A type that this version does not know, as written in the artefact.
    Other(String),
}

/// Index into [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KnownDType(u8);

/// ATen scalar type number, export schema number, names (first: the canonical one), C++ enumerator, bytes.
type Row = (i32, i32, &'static [&'static str], &'static str, u64);

/// ATen numbers: c10/core/ScalarType.h, 2.15; export numbers: torch/_export/serde/schema.py, 2.15.
const TABLE: &[Row] = &[
    (0, 1, &["uint8", "u8"], "Byte", 1),
    (1, 2, &["int8", "i8"], "Char", 1),
    (2, 3, &["int16", "short", "i16"], "Short", 2),
    (3, 4, &["int32", "int", "i32"], "Int", 4),
    (4, 5, &["int64", "long", "i64"], "Long", 8),
    (5, 6, &["float16", "half", "f16", "fp16"], "Half", 2),
    (6, 7, &["float32", "float", "f32", "fp32"], "Float", 4),
    (7, 8, &["float64", "double", "f64", "fp64"], "Double", 8),
    (8, 9, &["complex32", "chalf", "c32"], "ComplexHalf", 4),
    (9, 10, &["complex64", "cfloat", "c64"], "ComplexFloat", 8),
    (10, 11, &["complex128", "cdouble", "c128"], "ComplexDouble", 16),
    (11, 12, &["bool", "b8"], "Bool", 1),
    (15, 13, &["bfloat16", "bf16"], "BFloat16", 2),
    (23, 30, &["float8_e5m2", "f8e5m2"], "Float8_e5m2", 1),
    (24, 29, &["float8_e4m3fn", "f8e4m3fn"], "Float8_e4m3fn", 1),
    (25, 32, &["float8_e5m2fnuz", "f8e5m2fnuz"], "Float8_e5m2fnuz", 1),
    (26, 31, &["float8_e4m3fnuz", "f8e4m3fnuz"], "Float8_e4m3fnuz", 1),
    (27, 28, &["uint16", "u16"], "UInt16", 2),
    (28, 34, &["uint32", "u32"], "UInt32", 4),
    (29, 35, &["uint64", "u64"], "UInt64", 8),
    (44, 33, &["float8_e8m0fnu", "f8e8m0fnu"], "Float8_e8m0fnu", 1),
];

impl DType {
    /// 32-bit float, the most common type; for tests and defaults of examples.
    pub const FLOAT32: Self = Self::Known(KnownDType(6));
    /// 64-bit integer.
    pub const INT64: Self = Self::Known(KnownDType(4));

    fn find(matches: impl Fn(&Row) -> bool) -> Option<Self> {
        TABLE.iter().position(matches).and_then(|i| u8::try_from(i).ok()).map(|i| Self::Known(KnownDType(i)))
    }
    fn row(&self) -> Option<&'static Row> {
        match self {
            Self::Known(k) => TABLE.get(usize::from(k.0)),
            Self::Other(_) => None,
        }
    }
    /// The number that ATen prints (`got: 7` is float64).
    pub fn from_aten(number: i32) -> Option<Self> {
        Self::find(|row| row.0 == number)
    }
    /// The number of the export schema (`as_scalar_type`, exported programs).
    pub fn from_export(number: i32) -> Option<Self> {
        Self::find(|row| row.1 == number)
    }
    /// Any spelling of a person: `torch.float32`, `float`, `f32`, `fp32`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        Self::find(|row| row.2.contains(&name))
    }
    /// The C++ enumerator without its `k` (`BFloat16` of `at::kBFloat16`).
    pub fn from_enumerator(name: &str) -> Option<Self> {
        Self::find(|row| row.3 == name)
    }
    /// The canonical names, for messages and completions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().filter_map(|row| row.2.first().copied())
    }
    /// PyTorch's name, `float32`.
    pub fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            Self::Known(_) => self.row().and_then(|row| row.2.first()).copied().unwrap_or("unknown"),
        }
    }
    /// ATen's number.
    pub fn aten(&self) -> Option<i32> {
        self.row().map(|row| row.0)
    }
    /// Bytes of one element.
    pub fn size_bytes(&self) -> Option<u64> {
        self.row().map(|row| row.4)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device type of PyTorch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// `cpu`, number 0
    Cpu,
    /// `cuda`, number 1; ROCm builds call their device so too
    Cuda,
    /// `xpu`, number 12
    Xpu,
    /// `mps`, number 13
    Mps,
    /// any other word, as written
    Other(String),
}

/// c10/core/DeviceType.h, 2.15. Only the first four have an AOTInductor runtime.
const DEVICES: &[(i32, &str)] = &[
    (0, "cpu"),
    (1, "cuda"),
    (12, "xpu"),
    (13, "mps"),
    (6, "hip"),
    (14, "meta"),
    (15, "hpu"),
    (16, "vulkan"),
    (20, "privateuseone"),
    (21, "mtia"),
];

impl DeviceKind {
    /// PyTorch's word for it.
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Xpu => "xpu",
            Self::Mps => "mps",
            Self::Other(word) => word,
        }
    }
    /// From PyTorch's word; any unknown word becomes [`DeviceKind::Other`].
    pub fn from_name(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "cuda" => Self::Cuda,
            "xpu" => Self::Xpu,
            "mps" => Self::Mps,
            other => Self::Other(other.to_owned()),
        }
    }
    /// The number that ATen prints; `None` for words that are no device of torch.
    pub fn aten(&self) -> Option<i32> {
        DEVICES.iter().find(|d| d.1 == self.name()).map(|d| d.0)
    }
    /// From the number that ATen prints.
    pub fn from_aten(number: i32) -> Option<Self> {
        DEVICES.iter().find(|d| d.0 == number).map(|d| Self::from_name(d.1))
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device as PyTorch writes it: `cuda`, `cuda:1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Device {
    /// its type
    pub kind: DeviceKind,
    /// its number, where one is stated
    pub index: Option<u32>,
}

impl Device {
    /// A device without an index.
    pub fn new(kind: DeviceKind) -> Self {
        Self { kind, index: None }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => f.pad(&format!("{}:{index}", self.kind)),
            None => f.pad(self.kind.name()),
        }
    }
}

/// These serialize as their text.
macro_rules! as_text {
    ($($t:ty, $name:literal);*) => {$(
        impl serde::Serialize for $t {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.collect_str(self) }
        }
        impl schemars::JsonSchema for $t {
            fn schema_name() -> std::borrow::Cow<'static, str> { $name.into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    )*};
}
pub(super) use as_text;
as_text!(DType, "DType"; DeviceKind, "DeviceKind"; Device, "Device");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        assert_eq!(DType::FLOAT32.name(), "float32");
        assert_eq!(DType::INT64.name(), "int64");
        assert_eq!(DType::from_name("torch.half"), DType::from_aten(5));
        assert_eq!(DType::from_export(12), DType::from_aten(11));
        assert_eq!(DType::from_enumerator("BFloat16").and_then(|d| d.aten()), Some(15));
        assert_eq!(DType::from_name("float31"), None);
    }
}
