//! What one run of a model does, in order: its memory and launch plan (`show --trace`).
//!
//! Sizes, bytes and grids are the same kind of object as dims: a number, a symbol, or an expression with its bounds.

use super::peak::{self, Peak};
use super::{Condition, DType, Device, Dim, Expr, SymbolRange};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is given to a kernel: a tensor by its name in the trace, or a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Argument {
    /// `buf0`, `inputs[1]`, `constants[2]`
    Tensor {
        /// its name
        tensor: String,
    },
    /// a size
    Number(Dim),
}

/// One thing that the model does. Tensors are `inputs[0]`, `constants[2]`, `buf3`, or `foreign` for one that the run did
/// not make and nobody has handed in: a constant that the caller has not loaded. `null` is a number or argument that the code does not state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Step {
    /// a buffer comes into being
    Allocate {
        /// `buf3`: buffers are numbered in this order
        tensor: String,
        /// element type
        dtype: Option<DType>,
        /// sizes; `null` where an operator decides them
        shape: Option<Vec<Option<Dim>>>,
        /// bytes that sizes and strides span, without what an allocator adds
        bytes: Option<Dim>,
        /// where it is
        device: Option<Device>,
        /// the operator that returns it; absent for a plain allocation
        #[serde(skip_serializing_if = "Option::is_none")]
        operator: Option<String>,
    },
    /// the last handle to a buffer is given back
    Free {
        /// its name
        tensor: String,
    },
    /// an operator of libtorch is called
    Operator {
        /// name of the shim: `aoti_torch_cpu_addmm_out`
        name: String,
        /// tensors among its arguments, in order
        tensors: Vec<String>,
    },
    /// a custom operator is called through the proxy executor
    CustomOperator {
        /// index in the extern-node list
        number: i64,
        /// `mylib::blend`, where the package tells
        name: Option<String>,
        /// its integers, flattened
        integers: Vec<Option<Dim>>,
        /// its tensors, flattened; results are among them
        tensors: Vec<String>,
    },
    /// a C++ kernel of the library is called
    Kernel {
        /// its name, or its address where the library names none
        name: String,
        /// arguments
        arguments: Vec<Option<Argument>>,
        /// it may have more arguments than are listed
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        has_more: bool,
    },
    /// a GPU kernel is launched
    Launch {
        /// its name
        name: String,
        /// blocks
        grid: Box<[Option<Dim>; 3]>,
        /// threads per block
        block: Box<[Option<Dim>; 3]>,
        /// dynamic shared memory
        shared_bytes: Option<Dim>,
        /// arguments
        arguments: Vec<Option<Argument>>,
    },
}

impl Step {
    /// Lets `change` replace every number.
    fn map(&mut self, change: &dyn Fn(&Dim) -> Dim) {
        let one = |dim: &mut Option<Dim>| {
            if let Some(dim) = dim {
                *dim = change(dim);
            }
        };
        let arguments = |list: &mut Vec<Option<Argument>>| {
            for argument in list.iter_mut().flatten() {
                if let Argument::Number(dim) = argument {
                    *dim = change(dim);
                }
            }
        };
        match self {
            Self::Allocate { shape, bytes, .. } => {
                shape.iter_mut().flatten().for_each(one);
                one(bytes);
            }
            Self::Free { .. } | Self::Operator { .. } => {}
            Self::CustomOperator { integers, .. } => integers.iter_mut().for_each(one),
            Self::Kernel { arguments: list, .. } => arguments(list),
            Self::Launch { grid, block, shared_bytes, arguments: list, .. } => {
                grid.iter_mut().chain(block.iter_mut()).for_each(one);
                one(shared_bytes);
                arguments(list);
            }
        }
    }

    /// Every number in it.
    fn numbers(&self) -> Vec<&Dim> {
        match self {
            Self::Allocate { shape, bytes, .. } => shape.iter().flatten().flatten().chain(bytes).collect(),
            Self::Free { .. } | Self::Operator { .. } => Vec::new(),
            Self::CustomOperator { integers, .. } => integers.iter().flatten().collect(),
            Self::Kernel { arguments, .. } => numbers_of(arguments).collect(),
            Self::Launch { grid, block, shared_bytes, arguments, .. } => {
                grid.iter().chain(block.iter()).flatten().chain(shared_bytes).chain(numbers_of(arguments)).collect()
            }
        }
    }
}

