//! Integer expressions over symbols, kept in a normal form so that equal ones compare equal.

use std::collections::BTreeMap;
use std::fmt;

/// One end of a range; absent is infinity.
type Bound = Option<i64>;
/// Inclusive lower and upper end.
pub type Bounds = (Bound, Bound);

/// An integer expression. Build it with the methods: they keep sums and products flat, sorted and folded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expr {
    /// a number
    Int(i64),
    /// a size known by name
    Symbol(String),
    /// two or more terms; at most one is a number
    Sum(Vec<Expr>),
    /// two or more factors; at most one, the first, is a number
    Product(Vec<Expr>),
    /// Python's `//`
    FloorDiv(Box<Expr>, Box<Expr>),
    /// Python's `%`
    Mod(Box<Expr>, Box<Expr>),
    /// the smallest
    Min(Vec<Expr>),
    /// the largest
    Max(Vec<Expr>),
}

impl Expr {
    /// A symbol by name.
    pub fn symbol(name: impl Into<String>) -> Self {
        Self::Symbol(name.into())
    }

    /// Number of its parts, itself included.
    pub fn nodes(&self) -> usize {
        match self {
            Self::Int(_) | Self::Symbol(_) => 1,
            Self::Sum(parts) | Self::Product(parts) | Self::Min(parts) | Self::Max(parts) => {
                parts.iter().fold(1, |sum: usize, part| sum.saturating_add(part.nodes()))
            }
            Self::FloorDiv(a, b) | Self::Mod(a, b) => 1usize.saturating_add(a.nodes()).saturating_add(b.nodes()),
        }
    }

