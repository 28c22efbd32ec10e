//! All expressions of a run, each kept once, and their values under the current assignment.

use super::{Node, Operation, Origin, Property, Relation, Shadow, Value, sign_extend};
use crate::interpret::address_map::AddressMap;
use crate::interpret::memory::mask;
use crate::limits;
use std::num::NonZeroU32;

struct Assigned {
    value: i64,
    /// time of the last evaluation
    stamp: u32,
    /// nodes when written out as a tree
    weight: u32,
}

/// A linear expression taken apart: terms and the number.
pub type Linear = (Vec<(Shadow, i64)>, i64);

/// All expressions of a run and the values that the symbols have at the moment.
pub struct Expressions {
    nodes: Vec<Node>,
    values: Vec<Assigned>,
    index: AddressMap<Node, Shadow>,
    now: u32,
    log: Vec<(Shadow, i64)>,
    /// an expression was too large to keep, so that the run has to end
    pub is_overgrown: bool,
}

impl Default for Expressions {
    fn default() -> Self {
        Self::new()
    }
}

impl Expressions {
    /// None yet.
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            values: Vec::new(),
            index: AddressMap::default(),
            now: 1,
            log: Vec::new(),
            is_overgrown: false,
        }
    }

    fn intern(&mut self, node: Node) -> Shadow {
        if let Some(shadow) = self.index.get(&node) {
            return *shadow;
        }
        let weight = self.weigh(&node);
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX - 1).saturating_add(1);
        let shadow = Shadow(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN));
        if weight > limits::EXPRESSION_NODES || self.nodes.len() >= limits::EXPRESSIONS {
            self.is_overgrown = true;
            return Shadow(NonZeroU32::MIN);
        }
        self.nodes.push(node.clone());
        self.values.push(Assigned { value: 0, stamp: 0, weight });
        self.index.insert(node, shadow);
        shadow
    }

    fn weigh(&self, node: &Node) -> u32 {
        let of = |s: &Shadow| self.values.get(s.index()).map_or(1, |slot| slot.weight);
        let children = match node {
            Node::Constant(_) | Node::Symbol(_) => 0,
            Node::Linear(terms, _) => terms.iter().fold(0u32, |sum, t| sum.saturating_add(of(&t.0))),
            Node::Binary(_, a, b) | Node::Compare(_, a, b) => of(a).saturating_add(of(b)),
            Node::Select(_, a, b, x, y) => [a, b, x, y].into_iter().fold(0u32, |sum, n| sum.saturating_add(of(n))),
            Node::Truncate { of: inner, .. } => of(inner),
        };
        children.saturating_add(1)
    }

    /// The node behind a shadow.
    pub fn node(&self, shadow: Shadow) -> &Node {
        self.nodes.get(shadow.index()).unwrap_or(&Node::Constant(0))
    }

    /// The symbol of an origin; `initial` is its value when it is new.
    pub fn symbol(&mut self, origin: Origin, initial: i64) -> Shadow {
        let node = Node::Symbol(origin);
        if let Some(shadow) = self.index.get(&node) {
            return *shadow;
        }
        let shadow = self.intern(node);
        if let Some(slot) = self.values.get_mut(shadow.index()) {
            slot.value = initial;
        }
        shadow
    }
    /// What a symbol stands for; `None` for other expressions.
    pub fn origin(&self, shadow: Shadow) -> Option<Origin> {
        match self.node(shadow) {
            Node::Symbol(origin) => Some(*origin),
            _ => None,
        }
    }
    /// A number as an expression.
    pub fn constant(&mut self, n: i64) -> Shadow {
        self.intern(Node::Constant(n))
    }
    /// The number, when the expression is one.
    pub fn as_constant(&self, shadow: Shadow) -> Option<i64> {
        match self.node(shadow) {
            Node::Constant(n) => Some(*n),
            _ => None,
        }
    }
    /// A value of `len` bytes as an expression.
    pub fn of(&mut self, value: Value, len: usize) -> Shadow {
        match value.shadow {
            Some(shadow) => shadow,
            None => self.constant(value.signed(len)),
        }
    }

    /// Gives a symbol another value. Values in registers have to be refreshed afterwards.
    pub fn assign(&mut self, symbol: Shadow, value: i64) {
        if let Some(slot) = self.values.get_mut(symbol.index()) {
            self.log.push((symbol, slot.value));
            slot.value = value;
        }
        self.now = self.now.wrapping_add(1).max(1);
    }
    /// A point to return to with [`Expressions::undo`].
    pub fn point(&self) -> usize {
        self.log.len()
    }
    /// Undoes all assignments since a point.
    pub fn undo(&mut self, point: usize) {
        while self.log.len() > point {
            if let Some((symbol, value)) = self.log.pop()
                && let Some(slot) = self.values.get_mut(symbol.index())
            {
                slot.value = value;
            }
        }
        self.now = self.now.wrapping_add(1).max(1);
    }

    /// The value under the current assignment.
    pub fn eval(&mut self, shadow: Shadow) -> i64 {
        let Some(slot) = self.values.get(shadow.index()) else { return 0 };
        if slot.stamp == self.now {
            return slot.value;
        }
        let value = match *self.node(shadow) {
            Node::Constant(n) => n,
            Node::Symbol(_) => return slot.value,
            Node::Linear(ref terms, constant) => {
                let count = terms.len();
                let mut sum = constant;
                for at in 0..count {
                    let Node::Linear(terms, _) = self.node(shadow) else { break };
                    let Some((atom, factor)) = terms.get(at).copied() else { break };
                    sum = sum.wrapping_add(factor.wrapping_mul(self.eval(atom)));
                }
                sum
            }
            Node::Binary(operation, a, b) => operate(operation, self.eval(a), self.eval(b)),
            Node::Compare(relation, a, b) => i64::from(relation.holds(self.eval(a), self.eval(b))),
            Node::Select(relation, a, b, x, y) => {
                if relation.holds(self.eval(a), self.eval(b)) {
                    self.eval(x)
                } else {
                    self.eval(y)
                }
            }
            Node::Truncate { of, len, is_signed } => {
                let bits = self.eval(of) as u64 & mask(usize::from(len));
                if is_signed { sign_extend(bits, usize::from(len)) } else { bits as i64 }
            }
        };
        let now = self.now;
        if let Some(slot) = self.values.get_mut(shadow.index()) {
            slot.stamp = now;
            slot.value = value;
        }
        value
    }

    /// Terms and number of an expression, itself as the only term when it is not a sum.
    pub fn linear(&self, shadow: Shadow) -> Linear {
        match self.node(shadow) {
            Node::Constant(n) => (Vec::new(), *n),
            Node::Linear(terms, constant) => (terms.to_vec(), *constant),
            _ => (vec![(shadow, 1)], 0),
        }
    }

    fn sum_of(&mut self, terms: Vec<(Shadow, i64)>, constant: i64) -> Shadow {
        match terms.as_slice() {
            [] => self.constant(constant),
            [(only, 1)] if constant == 0 => *only,
            _ => self.intern(Node::Linear(terms.into_boxed_slice(), constant)),
        }
    }

    /// `a + factor*b`
    pub fn add_scaled(&mut self, a: Shadow, b: Shadow, factor: i64) -> Shadow {
        let (mut terms, mut constant) = self.linear(a);
        let (more, number) = self.linear(b);
        constant = constant.wrapping_add(number.wrapping_mul(factor));
        for (atom, k) in more {
            let k = k.wrapping_mul(factor);
            match terms.binary_search_by_key(&atom, |t| t.0) {
                Ok(at) => {
                    if let Some(term) = terms.get_mut(at) {
                        term.1 = term.1.wrapping_add(k);
                    }
                }
                Err(at) => terms.insert(at, (atom, k)),
            }
        }
        terms.retain(|t| t.1 != 0);
        self.sum_of(terms, constant)
    }
    /// `factor*a`
    pub fn scale(&mut self, a: Shadow, factor: i64) -> Shadow {
        let zero = self.constant(0);
        self.add_scaled(zero, a, factor)
    }
    /// A sum or difference of values of `len` bytes.
    #[inline]
    pub fn add(&mut self, a: Value, b: Value, factor: i64, len: usize) -> Option<Shadow> {
        if a.shadow.is_none() && b.shadow.is_none() {
            return None;
        }
        let (a, b) = (self.of(a, len), self.of(b, len));
        let sum = self.add_scaled(a, b, factor);
        self.unless_constant(sum)
    }
    /// A product of values of `len` bytes.
    #[inline]
    pub fn multiply(&mut self, a: Value, b: Value, len: usize) -> Option<Shadow> {
        let product = match (a.shadow, b.shadow) {
            (None, None) => return None,
            (Some(a), None) => self.scale(a, b.signed(len)),
            (None, Some(b)) => self.scale(b, a.signed(len)),
            (Some(a), Some(b)) => {
                let (a, b) = (a.min(b), a.max(b));
                match (self.as_constant(a), self.as_constant(b)) {
                    (Some(k), _) => self.scale(b, k),
                    (_, Some(k)) => self.scale(a, k),
                    _ => self.intern(Node::Binary(Operation::Multiply, a, b)),
                }
            }
        };
        self.unless_constant(product)
    }
    /// Any other operation on values of `len` bytes.
    pub fn binary(&mut self, operation: Operation, a: Value, b: Value, len: usize) -> Option<Shadow> {
        if a.shadow.is_none() && b.shadow.is_none() {
            return None;
        }
        let (x, y) = (self.of(a, len), self.of(b, len));
        // an exact division stays linear: `numel*8 >> 3`, `4*s // 4`
        let divisor = match (operation, self.as_constant(y)) {
            (Operation::Divide, Some(n)) if n > 0 => Some(n),
            (Operation::ShiftRight | Operation::ShiftRightSigned, Some(n @ 0..=62)) => Some(1i64 << n),
            _ => None,
        };
        if let Some(n) = divisor {
            let (terms, constant) = self.linear(x);
            if constant.wrapping_rem(n) == 0 && terms.iter().all(|t| t.1.wrapping_rem(n) == 0) {
                let terms = terms.into_iter().map(|(atom, k)| (atom, k.wrapping_div(n))).collect();
                let quotient = self.sum_of(terms, constant.wrapping_div(n));
                return self.unless_constant(quotient);
            }
        }
        // the sign of a size, which compilers subtract from quotients
        if operation == Operation::ShiftRightSigned && self.as_constant(y) == Some(63) && self.is_size_like(x) {
            return None;
        }
        let node = self.intern(Node::Binary(operation, x, y));
        self.unless_constant(node)
    }
    /// The outcome of a comparison as a number.
    pub fn compare(&mut self, relation: Relation, a: Shadow, b: Shadow) -> Shadow {
        self.intern(Node::Compare(relation, a, b))
    }
    /// One of two, by a comparison.
    pub fn select(&mut self, relation: Relation, a: Shadow, b: Shadow, yes: Shadow, no: Shadow) -> Option<Shadow> {
        if yes == no {
            return self.unless_constant(yes);
        }
        Some(self.intern(Node::Select(relation, a, b, yes, no)))
    }
    /// The shadow of the low `len` bytes, extended to 64 bits. Sizes fit, so the expression mostly stays as it is.
    #[inline]
    pub fn extend(&mut self, value: Value, len: usize, is_signed: bool) -> Value {
        let bits = if is_signed { sign_extend(value.bits, len) as u64 } else { value.bits & mask(len) };
        let shadow = value.shadow.map(|of| {
            if self.eval(of) as u64 == bits {
                of
            } else {
                self.intern(Node::Truncate { of, len: len as u8, is_signed })
            }
        });
        Value { bits, shadow }
    }

    fn unless_constant(&self, shadow: Shadow) -> Option<Shadow> {
        self.as_constant(shadow).is_none().then_some(shadow)
    }

    /// Never negative, because it is a sum of sizes with positive factors.
    fn is_size_like(&self, shadow: Shadow) -> bool {
        match self.node(shadow) {
            Node::Constant(n) => *n >= 0,
            Node::Symbol(origin) => matches!(
                origin,
                Origin::Tensor(_, Property::Size(_) | Property::Rank | Property::Elements | Property::StorageBytes)
            ),
            Node::Linear(terms, constant) => {
                *constant >= 0 && terms.iter().all(|(atom, factor)| *factor > 0 && self.is_size_like(*atom))
            }
            Node::Binary(Operation::Multiply | Operation::Divide | Operation::Remainder, a, b) => {
                self.is_size_like(*a) && self.is_size_like(*b)
            }
            Node::Binary(Operation::ShiftRight | Operation::ShiftRightSigned, a, _) => self.is_size_like(*a),
            _ => false,
        }
    }

    /// The symbols in an expression.
    pub fn symbols(&self, shadow: Shadow, into: &mut Vec<Shadow>) {
        match self.node(shadow) {
            Node::Constant(_) => {}
            Node::Symbol(_) => {
                if !into.contains(&shadow) {
                    into.push(shadow);
                }
            }
            Node::Linear(terms, _) => terms.iter().for_each(|t| self.symbols(t.0, into)),
            Node::Binary(_, a, b) | Node::Compare(_, a, b) => [a, b].into_iter().for_each(|n| self.symbols(*n, into)),
            Node::Select(_, a, b, x, y) => [a, b, x, y].into_iter().for_each(|n| self.symbols(*n, into)),
            Node::Truncate { of, .. } => self.symbols(*of, into),
        }
    }
}

