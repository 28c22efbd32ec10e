//! Integer moves, arithmetic, logic, shifts, bit fields, selects.

use super::decode::Op;
use super::flags::{Flags, code};
use super::{Aarch64, Bus, Semantics, Step};
use crate::interpret::memory::mask;
use crate::interpret::value::{Operation, Value, sign_extend};
use disarm64::decoder::InsnId;

pub const TABLE: &[(InsnId, Semantics)] = &[
    (InsnId::HINT_UIMM7, nothing),
    (InsnId::ADR_Rd_ADDR_PCREL21, |c, b, op| move_number(c, b, op, op.at.wrapping_add_signed(page_offset(op)))),
    (InsnId::ADRP_Rd_ADDR_ADRP, |c, b, op| {
        move_number(c, b, op, (op.at & !0xfff).wrapping_add_signed(page_offset(op) << 12))
    }),
    (InsnId::MOVZ_Rd_HALF, |c, b, op| move_number(c, b, op, half(op))),
    (InsnId::MOVN_Rd_HALF, |c, b, op| move_number(c, b, op, !half(op))),
    (InsnId::MOVK_Rd_HALF, move_keep),
    (InsnId::ADD_Rd_SP_Rn_SP_AIMM, add_immediate),
    (InsnId::SUB_Rd_SP_Rn_SP_AIMM, add_immediate),
    (InsnId::ADDS_Rd_Rn_SP_AIMM, add_immediate),
    (InsnId::SUBS_Rd_Rn_SP_AIMM, add_immediate),
    (InsnId::ADD_Rd_Rn_Rm_SFT, add_shifted),
    (InsnId::SUB_Rd_Rn_Rm_SFT, add_shifted),
    (InsnId::ADDS_Rd_Rn_Rm_SFT, add_shifted),
    (InsnId::SUBS_Rd_Rn_Rm_SFT, add_shifted),
    (InsnId::ADD_Rd_SP_Rn_SP_Rm_EXT, add_extended),
    (InsnId::SUB_Rd_SP_Rn_SP_Rm_EXT, add_extended),
    (InsnId::ADDS_Rd_Rn_SP_Rm_EXT, add_extended),
    (InsnId::SUBS_Rd_Rn_SP_Rm_EXT, add_extended),
    (InsnId::ADC_Rd_Rn_Rm, with_carry),
    (InsnId::ADCS_Rd_Rn_Rm, with_carry),
    (InsnId::SBC_Rd_Rn_Rm, with_carry),
    (InsnId::SBCS_Rd_Rn_Rm, with_carry),
    (InsnId::AND_Rd_SP_Rn_LIMM, |c, b, op| logic_immediate(c, b, op, Operation::And)),
    (InsnId::ORR_Rd_SP_Rn_LIMM, |c, b, op| logic_immediate(c, b, op, Operation::Or)),
    (InsnId::EOR_Rd_SP_Rn_LIMM, |c, b, op| logic_immediate(c, b, op, Operation::Xor)),
    (InsnId::ANDS_Rd_Rn_LIMM, |c, b, op| logic_immediate(c, b, op, Operation::And)),
    (InsnId::AND_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::And)),
    (InsnId::BIC_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::And)),
    (InsnId::ANDS_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::And)),
    (InsnId::BICS_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::And)),
    (InsnId::ORR_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::Or)),
    (InsnId::ORN_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::Or)),
    (InsnId::EOR_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::Xor)),
    (InsnId::EON_Rd_Rn_Rm_SFT, |c, b, op| logic_shifted(c, b, op, Operation::Xor)),
    (InsnId::SBFM_Rd_Rn_IMMR_IMMS, |c, b, op| bit_field(c, b, op, true)),
    (InsnId::UBFM_Rd_Rn_IMMR_IMMS, |c, b, op| bit_field(c, b, op, false)),
    (InsnId::BFM_Rd_Rn_IMMR_IMMS, bit_field_insert),
    (InsnId::EXTR_Rd_Rn_Rm_IMMS, extract),
    (InsnId::LSLV_Rd_Rn_Rm, |c, b, op| variable_shift(c, b, op, Shift::Left)),
    (InsnId::LSRV_Rd_Rn_Rm, |c, b, op| variable_shift(c, b, op, Shift::Right)),
    (InsnId::ASRV_Rd_Rn_Rm, |c, b, op| variable_shift(c, b, op, Shift::RightSigned)),
    (InsnId::RORV_Rd_Rn_Rm, |c, b, op| variable_shift(c, b, op, Shift::Rotate)),
    (InsnId::MADD_Rd_Rn_Rm_Ra, |c, b, op| multiply_add(c, b, op, 1)),
    (InsnId::MSUB_Rd_Rn_Rm_Ra, |c, b, op| multiply_add(c, b, op, -1)),
    (InsnId::SMADDL_Rd_Rn_Rm_Ra, |c, b, op| multiply_add_long(c, b, op, 1, true)),
    (InsnId::SMSUBL_Rd_Rn_Rm_Ra, |c, b, op| multiply_add_long(c, b, op, -1, true)),
    (InsnId::UMADDL_Rd_Rn_Rm_Ra, |c, b, op| multiply_add_long(c, b, op, 1, false)),
    (InsnId::UMSUBL_Rd_Rn_Rm_Ra, |c, b, op| multiply_add_long(c, b, op, -1, false)),
    (InsnId::SMULH_Rd_Rn_Rm, |c, b, op| multiply_high(c, b, op, true)),
    (InsnId::UMULH_Rd_Rn_Rm, |c, b, op| multiply_high(c, b, op, false)),
    (InsnId::SDIV_Rd_Rn_Rm, |c, b, op| divide(c, b, op, true)),
    (InsnId::UDIV_Rd_Rn_Rm, |c, b, op| divide(c, b, op, false)),
    (InsnId::CSEL_Rd_Rn_Rm_COND, |c, b, op| select(c, b, op, |_, _, v| v)),
    (InsnId::CSINC_Rd_Rn_Rm_COND, |c, b, op| select(c, b, op, |b, s, v| sum(b, v, Value::new(1), 1, s))),
    (InsnId::CSINV_Rd_Rn_Rm_COND, |c, b, op| select(c, b, op, |b, s, v| invert(b, v, s))),
    (InsnId::CSNEG_Rd_Rn_Rm_COND, |c, b, op| select(c, b, op, |b, s, v| sum(b, Value::ZERO, v, -1, s))),
    (InsnId::CLZ_Rd_Rn, |c, b, op| {
        unary(c, b, op, |v, size| u64::from((v << (64 - 8 * size)).leading_zeros()).min(8 * size as u64))
    }),
    (InsnId::CLS_Rd_Rn, |c, b, op| {
        unary(c, b, op, |v, size| {
            let v = sign_extend(v, size);
            u64::from((v ^ (v >> 63)).leading_zeros()).saturating_sub(65 - 8 * size as u64)
        })
    }),
    (InsnId::CTZ_Rd_Rn, |c, b, op| unary(c, b, op, |v, size| u64::from(v.trailing_zeros()).min(8 * size as u64))),
    (InsnId::CNT_Rd_Rn, |c, b, op| unary(c, b, op, |v, _| u64::from(v.count_ones()))),
    (InsnId::RBIT_Rd_Rn, |c, b, op| unary(c, b, op, |v, size| v.reverse_bits() >> (64 - 8 * size))),
    (InsnId::REV_Rd_Rn, |c, b, op| unary(c, b, op, |v, size| v.swap_bytes() >> (64 - 8 * size))),
    (InsnId::REV_Rd_X_Rn_X, |c, b, op| unary(c, b, op, |v, size| v.swap_bytes() >> (64 - 8 * size))),
    (InsnId::REV16_Rd_Rn, |c, b, op| {
        unary(c, b, op, |v, _| (v & 0x00ff_00ff_00ff_00ff) << 8 | v >> 8 & 0x00ff_00ff_00ff_00ff)
    }),
    (InsnId::REV32_Rd_Rn, |c, b, op| unary(c, b, op, |v, _| v.swap_bytes().rotate_left(32))),
    (InsnId::MRS_Rt_SYSREG, read_system_register),
    (InsnId::MSR_SYSREG_Rt, write_system_register),
    (InsnId::DMB_BARRIER, nothing),
    (InsnId::DSB_BARRIER, nothing),
    (InsnId::ISB_BARRIER_ISB, nothing),
    (InsnId::CLREX_UIMM4, nothing),
    // pointers are not signed here, so there is nothing to check either
    (InsnId::PACIA_Rd_Rn_SP, nothing),
    (InsnId::PACIB_Rd_Rn_SP, nothing),
    (InsnId::PACDA_Rd_Rn_SP, nothing),
    (InsnId::PACDB_Rd_Rn_SP, nothing),
    (InsnId::PACIZA_Rd, nothing),
    (InsnId::PACIZB_Rd, nothing),
    (InsnId::AUTIA_Rd_Rn_SP, nothing),
    (InsnId::AUTIB_Rd_Rn_SP, nothing),
    (InsnId::AUTDA_Rd_Rn_SP, nothing),
    (InsnId::AUTDB_Rd_Rn_SP, nothing),
    (InsnId::AUTIZA_Rd, nothing),
    (InsnId::AUTIZB_Rd, nothing),
    (InsnId::XPACI_Rd, nothing),
    (InsnId::XPACD_Rd, nothing),
];

