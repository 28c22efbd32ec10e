//! String instructions.

use super::decode::Op;
use super::flags::Flags;
use super::register::{RAX, RCX, RDI, RSI};
use super::{Bus, Semantics, Step, X86_64};
use crate::interpret::memory::mask;
use crate::interpret::value::Value;
use crate::limits;
use iced_x86::Mnemonic;

pub const TABLE: &[(Mnemonic, Semantics)] = &[
    (Mnemonic::Movsb, |c, b, op| movs(c, b, op, 1)),
    (Mnemonic::Movsw, |c, b, op| movs(c, b, op, 2)),
    (Mnemonic::Movsq, |c, b, op| movs(c, b, op, 8)),
    (Mnemonic::Stosb, |c, b, op| stos(c, b, op, 1)),
    (Mnemonic::Stosw, |c, b, op| stos(c, b, op, 2)),
    (Mnemonic::Stosd, |c, b, op| stos(c, b, op, 4)),
    (Mnemonic::Stosq, |c, b, op| stos(c, b, op, 8)),
    (Mnemonic::Scasb, |c, b, op| scas(c, b, op, 1)),
    (Mnemonic::Scasw, |c, b, op| scas(c, b, op, 2)),
    (Mnemonic::Scasd, |c, b, op| scas(c, b, op, 4)),
    (Mnemonic::Scasq, |c, b, op| scas(c, b, op, 8)),
    (Mnemonic::Cmpsb, |c, b, op| cmps(c, b, op, 1)),
    (Mnemonic::Cmpsw, |c, b, op| cmps(c, b, op, 2)),
    (Mnemonic::Cmpsq, |c, b, op| cmps(c, b, op, 8)),
    // `movsd` and `cmpsd` are also scalar instructions: see `vector` and `float`
];

/// Repetitions of a string instruction, charged like instructions; `None` when there are too many.
fn repetitions(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: u64) -> Option<u64> {
    if !op.has_rep && !op.has_repne {
        return Some(1);
    }
    let count = cpu.general(RCX).bits;
    let bytes = count.checked_mul(size).filter(|n| *n <= limits::COPY_BYTES)?;
    bus.remaining = bus.remaining.saturating_sub(bytes / 32);
    Some(count)
}

fn advance(cpu: &mut X86_64, register: usize, bytes: u64) {
    let at = cpu.general(register).bits;
    cpu.set_general(register, Value::new(at.wrapping_add(bytes)));
}

fn finish(cpu: &mut X86_64, op: &Op, left: u64) -> Step {
    if op.has_rep || op.has_repne {
        cpu.set_general(RCX, Value::new(left));
    }
    Step::Next
}

pub fn movs(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: u64) -> Step {
    let Some(count) = repetitions(cpu, bus, op, size) else { return cpu.unsupported(op) };
    let bytes = count.wrapping_mul(size);
    let (to, from) = (cpu.general(RDI).bits, cpu.general(RSI).bits);
    bus.memory.copy(&mut bus.expressions, to, from, bytes as usize);
    advance(cpu, RDI, bytes);
    advance(cpu, RSI, bytes);
    finish(cpu, op, 0)
}

fn stos(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: u64) -> Step {
    let Some(count) = repetitions(cpu, bus, op, size) else { return cpu.unsupported(op) };
    let to = cpu.general(RDI).bits;
    let value = cpu.general(RAX);
    if value.shadow.is_none() && value.bits & mask(size as usize) == 0 {
        bus.memory.fill(to, 0, count.wrapping_mul(size) as usize);
    } else {
        for n in 0..count {
            bus.store(to.wrapping_add(n.wrapping_mul(size)), size as usize, value);
        }
    }
    advance(cpu, RDI, count.wrapping_mul(size));
    finish(cpu, op, 0)
}

fn scas(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: u64) -> Step {
    let Some(mut count) = repetitions(cpu, bus, op, size) else { return cpu.unsupported(op) };
    let wanted = Value::new(cpu.general(RAX).bits & mask(size as usize));
    while count > 0 {
        let value = bus.load(cpu.general(RDI).bits, size as usize);
        advance(cpu, RDI, size);
        count -= 1;
        cpu.registers.flags = Flags::subtract(wanted, Value::new(value.bits), size as usize);
        if (wanted.bits == value.bits) == op.has_repne {
            break;
        }
    }
    finish(cpu, op, count)
}

pub fn cmps(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: u64) -> Step {
    let Some(mut count) = repetitions(cpu, bus, op, size) else { return cpu.unsupported(op) };
    while count > 0 {
        let a = bus.load(cpu.general(RSI).bits, size as usize);
        let b = bus.load(cpu.general(RDI).bits, size as usize);
        advance(cpu, RSI, size);
        advance(cpu, RDI, size);
        count -= 1;
        cpu.registers.flags = Flags::subtract(Value::new(a.bits), Value::new(b.bits), size as usize);
        if (a.bits == b.bits) == op.has_repne {
            break;
        }
    }
    finish(cpu, op, count)
}
