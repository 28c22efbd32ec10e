//! What the three readers have in common: segments, sections, symbols, relocations.

use std::borrow::Cow;

/// A part of the file that is mapped at load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment<'a> {
    /// its name, where the format has one (`__TEXT`, `.text`)
    pub name: &'a str,
    /// virtual address of its first byte
    pub address: u64,
    /// bytes in memory; those beyond `file_size` are zero
    pub memory_size: u64,
    /// offset of its first byte in the file
    pub file_offset: u64,
    /// bytes in the file
    pub file_size: u64,
    /// may be read
    pub is_readable: bool,
    /// may be written
    pub is_writable: bool,
    /// may be executed
    pub is_executable: bool,
}

impl Segment<'_> {
    /// True when the address lies in its memory.
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|distance| distance < self.memory_size)
    }
}

/// The initial content of thread-local variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLocalBlock {
    /// virtual address of its first byte
    pub address: u64,
    /// bytes in the file
    pub file_size: u64,
    /// bytes in memory; those beyond `file_size` are zero
    pub memory_size: u64,
    /// each copy's address is a multiple of this
    pub alignment: u64,
}

/// What a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SectionKind {
    /// machine code
    Code,
    /// constants and texts
    ReadOnlyData,
    /// variables
    Data,
    /// variables that begin as zero, without bytes in the file
    ZeroFill,
    /// mapped tables of the loader and unwinder are [`SectionKind::ReadOnlyData`]; this is for what is not
    /// mapped: debug information, symbol tables, comments
    NotMapped,
}

/// A row of the section table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// `.text`, `__text`
    pub name: &'a str,
    /// name of its segment, Mach-O alone
    pub segment: &'a str,
    /// virtual address; 0 when not mapped
    pub address: u64,
    /// bytes in memory, or in the file when not mapped
    pub size: u64,
    /// offset in the file; `None` when it has no bytes there
    pub offset: Option<u64>,
    /// the format's own flags (`sh_flags`, Mach-O section flags, PE characteristics)
    pub flags: u64,
    /// the format's own type (`sh_type`; 0 elsewhere)
    pub raw_kind: u32,
    /// what it holds
    pub kind: SectionKind,
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// a function
    Function,
    /// a function that chooses the real one at load (`STT_GNU_IFUNC`)
    IndirectFunction,
    /// a variable
    Object,
    /// a thread-local variable
    ThreadLocal,
    /// a section
    Section,
    /// a source file
    File,
    /// the format does not say
    Unknown,
}

/// How a symbol is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// seen in its own object alone
    Local,
    /// one definition
    Global,
    /// may be missing or overridden
    Weak,
}

/// A defined symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// as in C or mangled C++; empty for nameless ones
    pub name: Cow<'a, str>,
    /// virtual address, or a plain number when `is_absolute`
    pub address: u64,
    /// bytes; 0 where the format does not say
    pub size: u64,
    /// what it stands for
    pub kind: SymbolKind,
    /// how it is bound
    pub binding: Binding,
    /// the address is a number, not a place (`_binary_constants_bin_size`)
    pub is_absolute: bool,
}

/// A symbol that another library has to provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import<'a> {
    /// as in C or mangled C++; `#17` for a PE import by ordinal
    pub name: &'a str,
    /// the library that has to have it, where the file says so (Mach-O two-level names, PE, versioned ELF symbols)
    pub library: Option<&'a str>,
    /// ELF symbol version, `GLIBC_2.34`
    pub version: Option<&'a str>,
    /// may be missing
    pub is_weak: bool,
    /// what it stands for, where the file says so
    pub kind: SymbolKind,
}

/// What the loader writes at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RelocationKind {
    /// load bias + addend; the addend is a virtual address of the file
    Relative,
    /// address of the symbol + addend
    Absolute,
    /// slot of a variable's or function's address (`GLOB_DAT`, Mach-O bind)
    GlobalData,
    /// slot of a function that is called through a stub (`JUMP_SLOT`, Mach-O lazy bind, PE import address)
    JumpSlot,
    /// what the function at load bias + addend returns (`IRELATIVE`)
    IndirectRelative,
    /// number of the symbol's module, for thread-local access
    TlsModule,
    /// offset of the symbol in its module's thread-local block
    TlsOffset,
    /// offset of the symbol from the thread pointer
    TlsPointerOffset,
    /// function and argument that give the symbol's thread-local address (16 bytes)
    TlsDescriptor,
    /// bytes of a variable of another library
    Copy,
    /// any other, by the format's number
    Other(u32),
}

/// The symbol that a relocation names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelocationTarget<'a> {
    /// its name
    pub name: &'a str,
    /// its address when this library defines it
    pub address: Option<u64>,
    /// defined here as a function that chooses the real one (`STT_GNU_IFUNC`)
    pub is_indirect: bool,
    /// may be missing
    pub is_weak: bool,
    /// library that has to have it, where the file says so
    pub library: Option<&'a str>,
}

/// One relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation<'a> {
    /// where it is written
    pub address: u64,
    /// bytes written
    pub size: u8,
    /// what is written
    pub kind: RelocationKind,
    /// symbol; `None` for those without one
    pub target: Option<RelocationTarget<'a>>,
    /// added; also where the file keeps it in the place itself
    pub addend: i64,
}

/// A version that another library has to provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolVersion<'a> {
    /// `libc.so.6`
    pub library: &'a str,
    /// `GLIBC_2.34`
    pub name: &'a str,
    /// may be missing
    pub is_weak: bool,
}

/// What the loader is told beside symbols.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needed<'a> {
    /// libraries in file order
    pub libraries: Vec<&'a str>,
    /// libraries among them that may be missing (Mach-O weak, PE delay-loaded)
    pub optional_libraries: Vec<&'a str>,
    /// RPATH, RUNPATH, LC_RPATH, split at `:` where the format joins them
    pub run_paths: Vec<&'a str>,
    /// the library's own name (SONAME, install name, export directory)
    pub own_name: Option<&'a str>,
    /// versions asked for
    pub versions: Vec<SymbolVersion<'a>>,
    /// versions that the library defines for others (`GLIBC_2.36` of libc)
    pub defined_versions: Vec<&'a str>,
    /// the stack has to be executable; `None` when the format does not say
    pub executable_stack: Option<bool>,
}

/// File offset of an address and the number of file bytes from there to the end of the segment's file part.
pub(super) fn mapped(segments: &[Segment<'_>], address: u64) -> Option<(u64, u64)> {
    segments.iter().find_map(|segment| {
        let distance = address.checked_sub(segment.address)?;
        let there = segment.file_size.checked_sub(distance).filter(|n| *n > 0)?;
        Some((segment.file_offset.checked_add(distance)?, there))
    })
}

/// Address of a file offset.
pub(super) fn address_of(segments: &[Segment<'_>], offset: u64) -> Option<u64> {
    segments.iter().find_map(|segment| {
        let distance = offset.checked_sub(segment.file_offset).filter(|d| *d < segment.file_size)?;
        segment.address.checked_add(distance)
    })
}

/// A name as text; `None` (and a caller's problem) when it is not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