pub fn nothing(_: &mut Aarch64, _: &mut Bus<'_>, _: &Op) -> Step {
    Step::Next
}

fn move_number(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, bits: u64) -> Step {
    // adr and adrp have bit 31 for themselves
    let is_address = op.bits(24, 5) == 0b1_0000;
    let size = if is_address { 8 } else { op.size() };
    cpu.set_general(bus, op.rd(), size, Value::new(bits & mask(size)));
    Step::Next
}

fn page_offset(op: &Op) -> i64 {
    op.signed(5, 19) << 2 | i64::from(op.bits(29, 2))
}

fn half(op: &Op) -> u64 {
    u64::from(op.bits(5, 16)) << (16 * op.bits(21, 2))
}

fn move_keep(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let kept = cpu.general(op.rd(), op.size()).bits & !(0xffff << (16 * op.bits(21, 2)));
    cpu.set_general(bus, op.rd(), op.size(), Value::new(kept | half(op)));
    Step::Next
}

/// `a + factor*b`
pub fn sum(bus: &mut Bus<'_>, a: Value, b: Value, factor: i64, size: usize) -> Value {
    let bits = a.bits.wrapping_add(b.bits.wrapping_mul(factor as u64)) & mask(size);
    Value { bits, shadow: bus.expressions.add(a, b, factor, size) }
}

