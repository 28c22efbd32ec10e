//! Relocations of the dynamic table in the loader's order: RELR, RELA, REL, then the PLT's.

use super::File;
use super::dynamic::{Dynamic, DynamicSymbol};
use crate::error::{Error, Result};
use crate::image::symbol::{Binding, Relocation, RelocationKind, RelocationTarget, SymbolKind};
use crate::image::{Image, all_functions, problem, tell};
use crate::limits;
use crate::model::Problem;
use goblin::elf::{dynamic as tag, header, reloc};
use object::elf::{Rel64, Rela64};
use object::{Endianness, U64};
use std::collections::HashMap;

/// Machine, its number, what it means, bytes written.
type Row = (u16, u32, RelocationKind, u8);

/// The relocations that a dynamic linker knows: System V ABI supplements of both machines.
const KINDS: &[Row] = &[
    (header::EM_X86_64, reloc::R_X86_64_RELATIVE, RelocationKind::Relative, 8),
    (header::EM_X86_64, reloc::R_X86_64_GLOB_DAT, RelocationKind::GlobalData, 8),
    (header::EM_X86_64, reloc::R_X86_64_JUMP_SLOT, RelocationKind::JumpSlot, 8),
    (header::EM_X86_64, reloc::R_X86_64_64, RelocationKind::Absolute, 8),
    (header::EM_X86_64, reloc::R_X86_64_32, RelocationKind::Absolute, 4),
    (header::EM_X86_64, reloc::R_X86_64_IRELATIVE, RelocationKind::IndirectRelative, 8),
    (header::EM_X86_64, reloc::R_X86_64_DTPMOD64, RelocationKind::TlsModule, 8),
    (header::EM_X86_64, reloc::R_X86_64_DTPOFF64, RelocationKind::TlsOffset, 8),
    (header::EM_X86_64, reloc::R_X86_64_TPOFF64, RelocationKind::TlsPointerOffset, 8),
    (header::EM_X86_64, reloc::R_X86_64_TLSDESC, RelocationKind::TlsDescriptor, 16),
    (header::EM_X86_64, reloc::R_X86_64_COPY, RelocationKind::Copy, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_RELATIVE, RelocationKind::Relative, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_GLOB_DAT, RelocationKind::GlobalData, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_JUMP_SLOT, RelocationKind::JumpSlot, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_ABS64, RelocationKind::Absolute, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_ABS32, RelocationKind::Absolute, 4),
    (header::EM_AARCH64, reloc::R_AARCH64_IRELATIVE, RelocationKind::IndirectRelative, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_TLS_DTPMOD, RelocationKind::TlsModule, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_TLS_DTPREL, RelocationKind::TlsOffset, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_TLS_TPREL, RelocationKind::TlsPointerOffset, 8),
    (header::EM_AARCH64, reloc::R_AARCH64_TLSDESC, RelocationKind::TlsDescriptor, 16),
    (header::EM_AARCH64, reloc::R_AARCH64_COPY, RelocationKind::Copy, 8),
];

// generic ABI, gABI 4.3 draft; goblin has no names for them
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;

fn kind_of(machine: u16, number: u32) -> (RelocationKind, u8) {
    let row = KINDS.iter().find(|row| row.0 == machine && row.1 == number);
    row.map_or((RelocationKind::Other(number), 8), |row| (row.2, row.3))
}

/// Relocations that room is made for at once; ordinary libraries have fewer.
const ROOM: usize = 4_096;

