//! x86-64 through iced-x86.

use super::{Callee, Condition, Flags, Flow, Registers, Step};
use iced_x86::{ConditionCode, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

pub(in super::super) struct Decoder<'a> {
    decoder: iced_x86::Decoder<'a>,
    instruction: Instruction,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8], start: u64, address: u64) -> Self {
        let mut decoder = iced_x86::Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let skip = address.checked_sub(start).and_then(|n| usize::try_from(n).ok()).unwrap_or(bytes.len());
        // only fails beyond the end, and then there is nothing to decode
        if decoder.set_position(skip).is_err() {
            decoder = iced_x86::Decoder::with_ip(64, &[], address, DecoderOptions::NONE);
        }
        Self { decoder, instruction: Instruction::default() }
    }

    pub(super) fn step(&mut self, registers: &mut Registers) -> Option<Step> {
        if !self.decoder.can_decode() {
            return None;
        }
        self.decoder.decode_out(&mut self.instruction);
        let insn = &self.instruction;
        Some(Step {
            address: insn.ip(),
            length: insn.len() as u64,
            flow: flow(insn),
            flags: flags(insn),
            forms: forms(insn, registers),
            slot: (insn.flow_control() == FlowControl::IndirectBranch && insn.is_ip_rel_memory_operand())
                .then(|| insn.ip_rel_memory_address()),
        })
    }
}

fn flow(insn: &Instruction) -> Flow {
    match insn.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(insn.near_branch_target()),
        FlowControl::ConditionalBranch => Flow::Branch {
            target: insn.near_branch_target(),
            condition: condition(insn.condition_code()),
            compares: None,
        },
        FlowControl::Call => Flow::Call(Callee::Code(insn.near_branch_target())),
        FlowControl::IndirectCall if insn.is_ip_rel_memory_operand() => {
            Flow::Call(Callee::Slot(insn.ip_rel_memory_address()))
        }
        FlowControl::IndirectCall => Flow::Call(Callee::Unknown),
        _ => Flow::Stop,
    }
}

fn condition(code: ConditionCode) -> Condition {
    match code {
        ConditionCode::e => Condition::Equal,
        ConditionCode::ne => Condition::NotEqual,
        // after a test of a value with itself the sign alone decides
        ConditionCode::l | ConditionCode::b | ConditionCode::s => Condition::Less,
        ConditionCode::le | ConditionCode::be => Condition::LessEqual,
        ConditionCode::g | ConditionCode::a => Condition::Greater,
        ConditionCode::ge | ConditionCode::ae | ConditionCode::ns => Condition::GreaterEqual,
        _ => Condition::Other,
    }
}

fn flags(insn: &Instruction) -> Flags {
    match insn.mnemonic() {
        Mnemonic::Cmp => immediate(insn, 1).map_or(Flags::Changed, Flags::Compared),
        Mnemonic::Test if insn.op1_kind() == OpKind::Register && insn.op0_register() == insn.op1_register() => {
            Flags::Compared(0)
        }
        Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Movzx | Mnemonic::Movsxd => Flags::Kept,
        _ if insn.rflags_modified() == 0 => Flags::Kept,
        _ => Flags::Changed,
    }
}

fn immediate(insn: &Instruction, operand: u32) -> Option<i64> {
    matches!(
        insn.op_kind(operand),
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
    .then(|| insn.immediate(operand) as i64)
}

/// Addresses reach registers by `lea reg, [rip+x]`, by an immediate, or by a copy.
fn forms(insn: &Instruction, registers: &mut Registers) -> Option<u64> {
    if insn.op0_kind() != OpKind::Register || insn.op_count() != 2 {
        return None;
    }
    let slot = registers.get_mut(index(insn.op0_register())?)?;
    match insn.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Test => return None,
        Mnemonic::Lea if insn.is_ip_rel_memory_operand() => *slot = Some(insn.ip_rel_memory_address()),
        Mnemonic::Lea if insn.memory_base() == Register::None && insn.memory_index() == Register::None => {
            *slot = Some(insn.memory_displacement64());
        }
        Mnemonic::Mov => {
            let value = match insn.op1_kind() {
                OpKind::Register => index(insn.op1_register()).and_then(|i| registers.get(i).copied().flatten()),
                _ => immediate(insn, 1).map(|value| value as u64),
            };
            if let Some(slot) = registers.get_mut(index(insn.op0_register())?) {
                *slot = value;
            }
            return value;
        }
        _ => *slot = None,
    }
    *slot
}

/// Number of a general register.
fn index(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register() as usize - Register::RAX as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Step> {
        let mut registers = Registers::default();
        let mut decoder = Decoder::new(bytes, 0x1000, 0x1000);
        std::iter::from_fn(|| decoder.step(&mut registers)).collect()
    }

    #[test]
    fn lea_and_copy_form_an_address() {
        // lea rbx,[rip+0x10]; mov rsi,rbx
        let steps = all(&[0x48, 0x8d, 0x1d, 0x10, 0, 0, 0, 0x48, 0x89, 0xde]);
        assert_eq!(steps.iter().map(|s| s.forms).collect::<Vec<_>>(), [Some(0x1017), Some(0x1017)]);
    }

    #[test]
    fn compare_and_branch() {
        // cmp rax,0x400; jg +2; test eax,eax; js +0; cmp rax,rcx
        let steps = all(&[0x48, 0x3d, 0, 4, 0, 0, 0x7f, 0x02, 0x85, 0xc0, 0x78, 0x00, 0x48, 0x39, 0xc8]);
        assert_eq!(steps[0].flags, Flags::Compared(0x400));
        assert_eq!(steps[1].flow, Flow::Branch { target: 0x100a, condition: Condition::Greater, compares: None });
        assert_eq!(steps[2].flags, Flags::Compared(0));
        assert!(matches!(steps[3].flow, Flow::Branch { condition: Condition::Less, .. }));
        assert_eq!(steps[4].flags, Flags::Changed);
    }
}
