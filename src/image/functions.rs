//! Where functions begin and end: by symbols, and in stripped libraries by the tables for unwinding.

use super::{Format, Image, Reader, SectionKind, SymbolKind};
use crate::error::Result;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One function's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// address of its first instruction
    pub start: u64,
    /// address behind its last byte
    pub end: u64,
    /// its symbol; `None` in stripped libraries
    pub name: Option<Cow<'a, str>>,
}

/// All functions by rising address, without overlap. A function of unknown size ends at the next one or with its
/// section. Empty when neither symbols nor unwind tables are left.
///
/// # Errors
/// [`crate::error::ErrorKind::Limit`] for more rows of an unwind table than [`crate::limits::SYMBOLS`].
pub fn functions<'a>(image: &Image<'a>) -> Result<Vec<Function<'a>>> {
    let mut starts: BTreeMap<u64, (u64, Option<Cow<'a, str>>)> = BTreeMap::new();
    let symbols = image.symbols().unwrap_or_default().iter().chain(image.exports().unwrap_or_default());
    let code = code_ranges(image);
    let range_of = |address: u64| {
        let index = code.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        code.get(index).filter(|(_, end)| address < *end)
    };
    let is_code = |address: u64| range_of(address).is_some();
    for symbol in symbols {
        let is_function = match symbol.kind {
            SymbolKind::Function | SymbolKind::IndirectFunction => true,
            // assembler labels and COFF symbols do not say; `$x` and `$d` mark code and data of AArch64 objects
            SymbolKind::Unknown => !symbol.name.starts_with(['.', '$']),
            _ => false,
        };
        if is_function && !symbol.is_absolute && is_code(symbol.address) {
            let entry = starts.entry(symbol.address).or_default();
            // elsewhere sizes are guesses, which the unwind tables correct
            if image.format() == Format::Elf {
                entry.0 = entry.0.max(symbol.size);
            }
            entry.1.get_or_insert_with(|| symbol.name.clone());
        }
    }
    let unwound = match &image.reader {
        Reader::Elf(elf) => elf.unwind_ranges()?,
        Reader::MachO(macho) => macho.function_starts()?,
        Reader::Pe(pe) => pe.runtime_functions()?,
    };
    for (start, size) in unwound {
        let inside_known = starts
            .range(..=start)
            .next_back()
            .is_some_and(|(begin, (size, _))| *begin == start || start - begin < *size);
        if is_code(start) {
            match starts.get_mut(&start) {
                Some(entry) if entry.0 == 0 => entry.0 = size,
                None if !inside_known => drop(starts.insert(start, (size, None))),
                _ => {}
            }
        }
    }
    let mut functions: Vec<Function<'a>> = Vec::with_capacity(starts.len());
    for (start, (size, name)) in starts {
        let limit = range_of(start).map_or(start, |(_, end)| *end);
        let end = if size == 0 { limit } else { start.saturating_add(size).min(limit) };
        if let Some(last) = functions.last_mut() {
            last.end = last.end.min(start);
        }
        functions.push(Function { start, end, name });
    }
    Ok(functions)
}

/// Start and end of everything that holds instructions, by address: code sections, or executable segments when
/// there is no section table (these may hold constants too).
pub fn code_ranges(image: &Image<'_>) -> Vec<(u64, u64)> {
    let sections = image.sections().iter().filter(|s| s.kind == SectionKind::Code && s.size > 0);
    let mut ranges: Vec<_> = sections.map(|s| (s.address, s.address.saturating_add(s.size))).collect();
    if ranges.is_empty() {
        let segments = image.segments().iter().filter(|s| s.is_executable);
        ranges = segments.map(|s| (s.address, s.address.saturating_add(s.file_size))).collect();
    }
    ranges.sort_unstable();
    ranges
}
