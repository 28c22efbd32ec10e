//! Integer arithmetic, comparison and shifts on vector elements.

use super::decode::Op;
use super::vector::{Vector, lane_immediate, signed_element};
use super::{Aarch64, Bus, Semantics, Step};
use crate::interpret::memory::mask;
use crate::interpret::value::{Value, sign_extend};
use disarm64::decoder::InsnId;

pub const TABLE: &[(InsnId, Semantics)] = &[
    (InsnId::AND_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |_, a, b| a & b)),
    (InsnId::BIC_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |_, a, b| a & !b)),
    (InsnId::ORR_Vd_Vn_Vm, or),
    (InsnId::ORN_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |_, a, b| a | !b)),
    (InsnId::EOR_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |_, a, b| a ^ b)),
    (InsnId::BSL_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |d, a, b| d & a | !d & b)),
    (InsnId::BIT_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |d, a, b| d & !b | a & b)),
    (InsnId::BIF_Vd_Vn_Vm, |c, _, op| bitwise(c, op, |d, a, b| d & b | a & !b)),
    (InsnId::NOT_Vd_Vn, |c, _, op| bitwise(c, op, |_, a, _| !a)),
    (InsnId::ORR_Vd_SIMD_IMM_SFT, |c, _, op| bitwise_immediate(c, op, |d, i| d | i)),
    (InsnId::ORR_Vd_V_4H_SIMD_IMM_SFT_LSL, |c, _, op| bitwise_immediate(c, op, |d, i| d | i)),
    (InsnId::BIC_Vd_SIMD_IMM_SFT, |c, _, op| bitwise_immediate(c, op, |d, i| d & i)),
    (InsnId::BIC_Vd_V_4H_SIMD_IMM_SFT_LSL, |c, _, op| bitwise_immediate(c, op, |d, i| d & i)),
    (InsnId::ADD_Vd_Vn_Vm, |c, b, op| add(c, b, op, op.vector_size(), 1)),
    (InsnId::SUB_Vd_Vn_Vm, |c, b, op| add(c, b, op, op.vector_size(), -1)),
    (InsnId::ADD_Sd_Sn_Sm, |c, b, op| add(c, b, op, 8, 1)),
    (InsnId::SUB_Sd_Sn_Sm, |c, b, op| add(c, b, op, 8, -1)),
    (InsnId::MUL_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, _| a.wrapping_mul(b))),
    (InsnId::MLA_Vd_Vn_Vm, |c, _, op| each(c, op, |d, a, b, _| d.wrapping_add(a.wrapping_mul(b)))),
    (InsnId::MLS_Vd_Vn_Vm, |c, _, op| each(c, op, |d, a, b, _| d.wrapping_sub(a.wrapping_mul(b)))),
    (InsnId::NEG_Vd_Vn, |c, _, op| each(c, op, |_, a, _, _| a.wrapping_neg())),
    (InsnId::NEG_Sd_Sn, |c, _, op| each(c, op, |_, a, _, _| a.wrapping_neg())),
    (InsnId::ABS_Vd_Vn, |c, _, op| each(c, op, |_, a, _, _| a.wrapping_abs())),
    (InsnId::CNT_Vd_Vn, |c, _, op| each(c, op, |_, a, _, w| i64::from((a as u64 & mask(w)).count_ones()))),
    (InsnId::CLZ_Vd_Vn, |c, _, op| {
        each(c, op, |_, a, _, w| i64::from((a as u64 & mask(w)).leading_zeros()) - 64 + 8 * w as i64)
    }),
    (InsnId::SMAX_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, _| a.max(b))),
    (InsnId::SMIN_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, _| a.min(b))),
    (InsnId::UMAX_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, w| if unsigned(a, w) > unsigned(b, w) { a } else { b })),
    (InsnId::UMIN_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, w| if unsigned(a, w) < unsigned(b, w) { a } else { b })),
    (InsnId::CMEQ_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, _| -i64::from(a == b))),
    (InsnId::CMEQ_Sd_Sn_Sm, |c, _, op| each(c, op, |_, a, b, _| -i64::from(a == b))),
    (InsnId::CMEQ_Vd_Vn_IMM0, |c, _, op| each(c, op, |_, a, _, _| -i64::from(a == 0))),
    (InsnId::CMEQ_Sd_Sn_IMM0, |c, _, op| each(c, op, |_, a, _, _| -i64::from(a == 0))),
    (InsnId::CMGE_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, _| -i64::from(a >= b))),
    (InsnId::CMGE_Vd_Vn_IMM0, |c, _, op| each(c, op, |_, a, _, _| -i64::from(a >= 0))),
    (InsnId::CMGT_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, _| -i64::from(a > b))),
    (InsnId::CMGT_Vd_Vn_IMM0, |c, _, op| each(c, op, |_, a, _, _| -i64::from(a > 0))),
    (InsnId::CMLE_Vd_Vn_IMM0, |c, _, op| each(c, op, |_, a, _, _| -i64::from(a <= 0))),
    (InsnId::CMLT_Vd_Vn_IMM0, |c, _, op| each(c, op, |_, a, _, _| -i64::from(a < 0))),
    (InsnId::CMHI_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, w| -i64::from(unsigned(a, w) > unsigned(b, w)))),
    (InsnId::CMHS_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, w| -i64::from(unsigned(a, w) >= unsigned(b, w)))),
    (InsnId::CMTST_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, b, w| -i64::from((a & b) as u64 & mask(w) != 0))),
    (InsnId::ADDP_Vd_Vn_Vm, |c, _, op| pairs(c, op, |a, b, _| a.wrapping_add(b))),
    (InsnId::UMAXP_Vd_Vn_Vm, |c, _, op| pairs(c, op, |a, b, w| if unsigned(a, w) > unsigned(b, w) { a } else { b })),
    (InsnId::UMINP_Vd_Vn_Vm, |c, _, op| pairs(c, op, |a, b, w| if unsigned(a, w) < unsigned(b, w) { a } else { b })),
    (InsnId::SMAXP_Vd_Vn_Vm, |c, _, op| pairs(c, op, |a, b, _| a.max(b))),
    (InsnId::SMINP_Vd_Vn_Vm, |c, _, op| pairs(c, op, |a, b, _| a.min(b))),
    (InsnId::ADDP_Sd_Vn, add_both_lanes),
    (InsnId::ADDV_Fd_Vn, |c, _, op| across(c, op, |a, b, _| a.wrapping_add(b))),
    (InsnId::SMAXV_Fd_Vn, |c, _, op| across(c, op, |a, b, _| a.max(b))),
    (InsnId::SMINV_Fd_Vn, |c, _, op| across(c, op, |a, b, _| a.min(b))),
    (InsnId::UMAXV_Fd_Vn, |c, _, op| across(c, op, |a, b, w| if unsigned(a, w) > unsigned(b, w) { a } else { b })),
    (InsnId::UMINV_Fd_Vn, |c, _, op| across(c, op, |a, b, w| if unsigned(a, w) < unsigned(b, w) { a } else { b })),
    (InsnId::SHL_Vd_Vn_IMM_VLSL, |c, b, op| shift(c, b, op, op.vector_size(), Shift::Left)),
    (InsnId::SHL_Sd_Sn_IMM_VLSL, |c, b, op| shift(c, b, op, 8, Shift::Left)),
    (InsnId::USHR_Vd_Vn_IMM_VLSR, |c, b, op| shift(c, b, op, op.vector_size(), Shift::Right)),
    (InsnId::USHR_Sd_Sn_IMM_VLSR, |c, b, op| shift(c, b, op, 8, Shift::Right)),
    (InsnId::SSHR_Vd_Vn_IMM_VLSR, |c, b, op| shift(c, b, op, op.vector_size(), Shift::RightSigned)),
    (InsnId::SSHR_Sd_Sn_IMM_VLSR, |c, b, op| shift(c, b, op, 8, Shift::RightSigned)),
    (InsnId::USHL_Vd_Vn_Vm, |c, _, op| {
        each(c, op, |_, a, by, w| shift_by_element(unsigned(a, w) as i64, by, w, false))
    }),
    (InsnId::SSHL_Vd_Vn_Vm, |c, _, op| each(c, op, |_, a, by, w| shift_by_element(a, by, w, true))),
    (InsnId::SSHLL_Vd_Vn_IMM_VLSL, |c, _, op| widen(c, op, 0, true)),
    (InsnId::SSHLL2_Vd_Vn_IMM_VLSL, |c, _, op| widen(c, op, 1, true)),
    (InsnId::USHLL_Vd_Vn_IMM_VLSL, |c, _, op| widen(c, op, 0, false)),
    (InsnId::USHLL2_Vd_Vn_IMM_VLSL, |c, _, op| widen(c, op, 1, false)),
    (InsnId::SHRN_Vd_Vn_IMM_VLSR, |c, _, op| narrow_shifted(c, op, 0)),
    (InsnId::SHRN2_Vd_Vn_IMM_VLSR, |c, _, op| narrow_shifted(c, op, 1)),
    (InsnId::XTN_Vd_Vn, |c, _, op| narrow(c, op, 0)),
    (InsnId::XTN2_Vd_Vn, |c, _, op| narrow(c, op, 1)),
    (InsnId::UADDW_Vd_Vn_Vm, |c, _, op| add_wide(c, op, 0, false)),
    (InsnId::UADDW2_Vd_Vn_Vm, |c, _, op| add_wide(c, op, 1, false)),
    (InsnId::SADDW_Vd_Vn_Vm, |c, _, op| add_wide(c, op, 0, true)),
    (InsnId::SADDW2_Vd_Vn_Vm, |c, _, op| add_wide(c, op, 1, true)),
    (InsnId::UMULL_Vd_Vn_Vm, |c, _, op| multiply_long(c, op, 0, false)),
    (InsnId::UMULL2_Vd_Vn_Vm, |c, _, op| multiply_long(c, op, 1, false)),
    (InsnId::SMULL_Vd_Vn_Vm, |c, _, op| multiply_long(c, op, 0, true)),
    (InsnId::SMULL2_Vd_Vn_Vm, |c, _, op| multiply_long(c, op, 1, true)),
    (InsnId::UMLAL_Vd_Vn_Vm, |c, _, op| multiply_add_long(c, op, 0, false)),
    (InsnId::UMLAL2_Vd_Vn_Vm, |c, _, op| multiply_add_long(c, op, 1, false)),
    (InsnId::SMLAL_Vd_Vn_Vm, |c, _, op| multiply_add_long(c, op, 0, true)),
    (InsnId::SMLAL2_Vd_Vn_Vm, |c, _, op| multiply_add_long(c, op, 1, true)),
];

