//! Vector registers and the instructions that only move their elements. Shadows travel with 64-bit lanes: compilers
//! build shape arrays with `dup`, `ins`, `fmov` and 16-byte stores.

use super::decode::Op;
use super::{Aarch64, Bus, Semantics, Step};
use crate::interpret::cpu::lanes::Lanes;
use crate::interpret::memory::mask;
use crate::interpret::value::{Value, sign_extend};
use disarm64::decoder::InsnId;
use std::rc::Rc;

/// A vector register: two lanes of 64 bits.
pub type Vector = Lanes<2>;

impl Vector {
    /// Numbers alone.
    pub const fn new(low: u64, high: u64) -> Self {
        Self { lanes: [low, high], shadows: [None; 2] }
    }
    /// The `n`-th element with its shadow, where it is a whole lane or the only thing in one.
    pub fn value(&self, width: usize, n: usize) -> Value {
        let at = n * width;
        let lane = self.lane(at / 8);
        let is_alone = at.is_multiple_of(8) && lane.bits & !mask(width) == 0;
        Value { bits: self.element(width, n), shadow: lane.shadow.filter(|_| width == 8 || is_alone) }
    }
    /// Sets an element with its shadow, as far as lanes can hold it.
    pub fn set_value(&mut self, width: usize, n: usize, value: Value) {
        if width == 8 {
            self.set_lane(n, value);
        } else {
            self.set_element(width, n, value.bits);
        }
    }
    /// Only the first `size` bytes.
    #[must_use]
    pub fn truncated(mut self, size: usize) -> Self {
        for (n, (lane, shadow)) in self.lanes.iter_mut().zip(&mut self.shadows).enumerate() {
            let left = size.saturating_sub(8 * n);
            if left < 8 {
                *lane &= if left == 0 { 0 } else { mask(left) };
                *shadow = None;
            }
        }
        self
    }
}

impl Op {
    /// Bytes of a vector instruction's registers (bit 30).
    pub fn vector_size(&self) -> usize {
        if self.flag(30) { 16 } else { 8 }
    }
    /// Bytes of its elements (bits 22 and 23).
    pub fn element_size(&self) -> usize {
        1 << self.bits(22, 2)
    }
    /// Bytes and number of the element that the field of `dup`, `ins` and `umov` (bits 16 to 20) names.
    fn element_of_field(&self) -> Option<(usize, usize)> {
        let field = self.bits(16, 5);
        let scale = field.trailing_zeros();
        (scale < 4).then(|| (1 << scale, (field >> (scale + 1)) as usize))
    }
}

impl Aarch64 {
    pub(super) fn vector_register(&self, number: usize) -> Vector {
        self.registers.vector.get(number).copied().unwrap_or(Vector::ZERO)
    }
    pub(super) fn set_vector_register(&mut self, number: usize, vector: Vector) {
        if let Some(register) = Rc::make_mut(&mut self.registers.vector).get_mut(number) {
            *register = vector;
        }
    }
    /// Writes the low bytes of a vector register; the rest becomes zero.
    pub(super) fn set_scalar(&mut self, number: usize, value: Value) {
        let mut vector = Vector::ZERO;
        vector.set_lane(0, value);
        self.set_vector_register(number, vector);
    }
}

