//! What the machine asks of a processor, and what a processor may touch.
//!
//! # Adding a processor
//! 1. `cpu/<name>.rs` holds a type with the registers (`Clone`; vector registers behind an `Rc`, because they are
//!    saved at every branch on a symbol) and a cache of decoded blocks, and implements [`Processor`].
//!    The semantics go below `cpu/<name>/`, as tables from mnemonic to a small function.
//! 2. Every value read from a register or memory is a [`Value`]: copy the shadow where the bits are copied, build
//!    it with [`Expressions`] where they are computed (moves, additions, products, shifts, comparisons, selects),
//!    drop it elsewhere.
//! 3. Keep the operands of a comparison, not the flag bits: a conditional jump on a shadow is handed to the machine
//!    as [`Event::Branch`] with the relation in it. The machine answers with `set_pc`.
//! 4. A call is made at once with [`Processor::enter`] where [`Bus::calls_at_once`] allows it; else it gives
//!    [`Event::Call`] *before* anything is pushed, and the machine enters the function or steps over it. A return pops the frame with [`Bus::leave`] and goes on by itself.
//! 5. What is not known ends in [`Event::Unsupported`]; never guess. Arithmetic wraps, nothing panics.
//! 6. Add the variant to [`Registers`] and to `machine::processor_for`.
//!
//! Calling conventions are hidden behind `argument`, `set_result` and friends: import handlers never name a register.

pub mod aarch64;
mod lanes;
pub mod x86_64;

use super::address_map::AddressMap;
use super::memory::Memory;
use super::value::{Expressions, Relation, Value};
use crate::limits;

/// All that a processor may touch besides its own registers.
pub struct Bus<'a> {
    /// memory
    pub memory: Memory<'a>,
    /// expressions over symbols
    pub expressions: Expressions,
    /// calls that have not returned
    pub frames: Vec<Frame>,
    /// instructions left
    pub remaining: u64,
    /// kernels that compute are stepped over: the machine looks at each call before it is made
    pub skips_kernels: bool,
    /// addresses of functions of the library that the machine answers itself
    pub hooks: AddressMap<u64, ()>,
}

impl Bus<'_> {
    /// An empty memory, and `remaining` instructions.
    pub fn new(remaining: u64) -> Self {
        Self {
            memory: Memory::new(),
            expressions: Expressions::new(),
            frames: Vec::new(),
            remaining,
            skips_kernels: false,
            hooks: AddressMap::default(),
        }
    }
    /// Reads `len` bytes (at most 8) with their shadow.
    #[inline]
    pub fn load(&mut self, address: u64, len: usize) -> Value {
        self.memory.load(&mut self.expressions, address, len)
    }
    /// Writes `len` bytes (at most 8) with their shadow.
    #[inline]
    pub fn store(&mut self, address: u64, len: usize, value: Value) {
        self.memory.store(address, len, value);
    }
    /// True when a processor may enter a function without asking the machine.
    #[inline]
    pub fn calls_at_once(&self) -> bool {
        !self.skips_kernels && self.frames.len() < limits::CALL_DEPTH
    }
    /// Pops the frame that a return to this address ends, and those that were left without a return.
    #[inline]
    pub fn leave(&mut self, return_to: u64, stack_pointer: u64) {
        while self.frames.last().is_some_and(|frame| frame.stack_pointer < stack_pointer) {
            self.frames.pop();
        }
        if self.frames.last().is_some_and(|frame| frame.return_to == return_to && frame.stack_pointer == stack_pointer)
        {
            self.frames.pop();
        }
    }
}

/// Most registers that a callee has to preserve (aarch64: x19 to x29).
pub const PRESERVED: usize = 12;

/// A call that has not returned.
#[derive(Debug, Clone)]
pub struct Frame {
    /// function that was called
    pub target: u64,
    /// where it returns to
    pub return_to: u64,
    /// stack pointer after the return
    pub stack_pointer: u64,
    /// registers that the callee has to preserve, in an order of the processor's own; kept where kernels are skipped
    pub preserved: Option<Box<[Value; PRESERVED]>>,
}

/// A relation that decides a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// how the sides compare
    pub relation: Relation,
    /// left side, sign-extended
    pub left: Value,
    /// right side, sign-extended
    pub right: Value,
}