const fn operate(operation: Operation, a: i64, b: i64) -> i64 {
    match operation {
        Operation::Multiply => a.wrapping_mul(b),
        Operation::MultiplyHigh => ((a as i128 * b as i128) >> 64) as i64,
        Operation::MultiplyHighUnsigned => ((a as u64 as u128 * b as u64 as u128) >> 64) as i64,
        Operation::Divide if b == 0 => 0,
        Operation::Divide => a.wrapping_div(b),
        Operation::Remainder if b == 0 => 0,
        Operation::Remainder => a.wrapping_rem(b),
        Operation::ShiftRight => (a as u64).wrapping_shr(b as u32) as i64,
        Operation::ShiftRightSigned => a.wrapping_shr(b as u32),
        Operation::And => a & b,
        Operation::Or => a | b,
        Operation::Xor => a ^ b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(e: &mut Expressions, tensor: u32, dim: u8, value: i64) -> Value {
        let shadow = e.symbol(Origin::Tensor(tensor, Property::Size(dim)), value);
        Value { bits: value as u64, shadow: Some(shadow) }
    }

    #[test]
    fn linear_forms_are_unique() {
        let mut e = Expressions::new();
        let (a, b) = (size(&mut e, 0, 0, 13), size(&mut e, 0, 1, 15));
        let ab = e.add(a, b, 1, 8);
        assert_eq!(ab, e.add(b, a, 1, 8));
        assert_eq!(e.add(a, a, -1, 8), None);
        let eight = e.multiply(a, Value::new(8), 8);
        let back = e.binary(Operation::ShiftRightSigned, Value { bits: 104, shadow: eight }, Value::new(3), 8);
        assert_eq!(back, a.shadow);
    }

    #[test]
    fn narrowing_keeps_small_values() {
        let mut e = Expressions::new();
        let a = size(&mut e, 0, 0, 13);
        assert_eq!(e.extend(a, 4, false), a);
        let minus = e.multiply(a, Value::new(u64::MAX), 8);
        let cut = e.extend(Value { bits: (-13i64) as u64, shadow: minus }, 4, false);
        assert_eq!(cut.bits, 0xffff_fff3);
        assert_ne!(cut.shadow, minus);
    }

    #[test]
    fn the_number_of_expressions_has_a_border() {
        let mut all = Expressions::new();
        // as if so many had been made before
        all.nodes.resize(limits::EXPRESSIONS - 1, Node::Constant(0));
        all.values.resize_with(limits::EXPRESSIONS - 1, || Assigned { value: 0, stamp: 0, weight: 1 });
        let last = all.constant(7);
        assert!(!all.is_overgrown);
        // known ones can still be had
        assert_eq!(all.constant(7), last);
        assert!(!all.is_overgrown);
        all.constant(8);
        assert!(all.is_overgrown);
    }

    #[test]
    fn the_size_of_an_expression_has_a_border() {
        let mut all = Expressions::new();
        let symbol = all.symbol(Origin::FileSize, 3);
        // each truncation is one node more
        let mut deepen = |times: u32| {
            let mut of = symbol;
            for n in 0..times {
                of = all.intern(Node::Truncate { of, len: 1, is_signed: n % 2 == 0 });
            }
            all.is_overgrown
        };
        assert!(!deepen(limits::EXPRESSION_NODES - 1));
        assert!(deepen(limits::EXPRESSION_NODES));
    }
}
