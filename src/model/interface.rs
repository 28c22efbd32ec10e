//! What one witness says about a model: the common result of wrapper source, interpreted code,
//! cross-references and exported programs. `assemble` weighs several of them into one [`super::Model`].

use super::{
    Checks, Constant, Device, DeviceKind, Evidence, Expr, Kernel, Relation, TensorSpec, Trace, Unknown,
    WeightsLocation, Witness,
};

/// A call that the model makes, in order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct OperatorCall {
    /// `aoti_torch_cpu_addmm_out`, or `custom op #3`
    pub name: String,
    /// sizes and other integers, as expressions
    pub integers: Vec<Expr>,
}

/// One witness's testimony. `None` and empty mean that this witness does not say.
#[derive(Debug, Clone, Default)]
pub struct Interface {
    /// who speaks; `None` only in a default value
    pub witness: Option<Witness>,
    /// member or file it was read from
    pub member: Option<String>,
    /// the model's device
    pub device: Option<Device>,
    /// constants, devices of inputs, …: one line each
    pub device_evidence: Vec<Evidence>,
    /// number of inputs
    pub input_count: Option<usize>,
    /// number of outputs
    pub output_count: Option<usize>,
    /// number of constants
    pub constant_count: Option<usize>,
    /// inputs, complete or empty
    pub inputs: Vec<TensorSpec>,
    /// outputs, complete or empty
    pub outputs: Vec<TensorSpec>,
    /// constants, complete or empty
    pub constants: Vec<Constant>,
    /// input call spec (pytree JSON), decoded from its literal; empty text: built without one
    pub in_spec: Option<String>,
    /// output call spec
    pub out_spec: Option<String>,
    /// kernels
    pub kernels: Vec<Kernel>,
    /// operators in call order
    pub operators: Vec<OperatorCall>,
    /// run-time input checks
    pub checks: Option<Checks>,
    /// the literal `include_weights`
    pub include_weights: Option<bool>,
    /// where the weights are, as far as this witness tells
    pub weights: Option<WeightsLocation>,
    /// device that the inputs are checked against when they state none
    pub default_input_device: Option<DeviceKind>,
    /// lower bounds of dynamic dims are compiled in; `false` when a dim shows that they are switched off
    pub has_lower_bounds: Option<bool>,
    /// dims whose relation to others is open
    pub relations: Vec<Relation>,
    /// what one run does, as far as this witness followed it
    pub trace: Option<Trace>,
    /// facts that this witness looked for and could not read
    pub unknown: Vec<Unknown>,
}
