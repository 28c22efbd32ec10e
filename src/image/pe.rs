//! PE: import and export directories, base relocations, the COFF symbols that MinGW leaves in.
//!
//! Addresses are the preferred base plus RVA.

use super::symbol::{
    Binding, Import, Needed, Relocation, RelocationKind, RelocationTarget, Section, SectionKind, Segment, Symbol,
    SymbolKind, text,
};
use super::{Architecture, Format, Header, Image, all_functions, problem, tell};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::model::Problem;
use crate::source::Region;
use goblin::pe::characteristic;
use goblin::pe::section_table as characteristics;
use object::LittleEndian as LE;
use object::pe::{self, ImageDosHeader, ImageFileHeader, ImageNtHeaders64, ImageThunkData64};
use object::read::SymbolIndex;
use object::read::coff::{SectionTable, SymbolTable};
use object::read::pe::{DataDirectories, ExportTarget, ImageNtHeaders, Import as Thunk, ImportThunkList};
use std::collections::HashMap;

/// A library in PE form.
pub(super) struct Pe<'a> {
    region: Region<'a>,
    base: u64,
    headers: &'a ImageFileHeader,
    directories: DataDirectories<'a>,
    table: SectionTable<'a>,
    segments: Vec<Segment<'a>>,
}

fn wrong(table: &'static str) -> impl Fn(object::read::Error) -> Error {
    move |e| Error::damaged(e.to_string()).in_section(table)
}

/// `IMAGE_FILE_MACHINE_*`.
fn architecture(machine: u16) -> Architecture {
    match machine {
        0x8664 => Architecture::X86_64,
        0xaa64 => Architecture::Aarch64,
        other => Architecture::Other(u32::from(other)),
    }
}

impl<'a> Pe<'a> {
    pub(super) fn open(region: Region<'a>) -> Result<(Header<'a>, Self)> {
        let dos = ImageDosHeader::parse(region).map_err(wrong("DOS header"))?;
        let mut offset = u64::from(dos.nt_headers_offset());
        let magic = offset.checked_add(24).and_then(|at| region.get(at, 2));
        if magic == Some(&[0x0b, 0x01]) {
            return Err(Error::new(ErrorKind::Unsupported, "a 32-bit PE file; torch builds 64-bit ones alone"));
        }
        let (nt, directories) = ImageNtHeaders64::parse(region, &mut offset).map_err(wrong("PE header"))?;
        let table = nt.sections(region, offset).map_err(wrong("section headers"))?;
        if table.len() > limits::SEGMENTS {
            return Err(Error::limit(format!("{} sections", table.len())).in_section("section headers"));
        }
        let base = nt.optional_header.image_base.get(LE);
        let strings = nt.symbols(region).ok();
        let mut problems = Vec::new();
        let mut segments = Vec::new();
        let mut sections = Vec::new();
        for row in table.iter() {
            let flags = row.characteristics.get(LE).0;
            let raw = row.name.as_slice();
            let short = raw.get(..memchr::memchr(0, raw).unwrap_or(raw.len())).unwrap_or_default();
            let long = strings.as_ref().and_then(|s| row.name(s.strings()).ok());
            let name = long.and_then(text).or_else(|| text(short)).unwrap_or_default();
            let address = base.wrapping_add(u64::from(row.virtual_address.get(LE)));
            let memory_size = u64::from(row.virtual_size.get(LE)).max(1);
            let file_size = u64::from(row.size_of_raw_data.get(LE)).min(memory_size);
            let file_offset = u64::from(row.pointer_to_raw_data.get(LE));
            if file_offset.saturating_add(file_size) > region.len() {
                tell(&mut problems, || {
                    let what = "goes on behind the end of the file: the file is cut off";
                    let affects = vec!["library".to_owned()];
                    Problem { affects, ..problem(name, Some(file_offset), what) }
                });
            }
            let is_executable = flags & characteristics::IMAGE_SCN_MEM_EXECUTE != 0;
            let is_writable = flags & characteristics::IMAGE_SCN_MEM_WRITE != 0;
            let kind = match () {
                () if flags & characteristics::IMAGE_SCN_MEM_DISCARDABLE != 0 => SectionKind::NotMapped,
                () if is_executable => SectionKind::Code,
                () if flags & characteristics::IMAGE_SCN_CNT_UNINITIALIZED_DATA != 0 => SectionKind::ZeroFill,
                () if is_writable => SectionKind::Data,
                () => SectionKind::ReadOnlyData,
            };
            let lies_inside = file_offset.checked_add(file_size).is_some_and(|end| end <= region.len());
            let offset = (file_size > 0 && lies_inside && kind != SectionKind::ZeroFill).then_some(file_offset);
            let size = if offset.is_some() { file_size } else { memory_size };
            sections.push(Section {
                name,
                segment: "",
                address,
                size,
                offset,
                flags: u64::from(flags),
                raw_kind: 0,
                kind,
            });
            segments.push(Segment {
                name,
                address,
                memory_size,
                file_offset,
                file_size,
                is_readable: flags & characteristics::IMAGE_SCN_MEM_READ != 0,
                is_writable,
                is_executable,
            });
        }
        let entry = nt.optional_header.address_of_entry_point.get(LE);
        let kind = nt.file_header.characteristics.get(LE).0;
        if kind & characteristic::IMAGE_FILE_DLL == 0 {
            tell(&mut problems, || problem("PE header", None, "is a program, not a library"));
        }
        let header = Header {
            format: Format::Pe,
            architecture: architecture(nt.file_header.machine.get(LE).0),
            os: "windows",
            entry: (entry != 0).then(|| base.wrapping_add(u64::from(entry))),
            segments: segments.clone(),
            sections,
            problems,
        };
        Ok((header, Self { region, base, headers: &nt.file_header, directories, table, segments }))
    }

