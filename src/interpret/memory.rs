//! Sparse memory: pages that come from the file when first touched, shadows beside the bytes, and a log to undo writes.
//!
//! A page that is only read is a view of the file. Reads of what was never mapped give zeros.

use super::address_map::AddressMap;
use super::layout;
use super::tensors;
use super::value::{Expressions, Origin, Shadow, Value};
use crate::limits;
use crate::source::Region;

const PAGE: usize = 4096;
/// Bits of an address within its page.
const OFFSET: u64 = PAGE as u64 - 1;
/// Direct-mapped table of the pages used last.
const RECENT: usize = 64;
/// Room for the log of writes from the first on; wide models need more.
const LOG_ENTRIES: usize = 16_384;

/// A part of the file that is visible at an address.
#[derive(Debug, Clone, Copy)]
pub struct Mapping<'a> {
    /// first address
    pub address: u64,
    /// bytes in memory; what the file does not fill is zero
    pub memory_size: u64,
    /// bytes of the file
    pub bytes: Region<'a>,
    /// code: may be executed, may not be written
    pub is_executable: bool,
}

/// A write that a process would not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// into code
    Code(u64),
    /// through a null pointer
    Null(u64),
}

enum Bytes<'a> {
    View(&'a [u8; PAGE]),
    Own(Box<[u8; PAGE]>),
}

struct Page<'a> {
    bytes: Bytes<'a>,
    /// one bit for each eight bytes that a shadow touches
    shadowed: [u64; 8],
    /// some bit of `shadowed` was ever set
    has_shadows: bool,
    is_code: bool,
}

impl Page<'_> {
    #[inline]
    fn bytes(&self) -> &[u8; PAGE] {
        match &self.bytes {
            Bytes::View(bytes) => bytes,
            Bytes::Own(bytes) => bytes,
        }
    }
    #[inline]
    fn is_shadowed(&self, offset: usize, len: usize) -> bool {
        if !self.has_shadows {
            return false;
        }
        let is_marked = |granule: usize| self.shadowed.get(granule / 64).is_some_and(|w| w >> (granule % 64) & 1 != 0);
        let (first, last) = (offset / 8, (offset + len.max(1) - 1) / 8);
        is_marked(first) || first != last && (first + 1..last + 1).any(is_marked)
    }
}

enum Undo {
    /// up to eight bytes that were there
    Word { address: u64, len: u8, old: u64 },
    /// more bytes
    Block { address: u64, old: Box<[u8]> },
    /// the shadow that was there, if any
    Shadow { address: u64, old: Option<(u8, Shadow)> },
}

/// The memory of the closed machine.
pub struct Memory<'a> {
    mappings: Vec<Mapping<'a>>,
    pages: Vec<Page<'a>>,
    index: AddressMap<u64, u32>,
    recent: [(u64, u32); RECENT],
    shadows: AddressMap<u64, (u8, Shadow)>,
    log: Vec<Undo>,
    log_blocks: usize,
    is_logging: bool,
    /// first write that a process would not survive; the run ends for it
    pub fault: Option<Fault>,
    /// writes into code are still relocations
    pub is_loading: bool,
    /// the cap on pages was reached; further writes are lost and the run ends
    pub is_full: bool,
}

impl<'a> Memory<'a> {
    /// An empty memory.
    pub fn new() -> Self {
        Self {
            mappings: Vec::new(),
            pages: Vec::new(),
            index: AddressMap::default(),
            recent: [(u64::MAX, 0); RECENT],
            shadows: AddressMap::default(),
            log: Vec::new(),
            log_blocks: 0,
            is_logging: false,
            fault: None,
            is_loading: false,
            is_full: false,
        }
    }

