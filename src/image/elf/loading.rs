//! What the system's loader demands before any code of a library runs. A file that breaks it does not open, or ends the
//! process, whatever its facts are. Rules and messages: glibc `elf/dl-load.c` (`_dl_map_object_from_fd`),
//! `elf/get-dynamic-info.h`, `elf/do-rel.h`, 2.36 to 2.41.

use super::File;
use super::dynamic::{Dynamic, DynamicSymbol};
use crate::image::problem;
use crate::image::symbol::{Relocation, RelocationKind, Segment, mapped};
use crate::model::Problem;
use goblin::elf::{dynamic as tag, header, program_header as ph};
use object::elf::{FileHeader64, ProgramHeader64};
use object::{Endianness, elf};

/// The smallest page of any system that torch builds for.
const PAGE: u64 = 4096;
/// More than any system can map.
const ADDRESS_SPACE: u64 = 1 << 47;
/// Alignments beyond this are no linker's.
const LARGEST_ALIGNMENT: u64 = 1 << 30;
/// Functions of the C interface that are looked up; it has some thirty.
const LOOKED_UP: usize = 64;
/// Bytes of a row with addend.
const RELA: u64 = 24;

/// A problem that means: it does not load.
fn refused(section: &str, offset: Option<u64>, message: impl Into<String>) -> Problem {
    Problem { affects: vec!["library".to_owned()], ..problem(section, offset, message) }
}

/// The header and the program headers. Relocatable objects are no loader's business.
pub(super) fn check_headers(
    head: &FileHeader64<Endianness>,
    programs: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    segments: &[Segment<'_>],
    problems: &mut Vec<Problem>,
) {
    let kind = head.e_type.get(endian).0;
    if kind == header::ET_REL {
        return;
    }
    if kind != header::ET_DYN {
        problems.push(refused("ELF header", Some(16), format!("type {kind} is no shared library (3)")));
    }
    if head.e_version.get(endian) != u32::from(elf::EV_CURRENT.0) {
        let what = format!("version {} of the format, not 1", head.e_version.get(endian));
        problems.push(refused("ELF header", Some(20), what));
    }
    let abi = head.e_ident.os_abi.0;
    if !matches!(abi, header::ELFOSABI_NONE | header::ELFOSABI_LINUX | header::ELFOSABI_FREEBSD) {
        problems.push(refused("ELF header", Some(7), format!("system {abi} is none that torch builds for")));
    }
    for program in programs {
        let (at, align) = (Some(program.p_offset.get(endian)), program.p_align.get(endian));
        let (address, size) = (program.p_vaddr.get(endian), program.p_memsz.get(endian));
        let mut tell = |what: String| problems.push(refused("program headers", at, what));
        match program.p_type.get(endian).0 {
            ph::PT_LOAD => {
                let distance = address.wrapping_sub(program.p_offset.get(endian));
                if align > 1 && (!align.is_power_of_two() || align > LARGEST_ALIGNMENT) {
                    tell(format!("a segment is aligned to {align}"));
                } else if distance % PAGE.max(align) != 0 {
                    tell(format!(
                        "a segment at {address:#x} cannot be mapped from its offset: they lie differently in a page"
                    ));
                }
                if address.checked_add(size).is_none_or(|end| end > ADDRESS_SPACE) {
                    tell(format!("a segment of {size} bytes at {address:#x} fits into no address space"));
                }
                if program.p_flags.get(endian).0 & (ph::PF_R | ph::PF_W | ph::PF_X) == 0 && size > 0 {
                    tell(format!("the segment at {address:#x} may be neither read nor executed"));
                }
            }
            ph::PT_TLS if size > 0 && (!align.is_power_of_two() || align.max(size) > LARGEST_ALIGNMENT) => {
                tell(format!("{size} bytes for each thread, aligned to {align}"));
            }
            ph::PT_DYNAMIC if mapped(segments, address).map(|place| place.0) != at => {
                tell(format!("the dynamic table is not mapped at {address:#x}"));
            }
            _ => {}
        }
    }
}

/// Looks a name up as the loader does (`elf/dl-lookup.c`, `do_lookup_x`).
fn is_found(file: &File<'_>, table: u64, symbols: &[DynamicSymbol<'_>], name: &str) -> bool {
    let hash = name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
    let word = |at: Option<u64>| file.record::<object::U32<Endianness>>(at?).map(|n| n.get(file.endian));
    let index = |start: u64, width: u64, n: u32| start.checked_add(width.checked_mul(u64::from(n))?);
    let look = || {
        let [buckets, first, filters, shift] = [0, 1, 2, 3].map(|n| word(index(table, 4, n)));
        let (buckets, first, filters, shift) = (buckets?, first?, filters?, shift?);
        let filter_at = table.checked_add(16)?;
        let filter = file.u64_at(index(filter_at, 8, (hash / 64).checked_rem(filters)?)?)?;
        if filter >> (hash % 64) & filter >> (hash.checked_shr(shift)? % 64) & 1 == 0 {
            return None;
        }
        let buckets_at = index(filter_at, 8, filters)?;
        let chains_at = index(buckets_at, 4, buckets)?;
        let start = word(index(buckets_at, 4, hash.checked_rem(buckets)?))?;
        for number in (start..=u32::MAX).take(symbols.len()) {
            let there = word(index(chains_at, 4, number.checked_sub(first)?))?;
            if there | 1 == hash | 1 && symbols.get(number as usize)?.name == name {
                return Some(());
            }
            if there & 1 != 0 {
                return None;
            }
        }
        None
    };
    look().is_some()
}

