//! Integer moves, arithmetic, logic, shifts and bits.

use super::decode::Op;
use super::flags::Flags;
use super::operands::Operand;
use super::register::{RAX, RBX, RCX, RDX};
use super::{Bus, Semantics, Step, X86_64};
use crate::interpret::memory::mask;
use crate::interpret::value::{Operation, Value, sign_extend};
use iced_x86::{ConditionCode, Mnemonic};

pub const TABLE: &[(Mnemonic, Semantics)] = &[
    (Mnemonic::Nop, nothing),
    (Mnemonic::Endbr64, nothing),
    (Mnemonic::Pause, nothing),
    (Mnemonic::Mfence, nothing),
    (Mnemonic::Lfence, nothing),
    (Mnemonic::Sfence, nothing),
    (Mnemonic::Emms, nothing),
    (Mnemonic::Cld, nothing),
    (Mnemonic::Prefetcht0, nothing),
    (Mnemonic::Prefetcht1, nothing),
    (Mnemonic::Prefetcht2, nothing),
    (Mnemonic::Prefetchnta, nothing),
    (Mnemonic::Prefetchw, nothing),
    (Mnemonic::Mov, mov),
    (Mnemonic::Movbe, |c, b, op| unary(c, b, op, swap_bytes)),
    (Mnemonic::Movzx, |c, b, op| extend(c, b, op, false)),
    (Mnemonic::Movsx, |c, b, op| extend(c, b, op, true)),
    (Mnemonic::Movsxd, |c, b, op| extend(c, b, op, true)),
    (Mnemonic::Lea, lea),
    (Mnemonic::Push, push),
    (Mnemonic::Pop, pop),
    (Mnemonic::Xchg, xchg),
    (Mnemonic::Add, add),
    (Mnemonic::Sub, |c, b, op| subtract(c, b, op, true)),
    (Mnemonic::Cmp, |c, b, op| subtract(c, b, op, false)),
    (Mnemonic::Adc, |c, b, op| with_carry(c, b, op, 1)),
    (Mnemonic::Sbb, |c, b, op| with_carry(c, b, op, -1)),
    (Mnemonic::Adcx, |c, b, op| with_carry(c, b, op, 1)),
    (Mnemonic::Inc, |c, b, op| step(c, b, op, 1)),
    (Mnemonic::Dec, |c, b, op| step(c, b, op, -1)),
    (Mnemonic::Neg, neg),
    (Mnemonic::Not, not),
    (Mnemonic::And, |c, b, op| logic(c, b, op, Operation::And)),
    (Mnemonic::Or, |c, b, op| logic(c, b, op, Operation::Or)),
    (Mnemonic::Xor, |c, b, op| logic(c, b, op, Operation::Xor)),
    (Mnemonic::Test, test),
    (Mnemonic::Andn, andn),
    (Mnemonic::Imul, imul),
    (Mnemonic::Mul, mul),
    (Mnemonic::Mulx, mulx),
    (Mnemonic::Div, div),
    (Mnemonic::Idiv, idiv),
    (Mnemonic::Cbw, |c, b, _| sign_of_low_half(c, b, 1)),
    (Mnemonic::Cwde, |c, b, _| sign_of_low_half(c, b, 2)),
    (Mnemonic::Cdqe, |c, b, _| sign_of_low_half(c, b, 4)),
    (Mnemonic::Cwd, |c, b, _| sign_into_rdx(c, b, 2)),
    (Mnemonic::Cdq, |c, b, _| sign_into_rdx(c, b, 4)),
    (Mnemonic::Cqo, |c, b, _| sign_into_rdx(c, b, 8)),
    (Mnemonic::Shl, |c, b, op| shift(c, b, op, Shift::Left)),
    (Mnemonic::Sal, |c, b, op| shift(c, b, op, Shift::Left)),
    (Mnemonic::Shr, |c, b, op| shift(c, b, op, Shift::Right)),
    (Mnemonic::Sar, |c, b, op| shift(c, b, op, Shift::RightSigned)),
    (Mnemonic::Rol, |c, b, op| shift(c, b, op, Shift::RotateLeft)),
    (Mnemonic::Ror, |c, b, op| shift(c, b, op, Shift::RotateRight)),
    (Mnemonic::Shlx, |c, b, op| shift(c, b, op, Shift::Left)),
    (Mnemonic::Shrx, |c, b, op| shift(c, b, op, Shift::Right)),
    (Mnemonic::Sarx, |c, b, op| shift(c, b, op, Shift::RightSigned)),
    (Mnemonic::Rorx, |c, b, op| shift(c, b, op, Shift::RotateRight)),
    (Mnemonic::Shld, |c, b, op| double_shift(c, b, op, true)),
    (Mnemonic::Shrd, |c, b, op| double_shift(c, b, op, false)),
    (Mnemonic::Bt, |c, b, op| bit(c, b, op, |v, _| v)),
    (Mnemonic::Bts, |c, b, op| bit(c, b, op, |v, m| v | m)),
    (Mnemonic::Btr, |c, b, op| bit(c, b, op, |v, m| v & !m)),
    (Mnemonic::Btc, |c, b, op| bit(c, b, op, |v, m| v ^ m)),
    (Mnemonic::Bsf, |c, b, op| scan(c, b, op, |v, _| u64::from(v.trailing_zeros()), false)),
    (Mnemonic::Bsr, |c, b, op| scan(c, b, op, |v, _| 63u64.wrapping_sub(u64::from(v.leading_zeros())), false)),
    (Mnemonic::Tzcnt, |c, b, op| scan(c, b, op, |v, bits| u64::from(v.trailing_zeros()).min(bits), true)),
    (Mnemonic::Lzcnt, |c, b, op| scan(c, b, op, |v, bits| u64::from(v.leading_zeros()) + bits - 64, true)),
    (Mnemonic::Popcnt, |c, b, op| unary(c, b, op, |v, _| u64::from(v.count_ones()))),
    (Mnemonic::Bswap, |c, b, op| unary(c, b, op, swap_bytes)),
    (Mnemonic::Blsr, |c, b, op| unary(c, b, op, |v, _| v & v.wrapping_sub(1))),
    (Mnemonic::Blsi, |c, b, op| unary(c, b, op, |v, _| v & v.wrapping_neg())),
    (Mnemonic::Blsmsk, |c, b, op| unary(c, b, op, |v, _| v ^ v.wrapping_sub(1))),
    (Mnemonic::Bzhi, bzhi),
    (Mnemonic::Bextr, bextr),
    (Mnemonic::Xadd, xadd),
    (Mnemonic::Cmpxchg, cmpxchg),
    (Mnemonic::Cpuid, cpuid),
    (Mnemonic::Xgetbv, xgetbv),
    (Mnemonic::Rdtsc, rdtsc),
];

