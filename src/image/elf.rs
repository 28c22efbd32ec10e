//! ELF: everything the loader uses is read through program headers and the dynamic table, as the loader does,
//! so that a missing or lying section table costs names of sections and `.symtab`, nothing else.

mod dynamic;
mod loading;
mod relocation;
mod unwind;

use super::symbol::{
    Binding, Import, Needed, Relocation, Section, SectionKind, Segment, Symbol, SymbolKind, ThreadLocalBlock, text,
};
use super::{Architecture, Format, Header, Image, NameBudget, problem, tell};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::model::Problem;
use crate::source::Region;
use dynamic::{Dynamic, DynamicSymbol};
use goblin::elf::{header, program_header as ph, section_header as sh};
use object::elf::{FileHeader64, ProgramHeader64, SectionHeader64, Sym64};
use object::pod::{Pod, from_bytes, slice_from_bytes};
use object::read::elf::FileHeader;
use object::{Endianness, elf};
use std::sync::OnceLock;

/// A library or relocatable object in ELF form.
pub(super) struct Elf<'a> {
    file: File<'a>,
    /// section that `.symtab` rows and their names are in, as (symbols, names)
    symtab: Option<(&'a SectionHeader64<Endianness>, &'a SectionHeader64<Endianness>)>,
    has_dynamic: bool,
    dynamic: OnceLock<Result<Dynamic<'a>>>,
    symbols: OnceLock<Result<Vec<DynamicSymbol<'a>>>>,
}

/// The header and what is needed to follow a virtual address.
pub(super) struct File<'a> {
    pub(super) region: Region<'a>,
    pub(super) endian: Endianness,
    pub(super) machine: u16,
    pub(super) programs: &'a [ProgramHeader64<Endianness>],
    pub(super) segments: Vec<Segment<'a>>,
    /// address and size of `.dynsym` by the section table; used only when no hash table gives the count
    pub(super) dynsym: Option<(u64, u64)>,
}

impl<'a> File<'a> {
    /// Bytes from a virtual address to the end of its segment's file part.
    pub(super) fn from(&self, address: u64) -> Option<&'a [u8]> {
        let (offset, there) = super::symbol::mapped(&self.segments, address)?;
        self.region.get(offset, there.min(self.region.len().saturating_sub(offset)))
    }
    /// Exactly `len` bytes at a virtual address.
    pub(super) fn read(&self, address: u64, len: u64) -> Option<&'a [u8]> {
        let (offset, there) = super::symbol::mapped(&self.segments, address)?;
        if len > there { None } else { self.region.get(offset, len) }
    }
    /// A table of `count` records at a virtual address.
    pub(super) fn table<T: Pod>(&self, address: u64, count: usize) -> Option<&'a [T]> {
        let len = count.checked_mul(size_of::<T>())?;
        Some(slice_from_bytes(self.read(address, len as u64)?, count).ok()?.0)
    }
    /// One record at a virtual address.
    pub(super) fn record<T: Pod>(&self, address: u64) -> Option<&'a T> {
        Some(from_bytes(self.read(address, size_of::<T>() as u64)?).ok()?.0)
    }
    pub(super) fn u64_at(&self, address: u64) -> Option<u64> {
        self.record::<object::U64<Endianness>>(address).map(|v| v.get(self.endian))
    }
}

/// `e_machine` of the hosts that torch builds for.
const MACHINES: &[(u16, Architecture)] = &[
    (header::EM_X86_64, Architecture::X86_64),
    (header::EM_AARCH64, Architecture::Aarch64),
    (header::EM_S390, Architecture::S390x),
    (header::EM_PPC64, Architecture::Ppc64),
];

