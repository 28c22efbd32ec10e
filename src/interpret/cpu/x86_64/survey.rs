//! Looks at a function without running it: is it a kernel, and where does a stub lead.

use super::decode::{self, LONGEST_INSTRUCTION, Op, WINDOW};
use super::operands::{NO_REGISTER, Operand};
use super::{Bus, X86_64};
use crate::interpret::address_map::AddressSet;
use crate::interpret::cpu::{Flow, Survey, Turn};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

/// All code that is reachable without following calls.
pub fn survey(_: &X86_64, bus: &mut Bus<'_>, function: u64, limit: usize) -> Survey {
    let mut survey = Survey::default();
    let mut seen = AddressSet::default();
    let mut open = vec![function];
    let mut left = limit;
    let note = |survey: &mut Survey, to: u64| {
        if !survey.calls.contains(&to) {
            survey.calls.push(to);
        }
    };
    while let Some(start) = open.pop() {
        let mut at = start;
        while left > 0 && bus.memory.is_executable(at) && seen.insert(at) {
            left -= 1;
            let (op, flow) = decode::decode_one(bus, at);
            survey.has_float_arithmetic |= is_float_arithmetic(op.mnemonic);
            let target = target(&op);
            match flow {
                FlowControl::Return | FlowControl::Exception | FlowControl::Interrupt => break,
                FlowControl::IndirectBranch => {
                    if let Some(to) = slot_target(bus, &op) {
                        note(&mut survey, to);
                    }
                    break;
                }
                FlowControl::UnconditionalBranch => {
                    let Some(to) = target else { break };
                    if stub_at(bus, to).is_some() {
                        note(&mut survey, to);
                        break;
                    }
                    at = to;
                    continue;
                }
                FlowControl::ConditionalBranch => open.extend(target),
                FlowControl::Call => {
                    if let Some(to) = target {
                        note(&mut survey, to);
                    }
                }
                FlowControl::IndirectCall => {
                    if let Some(to) = slot_target(bus, &op) {
                        note(&mut survey, to);
                    }
                }
                _ => {}
            }
            at = op.next();
        }
    }
    survey
}

/// See [`crate::interpret::cpu::Processor::next_turn`].
pub fn next_turn(bus: &mut Bus<'_>, from: u64, limit: usize) -> Option<Turn> {
    let mut instruction = Instruction::default();
    let (mut at, mut count) = (from, 0);
    loop {
        let mut window = [0u8; WINDOW];
        let bytes = bus.memory.code(at, &mut window);
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        while decoder.position() + LONGEST_INSTRUCTION <= bytes.len() {
            if count == limit {
                return None;
            }
            count += 1;
            decoder.decode_out(&mut instruction);
            let flow = match instruction.flow_control() {
                _ if instruction.is_invalid() => Flow::IndirectJump,
                FlowControl::Next | FlowControl::XbeginXabortXend => continue,
                FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
                FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
                FlowControl::Call => Flow::Call(instruction.near_branch_target()),
                // code that is compiled without stubs calls through their slots
                FlowControl::IndirectCall if instruction.is_ip_rel_memory_operand() => {
                    Flow::Call(bus.memory.read(instruction.ip_rel_memory_address(), 8))
                }
                FlowControl::IndirectCall => Flow::IndirectCall,
                FlowControl::IndirectBranch => Flow::IndirectJump,
                FlowControl::Return => Flow::Return,
                FlowControl::Exception | FlowControl::Interrupt => Flow::Trap,
            };
            return Some(Turn { flow, next: instruction.next_ip(), count });
        }
        at = decoder.ip();
    }
}

fn target(op: &Op) -> Option<u64> {
    match op.operand(0) {
        Operand::Target(to) => Some(to),
        _ => None,
    }
}

/// Content of the slot that an indirect jump or call goes through, when its address is fixed.
fn slot_target(bus: &mut Bus<'_>, op: &Op) -> Option<u64> {
    match op.operand(0) {
        Operand::Memory { base: NO_REGISTER, index: NO_REGISTER, displacement, has_fs: false, .. } => {
            Some(bus.memory.read(displacement as u64, 8))
        }
        _ => None,
    }
}

/// `[endbr64] jmp [slot]`
fn stub_at(bus: &mut Bus<'_>, at: u64) -> Option<u64> {
    let (mut op, _) = decode::decode_one(bus, at);
    if op.mnemonic == Mnemonic::Endbr64 {
        op = decode::decode_one(bus, op.next()).0;
    }
    if op.mnemonic == Mnemonic::Jmp { slot_target(bus, &op) } else { None }
}

pub fn stub_target(_: &X86_64, bus: &mut Bus<'_>, function: u64) -> Option<u64> {
    if !bus.memory.is_executable(function) {
        return None;
    }
    stub_at(bus, function)
}

/// Arithmetic on floating-point numbers, packed or scalar.
pub fn is_float_arithmetic(mnemonic: Mnemonic) -> bool {
    let name = format!("{mnemonic:?}").to_lowercase();
    let name = name.strip_prefix('v').unwrap_or(&name);
    const PACKED: &[&str] = &[
        "addps",
        "blendvps",
        "blendvpd",
        "cmpss",
        "mulps",
        "subps",
        "divps",
        "addpd",
        "mulpd",
        "subpd",
        "divpd",
        "maxps",
        "minps",
        "maxpd",
        "minpd",
        "sqrtps",
        "sqrtpd",
        "cvtps2ph",
        "cvtph2ps",
        "cvtdq2ps",
        "cvttps2dq",
        "cvtps2dq",
        "cvtps2pd",
        "cvtpd2ps",
        "cmpps",
        "cmppd",
        "roundps",
        "roundpd",
    ];
    const FAMILIES: &[&str] =
        &["fmadd", "fnmadd", "fmsub", "fnmsub", "scalef", "gather", "pgather", "rndscalep", "cvtne", "pmull"];
    const SCALAR: &[&str] = &["add", "mul", "sub", "max", "min", "sqrt", "div"];
    PACKED.contains(&name)
        || FAMILIES.iter().any(|family| name.starts_with(family))
        || SCALAR.iter().any(|op| name.strip_prefix(op).is_some_and(|rest| matches!(rest, "ss" | "sd")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_from_host_code() {
        assert!(is_float_arithmetic(Mnemonic::Vaddps));
        assert!(is_float_arithmetic(Mnemonic::Vfmadd231ps));
        assert!(is_float_arithmetic(Mnemonic::Mulss));
        assert!(!is_float_arithmetic(Mnemonic::Vmovups));
        assert!(!is_float_arithmetic(Mnemonic::Add));
    }
}