    fn address(&self, rva: u32) -> u64 {
        self.base.wrapping_add(u64::from(rva))
    }

    pub(super) fn exports(&self, problems: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        let table = self.directories.export_table(self.region, &self.table).map_err(wrong("export directory"))?;
        let Some(table) = table else { return Ok(Vec::new()) };
        let mut symbols = Vec::new();
        for (pointer, index) in table.name_iter() {
            let name = table.name_from_pointer(pointer).ok().and_then(text);
            let (Some(name), Ok(target)) = (name, table.target_by_index(index)) else {
                tell(problems, || problem("export directory", None, format!("entry {} cannot be read", index.0)));
                continue;
            };
            let ExportTarget::Address(rva) = target else { continue };
            let address = self.address(rva);
            let code = self.segments.iter().any(|s| s.is_executable && s.contains(address));
            symbols.push(Symbol {
                name: name.into(),
                address,
                size: 0,
                kind: if code { SymbolKind::Function } else { SymbolKind::Object },
                binding: Binding::Global,
                is_absolute: false,
            });
        }
        Ok(symbols)
    }

    /// Calls `found` with library, symbol, address of its slot and whether it is loaded at first use.
    fn thunks(&self, problems: &mut Vec<Problem>, mut found: impl FnMut(&'a str, &'a str, u64, bool)) -> Result<()> {
        const TABLE: &str = "import directory";
        let mut budget = limits::SYMBOLS;
        let mut walk = |library: &'a str,
                        mut list: ImportThunkList<'a>,
                        slots: u32,
                        delayed: bool,
                        import: &dyn Fn(ImageThunkData64) -> object::read::Result<Thunk<'a>>,
                        problems: &mut Vec<Problem>|
         -> Result<()> {
            let mut slot = slots;
            while let Some(thunk) = list.next::<ImageNtHeaders64>().map_err(wrong(TABLE))? {
                budget = budget.checked_sub(1).ok_or_else(|| Error::limit("too many imports").in_section(TABLE))?;
                match import(thunk) {
                    Ok(Thunk::Name(_, name)) => match text(name) {
                        Some(name) => found(library, name, self.address(slot), delayed),
                        None => tell(problems, || problem(TABLE, None, "a name is not UTF-8")),
                    },
                    Ok(Thunk::Ordinal(number)) => {
                        tell(problems, || {
                            problem(TABLE, None, format!("{library}: number {number} is imported without a name"))
                        });
                    }
                    Err(e) => tell(problems, || problem(TABLE, None, format!("{library}: {e}"))),
                }
                slot = slot.wrapping_add(8);
            }
            Ok(())
        };
        if let Some(table) = self.directories.import_table(self.region, &self.table).map_err(wrong(TABLE))? {
            let mut rows = table.descriptors().map_err(wrong(TABLE))?;
            while let Some(row) = rows.next().map_err(wrong(TABLE))? {
                let library = table.name(row.name.get(LE)).ok().and_then(text).unwrap_or_default();
                let slots = row.first_thunk.get(LE);
                let names = Some(row.original_first_thunk.get(LE)).filter(|a| *a != 0).unwrap_or(slots);
                let list = table.thunks(names).map_err(wrong(TABLE))?;
                walk(library, list, slots, false, &|thunk| table.import::<ImageNtHeaders64>(thunk), problems)?;
            }
        }
        let delayed = self.directories.delay_load_import_table(self.region, &self.table);
        if let Some(table) = delayed.map_err(wrong(TABLE))? {
            let mut rows = table.descriptors().map_err(wrong(TABLE))?;
            while let Some(row) = rows.next().map_err(wrong(TABLE))? {
                let library = table.name(row.dll_name_rva.get(LE)).ok().and_then(text).unwrap_or_default();
                let list = table.thunks(row.import_name_table_rva.get(LE)).map_err(wrong(TABLE))?;
                let slots = row.import_address_table_rva.get(LE);
                walk(library, list, slots, true, &|thunk| table.import::<ImageNtHeaders64>(thunk), problems)?;
            }
        }
        Ok(())
    }

