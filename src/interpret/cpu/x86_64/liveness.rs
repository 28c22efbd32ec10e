//! Which registers a function reads before it writes them: its arguments.

use super::Bus;
use super::decode::LONGEST_INSTRUCTION;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess};
use std::collections::HashSet;

/// How many of `registers` (hardware numbers in argument order) a function takes, seen without running it: up to the
/// last one that is read before it is written. Calls end a path: what they are given was computed before.
pub fn arguments_read(bus: &mut Bus<'_>, function: u64, registers: &[usize], limit: usize) -> usize {
    let mut factory = InstructionInfoFactory::new();
    let mut seen: HashSet<(u64, u32)> = HashSet::new();
    let mut open = vec![(function, 0u32)];
    let mut read = 0u32;
    let mut left = limit;
    while let Some((start, mut written)) = open.pop() {
        let mut at = start;
        while left > 0 && bus.memory.is_executable(at) && seen.insert((at, written)) {
            left = left.saturating_sub(1);
            let mut bytes = [0u8; LONGEST_INSTRUCTION];
            bus.memory.read_bytes(at, &mut bytes);
            let instruction = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE).decode();
            if instruction.is_invalid() {
                break;
            }
            let mut set = 0;
            for used in factory.info(&instruction).used_registers() {
                let register = used.register();
                if !register.is_gpr() {
                    continue;
                }
                let bit = 1u32 << (register.full_register().number() & 15);
                let access = used.access();
                if !matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess | OpAccess::None) {
                    read |= bit & !written;
                }
                if matches!(access, OpAccess::Write | OpAccess::ReadWrite) {
                    set |= bit;
                }
            }
            written |= set;
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::XbeginXabortXend => at = instruction.next_ip(),
                FlowControl::UnconditionalBranch => at = instruction.near_branch_target(),
                FlowControl::ConditionalBranch => {
                    open.push((instruction.near_branch_target(), written));
                    at = instruction.next_ip();
                }
                _ => break,
            }
        }
    }
    let is_read = |register: &usize| read & 1u32.checked_shl(*register as u32).unwrap_or(0) != 0;
    registers.iter().rposition(is_read).map_or(0, |last| last.saturating_add(1))
}
