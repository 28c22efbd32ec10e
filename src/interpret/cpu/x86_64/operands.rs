//! Operands: registers, memory, numbers.

use super::decode::Op;
use super::{Bus, FS, X86_64};
use crate::interpret::memory::mask;
use crate::interpret::value::Value;
use iced_x86::{Instruction, OpKind, Register};

/// An operand, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// there is none
    None,
    /// general register; `is_high` for `ah` and the like
    General { number: u8, size: u8, is_high: bool },
    /// vector register
    Vector { number: u8, size: u8 },
    /// mask register
    Mask { number: u8 },
    /// memory: base + index * scale + displacement
    Memory { base: u8, index: u8, scale: u8, size: u8, has_fs: bool, displacement: i64 },
    /// memory at as many places as a vector register has indices, for gathers and scatters
    Lanes { base: u8, index: u8, index_size: u8, scale: u8, displacement: i64 },
    /// number, sign-extended
    Immediate(u64),
    /// jump target
    Target(u64),
    /// implicit memory operand of a string instruction
    Text,
    /// a register that is not modelled
    Other,
}

/// Number of no register, which reads as zero. An operand of 16 bytes keeps decoded code small.
pub const NO_REGISTER: u8 = u8::MAX;

impl Operand {
    pub fn decode(instruction: &Instruction, n: u32) -> Self {
        match instruction.op_kind(n) {
            OpKind::Register => Self::from_register(instruction.op_register(n)),
            OpKind::Memory => {
                let number = |r: Register| if r == Register::None { NO_REGISTER } else { r.number() as u8 };
                let base = instruction.memory_base();
                let index = instruction.memory_index();
                if index.is_vector_register() {
                    return Self::Lanes {
                        base: number(base),
                        index: index.number() as u8,
                        index_size: index.size() as u8,
                        scale: instruction.memory_index_scale() as u8,
                        displacement: instruction.memory_displacement64() as i64,
                    };
                }
                Self::Memory {
                    base: if base.is_ip() { NO_REGISTER } else { number(base) },
                    index: number(index),
                    scale: instruction.memory_index_scale() as u8,
                    size: memory_size(instruction),
                    has_fs: matches!(instruction.segment_prefix(), Register::FS | Register::GS),
                    displacement: instruction.memory_displacement64() as i64,
                }
            }
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                Self::Target(instruction.near_branch_target())
            }
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => Self::Text,
            _ => Self::Immediate(instruction.immediate(n)),
        }
    }

    fn from_register(register: Register) -> Self {
        let (number, size) = (register.number() as u8, register.size() as u8);
        if register.is_gpr() {
            let is_high = matches!(register, Register::AH | Register::CH | Register::DH | Register::BH);
            // the decoder numbers the byte registers al, cl, dl, bl, ah, ch, dh, bh, spl, …
            let number = match (size, is_high) {
                (1, true) => number.wrapping_sub(4),
                (1, false) if number >= 8 => number.wrapping_sub(4),
                _ => number,
            };
            Self::General { number, size, is_high }
        } else if register.is_vector_register() {
            Self::Vector { number, size }
        } else if register.is_k() {
            Self::Mask { number }
        } else {
            Self::Other
        }
    }

    /// Bytes that it has.
    #[inline]
    pub fn size(self) -> usize {
        match self {
            Self::General { size, .. } | Self::Vector { size, .. } | Self::Memory { size, .. } => usize::from(size),
            _ => 8,
        }
    }
    /// Its number; 0 for others.
    #[inline]
    pub fn immediate(self) -> u64 {
        match self {
            Self::Immediate(n) => n,
            _ => 0,
        }
    }
    #[inline]
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Memory { .. })
    }
}

fn memory_size(instruction: &Instruction) -> u8 {
    u8::try_from(instruction.memory_size().size()).unwrap_or(0)
}

impl X86_64 {
    /// Address of a memory operand.
    #[inline]
    pub fn address(&self, operand: Operand) -> u64 {
        let Operand::Memory { base, index, scale, has_fs, displacement, .. } = operand else { return 0 };
        let register = |r: u8| self.general(usize::from(r)).bits;
        register(base)
            .wrapping_add(register(index).wrapping_mul(u64::from(scale)))
            .wrapping_add(displacement as u64)
            .wrapping_add(if has_fs { FS } else { 0 })
    }

    /// Value of an integer operand; `size` for immediates, whose own size does not count.
    #[inline]
    pub fn read_sized(&self, bus: &mut Bus<'_>, operand: Operand, size: usize) -> Value {
        match operand {
            Operand::General { number, is_high: true, .. } => {
                Value::new(self.general(usize::from(number)).bits >> 8 & 0xff)
            }
            Operand::General { number, .. } => {
                let value = self.general(usize::from(number));
                Value { bits: value.bits & mask(size), shadow: value.shadow }
            }
            Operand::Memory { .. } => bus.load(self.address(operand), size.min(8)),
            Operand::Immediate(n) => Value::new(n & mask(size)),
            Operand::Mask { number } => {
                Value::new(self.registers.mask.get(usize::from(number)).copied().unwrap_or(0) & mask(size))
            }
            Operand::Vector { number, .. } => {
                let value = self.vector_register(number).lane(0);
                Value { bits: value.bits & mask(size), shadow: value.shadow.filter(|_| size == 8) }
            }
            _ => Value::ZERO,
        }
    }
    /// Value of the `n`-th operand in its own size.
    #[inline]
    pub fn read(&self, bus: &mut Bus<'_>, op: &Op, n: usize) -> Value {
        let operand = op.operand(n);
        self.read_sized(bus, operand, operand.size())
    }

    /// Writes an integer operand. A write to a 32-bit register clears its upper half.
    #[inline]
    pub fn write(&mut self, bus: &mut Bus<'_>, operand: Operand, value: Value) {
        match operand {
            Operand::General { number, size, is_high } => {
                let number = usize::from(number);
                let new = match size {
                    8 => value,
                    4 if value.shadow.is_none() => Value::new(value.bits & mask(4)),
                    4 => bus.expressions.extend(value, 4, false),
                    _ => {
                        let shift = if is_high { 8 } else { 0 };
                        let kept = self.general(number).bits & !(mask(usize::from(size)) << shift);
                        let bits = kept | (value.bits & mask(usize::from(size))) << shift;
                        // the shadow stays exact only when nothing else is left in the register
                        let shadow = value.shadow.filter(|_| kept == 0 && !is_high);
                        match shadow {
                            Some(_) => bus.expressions.extend(Value { bits, shadow }, usize::from(size), false),
                            None => self.partial(bus, value, bits, kept, usize::from(size), is_high),
                        }
                    }
                };
                self.set_general(number, new);
            }
            Operand::Memory { size, .. } => bus.store(self.address(operand), usize::from(size).min(8), value),
            Operand::Mask { number } => {
                if let Some(register) = self.registers.mask.get_mut(usize::from(number)) {
                    *register = value.bits;
                }
            }
            Operand::Vector { .. } => self.write_scalar(operand, value),
            _ => {}
        }
    }

    /// A byte or word written into a register whose rest is not zero: the rest is a number, so the sum is exact.
    fn partial(&self, bus: &mut Bus<'_>, value: Value, bits: u64, kept: u64, size: usize, is_high: bool) -> Value {
        let Some(_) = value.shadow.filter(|_| !is_high) else { return Value::new(bits) };
        let low = bus.expressions.extend(value, size, false);
        Value { bits, shadow: bus.expressions.add(low, Value::new(kept), 1, 8) }
    }
}