pub(super) fn read<'a>(
    file: &File<'a>,
    dynamic: &Dynamic<'a>,
    symbols: &[DynamicSymbol<'a>],
    problems: &mut Vec<Problem>,
) -> Result<Vec<Relocation<'a>>> {
    let mut all = Vec::new();
    relr(file, dynamic, &mut all)?;
    let mut table = |name: &str, address: u64, size: u64, with_addend: bool| {
        let row = if with_addend { size_of::<Rela64<Endianness>>() } else { size_of::<Rel64<Endianness>>() };
        let wrong = |what: String| Error::damaged(what).in_section(name);
        let count = usize::try_from(size).unwrap_or(usize::MAX) / row;
        let total = count.saturating_add(all.len());
        if total > limits::RELOCATIONS {
            let what = format!("{total} relocations with those before, more than {}", limits::RELOCATIONS);
            return Err(Error::limit(what).in_section(name));
        }
        all.reserve(count.min(ROOM));
        let outside = || wrong(format!("{count} rows at {address:#x} do not lie in the file"));
        let mut push = |offset: u64, number: u32, symbol: u32, addend: Option<i64>| {
            let (kind, size) = kind_of(file.machine, number);
            let addend = addend.unwrap_or_else(|| file.u64_at(offset).unwrap_or(0).cast_signed());
            let target = usize::try_from(symbol).ok().filter(|s| *s != 0).and_then(|s| symbols.get(s)).map(target);
            if symbol != 0 && target.is_none() {
                tell(problems, || {
                    problem(name, None, format!("a relocation names symbol {symbol}, which is not there"))
                });
            }
            // R_*_NONE is padding
            if number != 0 {
                all.push(Relocation { address: offset, size, kind, target, addend });
            }
        };
        if with_addend {
            let rows: &[Rela64<Endianness>] = file.table(address, count).ok_or_else(outside)?;
            for row in rows {
                let number = row.r_type(file.endian, false).0;
                push(
                    row.r_offset.get(file.endian),
                    number,
                    row.r_sym(file.endian, false),
                    Some(row.r_addend.get(file.endian)),
                );
            }
        } else {
            let rows: &[Rel64<Endianness>] = file.table(address, count).ok_or_else(outside)?;
            for row in rows {
                push(row.r_offset.get(file.endian), row.r_type(file.endian).0, row.r_sym(file.endian), None);
            }
        }
        Ok(())
    };
    let span = |at, size| dynamic.value(at).zip(dynamic.value(size));
    if let Some((address, size)) = span(tag::DT_RELA, tag::DT_RELASZ) {
        table("RELA", address, size, true)?;
    }
    if let Some((address, size)) = span(tag::DT_REL, tag::DT_RELSZ) {
        table("REL", address, size, false)?;
    }
    if let Some((address, size)) = span(tag::DT_JMPREL, tag::DT_PLTRELSZ) {
        // some linkers let DT_RELASZ cover the PLT's part too: not twice
        let covered = span(tag::DT_RELA, tag::DT_RELASZ)
            .is_some_and(|(start, len)| address >= start && address < start.saturating_add(len));
        if !covered {
            table("PLT relocations", address, size, dynamic.value(tag::DT_PLTREL) != Some(tag::DT_REL))?;
        }
    }
    Ok(all)
}

fn target<'a>(row: &DynamicSymbol<'a>) -> RelocationTarget<'a> {
    RelocationTarget {
        name: row.name,
        address: row.is_defined.then_some(row.symbol.address),
        is_indirect: row.is_defined && row.symbol.kind == SymbolKind::IndirectFunction,
        is_weak: row.symbol.binding == Binding::Weak,
        library: row.library,
    }
}

/// Packed relative relocations: an even word is an address, an odd one a bitmap of the 63 words that follow.
fn relr<'a>(file: &File<'a>, dynamic: &Dynamic<'a>, all: &mut Vec<Relocation<'a>>) -> Result<()> {
    let Some((address, size)) = dynamic.value(DT_RELR).zip(dynamic.value(DT_RELRSZ)) else { return Ok(()) };
    let count = usize::try_from(size).unwrap_or(usize::MAX) / 8;
    let words: &[U64<Endianness>] = file.table(address, count).ok_or_else(|| {
        Error::damaged(format!("{count} words at {address:#x} do not lie in the file")).in_section("RELR")
    })?;
    // one word of a bitmap stands for up to 63 relocations
    let of_word = |word: u64| if word & 1 == 0 { 1 } else { u64::from(word.count_ones()) - 1 };
    let stated = words.iter().fold(0u64, |sum, word| sum.saturating_add(of_word(word.get(file.endian))));
    if stated > limits::RELOCATIONS as u64 {
        return Err(Error::limit(format!("{stated} relocations, more than {}", limits::RELOCATIONS)).in_section("RELR"));
    }
    let mut push = |at: u64| {
        let addend = file.u64_at(at).unwrap_or(0).cast_signed();
        all.push(Relocation { address: at, size: 8, kind: RelocationKind::Relative, target: None, addend });
    };
    let mut next = 0u64;
    for word in words {
        let word = word.get(file.endian);
        if word & 1 == 0 {
            push(word);
            next = word.wrapping_add(8);
        } else {
            for bit in 0..63 {
                if word >> (bit + 1) & 1 == 1 {
                    push(next.wrapping_add(8 * bit));
                }
            }
            next = next.wrapping_add(8 * 63);
        }
    }
    Ok(())
}