fn product(bus: &mut Bus<'_>, a: Value, b: Value, size: usize) -> Value {
    Value { bits: a.bits.wrapping_mul(b.bits) & mask(size), shadow: bus.expressions.multiply(a, b, size) }
}

fn invert(bus: &mut Bus<'_>, a: Value, size: usize) -> Value {
    sum(bus, Value::new(mask(size)), a, -1, size)
}

/// Bit 30 makes it a difference, bit 29 sets the flags.
fn add_or_subtract(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, a: Value, b: Value) -> Value {
    let size = op.size();
    let is_difference = op.flag(30);
    let result = sum(bus, a, b, if is_difference { -1 } else { 1 }, size);
    if op.flag(29) {
        cpu.registers.flags = if is_difference { Flags::subtract(a, b, size) } else { Flags::add(a, b, result, size) };
    }
    result
}

fn add_immediate(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let a = cpu.general_or_sp(op.rn(), op.size());
    let b = Value::new(u64::from(op.bits(10, 12)) << (12 * op.bits(22, 1)));
    let result = add_or_subtract(cpu, bus, op, a, b);
    write_or_sp(cpu, bus, op, result);
    Step::Next
}

/// Forms that set flags have the zero register where the others have the stack pointer.
fn write_or_sp(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, value: Value) {
    if op.flag(29) {
        cpu.set_general(bus, op.rd(), op.size(), value);
    } else {
        cpu.set_general_or_sp(bus, op.rd(), op.size(), value);
    }
}