fn unsigned(element: i64, width: usize) -> u64 {
    element as u64 & mask(width)
}

fn bitwise(cpu: &mut Aarch64, op: &Op, f: fn(u64, u64, u64) -> u64) -> Step {
    let (d, a, b) = (cpu.vector_register(op.rd()), cpu.vector_register(op.rn()), cpu.vector_register(op.rm()));
    let mut result = Vector::ZERO;
    for n in 0..2 {
        result.set_element(8, n, f(d.element(8, n), a.element(8, n), b.element(8, n)));
    }
    cpu.set_vector_register(op.rd(), result.truncated(op.vector_size()));
    Step::Next
}

/// Of one register twice this is a move, which keeps shadows.
fn or(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    if op.rn() == op.rm() {
        cpu.set_vector_register(op.rd(), cpu.vector_register(op.rn()).truncated(op.vector_size()));
        return Step::Next;
    }
    bitwise(cpu, op, |_, a, b| a | b)
}

fn bitwise_immediate(cpu: &mut Aarch64, op: &Op, f: fn(u64, u64) -> u64) -> Step {
    let Some(bits) = lane_immediate(op) else { return cpu.unsupported(op) };
    let old = cpu.vector_register(op.rd());
    let result = Vector::new(f(old.element(8, 0), bits), f(old.element(8, 1), bits));
    cpu.set_vector_register(op.rd(), result.truncated(op.vector_size()));
    Step::Next
}

