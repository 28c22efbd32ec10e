//! The dynamic table and what it points at: names, symbols, their count, versions.

use super::{File, name_in, symbol};
use crate::error::{Error, Result};
use crate::image::symbol::{Binding, Import, Needed, Symbol, SymbolVersion};
use crate::image::{NameBudget, problem, tell};
use crate::limits;
use crate::model::Problem;
use goblin::elf::{dynamic as tag, program_header as ph};
use object::elf::{Dyn64, FileHeader64, Sym64, Verdaux, Verdef, Vernaux, Verneed};
use object::pod::slice_from_bytes;
use object::read::elf::{GnuHashTable, HashTable};
use object::{Endianness, U16, elf};
use std::collections::HashMap;

/// The dynamic table, entries up to `DT_NULL`.
pub(super) struct Dynamic<'a> {
    entries: Vec<(u64, u64)>,
    names: &'a [u8],
}

/// A row of the dynamic symbol table.
pub(super) struct DynamicSymbol<'a> {
    pub(super) name: &'a str,
    pub(super) symbol: Symbol<'a>,
    pub(super) is_defined: bool,
    version: Option<&'a str>,
    pub(super) library: Option<&'a str>,
}

impl<'a> DynamicSymbol<'a> {
    pub(super) fn export(&self) -> Option<Symbol<'a>> {
        let is_export = self.is_defined && self.symbol.binding != Binding::Local && !self.name.is_empty();
        is_export.then(|| Symbol { name: self.name.into(), ..self.symbol.clone() })
    }
    pub(super) fn import(&self) -> Option<Import<'a>> {
        (!self.is_defined && !self.name.is_empty()).then_some(Import {
            name: self.name,
            library: self.library,
            version: self.version,
            is_weak: self.symbol.binding == Binding::Weak,
            kind: self.symbol.kind,
        })
    }
}

/// Library and version by version index.
type Versions<'a> = HashMap<u16, (Option<&'a str>, &'a str)>;

impl<'a> Dynamic<'a> {
    pub(super) fn read(file: &File<'a>) -> Result<Self> {
        let endian = file.endian;
        let program = file.programs.iter().find(|p| p.p_type.get(endian).0 == ph::PT_DYNAMIC);
        let program = program.ok_or_else(|| Error::damaged("there is none").in_section("dynamic table"))?;
        let wrong =
            |what: &str| Error::damaged(what).in_section("dynamic table").at_offset(program.p_offset.get(endian));
        // glibc finds the table by address; the offset is the same in every file that a linker made
        let bytes = file
            .read(program.p_vaddr.get(endian), program.p_filesz.get(endian))
            .or_else(|| file.region.get(program.p_offset.get(endian), program.p_filesz.get(endian)))
            .ok_or_else(|| wrong("lies beyond the end of the file").help("the file is cut off; copy it again"))?;
        let count = bytes.len() / size_of::<Dyn64<Endianness>>();
        let rows: &[Dyn64<Endianness>] = slice_from_bytes(bytes, count).map_err(|()| wrong("unreadable"))?.0;
        let entries: Vec<(u64, u64)> = rows
            .iter()
            .map(|row| (row.d_tag.get(endian).0.cast_unsigned(), row.d_val.get(endian)))
            .take_while(|(tag, _)| *tag != tag::DT_NULL)
            .take(limits::SECTIONS + 1)
            .collect();
        if entries.len() > limits::SECTIONS {
            return Err(Error::limit(format!("more than {} rows", limits::SECTIONS)).in_section("dynamic table"));
        }
        let mut dynamic = Self { entries, names: &[] };
        if let Some(address) = dynamic.value(tag::DT_STRTAB) {
            let all = file.from(address).ok_or_else(|| {
                Error::damaged(format!("address {address:#x} is not in the file")).in_section("dynamic string table")
            })?;
            let len = dynamic.value(tag::DT_STRSZ).and_then(|n| usize::try_from(n).ok()).unwrap_or(all.len());
            dynamic.names = all.get(..len.min(all.len())).unwrap_or_default();
        }
        Ok(dynamic)
    }

