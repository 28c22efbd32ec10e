//! Object files: segments, sections, symbols, imports, relocations and needs of ELF, Mach-O and PE libraries.
//!
//! [`Image::open`] reads the headers alone; every table is read when it is first asked for, and once.
//! Addresses are the virtual addresses of the file (for PE: preferred base plus RVA), names are those of the
//! source language (Mach-O's additional underscore is taken off).

pub mod dating;
pub mod device;
mod elf;
pub mod functions;
pub mod imports;
pub mod isa;
mod macho;
pub mod op_schemas;
mod pe;
pub mod requirements;
mod symbol;
pub mod weights;

#[cfg(test)]
pub(crate) use elf::tests as elf_tests;

pub use symbol::{
    Binding, Import, Needed, Relocation, RelocationKind, RelocationTarget, Section, SectionKind, Segment, Symbol,
    SymbolKind, SymbolVersion, ThreadLocalBlock,
};

use crate::error::{Error, ErrorKind, Result};
use crate::model::Problem;
use crate::source::Region;
use std::fmt;
use std::sync::{Mutex, OnceLock};

/// Format of an object file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Linux and other systems
    Elf,
    /// macOS
    MachO,
    /// Windows
    Pe,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Elf => "elf",
            Self::MachO => "macho",
            Self::Pe => "pe",
        })
    }
}

/// Machine that the code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86
    X86_64,
    /// 64-bit Arm
    Aarch64,
    /// IBM Z
    S390x,
    /// 64-bit Power
    Ppc64,
    /// any other machine, by the number of its format
    Other(u32),
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86_64 => f.pad("x86_64"),
            Self::Aarch64 => f.pad("aarch64"),
            Self::S390x => f.pad("s390x"),
            Self::Ppc64 => f.pad("ppc64"),
            Self::Other(number) => f.pad(&format!("machine {number}")),
        }
    }
}

/// What a reader found out while opening.
struct Header<'a> {
    format: Format,
    architecture: Architecture,
    os: &'static str,
    entry: Option<u64>,
    segments: Vec<Segment<'a>>,
    sections: Vec<Section<'a>>,
    problems: Vec<Problem>,
}

enum Reader<'a> {
    Elf(elf::Elf<'a>),
    MachO(macho::MachO<'a>),
    Pe(pe::Pe<'a>),
}

/// Dispatches to the reader of the format.
macro_rules! reader {
    ($self:ident, $inner:ident => $call:expr) => {
        match &$self.reader {
            Reader::Elf($inner) => $call,
            Reader::MachO($inner) => $call,
            Reader::Pe($inner) => $call,
        }
    };
}

/// A library (or relocatable object), opened.
pub struct Image<'a> {
    region: Region<'a>,
    header: Header<'a>,
    reader: Reader<'a>,
    problems: Mutex<Vec<Problem>>,
    exports: OnceLock<Result<Vec<Symbol<'a>>>>,
    /// numbers of the exports, sorted by their names
    export_index: OnceLock<Vec<usize>>,
    imports: OnceLock<Result<Vec<Import<'a>>>>,
    symbols: OnceLock<Result<Vec<Symbol<'a>>>>,
    relocations: OnceLock<Result<Vec<Relocation<'a>>>>,
    needed: OnceLock<Result<Needed<'a>>>,
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("format", &self.header.format)
            .field("architecture", &self.header.architecture)
            .finish_non_exhaustive()
    }
}

