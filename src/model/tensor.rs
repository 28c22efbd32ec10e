//! Inputs and outputs.

use super::{DType, Device, Dim, Evidence, Witness};
use schemars::JsonSchema;
use serde::Serialize;

/// A person's name for an input, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Label {
    /// parameter name or name from a metadata list
    pub name: String,
    /// who says so
    pub source: Witness,
}

/// An input or output of a model, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct TensorSpec {
    /// position in the flat list
    pub index: usize,
    /// internal name: `arg2_1`, `output0`
    pub name: Option<String>,
    /// call path in keystr form, `args[0]['f16']`; `None` when the call spec does not tell, empty for the only value that
    /// a model returns
    pub path: Option<String>,
    /// names that people use for it
    pub labels: Vec<Label>,
    /// element type
    pub dtype: Option<DType>,
    /// number of dims
    pub rank: Option<usize>,
    /// sizes; an element is `None` when that one is unknown
    pub shape: Option<Vec<Option<Dim>>>,
    /// strides in elements; likewise
    pub stride: Option<Vec<Option<Dim>>>,
    /// device it lives on
    pub device: Option<Device>,
    /// bytes that its address is assumed to be a multiple of, where the code assumes one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment_bytes: Option<u32>,
    /// outputs: the input or constant whose memory it shares (`inputs[0]`, `constants[2]`)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aliases: Option<String>,
    /// facts above that no witness states and a rule gave: `shape`, `shape[1]`, `stride[0]`, `device`
    /// (design: "Inference"; the rule stands in the evidence)
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inferred: Vec<String>,
    /// who says so
    pub evidence: Vec<Evidence>,
}

impl TensorSpec {
    /// True for a fact that a rule gave and no witness states: `stride[0]`, `device`.
    pub fn is_inferred(&self, fact: &str) -> bool {
        self.inferred.iter().any(|known| known == fact)
    }
    /// For sentences: `input 2 (kwargs['bias'])`, with the name a person knows best.
    pub fn called(&self, what: &str) -> String {
        let label = self.labels.first().map(|l| l.name.as_str());
        match self.path.as_deref().filter(|path| !path.is_empty()).or(label).or(self.name.as_deref()) {
            Some(name) => format!("{what} {} ({name})", self.index),
            None => format!("{what} {}", self.index),
        }
    }
}