pub fn nothing(_: &mut X86_64, _: &mut Bus<'_>, _: &Op) -> Step {
    Step::Next
}

fn mov(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    match (op.operand(0), op.operand(1)) {
        // the most common instruction of all, in its most common forms
        (Operand::General { number, size: 8, .. }, Operand::General { number: from, .. }) => {
            let value = cpu.general(usize::from(from));
            cpu.set_general(usize::from(number), value);
        }
        (Operand::General { number, size: 8, .. }, from @ Operand::Memory { .. }) => {
            let value = bus.load(cpu.address(from), 8);
            cpu.set_general(usize::from(number), value);
        }
        (to @ Operand::Memory { size: 8, .. }, Operand::General { number, .. }) => {
            let value = cpu.general(usize::from(number));
            bus.store(cpu.address(to), 8, value);
        }
        // segment and control registers
        (Operand::Other, _) | (_, Operand::Other) => return cpu.unsupported(op),
        (to, from) => {
            let value = cpu.read_sized(bus, from, to.size());
            cpu.write(bus, to, value);
        }
    }
    Step::Next
}

fn extend(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let value = cpu.read(bus, op, 1);
    let value = bus.expressions.extend(value, op.operand(1).size(), is_signed);
    cpu.write(bus, op.operand(0), value);
    Step::Next
}

fn lea(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let Operand::Memory { base, index, scale, displacement, .. } = op.operand(1) else { return cpu.unsupported(op) };
    let (base, index) = (cpu.general(usize::from(base)), cpu.general(usize::from(index)));
    let e = &mut bus.expressions;
    let scaled = Value {
        bits: index.bits.wrapping_mul(u64::from(scale)),
        shadow: e.multiply(index, Value::new(u64::from(scale)), 8),
    };
    let sum = Value { bits: base.bits.wrapping_add(scaled.bits), shadow: e.add(base, scaled, 1, 8) };
    let displacement = Value::new(displacement as u64);
    let value = Value { bits: sum.bits.wrapping_add(displacement.bits), shadow: e.add(sum, displacement, 1, 8) };
    cpu.write(bus, op.operand(0), value);
    Step::Next
}

