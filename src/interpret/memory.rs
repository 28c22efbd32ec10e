//! Sparse memory: pages that come from the file when first touched, shadows beside the bytes, and a log to undo writes.
//!
//! A page that is only read is a view of the file. Reads of what was never mapped give zeros.

mod shadows;
mod undo;

use super::address_map::AddressMap;
use super::value::{Expressions, Shadow, Value};
use crate::limits;
use crate::source::Region;
use undo::Undo;

const PAGE: usize = 4096;
/// Bits of an address within its page.
const OFFSET: u64 = PAGE as u64 - 1;
/// Direct-mapped table of the pages used last.
const RECENT: usize = 64;

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
}