impl<'a> Image<'a> {
    /// Reads the headers of a library. Of a universal Mach-O file the first 64-bit slice is taken;
    /// [`slices`] lists them all.
    ///
    /// # Errors
    /// [`ErrorKind::NotAoti`] for other formats, [`ErrorKind::Unsupported`] for 32-bit files,
    /// [`ErrorKind::Damaged`] or [`ErrorKind::Limit`] when not even the headers can be read.
    pub fn open(region: Region<'a>) -> Result<Self> {
        let slices = macho::slices(region)?;
        let region = match slices.iter().find(|s| s.is_64_bit) {
            Some(slice) => slice.region,
            None if slices.is_empty() => region,
            None => return Err(Error::new(ErrorKind::Unsupported, "universal file without a 64-bit slice")),
        };
        let head = region.head(4);
        let (mut header, reader) = if head == b"\x7fELF" {
            let (header, elf) = elf::Elf::open(region)?;
            (header, Reader::Elf(elf))
        } else if macho::is_macho(head) {
            let (header, macho) = macho::MachO::open(region)?;
            (header, Reader::MachO(macho))
        } else if head.starts_with(b"MZ") {
            let (header, pe) = pe::Pe::open(region)?;
            (header, Reader::Pe(pe))
        } else {
            return Err(Error::new(ErrorKind::NotAoti, "neither an ELF, Mach-O nor PE file"));
        };
        let problems = Mutex::new(std::mem::take(&mut header.problems));
        Ok(Self {
            region,
            header,
            reader,
            problems,
            exports: OnceLock::new(),
            export_index: OnceLock::new(),
            imports: OnceLock::new(),
            symbols: OnceLock::new(),
            relocations: OnceLock::new(),
            needed: OnceLock::new(),
        })
    }

