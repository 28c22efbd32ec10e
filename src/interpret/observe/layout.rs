//! Sizes and strides of a tensor of the run, from whatever states them.

use super::symbols::{Range, Symbols};
use crate::interpret::session::Visit;
use crate::interpret::tensors::{Kind, Tensor, TensorId};
use crate::interpret::value::{Origin, Property, Value};
use crate::model::{DType, Device, DeviceKind, Expr, Interface, TensorSpec};

/// Sizes and strides; an element is `None` where it is not known.
pub struct Layout {
    /// sizes
    pub shape: Vec<Option<Expr>>,
    /// strides in elements
    pub stride: Vec<Option<Expr>>,
    /// who states them
    pub source: Source,
}

/// Who states a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// the allocation, or the view
    Allocation,
    /// a check of the code (2.13+ asserts what operators return)
    Assertion,
}

/// The only value that a property can have.
fn single(symbols: &Symbols, tensor: &Tensor, property: Property) -> Option<i64> {
    symbols.range(Origin::Tensor(tensor.symbols, property)).and_then(Range::single)
}

/// Element type: stated, or the only one that a check accepts.
pub fn dtype(symbols: &Symbols, tensor: &Tensor) -> Option<DType> {
    let asserted = || single(symbols, tensor, Property::DType).and_then(|n| i32::try_from(n).ok());
    let number = tensor.dtype.or_else(asserted)?;
    Some(DType::from_aten(number).unwrap_or_else(|| DType::Other(format!("scalar type {number}"))))
}

/// Device, likewise.
pub fn device(symbols: &Symbols, tensor: &Tensor) -> Option<Device> {
    let asserted = || single(symbols, tensor, Property::Device).and_then(|n| i32::try_from(n).ok());
    let number = tensor.device.or_else(asserted)?;
    let other = || DeviceKind::Other(format!("device type {number}"));
    Some(Device::new(DeviceKind::from_aten(number).unwrap_or_else(other)))
}

/// Layout of a tensor.
pub fn layout(visit: &Visit<'_>, symbols: &Symbols, tensor: &Tensor) -> Option<Layout> {
    let dims = |values: &[Value]| values.iter().map(|v| symbols.expression(visit, *v, 8)).collect();
    if let Some(sizes) = &tensor.sizes {
        let stride = tensor.strides.as_deref().map(dims).unwrap_or_default();
        return Some(Layout { shape: dims(sizes), stride, source: Source::Allocation });
    }
    let rank = single(symbols, tensor, Property::Rank).and_then(|n| u8::try_from(n).ok())?;
    let list = |property: fn(u8) -> Property| {
        (0..rank).map(|dim| symbols.resolve(visit, Origin::Tensor(tensor.symbols, property(dim)), 0)).collect()
    };
    Some(Layout { shape: list(Property::Size), stride: list(Property::Stride), source: Source::Assertion })
}

/// The input that a tensor has its properties from.
pub fn input_of<'i>(visit: &Visit<'_>, tensor: &Tensor, interface: &'i Interface) -> Option<&'i TensorSpec> {
    match visit.machine.tensors.get(tensor.symbols)?.kind {
        Kind::Input(number) => interface.inputs.get(number),
        _ => None,
    }
}

/// The same for a copy of an input, whose facts are in `interface`.
pub fn layout_or_input(visit: &Visit<'_>, symbols: &Symbols, id: TensorId, interface: &Interface) -> Option<Layout> {
    let tensor = visit.machine.tensors.get(id)?;
    layout(visit, symbols, tensor).or_else(|| {
        let input = input_of(visit, tensor, interface)?;
        let dims = |list: &Option<Vec<Option<crate::model::Dim>>>| -> Option<Vec<Option<Expr>>> {
            Some(list.as_ref()?.iter().map(|d| d.as_ref().map(|d| d.expr())).collect())
        };
        Some(Layout { shape: dims(&input.shape)?, stride: dims(&input.stride)?, source: Source::Assertion })
    })
}
