//! Looks at a function without running it: is it a kernel, and where does a stub lead.

use super::Bus;
use super::decode::{Op, decode_one};
use crate::interpret::address_map::AddressSet;
use crate::interpret::cpu::{Flow, Survey, Turn};
use disarm64::decoder::InsnId;

/// All code that is reachable without following calls.
pub fn survey(bus: &mut Bus<'_>, function: u64, limit: usize) -> Survey {
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
            let op = decode_one(bus, at);
            survey.has_float_arithmetic |= is_float_arithmetic(&op);
            match op.flow() {
                Flow::Return | Flow::Trap | Flow::IndirectJump => break,
                Flow::Jump(to) => {
                    if stub_target(bus, to).is_some() {
                        note(&mut survey, to);
                        break;
                    }
                    at = to;
                    continue;
                }
                Flow::Branch(to) => open.push(to),
                Flow::Call(to) => note(&mut survey, to),
                Flow::IndirectCall | Flow::Next => {}
            }
            at = op.next();
        }
    }
    survey
}

/// See [`crate::interpret::cpu::Processor::next_turn`].
pub fn next_turn(bus: &mut Bus<'_>, from: u64, limit: usize) -> Option<Turn> {
    let mut at = from;
    for count in 1..=limit {
        let op = decode_one(bus, at);
        match op.flow() {
            Flow::Next => at = op.next(),
            flow => return Some(Turn { flow, next: op.next(), count }),
        }
    }
    None
}

/// Instructions of a stub in front of its jump.
const STUB_LENGTH: usize = 5;

/// `adrp x16, page; ldr x17, [x16, offset]; (add x16, …); br x17`, Mach-O also `ldr x16, slot; br x16`:
/// the content of the slot.
pub fn stub_target(bus: &mut Bus<'_>, function: u64) -> Option<u64> {
    if !bus.memory.is_executable(function) {
        return None;
    }
    let mut page = None;
    let mut slot = None;
    let mut at = function;
    for _ in 0..STUB_LENGTH {
        let op = decode_one(bus, at);
        let is_scratch = |register: usize| register == 16 || register == 17;
        match op.id? {
            InsnId::HINT_UIMM7 => {}
            InsnId::ADRP_Rd_ADDR_ADRP if is_scratch(op.rd()) => {
                let offset = op.signed(5, 19) << 2 | i64::from(op.bits(29, 2));
                page = Some((op.at & !0xfff).wrapping_add_signed(offset << 12));
            }
            InsnId::LDR_Rt_ADDR_UIMM12 if is_scratch(op.rd()) && op.bits(30, 2) == 3 => {
                slot = Some(page?.wrapping_add(u64::from(op.bits(10, 12)) * 8));
            }
            InsnId::LDR_Rt_ADDR_PCREL19 if is_scratch(op.rd()) => slot = Some(op.target(5, 19)),
            InsnId::ADD_Rd_SP_Rn_SP_AIMM if is_scratch(op.rd()) => {}
            InsnId::BR_Rn if is_scratch(op.rn()) => return Some(bus.memory.read(slot?, 8)),
            _ => return None,
        }
        at = op.next();
    }
    None
}

/// Arithmetic on floating-point numbers, packed or scalar; moves, comparisons and scalar conversions do not count.
pub fn is_float_arithmetic(op: &Op) -> bool {
    const FAMILIES: &[&str] = &[
        "fadd", "fsub", "fmul", "fdiv", "fmla", "fmls", "fmadd", "fmsub", "fnmadd", "fnmsub", "fnmul", "fmax", "fmin",
        "fsqrt", "frecp", "frsqrt", "fabd", "faddp", "bfmmla", "bfdot", "fcvtl", "fcvtn",
    ];
    // scalar and vector floats have bits 25 to 27 at 111; SVE lies at 010
    if !matches!(op.bits(25, 3), 0b111 | 0b010) {
        return false;
    }
    let name = op.name();
    FAMILIES.iter().any(|family| name.starts_with(family))
}
