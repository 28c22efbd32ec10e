//! Finds hundreds of literals in one pass that looks at every fourth place.
//!
//! An automaton walks from byte to byte, each step waiting for the one before; a log of 100 MB then costs much more
//! than a `grep -F` of it. Of each literal a window of [`WINDOW`] bytes decides: whichever way it lies in the log, one
//! of its three-byte blocks begins at a multiple of [`STRIDE`]. Only these blocks are looked up, independently of each
//! other.

/// Bytes of each literal that decide; no literal is shorter.
pub(super) const WINDOW: usize = 6;
const BLOCK: usize = 3;
/// Distance of the places looked at.
const STRIDE: usize = WINDOW - BLOCK + 1;
/// Entries of the table of blocks: small enough for the first cache.
const TABLE_BITS: u32 = 15;

/// A literal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// which literal, in the order given
    pub(super) literal: usize,
    /// where it begins
    pub(super) start: usize,
    /// where it ends
    pub(super) end: usize,
}

/// The tables for a list of literals.
#[derive(Debug)]
pub(super) struct Search {
    literals: Vec<&'static str>,
    /// blocks that are part of a window
    known: Vec<bool>,
    /// first entry of each block in `blocks`, for those that are known
    first: Vec<u16>,
    /// sorted by slot
    blocks: Vec<Block>,
}

/// A block of a literal's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    slot: u16,
    /// the block and the byte behind it, where the literal has one
    four: u32,
    /// which bytes of `four` count
    mask: u32,
    literal: usize,
    /// where the block stands in the literal
    at: usize,
}

/// Which entry the block at the start of four bytes has.
fn slot([a, b, c, _]: [u8; STRIDE]) -> u16 {
    let hash = u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS);
    // TABLE_BITS is below 16
    hash as u16
}

/// Small letters and blanks are common in every log; a window with few of them is met rarely.
fn commonness(window: &[u8]) -> usize {
    window.iter().filter(|b| b.is_ascii_lowercase() || **b == b' ').count()
}

impl Search {
    /// Literals shorter than [`WINDOW`] are never found.
    pub(super) fn new(literals: Vec<&'static str>) -> Self {
        let mut known = vec![false; 1 << TABLE_BITS];
        let mut blocks = Vec::new();
        for (number, literal) in literals.iter().enumerate() {
            let windows = literal.as_bytes().windows(WINDOW).enumerate();
            let Some((at, window)) = windows.min_by_key(|(_, w)| commonness(w)) else { continue };
            for (offset, block) in window.windows(BLOCK).enumerate() {
                let &[a, b, c] = block else { continue };
                let at = at.saturating_add(offset);
                let behind = literal.as_bytes().get(at.saturating_add(BLOCK)).copied();
                let slot = slot([a, b, c, 0]);
                if let Some(known) = known.get_mut(usize::from(slot)) {
                    *known = true;
                }
                let mask = if behind.is_some() { u32::MAX } else { 0x00FF_FFFF };
                let four = u32::from_le_bytes([a, b, c, behind.unwrap_or(0)]);
                blocks.push(Block { slot, four, mask, literal: number, at });
            }
        }
        blocks.sort_unstable();
        let mut first = vec![u16::MAX; 1 << TABLE_BITS];
        for (number, block) in blocks.iter().enumerate().rev() {
            if let (Some(first), Ok(number)) = (first.get_mut(usize::from(block.slot)), u16::try_from(number)) {
                *first = number;
            }
        }
        Self { literals, known, first, blocks }
    }

    /// How many literals there are.
    pub(super) fn len(&self) -> usize {
        self.literals.len()
    }

    /// Calls `visit` for every occurrence; within some bytes not always from left to right.
    /// `visit` gives the place before which nothing more is wanted.
    pub(super) fn each(&self, bytes: &[u8], mut visit: impl FnMut(Found) -> usize) {
        let mut wanted = 0usize;
        let mut place = 0usize;
        while let Some(four) = bytes.get(place..).and_then(|rest| rest.first_chunk::<STRIDE>()) {
            let slot = slot(*four);
            if self.known.get(usize::from(slot)) == Some(&true) {
                wanted = self.verify(bytes, place, (slot, *four), wanted, &mut visit);
            }
            // what begins in front of `wanted` is not wanted, wherever its blocks lie
            place = place.saturating_add(STRIDE).max(wanted / STRIDE * STRIDE);
        }
        if let Some(&[a, b, c]) = bytes.get(place..) {
            let four = [a, b, c, 0];
            self.verify(bytes, place, (slot(four), four), wanted, &mut visit);
        }
    }

    fn verify(
        &self,
        bytes: &[u8],
        place: usize,
        (slot, four): (u16, [u8; STRIDE]),
        mut wanted: usize,
        visit: &mut impl FnMut(Found) -> usize,
    ) -> usize {
        let four = u32::from_le_bytes(four);
        let first = self.first.get(usize::from(slot)).copied().map_or(usize::MAX, usize::from);
        let entries = self.blocks.get(first..).unwrap_or_default();
        for block in entries.iter().take_while(|b| b.slot == slot) {
            if four & block.mask != block.four {
                continue;
            }
            let Some(text) = self.literals.get(block.literal) else { continue };
            let Some(start) = place.checked_sub(block.at) else { continue };
            let end = start.saturating_add(text.len());
            if start >= wanted && bytes.get(start..end) == Some(text.as_bytes()) {
                wanted = wanted.max(visit(Found { literal: block.literal, start, end }));
            }
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITERALS: &[&str] = &["SIGILL", "Error: ", "vector size to be ", "unmatched dim", "abcabcabc", "bcabca"];

    fn found(text: &[u8]) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        Search::new(LITERALS.to_vec()).each(text, |f| {
            all.push((f.literal, f.start));
            0
        });
        all.sort_unstable();
        all
    }

    proptest::proptest! {
        #[test]
        fn finds_what_a_plain_search_finds(text in "[abcSIGL]{0,12}(SIGILL|Error: |abc|abcabcabc|unmatched dim){0,4}[abc ]{0,9}") {
            let mut plain = Vec::new();
            for (number, literal) in LITERALS.iter().enumerate() {
                let starts = (0..text.len()).filter(|at| text[*at..].starts_with(literal));
                plain.extend(starts.map(|at| (number, at)));
            }
            proptest::prop_assert_eq!(found(text.as_bytes()), plain);
        }
    }

    #[test]
    fn what_is_not_wanted_is_skipped() {
        let mut all = Vec::new();
        Search::new(LITERALS.to_vec()).each(b"Error: a Error: b\nError: c", |f| {
            all.push(f.start);
            18
        });
        assert_eq!(all, [0, 18]);
    }
}