/// The dynamic table and what it leads to.
pub(super) fn check_tables(
    file: &File<'_>,
    dynamic: &Dynamic<'_>,
    symbols: &[DynamicSymbol<'_>],
    relocations: &[Relocation<'_>],
    problems: &mut Vec<Problem>,
) {
    let mut tell = |section: &str, what: String| problems.push(refused(section, None, what));
    let value = |tag| dynamic.value(tag);
    if value(tag::DT_GNU_HASH).or(value(tag::DT_HASH)).is_none() {
        tell("dynamic table", "no hash table: no function can be looked up".to_owned());
    }
    if value(tag::DT_JMPREL).is_some() && value(tag::DT_PLTREL) != Some(tag::DT_RELA) {
        tell("dynamic table", format!("DT_PLTREL is {:?}, not DT_RELA", value(tag::DT_PLTREL)));
    }
    if value(tag::DT_RELA).is_some() && value(tag::DT_RELAENT) != Some(RELA) {
        tell("dynamic table", format!("DT_RELAENT is {:?}, not {RELA}", value(tag::DT_RELAENT)));
    }
    let relative = relocations.iter().filter(|r| r.kind == RelocationKind::Relative).count() as u64;
    if value(tag::DT_RELACOUNT).is_some_and(|count| count > relative) {
        tell("dynamic table", format!("DT_RELACOUNT is more than the {relative} relative relocations"));
    }
    if let Some(table) = value(tag::DT_GNU_HASH) {
        let wanted = symbols.iter().filter(|s| s.is_defined && s.name.starts_with("AOTInductorModelContainer"));
        if let Some(lost) = wanted.take(LOOKED_UP).map(|s| s.name).find(|name| !is_found(file, table, symbols, name)) {
            tell("hash table", format!("does not lead to {lost}: the loader would not find it"));
        }
    }
    let has_versions = value(tag::DT_VERNEED).or(value(tag::DT_VERDEF)).is_some();
    if has_versions != value(tag::DT_VERSYM).is_some_and(|address| file.read(address, 2).is_some_and(|_| address != 0))
    {
        tell("dynamic table", "versions and their table of symbols are not both there".to_owned());
    }
    let holds = |address: u64, is_fit: fn(&Segment<'_>) -> bool| {
        let holds = |s: &&Segment<'_>| address.checked_sub(s.address).is_some_and(|d| d < s.memory_size);
        file.segments.iter().filter(holds).any(is_fit)
    };
    let has_text_relocations =
        value(tag::DT_TEXTREL).is_some() || value(tag::DT_FLAGS).is_some_and(|flags| flags & tag::DF_TEXTREL != 0);
    let wild = |r: &&Relocation<'_>| {
        let is_writable = holds(r.address, |s| s.is_writable) || has_text_relocations && holds(r.address, |_| true);
        let has_no_resolver =
            r.kind == RelocationKind::IndirectRelative && !holds(r.addend.cast_unsigned(), |s| s.is_executable);
        !is_writable || has_no_resolver
    };
    if let Some(first) = relocations.iter().find(wild) {
        let more = relocations.iter().filter(wild).count();
        tell(
            "relocations",
            format!("{more} of them write to, or call, what is not there; the first at {:#x}", first.address),
        );
    }
}