fn numbers_of(arguments: &[Option<Argument>]) -> impl Iterator<Item = &Dim> {
    arguments.iter().flatten().filter_map(|argument| match argument {
        Argument::Number(dim) => Some(dim),
        Argument::Tensor { .. } => None,
    })
}

/// The size of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SymbolSize {
    /// as in the dims
    pub symbol: String,
    /// its value
    pub size: i64,
}

/// A decision of the code that depends on sizes or data: the steps are those of this side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Assumption {
    /// what holds on the way that was followed: `s27 > 32`
    pub text: String,
    /// whether it holds for the given sizes; absent when none are given, or it depends on data
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// the same as the text, to be evaluated
    #[serde(skip)]
    pub condition: Condition,
}

/// What a model does in one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trace {
    /// in order
    pub steps: Vec<Step>,
    /// sizes that the person gave; the steps are for these alone
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SymbolSize>,
    /// conditions under which the code does this and not something else
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumes: Vec<Assumption>,
    /// bytes of the constants on the model's device, each from a multiple of 64
    pub constant_bytes: Option<u64>,
    /// bytes of the inputs; they belong to the caller and are not in the peak
    pub input_bytes: Option<Dim>,
    /// the most bytes of buffers at once; `null` when the run was not followed to its end
    pub peak_bytes: Option<Peak>,
    /// instructions interpreted, the work of imports included
    pub instructions: u64,
    /// instructions that were allowed
    pub budget: u64,
    /// the list of steps was cut at its cap
    pub is_cut: bool,
    /// why the run was not followed to its end
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Trace {
    /// True when every step of the run is in the list.
    pub fn is_whole(&self) -> bool {
        self.stopped.is_none() && !self.is_cut
    }

    /// The trace with other names, or values, for its symbols.
    pub fn substitute(&mut self, replace: &dyn Fn(&str) -> Option<Expr>) {
        self.map(&|dim| Dim::from_expr(dim.expr().substitute(replace), None, None));
        for assumption in &mut self.assumes {
            assumption.condition = assumption.condition.substitute(replace);
            assumption.text = assumption.condition.to_string();
        }
    }

    /// Puts sizes in the place of symbols and works out the peak for them. Returns why the steps are not those of these
    /// sizes, when the code takes another way for them; then there is no peak.
    pub fn set_sizes(
        &mut self,
        sizes: &[SymbolSize],
        device: Option<&Device>,
        ranges: &[SymbolRange],
    ) -> Option<String> {
        let size = |name: &str| sizes.iter().find(|s| s.symbol == name).map(|s| s.size);
        self.map(&|dim| Dim::from_expr(dim.expr().substitute(&|name| size(name).map(Expr::Int)), None, None));
        self.settle(device, ranges);
        self.sizes = sizes.to_vec();
        for assumption in &mut self.assumes {
            assumption.holds = assumption.condition.eval(&size);
        }
        let other = self.assumes.iter().find(|assumption| assumption.holds == Some(false))?;
        self.peak_bytes = None;
        Some(format!("for these sizes the code takes another way: not {}", other.text))
    }

    fn map(&mut self, change: &dyn Fn(&Dim) -> Dim) {
        self.steps.iter_mut().for_each(|step| step.map(change));
        self.input_bytes = self.input_bytes.as_ref().map(change);
    }

    /// Gives every number the bounds that its symbols have, and works out the peak on `device`.
    pub fn settle(&mut self, device: Option<&Device>, ranges: &[SymbolRange]) {
        let by_name: BTreeMap<&str, _> = ranges.iter().map(|r| (r.symbol.as_str(), (r.min, r.max))).collect();
        // sizes are not negative
        let bounds =
            |symbol: &str| by_name.get(symbol).copied().map_or((Some(0), None), |(min, max)| (min.or(Some(0)), max));
        self.map(&|dim| {
            let expr = dim.expr();
            let (min, max) = expr.range(&bounds);
            Dim::from_expr(expr, min, max)
        });
        self.assumes.retain(|assumption| !assumption.condition.always_holds(&bounds));
        self.peak_bytes = self.is_whole().then(|| peak::peak(&self.steps, device, self.constant_bytes, &bounds));
    }

    /// Symbols of all sizes in it.
    pub fn symbols(&self) -> BTreeSet<String> {
        let all = self.steps.iter().flat_map(Step::numbers).chain(&self.input_bytes);
        all.flat_map(|dim| dim.expr().symbols().into_iter().map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}