    /// The bytes of the file, or of the slice that was chosen.
    pub fn region(&self) -> Region<'a> {
        self.region
    }
    /// Format of the file.
    pub fn format(&self) -> Format {
        self.header.format
    }
    /// Machine of the code.
    pub fn architecture(&self) -> Architecture {
        self.header.architecture
    }
    /// `linux`, `macos`, `windows`, or another word for what the header names.
    pub fn os(&self) -> &'static str {
        self.header.os
    }
    /// Address of the entry point (PE: the DLL's start function), where there is one.
    pub fn entry(&self) -> Option<u64> {
        self.header.entry
    }
    /// What is mapped at load, by rising position in the file's own table.
    pub fn segments(&self) -> &[Segment<'a>] {
        &self.header.segments
    }
    /// The section table; empty when the file has none or it cannot be read.
    pub fn sections(&self) -> &[Section<'a>] {
        &self.header.sections
    }
    /// The first section of that name. Mach-O sections are found without their segment: `__text`.
    pub fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.header.sections.iter().find(|s| s.name == name)
    }
    /// The bytes of a section; `None` for zero-filled ones and those that do not lie in the file.
    pub fn section_bytes(&self, section: &Section<'a>) -> Option<&'a [u8]> {
        self.region.get(section.offset?, section.size)
    }
    /// Oddities that did not stop the tables read so far.
    pub fn problems(&self) -> Vec<Problem> {
        self.problems.lock().map(|p| p.clone()).unwrap_or_default()
    }

    /// Symbols that the library offers to others, in table order.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] or [`ErrorKind::Limit`] with the table's name.
    pub fn exports(&self) -> Result<&[Symbol<'a>]> {
        self.table(&self.exports, |problems| reader!(self, r => r.exports(problems)))
    }
    /// The exported symbol of that name; `None` also when the table cannot be read.
    pub fn export(&self, name: &str) -> Option<&Symbol<'a>> {
        let exports = self.exports().ok()?;
        // by length first: names of C++ begin alike
        let key = |i: usize| exports.get(i).map_or((0, ""), |symbol| (symbol.name.len(), symbol.name.as_ref()));
        let index = self.export_index.get_or_init(|| {
            let mut index: Vec<usize> = (0..exports.len()).collect();
            index.sort_by_key(|i| key(*i));
            index
        });
        // of symbols with one name the first counts, as for the loader
        let first = index.partition_point(|i| key(*i) < (name.len(), name));
        exports.get(*index.get(first)?).filter(|symbol| symbol.name == name)
    }
    /// Symbols that the library wants from others.
    ///
    /// # Errors
    /// As [`Image::exports`].
    pub fn imports(&self) -> Result<&[Import<'a>]> {
        self.table(&self.imports, |problems| reader!(self, r => r.imports(problems)))
    }
    /// The table for debuggers (`.symtab`, nlist, COFF), local symbols and global ones; empty when stripped.
    ///
    /// # Errors
    /// As [`Image::exports`].
    pub fn symbols(&self) -> Result<&[Symbol<'a>]> {
        self.table(&self.symbols, |problems| reader!(self, r => r.symbols(problems)))
    }
    /// All that the loader writes into the image, in the order in which it does.
    ///
    /// # Errors
    /// As [`Image::exports`].
    pub fn relocations(&self) -> Result<&[Relocation<'a>]> {
        self.table(&self.relocations, |problems| reader!(self, r => r.relocations(problems)))
    }
    /// Libraries, run paths, versions and flags for the loader.
    ///
    /// # Errors
    /// As [`Image::exports`].
    pub fn needed(&self) -> Result<&Needed<'a>> {
        self.once(&self.needed, |problems| reader!(self, r => r.needed(problems)))
    }
    /// Addresses of the functions that run when the library is opened, in order. PE: TLS callbacks only;
    /// C++ constructors run from [`Image::entry`] there.
    ///
    /// # Errors
    /// As [`Image::relocations`], on which the arrays depend; [`ErrorKind::Limit`] for too many functions.
    pub fn init_functions(&self) -> Result<Vec<u64>> {
        let relocations = self.relocations()?;
        reader!(self, r => r.init_functions(self, relocations))
    }

    /// Lines of an ELF `.comment` section: one per compiler and linker that contributed.
    pub fn comments(&self) -> Vec<&'a str> {
        let bytes = self
            .section(".comment")
            .and_then(|s| self.region.get(s.offset?, s.size.min(crate::limits::SHOWN_TEXT_BYTES as u64)));
        bytes.unwrap_or_default().split(|b| *b == 0).filter_map(symbol::text).filter(|t| !t.is_empty()).collect()
    }

    /// The block that each thread gets a copy of; `None` where there is none or the format has another way.
    pub fn thread_local(&self) -> Option<ThreadLocalBlock> {
        match &self.reader {
            Reader::Elf(elf) => elf.thread_local(),
            Reader::MachO(_) | Reader::Pe(_) => None,
        }
    }
    /// Offset in [`Image::region`] of the byte at an address; `None` where nothing of the file is mapped.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        self.mapped(address).map(|(offset, _)| offset)
    }
    /// Exactly `len` bytes at an address, as they are in the file (before relocation). Zero-filled
    /// memory behind the file's part of a segment is not in the file: `None`.
    pub fn read(&self, address: u64, len: u64) -> Option<&'a [u8]> {
        let (offset, there) = self.mapped(address)?;
        if len > there {
            return None;
        }
        self.region.get(offset, len)
    }
    /// The text at an address up to its NUL, without it; `None` when there is none within
    /// [`crate::limits::SYMBOL_NAME_BYTES`] (use [`Image::bytes_from`] for longer ones).
    pub fn cstr(&self, address: u64) -> Option<&'a [u8]> {
        let bytes = self.bytes_from(address, crate::limits::SYMBOL_NAME_BYTES as u64)?;
        bytes.get(..memchr::memchr(0, bytes)?)
    }
    /// Up to `max` bytes from an address to the end of the file's part of its segment.
    pub fn bytes_from(&self, address: u64, max: u64) -> Option<&'a [u8]> {
        let (offset, there) = self.mapped(address)?;
        self.region.get(offset, there.min(max).min(self.region.len().saturating_sub(offset)))
    }
    /// Address at which a byte of the file is mapped.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        symbol::address_of(&self.header.segments, offset)
    }

    fn mapped(&self, address: u64) -> Option<(u64, u64)> {
        symbol::mapped(&self.header.segments, address)
    }
    fn once<'s, T>(
        &'s self,
        cell: &'s OnceLock<Result<T>>,
        read: impl FnOnce(&mut Vec<Problem>) -> Result<T>,
    ) -> Result<&'s T> {
        cell.get_or_init(|| {
            let mut problems = Vec::new();
            let table = read(&mut problems);
            if let Ok(mut all) = self.problems.lock() {
                let room = crate::limits::PROBLEMS.saturating_sub(all.len());
                all.extend(problems.into_iter().take(room));
            }
            table
        })
        .as_ref()
        .map_err(Clone::clone)
    }
    fn table<'s, T>(
        &'s self,
        cell: &'s OnceLock<Result<Vec<T>>>,
        read: impl FnOnce(&mut Vec<Problem>) -> Result<Vec<T>>,
    ) -> Result<&'s [T]> {
        self.once(cell, read).map(Vec::as_slice)
    }
}