fn push(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let value = cpu.read_sized(bus, op.operand(0), 8);
    cpu.push(bus, value);
    Step::Next
}

fn pop(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let value = cpu.pop(bus);
    cpu.write(bus, op.operand(0), value);
    Step::Next
}

fn xchg(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, b) = (cpu.read(bus, op, 0), cpu.read(bus, op, 1));
    cpu.write(bus, op.operand(0), b);
    cpu.write(bus, op.operand(1), a);
    Step::Next
}

/// Both operands in the size of the first.
fn operands(cpu: &X86_64, bus: &mut Bus<'_>, op: &Op) -> (Value, Value, usize) {
    let size = op.operand(0).size();
    (cpu.read_sized(bus, op.operand(0), size), cpu.read_sized(bus, op.operand(1), size), size)
}

fn add(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    let sum = Value { bits: a.bits.wrapping_add(b.bits) & mask(size), shadow: bus.expressions.add(a, b, 1, size) };
    cpu.registers.flags = Flags::add(a, b, sum, size);
    cpu.write(bus, op.operand(0), sum);
    Step::Next
}

fn subtract(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, keeps: bool) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    cpu.registers.flags = Flags::subtract(a, b, size);
    if keeps {
        let bits = a.bits.wrapping_sub(b.bits) & mask(size);
        let value = Value { bits, shadow: bus.expressions.add(a, b, -1, size) };
        cpu.write(bus, op.operand(0), value);
    }
    Step::Next
}

