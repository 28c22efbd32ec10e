//! Scalar floating point, as far as host code outside of kernels uses it: load factors of hash tables, scale
//! arguments of operators.

use super::decode::Op;
use super::flags::Flags;
use super::operands::Operand;
use super::{Bus, Semantics, Step, X86_64, strings};
use crate::interpret::memory::mask;
use crate::interpret::value::{Value, sign_extend};
use iced_x86::Mnemonic;

pub const TABLE: &[(Mnemonic, Semantics)] = &[
    (Mnemonic::Addss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x + y)),
    (Mnemonic::Vaddss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x + y)),
    (Mnemonic::Addsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x + y)),
    (Mnemonic::Vaddsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x + y)),
    (Mnemonic::Subss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x - y)),
    (Mnemonic::Vsubss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x - y)),
    (Mnemonic::Subsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x - y)),
    (Mnemonic::Vsubsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x - y)),
    (Mnemonic::Mulss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x * y)),
    (Mnemonic::Vmulss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x * y)),
    (Mnemonic::Mulsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x * y)),
    (Mnemonic::Vmulsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x * y)),
    (Mnemonic::Divss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x / y)),
    (Mnemonic::Vdivss, |c, b, op| arithmetic(c, b, op, 4, |x, y| x / y)),
    (Mnemonic::Divsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x / y)),
    (Mnemonic::Vdivsd, |c, b, op| arithmetic(c, b, op, 8, |x, y| x / y)),
    (Mnemonic::Minss, |c, b, op| arithmetic(c, b, op, 4, f64::min)),
    (Mnemonic::Vminss, |c, b, op| arithmetic(c, b, op, 4, f64::min)),
    (Mnemonic::Minsd, |c, b, op| arithmetic(c, b, op, 8, f64::min)),
    (Mnemonic::Vminsd, |c, b, op| arithmetic(c, b, op, 8, f64::min)),
    (Mnemonic::Maxss, |c, b, op| arithmetic(c, b, op, 4, f64::max)),
    (Mnemonic::Vmaxss, |c, b, op| arithmetic(c, b, op, 4, f64::max)),
    (Mnemonic::Maxsd, |c, b, op| arithmetic(c, b, op, 8, f64::max)),
    (Mnemonic::Vmaxsd, |c, b, op| arithmetic(c, b, op, 8, f64::max)),
    (Mnemonic::Sqrtss, |c, b, op| arithmetic(c, b, op, 4, |_, y| y.sqrt())),
    (Mnemonic::Vsqrtss, |c, b, op| arithmetic(c, b, op, 4, |_, y| y.sqrt())),
    (Mnemonic::Sqrtsd, |c, b, op| arithmetic(c, b, op, 8, |_, y| y.sqrt())),
    (Mnemonic::Vsqrtsd, |c, b, op| arithmetic(c, b, op, 8, |_, y| y.sqrt())),
    (Mnemonic::Roundsd, |c, b, op| round(c, b, op, 8)),
    (Mnemonic::Vroundsd, |c, b, op| round(c, b, op, 8)),
    (Mnemonic::Vrndscalesd, |c, b, op| round(c, b, op, 8)),
    (Mnemonic::Roundss, |c, b, op| round(c, b, op, 4)),
    (Mnemonic::Vroundss, |c, b, op| round(c, b, op, 4)),
    (Mnemonic::Vrndscaless, |c, b, op| round(c, b, op, 4)),
    (Mnemonic::Cvtsi2ss, |c, b, op| from_integer(c, b, op, 4, true)),
    (Mnemonic::Vcvtsi2ss, |c, b, op| from_integer(c, b, op, 4, true)),
    (Mnemonic::Cvtsi2sd, |c, b, op| from_integer(c, b, op, 8, true)),
    (Mnemonic::Vcvtsi2sd, |c, b, op| from_integer(c, b, op, 8, true)),
    (Mnemonic::Vcvtusi2ss, |c, b, op| from_integer(c, b, op, 4, false)),
    (Mnemonic::Vcvtusi2sd, |c, b, op| from_integer(c, b, op, 8, false)),
    (Mnemonic::Cvttss2si, |c, b, op| to_integer(c, b, op, 4, true)),
    (Mnemonic::Vcvttss2si, |c, b, op| to_integer(c, b, op, 4, true)),
    (Mnemonic::Cvttsd2si, |c, b, op| to_integer(c, b, op, 8, true)),
    (Mnemonic::Vcvttsd2si, |c, b, op| to_integer(c, b, op, 8, true)),
    (Mnemonic::Vcvttss2usi, |c, b, op| to_integer(c, b, op, 4, false)),
    (Mnemonic::Vcvttsd2usi, |c, b, op| to_integer(c, b, op, 8, false)),
    (Mnemonic::Cvtss2sd, |c, b, op| convert(c, b, op, 4, 8)),
    (Mnemonic::Vcvtss2sd, |c, b, op| convert(c, b, op, 4, 8)),
    (Mnemonic::Cvtsd2ss, |c, b, op| convert(c, b, op, 8, 4)),
    (Mnemonic::Vcvtsd2ss, |c, b, op| convert(c, b, op, 8, 4)),
    (Mnemonic::Cmpss, |c, b, op| compare_into_mask(c, b, op, 4)),
    (Mnemonic::Cmpsd, cmpsd),
    (Mnemonic::Vcmpss, |c, b, op| compare_into_mask(c, b, op, 4)),
    (Mnemonic::Vcmpsd, |c, b, op| compare_into_mask(c, b, op, 8)),
    (Mnemonic::Ucomiss, |c, b, op| compare(c, b, op, 4)),
    (Mnemonic::Vucomiss, |c, b, op| compare(c, b, op, 4)),
    (Mnemonic::Comiss, |c, b, op| compare(c, b, op, 4)),
    (Mnemonic::Vcomiss, |c, b, op| compare(c, b, op, 4)),
    (Mnemonic::Ucomisd, |c, b, op| compare(c, b, op, 8)),
    (Mnemonic::Vucomisd, |c, b, op| compare(c, b, op, 8)),
    (Mnemonic::Comisd, |c, b, op| compare(c, b, op, 8)),
    (Mnemonic::Vcomisd, |c, b, op| compare(c, b, op, 8)),
];