/// Why a processor hands control back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// the program counter is at an import, a hooked function, our return address, or nowhere
    Outside(u64),
    /// a call, not yet made
    Call {
        /// function
        target: u64,
        /// instruction behind the call
        return_to: u64,
    },
    /// a jump whose condition depends on symbols, not yet made
    Branch {
        /// the relation; the concrete values are those of the current assignment
        condition: Condition,
        /// address of the jump
        at: u64,
        /// next address when the relation holds
        taken: u64,
        /// next address when not
        otherwise: u64,
    },
    /// an instruction that traps: the library itself gives up
    Trap(u64),
    /// an instruction that is not modelled
    Unsupported {
        /// its address
        at: u64,
        /// its name
        name: String,
        /// it computes with floating-point numbers: the function is a kernel
        is_float: bool,
    },
    /// the budget is spent
    OutOfBudget,
}

/// Registers of any processor, for snapshots.
#[derive(Clone)]
pub enum Registers {
    /// of [`aarch64::Aarch64`]
    Aarch64(Box<aarch64::Registers>),
    /// of [`x86_64::X86_64`]
    X86_64(Box<x86_64::Registers>),
}

/// Where control may go after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// to the instruction behind it
    Next,
    /// there
    Jump(u64),
    /// there, or to the instruction behind it
    Branch(u64),
    /// into a function, and back
    Call(u64),
    /// into a function that is not known, and back
    IndirectCall,
    /// it is not known where
    IndirectJump,
    /// to the caller
    Return,
    /// nowhere: the library gives up
    Trap,
}

/// An instruction that does not simply go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// where it leads
    pub flow: Flow,
    /// address behind it
    pub next: u64,
    /// instructions up to it
    pub count: usize,
}

/// What a function does, seen without running it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// it computes with floating-point numbers
    pub has_float_arithmetic: bool,
    /// functions that it calls or jumps to, each once
    pub calls: Vec<u64>,
}

/// A processor with its registers.
pub trait Processor {
    /// Goes on from the program counter until something needs the machine.
    fn run(&mut self, bus: &mut Bus<'_>) -> Event;
    /// Goes on from another address.
    fn set_pc(&mut self, pc: u64);
    /// Empties the stack.
    fn set_stack_pointer(&mut self, address: u64);

    /// Makes a call: return address, frame, program counter.
    fn enter(&mut self, bus: &mut Bus<'_>, target: u64, return_to: u64);
    /// Sets integer arguments, those that do not fit in registers on the stack. Before [`Processor::enter`].
    fn set_arguments(&mut self, bus: &mut Bus<'_>, arguments: &[Value]);
    /// At the entry of a function: its `n`-th integer argument, from 0, of `len` bytes.
    fn argument(&self, bus: &mut Bus<'_>, n: usize, len: usize) -> Value;
    /// At the entry of a function that returns a structure in memory: where to put it.
    fn result_pointer(&self) -> u64;
    /// How many integer arguments come before the declared ones in such a function (x86-64: 1, the pointer itself).
    fn arguments_before_declared(&self) -> usize;
    /// How many integer arguments are passed in registers.
    fn register_arguments(&self) -> usize;
    /// At the entry of a function: returns to its caller.
    fn return_from_entry(&mut self, bus: &mut Bus<'_>);
    /// Leaves the innermost call as if it had returned, with the registers that it has to preserve.
    fn abandon(&mut self, frame: &Frame);
    /// The integer result.
    fn result(&self) -> Value;
    /// Sets the integer result.
    fn set_result(&mut self, value: Value);
    /// Sets the second half of a result of two words.
    fn set_second_result(&mut self, value: Value);

    /// All registers, for a snapshot.
    fn save(&self) -> Registers;
    /// Registers of a snapshot of this processor.
    fn restore(&mut self, registers: &Registers);
    /// Recomputes what depends on symbols after an assignment changed.
    fn refresh(&mut self, expressions: &mut Expressions);

    /// How many registers for arguments a function reads, seen without running it; at most `limit` instructions.
    fn arguments_read(&mut self, bus: &mut Bus<'_>, function: u64, limit: usize) -> usize;
    /// Looks at a function without running it; at most `limit` instructions.
    fn survey(&mut self, bus: &mut Bus<'_>, function: u64, limit: usize) -> Survey;
    /// The first instruction from an address on that does not simply go on; `None` when it is not among the first `limit`.
    fn next_turn(&self, bus: &mut Bus<'_>, at: u64, limit: usize) -> Option<Turn>;
    /// For a stub that jumps through a slot: where it leads.
    fn stub_target(&mut self, bus: &mut Bus<'_>, function: u64) -> Option<u64>;
}
