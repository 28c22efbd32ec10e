//! AArch64: registers, decoded blocks, the loop. The semantics are tables below `aarch64/`.
//!
//! To add an instruction, copy a neighbour's row in the family's table: the decoder's name of the encoding on the
//! left, what it does on the right. An encoding has its fields at fixed bits, so an [`decode::Op`] keeps the word
//! and hands out fields by name (`rd`, `rn`, `imm12`). Bit positions: Arm Architecture Reference Manual, C4 and C6.

mod control;
mod decode;
mod flags;
mod float;
mod integer;
mod lanes;
mod liveness;
mod load_store;
mod survey;
#[cfg(test)]
mod tests;
mod vector;

use super::{Bus, Event, Frame, PRESERVED, Processor, Survey, Turn};
use crate::interpret::address_map::AddressMap;
use crate::interpret::memory::mask;
use crate::interpret::value::{Expressions, Value};
use decode::Block;
use flags::Flags;
use std::rc::Rc;
use vector::Vector;

/// Number that means the zero register, or the stack pointer, by encoding.
const ZERO: usize = 31;
/// Where the registers keep the stack pointer.
const SP: usize = 31;
/// Frame record and return address.
const LR: usize = 30;
/// Address of a result in memory (AAPCS64 6.9).
const RESULT_POINTER: usize = 8;
/// Integer arguments in registers (AAPCS64 6.8.2).
const ARGUMENTS: usize = 8;
/// Registers that a callee preserves besides the stack pointer: x19 to x29.
const CALLEE_SAVED: std::ops::RangeInclusive<usize> = 19..=29;

/// All architectural state that is modelled.
#[derive(Clone)]
pub struct Registers {
    /// x0 to x30, and the stack pointer
    general: [Value; 32],
    vector: Rc<[Vector; 32]>,
    flags: Flags,
    /// address of the last exclusive load
    exclusive: Option<u64>,
    pc: u64,
}

/// The processor.
pub struct Aarch64 {
    registers: Registers,
    blocks: Vec<Rc<Block>>,
    block_at: AddressMap<u64, u32>,
    recent: [(u64, u32); 256],
    stubs: AddressMap<u64, Option<u64>>,
    /// set by an instruction that returns [`Step::Leave`]
    event: Option<Event>,
}

/// What comes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// the instruction behind it
    Next,
    /// another address
    Jump(u64),
    /// the machine, with `Aarch64::event`
    Leave,
}