pub const TABLE: &[(InsnId, Semantics)] = &[
    (InsnId::DUP_Vd_En, duplicate_element),
    (InsnId::DUP_Vd_Rn, duplicate_register),
    (InsnId::DUP_Sd_En, take_element),
    (InsnId::INS_Ed_Rn, insert_register),
    (InsnId::INS_Ed_En, insert_element),
    (InsnId::UMOV_Rd_En, |c, b, op| move_element(c, b, op, false)),
    (InsnId::SMOV_Rd_En, |c, b, op| move_element(c, b, op, true)),
    (InsnId::FMOV_Rd_Fn, move_to_general),
    (InsnId::FMOV_Rd_W_Fn_S_S, move_to_general),
    (InsnId::FMOV_Rd_VnD1, |c, b, op| {
        let value = c.vector_register(op.rn()).lane(1);
        c.set_general(b, op.rd(), 8, value);
        Step::Next
    }),
    (InsnId::FMOV_Fd_Rn, move_from_general),
    (InsnId::FMOV_Fd_S_S_Rn_W, move_from_general),
    (InsnId::FMOV_VdD1_Rn, |c, _, op| {
        let mut vector = c.vector_register(op.rd());
        vector.set_lane(1, c.general(op.rn(), 8));
        c.set_vector_register(op.rd(), vector);
        Step::Next
    }),
    (InsnId::FMOV_Fd_Fn, move_scalar),
    (InsnId::FMOV_Fd_S_S_Fn_S_S, move_scalar),
    (InsnId::FMOV_Fd_FPIMM, move_float_immediate),
    (InsnId::FMOV_Fd_S_S_FPIMM, move_float_immediate),
    (InsnId::MOVI_Vd_SIMD_IMM_SFT, move_immediate),
    (InsnId::MOVI_Vd_V_4H_SIMD_IMM_SFT_LSL, move_immediate),
    (InsnId::MOVI_Vd_V_2S_SIMD_IMM_SFT_MSL, move_immediate),
    (InsnId::MOVI_Vd_V_8B_SIMD_IMM_SFT_LSL, move_immediate),
    (InsnId::MOVI_Sd_SIMD_IMM, move_immediate),
    (InsnId::MOVI_Vd_SIMD_IMM, move_immediate),
    (InsnId::MVNI_Vd_SIMD_IMM_SFT, move_immediate),
    (InsnId::MVNI_Vd_V_4H_SIMD_IMM_SFT_LSL, move_immediate),
    (InsnId::MVNI_Vd_V_2S_SIMD_IMM_SFT_MSL, move_immediate),
    (InsnId::FMOV_Vd_SIMD_FPIMM, move_immediate),
    (InsnId::FMOV_Vd_V_2D_SIMD_FPIMM, move_immediate),
    (InsnId::EXT_Vd_Vn_Vm_IDX, extract),
    (InsnId::ZIP1_Vd_Vn_Vm, |c, _, op| permute(c, op, |n, _| (n % 2, n / 2))),
    (InsnId::ZIP2_Vd_Vn_Vm, |c, _, op| permute(c, op, |n, half| (n % 2, n / 2 + half))),
    (InsnId::UZP1_Vd_Vn_Vm, |c, _, op| permute(c, op, |n, half| (n / half, 2 * (n % half)))),
    (InsnId::UZP2_Vd_Vn_Vm, |c, _, op| permute(c, op, |n, half| (n / half, 2 * (n % half) + 1))),
    (InsnId::TRN1_Vd_Vn_Vm, |c, _, op| permute(c, op, |n, _| (n % 2, n - n % 2))),
    (InsnId::TRN2_Vd_Vn_Vm, |c, _, op| permute(c, op, |n, _| (n % 2, n - n % 2 + 1))),
    (InsnId::TBL_Vd_LVn_Vm, |c, _, op| look_up(c, op, false)),
    (InsnId::TBX_Vd_LVn_Vm, |c, _, op| look_up(c, op, true)),
    (InsnId::REV64_Vd_Vn, |c, _, op| reverse(c, op, 8)),
    (InsnId::REV32_Vd_Vn, |c, _, op| reverse(c, op, 4)),
    (InsnId::REV16_Vd_Vn, |c, _, op| reverse(c, op, 2)),
];

fn fill(width: usize, size: usize, value: Value) -> Vector {
    let mut vector = Vector::ZERO;
    for n in 0..size / width {
        vector.set_value(width, n, value);
    }
    vector
}

