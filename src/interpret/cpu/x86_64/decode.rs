//! Instructions, taken apart once: what they do and on what.

use super::operands::Operand;
use super::{Bus, Semantics, X86_64, control, float, integer, packed, strings, vector};
use crate::interpret::cpu::Event;
use crate::interpret::memory::AddressMap;
use iced_x86::{Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic};
use std::sync::OnceLock;

/// A decoded instruction.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub semantics: Semantics,
    /// its address
    pub at: u64,
    /// bytes
    pub length: u8,
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
    /// Address behind it.
    #[inline]
    pub fn next(&self) -> u64 {
        self.at.wrapping_add(u64::from(self.length))
    }
    /// The `n`-th operand.
    #[inline]
    pub fn operand(&self, n: usize) -> Operand {
        self.operands.get(n).copied().unwrap_or(Operand::None)
    }
    /// The sources of a vector instruction: the destination is one of them when it has only two operands.
    #[inline]
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

/// Instructions that run one after the other: a part of [`Code`].
#[derive(Debug, Clone, Copy)]
pub struct Block {
    first: u32,
    count: u32,
    /// address behind the last
    pub end: u64,
}

/// Decoded instructions. What a wide model runs through once is forgotten again.
#[derive(Default)]
pub struct Code {
    ops: Vec<Op>,
    blocks: AddressMap<u64, Block>,
    recent: Vec<(u64, Block)>,
}

/// Longest block; a longer run of instructions simply goes on in the next one.
const LONGEST: usize = 64;
/// Instructions that are kept.
const KEPT: usize = 16_384;
/// Direct-mapped table of the blocks used last.
const RECENT: usize = 1_024;
/// Bytes that the decoder sees at a time.
pub const WINDOW: usize = 128;
/// The longest instruction.
pub const LONGEST_INSTRUCTION: usize = 15;

impl Code {
    /// The block at an address; `None` where no code is, or code that the machine answers itself. Hooks are looked for
    /// at the beginning of blocks alone: functions are entered by jumps.
    #[inline]
    pub fn block(&mut self, bus: &mut Bus<'_>, address: u64) -> Option<Block> {
        match self.recent.get(Self::slot(address)) {
            Some((at, block)) if *at == address => Some(*block),
            _ => self.find(bus, address),
        }
    }
    /// The instructions of a block that was just asked for.
    #[inline]
    pub fn ops(&self, block: &Block) -> &[Op] {
        let first = block.first as usize;
        self.ops.get(first..first + block.count as usize).unwrap_or_default()
    }

    fn slot(address: u64) -> usize {
        (address ^ (address >> 10)) as usize % RECENT
    }

    fn find(&mut self, bus: &mut Bus<'_>, address: u64) -> Option<Block> {
        let block = match self.blocks.get(&address) {
            Some(block) => *block,
            None => {
                if bus.hooks.contains_key(&address) || !bus.memory.is_executable(address) {
                    return None;
                }
                self.decode(bus, address)
            }
        };
        if self.recent.is_empty() {
            self.recent = vec![(u64::MAX, block); RECENT];
        }
        if let Some(entry) = self.recent.get_mut(Self::slot(address)) {
            *entry = (address, block);
        }
        Some(block)
    }

    fn decode(&mut self, bus: &mut Bus<'_>, address: u64) -> Block {
        if self.ops.len() > KEPT {
            self.ops.clear();
            self.blocks.clear();
            self.recent.clear();
        }
        let first = self.ops.len();
        let mut at = address;
        let mut flow = FlowControl::Next;
        while flow == FlowControl::Next && self.ops.len() - first < LONGEST {
            let mut bytes = [0u8; WINDOW];
            bus.memory.read_bytes(at, &mut bytes);
            let mut decoder = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE);
            while flow == FlowControl::Next
                && decoder.position() <= WINDOW - LONGEST_INSTRUCTION
                && self.ops.len() - first < LONGEST
            {
                let op;
                (op, flow) = take_apart(&mut decoder);
                at = op.next();
                self.ops.push(op);
            }
        }
        let block = Block { first: first as u32, count: (self.ops.len() - first) as u32, end: at };
        self.blocks.insert(address, block);
        block
    }
}

/// Decodes the instruction at an address. Bytes that are none give an operation that says so.
pub fn decode_one(bus: &mut Bus<'_>, at: u64) -> (Op, FlowControl) {
    let mut bytes = [0u8; LONGEST_INSTRUCTION];
    bus.memory.read_bytes(at, &mut bytes);
    take_apart(&mut Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE))
}

fn take_apart(decoder: &mut Decoder<'_>) -> (Op, FlowControl) {
    let at = decoder.ip();
    let mut instruction = Instruction::default();
    decoder.decode_out(&mut instruction);
    let mut op = Op {
        semantics: semantics(instruction.mnemonic()),
        at,
        length: instruction.len() as u8,
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
        op.length = 1;
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
