//! x86-64: registers, decoded blocks, the loop. The semantics are tables below `x86_64/`.
//!
//! To add an instruction, copy a neighbour's row in the family's table: mnemonic on the left, what it does on the
//! right. `vpaddd` and `paddd` are two mnemonics with the same semantics; the operands tell how many sources there are.

mod control;
mod decode;
mod flags;
mod float;
mod integer;
mod liveness;
mod operands;
mod packed;
mod strings;
mod survey;
mod vector;

use super::{Bus, Event, Frame, Processor, Survey, Turn};
use crate::interpret::address_map::AddressMap;
use crate::interpret::layout;
use crate::interpret::memory::mask;
use crate::interpret::value::{Expressions, Value};
use decode::Code;
use flags::Flags;
use std::rc::Rc;
use vector::Vector;

/// Numbers of the general registers, as the instruction encoding has them.
mod register {
    pub const RAX: usize = 0;
    pub const RCX: usize = 1;
    pub const RDX: usize = 2;
    pub const RBX: usize = 3;
    pub const RSP: usize = 4;
    pub const RBP: usize = 5;
    pub const RSI: usize = 6;
    pub const RDI: usize = 7;
}
use register::{RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};

/// Where a platform's functions find their arguments, and what they have to preserve.
struct Convention {
    /// registers of the integer arguments
    arguments: &'static [usize],
    /// registers that a callee preserves; the stack pointer comes from the frame
    callee_saved: &'static [usize],
    /// bytes that a caller leaves free for the register arguments, below those on the stack
    home: u64,
}

/// System V ABI for x86-64: Linux, macOS.
const SYSTEM_V: Convention =
    Convention { arguments: &[RDI, RSI, RDX, RCX, 8, 9], callee_saved: &[RBX, RBP, 12, 13, 14, 15], home: 0 };
/// Microsoft x64: Windows. A floating-point argument takes an integer's place; vector registers are not restored.
const MICROSOFT: Convention =
    Convention { arguments: &[RCX, RDX, 8, 9], callee_saved: &[RBX, RBP, RDI, RSI, 12, 13, 14, 15], home: 32 };

/// All architectural state that is modelled.
#[derive(Clone)]
pub struct Registers {
    general: [Value; 16],
    vector: Rc<[Vector; 32]>,
    mask: [u64; 8],
    flags: Flags,
    pc: u64,
}

/// The processor.
pub struct X86_64 {
    registers: Registers,
    convention: &'static Convention,
    /// held apart while it runs
    code: Option<Box<Code>>,
    stubs: AddressMap<u64, Option<u64>>,
    /// set by an instruction that returns [`Step::Leave`]
    event: Option<Event>,
}

/// What comes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// the instruction behind it
    Next,
    /// another address
    Jump(u64),
    /// the machine, with `X86_64::event`
    Leave,
}

