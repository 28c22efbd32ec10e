//! The log of writes, to go back to an earlier point.

use super::{Bytes, Memory, OFFSET};
use crate::interpret::value::{Shadow, Value};
use crate::limits;

/// Room for the log of writes from the first on; wide models need more.
const LOG_ENTRIES: usize = 16_384;

/// What a write replaced.
pub(super) enum Undo {
    /// up to eight bytes that were there
    Word { address: u64, len: u8, old: u64 },
    /// more bytes
    Block { address: u64, old: Box<[u8]> },
    /// the shadow that was there, if any
    Shadow { address: u64, old: Option<(u8, Shadow)> },
}

impl Memory<'_> {
    #[inline]
    pub(super) fn note(&mut self, undo: Undo) {
        self.log.push(undo);
        // the write is done and can be undone, the run ends after it
        self.is_full |= self.log.len() > limits::UNDO_ENTRIES;
    }

    /// Starts or stops the log. Stopping forgets it.
    pub fn set_logging(&mut self, on: bool) {
        self.is_logging = on;
        if on && self.log.capacity() == 0 {
            // memory that is not touched costs nothing; growing would copy
            self.log.reserve_exact(LOG_ENTRIES);
        }
        if !on {
            self.log.clear();
            self.log_blocks = 0;
        }
    }

    /// Bytes that the log holds.
    pub fn log_bytes(&self) -> usize {
        self.log.len().saturating_mul(size_of::<Undo>()).saturating_add(self.log_blocks)
    }

    /// Writes a value that stays when other writes are undone: what a tensor is does not change.
    pub fn store_for_good(&mut self, address: u64, len: usize, value: Value) {
        let paused = self.pause_log();
        self.store(address, len, value);
        self.resume_log(paused);
    }

    /// Writes from here on stay, until [`Memory::resume_log`]: for what is made once and kept by its address.
    pub fn pause_log(&mut self) -> bool {
        std::mem::replace(&mut self.is_logging, false)
    }

    /// Goes on as before [`Memory::pause_log`].
    pub fn resume_log(&mut self, was_logging: bool) {
        self.is_logging = was_logging;
    }

    /// A point to return to.
    pub fn point(&self) -> usize {
        self.log.len()
    }

    /// Undoes all writes since a point.
    pub fn undo(&mut self, point: usize) {
        let was_logging = std::mem::replace(&mut self.is_logging, false);
        while self.log.len() > point {
            match self.log.pop() {
                Some(Undo::Word { address, len, old }) => {
                    self.restore(address, old.to_le_bytes().get(..usize::from(len)).unwrap_or_default());
                }
                Some(Undo::Block { address, old }) => self.restore(address, &old),
                Some(Undo::Shadow { address, old }) => {
                    if let Some((len, shadow)) = old {
                        self.set_shadow(address, usize::from(len), shadow);
                    } else {
                        self.shadows.remove(&address);
                    }
                }
                None => break,
            }
        }
        self.is_logging = was_logging;
    }

    /// Puts bytes back without touching shadows: these have their own entries in the log.
    fn restore(&mut self, address: u64, old: &[u8]) {
        let offset = (address & OFFSET) as usize;
        if let Some(page) = self.page_to_write(address)
            && let Bytes::Own(bytes) = &mut page.bytes
            && let Some(place) = bytes.get_mut(offset..offset + old.len())
        {
            place.copy_from_slice(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::value::{Expressions, Origin};

    #[test]
    fn undo_returns_bytes_and_shadows() {
        let mut expressions = Expressions::new();
        let mut memory = Memory::new();
        let size = expressions.symbol(Origin::FileSize, 13);
        memory.store(0xffc, 8, Value { bits: 13, shadow: Some(size) });
        memory.set_logging(true);
        let point = memory.point();
        memory.write(0x1000, 4, 7);
        memory.write_bytes(0xff0, &[1; 64]);
        assert_eq!(memory.load(&mut expressions, 0xffc, 8).shadow, None);
        memory.undo(point);
        assert_eq!(memory.load(&mut expressions, 0xffc, 8), Value { bits: 13, shadow: Some(size) });
        assert_eq!(memory.read(0xff0, 8), 0);
    }

    #[test]
    fn undo_entries_of_every_form_have_a_border() {
        let mut expressions = Expressions::new();
        let size = expressions.symbol(Origin::FileSize, 1);
        let forms: [&dyn Fn(&mut Memory<'_>); 3] =
            [&|memory| memory.write(0x1000, 8, 1), &|memory| memory.write_bytes(0x1000, &[1; 9]), &|memory| {
                memory.set_shadow(0x1000, 8, size)
            }];
        for form in forms {
            let mut memory = Memory::new();
            memory.write(0x1000, 8, 0);
            memory.set_logging(true);
            memory.log.resize_with(limits::UNDO_ENTRIES - 1, || Undo::Shadow { address: 0, old: None });
            form(&mut memory);
            assert!(!memory.is_full, "{}", memory.log.len());
            form(&mut memory);
            assert!(memory.is_full, "{}", memory.log.len());
        }
    }
}