    /// The first entry of that tag.
    pub(super) fn value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().find(|e| e.0 == tag).map(|e| e.1)
    }
    fn name(&self, offset: u64) -> Option<&'a str> {
        name_in(self.names, u32::try_from(offset).ok()?)
    }

    /// Number of rows of the symbol table. The dynamic table does not state it: either hash table gives it.
    fn symbol_count(&self, file: &File<'a>, table: u64) -> Result<u64> {
        let wrong = |what: &str| Error::damaged(what).in_section("dynamic symbol hash table");
        let at = |tag| self.value(tag).map(|address| file.from(address).ok_or_else(|| wrong("is not in the file")));
        if let Some(bytes) = at(tag::DT_HASH) {
            let hash = HashTable::<FileHeader64<Endianness>>::parse(file.endian, bytes?);
            return Ok(u64::from(hash.map_err(|e| wrong(&e.to_string()))?.symbol_table_length()));
        }
        if let Some(bytes) = at(tag::DT_GNU_HASH) {
            let hash = GnuHashTable::<FileHeader64<Endianness>>::parse(file.endian, bytes?)
                .map_err(|e| wrong(&e.to_string()))?;
            // `None`: no symbol is defined, so that the hashed part is empty
            let hashed = hash.symbol_table_length(file.endian).unwrap_or_else(|| hash.symbol_base());
            return Ok(u64::from(hashed).max(u64::from(hash.symbol_base())));
        }
        let row = size_of::<Sym64<Endianness>>() as u64;
        match (file.dynsym, self.value(tag::DT_STRTAB)) {
            (Some((address, size)), _) if address == table => Ok(size / row),
            // every linker places the names behind the symbols
            (_, Some(names)) if names > table => Ok((names - table) / row),
            _ => Err(Error::damaged("nothing tells how long it is").in_section("dynamic symbol table")),
        }
    }

    pub(super) fn symbols(&self, file: &File<'a>, problems: &mut Vec<Problem>) -> Result<Vec<DynamicSymbol<'a>>> {
        let Some(address) = self.value(tag::DT_SYMTAB) else { return Ok(Vec::new()) };
        let wrong = |what: String| Error::damaged(what).in_section("dynamic symbol table");
        if let Some(entry) = self.value(tag::DT_SYMENT).filter(|n| *n != size_of::<Sym64<Endianness>>() as u64) {
            return Err(wrong(format!("entry size is {entry}, not 24")));
        }
        let count = usize::try_from(self.symbol_count(file, address)?).unwrap_or(usize::MAX);
        if count > limits::SYMBOLS {
            return Err(Error::limit(format!("{count} symbols, more than {}", limits::SYMBOLS))
                .in_section("dynamic symbol table"));
        }
        let rows: &[Sym64<Endianness>] = file
            .table(address, count)
            .ok_or_else(|| wrong(format!("{count} rows at {address:#x} do not lie in the file")))?;
        let versions = self.versions(file);
        let indexes: &[U16<Endianness>] =
            self.value(tag::DT_VERSYM).and_then(|address| file.table(address, count)).unwrap_or_default();
        let mut unnamed = 0usize;
        let mut budget = NameBudget::new();
        let symbols = rows
            .iter()
            .enumerate()
            .map(|(i, row)| {
                let name = budget.take(|| self.name(u64::from(row.st_name.get(file.endian)))).unwrap_or_else(|| {
                    unnamed += 1;
                    ""
                });
                // the top bit marks a version that is not the default one
                let index = indexes.get(i).map_or(0, |v| v.get(file.endian) & 0x7fff);
                let version = versions.get(&index);
                DynamicSymbol {
                    name,
                    symbol: symbol(row, file.endian),
                    is_defined: row.st_shndx.get(file.endian).0 != elf::SHN_UNDEF.0,
                    version: version.map(|v| v.1),
                    library: version.and_then(|v| v.0),
                }
            })
            .collect();
        if unnamed > 0 {
            // one of them may be what the host lacks
            let affects = vec!["requires.shims".to_owned(), "requires.leaked_cxx".to_owned()];
            let what = format!("{unnamed} symbols have no readable name");
            problems.push(Problem { affects, ..problem("dynamic symbol table", None, what) });
        }
        Ok(symbols)
    }

    /// Versions by index: those wanted from others (`DT_VERNEED`) and those defined here (`DT_VERDEF`).
    fn versions(&self, file: &File<'a>) -> Versions<'a> {
        let mut versions = Versions::new();
        // what is wrong with either table is told by `needed`
        self.wanted(file, &mut Vec::new(), |library, version, index, _| {
            versions.insert(index, (Some(library), version));
        });
        let _ = self.defined(file, |name, index| {
            versions.entry(index).or_insert((None, name));
        });
        versions
    }

    /// Calls `found` with name and index of every version defined here.
    fn defined(&self, file: &File<'a>, mut found: impl FnMut(&'a str, u16)) -> Result<()> {
        let Some(mut at) = self.value(tag::DT_VERDEF) else { return Ok(()) };
        for nth in 0..self.value(tag::DT_VERDEFNUM).unwrap_or(0) {
            if nth >= limits::SECTIONS as u64 {
                return Err(Error::limit(format!("more than {}", limits::SECTIONS)).in_section("version definitions"));
            }
            let Some(row) = file.record::<Verdef<Endianness>>(at) else { break };
            let first = at.checked_add(u64::from(row.vd_aux.get(file.endian)));
            let name = first
                .and_then(|address| file.record::<Verdaux<Endianness>>(address))
                .and_then(|aux| self.name(u64::from(aux.vda_name.get(file.endian))));
            if let Some(name) = name {
                found(name, row.vd_ndx.get(file.endian).0 & 0x7fff);
            }
            let next = u64::from(row.vd_next.get(file.endian));
            let Some(there) = at.checked_add(next).filter(|_| next != 0) else { break };
            at = there;
        }
        Ok(())
    }

    /// Calls `found` with library, version, index and weakness of every version wanted.
    fn wanted(&self, file: &File<'a>, problems: &mut Vec<Problem>, mut found: impl FnMut(&'a str, &'a str, u16, bool)) {
        const WEAK: u16 = 2;
        const CUT: &str = "are not all in the file";
        let mut damaged = |message: &str| {
            // a version that is lost is a host that is taken for good enough
            let affects = vec!["requires.glibc".to_owned(), "requires.glibcxx".to_owned()];
            problems.push(Problem { affects, ..problem("version needs", None, message) });
        };
        let Some(mut at) = self.value(tag::DT_VERNEED) else { return };
        let too_many = format!("are more than {}", limits::SECTIONS);
        let mut budget = limits::SECTIONS;
        let libraries = self.value(tag::DT_VERNEEDNUM).unwrap_or(0);
        for nth in 0..libraries {
            let Some(row) = file.record::<Verneed<Endianness>>(at) else { return damaged(CUT) };
            let Some(left) = budget.checked_sub(1) else { return damaged(&too_many) };
            budget = left;
            // the version of the table's own form is 1 (ELF gABI); a library without a version would not be listed
            if row.vn_version.get(file.endian) != 1 || row.vn_cnt.get(file.endian) == 0 {
                return damaged("have a row that states no versions");
            }
            let Some(library) = self.name(u64::from(row.vn_file.get(file.endian))) else {
                return damaged("name a library outside of the string table");
            };
            let mut aux_at = at.checked_add(u64::from(row.vn_aux.get(file.endian)));
            for _ in 0..row.vn_cnt.get(file.endian) {
                let aux = aux_at.and_then(|a| file.record::<Vernaux<Endianness>>(a));
                let Some(aux) = aux else { return damaged(CUT) };
                let Some(left) = budget.checked_sub(1) else { return damaged(&too_many) };
                budget = left;
                if let Some(name) = self.name(u64::from(aux.vna_name.get(file.endian))) {
                    let is_weak = aux.vna_flags.get(file.endian).0 & WEAK != 0;
                    found(library, name, aux.vna_other.get(file.endian).0 & 0x7fff, is_weak);
                }
                let next = u64::from(aux.vna_next.get(file.endian));
                aux_at = aux_at.and_then(|a| a.checked_add(next)).filter(|_| next != 0);
            }
            let next = u64::from(row.vn_next.get(file.endian));
            let is_last = nth.saturating_add(1) == libraries;
            match at.checked_add(next).filter(|_| next != 0) {
                Some(there) => at = there,
                None if is_last => return,
                None => return damaged("end before as many libraries as the dynamic table states"),
            }
        }
    }

    pub(super) fn needed(&self, file: &File<'a>, problems: &mut Vec<Problem>) -> Result<Needed<'a>> {
        let mut needed = Needed::default();
        for (tag, value) in &self.entries {
            if !matches!(*tag, tag::DT_NEEDED | tag::DT_RPATH | tag::DT_RUNPATH | tag::DT_SONAME) {
                continue;
            }
            let Some(name) = self.name(*value) else {
                tell(problems, || problem("dynamic table", None, "a library name lies outside the string table"));
                continue;
            };
            match *tag {
                tag::DT_NEEDED => needed.libraries.push(name),
                tag::DT_SONAME => needed.own_name = Some(name),
                _ => needed.run_paths.extend(name.split(':').filter(|p| !p.is_empty())),
            }
        }
        self.wanted(file, problems, |library, name, _, is_weak| {
            needed.versions.push(SymbolVersion { library, name, is_weak });
        });
        self.defined(file, |name, _| needed.defined_versions.push(name))?;
        Ok(needed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Program, object};
    use super::*;
    use crate::image::Image;
    use crate::source::Region;

    /// Where the tables begin that the dynamic table points at.
    const TABLES: u64 = 0x8_0000;

    /// A library with these rows in its dynamic table, and these words behind it.
    fn library(rows: &[(u64, u64)], words: &[u32]) -> Vec<u8> {
        let len = TABLES + 4 * words.len() as u64;
        let all = Program { kind: 1, file_size: len, memory_size: len, ..Program::default() };
        let size = TABLES - 0x1000;
        let dynamic = Program { kind: 2, offset: 0x1000, address: 0x1000, file_size: size, memory_size: size, ..all };
        let mut file = object(len as usize, &[all, dynamic], &[]);
        for (row, place) in rows.iter().zip(file[0x1000..].chunks_exact_mut(16)) {
            place.copy_from_slice(&[row.0.to_le_bytes(), row.1.to_le_bytes()].concat());
        }
        for (word, place) in words.iter().zip(file[TABLES as usize..].chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        file
    }

    /// Numbers of its needs, and what was told.
    fn of(rows: &[(u64, u64)], words: &[u32]) -> std::result::Result<(usize, usize, usize, String), String> {
        let file = library(rows, words);
        let image = Image::open(Region::whole(&file)).map_err(|e| e.to_string())?;
        let needed = image.needed().map_err(|e| e.to_string())?;
        // sections have no names here
        let problems = image.problems().into_iter().filter(|p| p.place.section.as_deref() != Some(".shstrtab"));
        let said = problems.map(|p| p.message).collect::<Vec<_>>().join("; ");
        Ok((needed.libraries.len(), needed.versions.len(), needed.defined_versions.len(), said))
    }

    // names: the empty text before the tables
    const NAMES: (u64, u64) = (tag::DT_STRTAB, TABLES - 8);

    #[test]
    fn rows_of_the_dynamic_table_have_a_border() {
        let of = |count: usize| {
            let needed = vec![(tag::DT_NEEDED, 0); count - 1];
            of(&[vec![NAMES], needed].concat(), &[])
        };
        assert_eq!(of(limits::SECTIONS), Ok((limits::SECTIONS - 1, 0, 0, String::new())));
        assert!(of(limits::SECTIONS + 1).unwrap_err().contains("more than 16384 rows"));
    }

    #[test]
    fn a_lost_name_may_be_what_the_host_lacks() {
        // two symbols, and names of one byte behind them
        let rows = [(tag::DT_SYMTAB, TABLES), (tag::DT_STRTAB, TABLES + 48), (tag::DT_STRSZ, 1)];
        let of = |name: u32| {
            let file = library(&rows, &[[0; 6], [name, 0, 0, 0, 0, 0], [0; 6]].concat());
            let image = Image::open(Region::whole(&file)).unwrap();
            assert_eq!(image.imports().unwrap().len(), 0);
            image.problems().into_iter().any(|p| p.affects.contains(&"requires.shims".to_owned()))
        };
        assert!(!of(0));
        assert!(of(1));
    }

    #[test]
    fn defined_versions_have_a_border() {
        let of = |count: usize| {
            // form and flags, index and count, hash, place of the name (here: the names' own zeros), place of the next
            let words = [1u32, 1 << 16, 0, 20, 20].repeat(count);
            let rows = [NAMES, (tag::DT_VERDEF, TABLES), (tag::DT_VERDEFNUM, count as u64)];
            of(&rows, &[words, vec![0; 2]].concat())
        };
        let (_, _, most, said) = of(limits::SECTIONS).unwrap();
        assert_eq!((most, said.as_str()), (limits::SECTIONS, ""));
        assert!(of(limits::SECTIONS + 1).unwrap_err().contains("version definitions: more than 16384"));
    }

    #[test]
    fn wanted_versions_have_a_border() {
        let of = |count: u32| {
            // a library: form and count of versions, its name, place of the versions, no next one
            let head = [1 | count << 16, 0, 16, 0];
            // a version: hash, flags and index, name, place of the next
            let words = [head.to_vec(), [0u32, 0, 0, 16].repeat(count as usize)].concat();
            of(&[NAMES, (tag::DT_VERNEED, TABLES), (tag::DT_VERNEEDNUM, 1)], &words)
        };
        // the row of the library is one of them
        let most = limits::SECTIONS - 1;
        let (_, versions, _, said) = of(most as u32).unwrap();
        assert_eq!((versions, said.as_str()), (most, ""));
        let (_, versions, _, said) = of(most as u32 + 1).unwrap();
        assert_eq!((versions, said.as_str()), (most, "are more than 16384"));
    }
}