impl<'a> Elf<'a> {
    pub(super) fn open(region: Region<'a>) -> Result<(Header<'a>, Self)> {
        let ident =
            region.get(0, 20).ok_or_else(|| Error::damaged("ends inside the ELF header").in_section("ELF header"))?;
        if ident.get(4) == Some(&1) {
            return Err(Error::new(ErrorKind::Unsupported, "a 32-bit ELF file; torch builds 64-bit ones alone"));
        }
        let head = FileHeader64::<Endianness>::parse(region)
            .map_err(|e| Error::damaged(e.to_string()).in_section("ELF header").at_offset(0))?;
        let endian = head.endian().map_err(|e| Error::damaged(e.to_string()).in_section("ELF header").at_offset(5))?;
        let machine = head.e_machine.get(endian).0;
        let kind = head.e_type.get(endian).0;
        let mut problems = Vec::new();

        let programs = head.program_headers(endian, region).map_err(|e| {
            Error::damaged(format!("{e}: the file ends before its program headers"))
                .in_section("program headers")
                .at_offset(head.e_phoff.get(endian))
                .help("the file is cut off; copy it again")
        })?;
        let table = section_headers(head, endian, region, &mut problems);
        if programs.is_empty() && kind == header::ET_DYN {
            return Err(
                Error::damaged("a library without program headers: no loader can map it").in_section("program headers")
            );
        }
        let segments = segments(programs, endian, region, &mut problems)?;
        loading::check_headers(head, programs, endian, &segments, &mut problems);
        let names = section_names(head, endian, region, table, &mut problems);
        let sections: Vec<_> = table.iter().map(|s| section(s, endian, region, names)).collect();
        check_section_bounds(table, &sections, endian, region, &mut problems);
        let of_type = |wanted: u32| table.iter().find(|s| s.sh_type.get(endian).0 == wanted);
        let symtab =
            of_type(sh::SHT_SYMTAB).and_then(|s| Some((s, table.get(usize::try_from(s.sh_link.get(endian)).ok()?)?)));
        let dynsym = of_type(sh::SHT_DYNSYM).map(|s| (s.sh_addr.get(endian), s.sh_size.get(endian)));
        let has_dynamic = programs.iter().any(|p| p.p_type.get(endian).0 == ph::PT_DYNAMIC);
        if kind == header::ET_DYN && !has_dynamic {
            return Err(Error::damaged("a library without a dynamic table: no loader can link it")
                .in_section("program headers"));
        }

        let architecture =
            MACHINES.iter().find(|m| m.0 == machine).map_or(Architecture::Other(u32::from(machine)), |m| m.1);
        let os = match head.e_ident.os_abi.0 {
            header::ELFOSABI_NONE | header::ELFOSABI_LINUX => "linux",
            header::ELFOSABI_FREEBSD => "freebsd",
            _ => "other",
        };
        let entry = Some(head.e_entry.get(endian)).filter(|e| *e != 0);
        let file = File { region, endian, machine, programs, segments: segments.clone(), dynsym };
        let header = Header { format: Format::Elf, architecture, os, entry, segments, sections, problems };
        let dynamic = OnceLock::new();
        let symbols = OnceLock::new();
        Ok((header, Self { file, symtab, has_dynamic, dynamic, symbols }))
    }

