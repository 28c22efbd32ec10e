//! The constants table, found in memory by its structure.
//!
//! A model whose weights are kept apart makes no tensors for them at creation, but its table of `ConstInfo`
//! (aoti_runtime/model_base.h) is there: `n` records of equal size in one heap block, each with the pointer that
//! `GetConstantName` returned and with two `vector<int64_t>`, shape and stride in this order. Offsets differ from
//! release to release (136 bytes since 2.4, 80 in 2.2), so none is assumed.

use super::machine::Machine;
use crate::limits;

/// Shape and stride of each constant, in table order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// address of the internal name
    pub names: Vec<u64>,
    /// sizes
    pub shapes: Vec<Vec<i64>>,
    /// strides in elements
    pub strides: Vec<Vec<i64>>,
}

/// Sizes of a record that are tried.
const RECORD: std::ops::RangeInclusive<u64> = 64..=512;

/// Finds the table. `names` are the addresses that the getters returned; without getters (2.2) any pointer into the
/// library will do.
pub fn find(machine: &mut Machine<'_>, count: usize, names: Option<&[u64]>) -> Option<Table> {
    let n = count as u64;
    let blocks: Vec<(u64, u64)> = machine
        .heap
        .blocks
        .iter()
        .map(|(address, size)| (*address, *size))
        .filter(|(_, size)| n > 0 && size % n == 0 && (size / n).is_multiple_of(8) && RECORD.contains(&(size / n)))
        .collect();
    blocks.into_iter().find_map(|(block, size)| {
        let record = size / n;
        (0..record / 8).map(|word| 8 * word).find_map(|offset| table_at(machine, block, record, count, offset, names))
    })
}

/// The table, if the word at `offset` of each record is its name.
fn table_at(
    machine: &mut Machine<'_>,
    block: u64,
    record: u64,
    count: usize,
    offset: u64,
    names: Option<&[u64]>,
) -> Option<Table> {
    let mut found = Vec::new();
    for n in 0..count {
        let name = machine.word(block + n as u64 * record + offset);
        let fits = match names {
            Some(names) => names.get(n) == Some(&name),
            None => machine.is_in_image(name),
        };
        if !fits {
            return None;
        }
        found.push(name);
    }
    let mut columns = Vec::new();
    let mut at = 0;
    while at + 24 <= record && columns.len() < 2 {
        let rows: Option<Vec<Vec<i64>>> = (0..count).map(|n| vector(machine, block + n as u64 * record + at)).collect();
        // a column of empty vectors cannot be told from zeros, so it is none
        match rows.filter(|rows| rows.iter().any(|row| !row.is_empty())) {
            Some(rows) => {
                columns.push(rows);
                at += 24;
            }
            None => at += 8,
        }
    }
    let strides = columns.pop()?;
    let shapes = columns.pop()?;
    let same_rank = shapes.iter().zip(&strides).all(|(shape, stride)| shape.len() == stride.len());
    same_rank.then_some(Table { names: found, shapes, strides })
}

/// `vector<int64_t>` at an address: begin, end, end of storage; a heap block, or all zero when empty.
fn vector(machine: &mut Machine<'_>, at: u64) -> Option<Vec<i64>> {
    let (begin, end, storage) = (machine.word(at), machine.word(at + 8), machine.word(at + 16));
    if begin == 0 && end == 0 && storage == 0 {
        return Some(Vec::new());
    }
    let size = *machine.heap.blocks.get(&begin)?;
    let len = end.checked_sub(begin).filter(|len| len % 8 == 0 && *len <= 8 * limits::RANK as u64)?;
    if storage < end || storage > begin.saturating_add(size).saturating_add(8) {
        return None;
    }
    Some((0..len / 8).map(|n| machine.word(begin + 8 * n) as i64).collect())
}