/// Meaning of an instruction.
pub type Semantics = fn(&mut X86_64, &mut Bus<'_>, &decode::Op) -> Step;

impl Default for X86_64 {
    fn default() -> Self {
        Self::new()
    }
}

impl X86_64 {
    /// All registers zero, calls as Linux and macOS make them.
    pub fn new() -> Self {
        Self::with(&SYSTEM_V)
    }
    /// All registers zero, calls as Windows makes them.
    pub fn for_windows() -> Self {
        Self::with(&MICROSOFT)
    }

    fn with(convention: &'static Convention) -> Self {
        Self {
            convention,
            registers: Registers {
                general: [Value::ZERO; 16],
                vector: Rc::new([Vector::ZERO; 32]),
                mask: [0; 8],
                flags: Flags::default(),
                pc: 0,
            },
            code: None,
            stubs: AddressMap::default(),
            event: None,
        }
    }

    #[inline]
    fn general(&self, n: usize) -> Value {
        self.registers.general.get(n).copied().unwrap_or_default()
    }
    #[inline]
    fn set_general(&mut self, n: usize, value: Value) {
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
    #[inline]
    fn push(&mut self, bus: &mut Bus<'_>, value: Value) {
        let sp = self.general(RSP).bits.wrapping_sub(8);
        self.set_general(RSP, Value::new(sp));
        bus.store(sp, 8, value);
    }
    #[inline]
    fn pop(&mut self, bus: &mut Bus<'_>) -> Value {
        let sp = self.general(RSP).bits;
        self.set_general(RSP, Value::new(sp.wrapping_add(8)));
        bus.load(sp, 8)
    }

    fn run_on(&mut self, code: &mut Code, bus: &mut Bus<'_>) -> Event {
        loop {
            let Some(block) = code.block(bus, self.registers.pc) else {
                return Event::Outside(self.registers.pc);
            };
            let mut next = block.end;
            // a block is paid for as a whole, though an event may leave it early
            let ops = code.ops(&block);
            let Some(remaining) = bus.remaining.checked_sub(ops.len() as u64) else {
                bus.remaining = 0;
                return Event::OutOfBudget;
            };
            bus.remaining = remaining;
            for op in ops {
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
}

impl Processor for X86_64 {
    fn run(&mut self, bus: &mut Bus<'_>) -> Event {
        let mut code = self.code.take().unwrap_or_default();
        let event = self.run_on(&mut code, bus);
        self.code = Some(code);
        event
    }
    fn set_pc(&mut self, pc: u64) {
        self.registers.pc = pc;
    }
    fn set_stack_pointer(&mut self, address: u64) {
        self.set_general(RSP, Value::new(address));
    }

    fn enter(&mut self, bus: &mut Bus<'_>, target: u64, return_to: u64) {
        // only kernels are abandoned
        let preserved = bus.skips_kernels.then(|| {
            let callee_saved = self.convention.callee_saved;
            Box::new(std::array::from_fn(|n| callee_saved.get(n).map_or(Value::ZERO, |r| self.general(*r))))
        });
        let stack_pointer = self.general(RSP).bits;
        bus.frames.push(Frame { target, return_to, stack_pointer, preserved });
        self.push(bus, Value::new(return_to));
        self.registers.pc = target;
    }
    fn set_arguments(&mut self, bus: &mut Bus<'_>, arguments: &[Value]) {
        let Convention { arguments: registers, home, .. } = self.convention;
        for (register, value) in registers.iter().zip(arguments) {
            self.set_general(*register, *value);
        }
        // the stack is aligned to 16 bytes at the call, below the arguments
        let on_stack = arguments.get(registers.len()..).unwrap_or_default();
        let room = (on_stack.len() as u64 * 8 + home + 15) & !15;
        let sp = self.general(RSP).bits.wrapping_sub(room);
        self.set_general(RSP, Value::new(sp));
        for (n, value) in on_stack.iter().enumerate() {
            bus.store(sp.wrapping_add(home + 8 * n as u64), 8, *value);
        }
    }
    fn argument(&self, bus: &mut Bus<'_>, n: usize, len: usize) -> Value {
        let Convention { arguments, home, .. } = self.convention;
        match arguments.get(n) {
            Some(register) => {
                let value = self.general(*register);
                Value { bits: value.bits & mask(len), shadow: value.shadow }
            }
            None => {
                // behind the return address
                let above = (n as u64).wrapping_sub(arguments.len() as u64).wrapping_add(1).wrapping_mul(8);
                bus.load(self.general(RSP).bits.wrapping_add(home + above), len)
            }
        }
    }
    fn result_pointer(&self) -> u64 {
        self.convention.arguments.first().map_or(0, |register| self.general(*register).bits)
    }
    fn arguments_before_declared(&self) -> usize {
        1
    }
    fn register_arguments(&self) -> usize {
        self.convention.arguments.len()
    }
    fn return_from_entry(&mut self, bus: &mut Bus<'_>) {
        let to = self.pop(bus).bits;
        bus.leave(to, self.general(RSP).bits);
        self.registers.pc = to;
    }
    fn abandon(&mut self, frame: &Frame) {
        for (value, register) in frame.preserved.iter().flat_map(|p| p.iter()).zip(self.convention.callee_saved) {
            self.set_general(*register, *value);
        }
        self.set_general(RSP, Value::new(frame.stack_pointer));
        self.registers.pc = frame.return_to;
    }
    fn result(&self) -> Value {
        self.general(RAX)
    }
    fn set_result(&mut self, value: Value) {
        self.set_general(RAX, value);
    }
    fn set_second_result(&mut self, value: Value) {
        self.set_general(RDX, value);
    }

    fn save(&self) -> super::Registers {
        super::Registers::X86_64(Box::new(self.registers.clone()))
    }
    fn restore(&mut self, registers: &super::Registers) {
        if let super::Registers::X86_64(registers) = registers {
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
        liveness::arguments_read(bus, function, self.convention.arguments, limit)
    }
    fn survey(&mut self, bus: &mut Bus<'_>, function: u64, limit: usize) -> Survey {
        survey::survey(self, bus, function, limit)
    }
    fn next_turn(&self, bus: &mut Bus<'_>, at: u64, limit: usize) -> Option<Turn> {
        survey::next_turn(bus, at, limit)
    }
    fn stub_target(&mut self, bus: &mut Bus<'_>, function: u64) -> Option<u64> {
        if let Some(known) = self.stubs.get(&function) {
            return *known;
        }
        let target = survey::stub_target(self, bus, function);
        self.stubs.insert(function, target);
        target
    }
}

/// Base of accesses to the thread's own block: `fs` on Linux, `gs` on macOS and Windows.
const FS: u64 = layout::THREAD_POINTER;