pub(super) fn init_functions<'a>(
    file: &File<'a>,
    dynamic: &Dynamic<'a>,
    image: &Image<'a>,
    relocations: &[Relocation<'a>],
) -> Result<Vec<u64>> {
    let mut functions: Vec<u64> = dynamic.value(tag::DT_INIT).into_iter().filter(|a| *a != 0).collect();
    if let Some((start, size)) = dynamic.value(tag::DT_INIT_ARRAY).zip(dynamic.value(tag::DT_INIT_ARRAYSZ)) {
        all_functions(size / 8, "init array")?;
        let end = start.saturating_add(size);
        let by_slot: HashMap<u64, &Relocation<'a>> =
            relocations.iter().filter(|r| (start..end).contains(&r.address)).map(|r| (r.address, r)).collect();
        for slot in (0..size / 8).filter_map(|i| start.checked_add(8 * i)) {
            functions.extend(
                pointer_in(file, image, by_slot.get(&slot).copied(), slot).filter(|a| *a != 0 && *a != u64::MAX),
            );
        }
    }
    Ok(functions)
}

/// The address that a slot holds after relocation.
fn pointer_in(file: &File<'_>, image: &Image<'_>, relocation: Option<&Relocation<'_>>, slot: u64) -> Option<u64> {
    let Some(relocation) = relocation else { return file.u64_at(slot) };
    let base = match &relocation.target {
        Some(target) => target.address.or_else(|| image.export(target.name).map(|s| s.address))?,
        None => 0,
    };
    Some(base.wrapping_add(relocation.addend.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Program, object};
    use super::*;
    use crate::source::Region;

    /// A library whose dynamic table has these rows, with `words` at 0x2000 in a file of `len` bytes.
    fn library(rows: &[(u64, u64)], len: usize, words: &[u64]) -> Vec<u8> {
        let all = Program { kind: 1, file_size: len as u64, memory_size: len as u64, ..Program::default() };
        let dynamic = Program { kind: 2, offset: 0x1000, address: 0x1000, file_size: 0x100, memory_size: 0x100, ..all };
        let mut file = object(len, &[all, dynamic], &[]);
        let mut put = |at: usize, words: Vec<u64>| {
            for (word, place) in words.iter().zip(file[at..].chunks_exact_mut(8)) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        };
        put(0x1000, rows.iter().flat_map(|row| [row.0, row.1]).collect());
        put(0x2000, words.to_vec());
        file
    }

    fn of(rows: &[(u64, u64)], len: usize, words: &[u64]) -> std::result::Result<usize, String> {
        let file = library(rows, len, words);
        let image = Image::open(Region::whole(&file)).map_err(|e| e.to_string())?;
        image.relocations().map(<[_]>::len).map_err(|e| e.to_string())
    }

    #[test]
    fn initialisers_have_a_border() {
        // most of them behind the end of the file
        let of = |count: usize| {
            let rows = [(tag::DT_INIT_ARRAY, 0x2000), (tag::DT_INIT_ARRAYSZ, 8 * count as u64)];
            let file = library(&rows, 0x3000, &[0x10, 0x20]);
            Image::open(Region::whole(&file)).unwrap().init_functions().map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::SYMBOLS), Ok(vec![0x10, 0x20]));
        assert!(of(limits::SYMBOLS + 1).unwrap_err().contains("more than 1048576 functions"));
    }

    #[test]
    fn rows_of_relocations_have_a_border() {
        // rows of zeros are padding
        let of = |count: usize| {
            let size = 24 * count;
            of(&[(tag::DT_RELA, 0x2000), (tag::DT_RELASZ, size as u64)], 0x2000 + size, &[])
        };
        assert_eq!(of(limits::RELOCATIONS), Ok(0));
        assert!(of(limits::RELOCATIONS + 1).unwrap_err().contains("1048577 relocations"));
    }

    #[test]
    fn packed_relocations_have_a_border() {
        // an address, bitmaps of 63, and addresses for the rest
        let of = |count: usize| {
            let bitmaps = (count - 1) / 63;
            let words = [vec![0; 1], vec![u64::MAX; bitmaps], vec![0; count - 1 - 63 * bitmaps]].concat();
            let size = 8 * words.len();
            of(&[(DT_RELR, 0x2000), (DT_RELRSZ, size as u64)], 0x2000 + size, &words)
        };
        assert_eq!(of(limits::RELOCATIONS), Ok(limits::RELOCATIONS));
        assert!(of(limits::RELOCATIONS + 1).unwrap_err().contains("1048577 relocations, more than 1048576"));
    }
}