fn number(bits: u64, size: usize) -> f64 {
    if size == 4 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
}
fn bits(number: f64, size: usize) -> u64 {
    if size == 4 { u64::from((number as f32).to_bits()) } else { number.to_bits() }
}

/// The lowest element becomes the result; the others are the first source's.
fn set_low(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize, result: u64) -> Step {
    let base = if op.is_vex && op.count >= 3 { op.operand(1) } else { op.operand(0) };
    let mut vector = cpu.vector(bus, base, 16);
    vector.set_element(size, 0, result);
    cpu.set_vector(bus, op, vector, size);
    Step::Next
}

fn arithmetic(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize, f: fn(f64, f64) -> f64) -> Step {
    let (a, b) = op.two_sources();
    let (x, y) = (cpu.vector(bus, a, size).lane(0).bits, cpu.vector(bus, b, size).lane(0).bits);
    // products and sums of two singles are exact in double, so rounding once gives the same
    let result = bits(f(number(x, size), number(y, size)), size);
    set_low(cpu, bus, op, size, result)
}

fn round(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let (_, source, mode) = op.two_sources_and_immediate();
    let x = number(cpu.vector(bus, source, size).lane(0).bits, size);
    let rounded = match mode & 7 {
        1 => x.floor(),
        2 => x.ceil(),
        3 => x.trunc(),
        _ => x.round_ties_even(),
    };
    set_low(cpu, bus, op, size, bits(rounded, size))
}

fn from_integer(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize, is_signed: bool) -> Step {
    let from = op.operand(usize::from(op.count).saturating_sub(1));
    let value = cpu.read_sized(bus, from, from.size().min(8)).bits;
    let result = if is_signed { sign_extend(value, from.size()) as f64 } else { value as f64 };
    set_low(cpu, bus, op, size, bits(result, size))
}

fn to_integer(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize, is_signed: bool) -> Step {
    let to = op.operand(0).size();
    let x = number(cpu.vector(bus, op.operand(1), size).lane(0).bits, size);
    let value = if is_signed {
        let limit = 2f64.powi(8 * to as i32 - 1);
        // out of range gives the "integer indefinite" value
        if x.is_nan() || x >= limit || x < -limit { 1u64 << (8 * to - 1) } else { x as i64 as u64 }
    } else if x.is_nan() || x >= 2f64.powi(8 * to as i32) || x <= -1.0 {
        u64::MAX
    } else {
        x as u64
    };
    cpu.write(bus, op.operand(0), Value::new(value & mask(to)));
    Step::Next
}

fn convert(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, from: usize, to: usize) -> Step {
    let source = op.operand(usize::from(op.count).saturating_sub(1));
    let x = number(cpu.vector(bus, source, from).lane(0).bits, from);
    set_low(cpu, bus, op, to, bits(x, to))
}

/// `cmpsd` names the string instruction as well.
fn cmpsd(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    if op.operand(0) == Operand::Text { strings::cmps(cpu, bus, op, 4) } else { compare_into_mask(cpu, bus, op, 8) }
}

/// All ones where the comparison holds, or a bit in a mask register.
fn compare_into_mask(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let (a, b, code) = op.two_sources_and_immediate();
    let x = number(cpu.vector(bus, a, size).lane(0).bits, size);
    let y = number(cpu.vector(bus, b, size).lane(0).bits, size);
    let unordered = x.is_nan() || y.is_nan();
    // the further codes of AVX differ in signalling alone, or are these negated on unordered operands
    let holds = match code & 0x0f {
        0 => x == y,
        1 => x < y,
        2 => x <= y,
        3 => unordered,
        4 => x != y || unordered,
        5 => unordered || x >= y,
        6 => unordered || x > y,
        7 => !unordered,
        8 => x == y || unordered,
        9 => unordered || x < y,
        10 => unordered || x <= y,
        11 => false,
        12 => x != y && !unordered,
        13 => x >= y,
        14 => x > y,
        _ => true,
    };
    if let Operand::Mask { .. } = op.operand(0) {
        cpu.write(bus, op.operand(0), Value::new(u64::from(holds)));
        return Step::Next;
    }
    set_low(cpu, bus, op, size, if holds { mask(size) } else { 0 })
}

fn compare(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let value =
        |cpu: &X86_64, bus: &mut Bus<'_>, operand: Operand| number(cpu.vector(bus, operand, size).lane(0).bits, size);
    let (x, y) = (value(cpu, bus, op.operand(0)), value(cpu, bus, op.operand(1)));
    let unordered = x.is_nan() || y.is_nan();
    cpu.registers.flags =
        Flags { parity: unordered, ..Flags::stored(unordered || x == y, false, unordered || x < y, false) };
    Step::Next
}