/// One architecture's part of a universal Mach-O file.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    /// its machine
    pub architecture: Architecture,
    /// 64-bit, as all that AOTInductor makes
    pub is_64_bit: bool,
    /// its bytes
    pub region: Region<'a>,
}

/// The slices of a universal Mach-O file; empty for any other file.
///
/// # Errors
/// [`ErrorKind::Damaged`] when the header states slices that are not there.
pub fn slices(region: Region<'_>) -> Result<Vec<Slice<'_>>> {
    macho::slices(region)
}

/// Tells a problem, unless so many were told already that it repeats them.
fn tell(problems: &mut Vec<Problem>, problem: impl FnOnce() -> Problem) {
    if problems.len() < crate::limits::PROBLEMS {
        problems.push(problem());
    }
}

/// The names of a table, of which no more than [`crate::limits::SYMBOL_NAMES_BYTES`] are read.
struct NameBudget(u64);

impl NameBudget {
    fn new() -> Self {
        Self(crate::limits::SYMBOL_NAMES_BYTES)
    }
    /// The name, or `None` when the table has had its share.
    fn take<'n>(&mut self, name: impl FnOnce() -> Option<&'n str>) -> Option<&'n str> {
        if self.0 == 0 {
            return None;
        }
        let name = name()?;
        self.0 = self.0.saturating_sub(name.len() as u64 + 1);
        Some(name)
    }
}

/// Some of a table of functions would pass for all of it: nobody would look at the code of the others.
fn all_functions(count: u64, table: &str) -> Result<()> {
    if count > crate::limits::SYMBOLS as u64 {
        return Err(Error::limit(format!("more than {} functions", crate::limits::SYMBOLS)).in_section(table));
    }
    Ok(())
}

/// A problem in a named table.
fn problem(section: &str, offset: Option<u64>, message: impl Into<String>) -> Problem {
    Problem {
        place: crate::error::Place { member: None, section: Some(section.to_owned()), offset },
        message: message.into(),
        affects: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn problems_have_a_border() {
        let mut problems = Vec::new();
        (0..limits::PROBLEMS).for_each(|_| tell(&mut problems, || problem("x", None, "kept")));
        assert_eq!(problems.len(), limits::PROBLEMS);
        tell(&mut problems, || unreachable!("not even made"));
        assert_eq!(problems.len(), limits::PROBLEMS);
    }

    #[test]
    fn exports_are_found_by_name() {
        let file = std::fs::read("testdata/artifacts/2.15.0-cpu-custom_op.so").unwrap();
        let image = Image::open(Region::whole(&file)).unwrap();
        let exports = image.exports().unwrap();
        for symbol in exports {
            let first = exports.iter().find(|other| other.name == symbol.name);
            assert_eq!(image.export(&symbol.name).map(|s| s.address), first.map(|s| s.address), "{}", symbol.name);
        }
        for name in ["", "AOTInductorModelContainer", "AOTInductorModelContainerRunn", "~"] {
            assert!(image.export(name).is_none(), "{name}");
        }
    }

    #[test]
    fn names_of_one_table_have_a_border() {
        let name = "n".repeat(limits::SYMBOL_NAME_BYTES - 1);
        let mut budget = NameBudget::new();
        let most = limits::SYMBOL_NAMES_BYTES / limits::SYMBOL_NAME_BYTES as u64;
        for _ in 0..most {
            assert!(budget.take(|| Some(&name)).is_some());
        }
        assert_eq!(budget.take(|| Some("n")), None);
    }
}