fn add_shifted(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let a = cpu.general(op.rn(), op.size());
    let b = shifted_source(cpu, bus, op);
    let result = add_or_subtract(cpu, bus, op, a, b);
    cpu.set_general(bus, op.rd(), op.size(), result);
    Step::Next
}

fn add_extended(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let a = cpu.general_or_sp(op.rn(), op.size());
    let b = extended_source(cpu, bus, op, op.bits(10, 3), op.size());
    let result = add_or_subtract(cpu, bus, op, a, b);
    write_or_sp(cpu, bus, op, result);
    Step::Next
}

/// Register `rm`, extended as bits 13 to 15 say and shifted left.
pub fn extended_source(cpu: &Aarch64, bus: &mut Bus<'_>, op: &Op, shift: u32, size: usize) -> Value {
    let option = op.bits(13, 3);
    let value = cpu.general(op.rm(), 8);
    let from = 1usize << (option & 3);
    let value = if from < 8 { bus.expressions.extend(value, from, option & 4 != 0) } else { value };
    let value = shifted(bus, value, Shift::Left, shift, 8);
    Value { bits: value.bits & mask(size), shadow: value.shadow }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift {
    Left,
    Right,
    RightSigned,
    Rotate,
}

/// Register `rm`, shifted as bits 22, 23 and 10 to 15 say.
fn shifted_source(cpu: &Aarch64, bus: &mut Bus<'_>, op: &Op) -> Value {
    let shift = match op.bits(22, 2) {
        0 => Shift::Left,
        1 => Shift::Right,
        2 => Shift::RightSigned,
        _ => Shift::Rotate,
    };
    shifted(bus, cpu.general(op.rm(), op.size()), shift, op.bits(10, 6), op.size())
}

fn shifted(bus: &mut Bus<'_>, value: Value, shift: Shift, by: u32, size: usize) -> Value {
    let by = by % (8 * size as u32);
    if by == 0 {
        return value;
    }
    let amount = Value::new(u64::from(by));
    let e = &mut bus.expressions;
    match shift {
        Shift::Left => {
            let factor = Value::new(1 << by);
            Value { bits: value.bits << by & mask(size), shadow: e.multiply(value, factor, 8) }
        }
        Shift::Right => Value {
            bits: (value.bits & mask(size)) >> by,
            shadow: e.binary(Operation::ShiftRight, value, amount, size),
        },
        Shift::RightSigned => Value {
            bits: (sign_extend(value.bits, size) >> by) as u64 & mask(size),
            shadow: e.binary(Operation::ShiftRightSigned, value, amount, size),
        },
        Shift::Rotate => {
            let v = value.bits & mask(size);
            Value::new((v >> by | v << (8 * size as u32 - by)) & mask(size))
        }
    }
}

fn variable_shift(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, shift: Shift) -> Step {
    let by = cpu.general(op.rm(), op.size()).bits as u32;
    let result = shifted(bus, cpu.general(op.rn(), op.size()), shift, by, op.size());
    cpu.set_general(bus, op.rd(), op.size(), result);
    Step::Next
}

/// The carry is a number of its own, a comparison where it depends on symbols.
fn with_carry(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.size();
    let (a, b) = (cpu.general(op.rn(), size), cpu.general(op.rm(), size));
    let b = if op.flag(30) { invert(bus, b, size) } else { b };
    let flags = cpu.registers.flags;
    let shadow = flags.condition(code::HS).map(|c| {
        let (left, right) = (bus.expressions.of(c.left, 8), bus.expressions.of(c.right, 8));
        bus.expressions.compare(c.relation, left, right)
    });
    let carry = Value { bits: u64::from(flags.is_carry()), shadow };
    let partial = sum(bus, a, b, 1, size);
    let result = sum(bus, partial, carry, 1, size);
    if op.flag(29) {
        let unsigned = u128::from(a.bits) + u128::from(b.bits) + u128::from(carry.bits);
        let side = |v: Value| i128::from(sign_extend(v.bits, size));
        let outcome = sign_extend(result.bits, size);
        let nzcv = u8::from(outcome < 0) << 3
            | u8::from(outcome == 0) << 2
            | u8::from(unsigned > u128::from(mask(size))) << 1
            | u8::from(side(a) + side(b) + i128::from(carry.bits) != i128::from(outcome));
        cpu.registers.flags = Flags::stored(nzcv);
    }
    cpu.set_general(bus, op.rd(), size, result);
    Step::Next
}

/// The repeated pattern of a logical immediate (C6.2, `DecodeBitMasks`).
pub fn bit_mask(op: &Op) -> Option<u64> {
    let (n, immr, imms) = (op.bits(22, 1), op.bits(16, 6), op.bits(10, 6));
    let length = 31u32.checked_sub((n << 6 | (!imms & 0x3f)).leading_zeros())?;
    if length == 0 {
        return None;
    }
    let width = 1u32 << length;
    let (ones, rotation) = (imms & (width - 1), immr & (width - 1));
    if ones == width - 1 {
        return None;
    }
    let all = u64::MAX >> (64 - width);
    let run = u64::MAX >> (63 - ones);
    let element = if rotation == 0 { run } else { (run >> rotation | run << (width - rotation)) & all };
    let mut pattern = element;
    let mut filled = width;
    while filled < 64 {
        pattern |= pattern << filled;
        filled *= 2;
    }
    Some(pattern)
}

/// `x & -1`, `x | 0`, `x ^ 0` are `x`; `x & 0` is a number.
fn logic(bus: &mut Bus<'_>, operation: Operation, a: Value, b: Value, size: usize) -> Value {
    let bits = match operation {
        Operation::And => a.bits & b.bits,
        Operation::Or => a.bits | b.bits,
        _ => a.bits ^ b.bits,
    } & mask(size);
    let neutral = if operation == Operation::And { mask(size) } else { 0 };
    let shadow = match (a.shadow, b.shadow) {
        (None, None) => None,
        (Some(s), None) if b.bits & mask(size) == neutral => Some(s),
        (None, Some(s)) if a.bits & mask(size) == neutral => Some(s),
        (Some(s), Some(t)) if s == t && operation != Operation::Xor => Some(s),
        (_, None) if operation == Operation::And && b.bits & mask(size) == 0 => None,
        (None, _) if operation == Operation::And && a.bits & mask(size) == 0 => None,
        _ => bus.expressions.binary(operation, a, b, size),
    };
    Value { bits, shadow }
}

fn logic_immediate(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, operation: Operation) -> Step {
    let size = op.size();
    let Some(pattern) = bit_mask(op) else { return cpu.unsupported(op) };
    let a = cpu.general(op.rn(), size);
    let result = logic(bus, operation, a, Value::new(pattern & mask(size)), size);
    if op.bits(29, 2) == 3 {
        cpu.registers.flags = Flags::logic(result, size);
        cpu.set_general(bus, op.rd(), size, result);
    } else {
        cpu.set_general_or_sp(bus, op.rd(), size, result);
    }
    Step::Next
}

fn logic_shifted(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, operation: Operation) -> Step {
    let size = op.size();
    let a = cpu.general(op.rn(), size);
    let b = shifted_source(cpu, bus, op);
    let b = if op.flag(21) { invert(bus, b, size) } else { b };
    let is_cleared = operation == Operation::Xor && op.rn() == op.rm() && op.bits(10, 6) == 0 && !op.flag(21);
    let result = if is_cleared { Value::ZERO } else { logic(bus, operation, a, b, size) };
    if op.bits(29, 2) == 3 {
        let is_test = op.rn() == op.rm() && op.bits(10, 6) == 0 && !op.flag(21);
        // `tst x, x` asks for the sign and zero of x itself
        cpu.registers.flags = if is_test { Flags::subtract(a, Value::ZERO, size) } else { Flags::logic(result, size) };
    }
    cpu.set_general(bus, op.rd(), size, result);
    Step::Next
}

/// The low `bits` bits, extended.
fn cut(bus: &mut Bus<'_>, value: Value, bits: u32, is_signed: bool) -> Value {
    if bits >= 64 {
        return value;
    }
    if matches!(bits, 8 | 16 | 32) {
        return bus.expressions.extend(value, bits as usize / 8, is_signed);
    }
    let shift = 64 - bits;
    let low = value.bits << shift;
    let cut = if is_signed { ((low as i64) >> shift) as u64 } else { low >> shift };
    if cut == value.bits {
        // sizes are small: cutting off zeros changes nothing under this assignment or any like it
        return value;
    }
    if is_signed {
        return Value::new(cut);
    }
    logic(bus, Operation::And, value, Value::new(u64::MAX >> shift), 8)
}

fn bit_field(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let size = op.size();
    let width = 8 * size as u32;
    let (immr, imms) = (op.bits(16, 6), op.bits(10, 6));
    if immr.max(imms) >= width {
        return cpu.unsupported(op);
    }
    let value = cpu.general(op.rn(), size);
    let result = if imms >= immr {
        let shift = if is_signed { Shift::RightSigned } else { Shift::Right };
        if imms + 1 == width {
            shifted(bus, value, shift, immr, size)
        } else {
            let moved = shifted(bus, value, Shift::Right, immr, size);
            cut(bus, moved, imms - immr + 1, is_signed)
        }
    } else {
        let low = if imms + 1 + (width - immr) == width { value } else { cut(bus, value, imms + 1, is_signed) };
        shifted(bus, low, Shift::Left, width - immr, size)
    };
    cpu.set_general(bus, op.rd(), size, Value { bits: result.bits & mask(size), shadow: result.shadow });
    Step::Next
}

fn bit_field_insert(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.size();
    let width = 8 * size as u32;
    let (immr, imms) = (op.bits(16, 6), op.bits(10, 6));
    if immr.max(imms) >= width {
        return cpu.unsupported(op);
    }
    let source = cpu.general(op.rn(), size).bits;
    let old = cpu.general(op.rd(), size).bits;
    let ones = |bits: u32| u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0);
    let (field, at) = if imms >= immr { (ones(imms - immr + 1), 0) } else { (ones(imms + 1), width - immr) };
    let moved = if imms >= immr { source >> immr } else { source };
    let bits = old & !(field << at) | (moved & field) << at;
    cpu.set_general(bus, op.rd(), size, Value::new(bits & mask(size)));
    Step::Next
}

