//! The section table of a GPU image, read byte by byte: kernels inside a library begin at odd addresses
//! (torch 2.8 to 2.11), where readers that cast aligned structures refuse.

use crate::error::{Error, Result};
use crate::limits;
use crate::source::Region;

/// `SHT_NOBITS`
pub const NOBITS: u32 = 8;
const SYMTAB: u32 = 2;

/// Little-endian numbers at an offset.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// `len` bytes from `offset`.
    pub fn bytes(self, offset: usize, len: usize) -> Option<&'a [u8]> {
        self.0.get(offset..offset.checked_add(len)?)
    }
    /// One byte.
    pub fn u8(self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }
    /// Two bytes.
    pub fn u16(self, offset: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(offset, 2)?.try_into().ok()?))
    }
    /// Four bytes.
    pub fn u32(self, offset: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(offset, 4)?.try_into().ok()?))
    }
    /// Eight bytes.
    pub fn u64(self, offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(offset, 8)?.try_into().ok()?))
    }
}

/// Text up to the first NUL.
pub fn c_text(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// The header's fields that tell the target.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// `EI_OSABI`
    pub os_abi: u8,
    /// `EI_ABIVERSION`
    pub abi_version: u8,
    /// `e_version`
    pub version: u32,
    /// `e_flags`
    pub flags: u32,
}

/// One section.
#[derive(Debug, Clone)]
pub struct Section {
    /// its name
    pub name: String,
    /// `sh_type`
    pub kind: u32,
    /// `sh_offset`
    pub offset: u64,
    /// `sh_size`
    pub size: u64,
    /// `sh_link`
    pub link: u32,
}

/// One symbol.
#[derive(Debug, Clone)]
pub struct Symbol {
    /// its name
    pub name: String,
    /// low half of `st_info`: 1 object, 2 function
    pub kind: u8,
    /// `st_other`
    pub other: u8,
    /// index of its section
    pub section: u16,
    /// `st_value`, an offset in its section
    pub value: u64,
}

/// A 64-bit little-endian ELF image.
#[derive(Debug)]
pub struct Elf<'a> {
    region: Region<'a>,
    /// header
    pub header: Header,
    /// sections, the empty first one included, so that indices hold
    pub sections: Vec<Section>,
}

impl<'a> Elf<'a> {
    /// Reads header and section table.
    pub fn read(region: Region<'a>) -> Result<Self> {
        let cut = || Error::damaged("ELF header is cut off").in_section("ELF header");
        let head = Fields(region.get(0, 64).ok_or_else(cut)?);
        if head.u8(4) != Some(2) || head.u8(5) != Some(1) {
            return Err(Error::damaged("not 64-bit little-endian, as every GPU image is").in_section("ELF header"));
        }
        let header = Header {
            os_abi: head.u8(7).ok_or_else(cut)?,
            abi_version: head.u8(8).ok_or_else(cut)?,
            version: head.u32(0x14).ok_or_else(cut)?,
            flags: head.u32(0x30).ok_or_else(cut)?,
        };
        let table = head.u64(0x28).ok_or_else(cut)?;
        let entry_size = u64::from(head.u16(0x3a).ok_or_else(cut)?);
        let count = usize::from(head.u16(0x3c).ok_or_else(cut)?);
        let names_index = usize::from(head.u16(0x3e).ok_or_else(cut)?);
        let mut elf = Self { region, header, sections: Vec::new() };
        if count == 0 {
            return Ok(elf);
        }
        if entry_size != 64 {
            return Err(
                Error::damaged(format!("section headers of {entry_size} bytes, not 64")).in_section("ELF header")
            );
        }
        if count > limits::SECTIONS {
            return Err(
                Error::limit(format!("{count} sections, more than {}", limits::SECTIONS)).in_section("ELF header")
            );
        }
        let bytes = region.get(table, 64 * count as u64).ok_or_else(|| {
            Error::damaged(format!("section table of {count} entries ends beyond the file's {} bytes", region.len()))
                .in_section("section table")
                .at_offset(table)
                .help("the file is cut off: copy it again")
        })?;
        let mut name_offsets = Vec::with_capacity(count);
        for row in bytes.chunks_exact(64).map(Fields) {
            let cut = || Error::damaged("section header is cut off").in_section("section table").at_offset(table);
            name_offsets.push(row.u32(0).ok_or_else(cut)?);
            elf.sections.push(Section {
                name: String::new(),
                kind: row.u32(4).ok_or_else(cut)?,
                offset: row.u64(0x18).ok_or_else(cut)?,
                size: row.u64(0x20).ok_or_else(cut)?,
                link: row.u32(0x28).ok_or_else(cut)?,
            });
        }
        let names =
            elf.sections.get(names_index).and_then(|s| elf.bytes_of(s)).ok_or_else(|| {
                Error::damaged("names of the sections are not in the file").in_section("section table")
            })?;
        for (section, offset) in elf.sections.iter_mut().zip(name_offsets) {
            section.name = name_at(names, offset);
        }
        Ok(elf)
    }

    /// The first section of that name, with its index.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Its bytes; `None` for those that take no room in the file, lie outside it or exceed the cap.
    pub fn bytes_of(&self, section: &Section) -> Option<&'a [u8]> {
        if section.kind == NOBITS || section.size > limits::KERNEL_SECTION_BYTES {
            return None;
        }
        self.region.get(section.offset, section.size)
    }

    /// Bytes of the first section of that name.
    ///
    /// # Errors
    /// The section is there and its bytes are not.
    pub fn named(&self, name: &str) -> Result<Option<&'a [u8]>> {
        let Some(section) = self.section(name).filter(|s| s.kind != NOBITS) else { return Ok(None) };
        self.bytes_of(section).map(Some).ok_or_else(|| {
            Error::damaged(format!(
                "section of {} bytes does not lie in the file's {}",
                section.size,
                self.region.len()
            ))
            .in_section(name)
            .at_offset(section.offset)
            .help("the file is cut off: copy it again")
        })
    }

    /// The symbol table; empty when the image has none.
    pub fn symbols(&self) -> Result<Vec<Symbol>> {
        let Some(table) = self.sections.iter().find(|s| s.kind == SYMTAB) else { return Ok(Vec::new()) };
        let beyond =
            || Error::damaged("symbol table does not lie in the file").in_section(".symtab").at_offset(table.offset);
        let bytes = self.bytes_of(table).ok_or_else(beyond)?;
        let names = self.sections.get(table.link as usize).and_then(|s| self.bytes_of(s)).ok_or_else(beyond)?;
        if bytes.len() / 24 > limits::SYMBOLS {
            return Err(Error::limit(format!("more than {} symbols", limits::SYMBOLS)).in_section(".symtab"));
        }
        let symbol = |row: Fields<'_>| {
            Some(Symbol {
                name: name_at(names, row.u32(0)?),
                kind: row.u8(4)? & 15,
                other: row.u8(5)?,
                section: row.u16(6)?,
                value: row.u64(8)?,
            })
        };
        Ok(bytes.chunks_exact(24).map(Fields).filter_map(symbol).collect())
    }
}

fn name_at(table: &[u8], offset: u32) -> String {
    let rest = table.get(offset as usize..).unwrap_or_default();
    c_text(rest.get(..rest.len().min(limits::SYMBOL_NAME_BYTES)).unwrap_or_default())
}
