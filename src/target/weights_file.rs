//! The header of a safetensors file: names, dtypes and shapes of the weights that the caller is going to load.
//!
//! Format: <https://github.com/huggingface/safetensors#format>. A little-endian u64 length, that many bytes of
//! JSON, then the data, which is never read.

use crate::error::{Error, Result};
use crate::limits;
use crate::model::DType;
use crate::source::{self, Region};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The tensors of one safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsFile {
    /// as the person gave it
    pub path: String,
    /// by name, in the order of their names
    pub tensors: BTreeMap<String, WeightsTensor>,
}

/// One tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsTensor {
    /// element type; one that this version does not know keeps the file's word
    pub dtype: DType,
    /// sizes
    pub shape: Vec<u64>,
    /// bytes of its data
    pub size_bytes: u64,
}

#[derive(Deserialize)]
struct Row {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// Names of the format's README beside PyTorch's.
const DTYPES: &[(&str, &str)] = &[
    ("BOOL", "bool"),
    ("U8", "uint8"),
    ("I8", "int8"),
    ("I16", "int16"),
    ("U16", "uint16"),
    ("F16", "float16"),
    ("BF16", "bfloat16"),
    ("I32", "int32"),
    ("U32", "uint32"),
    ("F32", "float32"),
    ("F64", "float64"),
    ("I64", "int64"),
    ("U64", "uint64"),
    ("C64", "complex64"),
    ("F8_E4M3", "float8_e4m3fn"),
    ("F8_E5M2", "float8_e5m2"),
    ("F8_E8M0", "float8_e8m0fnu"),
];

impl WeightsFile {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// The file cannot be read, or its header is no safetensors header.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let bytes = source::open_file(path).map_err(|e| e.in_member(&name))?;
        let tensors = read_header(Region::whole(bytes.as_ref())).map_err(|e| e.in_member(&name))?;
        Ok(Self { path: name, tensors })
    }
}

fn read_header(file: Region<'_>) -> Result<BTreeMap<String, WeightsTensor>> {
    let place = |e: Error| e.in_section("safetensors header");
    let no_header =
        || place(Error::damaged("no safetensors file").help("save the weights with `safetensors.torch.save_file`"));
    let length = file.get(0, 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or_else(no_header)?;
    if length > limits::JSON_BYTES {
        // a pickle or zip read as a length is far beyond the file
        if length > file.len() {
            return Err(no_header());
        }
        let cap = limits::JSON_BYTES;
        return Err(place(Error::limit(format!("its header has {length} bytes, more than {cap}"))));
    }
    let text = file.get(8, length).ok_or_else(no_header)?;
    let rows: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(text).map_err(|e| place(Error::damaged(format!("header is no JSON object: {e}"))))?;
    if rows.len() > limits::TENSORS {
        return Err(place(Error::limit(format!("{} tensors, more than {}", rows.len(), limits::TENSORS))));
    }
    let data = file.len().saturating_sub(8).saturating_sub(length);
    let mut tensors = BTreeMap::new();
    let mut ranges = Vec::new();
    for (name, row) in rows.into_iter().filter(|(name, _)| name != "__metadata__") {
        let Row { dtype, shape, data_offsets: (start, end) } =
            Row::deserialize(row).map_err(|e| place(Error::damaged(format!("tensor `{name}`: {e}"))))?;
        if end > data || start > end {
            return Err(place(
                Error::damaged(format!("tensor `{name}` ends at {end} of {data} bytes of data"))
                    .help("the file is cut off: copy it again"),
            ));
        }
        let dtype = DTYPES
            .iter()
            .find(|(word, _)| *word == dtype)
            .and_then(|(_, name)| DType::from_name(name))
            .unwrap_or(DType::Other(dtype));
        let size_bytes = end.saturating_sub(start);
        let elements = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
        let stated = elements.zip(dtype.size_bytes()).and_then(|(elements, bytes)| elements.checked_mul(bytes));
        if dtype.size_bytes().is_some() && stated != Some(size_bytes) {
            let message = format!("tensor `{name}` has {size_bytes} bytes of data for {dtype} {shape:?}");
            return Err(place(Error::damaged(message).help("write the file again")));
        }
        ranges.push((start, end, name.clone()));
        tensors.insert(name, WeightsTensor { dtype, shape, size_bytes });
    }
    // the format wants all of the data covered, each byte once
    ranges.sort();
    let mut covered = 0;
    for (start, end, name) in ranges {
        if start != covered {
            let message = format!("tensor `{name}` starts at {start} of the data, where {covered} is next");
            return Err(place(Error::damaged(message).help("write the file again")));
        }
        covered = end;
    }
    if covered != data {
        return Err(place(Error::damaged(format!(
            "{} bytes of data belong to no tensor",
            data.saturating_sub(covered)
        ))));
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    #[test]
    fn names_dtypes_and_shapes_are_read() {
        let bytes = file(
            r#"{"__metadata__":{"format":"pt"},"fc1.weight":{"dtype":"F32","shape":[16,10],"data_offsets":[0,640]}}"#,
            640,
        );
        let tensors = read_header(Region::whole(&bytes)).expect("a header");
        let tensor = &tensors["fc1.weight"];
        assert_eq!(
            (tensor.dtype.name(), tensor.shape.as_slice(), tensor.size_bytes),
            ("float32", [16, 10].as_slice(), 640)
        );
        assert_eq!(tensors.len(), 1);
    }

    #[test]
    fn ranges_fit_and_cover_the_data() {
        let read = |rows: &str, data| read_header(Region::whole(&file(rows, data))).is_ok();
        let two = |b: &str| {
            format!(
                r#"{{"a":{{"dtype":"F32","shape":[4],"data_offsets":[0,16]}},"b":{{"dtype":"U8","shape":[4],"data_offsets":{b}}}}}"#
            )
        };
        assert!(read(&two("[16,20]"), 20));
        assert!(!read(&two("[12,16]"), 16), "they overlap");
        assert!(!read(&two("[17,21]"), 21), "a hole");
        assert!(!read(&two("[16,20]"), 24), "bytes of no tensor");
        assert!(!read(&two("[16,18]"), 18), "fewer bytes than elements");
    }

    #[test]
    fn other_files_and_cut_ones_are_refused() {
        let cut = file(r#"{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#, 15);
        assert!(read_header(Region::whole(&cut)).is_err());
        for bytes in [b"PK\x03\x04 a zip archive".to_vec(), Vec::new(), vec![0xff; 64], file("[1]", 0), file("{", 0)] {
            assert!(read_header(Region::whole(&bytes)).is_err());
        }
        let deep = file(&format!(r#"{{"w":{}}}"#, "[".repeat(100_000)), 0);
        assert!(read_header(Region::whole(&deep)).is_err());
    }
}
