//! Small maps of a model folder: torchbind objects and the provenance of kernels (format reference 3.7, 2.1).

use super::json::{self, Pairs};
use crate::error::{Error, Result};
use serde_json::Value;

/// `custom_objs_config.json`: argument name of the extern nodes, and file below `data/constants/` (2.7+). 2.7 always
/// writes the file, then as `{}`.
///
/// # Errors
/// Not an object of texts.
pub fn custom_objects(text: &[u8]) -> Result<Vec<(String, String)>> {
    let Pairs(pairs) = json::parse_as(text)?;
    let text_of = |(name, file): (String, Value)| match file {
        Value::String(file) => Ok((name, file)),
        _ => Err(Error::damaged(format!("the file of {name:?} is no text"))),
    };
    pairs.into_iter().map(text_of).collect()
}

/// Where a kernel came from, as `kernel_information.json` tells (2.9+, only with provenance tracking).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelOrigin {
    /// name of the kernel, with its number: `cpp_fused_add_0:1`
    pub kernel: String,
    /// Python stack traces of the operators in it
    pub stack_traces: Vec<String>,
    /// operators after the graph passes
    pub post_grad_nodes: Vec<String>,
    /// operators before them
    pub pre_grad_nodes: Vec<String>,
}

/// Reads `kernel_information.json`.
///
/// # Errors
/// Not an object.
pub fn kernel_origins(text: &[u8]) -> Result<Vec<KernelOrigin>> {
    let Pairs(pairs) = json::parse_as(text)?;
    let texts = |value: &Value, key: &str| {
        let list = value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    let origin = |(kernel, value): (String, Value)| KernelOrigin {
        kernel,
        stack_traces: texts(&value, "stack_traces"),
        post_grad_nodes: texts(&value, "post_grad_nodes"),
        pre_grad_nodes: texts(&value, "pre_grad_nodes"),
    };
    Ok(pairs.into_iter().map(origin).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_in_order() {
        assert_eq!(custom_objects(b"{}").unwrap(), []);
        assert_eq!(custom_objects(br#"{"o": "custom_obj_0"}"#).unwrap(), [("o".into(), "custom_obj_0".into())]);
        assert!(custom_objects(br#"{"o": 1}"#).is_err());
        let got = kernel_origins(br#"{"k:1": {"stack_traces": ["a"], "post_grad_nodes": ["add"]}}"#).unwrap();
        assert_eq!(
            got.first().map(|o| (o.kernel.as_str(), o.post_grad_nodes.len(), o.pre_grad_nodes.len())),
            Some(("k:1", 1, 0))
        );
    }
}
