//! Jumps, calls, returns, conditional comparisons.

use super::decode::Op;
use super::flags::Flags;
use super::{Aarch64, Bus, LR, Semantics, Step};
use crate::interpret::cpu::{Condition, Event, Processor};
use crate::interpret::value::{Relation, Value, sign_extend};
use disarm64::decoder::InsnId;

pub const TABLE: &[(InsnId, Semantics)] = &[
    (InsnId::B_ADDR_PCREL26, |_, _, op| Step::Jump(op.target(0, 26))),
    (InsnId::BR_Rn, |c, _, op| Step::Jump(c.general(op.rn(), 8).bits)),
    (InsnId::BL_ADDR_PCREL26, |c, b, op| call(c, b, op, op.target(0, 26))),
    (InsnId::BLR_Rn, |c, b, op| call(c, b, op, c.general(op.rn(), 8).bits)),
    (InsnId::RET_Rn, |c, b, op| ret(c, b, op.rn())),
    (InsnId::RETAA, |c, b, _| ret(c, b, LR)),
    (InsnId::RETAB, |c, b, _| ret(c, b, LR)),
    (InsnId::B_C_ADDR_PCREL19, branch),
    (InsnId::BC_C_ADDR_PCREL19, branch),
    (InsnId::CBZ_Rt_ADDR_PCREL19, |c, _, op| compare_zero(c, op, Relation::Equal)),
    (InsnId::CBNZ_Rt_ADDR_PCREL19, |c, _, op| compare_zero(c, op, Relation::NotEqual)),
    (InsnId::TBZ_Rt_BIT_NUM_ADDR_PCREL14, |c, b, op| test_bit(c, b, op, false)),
    (InsnId::TBNZ_Rt_BIT_NUM_ADDR_PCREL14, |c, b, op| test_bit(c, b, op, true)),
    (InsnId::CCMP_Rn_Rm_NZCV_COND, conditional_compare),
    (InsnId::CCMP_Rn_CCMP_IMM_NZCV_COND, conditional_compare),
    (InsnId::CCMN_Rn_Rm_NZCV_COND, conditional_compare),
    (InsnId::CCMN_Rn_CCMP_IMM_NZCV_COND, conditional_compare),
    (InsnId::BRK_EXCEPTION, trap),
    (InsnId::HLT_EXCEPTION, trap),
    (InsnId::UDF_UNDEFINED, trap),
];

fn trap(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    cpu.leave(Event::Trap(op.at))
}

fn call(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, target: u64) -> Step {
    if bus.calls_at_once() {
        cpu.enter(bus, target, op.next());
        return Step::Jump(target);
    }
    cpu.leave(Event::Call { target, return_to: op.next() })
}

fn ret(cpu: &mut Aarch64, bus: &mut Bus<'_>, register: usize) -> Step {
    let to = cpu.general(register, 8).bits;
    bus.leave(to, cpu.sp());
    Step::Jump(to)
}

/// Goes on, or lets the machine decide when the condition depends on symbols.
fn decide(cpu: &mut Aarch64, op: &Op, target: u64, holds: bool, condition: Option<Condition>) -> Step {
    match condition {
        Some(condition) => cpu.leave(Event::Branch { condition, at: op.at, taken: target, otherwise: op.next() }),
        None if holds => Step::Jump(target),
        None => Step::Next,
    }
}

fn branch(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let (flags, code) = (cpu.registers.flags, op.bits(0, 4));
    decide(cpu, op, op.target(5, 19), flags.test(code), flags.condition(code))
}

fn compare_zero(cpu: &mut Aarch64, op: &Op, relation: Relation) -> Step {
    let size = op.size();
    let value = cpu.general(op.rd(), size);
    let left = Value { bits: sign_extend(value.bits, size) as u64, shadow: value.shadow };
    let condition = value.shadow.map(|_| Condition { relation, left, right: Value::ZERO });
    decide(cpu, op, op.target(5, 19), relation.holds(left.bits as i64, 0), condition)
}

/// The highest bit is the sign; the lowest is a truth value or the remainder by two.
fn test_bit(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, wanted: bool) -> Step {
    let bit = op.bits(31, 1) << 5 | op.bits(19, 5);
    let value = cpu.general(op.rd(), 8);
    let holds = (value.bits >> bit & 1 != 0) == wanted;
    let size = if bit == 31 { 4 } else { 8 };
    let condition = match (value.shadow, bit) {
        (None, _) => None,
        (Some(_), 31 | 63) => {
            let left = Value { bits: sign_extend(value.bits, size) as u64, shadow: value.shadow };
            let relation = if wanted { Relation::Less } else { Relation::GreaterEqual };
            Some(Condition { relation, left, right: Value::ZERO })
        }
        (Some(_), _) => {
            let relation = if wanted { Relation::NotEqual } else { Relation::Equal };
            let one = Value::new(1 << bit);
            let shadow = if bit == 0 && value.bits <= 1 {
                value.shadow
            } else {
                bus.expressions.binary(crate::interpret::value::Operation::And, value, one, 8)
            };
            shadow.map(|shadow| Condition {
                relation,
                left: Value { bits: value.bits & one.bits, shadow: Some(shadow) },
                right: Value::ZERO,
            })
        }
    };
    decide(cpu, op, op.target(5, 14), holds, condition)
}

/// Added to the address of a conditional comparison: go on behind it as if its condition held.
pub const CONDITION_HOLDS: u64 = 1;
/// As if it did not hold.
pub const CONDITION_FAILS: u64 = 2;

/// A comparison that happens only under a condition. Where the condition depends on symbols this is a branch
/// with both sides at the next instruction, but other flags: the addresses that the machine chooses from are
/// odd ones of this instruction, and [`resume`] is called when it goes on there.
fn conditional_compare(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let (flags, code) = (cpu.registers.flags, op.bits(12, 4));
    if let Some(condition) = flags.condition(code) {
        return cpu.leave(Event::Branch {
            condition,
            at: op.at,
            taken: op.at | CONDITION_HOLDS,
            otherwise: op.at | CONDITION_FAILS,
        });
    }
    compare_if(cpu, op, flags.test(code));
    Step::Next
}

fn compare_if(cpu: &mut Aarch64, op: &Op, holds: bool) {
    let size = op.size();
    cpu.registers.flags = if holds {
        let a = cpu.general(op.rn(), size);
        let b = if op.flag(11) { Value::new(u64::from(op.bits(16, 5))) } else { cpu.general(op.rm(), size) };
        if op.flag(30) {
            Flags::subtract(a, b, size)
        } else {
            let bits = a.bits.wrapping_add(b.bits) & crate::interpret::memory::mask(size);
            Flags::add(a, b, Value::new(bits), size)
        }
    } else {
        Flags::stored(op.bits(0, 4) as u8)
    };
}

/// Goes on behind a conditional comparison whose condition the machine has chosen.
pub fn resume(cpu: &mut Aarch64, bus: &mut Bus<'_>, pc: u64) {
    let op = super::decode::decode_one(bus, pc & !3);
    compare_if(cpu, &op, pc & 3 == CONDITION_HOLDS);
    cpu.registers.pc = op.next();
}
