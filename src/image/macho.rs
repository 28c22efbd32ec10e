//! Mach-O: load commands, nlist symbols and, where those were stripped, the exports trie.

mod fixups;
mod trie;

use super::symbol::{Binding, Import, Needed, Relocation, Section, SectionKind, Segment, Symbol, SymbolKind, text};
use super::{Architecture, Format, Header, Image, NameBudget, Slice, all_functions, problem, tell};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::model::Problem;
use crate::source::Region;
use object::macho::{self, MachHeader64};
use object::read::macho::{
    FatArch, LoadCommandVariant, MachHeader, MachOFatFile32, MachOFatFile64, Nlist, Segment as _,
};
use object::{Endianness, U32, U64};

type E = Endianness;

/// A library in Mach-O form.
pub(super) struct MachO<'a> {
    region: Region<'a>,
    endian: Endianness,
    segments: Vec<Segment<'a>>,
    sections: Vec<Section<'a>>,
    /// address and position of each mapped section, by address
    by_address: Vec<(u64, usize)>,
    libraries: Vec<&'a str>,
    optional_libraries: Vec<&'a str>,
    run_paths: Vec<&'a str>,
    own_name: Option<&'a str>,
    symtab: Option<&'a macho::SymtabCommand<E>>,
    exports_trie: Option<&'a macho::LinkeditDataCommand<E>>,
    chained_fixups: Option<&'a macho::LinkeditDataCommand<E>>,
    function_starts: Option<&'a macho::LinkeditDataCommand<E>>,
    dyld_info: Option<&'a macho::DyldInfoCommand<E>>,
}

/// Recognises a thin Mach-O file of any word size and byte order.
pub(super) fn is_macho(head: &[u8]) -> bool {
    matches!(
        head,
        [0xcf, 0xfa, 0xed, 0xfe] | [0xce, 0xfa, 0xed, 0xfe] | [0xfe, 0xed, 0xfa, 0xcf] | [0xfe, 0xed, 0xfa, 0xce]
    )
}