fn duplicate_element(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some((width, n)) = op.element_of_field() else { return cpu.unsupported(op) };
    let value = cpu.vector_register(op.rn()).value(width, n);
    cpu.set_vector_register(op.rd(), fill(width, op.vector_size(), value));
    Step::Next
}

fn duplicate_register(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some((width, _)) = op.element_of_field() else { return cpu.unsupported(op) };
    let value = cpu.general(op.rn(), width);
    cpu.set_vector_register(op.rd(), fill(width, op.vector_size(), value));
    Step::Next
}

fn take_element(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some((width, n)) = op.element_of_field() else { return cpu.unsupported(op) };
    cpu.set_scalar(op.rd(), cpu.vector_register(op.rn()).value(width, n));
    Step::Next
}

fn insert_register(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some((width, n)) = op.element_of_field() else { return cpu.unsupported(op) };
    let mut vector = cpu.vector_register(op.rd());
    vector.set_value(width, n, cpu.general(op.rn(), width));
    cpu.set_vector_register(op.rd(), vector);
    Step::Next
}

fn insert_element(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some((width, n)) = op.element_of_field() else { return cpu.unsupported(op) };
    let from = op.bits(11, 4) as usize / width;
    let mut vector = cpu.vector_register(op.rd());
    vector.set_value(width, n, cpu.vector_register(op.rn()).value(width, from));
    cpu.set_vector_register(op.rd(), vector);
    Step::Next
}

fn move_element(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let Some((width, n)) = op.element_of_field() else { return cpu.unsupported(op) };
    let value = cpu.vector_register(op.rn()).value(width, n);
    let size = op.vector_size() / 2;
    let value = if width < 8 { bus.expressions.extend(value, width, is_signed) } else { value };
    cpu.set_general(bus, op.rd(), size, Value { bits: value.bits & mask(size), ..value });
    Step::Next
}

/// Bytes of a scalar float (bits 22 and 23): single, double, half.
pub fn scalar_size(op: &Op) -> Option<usize> {
    match op.bits(22, 2) {
        0 => Some(4),
        1 => Some(8),
        3 => Some(2),
        _ => None,
    }
}

fn move_to_general(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let Some(width) = scalar_size(op) else { return cpu.unsupported(op) };
    let value = cpu.vector_register(op.rn()).value(width, 0);
    cpu.set_general(bus, op.rd(), op.size(), value);
    Step::Next
}

fn move_from_general(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let Some(width) = scalar_size(op) else { return cpu.unsupported(op) };
    let value = cpu.general(op.rn(), width);
    let value = if width < 8 { bus.expressions.extend(value, width, false) } else { value };
    cpu.set_scalar(op.rd(), value);
    Step::Next
}

fn move_scalar(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some(width) = scalar_size(op) else { return cpu.unsupported(op) };
    cpu.set_scalar(op.rd(), cpu.vector_register(op.rn()).value(width, 0));
    Step::Next
}

