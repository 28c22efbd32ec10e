//! Weights: where the bytes of each constant come from, and what appended ones have to satisfy.

use crate::image::Image;
use crate::interpret::explore::normal;
use crate::interpret::layout;
use crate::interpret::session::Visit;
use crate::interpret::tensors::TensorId;
use crate::interpret::value::Origin;
use crate::model::{Constant, DType, Device, DeviceKind, WeightsLocation};

/// A condition that the library puts on the file it maps its weights from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsRelation {
    /// what the library says when it does not hold
    pub message: String,
    /// the file satisfies it
    pub holds: bool,
}

/// Conditions on size and content of the library's own file, met while the model was created.
pub fn relations(visit: &mut Visit<'_>) -> Vec<WeightsRelation> {
    let constraints = visit.machine.explorer.constraints.get(..visit.run_constraints_at).unwrap_or_default().to_vec();
    let file_bytes = i64::try_from(visit.machine.loaded.file_bytes).unwrap_or(i64::MAX);
    let mapped = visit.machine.host.mapped.last().copied();
    let e = &mut visit.machine.bus.expressions;
    // judge by the file as it is, not by the assignment that was needed to go on
    let size = e.symbol(Origin::FileSize, file_bytes);
    e.assign(size, file_bytes);
    let magic = e.symbol(Origin::MappedMagic, 0);
    if let Some((_, len, offset)) = mapped {
        let at = (offset as i64).wrapping_add(len as i64).wrapping_sub(8);
        let bytes = u64::try_from(at).ok().and_then(|at| visit.machine.file.get(at, 8));
        let word = bytes.and_then(|b| <[u8; 8]>::try_from(b).ok()).map_or(0, i64::from_le_bytes);
        e.assign(magic, word);
    }
    let mut relations = Vec::new();
    for constraint in constraints.into_iter().filter(|c| c.is_required) {
        let form = normal(e, constraint.relation, constraint.left, constraint.right);
        let sum = form
            .terms
            .iter()
            .fold(form.constant, |sum, (atom, factor)| sum.wrapping_add(factor.wrapping_mul(e.eval(*atom))));
        relations.push(WeightsRelation {
            message: constraint.message.trim().to_owned(),
            holds: form.relation.holds(sum, 0),
        });
    }
    relations
}

/// Fills in what the tensor made over a constant's bytes tells.
pub fn describe(visit: &Visit<'_>, image: &Image<'_>, constant: &mut Constant, id: TensorId, data: u64) {
    let Some(tensor) = visit.machine.tensors.get(id) else { return };
    let numbers = |values: &Option<Vec<crate::interpret::value::Value>>| {
        values.as_ref().map(|values| values.iter().map(|v| v.bits as i64).collect::<Vec<i64>>())
    };
    constant.shape = numbers(&tensor.sizes).or(constant.shape.take());
    constant.stride = numbers(&tensor.strides).or(constant.stride.take());
    constant.storage_offset = Some(tensor.offset.bits as i64);
    constant.dtype = constant.dtype.take().or_else(|| tensor.dtype.and_then(DType::from_aten));
    constant.device = tensor.device.and_then(DeviceKind::from_aten).map(Device::new);
    constant.file_offset = origin(visit, image, data);
}

/// Offset in the file of the byte that ends up at an address, along the copies that were made.
fn origin(visit: &Visit<'_>, image: &Image<'_>, address: u64) -> Option<u64> {
    let mut address = address;
    for _ in 0..8 {
        if visit.machine.is_in_image(address) {
            return image.file_offset(address.wrapping_sub(layout::IMAGE));
        }
        let within = |start: u64, len: u64| address.checked_sub(start).filter(|d| *d < len);
        let mapped = visit.machine.host.mapped.iter();
        if let Some(offset) = mapped.filter_map(|(at, len, offset)| Some(offset + within(*at, *len)?)).next() {
            return Some(offset);
        }
        let copies = visit.machine.host.copies.iter().rev();
        address = copies.filter_map(|c| Some(c.from.wrapping_add(within(c.to, c.len)?))).next()?;
    }
    None
}

/// Where the weights are, by what creation did with them.
pub fn location(visit: &Visit<'_>, image: &Image<'_>) -> Option<WeightsLocation> {
    visit.container?;
    let needs_bytes = visit.constants.iter().any(|c| c.folded != Some(true) && c.size_bytes != Some(0));
    if !needs_bytes && visit.counts[2].is_some() {
        return Some(WeightsLocation::None);
    }
    let host = &visit.machine.host;
    if !host.mapped.is_empty() {
        return Some(WeightsLocation::Appended);
    }
    if host.blobs.iter().any(|(_, data)| origin(visit, image, *data).is_some()) {
        return Some(WeightsLocation::Library);
    }
    let room = visit.machine.loaded.weights.end.saturating_sub(visit.machine.loaded.weights.start);
    match (host.blobs.is_empty(), room) {
        // eight bytes hold the size of the blob (format reference 4.8)
        (true, 8) => Some(WeightsLocation::Blob),
        (true, _) => Some(WeightsLocation::Absent),
        (false, _) => None,
    }
}
