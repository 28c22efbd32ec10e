//! Which registers a function reads before it writes them: its arguments.

use super::Bus;
use super::decode::{Op, decode_one};
use crate::interpret::address_map::AddressSet;
use crate::interpret::cpu::Flow;

/// How many of the first `count` registers a function takes, seen without running it: up to the last one that is read
/// before it is written. Calls end a path: what they are given was computed before.
pub fn arguments_read(bus: &mut Bus<'_>, function: u64, count: usize, limit: usize) -> usize {
    let mut seen: AddressSet<(u64, u32)> = AddressSet::default();
    let mut open = vec![(function, 0u32)];
    let mut read = 0u32;
    let mut left = limit;
    while let Some((start, mut written)) = open.pop() {
        let mut at = start;
        while left > 0 && bus.memory.is_executable(at) && seen.insert((at, written)) {
            left = left.saturating_sub(1);
            let op = decode_one(bus, at);
            let (reads, writes) = uses(&op);
            read |= reads & !written;
            written |= writes;
            match op.flow() {
                Flow::Next => at = op.next(),
                Flow::Jump(to) => at = to,
                Flow::Branch(to) => {
                    open.push((to, written));
                    at = op.next();
                }
                Flow::Call(_) | Flow::IndirectCall | Flow::IndirectJump | Flow::Return | Flow::Trap => break,
            }
        }
    }
    (0..count).rev().find(|register| read >> register & 1 != 0).map_or(0, |last| last.saturating_add(1))
}

/// General registers that an instruction reads and writes. The names of the definitions list the operands:
/// `ADD_Rd_Rn_Rm_SFT`, `STR_Rt_ADDR_UIMM12`, `LDP_Rt_Rt2_ADDR_SIMM7`.
fn uses(op: &Op) -> (u32, u32) {
    let Some(id) = op.id else { return (0, 0) };
    let name = format!("{id:?}");
    let mut parts = name.split('_');
    let mnemonic = parts.next().unwrap_or_default();
    // the register that is transferred is read by stores and by branches on it
    let is_source = ["ST", "CB", "TB"].iter().any(|start| mnemonic.starts_with(start));
    let bit = |register: usize| 1u32.checked_shl(register as u32).unwrap_or(0);
    let (mut reads, mut writes) = (0, 0);
    for part in parts {
        match part {
            "Rd" => writes |= bit(op.rd()),
            "Rn" => reads |= bit(op.rn()),
            "Rm" => reads |= bit(op.rm()),
            "Ra" => reads |= bit(op.ra()),
            "Rt" if is_source => reads |= bit(op.rd()),
            "Rt" => writes |= bit(op.rd()),
            "Rt2" if is_source => reads |= bit(op.ra()),
            "Rt2" => writes |= bit(op.ra()),
            "ADDR" if !name.contains("PCREL") && !name.contains("ADDR_ADRP") => reads |= bit(op.rn()),
            "REGOFF" => reads |= bit(op.rm()),
            _ => {}
        }
    }
    // movk keeps the rest of its register
    if mnemonic == "MOVK" {
        reads |= writes;
    }
    (reads, writes)
}