/// Bits from the middle of a pair of registers; of one register twice: a rotation.
fn extract(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.size();
    let by = op.bits(10, 6);
    if by >= 8 * size as u32 {
        return cpu.unsupported(op);
    }
    let (high, low) = (cpu.general(op.rn(), size), cpu.general(op.rm(), size));
    let result = if by == 0 {
        low
    } else {
        let left = high.bits.checked_shl(8 * size as u32 - by).unwrap_or(0);
        Value::new((low.bits >> by | left) & mask(size))
    };
    cpu.set_general(bus, op.rd(), size, result);
    Step::Next
}

fn multiply_add(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, factor: i64) -> Step {
    let size = op.size();
    let (a, b, c) = (cpu.general(op.rn(), size), cpu.general(op.rm(), size), cpu.general(op.ra(), size));
    let product = product(bus, a, b, size);
    let result = sum(bus, c, product, factor, size);
    cpu.set_general(bus, op.rd(), size, result);
    Step::Next
}

fn multiply_add_long(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, factor: i64, is_signed: bool) -> Step {
    let (a, b) = (cpu.general(op.rn(), 4), cpu.general(op.rm(), 4));
    let a = bus.expressions.extend(a, 4, is_signed);
    let b = bus.expressions.extend(b, 4, is_signed);
    let product = product(bus, a, b, 8);
    let result = sum(bus, cpu.general(op.ra(), 8), product, factor, 8);
    cpu.set_general(bus, op.rd(), 8, result);
    Step::Next
}

