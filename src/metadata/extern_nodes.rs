//! Extern kernel nodes: calls of operators that have no C shim, made through the proxy executor (format reference 3.6).

use super::json;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::CustomOp;
use serde_json::Value;

/// One node; its position is the number that the code passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternNode {
    /// `namespace::op` or `namespace::op.overload`
    pub target: String,
    /// argument names of the operator's schema with their values: `alpha=0.25`, `x=buf1`
    pub arguments: Vec<String>,
    /// defined in Python; `None` where the release does not say (before 2.13)
    pub is_python_only: Option<bool>,
}

/// Namespaces whose operators every libtorch has.
const BUILT_IN: &[&str] = &[
    "aten",
    "prims",
    "prim",
    "inductor",
    "quantized",
    "mkldnn",
    "onednn",
    "_quantized",
    "symm_mem",
    "_c10d_functional",
    "higher_order",
];

impl ExternNode {
    /// Part of the target before `::`.
    pub fn namespace(&self) -> Option<&str> {
        self.target.split_once("::").map(|(namespace, _)| namespace)
    }
    /// True when a library that is not part of torch must register it.
    pub fn is_custom(&self) -> bool {
        self.namespace().is_some_and(|namespace| !BUILT_IN.contains(&namespace))
    }
}

/// Reads the nodes.
///
/// # Errors
/// Not `{"nodes": [...]}`, or a node without a target; the error names its number.
pub fn read(text: &[u8]) -> Result<Vec<ExternNode>> {
    let value = json::parse(text)?;
    let nodes = value.get("nodes").and_then(Value::as_array).ok_or_else(|| Error::damaged("has no list of nodes"))?;
    if nodes.len() > limits::KERNELS {
        return Err(Error::limit(format!("{} extern nodes, more than {}", nodes.len(), limits::KERNELS)));
    }
    let read = |outer: &Value| {
        let node = outer.get("node")?;
        let target = node.get("target")?.as_str()?.to_owned();
        let inputs = node.get("inputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let metadata = node.get("metadata");
        let mark = metadata.and_then(|m| m.get("torch_library_custom_op")).map(|mark| mark == "1" || *mark == true);
        // the mark exists since 2.13, and its neighbour `name` too
        let states_it = mark.is_some() || node.get("name").is_some();
        let is_python_only = states_it.then(|| mark.unwrap_or(false));
        Some(ExternNode { target, arguments: inputs.iter().filter_map(argument).collect(), is_python_only })
    };
    nodes
        .iter()
        .enumerate()
        .map(|(number, row)| read(row).ok_or_else(|| Error::damaged(format!("node {number} has no target"))))
        .collect()
}

/// `alpha=0.25`
fn argument(input: &Value) -> Option<String> {
    let name = input.get("name")?.as_str()?;
    let (kind, value) = input.get("arg")?.as_object()?.iter().next()?;
    let shown = match value {
        _ if kind == "as_none" => "None".to_owned(),
        Value::Object(fields) => match fields.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None => value.to_string(),
        },
        Value::Array(items) if items.iter().all(|i| i.get("name").is_some()) => {
            let names: Vec<&str> = items.iter().filter_map(|i| i.get("name")?.as_str()).collect();
            format!("[{}]", names.join(", "))
        }
        other => other.to_string(),
    };
    Some(format!("{name}={shown}"))
}

/// Operators that the process must have registered, each once, with the number of the first call. Built-in ones are left out.
pub fn custom_ops(nodes: &[ExternNode]) -> Vec<CustomOp> {
    let mut found: Vec<CustomOp> = Vec::new();
    for (number, node) in nodes.iter().enumerate().filter(|(_, n)| n.is_custom()) {
        if found.iter().any(|op| op.name.as_deref() == Some(&node.target)) {
            continue;
        }
        found.push(CustomOp {
            name: Some(node.target.clone()),
            number: u32::try_from(number).ok(),
            through: "proxy_executor".into(),
            is_python_only: node.is_python_only,
            registered_by: None,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_tell_operator_and_arguments() {
        let text = br#"{"nodes": [
            {"name": "buf7", "node": {"target": "mylib::blend.Tensor", "inputs": [
                {"name": "a", "arg": {"as_tensor": {"name": "arg0_1"}}, "kind": 1},
                {"name": "alpha", "arg": {"as_float": 0.25}, "kind": 2},
                {"name": "list", "arg": {"as_tensors": [{"name": "b1"}, {"name": "b2"}]}, "kind": 1},
                {"name": "gone", "arg": {"as_none": true}}],
              "outputs": [{"as_tensor": {"name": "buf8"}}], "metadata": {"torch_library_custom_op": "1"}}},
            {"name": "buf9", "node": {"target": "aten::_linalg_det", "inputs": [], "outputs": [], "metadata": {}}}]}"#;
        let nodes = read(text).unwrap();
        let first = nodes.first().unwrap();
        assert_eq!(first.arguments, ["a=arg0_1", "alpha=0.25", "list=[b1, b2]", "gone=None"]);
        let ops = custom_ops(&nodes);
        assert_eq!(ops.len(), 1, "aten is part of every libtorch");
        assert_eq!(
            ops.first().map(|op| (op.name.as_deref(), op.is_python_only)),
            Some((Some("mylib::blend.Tensor"), Some(true)))
        );
        assert_eq!(nodes.get(1).and_then(|n| n.is_python_only), None);
        assert!(read(br#"{"nodes": [{"node": {}}]}"#).unwrap_err().message().contains("node 0"));
        assert!(read(br#"{}"#).is_err());
    }
}
