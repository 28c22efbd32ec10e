//! Expressions in the vocabulary of the report: what compilers made of divisions is read back.

use super::{Expressions, Node, Operation, Origin, Relation, Shadow};
use crate::model::Expr;

impl Expressions {
    /// In the vocabulary of the report; `name` gives each symbol's expression. `None` for what has no such form.
    pub fn to_model(&self, shadow: Shadow, name: &dyn Fn(Origin) -> Option<Expr>) -> Option<Expr> {
        let go = |s: &Shadow| self.to_model(*s, name);
        match self.node(shadow) {
            Node::Constant(n) => Some(Expr::Int(*n)),
            Node::Symbol(origin) => name(*origin),
            Node::Linear(terms, constant) => terms.iter().try_fold(Expr::Int(*constant), |sum, (atom, factor)| {
                Some(sum.add(&go(atom)?.mul(&Expr::Int(*factor))))
            }),
            Node::Binary(operation, a, b) => match operation {
                Operation::Multiply => Some(go(a)?.mul(&go(b)?)),
                Operation::Divide => self.quotient(a, &go(b)?, name),
                Operation::Remainder => Some(go(a)?.modulo(&go(b)?)),
                Operation::ShiftRight | Operation::ShiftRightSigned => {
                    let n = self.as_constant(*b).filter(|n| (0..63).contains(n))?;
                    match self.division_by_product(*a, n) {
                        Some((of, by)) => Some(go(&of)?.floor_div(&Expr::Int(by))),
                        None => match self.division_by_multiple(*a, n) {
                            Some((multiplier, by)) => {
                                Some(go(a)?.floor_div(&Expr::Int(multiplier)).floor_div(&Expr::Int(by)))
                            }
                            None => self.quotient(a, &Expr::Int(1 << n), name),
                        },
                    }
                }
                Operation::And => {
                    let n = self.as_constant(*b).or_else(|| self.as_constant(*a))?;
                    let of = if self.as_constant(*b).is_some() { go(a)? } else { go(b)? };
                    // x & (2^k - 1) and x & -(2^k) are a remainder and what it leaves
                    if n > 0 && (n & (n + 1)) == 0 {
                        Some(of.modulo(&Expr::Int(n + 1)))
                    } else if n < 0 && n != i64::MIN && (-n & (-n - 1)) == 0 {
                        Some(of.floor_div(&Expr::Int(-n)).mul(&Expr::Int(-n)))
                    } else {
                        None
                    }
                }
                Operation::MultiplyHigh | Operation::MultiplyHighUnsigned => {
                    let (of, by) = self.division_by_product(shadow, 0)?;
                    Some(go(&of)?.floor_div(&Expr::Int(by)))
                }
                Operation::Or | Operation::Xor => None,
            },
            Node::Select(relation, a, b, yes, no) => self.select_to_model(*relation, *a, *b, *yes, *no, name),
            Node::Truncate { of, .. } => go(of),
            Node::Compare(..) => None,
        }
    }

    /// Compilers divide by a number through the upper half of a product: `x / d` is `(x * m) >> (64 + shift)` with
    /// `m` the next number above `2^(64 + shift) / d`. Gives x and d. A multiplier above `2^63` is split: the product
    /// with its low 64 bits, plus x.
    fn division_by_product(&self, upper: Shadow, shift: i64) -> Option<(Shadow, i64)> {
        let (product, has_more) = match self.node(upper) {
            Node::Binary(..) => (upper, None),
            Node::Linear(terms, 0) => match **terms {
                [(a, 1), (b, 1)] if matches!(self.node(a), Node::Binary(..)) => (a, Some(b)),
                [(a, 1), (b, 1)] => (b, Some(a)),
                _ => return None,
            },
            _ => return None,
        };
        let Node::Binary(operation, x, y) = self.node(product) else { return None };
        let (of, m) = match (self.as_constant(*x), self.as_constant(*y)) {
            (None, Some(m)) => (*x, m),
            (Some(m), None) => (*y, m),
            _ => return None,
        };
        let multiplier = match (operation, has_more) {
            (Operation::MultiplyHighUnsigned, None) => i128::from(m as u64),
            (Operation::MultiplyHigh, None) if m > 0 => i128::from(m),
            (Operation::MultiplyHigh, Some(more)) if more == of && m < 0 => i128::from(m) + (1i128 << 64),
            _ => return None,
        };
        let scale = 1i128.checked_shl(64 + u32::try_from(shift).ok()?).filter(|scale| *scale > 0)?;
        let by = scale.checked_div(multiplier)?.checked_add(if scale % multiplier == 0 { 0 } else { 1 })?;
        [by, by - 1].into_iter().find_map(|by| {
            let excess = multiplier.checked_mul(by)?.checked_sub(scale)?;
            (by > 1 && (0..=by).contains(&excess)).then(|| i64::try_from(by).ok().map(|by| (of, by)))?
        })
    }

