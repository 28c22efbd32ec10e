//! What the artefact says about a text of the log, one function per kind of question.

mod call;
mod constants;
mod devices;
mod fault;
mod host;
mod index;
mod inputs;
mod kernels;
mod package;

pub use fault::{Precondition, class_of, preconditions, ruled_out, switches, where_it_stood};
pub use inputs::check_switch;

use super::case::{Case, Diagnosis};
use super::log::Hit;
use super::pattern::Lookup;

/// Answers a row's question for one hit.
pub fn look_up(hit: &Hit, case: &Case) -> Diagnosis {
    match hit.found.pattern.lookup {
        Lookup::Count => call::count(hit, case),
        Lookup::CallSpec => call::spec(hit, case),
        Lookup::Alignment => call::alignment(hit, case),
        Lookup::SingleThreaded => call::single_threaded(hit, case),
        Lookup::InputDType => inputs::dtype(hit, case),
        Lookup::InputDim => inputs::dim(hit, case),
        Lookup::InputLower => inputs::bound(hit, case, inputs::End::Lower),
        Lookup::InputUpper => inputs::bound(hit, case, inputs::End::Upper),
        Lookup::InputStride => inputs::stride(hit, case),
        Lookup::InputDevice => devices::input(hit, case),
        Lookup::OperatorShape => inputs::operator_shape(hit, case),
        Lookup::OperatorDType => inputs::operator_dtype(hit, case),
        Lookup::OperatorDevice => devices::operator(hit, case),
        Lookup::Device => devices::load(hit, case),
        Lookup::RunnerDevice => devices::runner(hit, case),
        Lookup::Symbol => host::symbol(hit, case),
        Lookup::MissingExport => host::missing_export(hit, case),
        Lookup::SymbolVersion => host::symbol_version(hit, case),
        Lookup::Library => host::library(hit, case),
        Lookup::CpuIsa => host::cpu(hit, case),
        Lookup::KernelFile => kernels::files(hit, case),
        Lookup::KernelTarget => kernels::targets(hit, case),
        Lookup::KernelLaunch => kernels::launches(hit, case),
        Lookup::KernelName => kernels::names(hit, case),
        Lookup::Memory => constants::memory(hit, case),
        Lookup::WeightBytes => constants::bytes(hit, case),
        Lookup::ConstantName => constants::name(hit, case),
        Lookup::ConstantDevice => constants::device(hit, case),
        Lookup::Operator => package::operator(hit, case),
        Lookup::ModelName => package::model_name(hit, case),
        Lookup::Member => package::member(hit, case),
        Lookup::Layout => package::layout(hit, case),
        Lookup::Assertion => index::assertion(hit, case),
        Lookup::Fault => fault::fault(hit, case),
        Lookup::Nothing => Diagnosis::default(),
    }
}