    fn dynamic(&self) -> Result<&Dynamic<'a>> {
        self.dynamic.get_or_init(|| Dynamic::read(&self.file)).as_ref().map_err(Clone::clone)
    }
    fn dynamic_symbols(&self, problems: &mut Vec<Problem>) -> Result<&[DynamicSymbol<'a>]> {
        self.symbols
            .get_or_init(|| self.dynamic()?.symbols(&self.file, problems))
            .as_ref()
            .map(Vec::as_slice)
            .map_err(Clone::clone)
    }

    pub(super) fn thread_local(&self) -> Option<ThreadLocalBlock> {
        let endian = self.file.endian;
        let row = self.file.programs.iter().find(|p| p.p_type.get(endian).0 == ph::PT_TLS)?;
        Some(ThreadLocalBlock {
            address: row.p_vaddr.get(endian),
            file_size: row.p_filesz.get(endian).min(limits::THREAD_LOCAL_BYTES),
            memory_size: row.p_memsz.get(endian).min(limits::THREAD_LOCAL_BYTES),
            alignment: row.p_align.get(endian).clamp(1, limits::THREAD_LOCAL_BYTES),
        })
    }

    /// Relocatable objects have no dynamic table: their global symbols of `.symtab` stand in for it.
    pub(super) fn exports(&self, problems: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        if !self.has_dynamic {
            let symbols = self.symbols(problems)?;
            return Ok(symbols.into_iter().filter(|s| s.binding != Binding::Local).collect());
        }
        Ok(self.dynamic_symbols(problems)?.iter().filter_map(DynamicSymbol::export).collect())
    }

    pub(super) fn imports(&self, problems: &mut Vec<Problem>) -> Result<Vec<Import<'a>>> {
        if !self.has_dynamic {
            return Ok(Vec::new());
        }
        Ok(self.dynamic_symbols(problems)?.iter().filter_map(DynamicSymbol::import).collect())
    }

    pub(super) fn symbols(&self, problems: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        let Some((rows, names)) = self.symtab else { return Ok(Vec::new()) };
        let endian = self.file.endian;
        let wrong = |what: String| Error::damaged(what).in_section(".symtab").at_offset(rows.sh_offset.get(endian));
        let entry = rows.sh_entsize.get(endian);
        if entry != size_of::<Sym64<Endianness>>() as u64 {
            return Err(wrong(format!("entry size is {entry}, not 24")));
        }
        let count = usize::try_from(rows.sh_size.get(endian) / entry).unwrap_or(usize::MAX);
        if count > limits::SYMBOLS {
            return Err(Error::limit(format!("{count} symbols, more than {}", limits::SYMBOLS)).in_section(".symtab"));
        }
        let bytes = self
            .file
            .region
            .get(rows.sh_offset.get(endian), (count as u64).saturating_mul(entry))
            .ok_or_else(|| wrong("lies beyond the end of the file".into()))?;
        let rows: &[Sym64<Endianness>] = slice_from_bytes(bytes, count).map_err(|()| wrong("unreadable".into()))?.0;
        let names = self
            .file
            .region
            .get(names.sh_offset.get(endian), names.sh_size.get(endian))
            .ok_or_else(|| Error::damaged("lies beyond the end of the file").in_section(".strtab"))?;
        let mut unnamed = 0usize;
        let mut budget = NameBudget::new();
        let symbols = rows
            .iter()
            .filter(|row| row.st_shndx.get(endian).0 != elf::SHN_UNDEF.0)
            .map(|row| {
                let name = budget.take(|| name_in(names, row.st_name.get(endian))).unwrap_or_else(|| {
                    unnamed += 1;
                    ""
                });
                Symbol { name: name.into(), ..symbol(row, endian) }
            })
            .collect();
        if unnamed > 0 {
            problems.push(problem(".symtab", None, format!("{unnamed} symbols have no readable name")));
        }
        Ok(symbols)
    }

    pub(super) fn relocations(&self, problems: &mut Vec<Problem>) -> Result<Vec<Relocation<'a>>> {
        if !self.has_dynamic {
            return Ok(Vec::new());
        }
        let symbols = self.dynamic_symbols(problems)?;
        let relocations = relocation::read(&self.file, self.dynamic()?, symbols, problems)?;
        loading::check_tables(&self.file, self.dynamic()?, symbols, &relocations, problems);
        Ok(relocations)
    }

    pub(super) fn needed(&self, problems: &mut Vec<Problem>) -> Result<Needed<'a>> {
        if !self.has_dynamic {
            return Ok(Needed::default());
        }
        let stack = |p: &&ProgramHeader64<Endianness>| p.p_type.get(self.file.endian).0 == ph::PT_GNU_STACK;
        // without the header glibc takes the architecture's default, which is executable on x86-64 and not on aarch64
        // (elf/dl-load.c and sysdeps/*/stackinfo.h)
        let executable_stack = match self.file.programs.iter().find(stack) {
            Some(p) => p.p_flags.get(self.file.endian).0 & ph::PF_X != 0,
            None => self.file.machine == header::EM_X86_64,
        };
        let mut needed = self.dynamic()?.needed(&self.file, problems)?;
        needed.executable_stack = Some(executable_stack);
        Ok(needed)
    }

    /// Start and size of every function that the unwinder knows.
    pub(super) fn unwind_ranges(&self) -> Result<Vec<(u64, u64)>> {
        unwind::ranges(&self.file)
    }

    pub(super) fn init_functions(&self, image: &Image<'a>, relocations: &[Relocation<'a>]) -> Result<Vec<u64>> {
        let Ok(dynamic) = self.dynamic() else { return Ok(Vec::new()) };
        relocation::init_functions(&self.file, dynamic, image, relocations)
    }
}

