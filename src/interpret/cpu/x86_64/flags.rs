//! Flags, kept as the operation that made them: its operands make a jump readable as a relation.

use crate::interpret::cpu::Condition;
use crate::interpret::memory::mask;
use crate::interpret::value::{Expressions, Relation, Value, sign_extend};
use iced_x86::ConditionCode;

/// What the flags are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `left - right`
    Subtract,
    /// `left + right`
    Add,
    /// of the result alone; carry and overflow as stored
    Result,
    /// as stored
    Stored,
}

/// Lazily kept flags.
#[derive(Debug, Clone, Copy)]
pub struct Flags {
    pub kind: Kind,
    pub left: Value,
    pub right: Value,
    /// result, for [`Kind::Result`] with its shadow
    pub result: Value,
    /// bytes of the operands
    pub size: usize,
    pub zero: bool,
    pub carry: bool,
    pub overflow: bool,
    pub sign: bool,
    pub parity: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            kind: Kind::Stored,
            left: Value::ZERO,
            right: Value::ZERO,
            result: Value::ZERO,
            size: 8,
            zero: false,
            carry: false,
            overflow: false,
            sign: false,
            parity: false,
        }
    }
}

impl Flags {
    #[inline]
    pub fn subtract(left: Value, right: Value, size: usize) -> Self {
        Self { kind: Kind::Subtract, left, right, size, ..Self::default() }
    }
    #[inline]
    pub fn add(left: Value, right: Value, result: Value, size: usize) -> Self {
        Self { kind: Kind::Add, left, right, result, size, ..Self::default() }
    }
    /// Flags of a logical operation: carry and overflow are clear.
    #[inline]
    pub fn logic(result: Value, size: usize) -> Self {
        Self { kind: Kind::Result, result, size, ..Self::default() }
    }
    /// Flags of a result with given carry and overflow.
    #[inline]
    pub fn result(result: Value, size: usize, carry: bool, overflow: bool) -> Self {
        Self { kind: Kind::Result, result, size, carry, overflow, ..Self::default() }
    }
    pub fn stored(zero: bool, sign: bool, carry: bool, overflow: bool) -> Self {
        Self { zero, sign, carry, overflow, ..Self::default() }
    }

    /// Recomputes operands that depend on symbols.
    pub fn refresh(&mut self, expressions: &mut Expressions) {
        for value in [&mut self.left, &mut self.right, &mut self.result] {
            if let Some(shadow) = value.shadow {
                value.bits = expressions.eval(shadow) as u64;
            }
        }
    }

    #[inline]
    fn signed(&self) -> (i64, i64) {
        (sign_extend(self.left.bits, self.size), sign_extend(self.right.bits, self.size))
    }
    #[inline]
    fn outcome(&self) -> i64 {
        let bits = match self.kind {
            Kind::Subtract => self.left.bits.wrapping_sub(self.right.bits),
            _ => self.result.bits,
        };
        sign_extend(bits, self.size)
    }
    #[inline]
    pub fn is_zero(&self) -> bool {
        if self.kind == Kind::Stored { self.zero } else { self.outcome() == 0 }
    }
    #[inline]
    pub fn is_carry(&self) -> bool {
        let m = mask(self.size);
        match self.kind {
            Kind::Subtract => self.left.bits & m < self.right.bits & m,
            Kind::Add => self.result.bits & m < self.left.bits & m,
            Kind::Result | Kind::Stored => self.carry,
        }
    }
    #[inline]
    pub fn is_sign(&self) -> bool {
        if self.kind == Kind::Stored { self.sign } else { self.outcome() < 0 }
    }
    #[inline]
    pub fn is_overflow(&self) -> bool {
        let (a, b) = self.signed();
        let wide = match self.kind {
            Kind::Subtract => i128::from(a) - i128::from(b),
            Kind::Add => i128::from(a) + i128::from(b),
            Kind::Result | Kind::Stored => return self.overflow,
        };
        wide != i128::from(self.outcome())
    }
    pub fn is_parity(&self) -> bool {
        if self.kind == Kind::Stored { self.parity } else { (self.outcome() as u8).count_ones().is_multiple_of(2) }
    }

    /// Whether a condition holds.
    pub fn test(&self, code: ConditionCode) -> bool {
        match code {
            ConditionCode::None => true,
            ConditionCode::o => self.is_overflow(),
            ConditionCode::no => !self.is_overflow(),
            ConditionCode::b => self.is_carry(),
            ConditionCode::ae => !self.is_carry(),
            ConditionCode::e => self.is_zero(),
            ConditionCode::ne => !self.is_zero(),
            ConditionCode::be => self.is_carry() || self.is_zero(),
            ConditionCode::a => !self.is_carry() && !self.is_zero(),
            ConditionCode::s => self.is_sign(),
            ConditionCode::ns => !self.is_sign(),
            ConditionCode::p => self.is_parity(),
            ConditionCode::np => !self.is_parity(),
            ConditionCode::l => self.is_sign() != self.is_overflow(),
            ConditionCode::ge => self.is_sign() == self.is_overflow(),
            ConditionCode::le => self.is_zero() || self.is_sign() != self.is_overflow(),
            ConditionCode::g => !self.is_zero() && self.is_sign() == self.is_overflow(),
        }
    }

    /// The condition as a relation, when it depends on symbols.
    pub fn condition(&self, code: ConditionCode) -> Option<Condition> {
        let extended = |v: Value| Value { bits: sign_extend(v.bits, self.size) as u64, shadow: v.shadow };
        match self.kind {
            Kind::Subtract => {
                if self.left.shadow.is_none() && self.right.shadow.is_none() {
                    return None;
                }
                // the sign of a difference that does not overflow is "less"
                let relation = match code {
                    ConditionCode::s => Relation::Less,
                    ConditionCode::ns => Relation::GreaterEqual,
                    other => relation(other)?,
                };
                Some(Condition { relation, left: extended(self.left), right: extended(self.right) })
            }
            Kind::Add | Kind::Result => {
                self.result.shadow?;
                let relation = match code {
                    ConditionCode::s => Relation::Less,
                    ConditionCode::ns => Relation::GreaterEqual,
                    ConditionCode::e | ConditionCode::ne => relation(code)?,
                    // carry and overflow are clear after logical operations alone
                    ConditionCode::l | ConditionCode::ge | ConditionCode::le | ConditionCode::g
                        if self.kind == Kind::Result && !self.overflow =>
                    {
                        relation(code)?
                    }
                    ConditionCode::a if self.kind == Kind::Result && !self.carry => Relation::NotEqual,
                    ConditionCode::be if self.kind == Kind::Result && !self.carry => Relation::Equal,
                    _ => return None,
                };
                Some(Condition { relation, left: extended(self.result), right: Value::ZERO })
            }
            Kind::Stored => None,
        }
    }
}

/// The relation that a jump tests after a comparison.
fn relation(code: ConditionCode) -> Option<Relation> {
    Some(match code {
        ConditionCode::e => Relation::Equal,
        ConditionCode::ne => Relation::NotEqual,
        ConditionCode::l => Relation::Less,
        ConditionCode::ge => Relation::GreaterEqual,
        ConditionCode::le => Relation::LessEqual,
        ConditionCode::g => Relation::Greater,
        ConditionCode::b => Relation::Below,
        ConditionCode::ae => Relation::AboveEqual,
        ConditionCode::be => Relation::BelowEqual,
        ConditionCode::a => Relation::Above,
        _ => return None,
    })
}
