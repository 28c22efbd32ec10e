//! What dyld writes: chained fixups (macOS 12 and newer) or the older rebase and bind opcodes.

use super::{E, MachO, source_name};
use crate::error::{Error, Result};
use crate::image::symbol::{Relocation, RelocationKind, RelocationTarget};
use crate::image::{problem, tell};
use crate::limits;
use crate::model::Problem;
use object::macho::{DyldInfoCommand, LinkeditDataCommand};
use object::read::macho::{Bind, BindIterator, Fixup};
use object::{U64, macho};

fn wrong(table: &'static str) -> impl Fn(object::read::Error) -> Error {
    move |e| Error::damaged(e.to_string()).in_section(table)
}

fn push<'a>(all: &mut Vec<Relocation<'a>>, relocation: Relocation<'a>) -> Result<()> {
    if all.len() >= limits::RELOCATIONS {
        return Err(Error::limit(format!("more than {} fixups", limits::RELOCATIONS)).in_section("fixups"));
    }
    all.push(relocation);
    Ok(())
}

/// A symbol that is imported from `dylib`.
fn target<'a>(file: &MachO<'a>, name: &'a [u8], dylib: macho::BindDylib, is_weak: bool) -> RelocationTarget<'a> {
    let library = file.library(i64::from(dylib.0));
    RelocationTarget {
        name: source_name(name).unwrap_or_default(),
        address: None,
        is_indirect: false,
        is_weak,
        library,
    }
}

pub(super) fn chained<'a>(
    file: &MachO<'a>,
    command: &'a LinkeditDataCommand<E>,
    all: &mut Vec<Relocation<'a>>,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    const TABLE: &str = "chained fixups";
    let fixups = command.chained_fixups(file.endian, file.region).map_err(wrong(TABLE))?;
    let mut imports = Vec::new();
    let mut rows = fixups.imports(file.endian).map_err(wrong(TABLE))?;
    while let Some(row) = rows.next().map_err(wrong(TABLE))? {
        if imports.len() >= limits::SYMBOLS {
            return Err(Error::limit("too many imports").in_section(TABLE));
        }
        imports.push(row);
    }
    let base = file.base();
    let mut segments = fixups.segments(file.endian).map_err(wrong(TABLE))?;
    while let Some(chains) = segments.next().map_err(wrong(TABLE))? {
        let segment = usize::try_from(chains.index()).ok().and_then(|i| file.segments.get(i));
        let bytes = segment.and_then(|s| file.region.get(s.file_offset, s.file_size));
        let (Some(segment), Some(bytes)) = (segment, bytes) else {
            tell(problems, || problem(TABLE, None, format!("segment {} is not in the file", chains.index())));
            continue;
        };
        let mut walk = chains.fixups(file.endian, base, bytes);
        while let Some((offset, fixup)) = walk.next().map_err(wrong(TABLE))? {
            let address = segment.address.wrapping_add(offset);
            let relocation = match fixup {
                Fixup::Rebase(rebase) => {
                    let value = base.wrapping_add(rebase.target_offset).cast_signed();
                    Relocation { address, size: 8, kind: RelocationKind::Relative, target: None, addend: value }
                }
                Fixup::Bind(bind) => {
                    let import = usize::try_from(bind.ordinal).ok().and_then(|i| imports.get(i));
                    let Some(import) = import else {
                        return Err(Error::damaged(format!("import {} is not there", bind.ordinal)).in_section(TABLE));
                    };
                    Relocation {
                        address,
                        size: 8,
                        kind: RelocationKind::GlobalData,
                        target: Some(target(file, import.name, import.dylib, import.weak_import)),
                        addend: import.addend.wrapping_add(i64::from(bind.addend)),
                    }
                }
                Fixup::KernelCacheRebase(_) | Fixup::SegmentedRebase(_) => {
                    let what = "a fixup of a kind that no library of a process has";
                    return Err(Error::damaged(what).in_section(TABLE));
                }
            };
            push(all, relocation)?;
        }
    }
    Ok(())
}

pub(super) fn opcodes<'a>(file: &MachO<'a>, info: &'a DyldInfoCommand<E>, all: &mut Vec<Relocation<'a>>) -> Result<()> {
    const REBASE: &str = "rebase opcodes";
    let address_in = |index: u8, offset: u64, table: &'static str| {
        let segment = file.segments.get(usize::from(index)).filter(|s| offset < s.memory_size);
        let address = segment.map(|s| s.address.wrapping_add(offset));
        address.ok_or_else(|| Error::damaged(format!("segment {index} has no offset {offset:#x}")).in_section(table))
    };
    let mut rebases = info.rebases(file.endian, file.region, 8).map_err(wrong(REBASE))?;
    while let Some(rebase) = rebases.next().map_err(wrong(REBASE))? {
        let address = address_in(rebase.segment_index, rebase.segment_offset, REBASE)?;
        let value = stored(file, rebase.segment_index, rebase.segment_offset);
        push(all, Relocation { address, size: 8, kind: RelocationKind::Relative, target: None, addend: value })?;
    }
    let tables: [(&'static str, RelocationKind, object::read::Result<BindIterator<'a>>); 3] = [
        ("bind opcodes", RelocationKind::GlobalData, info.binds(file.endian, file.region, 8)),
        ("lazy bind opcodes", RelocationKind::JumpSlot, info.lazy_binds(file.endian, file.region, 8)),
        ("weak bind opcodes", RelocationKind::GlobalData, info.weak_binds(file.endian, file.region, 8)),
    ];
    for (table, kind, binds) in tables {
        let mut binds = binds.map_err(wrong(table))?;
        while let Some(Bind { segment_index, segment_offset, dylib, symbol, flags, addend, .. }) =
            binds.next().map_err(wrong(table))?
        {
            let address = address_in(segment_index, segment_offset, table)?;
            // BIND_SYMBOL_FLAGS_WEAK_IMPORT
            let target = Some(target(file, symbol, dylib, flags.0 & 1 != 0));
            push(all, Relocation { address, size: 8, kind, target, addend })?;
        }
    }
    Ok(())
}

fn stored(file: &MachO<'_>, segment: u8, offset: u64) -> i64 {
    let read = || {
        let segment = file.segments.get(usize::from(segment))?;
        offset.checked_add(8).filter(|end| *end <= segment.file_size)?;
        let bytes = file.region.get(segment.file_offset.checked_add(offset)?, 8)?;
        Some(object::pod::from_bytes::<U64<E>>(bytes).ok()?.0.get(file.endian).cast_signed())
    };
    read().unwrap_or(0)
}