/// The section headers; an unreadable table is a problem, not an error.
fn section_headers<'a>(
    head: &FileHeader64<Endianness>,
    endian: Endianness,
    region: Region<'a>,
    problems: &mut Vec<Problem>,
) -> &'a [SectionHeader64<Endianness>] {
    let offset = head.e_shoff.get(endian);
    match head.section_headers(endian, region) {
        Ok(table) if table.len() > limits::SECTIONS => {
            let what = format!("{} sections, more than {} are not read", table.len(), limits::SECTIONS);
            problems.push(problem("section headers", Some(offset), what));
            &[]
        }
        Ok(table) => table,
        Err(e) => {
            let what = format!("{e}: read by program headers alone; the file may be cut off");
            problems.push(problem("section headers", Some(offset), what));
            &[]
        }
    }
}

fn segments<'a>(
    programs: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    region: Region<'a>,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Segment<'a>>> {
    let mut segments: Vec<Segment<'a>> = Vec::new();
    for program in programs.iter().filter(|p| p.p_type.get(endian).0 == ph::PT_LOAD) {
        let flags = program.p_flags.get(endian).0;
        let segment = Segment {
            name: "",
            address: program.p_vaddr.get(endian),
            memory_size: program.p_memsz.get(endian),
            file_offset: program.p_offset.get(endian),
            file_size: program.p_filesz.get(endian),
            is_readable: flags & ph::PF_R != 0,
            is_writable: flags & ph::PF_W != 0,
            is_executable: flags & ph::PF_X != 0,
        };
        let at = Some(segment.file_offset);
        if segment.address.checked_add(segment.memory_size).is_none()
            || segment.file_offset.checked_add(segment.file_size).is_none()
            || segment.file_size > segment.memory_size
        {
            return Err(Error::damaged("a segment's size contradicts its place")
                .in_section("program headers")
                .at_offset(segment.file_offset));
        }
        if segment.file_offset + segment.file_size > region.len() {
            let missing = segment.file_offset + segment.file_size - region.len();
            let what = format!("a segment goes on {missing} bytes behind the end of the file: the file is cut off");
            let affects = vec!["library".to_owned()];
            problems.push(Problem { affects, ..problem("program headers", at, what) });
        }
        if let Some(last) = segments.last()
            && segment.address < last.address + last.memory_size
        {
            let affects = vec!["library".to_owned()];
            let what = "segments overlap in memory or are not in order";
            tell(problems, || Problem { affects, ..problem("program headers", at, what) });
        }
        segments.push(segment);
        if segments.len() > limits::SEGMENTS {
            let what = format!("more than {} segments", limits::SEGMENTS);
            return Err(Error::limit(what).in_section("program headers"));
        }
    }
    Ok(segments)
}

fn section_names<'a>(
    head: &FileHeader64<Endianness>,
    endian: Endianness,
    region: Region<'a>,
    table: &[SectionHeader64<Endianness>],
    problems: &mut Vec<Problem>,
) -> &'a [u8] {
    if table.is_empty() {
        return &[];
    }
    let names = head.shstrndx(endian, region).ok().and_then(|i| table.get(usize::try_from(i).ok()?));
    let bytes = names.and_then(|s| region.get(s.sh_offset.get(endian), s.sh_size.get(endian)));
    if bytes.is_none() {
        problems.push(problem(".shstrtab", None, "names of sections cannot be read"));
    }
    bytes.unwrap_or_default()
}

