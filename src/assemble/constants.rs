//! Constants, and where their bytes are: the library's words, the package's files and the table against each other
//! (format reference, 4.5 to 4.8).

use super::claims;
use crate::container::{Container, Member, MemberId, ModelFolder, saved};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::image::weights as library_weights;
use crate::limits;
use crate::metadata::weights_config::{self, PickledWeight};
use crate::model::{Constant, Device, Evidence, Interface, Problem, Weights, WeightsLocation, WeightsTotal, Witness};
use std::collections::HashMap;

/// Up to 2.10 the table states no devices: all constants are on the model's.
pub fn place_on_device(constants: &mut [Constant], device: Option<&Device>) {
    for constant in constants.iter_mut().filter(|c| c.device.is_none()) {
        constant.device = device.map(|d| Device::new(d.kind.clone()));
    }
}

/// Where the weights are and how many bytes; gives the constants their file offsets where bytes and table agree.
pub fn weights(
    container: &Container,
    folder: &ModelFolder,
    image: Option<&Image<'_>>,
    interface: &mut Interface,
    problems: &mut Vec<Problem>,
) -> Weights {
    let (mut weights, damage) = match image {
        Some(image) => library_weights::weights(image),
        None => (Weights::default(), Vec::new()),
    };
    derive_sizes(&mut interface.constants, &weights);
    let stored: Vec<&Constant> = interface.constants.iter().filter(|c| c.folded != Some(true)).collect();
    let is_table_known = interface.constant_count == Some(interface.constants.len());
    let asked = stored.iter().try_fold(0u64, |sum, c| sum.checked_add(c.size_bytes?)).filter(|_| is_table_known);
    let member = folder.library.and_then(|id| container.member(id)).map(|m| m.name().to_owned());
    problems.extend(damage.into_iter().map(|mut p| {
        p.place.member = p.place.member.or_else(|| member.clone());
        p
    }));
    judge_pickled(container, folder, &interface.constants, problems);
    if weights.location.is_some() {
        weights.member = member;
    }
    weights.totals = totals(&stored);
    if asked == Some(0) {
        // one byte stands in for a blob without content
        weights.location = Some(WeightsLocation::None);
        (weights.size_bytes, weights.expected_bytes) = (Some(0), Some(0));
        weights.evidence.push(said_by(interface, "no constant has bytes in the file"));
        return weights;
    }
    if matches!(weights.location, None | Some(WeightsLocation::Blob)) {
        outside(&mut weights, container, folder, interface);
    }
    weights.expected_bytes = asked.or(weights.expected_bytes);
    if let Some(offset) = weights.offset.filter(|_| weights.size_bytes == asked && asked.is_some()) {
        place_bytes(&mut interface.constants, offset);
    }
    weights
}

/// Sizes that no getter gives (up to 2.7): a constant's bytes reach to the next one's, in table order; without bytes in the
/// file its storage is what sizes and strides span.
fn derive_sizes(constants: &mut [Constant], weights: &Weights) {
    let end = weights.offset.zip(weights.size_bytes).and_then(|(start, len)| start.checked_add(len));
    let mut next = end;
    for constant in constants.iter_mut().rev().filter(|c| c.folded != Some(true)) {
        let placed = constant.file_offset.zip(next).and_then(|(at, next)| next.checked_sub(at));
        if constant.size_bytes.is_none() {
            constant.size_bytes = placed.or_else(|| spanned_bytes(constant));
        }
        next = constant.file_offset;
    }
}

/// Bytes from the start of the storage to the last element.
fn spanned_bytes(constant: &Constant) -> Option<u64> {
    let (shape, stride) = (constant.shape.as_ref()?, constant.stride.as_ref()?);
    if shape.contains(&0) {
        return Some(0);
    }
    let last = shape.iter().zip(stride).try_fold(constant.storage_offset.unwrap_or(0), |at, (size, stride)| {
        at.checked_add(size.checked_sub(1)?.checked_mul(*stride)?)
    })?;
    u64::try_from(last).ok()?.checked_add(1)?.checked_mul(constant.dtype.as_ref()?.size_bytes()?)
}

fn said_by(interface: &Interface, detail: &str) -> Evidence {
    let mut evidence = Evidence::new(interface.witness.unwrap_or(Witness::Constants), detail);
    evidence.member.clone_from(&interface.member);
    evidence
}

/// The rows of `weights_config.json` against the package's files and the library's table: what a loader in Python would
/// fill the constants from.
fn judge_pickled(container: &Container, folder: &ModelFolder, constants: &[Constant], problems: &mut Vec<Problem>) {
    let Some(config) = folder.weights_config.and_then(|id| container.member(id)) else { return };
    let rows = match config.bytes(limits::JSON_BYTES).and_then(weights_config::read) {
        Ok(rows) => rows,
        Err(error) => {
            problems.push(claims::problem(&error, &config, "constants"));
            return;
        }
    };
    // a model folder given alone does not show the files of its package
    let has_files = config.inner_name().starts_with("data/aotinductor/");
    let files: HashMap<&str, Member<'_>> = container
        .members()
        .filter(|m| has_files && m.inner_name().starts_with("data/weights/"))
        .map(|m| (m.inner_name(), m))
        .collect();
    let table: HashMap<&str, &Constant> = constants.iter().filter_map(|c| Some((c.fqn.as_deref()?, c))).collect();
    let mut storages: HashMap<String, Option<u64>> = HashMap::new();
    let mut found = Vec::new();
    for row in &rows {
        let constant = table.get(row.fqn.as_str()).copied();
        let said = constant.and_then(|c| c.shape.as_ref());
        if let Some(shape) = said.filter(|shape| **shape != row.shape) {
            let message = format!("gives {:?} the sizes {:?}, the library {shape:?}", row.fqn, row.shape);
            found.push(claims::problem(&Error::damaged(message), &config, "constants"));
        }
        let Some(name) = row.member() else {
            let message = format!("the file {:?} of {:?} is not below data/weights", row.file, row.fqn);
            found.push(claims::problem(&Error::damaged(message), &config, "constants"));
            continue;
        };
        if !has_files {
            continue;
        }
        let Some(file) = files.get(name.as_str()) else {
            let message = format!("the package has no {name}, where the bytes of {:?} are", row.fqn);
            found.push(claims::problem(&Error::damaged(message), &config, "constants"));
            continue;
        };
        // tied weights share a file: it is opened, and its damage told, once
        let storage = *storages.entry(name).or_insert_with(|| match file.region().and_then(saved::storage_bytes) {
            Ok(len) => Some(len),
            Err(error) => {
                found.push(claims::problem(&error, file, "constants"));
                None
            }
        });
        if let Some(Err(error)) = storage.map(|len| fits(row, constant, len)) {
            found.push(claims::problem(&error, file, "constants"));
        }
    }
    if found.len() > limits::LISTED_PROBLEMS {
        let message = format!("{} more rows are damaged", found.len().saturating_sub(limits::LISTED_PROBLEMS));
        found.truncate(limits::LISTED_PROBLEMS);
        found.push(claims::problem(&Error::damaged(message), &config, "constants"));
    }
    problems.append(&mut found);
}

