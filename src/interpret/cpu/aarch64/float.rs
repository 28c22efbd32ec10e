//! Scalar floating-point numbers, as far as host code uses them: hash tables, conversions of sizes. Kernels are skipped.

use super::decode::Op;
use super::flags::Flags;
use super::vector::scalar_size;
use super::{Aarch64, Bus, Semantics, Step};
use crate::interpret::memory::mask;
use crate::interpret::value::{Value, sign_extend};
use disarm64::decoder::InsnId;

pub const TABLE: &[(InsnId, Semantics)] = &[
    (InsnId::FADD_Fd_Fn_Fm, |c, _, op| two(c, op, |a, b| a + b)),
    (InsnId::FADD_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, |a, b| a + b)),
    (InsnId::FSUB_Fd_Fn_Fm, |c, _, op| two(c, op, |a, b| a - b)),
    (InsnId::FSUB_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, |a, b| a - b)),
    (InsnId::FMUL_Fd_Fn_Fm, |c, _, op| two(c, op, |a, b| a * b)),
    (InsnId::FMUL_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, |a, b| a * b)),
    (InsnId::FDIV_Fd_Fn_Fm, |c, _, op| two(c, op, |a, b| a / b)),
    (InsnId::FDIV_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, |a, b| a / b)),
    (InsnId::FMAX_Fd_Fn_Fm, |c, _, op| two(c, op, f64::max)),
    (InsnId::FMAX_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, f64::max)),
    (InsnId::FMAXNM_Fd_Fn_Fm, |c, _, op| two(c, op, f64::max)),
    (InsnId::FMAXNM_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, f64::max)),
    (InsnId::FMIN_Fd_Fn_Fm, |c, _, op| two(c, op, f64::min)),
    (InsnId::FMIN_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, f64::min)),
    (InsnId::FMINNM_Fd_Fn_Fm, |c, _, op| two(c, op, f64::min)),
    (InsnId::FMINNM_Fd_S_S_Fn_S_S_Fm_S_S, |c, _, op| two(c, op, f64::min)),
    (InsnId::FMADD_Fd_Fn_Fm_Fa, |c, _, op| fused(c, op, 1.0, 1.0)),
    (InsnId::FMADD_Fd_S_S_Fn_S_S_Fm_S_S_Fa_S_S, |c, _, op| fused(c, op, 1.0, 1.0)),
    (InsnId::FMSUB_Fd_Fn_Fm_Fa, |c, _, op| fused(c, op, -1.0, 1.0)),
    (InsnId::FMSUB_Fd_S_S_Fn_S_S_Fm_S_S_Fa_S_S, |c, _, op| fused(c, op, -1.0, 1.0)),
    (InsnId::FNMADD_Fd_Fn_Fm_Fa, |c, _, op| fused(c, op, -1.0, -1.0)),
    (InsnId::FNMADD_Fd_S_S_Fn_S_S_Fm_S_S_Fa_S_S, |c, _, op| fused(c, op, -1.0, -1.0)),
    (InsnId::FABS_Fd_Fn, |c, _, op| one(c, op, f64::abs)),
    (InsnId::FABS_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::abs)),
    (InsnId::FNEG_Fd_Fn, |c, _, op| one(c, op, |a| -a)),
    (InsnId::FNEG_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, |a| -a)),
    (InsnId::FSQRT_Fd_Fn, |c, _, op| one(c, op, f64::sqrt)),
    (InsnId::FSQRT_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::sqrt)),
    (InsnId::FRINTP_Fd_Fn, |c, _, op| one(c, op, f64::ceil)),
    (InsnId::FRINTP_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::ceil)),
    (InsnId::FRINTM_Fd_Fn, |c, _, op| one(c, op, f64::floor)),
    (InsnId::FRINTM_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::floor)),
    (InsnId::FRINTZ_Fd_Fn, |c, _, op| one(c, op, f64::trunc)),
    (InsnId::FRINTZ_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::trunc)),
    (InsnId::FRINTA_Fd_Fn, |c, _, op| one(c, op, f64::round)),
    (InsnId::FRINTA_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::round)),
    (InsnId::FRINTN_Fd_Fn, |c, _, op| one(c, op, f64::round_ties_even)),
    (InsnId::FRINTN_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::round_ties_even)),
    (InsnId::FRINTX_Fd_Fn, |c, _, op| one(c, op, f64::round_ties_even)),
    (InsnId::FRINTX_Fd_S_S_Fn_S_S, |c, _, op| one(c, op, f64::round_ties_even)),
    (InsnId::FCVT_Fd_Fn, convert),
    (InsnId::FCMP_Fn_Fm, |c, _, op| compare(c, op, false)),
    (InsnId::FCMP_Fn_S_S_Fm_S_S, |c, _, op| compare(c, op, false)),
    (InsnId::FCMPE_Fn_Fm, |c, _, op| compare(c, op, false)),
    (InsnId::FCMPE_Fn_S_S_Fm_S_S, |c, _, op| compare(c, op, false)),
    (InsnId::FCMP_Fn_FPIMM0, |c, _, op| compare(c, op, true)),
    (InsnId::FCMP_Fn_S_S_FPIMM0, |c, _, op| compare(c, op, true)),
    (InsnId::FCMPE_Fn_FPIMM0, |c, _, op| compare(c, op, true)),
    (InsnId::FCMPE_Fn_S_S_FPIMM0, |c, _, op| compare(c, op, true)),
    (InsnId::FCSEL_Fd_Fn_Fm_COND, select),
    (InsnId::FCSEL_Fd_S_S_Fn_S_S_Fm_S_S_COND, select),
    (InsnId::SCVTF_Fd_Rn, |c, _, op| from_general(c, op, true)),
    (InsnId::SCVTF_Fd_S_D_Rn_W, |c, _, op| from_general(c, op, true)),
    (InsnId::UCVTF_Fd_Rn, |c, _, op| from_general(c, op, false)),
    (InsnId::UCVTF_Fd_S_D_Rn_W, |c, _, op| from_general(c, op, false)),
    (InsnId::SCVTF_Sd_Sn, |c, _, op| from_vector(c, op, true)),
    (InsnId::UCVTF_Sd_Sn, |c, _, op| from_vector(c, op, false)),
    (InsnId::FCVTZS_Rd_Fn, |c, b, op| to_general(c, b, op, f64::trunc, true)),
    (InsnId::FCVTZS_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::trunc, true)),
    (InsnId::FCVTZU_Rd_Fn, |c, b, op| to_general(c, b, op, f64::trunc, false)),
    (InsnId::FCVTZU_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::trunc, false)),
    (InsnId::FCVTPS_Rd_Fn, |c, b, op| to_general(c, b, op, f64::ceil, true)),
    (InsnId::FCVTPS_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::ceil, true)),
    (InsnId::FCVTPU_Rd_Fn, |c, b, op| to_general(c, b, op, f64::ceil, false)),
    (InsnId::FCVTPU_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::ceil, false)),
    (InsnId::FCVTMS_Rd_Fn, |c, b, op| to_general(c, b, op, f64::floor, true)),
    (InsnId::FCVTMS_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::floor, true)),
    (InsnId::FCVTMU_Rd_Fn, |c, b, op| to_general(c, b, op, f64::floor, false)),
    (InsnId::FCVTMU_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::floor, false)),
    (InsnId::FCVTAS_Rd_Fn, |c, b, op| to_general(c, b, op, f64::round, true)),
    (InsnId::FCVTAS_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::round, true)),
    (InsnId::FCVTNS_Rd_Fn, |c, b, op| to_general(c, b, op, f64::round_ties_even, true)),
    (InsnId::FCVTNS_Rd_W_Fn_S_D, |c, b, op| to_general(c, b, op, f64::round_ties_even, true)),
];

