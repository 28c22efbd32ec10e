//! What memory means in symbols, beside its bytes.

use super::undo::Undo;
use super::{Memory, OFFSET};
use crate::interpret::layout;
use crate::interpret::tensors;
use crate::interpret::value::{Expressions, Origin, Shadow};

impl Memory<'_> {
    pub(super) fn shadow_at(&mut self, expressions: &mut Expressions, address: u64, len: usize) -> Option<Shadow> {
        let known = self.shadows.get(&address).copied().filter(|s| usize::from(s.0) >= len).map(|s| s.1);
        known.or_else(|| self.promised(expressions, address))
    }

    /// Makes the words from an address on symbols when they are read: sizes and strides of a tensor of unknown rank.
    pub fn promise(&mut self, address: u64, words: usize) {
        for word in 0..words as u64 {
            self.mark(address.wrapping_add(8 * word), 8);
        }
    }

    fn promised(&mut self, expressions: &mut Expressions, address: u64) -> Option<Shadow> {
        let (slot, property) = tensors::promised_word(address)?;
        let owner = u32::try_from(self.read(slot, 8)).ok()?.checked_sub(1)?;
        Some(expressions.symbol(Origin::Tensor(owner, property), tensors::first_guess(property, 0)))
    }

    pub(super) fn mark(&mut self, address: u64, len: usize) {
        for byte in [address, address.wrapping_add(len as u64).wrapping_sub(1)] {
            let granule = (byte & OFFSET) as usize / 8;
            let index = self.page_index(byte);
            let Some(page) = self.pages.get_mut(index) else { continue };
            page.has_shadows = true;
            if let Some(word) = page.shadowed.get_mut(granule / 64) {
                *word |= 1 << (granule % 64);
            }
        }
    }

    pub(super) fn set_shadow(&mut self, address: u64, len: usize, shadow: Shadow) {
        self.mark(address, len);
        let old = self.shadows.insert(address, (len as u8, shadow));
        if self.is_logging {
            self.note(Undo::Shadow { address, old });
        }
    }

    pub(super) fn clear_shadows(&mut self, address: u64, len: usize) {
        for before in 0..7u64 {
            let start = address.wrapping_sub(7 - before);
            let reach = 7 - before;
            if self.shadows.get(&start).is_some_and(|(size, _)| u64::from(*size) > reach) {
                self.drop_shadow(start);
            }
        }
        for start in address..address.saturating_add(len as u64) {
            if self.shadows.contains_key(&start) {
                self.drop_shadow(start);
            }
        }
        // granules that lie fully inside are free of shadows now
        let end = address.saturating_add(len as u64);
        let mut granule = address.saturating_add(7) & !7;
        while let Some(next) = granule.checked_add(8).filter(|next| *next <= end) {
            let index = self.page_index(granule);
            let bit = (granule & OFFSET) as usize / 8;
            if let Some(word) = self.pages.get_mut(index).and_then(|p| p.shadowed.get_mut(bit / 64)) {
                *word &= !(1 << (bit % 64));
            }
            granule = next;
        }
    }

    fn drop_shadow(&mut self, address: u64) {
        if let Some(old) = self.shadows.remove(&address)
            && self.is_logging
        {
            self.note(Undo::Shadow { address, old: Some(old) });
        }
    }

    /// Copies bytes with the shadows that lie fully inside.
    pub fn copy(&mut self, expressions: &mut Expressions, to: u64, from: u64, len: usize) {
        if layout::TENSORS.contains(&from) {
            for word in 0..(len / 8).min(64) as u64 {
                let value = self.load(expressions, from.wrapping_add(8 * word), 8);
                self.store_for_good(from.wrapping_add(8 * word), 8, value);
            }
        }
        let mut buffer = vec![0; len];
        self.read_bytes(from, &mut buffer);
        let mut moved = Vec::new();
        if !self.shadows.is_empty() {
            let end = from.saturating_add(len as u64);
            let mut at = from;
            while at < end {
                let offset = (at & OFFSET) as usize;
                let step = (8 - offset % 8).min((end - at) as usize);
                if self.page(at).is_some_and(|p| p.is_shadowed(offset, step)) {
                    for start in at..at + step as u64 {
                        if let Some((size, shadow)) = self.shadows.get(&start).copied()
                            && start.saturating_add(u64::from(size)) <= end
                        {
                            moved.push((start - from, size, shadow));
                        }
                    }
                }
                at += step as u64;
            }
        }
        self.write_bytes(to, &buffer);
        for (offset, size, shadow) in moved {
            self.set_shadow(to.wrapping_add(offset), usize::from(size), shadow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::value::Value;

    #[test]
    fn shadows_follow_the_assignment_and_go_with_a_write() {
        let mut expressions = Expressions::new();
        let mut memory = Memory::new();
        let size = expressions.symbol(Origin::FileSize, 13);
        memory.store(0x5000, 8, Value { bits: 13, shadow: Some(size) });
        assert_eq!(memory.load(&mut expressions, 0x5000, 4).bits, 13);
        expressions.assign(size, 20);
        assert_eq!(memory.load(&mut expressions, 0x5000, 8).bits, 20);
        memory.write(0x5004, 1, 0);
        assert_eq!(memory.load(&mut expressions, 0x5000, 8).shadow, None);
    }

    #[test]
    fn copies_carry_shadows() {
        let mut expressions = Expressions::new();
        let mut memory = Memory::new();
        let size = expressions.symbol(Origin::FileSize, 13);
        memory.store(0x2008, 8, Value { bits: 13, shadow: Some(size) });
        memory.copy(&mut expressions, 0x9ff8, 0x2000, 24);
        assert_eq!(memory.load(&mut expressions, 0xa000, 8).shadow, Some(size));
    }
}
