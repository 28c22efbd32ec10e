//! Values of the machine: concrete bits, and beside them what they are in terms of symbols.
//!
//! The invariant: a value of `n` bytes with a shadow equals the shadow's value modulo `2^(8n)` under the current
//! assignment of the symbols. Expressions are kept once (equal ones have the same number), linear ones in a normal
//! form, so that a relation such as `in1.size0 == 2*in0.size0` can be read off.

use super::memory::{AddressMap, mask};
use crate::limits;
use crate::model::Expr;
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
    fn name(origin: Origin) -> Option<Expr> {
        match origin {
            Origin::Tensor(t, Property::Size(d)) => Some(Expr::symbol(format!("t{t}d{d}"))),
            _ => None,
        }
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