/// Sums of 64-bit lanes keep shadows.
fn add(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, size: usize, factor: i64) -> Step {
    let (a, b) = (cpu.vector_register(op.rn()), cpu.vector_register(op.rm()));
    let width = op.element_size();
    let mut result = Vector::ZERO;
    for n in 0..size / width {
        if width == 8 {
            let value = super::integer::sum(bus, a.lane(n), b.lane(n), factor, 8);
            result.set_lane(n, value);
        } else {
            let bits = a.element(width, n).wrapping_add(b.element(width, n).wrapping_mul(factor as u64));
            result.set_element(width, n, bits);
        }
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

/// Bytes that an element-wise instruction works on; scalar forms have bit 28 set and one element of 8 bytes.
fn working_size(op: &Op) -> usize {
    if op.flag(28) { 8 } else { op.vector_size() }
}

fn each(cpu: &mut Aarch64, op: &Op, f: fn(i64, i64, i64, usize) -> i64) -> Step {
    let (d, a, b) = (cpu.vector_register(op.rd()), cpu.vector_register(op.rn()), cpu.vector_register(op.rm()));
    let width = op.element_size();
    let mut result = Vector::ZERO;
    for n in 0..working_size(op) / width {
        let of = |v: &Vector| signed_element(v, width, n);
        result.set_element(width, n, f(of(&d), of(&a), of(&b), width) as u64);
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

fn pairs(cpu: &mut Aarch64, op: &Op, f: fn(i64, i64, usize) -> i64) -> Step {
    let sources = [cpu.vector_register(op.rn()), cpu.vector_register(op.rm())];
    let width = op.element_size();
    let half = op.vector_size() / width / 2;
    let mut result = Vector::ZERO;
    for (register, source) in sources.iter().enumerate() {
        for n in 0..half {
            let value = f(signed_element(source, width, 2 * n), signed_element(source, width, 2 * n + 1), width);
            result.set_element(width, register * half + n, value as u64);
        }
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

fn add_both_lanes(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let source = cpu.vector_register(op.rn());
    let value = super::integer::sum(bus, source.lane(0), source.lane(1), 1, 8);
    cpu.set_scalar(op.rd(), value);
    Step::Next
}

fn across(cpu: &mut Aarch64, op: &Op, f: fn(i64, i64, usize) -> i64) -> Step {
    let source = cpu.vector_register(op.rn());
    let width = op.element_size();
    let elements = (0..op.vector_size() / width).map(|n| signed_element(&source, width, n));
    let value = elements.reduce(|a, b| f(a, b, width)).unwrap_or(0);
    cpu.set_scalar(op.rd(), Value::new(unsigned(value, width)));
    Step::Next
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift {
    Left,
    Right,
    RightSigned,
}

/// Bytes of the elements and the number in the field of shifts (bits 16 to 22), whose highest bit tells the width.
fn shift_field(op: &Op) -> Option<(usize, u32)> {
    let field = op.bits(16, 7);
    let highest = 31u32.checked_sub(field.leading_zeros()).filter(|n| *n >= 3)?;
    Some((1 << (highest - 3), field))
}

fn shift(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, size: usize, shift: Shift) -> Step {
    let Some((width, field)) = shift_field(op) else { return cpu.unsupported(op) };
    let bits = 8 * width as u32;
    let by = if shift == Shift::Left { field - bits } else { 2 * bits - field };
    let source = cpu.vector_register(op.rn());
    let mut result = Vector::ZERO;
    for n in 0..size / width {
        let element = source.value(width, n);
        let value = match shift {
            Shift::Left => Value {
                bits: element.bits.checked_shl(by).unwrap_or(0),
                shadow: if width == 8 { bus.expressions.multiply(element, Value::new(1 << by), 8) } else { None },
            },
            Shift::Right => Value::new(element.bits.checked_shr(by).unwrap_or(0)),
            Shift::RightSigned => Value::new((sign_extend(element.bits, width) >> by.min(63)) as u64),
        };
        result.set_value(width, n, value);
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

/// The low byte of the second element is the amount, negative for a shift to the right.
fn shift_by_element(element: i64, by: i64, width: usize, is_signed: bool) -> i64 {
    let by = i32::from(by as i8);
    let bits = 8 * width as i32;
    if by >= bits {
        0
    } else if by >= 0 {
        element << by
    } else if -by >= bits {
        if is_signed { element >> 63 } else { 0 }
    } else {
        element >> -by
    }
}

fn widen(cpu: &mut Aarch64, op: &Op, half: usize, is_signed: bool) -> Step {
    let Some((width, field)) = shift_field(op).filter(|(width, _)| *width < 8) else { return cpu.unsupported(op) };
    let by = field - 8 * width as u32;
    let source = cpu.vector_register(op.rn());
    let count = 8 / width;
    let mut result = Vector::ZERO;
    for n in 0..count {
        let at = half * count + n;
        let value = if is_signed { signed_element(&source, width, at) as u64 } else { source.element(width, at) };
        result.set_element(2 * width, n, value << by);
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

fn narrow(cpu: &mut Aarch64, op: &Op, half: usize) -> Step {
    narrow_by(cpu, op, half, op.element_size(), 0)
}

fn narrow_shifted(cpu: &mut Aarch64, op: &Op, half: usize) -> Step {
    let Some((width, field)) = shift_field(op).filter(|(width, _)| *width < 8) else { return cpu.unsupported(op) };
    narrow_by(cpu, op, half, width, 16 * width as u32 - field)
}

/// `width` is that of the result.
fn narrow_by(cpu: &mut Aarch64, op: &Op, half: usize, width: usize, by: u32) -> Step {
    if width >= 8 {
        return cpu.unsupported(op);
    }
    let source = cpu.vector_register(op.rn());
    let count = 8 / width;
    let mut result = if half == 1 { cpu.vector_register(op.rd()) } else { Vector::ZERO };
    for n in 0..count {
        result.set_element(width, half * count + n, source.element(2 * width, n) >> by);
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

/// Elements of half the width, from the lower or upper half of a register.
fn long_element(vector: &Vector, width: usize, half: usize, n: usize, is_signed: bool) -> u64 {
    let at = half * (8 / width) + n;
    if is_signed { signed_element(vector, width, at) as u64 } else { vector.element(width, at) }
}

fn long(cpu: &mut Aarch64, op: &Op, half: usize, is_signed: bool, f: fn(u64, u64, u64, u64) -> u64) -> Step {
    let width = op.element_size();
    if width >= 8 {
        return cpu.unsupported(op);
    }
    let (d, a, b) = (cpu.vector_register(op.rd()), cpu.vector_register(op.rn()), cpu.vector_register(op.rm()));
    let mut result = Vector::ZERO;
    for n in 0..8 / width {
        let narrow = |v: &Vector| long_element(v, width, half, n, is_signed);
        result.set_element(2 * width, n, f(d.element(2 * width, n), a.element(2 * width, n), narrow(&a), narrow(&b)));
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

fn add_wide(cpu: &mut Aarch64, op: &Op, half: usize, is_signed: bool) -> Step {
    long(cpu, op, half, is_signed, |_, wide, _, b| wide.wrapping_add(b))
}

fn multiply_long(cpu: &mut Aarch64, op: &Op, half: usize, is_signed: bool) -> Step {
    long(cpu, op, half, is_signed, |_, _, a, b| a.wrapping_mul(b))
}

fn multiply_add_long(cpu: &mut Aarch64, op: &Op, half: usize, is_signed: bool) -> Step {
    long(cpu, op, half, is_signed, |d, _, a, b| d.wrapping_add(a.wrapping_mul(b)))
}