fn section<'a>(
    row: &SectionHeader64<Endianness>,
    endian: Endianness,
    region: Region<'a>,
    names: &'a [u8],
) -> Section<'a> {
    let flags = row.sh_flags.get(endian).0;
    let raw_kind = row.sh_type.get(endian).0;
    let allocated = flags & u64::from(sh::SHF_ALLOC) != 0;
    let kind = match () {
        () if !allocated => SectionKind::NotMapped,
        () if raw_kind == sh::SHT_NOBITS => SectionKind::ZeroFill,
        () if flags & u64::from(sh::SHF_EXECINSTR) != 0 => SectionKind::Code,
        () if flags & u64::from(sh::SHF_WRITE) != 0 => SectionKind::Data,
        () => SectionKind::ReadOnlyData,
    };
    let offset = row.sh_offset.get(endian);
    let size = row.sh_size.get(endian);
    let lies_inside = offset.checked_add(size).is_some_and(|end| end <= region.len());
    let in_file = raw_kind != sh::SHT_NOBITS && raw_kind != sh::SHT_NULL && lies_inside;
    Section {
        name: name_in(names, row.sh_name.get(endian)).unwrap_or_default(),
        segment: "",
        address: if allocated { row.sh_addr.get(endian) } else { 0 },
        size,
        offset: in_file.then_some(offset),
        flags,
        raw_kind,
        kind,
    }
}

