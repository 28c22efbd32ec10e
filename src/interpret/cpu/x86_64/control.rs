//! Jumps, calls, returns, and what depends on conditions.

use super::decode::Op;
use super::operands::Operand;
use super::register::{RBP, RCX, RSP};
use super::{Bus, Semantics, Step, X86_64};
use crate::interpret::cpu::{Event, Processor};
use crate::interpret::value::Value;
use iced_x86::{ConditionCode, Mnemonic};

pub const TABLE: &[(Mnemonic, Semantics)] = &[
    (Mnemonic::Jmp, jump),
    (Mnemonic::Call, call),
    (Mnemonic::Ret, ret),
    (Mnemonic::Leave, leave),
    (Mnemonic::Ud2, trap),
    (Mnemonic::Hlt, trap),
    (Mnemonic::Int3, trap),
    (Mnemonic::Jrcxz, |cpu, _, op| if cpu.general(RCX).bits == 0 { to_target(op) } else { Step::Next }),
    (Mnemonic::Jo, |c, _, op| branch(c, op, ConditionCode::o)),
    (Mnemonic::Jno, |c, _, op| branch(c, op, ConditionCode::no)),
    (Mnemonic::Jb, |c, _, op| branch(c, op, ConditionCode::b)),
    (Mnemonic::Jae, |c, _, op| branch(c, op, ConditionCode::ae)),
    (Mnemonic::Je, |c, _, op| branch(c, op, ConditionCode::e)),
    (Mnemonic::Jne, |c, _, op| branch(c, op, ConditionCode::ne)),
    (Mnemonic::Jbe, |c, _, op| branch(c, op, ConditionCode::be)),
    (Mnemonic::Ja, |c, _, op| branch(c, op, ConditionCode::a)),
    (Mnemonic::Js, |c, _, op| branch(c, op, ConditionCode::s)),
    (Mnemonic::Jns, |c, _, op| branch(c, op, ConditionCode::ns)),
    (Mnemonic::Jp, |c, _, op| branch(c, op, ConditionCode::p)),
    (Mnemonic::Jnp, |c, _, op| branch(c, op, ConditionCode::np)),
    (Mnemonic::Jl, |c, _, op| branch(c, op, ConditionCode::l)),
    (Mnemonic::Jge, |c, _, op| branch(c, op, ConditionCode::ge)),
    (Mnemonic::Jle, |c, _, op| branch(c, op, ConditionCode::le)),
    (Mnemonic::Jg, |c, _, op| branch(c, op, ConditionCode::g)),
    (Mnemonic::Seto, |c, b, op| set(c, b, op, ConditionCode::o)),
    (Mnemonic::Setno, |c, b, op| set(c, b, op, ConditionCode::no)),
    (Mnemonic::Setb, |c, b, op| set(c, b, op, ConditionCode::b)),
    (Mnemonic::Setae, |c, b, op| set(c, b, op, ConditionCode::ae)),
    (Mnemonic::Sete, |c, b, op| set(c, b, op, ConditionCode::e)),
    (Mnemonic::Setne, |c, b, op| set(c, b, op, ConditionCode::ne)),
    (Mnemonic::Setbe, |c, b, op| set(c, b, op, ConditionCode::be)),
    (Mnemonic::Seta, |c, b, op| set(c, b, op, ConditionCode::a)),
    (Mnemonic::Sets, |c, b, op| set(c, b, op, ConditionCode::s)),
    (Mnemonic::Setns, |c, b, op| set(c, b, op, ConditionCode::ns)),
    (Mnemonic::Setp, |c, b, op| set(c, b, op, ConditionCode::p)),
    (Mnemonic::Setnp, |c, b, op| set(c, b, op, ConditionCode::np)),
    (Mnemonic::Setl, |c, b, op| set(c, b, op, ConditionCode::l)),
    (Mnemonic::Setge, |c, b, op| set(c, b, op, ConditionCode::ge)),
    (Mnemonic::Setle, |c, b, op| set(c, b, op, ConditionCode::le)),
    (Mnemonic::Setg, |c, b, op| set(c, b, op, ConditionCode::g)),
    (Mnemonic::Cmovo, |c, b, op| select(c, b, op, ConditionCode::o)),
    (Mnemonic::Cmovno, |c, b, op| select(c, b, op, ConditionCode::no)),
    (Mnemonic::Cmovb, |c, b, op| select(c, b, op, ConditionCode::b)),
    (Mnemonic::Cmovae, |c, b, op| select(c, b, op, ConditionCode::ae)),
    (Mnemonic::Cmove, |c, b, op| select(c, b, op, ConditionCode::e)),
    (Mnemonic::Cmovne, |c, b, op| select(c, b, op, ConditionCode::ne)),
    (Mnemonic::Cmovbe, |c, b, op| select(c, b, op, ConditionCode::be)),
    (Mnemonic::Cmova, |c, b, op| select(c, b, op, ConditionCode::a)),
    (Mnemonic::Cmovs, |c, b, op| select(c, b, op, ConditionCode::s)),
    (Mnemonic::Cmovns, |c, b, op| select(c, b, op, ConditionCode::ns)),
    (Mnemonic::Cmovp, |c, b, op| select(c, b, op, ConditionCode::p)),
    (Mnemonic::Cmovnp, |c, b, op| select(c, b, op, ConditionCode::np)),
    (Mnemonic::Cmovl, |c, b, op| select(c, b, op, ConditionCode::l)),
    (Mnemonic::Cmovge, |c, b, op| select(c, b, op, ConditionCode::ge)),
    (Mnemonic::Cmovle, |c, b, op| select(c, b, op, ConditionCode::le)),
    (Mnemonic::Cmovg, |c, b, op| select(c, b, op, ConditionCode::g)),
];