    /// The same for numbers of 32 bits, where the product has room in one register: `(x * m) >> n`, with every term
    /// of the sum a multiple of m. Gives m and d.
    fn division_by_multiple(&self, product: Shadow, n: i64) -> Option<(i64, i64)> {
        let Node::Linear(terms, constant) = self.node(product) else { return None };
        let n = u32::try_from(n).ok().filter(|n| (32..63).contains(n))?;
        let all = terms.iter().map(|(_, factor)| *factor).chain([*constant]);
        if all.clone().any(|factor| factor < 0) {
            return None;
        }
        let multiplier = all.fold(0u64, |a, b| greatest_common_divisor(a, b.unsigned_abs()));
        let scale = 1u64 << n;
        // a smaller one could be a number that somebody wrote
        let by = scale.checked_div(multiplier).filter(|by| *by > 1 && multiplier > 1 << 16)?.checked_add(1)?;
        // exact for every x of 32 bits
        let excess = multiplier.checked_mul(by)?.checked_sub(scale)?;
        (excess <= 1 << (n - 32)).then_some((i64::try_from(multiplier).ok()?, i64::try_from(by).ok()?))
    }

    /// `x / n` of a size that is never negative; compilers add `n - 1` only for negative ones.
    fn quotient(&self, of: &Shadow, by: &Expr, name: &dyn Fn(Origin) -> Option<Expr>) -> Option<Expr> {
        if let Node::Select(_, a, b, yes, no) = self.node(*of) {
            // select(x < 0, x + n - 1, x) / n: towards zero in C, and sizes are not negative
            let (yes, no) = (*yes, *no);
            let plain = [yes, no].into_iter().find(|side| *side == *a && self.as_constant(*b) == Some(0));
            if let Some(plain) = plain {
                return Some(self.to_model(plain, name)?.floor_div(by));
            }
        }
        Some(self.to_model(*of, name)?.floor_div(by))
    }

