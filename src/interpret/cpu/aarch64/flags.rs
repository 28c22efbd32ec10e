//! Flags, kept as the operation that made them: its operands make a jump readable as a relation.

use crate::interpret::cpu::Condition;
use crate::interpret::memory::mask;
use crate::interpret::value::{Expressions, Relation, Value, sign_extend};

/// What the flags are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `left - right`; carry means "no borrow"
    Subtract,
    /// `left + right`
    Add,
    /// of the result alone; carry and overflow are clear
    Logic,
    /// as stored
    Stored,
}

/// Lazily kept flags.
#[derive(Debug, Clone, Copy)]
pub struct Flags {
    kind: Kind,
    left: Value,
    right: Value,
    result: Value,
    /// bytes of the operands
    size: usize,
    /// negative, zero, carry, overflow in bits 3 to 0, for [`Kind::Stored`]
    nzcv: u8,
}

impl Default for Flags {
    fn default() -> Self {
        Self::stored(0)
    }
}

/// Condition codes as the encoding has them (C1.2.4).
pub mod code {
    pub const EQ: u32 = 0;
    pub const NE: u32 = 1;
    pub const HS: u32 = 2;
    pub const LO: u32 = 3;
    pub const MI: u32 = 4;
    pub const PL: u32 = 5;
    pub const VS: u32 = 6;
    pub const VC: u32 = 7;
    pub const HI: u32 = 8;
    pub const LS: u32 = 9;
    pub const GE: u32 = 10;
    pub const LT: u32 = 11;
    pub const GT: u32 = 12;
    pub const LE: u32 = 13;
}

impl Flags {
    pub fn subtract(left: Value, right: Value, size: usize) -> Self {
        Self { kind: Kind::Subtract, left, right, size, ..Self::default() }
    }
    pub fn add(left: Value, right: Value, result: Value, size: usize) -> Self {
        Self { kind: Kind::Add, left, right, result, size, nzcv: 0 }
    }
    pub fn logic(result: Value, size: usize) -> Self {
        Self { kind: Kind::Logic, result, size, ..Self::default() }
    }
    /// Negative, zero, carry, overflow in bits 3 to 0.
    pub const fn stored(nzcv: u8) -> Self {
        let zero = Value::ZERO;
        Self { kind: Kind::Stored, left: zero, right: zero, result: zero, size: 8, nzcv }
    }

    /// Recomputes operands that depend on symbols.
    pub fn refresh(&mut self, expressions: &mut Expressions) {
        for value in [&mut self.left, &mut self.right, &mut self.result] {
            if let Some(shadow) = value.shadow {
                value.bits = expressions.eval(shadow) as u64;
            }
        }
    }

    fn outcome(&self) -> i64 {
        let bits = match self.kind {
            Kind::Subtract => self.left.bits.wrapping_sub(self.right.bits),
            _ => self.result.bits,
        };
        sign_extend(bits, self.size)
    }
    fn is_zero(&self) -> bool {
        if self.kind == Kind::Stored { self.nzcv & 4 != 0 } else { self.outcome() == 0 }
    }
    fn is_negative(&self) -> bool {
        if self.kind == Kind::Stored { self.nzcv & 8 != 0 } else { self.outcome() < 0 }
    }
    pub fn is_carry(&self) -> bool {
        let m = mask(self.size);
        match self.kind {
            Kind::Subtract => self.left.bits & m >= self.right.bits & m,
            Kind::Add => self.result.bits & m < self.left.bits & m,
            Kind::Logic => false,
            Kind::Stored => self.nzcv & 2 != 0,
        }
    }
    fn is_overflow(&self) -> bool {
        let side = |v: Value| i128::from(sign_extend(v.bits, self.size));
        let wide = match self.kind {
            Kind::Subtract => side(self.left) - side(self.right),
            Kind::Add => side(self.left) + side(self.right),
            Kind::Logic => return false,
            Kind::Stored => return self.nzcv & 1 != 0,
        };
        wide != i128::from(self.outcome())
    }

    /// Whether a condition holds.
    pub fn test(&self, condition: u32) -> bool {
        match condition {
            code::EQ => self.is_zero(),
            code::NE => !self.is_zero(),
            code::HS => self.is_carry(),
            code::LO => !self.is_carry(),
            code::MI => self.is_negative(),
            code::PL => !self.is_negative(),
            code::VS => self.is_overflow(),
            code::VC => !self.is_overflow(),
            code::HI => self.is_carry() && !self.is_zero(),
            code::LS => !self.is_carry() || self.is_zero(),
            code::GE => self.is_negative() == self.is_overflow(),
            code::LT => self.is_negative() != self.is_overflow(),
            code::GT => !self.is_zero() && self.is_negative() == self.is_overflow(),
            code::LE => self.is_zero() || self.is_negative() != self.is_overflow(),
            _ => true,
        }
    }

    /// The condition as a relation, when it depends on symbols.
    pub fn condition(&self, condition: u32) -> Option<Condition> {
        let extended = |v: Value| Value { bits: sign_extend(v.bits, self.size) as u64, shadow: v.shadow };
        match self.kind {
            Kind::Subtract if self.left.shadow.is_some() || self.right.shadow.is_some() => {
                let relation = relation(condition)?;
                Some(Condition { relation, left: extended(self.left), right: extended(self.right) })
            }
            Kind::Add | Kind::Logic if self.result.shadow.is_some() => {
                let relation = match (condition, self.kind) {
                    (code::EQ | code::NE | code::MI | code::PL, _) => relation(condition)?,
                    // carry and overflow are clear
                    (code::GE | code::LT | code::GT | code::LE, Kind::Logic) => relation(condition)?,
                    // `cmn x, n` is a comparison with -n
                    (code::GE | code::LT | code::GT | code::LE, _) if self.right.shadow.is_none() => {
                        let right = Value::new((sign_extend(self.right.bits, self.size)).wrapping_neg() as u64);
                        let relation = relation(condition)?;
                        return Some(Condition { relation, left: extended(self.left), right });
                    }
                    _ => return None,
                };
                Some(Condition { relation, left: extended(self.result), right: Value::ZERO })
            }
            _ => None,
        }
    }
}

/// The relation that a condition tests after a comparison.
fn relation(condition: u32) -> Option<Relation> {
    Some(match condition {
        code::EQ => Relation::Equal,
        code::NE => Relation::NotEqual,
        code::HS => Relation::AboveEqual,
        code::LO => Relation::Below,
        code::HI => Relation::Above,
        code::LS => Relation::BelowEqual,
        // the sign of a difference that does not overflow is "less"
        code::GE | code::PL => Relation::GreaterEqual,
        code::LT | code::MI => Relation::Less,
        code::GT => Relation::Greater,
        code::LE => Relation::LessEqual,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carry_is_no_borrow() {
        let flags = Flags::subtract(Value::new(3), Value::new(5), 8);
        assert!(flags.test(code::LO) && flags.test(code::LT) && flags.test(code::NE) && flags.test(code::MI));
        let flags = Flags::subtract(Value::new(5), Value::new(5), 4);
        assert!(flags.test(code::HS) && flags.test(code::LS) && flags.test(code::EQ) && !flags.test(code::HI));
        let flags = Flags::subtract(Value::new(1 << 31), Value::new(1), 4);
        assert!(flags.test(code::VS) && flags.test(code::LT) && flags.test(code::PL));
    }
}