fn multiply_high(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let (a, b) = (cpu.general(op.rn(), 8), cpu.general(op.rm(), 8));
    let bits = if is_signed {
        ((i128::from(a.bits as i64) * i128::from(b.bits as i64)) >> 64) as u64
    } else {
        ((u128::from(a.bits) * u128::from(b.bits)) >> 64) as u64
    };
    let operation = if is_signed { Operation::MultiplyHigh } else { Operation::MultiplyHighUnsigned };
    let shadow = bus.expressions.binary(operation, a, b, 8);
    cpu.set_general(bus, op.rd(), 8, Value { bits, shadow });
    Step::Next
}

/// Division by zero gives zero (C3.4.8).
fn divide(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let size = op.size();
    let (a, b) = (cpu.general(op.rn(), size), cpu.general(op.rm(), size));
    let bits = if is_signed {
        sign_extend(a.bits, size).checked_div(sign_extend(b.bits, size)).map_or(
            // the one quotient that does not fit
            if b.bits == 0 { 0 } else { a.bits },
            |q| q as u64,
        )
    } else {
        a.bits.checked_div(b.bits).unwrap_or(0)
    };
    let shadow = if b.bits == 0 { None } else { bus.expressions.binary(Operation::Divide, a, b, size) };
    cpu.set_general(bus, op.rd(), size, Value { bits: bits & mask(size), shadow });
    Step::Next
}

