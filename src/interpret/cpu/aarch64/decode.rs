//! Instructions, taken apart once: what they do, and the word with their fields.

use super::{Bus, Semantics, Step, control, float, integer, lanes, load_store, vector};
use crate::interpret::cpu::{Event, Flow};
use disarm64::InsnOpcode;
use disarm64::decoder::{InsnId, decode};
use std::sync::OnceLock;

/// A decoded instruction.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub semantics: Semantics,
    /// its address
    pub at: u64,
    pub word: u32,
    /// `None` for words that are no instruction
    pub id: Option<InsnId>,
}

impl Op {
    /// `width` bits from bit `low` up.
    pub fn bits(&self, low: u32, width: u32) -> u32 {
        (self.word >> low) & (u32::MAX >> (32 - width))
    }
    /// The same as a signed number.
    pub fn signed(&self, low: u32, width: u32) -> i64 {
        i64::from((self.word << (32 - low - width)).cast_signed() >> (32 - width))
    }
    pub fn flag(&self, bit: u32) -> bool {
        self.word >> bit & 1 != 0
    }
    /// Number of the destination register, or of the one transferred.
    pub fn rd(&self) -> usize {
        self.bits(0, 5) as usize
    }
    /// Number of the first source, or of the base.
    pub fn rn(&self) -> usize {
        self.bits(5, 5) as usize
    }
    /// Number of the second source, or of the index.
    pub fn rm(&self) -> usize {
        self.bits(16, 5) as usize
    }
    /// Number of the third source, or of the second one transferred.
    pub fn ra(&self) -> usize {
        self.bits(10, 5) as usize
    }
    /// Bytes of a data-processing instruction's registers (bit 31).
    pub fn size(&self) -> usize {
        if self.flag(31) { 8 } else { 4 }
    }
    /// Address behind it.
    pub fn next(&self) -> u64 {
        self.at.wrapping_add(4)
    }
    /// Target of a jump whose offset, in words, is in that field.
    pub fn target(&self, low: u32, width: u32) -> u64 {
        self.at.wrapping_add_signed(self.signed(low, width) << 2)
    }
    pub fn name(&self) -> String {
        decode(self.word)
            .map_or_else(|| format!(".word {:#010x}", self.word), |opcode| opcode.definition().mnemonic.to_owned())
    }
    pub fn unsupported(&self) -> Event {
        let name = self.name();
        // what is not modelled of floats is packed: moves, scalars and conversions of sizes are
        let is_float = name.starts_with('f') || name.ends_with("cvtf") || super::survey::is_float_arithmetic(self);
        Event::Unsupported { at: self.at, name, is_float }
    }

    pub fn flow(&self) -> Flow {
        match self.id {
            None => Flow::Trap,
            Some(InsnId::B_ADDR_PCREL26) => Flow::Jump(self.target(0, 26)),
            Some(InsnId::BL_ADDR_PCREL26) => Flow::Call(self.target(0, 26)),
            Some(
                InsnId::B_C_ADDR_PCREL19
                | InsnId::BC_C_ADDR_PCREL19
                | InsnId::CBZ_Rt_ADDR_PCREL19
                | InsnId::CBNZ_Rt_ADDR_PCREL19,
            ) => Flow::Branch(self.target(5, 19)),
            Some(InsnId::TBZ_Rt_BIT_NUM_ADDR_PCREL14 | InsnId::TBNZ_Rt_BIT_NUM_ADDR_PCREL14) => {
                Flow::Branch(self.target(5, 14))
            }
            Some(InsnId::BLR_Rn) => Flow::IndirectCall,
            Some(InsnId::BR_Rn) => Flow::IndirectJump,
            Some(InsnId::RET_Rn | InsnId::RETAA | InsnId::RETAB) => Flow::Return,
            Some(InsnId::BRK_EXCEPTION | InsnId::UDF_UNDEFINED | InsnId::HLT_EXCEPTION) => Flow::Trap,
            Some(_) => Flow::Next,
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
            let op = decode_one(bus, at);
            at = op.next();
            ops.push(op);
            if op.flow() != Flow::Next || bus.hooks.contains_key(&at) {
                break;
            }
        }
        Self { ops, end: at }
    }
}

/// Decodes the instruction at an address. A word that is none gives an operation that says so.
pub fn decode_one(bus: &mut Bus<'_>, at: u64) -> Op {
    op_of(at, bus.memory.read(at, 4) as u32)
}

pub fn op_of(at: u64, word: u32) -> Op {
    let id = decode(word).map(|opcode| opcode.id());
    Op { semantics: id.map_or(unknown, semantics), at, word, id }
}

fn semantics(id: InsnId) -> Semantics {
    static TABLE: OnceLock<Vec<Option<Semantics>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table: Vec<Option<Semantics>> = vec![None; ENCODINGS];
        let families = [integer::TABLE, control::TABLE, load_store::TABLE, vector::TABLE, lanes::TABLE, float::TABLE];
        for (id, semantics) in families.into_iter().flatten() {
            if let Some(slot) = table.get_mut(*id as usize) {
                *slot = Some(*semantics);
            }
        }
        table
    });
    table.get(id as usize).copied().flatten().unwrap_or(unknown)
}

/// Room for every encoding of the decoder.
const ENCODINGS: usize = 4_096;

fn unknown(cpu: &mut super::Aarch64, _: &mut Bus<'_>, op: &Op) -> Step {
    cpu.unsupported(op)
}
