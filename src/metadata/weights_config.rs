//! `weights_config.json` of a model folder: names of weights that are pickled under `data/weights` (2.8+, format
//! reference 3.4). Not the same as `data/weights/<name>_weights_config.json` of an exported program.

use super::json::{self, Pairs};
use crate::error::{Error, Result};
use crate::limits;
use serde_json::Value;

/// One weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickledWeight {
    /// name in the module
    pub fqn: String,
    /// file below `data/weights/`
    pub file: String,
    /// sizes
    pub shape: Vec<i64>,
    /// strides in elements
    pub stride: Vec<i64>,
    /// elements skipped from the start of the storage; tied and sliced weights share a file
    pub storage_offset: i64,
}

/// Reads the weights in file order.
///
/// # Errors
/// Not an object of such rows; the error names the row.
pub fn read(text: &[u8]) -> Result<Vec<PickledWeight>> {
    let Pairs(pairs) = json::parse_as(text)?;
    pairs.into_iter().map(|(fqn, row)| weight(&fqn, &row).ok_or_else(|| wrong(&fqn))).collect()
}

fn wrong(fqn: &str) -> Error {
    Error::damaged(format!("the row of {fqn:?} is not [file, shape, stride, offset]"))
}

fn weight(fqn: &str, row: &Value) -> Option<PickledWeight> {
    let [file, shape, stride, offset] = row.as_array()?.as_slice() else { return None };
    let numbers = |list: &Value| {
        let list = list.as_array().filter(|l| l.len() <= limits::RANK)?;
        list.iter().map(Value::as_i64).collect::<Option<Vec<_>>>()
    };
    Some(PickledWeight {
        fqn: fqn.to_owned(),
        file: file.as_str()?.to_owned(),
        shape: numbers(shape)?,
        stride: numbers(stride)?,
        storage_offset: offset.as_i64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_wrong_ones_named() {
        let got = read(br#"{"fc1.weight": ["weight_0", [16, 10], [10, 1], 0]}"#).unwrap();
        assert_eq!(got.first().map(|w| (w.file.as_str(), w.shape.as_slice())), Some(("weight_0", &[16, 10][..])));
        let error = read(br#"{"a": ["weight_0", [16, "x"], [], 0]}"#).unwrap_err();
        assert!(error.message().contains("\"a\""));
        assert!(read(br#"[]"#).is_err());
    }
}