fn unary(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, f: fn(u64, usize) -> u64) -> Step {
    let value = cpu.general(op.rn(), op.size());
    cpu.set_general(bus, op.rd(), op.size(), Value::new(f(value.bits, op.size())));
    Step::Next
}

/// `rd = condition ? rn : f(rm)`
fn select(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, f: fn(&mut Bus<'_>, usize, Value) -> Value) -> Step {
    let size = op.size();
    let yes = cpu.general(op.rn(), size);
    let no = f(bus, size, cpu.general(op.rm(), size));
    let flags = cpu.registers.flags;
    let picked = if flags.test(op.bits(12, 4)) { yes } else { no };
    let shadow = match flags.condition(op.bits(12, 4)) {
        None => picked.shadow,
        Some(c) => {
            let e = &mut bus.expressions;
            let (left, right) = (e.of(c.left, 8), e.of(c.right, 8));
            match (yes, no) {
                (Value { bits: 1, shadow: None }, Value { bits: 0, shadow: None }) => {
                    Some(e.compare(c.relation, left, right))
                }
                (Value { bits: 0, shadow: None }, Value { bits: 1, shadow: None }) => {
                    Some(e.compare(c.relation.negated(), left, right))
                }
                _ => {
                    let (yes, no) = (e.of(yes, size), e.of(no, size));
                    e.select(c.relation, left, right, yes, no)
                }
            }
        }
    };
    cpu.set_general(bus, op.rd(), size, Value { bits: picked.bits, shadow });
    Step::Next
}

/// System registers by the bits of `mrs` that name them (o0, op1, CRn, CRm, op2: bits 5 to 19).
mod system {
    pub const TPIDR_EL0: u32 = 0x5e82;
    pub const FPCR: u32 = 0x5a20;
    pub const FPSR: u32 = 0x5a21;
    /// no block is zeroed by `dc zva`
    pub const DCZID_EL0: u32 = 0x5807;
    pub const CNTVCT_EL0: u32 = 0x5f02;
}

fn read_system_register(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let value = match op.bits(5, 15) {
        system::TPIDR_EL0 => crate::interpret::layout::THREAD_POINTER,
        system::FPCR | system::FPSR | system::CNTVCT_EL0 => 0,
        system::DCZID_EL0 => 1 << 4,
        _ => return cpu.unsupported(op),
    };
    cpu.set_general(bus, op.rd(), 8, Value::new(value));
    Step::Next
}

fn write_system_register(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    match op.bits(5, 15) {
        system::FPCR | system::FPSR => Step::Next,
        _ => cpu.unsupported(op),
    }
}