    pub(super) fn imports(&self, problems: &mut Vec<Problem>) -> Result<Vec<Import<'a>>> {
        let mut imports = Vec::new();
        self.thunks(problems, |library, name, _, is_weak| {
            imports.push(Import { name, library: Some(library), version: None, is_weak, kind: SymbolKind::Unknown });
        })?;
        Ok(imports)
    }

    pub(super) fn symbols(&self, _: &mut Vec<Problem>) -> Result<Vec<Symbol<'a>>> {
        const TABLE: &str = "COFF symbol table";
        if self.headers.number_of_symbols.get(LE) as usize > limits::SYMBOLS {
            return Err(Error::limit("too many symbols").in_section(TABLE));
        }
        let table: SymbolTable<'a, Region<'a>> = SymbolTable::parse(self.headers, self.region).map_err(wrong(TABLE))?;
        let mut symbols = Vec::new();
        let mut index = 0usize;
        while let Ok(row) = table.symbol(SymbolIndex(index)) {
            index = index.saturating_add(1).saturating_add(usize::from(row.number_of_aux_symbols));
            symbols.extend(self.coff_symbol(row, &table));
        }
        self.add_sizes(&mut symbols);
        Ok(symbols)
    }

    fn coff_symbol(&self, row: &'a pe::ImageSymbol, table: &SymbolTable<'a, Region<'a>>) -> Option<Symbol<'a>> {
        use object::read::coff::Symbol as _;
        let number = row.section_number.get(LE).cast_signed();
        let name = row.name(table.strings()).ok().and_then(text)?;
        // section number 0 is undefined, -1 absolute, -2 debugging; storage class 2 external, 105 weak
        let class = row.storage_class.0;
        let binding = match class {
            2 => Binding::Global,
            105 => Binding::Weak,
            3 | 6 => Binding::Local,
            _ => return None,
        };
        let value = u64::from(row.value.get(LE));
        let section = match number {
            -1 => None,
            n => Some(self.segments.get(usize::try_from(n).ok()?.checked_sub(1)?)?),
        };
        let is_function = row.typ.get(LE).0 & 0x20 != 0;
        let kind = match section {
            Some(s) if s.name == name => SymbolKind::Section,
            Some(_) if is_function => SymbolKind::Function,
            Some(s) if !s.is_executable => SymbolKind::Object,
            _ => SymbolKind::Unknown,
        };
        let address = section.map_or(value, |s| s.address.wrapping_add(value));
        Some(Symbol { name: name.into(), address, size: 0, kind, binding, is_absolute: section.is_none() })
    }

    /// COFF states no sizes: a function goes on to the next symbol of its section.
    fn add_sizes(&self, symbols: &mut [Symbol<'a>]) {
        let mut starts: Vec<u64> = symbols.iter().filter(|s| !s.is_absolute).map(|s| s.address).collect();
        starts.sort_unstable();
        for symbol in symbols.iter_mut().filter(|s| s.kind != SymbolKind::Section && !s.is_absolute) {
            let Some(segment) = self.segments.iter().find(|s| s.contains(symbol.address)) else { continue };
            let end = segment.address.saturating_add(segment.memory_size);
            let next = starts.partition_point(|a| *a <= symbol.address);
            symbol.size = starts.get(next).copied().unwrap_or(end).min(end).saturating_sub(symbol.address);
        }
    }

    pub(super) fn relocations(&self, problems: &mut Vec<Problem>) -> Result<Vec<Relocation<'a>>> {
        const TABLE: &str = "base relocations";
        let mut all = Vec::new();
        let blocks = self.directories.relocation_blocks(self.region, &self.table).map_err(wrong(TABLE))?;
        if let Some(mut blocks) = blocks {
            while let Some(block) = blocks.next().map_err(wrong(TABLE))? {
                for row in block {
                    if all.len() >= limits::RELOCATIONS {
                        return Err(Error::limit("too many relocations").in_section(TABLE));
                    }
                    let address = self.address(row.virtual_address);
                    // IMAGE_REL_BASED_DIR64; the others do not occur in 64-bit code for these machines
                    let kind = match row.typ.0 {
                        10 => RelocationKind::Relative,
                        other => RelocationKind::Other(u32::from(other)),
                    };
                    let addend = self.stored(address).unwrap_or(0);
                    all.push(Relocation { address, size: 8, kind, target: None, addend });
                }
            }
        }
        self.thunks(problems, |library, name, address, is_weak| {
            let target = RelocationTarget { name, address: None, is_indirect: false, is_weak, library: Some(library) };
            all.push(Relocation { address, size: 8, kind: RelocationKind::JumpSlot, target: Some(target), addend: 0 });
        })?;
        Ok(all)
    }

    fn stored(&self, address: u64) -> Option<i64> {
        let (offset, there) = super::symbol::mapped(&self.segments, address)?;
        let bytes = self.region.get(offset, 8).filter(|_| there >= 8)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Start and size of each function of the exception directory (x86-64: 12 bytes a row, begin, end, unwind
    /// data). A row whose unwind data is chained continues another function and is given apart.
    pub(super) fn runtime_functions(&self) -> Result<Vec<(u64, u64)>> {
        if architecture(self.headers.machine.get(LE).0) != Architecture::X86_64 {
            return Ok(Vec::new());
        }
        let directory = self.directories.get(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION);
        let bytes = directory.and_then(|d| d.data(self.region, &self.table).ok()).unwrap_or_default();
        let word = |row: &[u8], at: usize| row.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let rows = bytes.chunks_exact(12);
        all_functions(rows.len() as u64, "exception directory")?;
        Ok(rows
            .filter_map(|row| {
                let (begin, end) = (word(row, 0)?, word(row, 4)?);
                Some((self.address(begin), u64::from(end.checked_sub(begin).filter(|n| *n > 0)?)))
            })
            .collect())
    }

    pub(super) fn needed(&self, problems: &mut Vec<Problem>) -> Result<Needed<'a>> {
        let mut needed = Needed::default();
        let mut seen: HashMap<&'a str, ()> = HashMap::new();
        self.thunks(problems, |library, _, _, is_delayed| {
            if seen.insert(library, ()).is_none() {
                needed.libraries.push(library);
                if is_delayed {
                    needed.optional_libraries.push(library);
                }
            }
        })?;
        if let Ok(Some(table)) = self.directories.export_table(self.region, &self.table) {
            needed.own_name = table.name_from_pointer(table.directory().name.get(LE)).ok().and_then(text);
        }
        Ok(needed)
    }

    /// TLS callbacks, a null-terminated list (`IMAGE_TLS_DIRECTORY64`).
    pub(super) fn init_functions(&self, image: &Image<'a>, _: &[Relocation<'a>]) -> Result<Vec<u64>> {
        let word = |address: u64| image.read(address, 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let Some(directory) = self.directories.get(9).map(|d| d.virtual_address.get(LE)).filter(|a| *a != 0) else {
            return Ok(Vec::new());
        };
        let list = word(self.address(directory).wrapping_add(24)).filter(|a| *a != 0);
        let Some(list) = list else { return Ok(Vec::new()) };
        let slots = (0..=limits::SECTIONS as u64).map(|i| list.wrapping_add(8 * i));
        let functions: Vec<u64> = slots.map_while(|slot| word(slot).filter(|a| *a != 0)).collect();
        if functions.len() > limits::SECTIONS {
            return Err(Error::limit(format!("more than {} functions", limits::SECTIONS)).in_section("TLS callbacks"));
        }
        Ok(functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An x86-64 library with `data` at RVA 0x1000, and one data directory there of `size` bytes.
    fn library(directory: usize, size: usize, data: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x200];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &[0x40]);
        put(0x40, b"PE\0\0\x64\x86\x01");
        // bytes of the optional header, a library
        put(0x54, &[240, 0, 0, 0x20]);
        put(0x58, &[0x0b, 0x02]);
        // sixteen directories
        put(0xc4, &[16]);
        put(0xc8 + 8 * directory, &[0x1000u32, size as u32].map(u32::to_le_bytes).concat());
        put(0x148, b".rdata");
        put(0x150, &[data.len() as u32, 0x1000, data.len() as u32, 0x200].map(u32::to_le_bytes).concat());
        put(0x16c, &0x4000_0040u32.to_le_bytes());
        [&file, data].concat()
    }

    #[test]
    fn tables_of_functions_have_a_border() {
        let exceptions = |count: usize| {
            let file = library(3, 12 * count, &vec![0; 12 * count]);
            let image = Image::open(Region::whole(&file)).unwrap();
            super::super::functions::functions(&image).map(|all| all.len()).map_err(|e| e.to_string())
        };
        // rows of zeros are no functions
        assert_eq!(exceptions(limits::SYMBOLS), Ok(0));
        assert!(exceptions(limits::SYMBOLS + 1).unwrap_err().contains("more than 1048576 functions"));
        let callbacks = |count: usize| {
            // the directory has four addresses, the last one that of the list, which a null ends
            let words = [vec![0, 0, 0, 0x1020], vec![1u64; count], vec![0]].concat();
            let file = library(9, 32, &words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
            let image = Image::open(Region::whole(&file)).unwrap();
            image.init_functions().map(|all| all.len()).map_err(|e| e.to_string())
        };
        assert_eq!(callbacks(limits::SECTIONS), Ok(limits::SECTIONS));
        assert!(callbacks(limits::SECTIONS + 1).unwrap_err().contains("more than 16384 functions"));
    }
}