/// `adc` and `sbb`: the carry is a number of its own, a comparison where it depends on symbols.
fn with_carry(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, factor: i64) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    let flags = cpu.registers.flags;
    let carry_shadow = flags.condition(ConditionCode::b).map(|c| {
        let (left, right) = (bus.expressions.of(c.left, 8), bus.expressions.of(c.right, 8));
        bus.expressions.compare(c.relation, left, right)
    });
    let carry = Value { bits: u64::from(flags.is_carry()), shadow: carry_shadow };
    let apply = |x: Value, y: Value, bus: &mut Bus<'_>| Value {
        bits: x.bits.wrapping_add(y.bits.wrapping_mul(factor as u64)) & mask(size),
        shadow: bus.expressions.add(x, y, factor, size),
    };
    // `sbb x, x` is the carry alone, whatever is in x
    let difference = if factor < 0 && op.operand(0) == op.operand(1) { Value::ZERO } else { apply(a, b, bus) };
    let result = apply(difference, carry, bus);
    let (x, y) = (sign_extend(a.bits, size), sign_extend(b.bits, size));
    let exact = i128::from(x) + i128::from(factor) * (i128::from(y) + i128::from(carry.bits));
    let unsigned = i128::from(a.bits) + i128::from(factor) * (i128::from(b.bits) + i128::from(carry.bits));
    cpu.registers.flags = Flags::result(
        result,
        size,
        unsigned < 0 || unsigned > i128::from(mask(size)),
        exact != i128::from(sign_extend(result.bits, size)),
    );
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn step(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, by: i64) -> Step {
    let size = op.operand(0).size();
    let a = cpu.read(bus, op, 0);
    let one = Value::new(by as u64);
    let result = Value { bits: a.bits.wrapping_add(one.bits) & mask(size), shadow: bus.expressions.add(a, one, 1, 8) };
    let signed = sign_extend(a.bits, size).wrapping_add(by);
    let carry = cpu.registers.flags.is_carry();
    cpu.registers.flags = Flags::result(result, size, carry, signed != sign_extend(result.bits, size));
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn neg(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let a = cpu.read(bus, op, 0);
    let result =
        Value { bits: a.bits.wrapping_neg() & mask(size), shadow: bus.expressions.add(Value::ZERO, a, -1, size) };
    cpu.registers.flags = Flags::subtract(Value::ZERO, a, size);
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn not(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let a = cpu.read(bus, op, 0);
    let shadow = bus.expressions.add(Value::new(u64::MAX), a, -1, size);
    cpu.write(bus, op.operand(0), Value { bits: !a.bits & mask(size), shadow });
    Step::Next
}

fn logic(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, operation: Operation) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    let is_cleared = operation == Operation::Xor && op.operand(0) == op.operand(1);
    let bits = match operation {
        Operation::And => a.bits & b.bits,
        Operation::Or => a.bits | b.bits,
        _ => a.bits ^ b.bits,
    };
    let result = if is_cleared { Value::ZERO } else { logic_value(bus, operation, a, b, bits, size) };
    cpu.registers.flags = Flags::logic(result, size);
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

/// `x & -1`, `x | 0`, `x ^ 0` are `x`; `x & 0` is a number.
fn logic_value(bus: &mut Bus<'_>, operation: Operation, a: Value, b: Value, bits: u64, size: usize) -> Value {
    let neutral = if operation == Operation::And { mask(size) } else { 0 };
    let shadow = match (a.shadow, b.shadow) {
        (Some(s), None) if b.bits & mask(size) == neutral => Some(s),
        (None, Some(s)) if a.bits & mask(size) == neutral => Some(s),
        (Some(s), Some(t)) if s == t && operation != Operation::Xor => Some(s),
        (_, None) if operation == Operation::And && b.bits & mask(size) == 0 => None,
        (None, _) if operation == Operation::And && a.bits & mask(size) == 0 => None,
        _ => bus.expressions.binary(operation, a, b, size),
    };
    Value { bits, shadow }
}

fn test(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    cpu.registers.flags = if op.operand(0) == op.operand(1) {
        Flags::subtract(a, Value::ZERO, size)
    } else {
        let result = logic_value(bus, Operation::And, a, b, a.bits & b.bits, size);
        Flags::logic(result, size)
    };
    Step::Next
}

fn andn(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let (a, b) = (cpu.read(bus, op, 1), cpu.read_sized(bus, op.operand(2), size));
    let inverted = Value { bits: !a.bits & mask(size), shadow: bus.expressions.add(Value::new(u64::MAX), a, -1, size) };
    let result = logic_value(bus, Operation::And, inverted, b, inverted.bits & b.bits, size);
    cpu.registers.flags = Flags::logic(result, size);
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn register(number: usize, size: usize) -> Operand {
    Operand::General { number: number as u8, size: size as u8, is_high: false }
}

fn imul(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    if op.count == 1 {
        return wide_multiply(cpu, bus, op, true);
    }
    let (x, y) = if op.count == 3 { (1, 2) } else { (0, 1) };
    let (a, b) = (cpu.read_sized(bus, op.operand(x), size), cpu.read_sized(bus, op.operand(y), size));
    let product = i128::from(sign_extend(a.bits, size)) * i128::from(sign_extend(b.bits, size));
    let value = Value { bits: product as u64 & mask(size), shadow: bus.expressions.multiply(a, b, size) };
    let overflow = product != i128::from(sign_extend(value.bits, size));
    cpu.registers.flags = Flags::result(value, size, overflow, overflow);
    cpu.write(bus, op.operand(0), value);
    Step::Next
}

fn mul(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    wide_multiply(cpu, bus, op, false)
}

/// One-operand `mul` and `imul`: `rdx:rax = rax * operand`.
fn wide_multiply(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let size = op.operand(0).size();
    if size == 1 {
        return cpu.unsupported(op);
    }
    let a = cpu.read_sized(bus, register(RAX, size), size);
    let b = cpu.read(bus, op, 0);
    let (low, high) = if is_signed {
        let product = i128::from(sign_extend(a.bits, size)) * i128::from(sign_extend(b.bits, size));
        (product as u64 & mask(size), (product >> (8 * size)) as u64 & mask(size))
    } else {
        let product = u128::from(a.bits) * u128::from(b.bits);
        (product as u64 & mask(size), (product >> (8 * size)) as u64 & mask(size))
    };
    let low = Value { bits: low, shadow: bus.expressions.multiply(a, b, size) };
    // sizes do not overflow, so the upper half matters in the tests for that alone; it is exact at 64 bits
    let operation = if is_signed { Operation::MultiplyHigh } else { Operation::MultiplyHighUnsigned };
    let high_shadow = if size == 8 { bus.expressions.binary(operation, a, b, size) } else { None };
    let overflow = if is_signed { sign_extend(low.bits, size) >> 63 != sign_extend(high, size) } else { high != 0 };
    let high = Value { bits: high, shadow: high_shadow };
    cpu.registers.flags = Flags::result(Value::new(low.bits), size, overflow, overflow);
    cpu.write(bus, register(RAX, size), low);
    cpu.write(bus, register(RDX, size), high);
    Step::Next
}

fn mulx(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let a = cpu.read_sized(bus, register(RDX, size), size);
    let b = cpu.read_sized(bus, op.operand(2), size);
    let product = u128::from(a.bits) * u128::from(b.bits);
    let low = Value { bits: product as u64 & mask(size), shadow: bus.expressions.multiply(a, b, size) };
    cpu.write(bus, op.operand(1), low);
    cpu.write(bus, op.operand(0), Value::new((product >> (8 * size)) as u64 & mask(size)));
    Step::Next
}

fn div(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    divide(cpu, bus, op, false)
}

fn idiv(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    divide(cpu, bus, op, true)
}

/// `rax, rdx = rdx:rax / operand, rdx:rax % operand`.
fn divide(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let size = op.operand(0).size();
    if size == 1 {
        return divide_byte(cpu, bus, op, is_signed);
    }
    let by = cpu.read(bus, op, 0);
    let (low, high) = (cpu.read_sized(bus, register(RAX, size), size), cpu.read_sized(bus, register(RDX, size), size));
    let bits = 8 * size;
    let (quotient, remainder) = if is_signed {
        let wide = (i128::from(sign_extend(high.bits, size)) << bits) | i128::from(low.bits);
        let by = i128::from(sign_extend(by.bits, size));
        match (wide.checked_div(by), wide.checked_rem(by)) {
            (Some(q), Some(r)) => (q as u64, r as u64),
            _ => return cpu.unsupported(op),
        }
    } else {
        let wide = (u128::from(high.bits) << bits) | u128::from(low.bits);
        match (wide.checked_div(u128::from(by.bits)), wide.checked_rem(u128::from(by.bits))) {
            (Some(q), Some(r)) => (q as u64, r as u64),
            _ => return cpu.unsupported(op),
        }
    };
    let q = bus.expressions.binary(Operation::Divide, low, by, size);
    let r = bus.expressions.binary(Operation::Remainder, low, by, size);
    cpu.write(bus, register(RAX, size), Value { bits: quotient & mask(size), shadow: q });
    cpu.write(bus, register(RDX, size), Value { bits: remainder & mask(size), shadow: r });
    Step::Next
}

fn divide_byte(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, is_signed: bool) -> Step {
    let dividend = cpu.read_sized(bus, register(RAX, 2), 2).bits;
    let by = cpu.read(bus, op, 0).bits;
    let (quotient, remainder) = if is_signed {
        let (a, b) = (sign_extend(dividend, 2), sign_extend(by, 1));
        match (a.checked_div(b), a.checked_rem(b)) {
            (Some(q), Some(r)) => (q as u64, r as u64),
            _ => return cpu.unsupported(op),
        }
    } else {
        match (dividend.checked_div(by), dividend.checked_rem(by)) {
            (Some(q), Some(r)) => (q, r),
            _ => return cpu.unsupported(op),
        }
    };
    cpu.write(bus, register(RAX, 2), Value::new((quotient & 0xff) | (remainder & 0xff) << 8));
    Step::Next
}

fn sign_of_low_half(cpu: &mut X86_64, bus: &mut Bus<'_>, size: usize) -> Step {
    let value = cpu.read_sized(bus, register(RAX, size), size);
    let value = bus.expressions.extend(value, size, true);
    cpu.write(bus, register(RAX, 2 * size), value);
    Step::Next
}

fn sign_into_rdx(cpu: &mut X86_64, bus: &mut Bus<'_>, size: usize) -> Step {
    let value = cpu.read_sized(bus, register(RAX, size), size);
    let sign = (sign_extend(value.bits, size) >> 63) as u64 & mask(size);
    // a shadow here would only say "negative or not", and sizes are not
    cpu.write(bus, register(RDX, size), Value::new(sign));
    Step::Next
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shift {
    Left,
    Right,
    RightSigned,
    RotateLeft,
    RotateRight,
}

fn shift(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, kind: Shift) -> Step {
    let size = op.operand(0).size();
    let bits = 8 * size as u32;
    let (source, count) = match op.count {
        3 => (cpu.read_sized(bus, op.operand(1), size), cpu.read_sized(bus, op.operand(2), 1)),
        2 => (cpu.read(bus, op, 0), cpu.read_sized(bus, op.operand(1), 1)),
        _ => (cpu.read(bus, op, 0), Value::new(1)),
    };
    let n = count.bits as u32 & if size == 8 { 63 } else { 31 };
    if n == 0 {
        if op.count == 3 {
            cpu.write(bus, op.operand(0), source);
        }
        return Step::Next;
    }
    let v = source.bits & mask(size);
    let signed = sign_extend(v, size);
    let turn = n % bits;
    let (result, carry) = match kind {
        Shift::Left => (v.checked_shl(n).unwrap_or(0), v.checked_shr(bits.wrapping_sub(n)).unwrap_or(0) & 1),
        Shift::Right => (v.checked_shr(n).unwrap_or(0), v.checked_shr(n - 1).unwrap_or(0) & 1),
        Shift::RightSigned => ((signed >> n.min(63)) as u64, (signed >> (n - 1).min(63)) as u64 & 1),
        Shift::RotateLeft => {
            let r = v.checked_shl(turn).unwrap_or(0) | v.checked_shr(bits - turn).unwrap_or(0);
            (r, r & 1)
        }
        Shift::RotateRight => {
            let r = v.checked_shr(turn).unwrap_or(0) | v.checked_shl(bits - turn).unwrap_or(0);
            (r, r.checked_shr(bits - 1).unwrap_or(0) & 1)
        }
    };
    let by = Value::new(u64::from(n));
    let shadow = match kind {
        Shift::Left => bus.expressions.multiply(source, Value::new(1u64.checked_shl(n).unwrap_or(0)), 8),
        Shift::Right => bus.expressions.binary(Operation::ShiftRight, source, by, size),
        Shift::RightSigned => bus.expressions.binary(Operation::ShiftRightSigned, source, by, size),
        Shift::RotateLeft | Shift::RotateRight => None,
    };
    let value = Value { bits: result & mask(size), shadow };
    if op.count < 3 {
        let sign_changed = (sign_extend(result, size) < 0) != (signed < 0);
        cpu.registers.flags = match kind {
            // rotations change carry and overflow alone
            Shift::RotateLeft | Shift::RotateRight => {
                let old = cpu.registers.flags;
                Flags {
                    parity: old.is_parity(),
                    ..Flags::stored(old.is_zero(), old.is_sign(), carry != 0, sign_changed)
                }
            }
            _ => Flags::result(value, size, carry != 0, sign_changed),
        };
    }
    cpu.write(bus, op.operand(0), value);
    Step::Next
}

fn double_shift(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, is_left: bool) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    let bits = 8 * size as u32;
    let n = cpu.read_sized(bus, op.operand(2), 1).bits as u32 & if size == 8 { 63 } else { 31 };
    if n == 0 || n >= bits {
        return Step::Next;
    }
    let result = if is_left { a.bits << n | b.bits >> (bits - n) } else { a.bits >> n | b.bits << (bits - n) };
    let value = Value::new(result & mask(size));
    cpu.registers.flags = Flags::result(value, size, false, false);
    cpu.write(bus, op.operand(0), value);
    Step::Next
}

fn bit(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, change: fn(u64, u64) -> u64) -> Step {
    let (to, index) = (op.operand(0), op.operand(1));
    let size = to.size();
    let n = cpu.read_sized(bus, index, index.size()).bits;
    let was = if to.is_memory() && !matches!(index, Operand::Immediate(_)) {
        // the index may lead outside of the operand
        let n = sign_extend(n, index.size());
        let address = cpu.address(to).wrapping_add((n >> 3) as u64);
        let old = bus.load(address, 1).bits;
        let m = 1u64 << (n & 7);
        let new = change(old, m);
        if new != old {
            bus.store(address, 1, Value::new(new));
        }
        old & m != 0
    } else {
        let old = cpu.read(bus, op, 0);
        let m = 1u64 << (n % (8 * size as u64));
        let new = change(old.bits, m);
        if new != old.bits {
            cpu.write(bus, to, Value::new(new));
        }
        old.bits & m != 0
    };
    let old = cpu.registers.flags;
    cpu.registers.flags = Flags::stored(old.is_zero(), old.is_sign(), was, old.is_overflow());
    Step::Next
}

fn scan(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, find: fn(u64, u64) -> u64, counts: bool) -> Step {
    let size = op.operand(0).size();
    let value = cpu.read_sized(bus, op.operand(1), size).bits;
    let found = find(value, 8 * size as u64);
    if counts {
        cpu.registers.flags = Flags::stored(found == 0, false, value == 0, false);
        cpu.write(bus, op.operand(0), Value::new(found));
    } else {
        cpu.registers.flags = Flags::stored(value == 0, false, false, false);
        if value != 0 {
            cpu.write(bus, op.operand(0), Value::new(found));
        }
    }
    Step::Next
}

fn swap_bytes(value: u64, size: usize) -> u64 {
    value.swap_bytes() >> (64 - 8 * size.clamp(1, 8))
}

/// One source, one destination, no shadow.
fn unary(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, f: fn(u64, usize) -> u64) -> Step {
    let size = op.operand(0).size();
    let from = if op.count >= 2 { op.operand(1) } else { op.operand(0) };
    let value = cpu.read_sized(bus, from, size).bits;
    let result = Value::new(f(value, size) & mask(size));
    if !matches!(op.mnemonic, Mnemonic::Bswap | Mnemonic::Movbe) {
        cpu.registers.flags = Flags::result(result, size, value == 0, false);
    }
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn bzhi(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let value = cpu.read(bus, op, 1).bits;
    let n = cpu.read_sized(bus, op.operand(2), 1).bits as u32;
    let kept = 1u64.checked_shl(n).map_or(u64::MAX, |m| m.wrapping_sub(1));
    let result = Value::new(value & kept & mask(size));
    cpu.registers.flags = Flags::result(result, size, u64::from(n) >= 8 * size as u64, false);
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn bextr(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let value = cpu.read(bus, op, 1).bits;
    let control = cpu.read_sized(bus, op.operand(2), 2).bits;
    let (start, len) = (control as u32 & 0xff, (control >> 8) as u32 & 0xff);
    let kept = 1u64.checked_shl(len).map_or(u64::MAX, |m| m.wrapping_sub(1));
    let result = Value::new(value.checked_shr(start).unwrap_or(0) & kept & mask(size));
    cpu.registers.flags = Flags::result(result, size, false, false);
    cpu.write(bus, op.operand(0), result);
    Step::Next
}

fn xadd(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, b, size) = operands(cpu, bus, op);
    let sum = Value { bits: a.bits.wrapping_add(b.bits) & mask(size), shadow: bus.expressions.add(a, b, 1, size) };
    cpu.registers.flags = Flags::add(a, b, sum, size);
    cpu.write(bus, op.operand(1), a);
    cpu.write(bus, op.operand(0), sum);
    Step::Next
}

fn cmpxchg(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (old, new, size) = operands(cpu, bus, op);
    let expected = cpu.read_sized(bus, register(RAX, size), size);
    cpu.registers.flags = Flags::subtract(Value::new(expected.bits), Value::new(old.bits), size);
    if expected.bits == old.bits {
        cpu.write(bus, op.operand(0), new);
    } else {
        cpu.write(bus, register(RAX, size), old);
    }
    Step::Next
}

/// A processor without any extension: code that asks takes its plainest path.
fn cpuid(cpu: &mut X86_64, _: &mut Bus<'_>, _: &Op) -> Step {
    for register in [RAX, RBX, RCX, RDX] {
        cpu.set_general(register, Value::ZERO);
    }
    Step::Next
}

fn xgetbv(cpu: &mut X86_64, _: &mut Bus<'_>, _: &Op) -> Step {
    cpu.set_general(RAX, Value::new(7));
    cpu.set_general(RDX, Value::ZERO);
    Step::Next
}

fn rdtsc(cpu: &mut X86_64, bus: &mut Bus<'_>, _: &Op) -> Step {
    cpu.set_general(RAX, Value::new(!bus.remaining & mask(4)));
    cpu.set_general(RDX, Value::ZERO);
    Step::Next
}