    fn select_to_model(
        &self,
        relation: Relation,
        a: Shadow,
        b: Shadow,
        yes: Shadow,
        no: Shadow,
        name: &dyn Fn(Origin) -> Option<Expr>,
    ) -> Option<Expr> {
        let (yes, no) = if (a, b) == (yes, no) || (a, b) == (no, yes) { (yes, no) } else { return None };
        let (x, y) = (self.to_model(yes, name)?, self.to_model(no, name)?);
        let relation = if (a, b) == (yes, no) { relation } else { relation.swapped() };
        match relation.as_signed() {
            Relation::Less | Relation::LessEqual => Some(x.min_with(&y)),
            Relation::Greater | Relation::GreaterEqual => Some(x.max_with(&y)),
            _ => None,
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::value::{Property, Value};

    fn size(e: &mut Expressions, tensor: u32, dim: u8, value: i64) -> Value {
        let shadow = e.symbol(Origin::Tensor(tensor, Property::Size(dim)), value);
        Value { bits: value as u64, shadow: Some(shadow) }
    }
    fn name(origin: Origin) -> Option<Expr> {
        match origin {
            Origin::Tensor(t, Property::Size(d)) => Some(Expr::symbol(format!("t{t}d{d}"))),
            _ => None,
        }
    }

    /// `(x + 65534) / 65535` of 32 bits, as GCC compiles it: one product, one shift.
    #[test]
    fn division_by_a_product_in_one_register() {
        let mut e = Expressions::new();
        let a = size(&mut e, 0, 0, 13);
        let product = e.multiply(a, Value::new(2_147_516_417), 8);
        let product = Value { bits: 13 * 2_147_516_417, shadow: product };
        let offset = Value::new(65_534 * 2_147_516_417);
        let sum = Value { bits: product.bits + offset.bits, shadow: e.add(product, offset, 1, 8) };
        let shadow = e.binary(Operation::ShiftRight, sum, Value::new(47), 8).unwrap();
        assert_eq!(e.to_model(shadow, &name).map(|e| e.to_string()).as_deref(), Some("(t0d0 + 65534)//65535"));
    }

    #[test]
    fn ceiling_division_is_readable() {
        let mut e = Expressions::new();
        let a = size(&mut e, 0, 0, 13);
        let sixteen = e.multiply(a, Value::new(16), 8);
        let x = e.add(Value { bits: 208, shadow: sixteen }, Value::new(127), 1, 8).unwrap_or_else(|| e.constant(0));
        let more = e.add(Value { bits: 335, shadow: Some(x) }, Value::new(127), 1, 8).unwrap_or(x);
        let zero = e.constant(0);
        let picked = e.select(Relation::Less, x, zero, more, x);
        let grid = e.binary(Operation::ShiftRightSigned, Value { bits: 335, shadow: picked }, Value::new(7), 8);
        let text = grid.and_then(|g| e.to_model(g, &name)).map(|m| m.to_string());
        assert_eq!(text.as_deref(), Some("(16*t0d0 + 127)//128"));
        assert_eq!(grid.map(|g| e.eval(g)), Some(2));
    }

    #[test]
    fn divisions_by_products_are_read_back() {
        let mut e = Expressions::new();
        let a = size(&mut e, 0, 0, 100);
        let text = |e: &Expressions, s: Option<Shadow>| s.and_then(|s| e.to_model(s, &name)).map(|m| m.to_string());
        // x / 3 and x / 10, unsigned and signed
        for (operation, m, shift, wanted) in [
            (Operation::MultiplyHighUnsigned, 0xaaaa_aaaa_aaaa_aaab_u64, 1, "t0d0//3"),
            (Operation::MultiplyHigh, 0x5555_5555_5555_5556, 0, "t0d0//3"),
            (Operation::MultiplyHighUnsigned, 0xcccc_cccc_cccc_cccd, 3, "t0d0//10"),
            (Operation::MultiplyHigh, 0x6666_6666_6666_6667, 2, "t0d0//10"),
        ] {
            let upper = e.binary(operation, a, Value::new(m), 8);
            let bits = upper.map_or(0, |u| e.eval(u) as u64);
            let value = Value { bits, shadow: upper };
            let quotient =
                if shift == 0 { upper } else { e.binary(Operation::ShiftRight, value, Value::new(shift), 8) };
            assert_eq!(text(&e, quotient).as_deref(), Some(wanted));
            assert_eq!(quotient.map(|q| e.eval(q)), Some(if wanted.ends_with('3') { 33 } else { 10 }));
        }
        // x / 15, signed: the multiplier needs 65 bits
        let upper = e.binary(Operation::MultiplyHigh, a, Value::new(0x8888_8888_8888_8889), 8);
        let bits = upper.map_or(0, |u| e.eval(u) as u64);
        let sum = e.add(Value { bits, shadow: upper }, a, 1, 8);
        let value = Value { bits: sum.map_or(0, |s| e.eval(s) as u64), shadow: sum };
        let quotient = e.binary(Operation::ShiftRightSigned, value, Value::new(3), 8);
        assert_eq!(text(&e, quotient).as_deref(), Some("t0d0//15"));
    }
}