    /// The number, when it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// `self + other`
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let mut constant: i64 = 0;
        let mut terms: BTreeMap<Vec<Expr>, i64> = BTreeMap::new();
        for part in [self, other] {
            let parts = match part {
                Self::Sum(parts) => parts.as_slice(),
                single => std::slice::from_ref(single),
            };
            for term in parts {
                match term {
                    Self::Int(n) => constant = constant.saturating_add(*n),
                    other => {
                        let (factor, rest) = other.split_factor();
                        let entry = terms.entry(rest).or_insert(0);
                        *entry = entry.saturating_add(factor);
                    }
                }
            }
        }
        let mut sum: Vec<Expr> = terms
            .into_iter()
            .filter(|(_, factor)| *factor != 0)
            .map(|(rest, factor)| Self::from_factors(factor, rest))
            .collect();
        if constant != 0 || sum.is_empty() {
            sum.push(Self::Int(constant));
        }
        if sum.len() == 1 { sum.remove(0) } else { Self::Sum(sum) }
    }

    /// `self * other`
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        if let (Self::Int(n), Self::Sum(terms)) | (Self::Sum(terms), Self::Int(n)) = (self, other) {
            return terms.iter().fold(Self::Int(0), |sum, t| sum.add(&t.mul(&Self::Int(*n))));
        }
        let (a, mut rest) = self.split_factor();
        let (b, more) = other.split_factor();
        rest.extend(more);
        rest.sort();
        Self::from_factors(a.saturating_mul(b), rest)
    }

    /// `self - other`
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        self.add(&other.mul(&Self::Int(-1)))
    }

    /// `self // other`; a division that comes out even is carried out.
    #[must_use]
    pub fn floor_div(&self, other: &Self) -> Self {
        match (self, other) {
            (_, Self::Int(1)) => self.clone(),
            (Self::Int(a), Self::Int(b)) => floor_div(*a, *b)
                .map_or_else(|| Self::FloorDiv(Box::new(self.clone()), Box::new(other.clone())), Self::Int),
            (_, Self::Int(b)) if *b > 0 && self.is_multiple_of(*b) => self.divide_terms(*b),
            _ => Self::FloorDiv(Box::new(self.clone()), Box::new(other.clone())),
        }
    }

    /// `self % other` as Python has it: the sign is the divisor's.
    #[must_use]
    pub fn modulo(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) if *b > 0 => Self::Int(a.rem_euclid(*b)),
            (_, Self::Int(b)) if *b > 0 && self.is_multiple_of(*b) => Self::Int(0),
            _ => Self::Mod(Box::new(self.clone()), Box::new(other.clone())),
        }
    }

    /// The smaller of the two.
    #[must_use]
    pub fn min_with(&self, other: &Self) -> Self {
        Self::extreme(self, other, i64::min, Self::Min)
    }

    /// The larger of the two.
    #[must_use]
    pub fn max_with(&self, other: &Self) -> Self {
        Self::extreme(self, other, i64::max, Self::Max)
    }

    fn extreme(a: &Self, b: &Self, pick: fn(i64, i64) -> i64, wrap: fn(Vec<Expr>) -> Expr) -> Self {
        match (a, b) {
            (Self::Int(x), Self::Int(y)) => Self::Int(pick(*x, *y)),
            _ if a == b => a.clone(),
            _ => {
                let mut both = vec![a.clone(), b.clone()];
                both.sort();
                wrap(both)
            }
        }
    }

    fn split_factor(&self) -> (i64, Vec<Expr>) {
        match self {
            Self::Int(n) => (*n, Vec::new()),
            Self::Product(factors) => match factors.split_first() {
                Some((Self::Int(n), rest)) => (*n, rest.to_vec()),
                _ => (1, factors.clone()),
            },
            other => (1, vec![other.clone()]),
        }
    }

    fn from_factors(factor: i64, mut rest: Vec<Expr>) -> Self {
        match (factor, rest.len()) {
            (0, _) => Self::Int(0),
            (n, 0) => Self::Int(n),
            (1, 1) => rest.remove(0),
            (1, _) => Self::Product(rest),
            (n, _) => {
                rest.insert(0, Self::Int(n));
                Self::Product(rest)
            }
        }
    }

    fn is_multiple_of(&self, n: i64) -> bool {
        match self {
            Self::Int(k) => k.checked_rem(n) == Some(0),
            Self::Sum(terms) => terms.iter().all(|t| t.is_multiple_of(n)),
            other => other.split_factor().0.checked_rem(n) == Some(0),
        }
    }

    fn divide_terms(&self, n: i64) -> Self {
        match self {
            Self::Int(k) => Self::Int(k.checked_div(n).unwrap_or(*k)),
            Self::Sum(terms) => terms.iter().fold(Self::Int(0), |sum, t| sum.add(&t.divide_terms(n))),
            other => {
                let (factor, rest) = other.split_factor();
                Self::from_factors(factor.checked_div(n).unwrap_or(factor), rest)
            }
        }
    }

    /// The value under an assignment; `None` when a symbol is missing, on overflow and on division by zero.
    pub fn eval(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Symbol(name) => value(name),
            Self::Sum(terms) => terms.iter().try_fold(0i64, |sum, t| sum.checked_add(t.eval(value)?)),
            Self::Product(factors) => factors.iter().try_fold(1i64, |p, t| p.checked_mul(t.eval(value)?)),
            Self::FloorDiv(a, b) => floor_div(a.eval(value)?, b.eval(value)?),
            Self::Mod(a, b) => {
                let (a, b) = (a.eval(value)?, b.eval(value)?);
                a.checked_sub(floor_div(a, b)?.checked_mul(b)?)
            }
            Self::Min(parts) => parts.iter().map(|p| p.eval(value)).try_fold(i64::MAX, |m, v| Some(m.min(v?))),
            Self::Max(parts) => parts.iter().map(|p| p.eval(value)).try_fold(i64::MIN, |m, v| Some(m.max(v?))),
        }
    }

    /// The expression with symbols replaced; a symbol for which `replace` gives `None` stays.
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&str) -> Option<Expr>) -> Self {
        let go = |e: &Expr| e.substitute(replace);
        match self {
            Self::Int(_) => self.clone(),
            Self::Symbol(name) => replace(name).unwrap_or_else(|| self.clone()),
            Self::Sum(terms) => terms.iter().fold(Self::Int(0), |sum, t| sum.add(&go(t))),
            Self::Product(factors) => factors.iter().fold(Self::Int(1), |p, t| p.mul(&go(t))),
            Self::FloorDiv(a, b) => go(a).floor_div(&go(b)),
            Self::Mod(a, b) => go(a).modulo(&go(b)),
            Self::Min(parts) => parts.iter().map(go).reduce(|a, b| a.min_with(&b)).unwrap_or(Self::Int(0)),
            Self::Max(parts) => parts.iter().map(go).reduce(|a, b| a.max_with(&b)).unwrap_or(Self::Int(0)),
        }
    }

    /// Names of the symbols in it, each once, sorted.
    pub fn symbols(&self) -> Vec<&str> {
        fn walk<'a>(e: &'a Expr, found: &mut Vec<&'a str>) {
            match e {
                Expr::Int(_) => {}
                Expr::Symbol(name) => found.push(name),
                Expr::Sum(parts) | Expr::Product(parts) | Expr::Min(parts) | Expr::Max(parts) => {
                    parts.iter().for_each(|p| walk(p, found));
                }
                Expr::FloorDiv(a, b) | Expr::Mod(a, b) => {
                    walk(a, found);
                    walk(b, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(self, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Inclusive bounds of the value when each symbol lies within its own bounds, which `bounds` gives.
    /// An absent bound is infinity. The result contains every reachable value; it may be wider.
    pub fn range(&self, bounds: &dyn Fn(&str) -> Bounds) -> Bounds {
        match self {
            Self::Int(n) => (Some(*n), Some(*n)),
            Self::Symbol(name) => bounds(name),
            Self::Sum(terms) => terms.iter().fold((Some(0), Some(0)), |(lo, hi), t| {
                let (a, b) = t.range(bounds);
                let plus = |x: Option<i64>, y: Option<i64>| x?.checked_add(y?);
                (plus(lo, a), plus(hi, b))
            }),
            Self::Product(factors) => {
                factors.iter().map(|t| t.range(bounds)).reduce(product_range).unwrap_or((Some(1), Some(1)))
            }
            Self::FloorDiv(a, b) => match (a.range(bounds), b.as_ref()) {
                ((lo, hi), Self::Int(n)) if *n > 0 => {
                    (lo.and_then(|v| floor_div(v, *n)), hi.and_then(|v| floor_div(v, *n)))
                }
                _ => (None, None),
            },
            Self::Mod(_, b) => match b.as_ref() {
                Self::Int(n) if *n > 0 => (Some(0), Some(n - 1)),
                _ => (None, None),
            },
            Self::Min(parts) => fold_range(
                parts,
                bounds,
                |a, b| Some(a?.min(b?)),
                |a, b| match (a, b) {
                    (Some(x), Some(y)) => Some(x.min(y)),
                    (x, y) => x.or(y),
                },
            ),
            Self::Max(parts) => fold_range(
                parts,
                bounds,
                |a, b| match (a, b) {
                    (Some(x), Some(y)) => Some(x.max(y)),
                    (x, y) => x.or(y),
                },
                |a, b| Some(a?.max(b?)),
            ),
        }
    }
}

fn fold_range(
    parts: &[Expr],
    bounds: &dyn Fn(&str) -> Bounds,
    low: fn(Bound, Bound) -> Bound,
    high: fn(Bound, Bound) -> Bound,
) -> Bounds {
    parts.iter().map(|p| p.range(bounds)).reduce(|a, b| (low(a.0, b.0), high(a.1, b.1))).unwrap_or((None, None))
}

fn product_range(a: Bounds, b: Bounds) -> Bounds {
    if let ((Some(al), Some(ah)), (Some(bl), Some(bh))) = (a, b) {
        let corners = [al.checked_mul(bl), al.checked_mul(bh), ah.checked_mul(bl), ah.checked_mul(bh)];
        let all: Option<Vec<i64>> = corners.into_iter().collect();
        return all.map_or((None, None), |v| (v.iter().min().copied(), v.iter().max().copied()));
    }
    // one side open: only the case of two non-negative factors is common (sizes times a positive number)
    match (a.0, b.0) {
        (Some(x), Some(y)) if x >= 0 && y >= 0 => (x.checked_mul(y), None),
        _ => (None, None),
    }
}

/// Python's `//`; `None` for a divisor of zero and on overflow.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    if a.checked_rem(b)? != 0 && ((a < 0) != (b < 0)) { q.checked_sub(1) } else { Some(q) }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nested = |e: &Expr| match e {
            Self::Int(n) if *n >= 0 => e.to_string(),
            Self::Symbol(_) | Self::Min(_) | Self::Max(_) => e.to_string(),
            _ => format!("({e})"),
        };
        let list = |parts: &[Expr]| parts.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ");
        let text = match self {
            Self::Int(n) => n.to_string(),
            Self::Symbol(name) => name.clone(),
            Self::Sum(terms) => {
                let mut text = String::new();
                for term in terms {
                    let part = term.to_string();
                    match (text.is_empty(), part.strip_prefix('-')) {
                        (true, _) => text = part,
                        (false, Some(rest)) => text = format!("{text} - {rest}"),
                        (false, None) => text = format!("{text} + {part}"),
                    }
                }
                text
            }
            Self::Product(factors) => match factors.split_first() {
                Some((Self::Int(-1), rest)) => {
                    format!("-{}", rest.iter().map(nested).collect::<Vec<_>>().join("*"))
                }
                Some((Self::Int(n), rest)) => {
                    format!("{n}*{}", rest.iter().map(nested).collect::<Vec<_>>().join("*"))
                }
                _ => factors.iter().map(nested).collect::<Vec<_>>().join("*"),
            },
            Self::FloorDiv(a, b) => format!("{}//{}", nested(a), nested(b)),
            Self::Mod(a, b) => format!("{}%{}", nested(a), nested(b)),
            Self::Min(parts) => format!("min({})", list(parts)),
            Self::Max(parts) => format!("max({})", list(parts)),
        };
        f.pad(&text)
    }
}

super::dtype::as_text!(Expr, "Expr");

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn s(name: &str) -> Expr {
        Expr::symbol(name)
    }

    #[test]
    fn equal_expressions_have_one_form() {
        let a = s("s0").mul(&Expr::Int(8)).add(&Expr::Int(16)).floor_div(&Expr::Int(8));
        assert_eq!(a, Expr::Int(2).add(&s("s0")));
        assert_eq!(s("b").mul(&s("a")), s("a").mul(&s("b")));
        assert_eq!(s("a").sub(&s("a")), Expr::Int(0));
        assert_eq!(s("a").add(&Expr::Int(1)).mul(&Expr::Int(2)).to_string(), "2*a + 2");
    }

    #[test]
    fn evaluates_like_python() {
        let value = |_: &str| Some(-7);
        assert_eq!(s("x").floor_div(&Expr::Int(2)).eval(&value), Some(-4));
        assert_eq!(s("x").modulo(&Expr::Int(4)).eval(&value), Some(1));
        assert_eq!(s("x").floor_div(&Expr::Int(0)).eval(&value), None);
        assert_eq!(Expr::Int(-7).floor_div(&Expr::Int(2)), Expr::Int(-4));
        assert_eq!(Expr::Int(7).floor_div(&Expr::Int(-2)), Expr::Int(-4));
    }

    #[test]
    fn ranges_contain_every_value() {
        let bounds = |_: &str| (Some(2), Some(50));
        assert_eq!(s("x").mul(&Expr::Int(2)).range(&bounds), (Some(4), Some(100)));
        assert_eq!(s("x").mul(&Expr::Int(-1)).add(&Expr::Int(3)).range(&bounds), (Some(-47), Some(1)));
        assert_eq!(s("x").mul(&Expr::Int(2)).range(&|_| (Some(2), None)), (Some(4), None));
        assert_eq!(s("x").max_with(&Expr::Int(8)).range(&bounds), (Some(8), Some(50)));
    }

    /// Expressions in the form that their text gives again: sums are not multiplied with each other.
    pub(crate) fn any_expr() -> impl Strategy<Value = Expr> {
        let is_sum = |e: &Expr| match e {
            Expr::Sum(_) => true,
            Expr::Product(factors) => factors.iter().any(|f| matches!(f, Expr::Sum(_))),
            _ => false,
        };
        let leaf = prop_oneof![(-50i64..50).prop_map(Expr::Int), "[su][0-9]{1,2}".prop_map(Expr::symbol)];
        leaf.prop_recursive(4, 16, 2, move |inner| {
            (0..7, inner.clone(), inner).prop_map(move |(operation, a, b)| match operation {
                0 => a.add(&b),
                1 => a.sub(&b),
                2 if !is_sum(&a) && !is_sum(&b) => a.mul(&b),
                3 => a.floor_div(&b),
                4 => a.modulo(&b),
                5 => a.min_with(&b),
                _ => a.max_with(&b),
            })
        })
    }
}
