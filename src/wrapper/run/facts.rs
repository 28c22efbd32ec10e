//! What a reading of `run_impl` brings.

use crate::model::{DType, Device, Expr, OperatorCall};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes and strides of a tensor; an element is `None` where the text is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// sizes
    pub shape: Vec<Option<Expr>>,
    /// strides in elements
    pub stride: Vec<Option<Expr>>,
}

/// Whose memory a tensor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// an input's
    Input(usize),
    /// a constant's
    Constant(usize),
    /// its own
    Own,
}

/// A tensor variable.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// whose memory
    pub storage: Storage,
    /// `None`: that of the input or constant itself, or not known
    pub layout: Option<Layout>,
    /// element type, where the allocation or an assertion tells
    pub dtype: Option<DType>,
    /// device, likewise
    pub device: Option<Device>,
    /// a copy of `storage`: same sizes, memory of its own
    pub is_copy: bool,
}

impl Tensor {
    pub(super) fn of(storage: Storage) -> Self {
        Self { storage, layout: None, dtype: None, device: None, is_copy: false }
    }
}

/// Where the value of a dim or stride of an input is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// number of the input
    pub input: usize,
    /// a stride, not a size
    pub is_stride: bool,
    /// which one
    pub dim: usize,
}

/// A check that the model makes at run time, always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// line, from 1
    pub line: usize,
    /// what it prints
    pub text: String,
}

/// What `run_impl` says.
#[derive(Debug, Default)]
pub struct Run {
    /// sizes and strides of inputs in terms of symbols, with their line
    pub positions: BTreeMap<Position, (Expr, usize)>,
    /// full symbolic layouts of inputs (2.13+), with their line
    pub asserted: BTreeMap<usize, (Layout, usize)>,
    /// inputs that are read as a number, and the symbol for it
    pub scalars: BTreeMap<usize, (String, Option<DType>, usize)>,
    /// inputs whose address is assumed to be a multiple of 16
    pub aligned: BTreeSet<usize>,
    /// by number, with the line that hands it out
    pub outputs: BTreeMap<usize, (Tensor, usize)>,
    /// operators in call order
    pub operators: Vec<OperatorCall>,
    /// numbers of custom operators, in call order
    pub custom_ops: Vec<u32>,
    /// run-time assertions
    pub assertions: Vec<Assertion>,
    /// what there is more of than is kept
    pub cut: Option<&'static str>,
    /// symbols that are data, not sizes of inputs: `u0`
    pub data_symbols: BTreeSet<String>,
    /// devices of allocations and guards, with the first line of each
    pub devices: Vec<(Device, usize)>,
    /// features that date the compiler, with the first line of each
    pub forms: Vec<(&'static str, usize)>,
}