/// A storage of `len` bytes holds every element of the row.
fn fits(row: &PickledWeight, constant: Option<&Constant>, len: u64) -> Result<()> {
    let Some(elements) = row.reached_elements() else {
        let PickledWeight { fqn, shape, stride, storage_offset, .. } = row;
        let message = format!("{fqn:?} has sizes {shape:?}, strides {stride:?} and offset {storage_offset}: no tensor");
        return Err(Error::damaged(message));
    };
    // without a known type an element has a byte at least
    let element = constant.and_then(|c| c.dtype.as_ref()?.size_bytes()).unwrap_or(1);
    match elements.checked_mul(element) {
        Some(needed) if needed <= len => Ok(()),
        needed => {
            let needed = needed.map_or_else(|| "more than 2^64".to_owned(), |n| n.to_string());
            Err(Error::damaged(format!("{:?} reaches to byte {needed} of a storage of {len} bytes", row.fqn)))
        }
    }
}

/// Not in the library: a blob, pickled files, in a source package what is linked in at load, or nowhere.
fn outside(weights: &mut Weights, container: &Container, folder: &ModelFolder, interface: &Interface) {
    let member = |id: &MemberId| container.member(*id);
    // the official loader maps the last one
    if let Some(blob) = folder.blobs.iter().rev().find_map(member) {
        weights.location = Some(WeightsLocation::Blob);
        weights.member = Some(blob.name().to_owned());
        weights.offset = Some(0);
        weights.size_bytes = Some(blob.size_bytes());
        weights.evidence.push(Evidence::new(Witness::Archive, "weights in a file of their own").in_member(blob.name()));
        return;
    }
    if weights.location == Some(WeightsLocation::Blob) {
        // wanted by the library, and not there
        weights.size_bytes = Some(0);
        return;
    }
    if let Some(config) = folder.weights_config.as_ref().and_then(member) {
        let pickled = container.members().filter(|m| m.inner_name().starts_with("data/weights/"));
        let detail = format!("weights_config.json, and {} files below data/weights", pickled.count());
        weights.location = Some(WeightsLocation::Pickled);
        weights.member = Some(config.name().to_owned());
        weights.size_bytes = None;
        weights.evidence.push(Evidence::new(Witness::Archive, detail).in_member(config.name()));
        return;
    }
    let linked = folder.serialized_weights.iter().chain(&folder.objects).find_map(member);
    if let Some(object) = linked.filter(|_| folder.library.is_none()) {
        let is_appended = folder.serialized_weights.is_some();
        weights.location = Some(if is_appended { WeightsLocation::Appended } else { WeightsLocation::Library });
        weights.member = Some(object.name().to_owned());
        let detail = "becomes part of the library when it is compiled at load";
        weights.evidence.push(Evidence::new(Witness::Archive, detail).in_member(object.name()));
        return;
    }
    let is_empty_area = weights.size_bytes == Some(0);
    if interface.include_weights == Some(false) || is_empty_area {
        weights.location = Some(WeightsLocation::Absent);
        let detail = if is_empty_area { "the library has room for none" } else { "include_weights is false" };
        weights.evidence.push(said_by(interface, &format!("{detail}: the caller loads them")));
    } else {
        weights.location = interface.weights;
    }
}

/// File offsets of the constants: one after the other, folded ones left out (format reference, 4.6).
fn place_bytes(constants: &mut [Constant], start: u64) {
    let mut position = Some(start);
    for constant in constants.iter_mut().filter(|c| c.folded != Some(true)) {
        constant.file_offset = position;
        position = position.zip(constant.size_bytes).and_then(|(at, len)| at.checked_add(len));
    }
}

fn totals(stored: &[&Constant]) -> Vec<WeightsTotal> {
    let mut totals: Vec<WeightsTotal> = Vec::new();
    for constant in stored {
        let same = |t: &&mut WeightsTotal| t.device == constant.device && t.dtype == constant.dtype;
        let size = constant.size_bytes.unwrap_or(0);
        match totals.iter_mut().find(same) {
            Some(total) => {
                total.count = total.count.saturating_add(1);
                total.size_bytes = total.size_bytes.saturating_add(size);
            }
            None => totals.push(WeightsTotal {
                device: constant.device.clone(),
                dtype: constant.dtype.clone(),
                count: 1,
                size_bytes: size,
            }),
        }
    }
    totals
}
