//! Instructions, taken apart once: what they do and on what.

use super::operands::Operand;
use super::{Bus, Semantics, X86_64, control, float, integer, packed, strings, vector};
use crate::interpret::address_map::AddressMap;
use crate::interpret::cpu::Event;
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
    /// but a fourth one, which is `selector`
    pub operands: [Operand; 3],
    pub count: u8,
    /// the number that is the fourth operand
    pub selector: u8,
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
            (self.operand(1), self.operand(2), u64::from(self.selector))
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

/// Decoded instructions. What a model runs through once is forgotten again.
#[derive(Default)]
pub struct Code {
    ops: Vec<Op>,
    /// how often all were forgotten
    forgotten: u32,
    blocks: AddressMap<u64, Block>,
    recent: Vec<(u64, Block)>,
}

/// Longest block; a longer run of instructions simply goes on in the next one.
const LONGEST: usize = 64;
/// Instructions that are kept at first: most code runs once, and untouched memory is cheaper than decoding again what
/// does not. When that was too little a few times, it is doubled.
const KEPT: usize = 2_048;
const FEW: u32 = 4;
/// What a C++ library without optimisation goes through again and again.
const MOST_KEPT: usize = KEPT << DOUBLINGS;
const DOUBLINGS: u32 = 3;
/// Direct-mapped table of the blocks used last.
const RECENT: usize = 512;
/// An entry of it that is no block.
const NOWHERE: (u64, Block) = (u64::MAX, Block { first: 0, count: 0, end: 0 });
/// Bytes that the decoder sees at the end of a page.
pub const WINDOW: usize = 64;
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
                if !bus.memory.is_executable(address) || bus.hooks.contains_key(&address) {
                    return None;
                }
                self.decode(bus, address)
            }
        };
        if self.recent.is_empty() {
            self.recent = vec![NOWHERE; RECENT];
        }
        if let Some(entry) = self.recent.get_mut(Self::slot(address)) {
            *entry = (address, block);
        }
        Some(block)
    }

    fn decode(&mut self, bus: &mut Bus<'_>, address: u64) -> Block {
        if self.ops.capacity() == 0 {
            // memory that is not touched costs nothing; growing would copy
            self.ops.reserve_exact(MOST_KEPT + LONGEST);
            self.blocks.reserve(KEPT / 2);
        }
        if self.ops.len() > KEPT << (self.forgotten / FEW).min(DOUBLINGS) {
            self.forgotten = self.forgotten.saturating_add(1);
            self.ops.clear();
            self.blocks.clear();
            self.recent.fill(NOWHERE);
        }
        let first = self.ops.len();
        let mut at = address;
        let mut flow = FlowControl::Next;
        let mut instruction = Instruction::default();
        while flow == FlowControl::Next && self.ops.len() - first < LONGEST {
            let mut window = [0u8; WINDOW];
            let bytes = bus.memory.code(at, &mut window);
            let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
            while flow == FlowControl::Next
                && decoder.position() + LONGEST_INSTRUCTION <= bytes.len()
                && self.ops.len() - first < LONGEST
            {
                decoder.decode_out(&mut instruction);
                let op = take_apart(&instruction);
                flow = flow_control(&instruction);
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
    let instruction = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE).decode();
    (take_apart(&instruction), flow_control(&instruction))
}

fn flow_control(instruction: &Instruction) -> FlowControl {
    if instruction.is_invalid() { FlowControl::Exception } else { instruction.flow_control() }
}

#[inline]
fn take_apart(instruction: &Instruction) -> Op {
    let mut op = Op {
        semantics: semantics(instruction.mnemonic()),
        at: instruction.ip(),
        length: instruction.len() as u8,
        operands: [Operand::None; 3],
        count: instruction.op_count() as u8,
        selector: 0,
        mnemonic: instruction.mnemonic(),
        is_vex: !matches!(instruction.code().encoding(), EncodingKind::Legacy),
        mask: instruction.op_mask().number() as u8,
        zeroes: instruction.zeroing_masking(),
        has_rep: instruction.has_rep_prefix() || instruction.has_repe_prefix(),
        has_repne: instruction.has_repne_prefix(),
    };
    if instruction.is_invalid() {
        op.length = 1;
        return op;
    }
    for (slot, n) in op.operands.iter_mut().zip(0..instruction.op_count()) {
        *slot = Operand::decode(instruction, n);
    }
    if instruction.op_count() > 3 {
        match Operand::decode(instruction, 3) {
            Operand::Immediate(n) => op.selector = n as u8,
            // blends by a fourth register, which nothing outside of kernels does
            _ => op.semantics = unknown,
        }
    }
    op
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::memory::Mapping;
    use crate::source::Region;

    const CODE: u64 = 0x1000_0000;

    /// `ret`s, each a block of one instruction.
    fn returns(count: usize, then: impl FnOnce(&mut Bus<'_>)) {
        let bytes = vec![0xc3; count];
        let mut bus = Bus::new(0);
        let memory_size = bytes.len() as u64;
        bus.memory.map(Mapping { address: CODE, memory_size, bytes: Region::whole(&bytes), is_executable: true });
        then(&mut bus);
    }

    #[test]
    fn forgotten_blocks_are_decoded_again() {
        returns(16 * MOST_KEPT, |bus| {
            let mut code = Code::default();
            let mut most = 0;
            for at in CODE..CODE + 16 * MOST_KEPT as u64 {
                let block = code.block(bus, at).unwrap();
                assert_eq!((code.ops(&block).len(), code.ops(&block)[0].at, block.end), (1, at, at + 1));
                most = most.max(code.ops.len());
            }
            assert_eq!((most, code.ops.capacity()), (MOST_KEPT + 1, MOST_KEPT + LONGEST));
            assert_eq!(code.block(bus, CODE).map(|block| block.end), Some(CODE + 1));
        });
    }

    #[test]
    fn a_fourth_operand_is_a_number_or_nothing_is_known_of_it() {
        let decode = |code: &[u8]| {
            let bytes = code.to_vec();
            let mut bus = Bus::new(0);
            bus.memory.map(Mapping { address: 0, memory_size: 64, bytes: Region::whole(&bytes), is_executable: true });
            decode_one(&mut bus, 0).0
        };
        // vinserti128 ymm0, ymm1, xmm2, 1; vblendvps ymm0, ymm1, ymm2, ymm3
        let insert = decode(&[0xc4, 0xe3, 0x75, 0x38, 0xc2, 0x01]);
        assert_eq!((insert.mnemonic, insert.selector, insert.count), (Mnemonic::Vinserti128, 1, 4));
        let blend = decode(&[0xc4, 0xe3, 0x75, 0x4a, 0xc2, 0x30]);
        assert_eq!(blend.mnemonic, Mnemonic::Vblendvps);
        assert!(std::ptr::fn_addr_eq(blend.semantics, unknown as Semantics));
    }
}
