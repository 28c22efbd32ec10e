//! The sorted table of `.eh_frame_hdr`, found through its program header, so that it is there in stripped libraries.

use super::File;
use crate::error::Result;
use crate::image::all_functions;
use object::Endianness;
use object::I32;
use object::elf;

/// Start and size of each function; size 0 where the frame description cannot be read.
///
/// Linkers write one form of the table (LSB core, exception frames): version 1, count as 4-byte number, pairs of
/// 4-byte offsets from the header. Frame descriptions of position-independent code hold their start as a 4-byte
/// offset from its own place; one that does not is recognised because its start would differ from the table's.
pub(super) fn ranges(file: &File<'_>) -> Result<Vec<(u64, u64)>> {
    const UDATA4: u8 = 0x03;
    const DATAREL_SDATA4: u8 = 0x3b;
    let endian = file.endian;
    let Some(program) = file.programs.iter().find(|p| p.p_type.get(endian) == elf::PT_GNU_EH_FRAME) else {
        return Ok(Vec::new());
    };
    let header = program.p_vaddr.get(endian);
    let Some(&[1, _, UDATA4, DATAREL_SDATA4]) = file.read(header, 4) else { return Ok(Vec::new()) };
    let word = |address: u64| file.record::<I32<Endianness>>(address).map(|w| w.get(endian));
    let Some(count) = header.checked_add(8).and_then(word).and_then(|n| usize::try_from(n).ok()) else {
        return Ok(Vec::new());
    };
    all_functions(count as u64, ".eh_frame_hdr")?;
    let rows = header.checked_add(12).and_then(|at| file.table::<[I32<Endianness>; 2]>(at, count));
    let relative = |offset: i32| header.wrapping_add_signed(i64::from(offset));
    let range = |row: &[I32<Endianness>; 2]| {
        let [start, description] = row.map(|w| w.get(endian));
        let (start, description) = (relative(start), relative(description));
        // length, pointer to the common part, then start and size
        let size = || {
            let at = description.checked_add(8)?;
            let states = at.wrapping_add_signed(i64::from(word(at)?));
            let size = u64::try_from(word(at.checked_add(4)?)?).ok()?;
            (states == start).then_some(size)
        };
        (start, size().unwrap_or(0))
    };
    Ok(rows.unwrap_or_default().iter().map(range).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Program, object};
    use crate::image::{Image, functions::functions};
    use crate::limits;
    use crate::source::Region;

    #[test]
    fn rows_of_the_table_have_a_border() {
        let of = |count: usize| {
            let all = Program { kind: 1, file_size: 0x2000, memory_size: 0x2000, ..Program::default() };
            let header = Program { kind: 0x6474_e550, offset: 0x1000, address: 0x1000, ..all };
            let mut file = object(0x2000, &[all, header], &[]);
            file[0x1000..0x1004].copy_from_slice(&[1, 0, 3, 0x3b]);
            file[0x1008..0x100c].copy_from_slice(&(count as u32).to_le_bytes());
            let image = Image::open(Region::whole(&file)).unwrap();
            functions(&image).map(|all| all.len()).map_err(|e| e.to_string())
        };
        // they are not in the file: at the border they are looked for
        assert_eq!(of(limits::SYMBOLS), Ok(0));
        assert!(of(limits::SYMBOLS + 1).unwrap_err().contains("more than 1048576 functions"));
    }
}
