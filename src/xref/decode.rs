//! Machine instructions reduced to what the method needs: where control goes, which address or number a
//! register receives, and what was compared with what.

mod aarch64;
mod x86_64;

/// A processor whose code is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Processor {
    X86_64,
    Aarch64,
}

/// Relation under which a conditional jump is taken: first operand, relation, second operand.
/// Unsigned relations count as the signed ones: compilers turn `2 <= x && x <= 9` into a signed test
/// followed by an unsigned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// parity, overflow, …
    Other,
}

impl Condition {
    pub(super) fn inverse(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
            Self::Other => Self::Other,
        }
    }
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callee {
    /// code at this address
    Code(u64),
    /// the function whose address is stored here
    Slot(u64),
    Unknown,
}

/// Where control goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Jump(u64),
    Branch {
        target: u64,
        condition: Condition,
        /// the number that the instruction itself compares with, where it does (`cbz`)
        compares: Option<i64>,
    },
    Call(Callee),
    /// return, trap, jump through a register
    Stop,
}

/// What an instruction does to the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    Kept,
    /// set by a comparison with this number
    Compared(i64),
    Changed,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) address: u64,
    pub(super) length: u64,
    pub(super) flow: Flow,
    pub(super) flags: Flags,
    /// the number that a register receives, when the instruction alone or with its predecessors tells it
    pub(super) forms: Option<u64>,
    /// address of the pointer that it loads or jumps through, where it is known
    pub(super) slot: Option<u64>,
}

/// Registers whose value is known from the instructions in front, read in address order. A value may be
/// stale behind a join of two paths; it only counts when a text of the expected form lies at it.
pub(super) type Registers = [Option<u64>; 32];

/// Reads instructions one after the other.
pub(super) enum Decoder<'a> {
    X86_64(Box<x86_64::Decoder<'a>>),
    Aarch64(aarch64::Decoder<'a>),
}

impl<'a> Decoder<'a> {
    /// For code at `start`, beginning with the instruction at `address`.
    pub(super) fn new(processor: Processor, bytes: &'a [u8], start: u64, address: u64) -> Self {
        match processor {
            Processor::X86_64 => Self::X86_64(Box::new(x86_64::Decoder::new(bytes, start, address))),
            Processor::Aarch64 => Self::Aarch64(aarch64::Decoder::new(bytes, start, address)),
        }
    }

    /// The next instruction; `None` at the end of the bytes. What cannot be decoded is stepped over as a [`Flow::Stop`].
    pub(super) fn step(&mut self, registers: &mut Registers) -> Option<Step> {
        match self {
            Self::X86_64(decoder) => decoder.step(registers),
            Self::Aarch64(decoder) => decoder.step(registers),
        }
    }
}