    /// Makes a part of the file visible; pages that exist already keep their content.
    pub fn map(&mut self, mapping: Mapping<'a>) {
        self.mappings.push(mapping);
    }
    /// True inside code.
    pub fn is_executable(&self, address: u64) -> bool {
        self.mappings
            .iter()
            .any(|m| m.is_executable && address.checked_sub(m.address).is_some_and(|d| d < m.memory_size))
    }
    fn load_page(&self, number: u64) -> Page<'a> {
        let start = number.wrapping_mul(PAGE as u64);
        let mut own: Option<Box<[u8; PAGE]>> = None;
        let mut is_code = false;
        for mapping in &self.mappings {
            let end = mapping.address.saturating_add(mapping.bytes.len());
            let (low, high) = (start.max(mapping.address), start.saturating_add(PAGE as u64).min(end));
            is_code |= mapping.is_executable
                && start < mapping.address.saturating_add(mapping.memory_size)
                && mapping.address < start.saturating_add(PAGE as u64);
            if low >= high {
                continue;
            }
            let Some(bytes) = mapping.bytes.get(low - mapping.address, high - low) else { continue };
            if own.is_none()
                && let Ok(view) = <&[u8; PAGE]>::try_from(bytes)
            {
                return Page { bytes: Bytes::View(view), shadowed: [0; 8], has_shadows: false, is_code };
            }
            let page = own.get_or_insert_with(|| Box::new([0; PAGE]));
            let at = usize::try_from(low - start).unwrap_or(0);
            if let Some(part) = page.get_mut(at..at + bytes.len()) {
                part.copy_from_slice(bytes);
            }
        }
        let bytes = own.map_or(Bytes::View(&ZEROS), Bytes::Own);
        Page { bytes, shadowed: [0; 8], has_shadows: false, is_code }
    }

    #[inline]
    fn page_index(&mut self, address: u64) -> usize {
        let number = address / PAGE as u64;
        match self.recent.get(number as usize % RECENT) {
            Some((n, index)) if *n == number => *index as usize,
            _ => self.find_page(number),
        }
    }

    #[cold]
    fn find_page(&mut self, number: u64) -> usize {
        let index = match self.index.get(&number) {
            Some(index) => *index,
            None => {
                if self.pages.len() >= limits::INTERPRETED_PAGES {
                    self.is_full = true;
                    return usize::MAX;
                }
                let page = self.load_page(number);
                let index = u32::try_from(self.pages.len()).unwrap_or(0);
                self.pages.push(page);
                self.index.insert(number, index);
                index
            }
        };
        if let Some(entry) = self.recent.get_mut(number as usize % RECENT) {
            *entry = (number, index);
        }
        index as usize
    }

    #[inline]
    fn page(&mut self, address: u64) -> Option<&Page<'a>> {
        let index = self.page_index(address);
        self.pages.get(index)
    }

    #[inline]
    fn page_to_write(&mut self, address: u64) -> Option<&mut Page<'a>> {
        let index = self.page_index(address);
        let page = self.pages.get_mut(index)?;
        if page.is_code && !self.is_loading {
            self.fault.get_or_insert(Fault::Code(address));
            return None;
        }
        if let Bytes::View(view) = page.bytes {
            // no page is mapped there
            if address < PAGE as u64 {
                self.fault.get_or_insert(Fault::Null(address));
                return None;
            }
            page.bytes = Bytes::Own(Box::new(*view));
        }
        Some(page)
    }

    /// `len` bytes (at most 8) as a little-endian number, without looking at shadows.
    #[inline]
    pub fn read(&mut self, address: u64, len: usize) -> u64 {
        let offset = (address & OFFSET) as usize;
        let mut word = [0u8; 8];
        if offset + 8 <= PAGE {
            if let Some(bytes) = self.page(address).and_then(|p| p.bytes().get(offset..offset + 8)) {
                word.copy_from_slice(bytes);
            }
        } else {
            self.read_bytes(address, word.get_mut(..len.min(8)).unwrap_or_default());
        }
        u64::from_le_bytes(word) & mask(len)
    }

    /// Fills `into` from an address on.
    pub fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        let mut address = address;
        let mut rest = into;
        while !rest.is_empty() {
            let offset = (address & OFFSET) as usize;
            let step = rest.len().min(PAGE - offset);
            let (now, later) = rest.split_at_mut(step);
            if let Some(bytes) = self.page(address).and_then(|p| p.bytes().get(offset..offset + step)) {
                now.copy_from_slice(bytes);
            }
            address = address.wrapping_add(step as u64);
            rest = later;
        }
    }

    /// The bytes from an address to the end of its page; across the border, by way of `window`, where that is shorter.
    pub fn code<'b>(&'b mut self, address: u64, window: &'b mut [u8]) -> &'b [u8] {
        let offset = (address & OFFSET) as usize;
        if PAGE - offset < window.len() {
            self.read_bytes(address, window);
            return window;
        }
        match self.page(address).and_then(|p| p.bytes().get(offset..)) {
            Some(bytes) => bytes,
            None => window,
        }
    }

    /// The value of `len` bytes (at most 8): where a shadow covers them, its value under the current assignment.
    #[inline]
    pub fn load(&mut self, expressions: &mut Expressions, address: u64, len: usize) -> Value {
        let offset = (address & OFFSET) as usize;
        let index = self.page_index(address);
        let Some(page) = self.pages.get(index) else { return Value::ZERO };
        let is_shadowed = page.is_shadowed(offset, len.min(PAGE - offset));
        match page.bytes().get(offset..).and_then(<[u8]>::first_chunk) {
            Some(word) if !is_shadowed => Value::new(u64::from_le_bytes(*word) & mask(len)),
            _ => self.load_slowly(expressions, address, len, is_shadowed),
        }
    }
    /// Where a shadow may be, or the border of a page.
    #[inline(never)]
    fn load_slowly(&mut self, expressions: &mut Expressions, address: u64, len: usize, is_shadowed: bool) -> Value {
        let shadow = if is_shadowed { self.shadow_at(expressions, address, len) } else { None };
        match shadow {
            Some(shadow) => Value { bits: expressions.eval(shadow) as u64 & mask(len), shadow: Some(shadow) },
            None => Value::new(self.read(address, len)),
        }
    }
    fn shadow_at(&mut self, expressions: &mut Expressions, address: u64, len: usize) -> Option<Shadow> {
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

    /// Writes the low `len` bytes (at most 8) of a value and its shadow.
    #[inline]
    pub fn store(&mut self, address: u64, len: usize, value: Value) {
        self.write(address, len, value.bits);
        if let Some(shadow) = value.shadow {
            self.set_shadow(address, len, shadow);
        }
    }

    /// Writes the low `len` bytes (at most 8) of a number; shadows there go.
    #[inline]
    pub fn write(&mut self, address: u64, len: usize, bits: u64) {
        let offset = (address & OFFSET) as usize;
        if offset + 8 > PAGE {
            self.write_bytes(address, bits.to_le_bytes().get(..len).unwrap_or_default());
            return;
        }
        let is_logging = self.is_logging;
        let Some(page) = self.page_to_write(address) else { return };
        let is_shadowed = page.is_shadowed(offset, len);
        let Bytes::Own(bytes) = &mut page.bytes else { return };
        // whole words, because copies of a fixed size need no call
        let Some(place) = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut) else { return };
        let old = u64::from_le_bytes(*place);
        let changed = mask(len);
        *place = (old & !changed | bits & changed).to_le_bytes();
        if is_logging {
            self.note(Undo::Word { address, len: len as u8, old });
        }
        if is_shadowed {
            self.clear_shadows(address, len);
        }
    }

    #[inline]
    fn note(&mut self, undo: Undo) {
        self.log.push(undo);
        // the write is done and can be undone, the run ends after it
        self.is_full |= self.log.len() > limits::UNDO_ENTRIES;
    }

    /// Writes bytes; shadows there go.
    pub fn write_bytes(&mut self, address: u64, new: &[u8]) {
        let mut address = address;
        let mut rest = new;
        while !rest.is_empty() {
            let offset = (address & OFFSET) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE - offset));
            let is_logging = self.is_logging;
            let mut old = None;
            let mut is_shadowed = false;
            if let Some(page) = self.page_to_write(address) {
                is_shadowed = page.is_shadowed(offset, now.len());
                if let Bytes::Own(bytes) = &mut page.bytes
                    && let Some(place) = bytes.get_mut(offset..offset + now.len())
                {
                    if is_logging {
                        old = Some(Box::<[u8]>::from(&*place));
                    }
                    place.copy_from_slice(now);
                }
            }
            if let Some(old) = old {
                self.log_blocks = self.log_blocks.saturating_add(old.len());
                self.note(Undo::Block { address, old });
            }
            if is_shadowed {
                self.clear_shadows(address, now.len());
            }
            address = address.wrapping_add(now.len() as u64);
            rest = later;
        }
    }

    fn mark(&mut self, address: u64, len: usize) {
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

    fn set_shadow(&mut self, address: u64, len: usize, shadow: Shadow) {
        self.mark(address, len);
        let old = self.shadows.insert(address, (len as u8, shadow));
        if self.is_logging {
            self.note(Undo::Shadow { address, old });
        }
    }

    fn clear_shadows(&mut self, address: u64, len: usize) {
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

    /// Sets `len` bytes.
    pub fn fill(&mut self, address: u64, byte: u8, len: usize) {
        let chunk = [byte; 256];
        let mut done = 0;
        while done < len {
            let step = (len - done).min(chunk.len());
            self.write_bytes(address.wrapping_add(done as u64), chunk.get(..step).unwrap_or_default());
            done += step;
        }
    }

    /// The text at an address up to its NUL, at most `cap` bytes of it.
    pub fn cstr(&mut self, address: u64, cap: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let mut address = address;
        while text.len() < cap {
            let offset = (address & OFFSET) as usize;
            let Some(bytes) = self.page(address).and_then(|p| p.bytes().get(offset..)) else { break };
            let end = memchr::memchr(0, bytes);
            text.extend_from_slice(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
            if end.is_some() {
                break;
            }
            address = address.wrapping_add(bytes.len() as u64);
        }
        text.truncate(cap);
        text
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

impl Default for Memory<'_> {
    fn default() -> Self {
        Self::new()
    }
}

static ZEROS: [u8; PAGE] = [0; PAGE];

/// The low `len` bytes.
#[inline]
pub const fn mask(len: usize) -> u64 {
    if len >= 8 { u64::MAX } else { (1u64 << (8 * len)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn copies_carry_shadows() {
        let mut expressions = Expressions::new();
        let mut memory = Memory::new();
        let size = expressions.symbol(Origin::FileSize, 13);
        memory.store(0x2008, 8, Value { bits: 13, shadow: Some(size) });
        memory.copy(&mut expressions, 0x9ff8, 0x2000, 24);
        assert_eq!(memory.load(&mut expressions, 0xa000, 8).shadow, Some(size));
    }

    #[test]
    fn nothing_is_written_through_a_null_pointer() {
        let mut memory = Memory::new();
        for _ in 0..2 {
            memory.fault = None;
            memory.write(0xfff, 1, 7);
            assert_eq!((memory.fault, memory.read(0xfff, 1)), (Some(Fault::Null(0xfff)), 0));
        }
        memory.fault = None;
        memory.write(0x1000, 1, 7);
        assert_eq!((memory.fault, memory.read(0x1000, 1)), (None, 7));
    }

    #[test]
    fn pages_have_a_border() {
        let mut memory = Memory::new();
        let touch = |memory: &mut Memory<'_>, page: usize| memory.read((page * PAGE) as u64, 8);
        (0..limits::INTERPRETED_PAGES).for_each(|page| assert_eq!(touch(&mut memory, page), 0));
        assert!(!memory.is_full);
        touch(&mut memory, limits::INTERPRETED_PAGES);
        assert!(memory.is_full);
        // pages that are there stay usable
        memory.write(0x1010, 8, 7);
        assert_eq!(memory.read(0x1010, 8), 7);
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
