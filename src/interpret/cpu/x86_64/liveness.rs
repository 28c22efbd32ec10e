//! Which registers a function reads before it writes them: its arguments.

use super::Bus;
use super::decode::LONGEST_INSTRUCTION;
use crate::interpret::address_map::AddressSet;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess};

/// How many of `registers` (hardware numbers in argument order) a function takes, seen without running it: up to the
/// last one that is read before it is written. Calls end a path: what they are given was computed before.
pub fn arguments_read(bus: &mut Bus<'_>, function: u64, registers: &[usize], limit: usize) -> usize {
    let mut factory = InstructionInfoFactory::new();
    let mut seen: AddressSet<(u64, u32)> = AddressSet::default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::memory::Mapping;
    use crate::source::Region;

    fn count(code: &[u8]) -> usize {
        const CODE: u64 = 0x1000_0000;
        let mut bus = Bus::new(0);
        let bytes = code.to_vec();
        let memory_size = code.len() as u64;
        bus.memory.map(Mapping { address: CODE, memory_size, bytes: Region::whole(&bytes), is_executable: true });
        // rdi, rsi, rdx, rcx, r8, r9
        arguments_read(&mut bus, CODE, &[7, 6, 2, 1, 8, 9], 100)
    }

    #[test]
    fn arguments_are_what_is_read_before_it_is_written() {
        // push rbp; mov eax,[rdi]; xor ecx,ecx; add eax,esi; lea rdx,[rcx+1]; ret
        assert_eq!(count(&[0x55, 0x8b, 0x07, 0x31, 0xc9, 0x01, 0xf0, 0x48, 0x8d, 0x51, 0x01, 0xc3]), 2);
        // test r9,r9; je onwards; ret
        assert_eq!(count(&[0x4d, 0x85, 0xc9, 0x74, 0x00, 0xc3]), 6);
        // call onwards; mov eax,[rdi]: what a call leaves behind is no argument
        assert_eq!(count(&[0xe8, 0, 0, 0, 0, 0x8b, 0x07, 0xc3]), 0);
        // jmp to itself
        assert_eq!(count(&[0xeb, 0xfe]), 0);
    }
}
