//! Where a library keeps its weights (format reference 4.5 to 4.8). Their bytes are never read; of appended
//! ones the two magic numbers are.

use super::{Image, problem};
use crate::model::{Evidence, Problem, Weights, WeightsLocation, Witness};

const START: &str = "_binary_constants_bin_start";
const END: &str = "_binary_constants_bin_end";
/// Offset that the runtime demands of appended weights (aoti_runtime/model.h, 2.4 and newer).
const APPENDED_ALIGNMENT: u64 = 16_384;
/// Text of the runtime that is only compiled in with an external blob (aoti_runtime/model.h, 2.10 and newer).
const EXTERNAL_TEXT: &[u8] = b"Constants are not mmap'd. Use AOTInductorModelUpdateConstantsBlob";
/// Text of the runtime that is only compiled in with appended weights (the typing error was corrected in 2.8).
const APPENDED_TEXTS: [&[u8]; 2] = [b"Weights data seems corrupt", b"Weigths data seems corrupt"];

/// What the library says about its weights. `location` is `None` when the symbols that bound them are not
/// visible (stripped Windows libraries) and [`WeightsLocation::Absent`] or [`WeightsLocation::None`] cannot be told
/// apart here: `Absent` is returned only by those who know the constants, so an empty area gives `size_bytes`
/// 0 and no location. Damage is in the second list.
pub fn weights(image: &Image<'_>) -> (Weights, Vec<Problem>) {
    let mut weights = Weights::default();
    let mut problems = Vec::new();
    let Some((start, end)) = bounds(image) else { return (weights, problems) };
    let says = |detail: String| Evidence::new(Witness::Header, detail);
    match end.checked_sub(start) {
        None => problems.push(problem("symbols", None, format!("{END} lies before {START}"))),
        Some(0 | 1) => {
            weights.size_bytes = Some(0);
            weights.evidence.push(says(format!("nothing between {START} and {END}")));
        }
        Some(8) if super::dating::has_text(image, EXTERNAL_TEXT) => {
            weights.location = Some(WeightsLocation::Blob);
            weights.expected_bytes = word(image, start);
            weights.evidence.push(says("8 bytes between the symbols: the size of the blob".into()));
        }
        Some(16) if APPENDED_TEXTS.iter().any(|text| super::dating::has_text(image, text)) => {
            appended(image, start, &mut weights, &mut problems);
        }
        Some(size) => embedded(image, start, size, &mut weights, &mut problems),
    }
    (weights, problems)
}

/// The largest power of two up to 64 KiB that the file offset of appended weights is a multiple of: hosts with
/// larger pages cannot map them. `None` without appended weights.
pub fn appended_alignment(image: &Image<'_>) -> Option<u64> {
    let (weights, _) = weights(image);
    let offset = weights.offset.filter(|_| weights.location == Some(WeightsLocation::Appended))?;
    Some(1u64.checked_shl(offset.trailing_zeros()).unwrap_or(1 << 16).min(1 << 16))
}

/// Address range of the weights, by symbol.
pub fn bounds(image: &Image<'_>) -> Option<(u64, u64)> {
    let find = |name: &str| {
        let exported = image.export(name).map(|s| s.address);
        exported.or_else(|| image.symbols().ok()?.iter().find(|s| s.name == name).map(|s| s.address))
    };
    Some((find(START)?, find(END)?))
}

fn word(image: &Image<'_>, address: u64) -> Option<u64> {
    Some(u64::from_le_bytes(image.read(address, 8)?.try_into().ok()?))
}

fn embedded(image: &Image<'_>, start: u64, size: u64, weights: &mut Weights, problems: &mut Vec<Problem>) {
    weights.location = Some(WeightsLocation::Library);
    weights.size_bytes = Some(size);
    let holds = |s: &&super::Section<'_>| start.checked_sub(s.address).is_some_and(|d| d < s.size) && s.address != 0;
    let section = image.sections().iter().find(holds);
    weights.section = section.map(|s| s.name.to_owned());
    weights.offset = image.file_offset(start);
    weights.evidence.push(Evidence::new(Witness::Header, format!("{size} bytes between {START} and {END}")));
    let there = weights.offset.map_or(0, |o| image.region().len().saturating_sub(o));
    // a range that merely runs over the end is a cut file: `bytes_from` shows how much is mapped
    let mapped = image.bytes_from(start, size).map_or(0, |b| b.len() as u64);
    if there < size || mapped < size {
        let mut damage =
            problem("weights", weights.offset, format!("{} of {size} bytes are in the file", there.min(mapped)));
        damage.affects.push("weights".into());
        problems.push(damage);
        weights.size_bytes = Some(there.min(mapped));
        weights.expected_bytes = Some(size);
    }
}

/// Two words stand at the symbol: the length with its trailing magic number, and that number. The weights end
/// with the file, and the number is its last word.
fn appended(image: &Image<'_>, start: u64, weights: &mut Weights, problems: &mut Vec<Problem>) {
    weights.location = Some(WeightsLocation::Appended);
    let mut damage = |offset: Option<u64>, message: String| {
        let mut damage = problem("appended weights", offset, message);
        damage.affects.push("weights".into());
        problems.push(damage);
    };
    let (Some(len), Some(magic)) = (word(image, start), start.checked_add(8).and_then(|a| word(image, a))) else {
        damage(None, "the words that describe them are not in the file".into());
        return;
    };
    weights.expected_bytes = len.checked_sub(8);
    weights.evidence.push(Evidence::new(Witness::Header, format!("16 bytes at {START}: {len} bytes are appended")));
    let file = image.region().len();
    let Some(offset) = file.checked_sub(len) else {
        damage(Some(0), format!("{len} bytes should be appended, the whole file has {file}"));
        weights.size_bytes = Some(0);
        return;
    };
    let last = file.checked_sub(8).and_then(|at| image.region().get(at, 8)?.try_into().ok()).map(u64::from_le_bytes);
    if last != Some(magic) {
        damage(
            Some(offset),
            "the file does not end with their magic number: it is cut off or something was added".into(),
        );
        return;
    }
    if offset % APPENDED_ALIGNMENT != 0 {
        damage(
            Some(offset),
            format!("begin at an offset that is no multiple of {APPENDED_ALIGNMENT}: the runtime refuses them"),
        );
    }
    weights.offset = Some(offset);
    weights.size_bytes = len.checked_sub(8);
}
