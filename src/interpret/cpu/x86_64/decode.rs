//! Instructions, taken apart once: what they do and on what.

use super::operands::Operand;
use super::{Bus, Semantics, X86_64, control, float, integer, packed, strings, vector};
use crate::interpret::cpu::Event;
use iced_x86::{Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic};
use std::sync::OnceLock;

/// A decoded instruction.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub semantics: Semantics,
    /// its address
    pub at: u64,
    /// address behind it
    pub next: u64,
    pub operands: [Operand; 4],
    pub count: u8,
    pub mnemonic: Mnemonic,
    /// VEX or EVEX encoded: the upper part of the destination becomes zero
    pub is_vex: bool,
    /// EVEX mask register, 0 for none
    pub mask: u8,
    /// masked-off elements become zero
    pub zeroes: bool,
    pub has_rep: bool,
    pub has_repne: bool,
}

impl Op {
    /// The `n`-th operand.
    pub fn operand(&self, n: usize) -> Operand {
        self.operands.get(n).copied().unwrap_or(Operand::None)
    }
    /// The sources of a vector instruction: the destination is one of them when it has only two operands.
    pub fn two_sources(&self) -> (Operand, Operand) {
        if self.count >= 3 { (self.operand(1), self.operand(2)) } else { (self.operand(0), self.operand(1)) }
    }
    /// Sources and immediate of a vector instruction such as `shufps`.
    pub fn two_sources_and_immediate(&self) -> (Operand, Operand, u64) {
        if self.count >= 4 {
            (self.operand(1), self.operand(2), self.operand(3).immediate())
        } else {
            (self.operand(0), self.operand(1), self.operand(2).immediate())
        }
    }
    pub fn name(&self) -> String {
        format!("{:?}", self.mnemonic).to_lowercase()
    }
    pub fn unsupported(&self) -> Event {
        Event::Unsupported {
            at: self.at,
            name: self.name(),
            is_float: super::survey::is_float_arithmetic(self.mnemonic),
        }
    }
}

/// Instructions that run one after the other.
pub struct Block {
    pub ops: Vec<Op>,
    /// address behind the last
    pub end: u64,
}

/// Longest block; a longer run of instructions simply goes on in the next one.
const LONGEST: usize = 64;

impl Block {
    pub fn decode(bus: &mut Bus<'_>, address: u64) -> Self {
        let mut ops = Vec::new();
        let mut at = address;
        while ops.len() < LONGEST {
            let (op, flow) = decode_one(bus, at);
            at = op.next;
            ops.push(op);
            if flow != FlowControl::Next || bus.hooks.contains_key(&at) {
                break;
            }
        }
        Self { ops, end: at }
    }
}

/// Decodes the instruction at an address. Bytes that are none give an operation that says so.
pub fn decode_one(bus: &mut Bus<'_>, at: u64) -> (Op, FlowControl) {
    let mut bytes = [0u8; 15];
    bus.memory.read_bytes(at, &mut bytes);
    let mut decoder = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let mut op = Op {
        semantics: semantics(instruction.mnemonic()),
        at,
        next: instruction.next_ip(),
        operands: [Operand::None; 4],
        count: 0,
        mnemonic: instruction.mnemonic(),
        is_vex: !matches!(instruction.code().encoding(), EncodingKind::Legacy),
        mask: mask_number(&instruction),
        zeroes: instruction.zeroing_masking(),
        has_rep: instruction.has_rep_prefix() || instruction.has_repe_prefix(),
        has_repne: instruction.has_repne_prefix(),
    };
    if instruction.is_invalid() {
        op.next = at.wrapping_add(1);
        return (op, FlowControl::Exception);
    }
    for (slot, n) in op.operands.iter_mut().zip(0..instruction.op_count()) {
        *slot = Operand::decode(&instruction, n);
        op.count += 1;
    }
    (op, instruction.flow_control())
}

fn mask_number(instruction: &Instruction) -> u8 {
    instruction.op_mask().number() as u8
}

fn semantics(mnemonic: Mnemonic) -> Semantics {
    static TABLE: OnceLock<Vec<Option<Semantics>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table: Vec<Option<Semantics>> = vec![None; MNEMONICS];
        let families = [integer::TABLE, control::TABLE, strings::TABLE, vector::TABLE, packed::TABLE, float::TABLE];
        for (mnemonic, semantics) in families.into_iter().flatten() {
            if let Some(slot) = table.get_mut(*mnemonic as usize) {
                *slot = Some(*semantics);
            }
        }
        table
    });
    table.get(mnemonic as usize).copied().flatten().unwrap_or(unknown)
}

/// Room for every mnemonic of the decoder.
const MNEMONICS: usize = 2_048;

fn unknown(cpu: &mut X86_64, _: &mut Bus<'_>, op: &Op) -> super::Step {
    cpu.unsupported(op)
}