fn check_section_bounds(
    table: &[SectionHeader64<Endianness>],
    sections: &[Section<'_>],
    endian: Endianness,
    region: Region<'_>,
    problems: &mut Vec<Problem>,
) {
    for (row, section) in table.iter().zip(sections) {
        if section.offset.is_none() && !matches!(section.raw_kind, sh::SHT_NOBITS | sh::SHT_NULL) {
            let offset = row.sh_offset.get(endian);
            let what = format!("section of {} bytes does not lie in the file of {} bytes", section.size, region.len());
            let name = if section.name.is_empty() { "section headers" } else { section.name };
            tell(problems, || problem(name, Some(offset), what));
        }
    }
}

/// The name at an offset of a string table.
pub(super) fn name_in(table: &[u8], offset: u32) -> Option<&str> {
    let bytes = table.get(usize::try_from(offset).ok()?..)?;
    let bytes = bytes.get(..bytes.len().min(limits::SYMBOL_NAME_BYTES))?;
    text(bytes.get(..memchr::memchr(0, bytes)?)?)
}

/// A symbol without its name.
pub(super) fn symbol<'a>(row: &Sym64<Endianness>, endian: Endianness) -> Symbol<'a> {
    use goblin::elf::sym;
    let kind = match row.st_info.0 & 0xf {
        sym::STT_FUNC => SymbolKind::Function,
        sym::STT_GNU_IFUNC => SymbolKind::IndirectFunction,
        sym::STT_OBJECT | sym::STT_COMMON => SymbolKind::Object,
        sym::STT_TLS => SymbolKind::ThreadLocal,
        sym::STT_SECTION => SymbolKind::Section,
        sym::STT_FILE => SymbolKind::File,
        _ => SymbolKind::Unknown,
    };
    let binding = match row.st_info.0 >> 4 {
        sym::STB_LOCAL => Binding::Local,
        sym::STB_WEAK => Binding::Weak,
        _ => Binding::Global,
    };
    Symbol {
        name: "".into(),
        address: row.st_value.get(endian),
        size: row.st_size.get(endian),
        kind,
        binding,
        is_absolute: row.st_shndx.get(endian).0 == elf::SHN_ABS.0,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of the program headers.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Program {
        pub(crate) kind: u32,
        pub(crate) flags: u32,
        pub(crate) offset: u64,
        pub(crate) address: u64,
        pub(crate) file_size: u64,
        pub(crate) memory_size: u64,
        pub(crate) alignment: u64,
    }

    /// A row of the section table.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Row {
        pub(crate) kind: u32,
        pub(crate) flags: u64,
        pub(crate) address: u64,
        pub(crate) offset: u64,
        pub(crate) size: u64,
        pub(crate) link: u32,
        pub(crate) entry_size: u64,
    }

    /// An x86-64 object of `len` bytes, zeros but for its tables: what is not touched takes no memory.
    pub(crate) fn object(len: usize, programs: &[Program], sections: &[Row]) -> Vec<u8> {
        let mut file = vec![0; len + 64 * (sections.len() + 1)];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01");
        put(16, &[1, 0, 62, 0, 1, 0, 0, 0]);
        put(32, &64u64.to_le_bytes());
        put(40, &(len as u64).to_le_bytes());
        let counts = [64, 56, programs.len() as u16, 64, sections.len() as u16 + 1, 0];
        put(52, &counts.map(u16::to_le_bytes).concat());
        for (at, p) in programs.iter().enumerate() {
            let numbers = [p.offset, p.address, p.address, p.file_size, p.memory_size, p.alignment];
            put(64 + 56 * at, &[p.kind.to_le_bytes(), p.flags.to_le_bytes()].concat());
            put(72 + 56 * at, &numbers.map(u64::to_le_bytes).concat());
        }
        for (at, s) in sections.iter().enumerate() {
            let at = len + 64 * (at + 1);
            put(at + 4, &s.kind.to_le_bytes());
            put(
                at + 8,
                &[s.flags, s.address, s.offset, s.size, u64::from(s.link), 1, s.entry_size]
                    .map(u64::to_le_bytes)
                    .concat(),
            );
        }
        file
    }

    #[test]
    fn symbols_have_a_border() {
        let of = |count: usize| {
            let table =
                Row { kind: 2, offset: 4096, size: 24 * count as u64, link: 2, entry_size: 24, ..Row::default() };
            let names = Row { kind: 3, offset: 64, size: 1, ..Row::default() };
            let file = object(4096 + 24 * count, &[], &[table, names]);
            let image = Image::open(Region::whole(&file)).unwrap();
            image.symbols().map(<[_]>::len).map_err(|e| e.to_string())
        };
        // rows of zeros are undefined symbols, which are no symbols of the library
        assert_eq!(of(limits::SYMBOLS), Ok(0));
        assert!(of(limits::SYMBOLS + 1).unwrap_err().contains("1048577 symbols, more than 1048576"));
    }

    #[test]
    fn segments_have_a_border() {
        let of = |count: usize| {
            let file = object(0x8000, &vec![Program { kind: 1, ..Program::default() }; count], &[]);
            Image::open(Region::whole(&file)).map(|image| image.segments().len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::SEGMENTS), Ok(limits::SEGMENTS));
        assert!(of(limits::SEGMENTS + 1).unwrap_err().contains("more than 256 segments"));
    }

    #[test]
    fn thread_local_variables_have_a_border() {
        let of = |size: u64| {
            let block = Program { kind: 7, file_size: size, memory_size: size, alignment: size, ..Program::default() };
            let file = object(4096, &[block], &[]);
            let block = Image::open(Region::whole(&file)).unwrap().thread_local().unwrap();
            [block.file_size, block.memory_size, block.alignment]
        };
        assert_eq!(of(limits::THREAD_LOCAL_BYTES), [limits::THREAD_LOCAL_BYTES; 3]);
        assert_eq!(of(limits::THREAD_LOCAL_BYTES + 1), [limits::THREAD_LOCAL_BYTES; 3]);
    }

    #[test]
    fn names_have_a_border() {
        let of = |len: usize| name_in(&[vec![b'n'; len], vec![0]].concat(), 0).map(str::len);
        // the NUL is one of the bytes that are looked at
        assert_eq!(of(limits::SYMBOL_NAME_BYTES - 1), Some(limits::SYMBOL_NAME_BYTES - 1));
        assert_eq!(of(limits::SYMBOL_NAME_BYTES), None);
    }
}
