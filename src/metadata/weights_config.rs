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

impl PickledWeight {
    /// Elements from the start of the storage to the last one that the row reaches; `None` where its numbers make no
    /// tensor.
    pub fn reached_elements(&self) -> Option<u64> {
        let is_sound = |numbers: &[i64]| numbers.iter().all(|n| *n >= 0);
        let offset = u64::try_from(self.storage_offset).ok()?;
        if self.shape.len() != self.stride.len() || !is_sound(&self.shape) || !is_sound(&self.stride) {
            return None;
        }
        if self.shape.contains(&0) {
            return Some(0);
        }
        let last = self.shape.iter().zip(&self.stride).try_fold(offset, |at, (size, stride)| {
            at.checked_add(u64::try_from(size.checked_sub(1)?.checked_mul(*stride)?).ok()?)
        });
        last?.checked_add(1)
    }

    /// Name of its member without the root; `None` for a file that is not below `data/weights`.
    pub fn member(&self) -> Option<String> {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':', '\0']);
        self.file.split('/').all(is_plain).then(|| format!("data/weights/{}", self.file))
    }
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

    #[test]
    fn rows_reach_elements_and_files_below_the_folder() {
        let row = |text: &str| read(format!(r#"{{"a": {text}}}"#).as_bytes()).unwrap().remove(0);
        assert_eq!(row(r#"["w", [16, 10], [10, 1], 2]"#).reached_elements(), Some(162));
        assert_eq!(row(r#"["w", [], [], 0]"#).reached_elements(), Some(1));
        assert_eq!(row(r#"["w", [0, 7], [7, 1], 5]"#).reached_elements(), Some(0));
        for wrong in [
            r#"["w", [2], [1, 1], 0]"#,
            r#"["w", [-2], [1], 0]"#,
            r#"["w", [2], [-1], 0]"#,
            r#"["w", [2], [1], -1]"#,
            r#"["w", [9223372036854775807, 9223372036854775807], [9223372036854775807, 3], 0]"#,
        ] {
            assert_eq!(row(wrong).reached_elements(), None, "{wrong}");
        }
        assert_eq!(row(r#"["a/w", [], [], 0]"#).member().as_deref(), Some("data/weights/a/w"));
        for wrong in ["", "..", "../w", "a/../w", "/w", "a\\\\w", "c:w", "./w"] {
            assert_eq!(row(&format!(r#"["{wrong}", [], [], 0]"#)).member(), None, "{wrong}");
        }
    }
}