/// The eight bits of a float constant as a double: sign, three bits of exponent, four of fraction (C2.2.3).
fn small_float(bits: u32) -> f64 {
    let exponent = ((bits >> 4 & 7) ^ 4) as i32 - 3;
    let magnitude = f64::from(16 + (bits & 15)) / 16.0 * 2f64.powi(exponent);
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

fn move_float_immediate(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let number = small_float(op.bits(13, 8));
    let bits = match scalar_size(op) {
        Some(8) => number.to_bits(),
        Some(4) => u64::from((number as f32).to_bits()),
        _ => return cpu.unsupported(op),
    };
    cpu.set_scalar(op.rd(), Value::new(bits));
    Step::Next
}

/// The constant of a vector move (C2.2.3, `AdvSIMDExpandImm`): the 64 bits of each lane.
pub fn lane_immediate(op: &Op) -> Option<u64> {
    let byte = u64::from(op.bits(16, 3) << 5 | op.bits(5, 5));
    let mode = op.bits(12, 4);
    let is_inverted = op.flag(29);
    let repeat = |width: usize, bits: u64| (0..8 / width).fold(0, |lane, n| lane | bits << (8 * width * n));
    let bits = match mode {
        0..=7 => repeat(4, byte << (8 * (mode >> 1))),
        8..=11 => repeat(2, byte << (8 * (mode >> 1 & 1))),
        12 => repeat(4, byte << 8 | 0xff),
        13 => repeat(4, byte << 16 | 0xffff),
        14 if is_inverted => {
            return Some((0..8).fold(0, |l, n| if byte >> n & 1 != 0 { l | 0xff << (8 * n) } else { l }));
        }
        14 => return Some(repeat(1, byte)),
        _ if is_inverted => return Some(small_float(byte as u32).to_bits()),
        _ => return Some(repeat(4, u64::from((small_float(byte as u32) as f32).to_bits()))),
    };
    Some(if is_inverted { !bits } else { bits })
}

fn move_immediate(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let Some(bits) = lane_immediate(op) else { return cpu.unsupported(op) };
    // the scalar form has the vector's size bit clear
    cpu.set_vector_register(op.rd(), Vector::new(bits, bits).truncated(op.vector_size()));
    Step::Next
}

fn extract(cpu: &mut Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    let (low, high) = (cpu.vector_register(op.rn()), cpu.vector_register(op.rm()));
    let (size, from) = (op.vector_size(), op.bits(11, 4) as usize);
    let mut result = Vector::ZERO;
    if from % 8 == 0 {
        for n in 0..size / 8 {
            let at = n + from / 8;
            let value = if at < size / 8 { low.lane(at) } else { high.lane(at - size / 8) };
            result.set_lane(n, value);
        }
    } else {
        for n in 0..size {
            let at = n + from;
            let byte = if at < size { low.element(1, at) } else { high.element(1, at - size) };
            result.set_element(1, n, byte);
        }
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

/// Element `n` of the result is the element that `from(n, half)` gives: register (0 or 1) and number.
fn permute(cpu: &mut Aarch64, op: &Op, from: fn(usize, usize) -> (usize, usize)) -> Step {
    let sources = [cpu.vector_register(op.rn()), cpu.vector_register(op.rm())];
    let width = op.element_size();
    let count = op.vector_size() / width;
    if count < 2 {
        return cpu.unsupported(op);
    }
    let mut result = Vector::ZERO;
    for n in 0..count {
        let (register, at) = from(n, count / 2);
        if let Some(source) = sources.get(register) {
            result.set_value(width, n, source.value(width, at));
        }
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

fn look_up(cpu: &mut Aarch64, op: &Op, keeps: bool) -> Step {
    let count = op.bits(13, 2) as usize + 1;
    let index = cpu.vector_register(op.rm());
    let old = cpu.vector_register(op.rd());
    let mut result = Vector::ZERO;
    for n in 0..op.vector_size() {
        let at = index.element(1, n) as usize;
        let byte = if at < 16 * count {
            cpu.vector_register((op.rn() + at / 16) % 32).element(1, at % 16)
        } else if keeps {
            old.element(1, n)
        } else {
            0
        };
        result.set_element(1, n, byte);
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

fn reverse(cpu: &mut Aarch64, op: &Op, within: usize) -> Step {
    let source = cpu.vector_register(op.rn());
    let width = op.element_size();
    if width >= within {
        return cpu.unsupported(op);
    }
    let group = within / width;
    let mut result = Vector::ZERO;
    for n in 0..op.vector_size() / width {
        let at = n - n % group + (group - 1 - n % group);
        result.set_element(width, n, source.element(width, at));
    }
    cpu.set_vector_register(op.rd(), result);
    Step::Next
}

/// An element as a signed number.
pub fn signed_element(vector: &Vector, width: usize, n: usize) -> i64 {
    sign_extend(vector.element(width, n), width)
}