/// Meaning of an instruction.
type Semantics = fn(&mut Aarch64, &mut Bus<'_>, &decode::Op) -> Step;

impl Default for Aarch64 {
    fn default() -> Self {
        Self::new()
    }
}

impl Aarch64 {
    /// All registers zero.
    pub fn new() -> Self {
        Self {
            registers: Registers {
                general: [Value::ZERO; 32],
                vector: Rc::new([Vector::ZERO; 32]),
                flags: Flags::default(),
                exclusive: None,
                pc: 0,
            },
            blocks: Vec::new(),
            block_at: AddressMap::default(),
            recent: [(u64::MAX, 0); 256],
            stubs: AddressMap::default(),
            event: None,
        }
    }

    /// The low `size` bytes of a general register; number 31 is zero.
    fn general(&self, n: usize, size: usize) -> Value {
        if n == ZERO { Value::ZERO } else { self.general_or_sp(n, size) }
    }
    /// The same; number 31 is the stack pointer.
    fn general_or_sp(&self, n: usize, size: usize) -> Value {
        let value = self.registers.general.get(n).copied().unwrap_or_default();
        Value { bits: value.bits & mask(size), shadow: value.shadow }
    }
    /// Writes a general register; a write of 4 bytes clears the upper half. Number 31 is discarded.
    fn set_general(&mut self, bus: &mut Bus<'_>, n: usize, size: usize, value: Value) {
        if n != ZERO {
            self.set_general_or_sp(bus, n, size, value);
        }
    }
    /// The same; number 31 is the stack pointer.
    fn set_general_or_sp(&mut self, bus: &mut Bus<'_>, n: usize, size: usize, value: Value) {
        let value = if size < 8 { bus.expressions.extend(value, size, false) } else { value };
        if let Some(register) = self.registers.general.get_mut(n) {
            *register = value;
        }
    }
    fn sp(&self) -> u64 {
        self.general_or_sp(SP, 8).bits
    }
    fn set_plain(&mut self, n: usize, value: Value) {
        if let Some(register) = self.registers.general.get_mut(n) {
            *register = value;
        }
    }
    fn leave(&mut self, event: Event) -> Step {
        self.event = Some(event);
        Step::Leave
    }
    fn unsupported(&mut self, op: &decode::Op) -> Step {
        let event = op.unsupported();
        self.leave(event)
    }

    fn block(&mut self, bus: &mut Bus<'_>, address: u64) -> Option<Rc<Block>> {
        let slot = ((address >> 2) ^ (address >> 10)) as usize % self.recent.len();
        if let Some((at, index)) = self.recent.get(slot)
            && *at == address
        {
            return self.blocks.get(*index as usize).cloned();
        }
        let index = match self.block_at.get(&address) {
            Some(index) => *index,
            None => {
                if bus.hooks.contains_key(&address) || !bus.memory.is_executable(address) {
                    return None;
                }
                let index = u32::try_from(self.blocks.len()).ok()?;
                self.blocks.push(Rc::new(Block::decode(bus, address)));
                self.block_at.insert(address, index);
                index
            }
        };
        if let Some(entry) = self.recent.get_mut(slot) {
            *entry = (address, index);
        }
        self.blocks.get(index as usize).cloned()
    }
}

impl Processor for Aarch64 {
    fn run(&mut self, bus: &mut Bus<'_>) -> Event {
        loop {
            if self.registers.pc & 3 != 0 && bus.memory.is_executable(self.registers.pc) {
                control::resume(self, bus, self.registers.pc);
            }
            let Some(block) = self.block(bus, self.registers.pc) else {
                return Event::Outside(self.registers.pc);
            };
            let mut next = block.end;
            for op in &block.ops {
                if bus.remaining == 0 {
                    self.registers.pc = op.at;
                    return Event::OutOfBudget;
                }
                bus.remaining -= 1;
                match (op.semantics)(self, bus, op) {
                    Step::Next => {}
                    Step::Jump(to) => {
                        next = to;
                        break;
                    }
                    Step::Leave => {
                        self.registers.pc = op.at;
                        return self.event.take().unwrap_or(Event::Trap(op.at));
                    }
                }
            }
            self.registers.pc = next;
            if bus.memory.fault.is_some() || bus.memory.is_full || bus.expressions.is_overgrown {
                return Event::OutOfBudget;
            }
        }
    }
    fn set_pc(&mut self, pc: u64) {
        self.registers.pc = pc;
    }
    fn set_stack_pointer(&mut self, address: u64) {
        self.set_plain(SP, Value::new(address));
    }

    fn enter(&mut self, bus: &mut Bus<'_>, target: u64, return_to: u64) {
        // only kernels are abandoned
        let preserved = bus.skips_kernels.then(|| {
            let mut preserved = Box::new([Value::ZERO; PRESERVED]);
            for (slot, register) in preserved.iter_mut().zip(CALLEE_SAVED) {
                *slot = self.general(register, 8);
            }
            preserved
        });
        bus.frames.push(Frame { target, return_to, stack_pointer: self.sp(), preserved });
        self.set_plain(LR, Value::new(return_to));
        self.registers.pc = target;
    }
    fn set_arguments(&mut self, bus: &mut Bus<'_>, arguments: &[Value]) {
        for (register, value) in (0..ARGUMENTS).zip(arguments) {
            self.set_plain(register, *value);
        }
        let on_stack = arguments.get(ARGUMENTS..).unwrap_or_default();
        let room = (on_stack.len() as u64 * 8 + 15) & !15;
        let sp = self.sp().wrapping_sub(room);
        self.set_plain(SP, Value::new(sp));
        for (n, value) in on_stack.iter().enumerate() {
            bus.store(sp.wrapping_add(8 * n as u64), 8, *value);
        }
    }
    fn argument(&self, bus: &mut Bus<'_>, n: usize, len: usize) -> Value {
        if n < ARGUMENTS {
            return self.general(n, len);
        }
        let above = (n as u64).wrapping_sub(ARGUMENTS as u64).wrapping_mul(8);
        bus.load(self.sp().wrapping_add(above), len)
    }
    fn result_pointer(&self) -> u64 {
        self.general(RESULT_POINTER, 8).bits
    }
    fn arguments_before_declared(&self) -> usize {
        0
    }
    fn register_arguments(&self) -> usize {
        ARGUMENTS
    }
    fn return_from_entry(&mut self, bus: &mut Bus<'_>) {
        let to = self.general(LR, 8).bits;
        bus.leave(to, self.sp());
        self.registers.pc = to;
    }
    fn abandon(&mut self, frame: &Frame) {
        for (value, register) in frame.preserved.iter().flat_map(|p| p.iter()).zip(CALLEE_SAVED) {
            self.set_plain(register, *value);
        }
        self.set_plain(SP, Value::new(frame.stack_pointer));
        self.registers.pc = frame.return_to;
    }
    fn result(&self) -> Value {
        self.general(0, 8)
    }
    fn set_result(&mut self, value: Value) {
        self.set_plain(0, value);
    }
    fn set_second_result(&mut self, value: Value) {
        self.set_plain(1, value);
    }

    fn save(&self) -> super::Registers {
        super::Registers::Aarch64(Box::new(self.registers.clone()))
    }
    fn restore(&mut self, registers: &super::Registers) {
        if let super::Registers::Aarch64(registers) = registers {
            self.registers = (**registers).clone();
        }
    }
    fn refresh(&mut self, expressions: &mut Expressions) {
        for register in &mut self.registers.general {
            if let Some(shadow) = register.shadow {
                register.bits = expressions.eval(shadow) as u64;
            }
        }
        // a copy is made only for registers that change
        if self.registers.vector.iter().any(Vector::has_shadow) {
            Rc::make_mut(&mut self.registers.vector).iter_mut().for_each(|v| v.refresh(expressions));
        }
        self.registers.flags.refresh(expressions);
    }

    fn arguments_read(&mut self, bus: &mut Bus<'_>, function: u64, limit: usize) -> usize {
        liveness::arguments_read(bus, function, ARGUMENTS, limit)
    }
    fn survey(&mut self, bus: &mut Bus<'_>, function: u64, limit: usize) -> Survey {
        survey::survey(bus, function, limit)
    }
    fn next_turn(&self, bus: &mut Bus<'_>, at: u64, limit: usize) -> Option<Turn> {
        survey::next_turn(bus, at, limit)
    }
    fn stub_target(&mut self, bus: &mut Bus<'_>, function: u64) -> Option<u64> {
        if let Some(known) = self.stubs.get(&function) {
            return *known;
        }
        let target = survey::stub_target(bus, function);
        self.stubs.insert(function, target);
        target
    }
}