/// The slices of a universal file. A Java class begins with the same four bytes and states its version where
/// the count of slices would be, so that more than 30 are not believed (as in `file`'s rule).
pub(super) fn slices(region: Region<'_>) -> Result<Vec<Slice<'_>>> {
    const MOST: u32 = 30;
    let is_wide = match region.head(4) {
        [0xca, 0xfe, 0xba, 0xbe] => false,
        [0xca, 0xfe, 0xba, 0xbf] => true,
        _ => return Ok(Vec::new()),
    };
    let wrong = |what: String| Error::damaged(what).in_section("universal header").at_offset(4);
    let count = match region.get(4, 4) {
        Some(&[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => return Err(wrong("ends inside the header".into())),
    };
    if count > MOST {
        return Err(wrong(format!("{count} slices, more than there are machines")));
    }
    let parse = |e: object::read::Error| wrong(e.to_string());
    if is_wide {
        MachOFatFile64::parse(region).map_err(parse)?.arches().iter().map(|a| slice(region, a)).collect()
    } else {
        MachOFatFile32::parse(region).map_err(parse)?.arches().iter().map(|a| slice(region, a)).collect()
    }
}

fn slice<'a>(region: Region<'a>, row: &impl FatArch) -> Result<Slice<'a>> {
    let (offset, size) = row.file_range();
    let region = region.sub(offset, size).ok_or_else(|| {
        Error::damaged(format!("slice of {size} bytes does not lie in the file"))
            .in_section("universal header")
            .at_offset(offset)
    })?;
    let cpu = row.cputype().0;
    // CPU_ARCH_ABI64
    Ok(Slice { architecture: architecture(cpu), is_64_bit: cpu & 0x0100_0000 != 0, region })
}

fn architecture(cpu: u32) -> Architecture {
    match cpu {
        0x0100_0007 => Architecture::X86_64,
        0x0100_000c => Architecture::Aarch64,
        other => Architecture::Other(other),
    }
}

/// Sixteen bytes with an optional terminator.
fn fixed_name(bytes: &[u8; 16]) -> &str {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    bytes.get(..end).and_then(text).unwrap_or_default()
}

/// A C name without the underscore that the compiler puts before it.
fn source_name(name: &[u8]) -> Option<&str> {
    text(name.strip_prefix(b"_").unwrap_or(name))
}

impl<'a> MachO<'a> {
    pub(super) fn open(region: Region<'a>) -> Result<(Header<'a>, Self)> {
        let wrong = |e: object::read::Error| Error::damaged(e.to_string()).in_section("load commands");
        if matches!(region.head(4), [0xce, 0xfa, 0xed, 0xfe] | [0xfe, 0xed, 0xfa, 0xce]) {
            return Err(Error::new(ErrorKind::Unsupported, "a 32-bit Mach-O file; torch builds 64-bit ones alone"));
        }
        let head = MachHeader64::<E>::parse(region, 0)
            .map_err(|e| Error::damaged(e.to_string()).in_section("Mach-O header").at_offset(0))?;
        let endian = head.endian().map_err(wrong)?;
        let mut this = Self {
            region,
            endian,
            segments: Vec::new(),
            sections: Vec::new(),
            by_address: Vec::new(),
            libraries: Vec::new(),
            optional_libraries: Vec::new(),
            run_paths: Vec::new(),
            own_name: None,
            symtab: None,
            exports_trie: None,
            chained_fixups: None,
            function_starts: None,
            dyld_info: None,
        };
        let mut problems = Vec::new();
        let mut os = "macos";
        let mut commands = head.load_commands(endian, region, 0).map_err(wrong)?;
        let mut budget = limits::SECTIONS;
        while let Some(command) = commands.next().map_err(wrong)? {
            budget = budget.checked_sub(1).ok_or_else(|| Error::limit("too many").in_section("load commands"))?;
            match command.variant().map_err(wrong)? {
                LoadCommandVariant::Segment64(segment, data) => this.add_segment(segment, data, &mut problems)?,
                LoadCommandVariant::Symtab(symtab) => this.symtab = Some(symtab),
                LoadCommandVariant::DyldInfo(info) => this.dyld_info = Some(info),
                LoadCommandVariant::LinkeditData(data) if command.cmd() == macho::LC_DYLD_EXPORTS_TRIE => {
                    this.exports_trie = Some(data);
                }
                LoadCommandVariant::LinkeditData(data) if command.cmd() == macho::LC_DYLD_CHAINED_FIXUPS => {
                    this.chained_fixups = Some(data);
                }
                LoadCommandVariant::LinkeditData(data) if command.cmd() == macho::LC_FUNCTION_STARTS => {
                    this.function_starts = Some(data);
                }
                LoadCommandVariant::Dylib(library) => {
                    // the ordinals of imports count these commands: an unreadable name keeps its place
                    let name = command.string(endian, library.dylib.name).ok().and_then(text).unwrap_or_default();
                    this.libraries.push(name);
                    if command.cmd() == macho::LC_LOAD_WEAK_DYLIB {
                        this.optional_libraries.push(name);
                    }
                }
                LoadCommandVariant::IdDylib(library) => {
                    this.own_name = command.string(endian, library.dylib.name).ok().and_then(text);
                }
                LoadCommandVariant::Rpath(path) => {
                    this.run_paths.extend(command.string(endian, path.path).ok().and_then(text));
                }
                LoadCommandVariant::BuildVersion(version, _) => {
                    os = match version.platform.get(endian).0 {
                        1 | 6 => "macos",
                        2 | 7 => "ios",
                        _ => "other",
                    };
                }
                _ => {}
            }
        }
        if this.segments.is_empty() {
            return Err(Error::damaged("there is no 64-bit segment").in_section("load commands"));
        }
        let mapped = this.sections.iter().enumerate().filter(|(_, s)| s.size > 0 && s.kind != SectionKind::NotMapped);
        this.by_address = mapped.map(|(i, s)| (s.address, i)).collect();
        this.by_address.sort_unstable();
        let header = Header {
            format: Format::MachO,
            architecture: architecture(head.cputype.get(endian).0),
            os,
            entry: None,
            segments: this.segments.clone(),
            sections: this.sections.clone(),
            problems,
        };
        Ok((header, this))
    }

    fn add_segment(
        &mut self,
        command: &'a macho::SegmentCommand64<E>,
        data: &'a [u8],
        problems: &mut Vec<Problem>,
    ) -> Result<()> {
        let endian = self.endian;
        let protection = command.initprot.get(endian).0;
        let segment = Segment {
            name: fixed_name(&command.segname),
            address: command.vmaddr.get(endian),
            memory_size: command.vmsize.get(endian),
            file_offset: command.fileoff.get(endian),
            file_size: command.filesize.get(endian),
            is_readable: protection & 1 != 0,
            is_writable: protection & 2 != 0,
            is_executable: protection & 4 != 0,
        };
        let end = segment.file_offset.checked_add(segment.file_size);
        let Some(end) = end.filter(|_| segment.address.checked_add(segment.memory_size).is_some()) else {
            return Err(Error::damaged("a segment's size contradicts its place").in_section("load commands"));
        };
        if end > self.region.len() {
            let what = format!("segment goes on {} bytes behind the end of the file", end - self.region.len());
            let affects = vec!["library".to_owned()];
            problems.push(Problem { affects, ..problem(segment.name, Some(segment.file_offset), what) });
        }
        let sections =
            command.sections(endian, data).map_err(|e| Error::damaged(e.to_string()).in_section("load commands"))?;
        if sections.len() + self.sections.len() > limits::SECTIONS {
            return Err(Error::limit("too many sections").in_section("load commands"));
        }
        for row in sections {
            let flags = row.flags.get(endian).0;
            let section_type = flags & 0xff;
            let zero_fill = matches!(section_type, 1 | 0xc | 0x12);
            let kind = match () {
                () if zero_fill => SectionKind::ZeroFill,
                () if segment.name == "__DWARF" => SectionKind::NotMapped,
                // S_ATTR_PURE_INSTRUCTIONS, S_ATTR_SOME_INSTRUCTIONS
                () if flags & 0x8000_0400 != 0 => SectionKind::Code,
                () if segment.is_writable => SectionKind::Data,
                () => SectionKind::ReadOnlyData,
            };
            let (offset, size) = (u64::from(row.offset.get(endian)), row.size.get(endian));
            let lies_inside = offset.checked_add(size).is_some_and(|end| end <= self.region.len());
            if !zero_fill && !lies_inside {
                tell(problems, || problem(fixed_name(&row.sectname), Some(offset), "does not lie in the file"));
            }
            self.sections.push(Section {
                name: fixed_name(&row.sectname),
                segment: fixed_name(&row.segname),
                address: row.addr.get(endian),
                size,
                offset: (!zero_fill && lies_inside).then_some(offset),
                flags: u64::from(flags),
                raw_kind: section_type,
                kind,
            });
        }
        self.segments.push(segment);
        if self.segments.len() > limits::SEGMENTS {
            return Err(Error::limit("too many segments").in_section("load commands"));
        }
        Ok(())
    }

    /// Rows of the nlist table with their names, stabs left out.
    fn rows(&self) -> Result<Vec<(&'a macho::Nlist64<E>, &'a [u8])>> {
        let Some(command) = self.symtab else { return Ok(Vec::new()) };
        let wrong = |e: object::read::Error| Error::damaged(e.to_string()).in_section("symbol table");
        if usize::try_from(command.nsyms.get(self.endian)).is_ok_and(|n| n > limits::SYMBOLS) {
            return Err(Error::limit(format!("more than {} symbols", limits::SYMBOLS)).in_section("symbol table"));
        }
        let table = command.symbols::<MachHeader64<E>, _>(self.endian, self.region).map_err(wrong)?;
        let strings = table.strings();
        let rows = table.iter().filter(|row| !row.is_stab());
        let mut budget = NameBudget::new();
        let mut is_cut = false;
        let mut name = |row: &'a macho::Nlist64<E>| {
            is_cut |= budget.0 == 0;
            budget.take(|| row.name(self.endian, strings).ok().and_then(text)).unwrap_or_default().as_bytes()
        };
        let rows = rows.map(|row| (row, name(row))).collect();
        // an import without a name would not be missed
        if is_cut {
            let what = format!("more than {} bytes of names", limits::SYMBOL_NAMES_BYTES);
            return Err(Error::limit(what).in_section("symbol table"));
        }
        Ok(rows)
    }

    pub(super) fn symbols(&self, _: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        let rows = self.rows()?;
        let mut symbols: Vec<Symbol<'a>> = rows
            .into_iter()
            .filter(|(row, _)| !row.is_undefined() && !row.is_common())
            .map(|(row, name)| self.symbol(row, name))
            .collect();
        self.add_sizes(&mut symbols);
        Ok(symbols)
    }

    fn symbol(&self, row: &macho::Nlist64<E>, name: &'a [u8]) -> Symbol<'a> {
        let address = row.n_value.get(self.endian);
        let section = usize::from(row.n_sect).checked_sub(1).and_then(|i| self.sections.get(i));
        let kind = match section.map(|s| s.kind) {
            Some(SectionKind::Code) => SymbolKind::Function,
            // S_THREAD_LOCAL_VARIABLES and its kin
            Some(_) if section.is_some_and(|s| (0x11..=0x15).contains(&s.raw_kind)) => SymbolKind::ThreadLocal,
            Some(_) => SymbolKind::Object,
            None => SymbolKind::Unknown,
        };
        // N_EXT, N_WEAK_DEF (mach-o/nlist.h)
        let binding = match (row.n_type.0 & 1 != 0, row.n_desc.get(self.endian).0 & 0x80 != 0) {
            (false, _) => Binding::Local,
            (true, true) => Binding::Weak,
            (true, false) => Binding::Global,
        };
        let is_absolute = row.n_type.0 & 0x0e == 0x02;
        Symbol { name: source_name(name).unwrap_or_default().into(), address, size: 0, kind, binding, is_absolute }
    }

    /// nlist states no sizes: a symbol goes on to the next one of its section, as debuggers assume.
    fn add_sizes(&self, symbols: &mut [Symbol<'a>]) {
        let mut starts: Vec<u64> = symbols.iter().filter(|s| !s.is_absolute).map(|s| s.address).collect();
        starts.sort_unstable();
        for symbol in symbols.iter_mut().filter(|s| !s.is_absolute) {
            let section = self.section_of(symbol.address);
            let Some(end) = section.and_then(|s| s.address.checked_add(s.size)) else { continue };
            let next = starts.partition_point(|a| *a <= symbol.address);
            symbol.size = starts.get(next).copied().unwrap_or(end).min(end).saturating_sub(symbol.address);
        }
    }

    pub(super) fn exports(&self, problems: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        // N_PEXT: visible inside the library alone
        let is_export = |row: &&(&macho::Nlist64<E>, &[u8])| {
            row.0.n_type.0 & 0x11 == 1 && !row.0.is_undefined() && !row.0.is_common()
        };
        let rows = self.rows()?;
        if !rows.iter().any(|row| is_export(&row)) {
            return self.trie(problems);
        }
        let mut all = self.symbols(problems)?;
        let names: std::collections::HashSet<&str> =
            rows.iter().filter(is_export).filter_map(|(_, name)| source_name(name)).collect();
        all.retain(|s| s.binding != Binding::Local && names.contains(s.name.as_ref()));
        Ok(all)
    }

    /// Exports from the trie that dyld itself uses.
    fn trie(&self, problems: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        let range = match (self.exports_trie, self.dyld_info) {
            (Some(command), _) => (command.dataoff.get(self.endian), command.datasize.get(self.endian)),
            (None, Some(info)) => (info.export_off.get(self.endian), info.export_size.get(self.endian)),
            (None, None) => return Ok(Vec::new()),
        };
        let (offset, size) = (u64::from(range.0), u64::from(range.1));
        let bytes = self.region.get(offset, size).ok_or_else(|| {
            Error::damaged("lies beyond the end of the file").in_section("exports trie").at_offset(offset)
        })?;
        let base = self.base();
        let mut symbols = Vec::new();
        for node in trie::exports(bytes)? {
            let Some(name) = source_name(&node.name) else {
                tell(problems, || problem("exports trie", None, "a name is not UTF-8"));
                continue;
            };
            let address = base.wrapping_add(node.address);
            let is_code = self.section_of(address).is_some_and(|s| s.kind == SectionKind::Code);
            symbols.push(Symbol {
                name: name.to_owned().into(),
                address,
                size: 0,
                kind: if is_code { SymbolKind::Function } else { SymbolKind::Object },
                binding: if node.is_weak { Binding::Weak } else { Binding::Global },
                is_absolute: node.is_absolute,
            });
        }
        self.add_sizes(&mut symbols);
        Ok(symbols)
    }

    /// The section that an address lies in; sections do not overlap.
    fn section_of(&self, address: u64) -> Option<&Section<'a>> {
        let index = self.by_address.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let section = self.sections.get(self.by_address.get(index)?.1)?;
        address.checked_sub(section.address).filter(|distance| *distance < section.size).map(|_| section)
    }

    /// Name of the library with an ordinal, from 1.
    fn library(&self, ordinal: i64) -> Option<&'a str> {
        let index = usize::try_from(ordinal).ok()?.checked_sub(1)?;
        self.libraries.get(index).copied().filter(|name| !name.is_empty())
    }

    pub(super) fn imports(&self, problems: &mut Vec<Problem>) -> Result<Vec<Import<'a>>> {
        let rows = self.rows()?;
        let undefined: Vec<_> = rows.iter().filter(|(row, _)| row.is_undefined()).collect();
        if undefined.is_empty() {
            return self.imports_of_fixups(problems);
        }
        let import = |(row, name): &&(&'a macho::Nlist64<E>, &'a [u8])| {
            let description = row.n_desc.get(self.endian).0;
            // the library's ordinal is in the upper byte; 0xfd to 0xff are special (mach-o/nlist.h)
            let ordinal = i64::from(description >> 8);
            Some(Import {
                name: source_name(name)?,
                library: (ordinal < 0xfd).then(|| self.library(ordinal)).flatten(),
                version: None,
                is_weak: description & 0x40 != 0,
                kind: SymbolKind::Unknown,
            })
        };
        Ok(undefined.iter().filter_map(import).collect())
    }

    /// Without symbol table the names that relocations bind are the imports.
    fn imports_of_fixups(&self, problems: &mut Vec<Problem>) -> Result<Vec<Import<'a>>> {
        let mut seen = std::collections::HashSet::new();
        let relocations = self.relocations(problems)?;
        let bound = relocations.iter().filter_map(|r| r.target.as_ref()).filter(|t| seen.insert(t.name));
        Ok(bound
            .map(|t| Import {
                name: t.name,
                library: t.library,
                version: None,
                is_weak: t.is_weak,
                kind: SymbolKind::Unknown,
            })
            .collect())
    }

    /// Address of the Mach-O header, from which offsets of the loader's tables count.
    fn base(&self) -> u64 {
        let text = self.segments.iter().find(|s| s.file_offset == 0 && s.file_size > 0);
        text.map_or(0, |s| s.address)
    }

    pub(super) fn relocations(&self, problems: &mut Vec<Problem>) -> Result<Vec<Relocation<'a>>> {
        let mut all = Vec::new();
        if let Some(command) = self.chained_fixups {
            fixups::chained(self, command, &mut all, problems)?;
        }
        if let Some(info) = self.dyld_info {
            fixups::opcodes(self, info, &mut all)?;
        }
        Ok(all)
    }

    /// Starts from `LC_FUNCTION_STARTS`, which `strip` leaves in; sizes are not stated there.
    pub(super) fn function_starts(&self) -> Result<Vec<(u64, u64)>> {
        let base = self.base();
        let command = self.function_starts;
        let Some(mut starts) = command.and_then(|c| c.function_starts(self.endian, self.region, base).ok()) else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        while let Ok(Some(start)) = starts.next() {
            all.push((start, 0));
            all_functions(all.len() as u64, "function starts")?;
        }
        Ok(all)
    }

    pub(super) fn needed(&self, _: &mut Vec<Problem>) -> Result<Needed<'a>> {
        Ok(Needed {
            libraries: self.libraries.iter().copied().filter(|name| !name.is_empty()).collect(),
            optional_libraries: self.optional_libraries.clone(),
            run_paths: self.run_paths.clone(),
            own_name: self.own_name,
            versions: Vec::new(),
            defined_versions: Vec::new(),
            executable_stack: None,
        })
    }

    pub(super) fn init_functions(&self, image: &Image<'a>, relocations: &[Relocation<'a>]) -> Result<Vec<u64>> {
        // S_MOD_INIT_FUNC_POINTERS, S_INIT_FUNC_OFFSETS (mach-o/loader.h)
        let (pointers, offsets) = (0x9, 0x16);
        let mut functions = Vec::new();
        for section in self.sections.iter().filter(|s| s.raw_kind == pointers || s.raw_kind == offsets) {
            let width = if section.raw_kind == pointers { 8 } else { 4 };
            all_functions(section.size / width, section.name)?;
            let end = section.address.saturating_add(section.size);
            let by_slot: std::collections::HashMap<u64, &Relocation<'a>> = relocations
                .iter()
                .filter(|r| (section.address..end).contains(&r.address))
                .map(|r| (r.address, r))
                .collect();
            for slot in (0..section.size / width).map(|i| section.address.wrapping_add(i * width)) {
                let value = if section.raw_kind == offsets {
                    let bytes = image.read(slot, 4);
                    let word = bytes.and_then(|b| object::pod::from_bytes::<U32<E>>(b).ok());
                    word.map(|(w, _)| self.base().wrapping_add(u64::from(w.get(self.endian))))
                } else if let Some(relocation) = by_slot.get(&slot) {
                    Some(relocation.addend.cast_unsigned()).filter(|_| relocation.target.is_none())
                } else {
                    let bytes = image.read(slot, 8);
                    let word = bytes.and_then(|b| object::pod::from_bytes::<U64<E>>(b).ok());
                    word.map(|(w, _)| w.get(self.endian))
                };
                functions.extend(value.filter(|v| *v != 0));
            }
        }
        Ok(functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trie and the symbol table of one library state the same exports.
    #[test]
    fn the_trie_agrees_with_the_symbol_table() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus/macos");
        for name in ["2.15.0-cpu-mlp_dynamic-macos_arm64.so", "2.15.0-cpu-mlp_dynamic-macos_arm64-dyldinfo.so"] {
            let path = folder.join(name);
            if !path.exists() {
                return;
            }
            let bytes = crate::source::open_file(&path).unwrap();
            let (_, library) = MachO::open(Region::whole(&*bytes)).unwrap();
            let sorted = |symbols: Vec<Symbol<'_>>| {
                let mut rows: Vec<_> =
                    symbols.into_iter().map(|s| (s.name.into_owned(), s.address, s.binding)).collect();
                rows.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
                rows
            };
            let table = sorted(library.exports(&mut Vec::new()).unwrap());
            let trie = sorted(library.trie(&mut Vec::new()).unwrap());
            let differing = table.iter().zip(&trie).find(|(a, b)| a != b);
            assert!(!table.is_empty() && table.len() == trie.len(), "{name}: {} and {}", table.len(), trie.len());
            assert_eq!(differing, None, "{name}");
        }
    }

    /// An arm64 library: a segment with one section of initialisers, which are not in the file, one more command, and what
    /// it points at, from [`TAIL`] on.
    fn library(initialisers: usize, command: &[u32], tail: &[u8]) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let name = |name: &str| [name.as_bytes(), &vec![0; 16 - name.len()]].concat();
        let mut file = [
            words(&[0xfeed_facf, 0x0100_000c, 0, 6, 2, 152 + 4 * command.len() as u32, 0, 0]),
            words(&[macho::LC_SEGMENT_64.0, 152]),
            name("__TEXT"),
            // address, bytes in memory, place and bytes in the file
            words(&[0, 0, 0x1000, 0, 0, 0, TAIL, 0]),
            words(&[5, 5, 1, 0]),
            name("__mod_init_func"),
            name("__TEXT"),
            words(&[0x10_0000, 0, 8 * initialisers as u32, 0, 0, 3, 0, 0, 9, 0, 0, 0]),
            words(command),
        ]
        .concat();
        file.resize(TAIL as usize, 0);
        file.extend(tail);
        file
    }
    const TAIL: u32 = 0x100;

    fn read<T>(file: &[u8], of: impl FnOnce(&Image<'_>, &MachO<'_>) -> T) -> T {
        let file = file.to_vec();
        let image = Image::open(Region::whole(&file)).unwrap();
        let super::super::Reader::MachO(library) = &image.reader else { panic!("another format") };
        of(&image, library)
    }

    #[test]
    fn tables_of_functions_have_a_border() {
        let of = |count: usize| {
            let starts = [macho::LC_FUNCTION_STARTS.0, 16, TAIL, count as u32];
            read(&library(count, &starts, &vec![1; count]), |image, library| {
                [
                    image.init_functions().map(|all| all.len()).map_err(|e| e.to_string()),
                    library.function_starts().map(|all| all.len()).map_err(|e| e.to_string()),
                ]
            })
        };
        assert_eq!(of(limits::SYMBOLS), [Ok(0), Ok(limits::SYMBOLS)]);
        for refused in of(limits::SYMBOLS + 1) {
            assert!(refused.unwrap_err().contains("more than 1048576 functions"));
        }
    }

    #[test]
    fn names_of_the_symbol_table_have_a_border() {
        let of = |count: usize| {
            // defined, visible symbols of one long name
            let rows = [1u32, 0x10f, 0, 0].map(u32::to_le_bytes).concat().repeat(count);
            let names = [vec![0], vec![b'n'; limits::SYMBOL_NAME_BYTES - 1], vec![0]].concat();
            let at = TAIL + rows.len() as u32;
            let symtab = [macho::LC_SYMTAB.0, 24, TAIL, count as u32, at, names.len() as u32];
            let file = library(0, &symtab, &[rows, names].concat());
            read(&file, |_, library| library.rows().map(|all| all.len()).map_err(|e| e.to_string()))
        };
        let most = limits::SYMBOL_NAMES_BYTES as usize / limits::SYMBOL_NAME_BYTES;
        assert_eq!(of(most), Ok(most));
        assert!(of(most + 1).unwrap_err().contains("more than 268435456 bytes of names"));
    }
}
