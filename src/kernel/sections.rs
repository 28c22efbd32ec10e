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

/// What the driver maps has to be there: a cut image often has all of its sections, and lacks what comes last.
fn check_segments(region: Region<'_>, head: Fields<'_>) -> Result<()> {
    let cut = || Error::damaged("program header is cut off").in_section("program headers");
    let table = head.u64(0x20).ok_or_else(cut)?;
    let (size, count) = (head.u16(0x36).ok_or_else(cut)?, head.u16(0x38).ok_or_else(cut)?);
    if count == 0 || size != 56 {
        return Ok(());
    }
    let rows = region.get(table, u64::from(size) * u64::from(count)).ok_or_else(|| {
        Error::damaged(format!("{count} program headers end beyond the file's {} bytes", region.len()))
            .in_section("program headers")
            .at_offset(table)
            .help("the file is cut off: copy it again")
    })?;
    for row in rows.chunks_exact(usize::from(size)).map(Fields) {
        let (offset, bytes) = (row.u64(8).ok_or_else(cut)?, row.u64(0x20).ok_or_else(cut)?);
        if offset.checked_add(bytes).is_none_or(|end| end > region.len()) {
            let message = format!("{bytes} bytes at {offset} end beyond the file's {} bytes", region.len());
            return Err(Error::damaged(message)
                .in_section("program headers")
                .help("the file is cut off: copy it again"));
        }
    }
    Ok(())
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
        check_segments(region, head)?;
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
        let names = elf
            .sections
            .get(names_index)
            .ok_or_else(|| Error::damaged("names of the sections are not in the file").in_section("section table"))?;
        let names = elf.bytes_of(names, ".shstrtab")?;
        for (section, offset) in elf.sections.iter_mut().zip(name_offsets) {
            section.name = name_at(names, offset);
        }
        Ok(elf)
    }

    /// The first section of that name, with its index.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Its bytes.
    ///
    /// # Errors
    /// They are more than the cap, or not in the file.
    fn bytes_of(&self, section: &Section, name: &str) -> Result<&'a [u8]> {
        let size = section.size;
        if size > limits::KERNEL_SECTION_BYTES {
            let what = format!("section of {size} bytes, more than {}", limits::KERNEL_SECTION_BYTES);
            return Err(Error::limit(what).in_section(name).at_offset(section.offset));
        }
        let there = if section.kind == NOBITS { None } else { self.region.get(section.offset, size) };
        there.ok_or_else(|| {
            Error::damaged(format!("section of {size} bytes does not lie in the file's {}", self.region.len()))
                .in_section(name)
                .at_offset(section.offset)
                .help("the file is cut off: copy it again")
        })
    }

    /// Bytes of the first section of that name.
    ///
    /// # Errors
    /// The section is there and its bytes are not, or are more than the cap.
    pub fn named(&self, name: &str) -> Result<Option<&'a [u8]>> {
        let Some(section) = self.section(name).filter(|s| s.kind != NOBITS) else { return Ok(None) };
        self.bytes_of(section, name).map(Some)
    }

    /// The symbol table; empty when the image has none. The cap on a section's bytes leaves room for 699,050 symbols.
    ///
    /// # Errors
    /// Its bytes or those of its names are not there, or are more than the cap.
    pub fn symbols(&self) -> Result<Vec<Symbol>> {
        let Some(table) = self.sections.iter().find(|s| s.kind == SYMTAB) else { return Ok(Vec::new()) };
        let bytes = self.bytes_of(table, ".symtab")?;
        let names = self.sections.get(table.link as usize).ok_or_else(|| {
            Error::damaged("its names are not in the file").in_section(".symtab").at_offset(table.offset)
        })?;
        let names = self.bytes_of(names, ".strtab")?;
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An image with sections of these names, types, offsets and sizes behind the header; the last one holds the names.
    pub(in crate::kernel) fn image(sections: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        let mut rows = vec![0; 64];
        let mut names = vec![0];
        let mut add = |name: &str, kind: u32, bytes: &[u8], names: &mut Vec<u8>| {
            let name_at = names.len() as u32;
            names.extend([name.as_bytes(), b"\0"].concat());
            let bytes = if bytes.is_empty() { names.as_slice() } else { bytes };
            let mut row = [name_at.to_le_bytes(), kind.to_le_bytes()].concat();
            row.resize(24, 0);
            row.extend((file.len() as u64).to_le_bytes());
            row.extend((bytes.len() as u64).to_le_bytes());
            // symbols are named by the last section too
            row.extend((sections.len() as u32 + 1).to_le_bytes());
            row.resize(64, 0);
            rows.extend(row);
            file.extend(bytes);
        };
        for (name, kind, bytes) in sections {
            add(name, *kind, bytes, &mut names);
        }
        add(".shstrtab", 3, &[], &mut names);
        let table = file.len() as u64;
        file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        let count = u16::try_from(sections.len() + 2).unwrap();
        file[0x3a..0x40].copy_from_slice(&[[64, 0], count.to_le_bytes(), (count - 1).to_le_bytes()].concat());
        file.extend(rows);
        file
    }

    #[test]
    fn sections_of_an_image_have_a_border() {
        let of = |count: usize| {
            let file = image(&vec![("x", 1, b"x".as_slice()); count - 2]);
            Elf::read(Region::whole(&file)).map(|elf| elf.sections.len())
        };
        assert_eq!(of(limits::SECTIONS).unwrap(), limits::SECTIONS);
        let refused = of(limits::SECTIONS + 1).unwrap_err();
        assert!(refused.message().contains("16385 sections, more than 16384"), "{refused}");
    }

    #[test]
    fn bytes_of_a_section_have_a_border() {
        let of = |len: u64| {
            let file = image(&[(".nv.info", 1, &vec![1; usize::try_from(len).unwrap()]), (".symtab", 2, b"x")]);
            let elf = Elf::read(Region::whole(&file)).unwrap();
            elf.named(".nv.info").map(|bytes| bytes.unwrap_or_default().len() as u64)
        };
        assert_eq!(of(limits::KERNEL_SECTION_BYTES).unwrap(), limits::KERNEL_SECTION_BYTES);
        let refused = of(limits::KERNEL_SECTION_BYTES + 1).unwrap_err();
        assert_eq!(refused.kind(), crate::error::ErrorKind::Limit);
        assert!(refused.message().contains("16777217 bytes, more than 16777216"), "{refused}");
    }

    #[test]
    fn symbols_have_the_border_of_their_section() {
        let of = |count: usize| {
            let file = image(&[(".symtab", SYMTAB, &vec![0; 24 * count])]);
            Elf::read(Region::whole(&file)).unwrap().symbols().map(|symbols| symbols.len())
        };
        let most = limits::KERNEL_SECTION_BYTES as usize / 24;
        // so that no cap of its own is needed
        assert!(most < limits::SYMBOLS);
        assert_eq!(of(most).unwrap(), most);
        assert_eq!(of(most + 1).unwrap_err().kind(), crate::error::ErrorKind::Limit);
    }

    #[test]
    fn names_in_a_table_have_a_border() {
        let of = |len: usize| name_at(&[vec![b'n'; len], vec![0]].concat(), 0).len();
        assert_eq!(of(limits::SYMBOL_NAME_BYTES), limits::SYMBOL_NAME_BYTES);
        assert_eq!(of(limits::SYMBOL_NAME_BYTES + 1), limits::SYMBOL_NAME_BYTES);
    }
}
