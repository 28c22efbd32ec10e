//! The vocabulary: what an artefact is, in PyTorch's own terms. No I/O, no parsing.
//!
//! `None` in a field always means *unknown*, and then an [`Unknown`] entry of the artefact says why.
//! What does not apply is an empty list or an absent key.

mod artifact;
mod constant;
mod dim;
mod dtype;
mod evidence;
mod expr;
mod guard;
mod interface;
mod kernel;
mod peak;
mod release;
mod requires;
mod tensor;
mod trace;

pub use artifact::{
    Archive, Artifact, Checks, CompiledBy, Exported, Hazard, Kind, Member, MetadataEntry, Model, Platform, Problem,
    Role,
};
pub use constant::{Constant, ConstantKind, Weights, WeightsLocation, WeightsTotal};
pub use dim::{Dim, Relation, SymbolRange};
pub use dtype::{DType, Device, DeviceKind};
pub use evidence::{Conflict, Evidence, Phase, Unknown, Witness};
#[cfg(test)]
pub(crate) use expr::tests::any_expr;
pub use expr::{Bounds, Expr};
pub use guard::{Comparison, Condition, Guard};
pub use interface::{Interface, OperatorCall};
pub use kernel::{Arch, AssertionBound, Image, ImageFormat, Kernel, KernelKind, Launch};
pub use peak::{Peak, PeakAt};
pub use release::{Dated, Release};
pub use requires::{CpuIsa, CustomOp, CxxRuntime, FunctionIsa, Requires};
pub use tensor::{Label, TensorSpec};
pub use trace::{Argument, Assumption, Step, SymbolSize, Trace};

/// The word that our JSON has for a value of one of the enums: `custom_op_library`, `appended`.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
