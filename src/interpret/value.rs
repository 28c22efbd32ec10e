//! Values of the machine: concrete bits, and beside them what they are in terms of symbols.
//!
//! The invariant: a value of `n` bytes with a shadow equals the shadow's value modulo `2^(8n)` under the current
//! assignment of the symbols. Expressions are kept once (equal ones have the same number), linear ones in a normal
//! form, so that a relation such as `in1.size0 == 2*in0.size0` can be read off.

mod expressions;
mod to_model;

pub use expressions::Expressions;

use std::num::NonZeroU32;

/// Number of an expression in [`Expressions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shadow(NonZeroU32);

impl Shadow {
    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Bits and, where they depend on symbols, the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Value {
    /// concrete value under the current assignment
    pub bits: u64,
    /// how it depends on symbols
    pub shadow: Option<Shadow>,
}

impl Value {
    /// A value that depends on no symbol.
    #[inline]
    pub const fn new(bits: u64) -> Self {
        Self { bits, shadow: None }
    }
    /// Zero.
    pub const ZERO: Self = Self::new(0);
    /// The low `len` bytes as a signed number.
    #[inline]
    pub const fn signed(self, len: usize) -> i64 {
        sign_extend(self.bits, len)
    }
}

/// The low `len` bytes as a signed number.
#[inline]
pub const fn sign_extend(bits: u64, len: usize) -> i64 {
    if len >= 8 {
        return bits as i64;
    }
    let shift = 64 - 8 * len as u32;
    ((bits << shift) as i64) >> shift
}

/// What is not known about a tensor until the code asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// size of a dim
    Size(u8),
    /// stride of a dim, in elements
    Stride(u8),
    /// ATen's number of the element type
    DType,
    /// ATen's number of the device type
    Device,
    /// number of dims
    Rank,
    /// number of elements
    Elements,
    /// bytes of the storage
    StorageBytes,
    /// value of a tensor of one element
    Item,
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// a property of the tensor with that number
    Tensor(u32, Property),
    /// bytes of the library's own file, as `lseek` tells it
    FileSize,
    /// the last eight bytes of the file's mapping
    MappedMagic,
}

/// How two numbers compare; the unsigned ones are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`, signed
    Less,
    /// `>=`, signed
    GreaterEqual,
    /// `<=`, signed
    LessEqual,
    /// `>`, signed
    Greater,
    /// `<`, unsigned
    Below,
    /// `>=`, unsigned
    AboveEqual,
    /// `<=`, unsigned
    BelowEqual,
    /// `>`, unsigned
    Above,
}

impl Relation {
    /// What holds when this does not.
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::GreaterEqual => Self::Less,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::Below => Self::AboveEqual,
            Self::AboveEqual => Self::Below,
            Self::BelowEqual => Self::Above,
            Self::Above => Self::BelowEqual,
        }
    }
    /// The same statement with the sides exchanged.
    #[must_use]
    pub const fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::GreaterEqual => Self::LessEqual,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::Below => Self::Above,
            Self::AboveEqual => Self::BelowEqual,
            Self::BelowEqual => Self::AboveEqual,
            Self::Above => Self::Below,
            same => same,
        }
    }
    /// Sizes are never negative, so an unsigned comparison of them reads as the signed one
    /// (clang folds `2 <= x && x <= 1024` into a signed and an unsigned jump).
    #[must_use]
    pub const fn as_signed(self) -> Self {
        match self {
            Self::Below => Self::Less,
            Self::AboveEqual => Self::GreaterEqual,
            Self::BelowEqual => Self::LessEqual,
            Self::Above => Self::Greater,
            same => same,
        }
    }
    /// True when it holds.
    pub const fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::GreaterEqual => a >= b,
            Self::LessEqual => a <= b,
            Self::Greater => a > b,
            Self::Below => (a as u64) < b as u64,
            Self::AboveEqual => a as u64 >= b as u64,
            Self::BelowEqual => a as u64 <= b as u64,
            Self::Above => a as u64 > b as u64,
        }
    }
}

/// Operations that do not stay linear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// product
    Multiply,
    /// upper half of the 128-bit product of signed numbers
    MultiplyHigh,
    /// the same of unsigned numbers: compilers divide by a constant so
    MultiplyHighUnsigned,
    /// quotient, rounded towards zero
    Divide,
    /// remainder of [`Operation::Divide`]
    Remainder,
    /// bits shifted right, zeros shifted in
    ShiftRight,
    /// bits shifted right, sign shifted in
    ShiftRightSigned,
    /// bitwise and
    And,
    /// bitwise or
    Or,
    /// bitwise exclusive or
    Xor,
}

/// A node. `Linear` has its terms sorted and none with factor 0; it is never a bare symbol or number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// a number
    Constant(i64),
    /// a symbol
    Symbol(Origin),
    /// sum of factor times node, plus a number
    Linear(Box<[(Shadow, i64)]>, i64),
    /// anything that is not linear
    Binary(Operation, Shadow, Shadow),
    /// 1 when the relation holds, else 0
    Compare(Relation, Shadow, Shadow),
    /// third when the relation of the first two holds, else fourth
    Select(Relation, Shadow, Shadow, Shadow, Shadow),
    /// the low bytes, zero- or sign-extended
    Truncate {
        /// what is cut
        of: Shadow,
        /// bytes kept
        len: u8,
        /// sign-extended
        is_signed: bool,
    },
}