/// A single or double register as a double; halves are not modelled.
fn number(cpu: &Aarch64, register: usize, size: usize) -> Option<f64> {
    let bits = cpu.vector_register(register).element(size, 0);
    match size {
        8 => Some(f64::from_bits(bits)),
        4 => Some(f64::from(f32::from_bits(bits as u32))),
        _ => None,
    }
}

fn set_number(cpu: &mut Aarch64, register: usize, size: usize, number: f64) {
    let bits = if size == 8 { number.to_bits() } else { u64::from((number as f32).to_bits()) };
    cpu.set_scalar(register, Value::new(bits));
}

/// Registers of a scalar operation in their size; `None` for halves.
fn operands(cpu: &Aarch64, op: &Op) -> Option<(usize, f64, f64)> {
    let size = scalar_size(op)?;
    Some((size, number(cpu, op.rn(), size)?, number(cpu, op.rm(), size)?))
}

fn two(cpu: &mut Aarch64, op: &Op, f: fn(f64, f64) -> f64) -> Step {
    let Some((size, a, b)) = operands(cpu, op) else { return cpu.unsupported(op) };
    set_number(cpu, op.rd(), size, f(a, b));
    Step::Next
}

fn one(cpu: &mut Aarch64, op: &Op, f: fn(f64) -> f64) -> Step {
    let Some((size, a, _)) = operands(cpu, op) else { return cpu.unsupported(op) };
    set_number(cpu, op.rd(), size, f(a));
    Step::Next
}