fn to_target(op: &Op) -> Step {
    match op.operand(0) {
        Operand::Target(to) => Step::Jump(to),
        _ => Step::Next,
    }
}

fn trap(cpu: &mut X86_64, _: &mut Bus<'_>, op: &Op) -> Step {
    cpu.leave(Event::Trap(op.at))
}

fn jump(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    match op.operand(0) {
        Operand::Target(to) => Step::Jump(to),
        operand => Step::Jump(cpu.read_sized(bus, operand, 8).bits),
    }
}

fn call(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let target = match op.operand(0) {
        Operand::Target(to) => to,
        operand => cpu.read_sized(bus, operand, 8).bits,
    };
    if bus.calls_at_once() {
        cpu.enter(bus, target, op.next());
        return Step::Jump(target);
    }
    cpu.leave(Event::Call { target, return_to: op.next() })
}

fn ret(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let to = cpu.pop(bus).bits;
    let released = op.operand(0).immediate();
    let sp = cpu.general(RSP).bits;
    bus.leave(to, sp);
    cpu.set_general(RSP, Value::new(sp.wrapping_add(released)));
    Step::Jump(to)
}

fn leave(cpu: &mut X86_64, bus: &mut Bus<'_>, _: &Op) -> Step {
    let frame = cpu.general(RBP).bits;
    cpu.set_general(RSP, Value::new(frame));
    let old = cpu.pop(bus);
    cpu.set_general(RBP, old);
    Step::Next
}

fn branch(cpu: &mut X86_64, op: &Op, code: ConditionCode) -> Step {
    let Operand::Target(taken) = op.operand(0) else { return cpu.unsupported(op) };
    match cpu.registers.flags.condition(code) {
        Some(condition) => cpu.leave(Event::Branch { condition, at: op.at, taken, otherwise: op.next() }),
        None if cpu.registers.flags.test(code) => Step::Jump(taken),
        None => Step::Next,
    }
}

fn set(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, code: ConditionCode) -> Step {
    let bits = u64::from(cpu.registers.flags.test(code));
    let shadow = cpu.registers.flags.condition(code).map(|c| {
        let (a, b) = (bus.expressions.of(c.left, 8), bus.expressions.of(c.right, 8));
        bus.expressions.compare(c.relation, a, b)
    });
    cpu.write(bus, op.operand(0), Value { bits, shadow });
    Step::Next
}

fn select(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, code: ConditionCode) -> Step {
    let size = op.operand(0).size();
    let (old, new) = (cpu.read(bus, op, 0), cpu.read_sized(bus, op.operand(1), size));
    let picked = if cpu.registers.flags.test(code) { new } else { old };
    let value = match cpu.registers.flags.condition(code) {
        Some(c) => {
            let e = &mut bus.expressions;
            let (a, b) = (e.of(c.left, 8), e.of(c.right, 8));
            let (yes, no) = (e.of(new, size), e.of(old, size));
            Value { bits: picked.bits, shadow: e.select(c.relation, a, b, yes, no) }
        }
        None => picked,
    };
    cpu.write(bus, op.operand(0), value);
    Step::Next
}
