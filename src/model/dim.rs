//! Sizes and strides: numbers, symbols with a range, or expressions of symbols.

use super::{Evidence, Expr};
use schemars::JsonSchema;
use serde::Serialize;

/// A size or stride. Serializes as `{"size": 10}`, `{"symbol": "s27", "min": 2, "max": 1024}` or
/// `{"expr": "8*s77", "min": 16, "max": 616}`; a bound that does not exist is an absent key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Dim {
    /// always this number
    Static {
        /// elements
        size: i64,
    },
    /// a size of its own; the same symbol is the same size everywhere in the model
    Symbol {
        /// its name: PyTorch's (`s27`) when the source tells it, else ours (`d0`, `d1`, …)
        symbol: String,
        /// smallest accepted value
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<i64>,
        /// largest accepted value
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<i64>,
    },
    /// determined by other dims
    Expr {
        /// in Python's notation: `8*s77`, `s0 // 4`
        expr: Expr,
        /// smallest accepted value
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<i64>,
        /// largest accepted value
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<i64>,
    },
}

impl Dim {
    /// A number.
    pub const fn fixed(size: i64) -> Self {
        Self::Static { size }
    }
    /// From an expression: a number and a lone symbol become the simpler forms.
    pub fn from_expr(expr: Expr, min: Option<i64>, max: Option<i64>) -> Self {
        match expr {
            Expr::Int(size) => Self::Static { size },
            Expr::Symbol(symbol) => Self::Symbol { symbol, min, max },
            expr => Self::Expr { expr, min, max },
        }
    }
    /// The value as an expression.
    pub fn expr(&self) -> Expr {
        match self {
            Self::Static { size } => Expr::Int(*size),
            Self::Symbol { symbol, .. } => Expr::symbol(symbol),
            Self::Expr { expr, .. } => expr.clone(),
        }
    }
    /// The number, when it is one.
    pub fn as_static(&self) -> Option<i64> {
        match self {
            Self::Static { size } => Some(*size),
            _ => None,
        }
    }
    /// Inclusive bounds of the value, absent where there is none.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Static { size } => (Some(*size), Some(*size)),
            Self::Symbol { min, max, .. } | Self::Expr { min, max, .. } => (*min, *max),
        }
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.expr().to_string())
    }
}

/// The values that a symbol may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SymbolRange {
    /// as in the dims
    pub symbol: String,
    /// smallest accepted value
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// largest accepted value
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// dims that have exactly this size, `inputs[0].shape[0]`
    pub subjects: Vec<String>,
}

/// A dim whose dependence on other dims is not stated (source of 2.7 to 2.12) and not settled by inference.
/// It holds for given sizes only if all candidates agree about them (design: "Inference").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Relation {
    /// `inputs[1].shape[0]`
    pub subject: String,
    /// what it may be, each within the dim's bounds
    pub candidates: Vec<Expr>,
    /// where the candidates come from
    pub evidence: Vec<Evidence>,
}