fn fused(cpu: &mut Aarch64, op: &Op, factor: f64, sign: f64) -> Step {
    let Some((size, a, b)) = operands(cpu, op) else { return cpu.unsupported(op) };
    let Some(c) = number(cpu, op.ra(), size) else { return cpu.unsupported(op) };
    set_number(cpu, op.rd(), size, (factor * a).mul_add(b, sign * c));
    Step::Next
}

fn convert(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let (from, to) = (scalar_size(op), op.bits(15, 2));
    match (from.and_then(|size| number(cpu, op.rn(), size)), to) {
        (Some(a), 0) => set_number(cpu, op.rd(), 4, a),
        (Some(a), 1) => set_number(cpu, op.rd(), 8, a),
        _ => return cpu.unsupported(op),
    }
    Step::Next
}

fn compare(cpu: &mut Aarch64, op: &Op, with_zero: bool) -> Step {
    let Some((_, a, b)) = operands(cpu, op) else { return cpu.unsupported(op) };
    let b = if with_zero { 0.0 } else { b };
    // negative, zero, carry, overflow (C6.2 FCMP)
    let nzcv = match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Less) => 0b1000,
        Some(std::cmp::Ordering::Equal) => 0b0110,
        Some(std::cmp::Ordering::Greater) => 0b0010,
        None => 0b0011,
    };
    cpu.registers.flags = Flags::stored(nzcv);
    Step::Next
}

fn select(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some(size) = scalar_size(op) else { return cpu.unsupported(op) };
    let from = if cpu.registers.flags.test(op.bits(12, 4)) { op.rn() } else { op.rm() };
    cpu.set_scalar(op.rd(), cpu.vector_register(from).value(size, 0));
    Step::Next
}

fn integer_as_float(bits: u64, size: usize, is_signed: bool) -> f64 {
    if is_signed { sign_extend(bits, size) as f64 } else { (bits & mask(size)) as f64 }
}

fn from_general(cpu: &mut Aarch64, op: &Op, is_signed: bool) -> Step {
    let Some(size @ (4 | 8)) = scalar_size(op) else { return cpu.unsupported(op) };
    let number = integer_as_float(cpu.general(op.rn(), op.size()).bits, op.size(), is_signed);
    set_number(cpu, op.rd(), size, number);
    Step::Next
}

fn from_vector(cpu: &mut Aarch64, op: &Op, is_signed: bool) -> Step {
    let size = if op.flag(22) { 8 } else { 4 };
    let number = integer_as_float(cpu.vector_register(op.rn()).element(size, 0), size, is_signed);
    set_number(cpu, op.rd(), size, number);
    Step::Next
}

/// Conversions saturate, and a NaN becomes zero: as Rust's own do.
fn to_general(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, round: fn(f64) -> f64, is_signed: bool) -> Step {
    let size = op.size();
    let Some(a) = scalar_size(op).and_then(|from| number(cpu, op.rn(), from)).map(round) else {
        return cpu.unsupported(op);
    };
    let bits = match (size, is_signed) {
        (4, true) => u64::from(a as i32 as u32),
        (4, false) => u64::from(a as u32),
        (_, true) => a as i64 as u64,
        (_, false) => a as u64,
    };
    cpu.set_general(bus, op.rd(), size, Value::new(bits));
    Step::Next
}
