//! Guards of an exported program: Python conditions over sizes of inputs, the only place where divisibility and relations
//! survive (format reference 7.4).

use super::{Bounds, Expr};

/// How two sizes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
    /// Applies it.
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// A condition that can be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// two expressions
    Compare(Comparison, Expr, Expr),
    /// all of them
    And(Vec<Condition>),
    /// at least one of them
    Or(Vec<Condition>),
    /// the opposite
    Not(Box<Condition>),
}

impl Condition {
    /// True, false, or `None` when a value that decides it is missing.
    pub fn eval(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<bool> {
        match self {
            Self::Compare(how, a, b) => Some(how.holds(a.eval(value)?, b.eval(value)?)),
            Self::And(parts) => Self::all(parts, value, true),
            Self::Or(parts) => Self::all(parts, value, false),
            Self::Not(part) => part.eval(value).map(|holds| !holds),
        }
    }

    /// One part that differs from `neutral` decides, whatever is unknown about the others.
    fn all(parts: &[Self], value: &dyn Fn(&str) -> Option<i64>, neutral: bool) -> Option<bool> {
        let mut result = Some(neutral);
        for part in parts {
            match part.eval(value) {
                Some(holds) if holds != neutral => return Some(!neutral),
                Some(_) => {}
                None => result = None,
            }
        }
        result
    }

    /// The condition with symbols replaced; a symbol for which `replace` gives `None` stays.
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&str) -> Option<Expr>) -> Self {
        let all = |parts: &[Self]| parts.iter().map(|part| part.substitute(replace)).collect();
        match self {
            Self::Compare(how, a, b) => Self::Compare(*how, a.substitute(replace), b.substitute(replace)),
            Self::And(parts) => Self::And(all(parts)),
            Self::Or(parts) => Self::Or(all(parts)),
            Self::Not(part) => Self::Not(Box::new(part.substitute(replace))),
        }
    }

    /// True when it holds for all values within the bounds, as far as arithmetic of ranges shows.
    pub fn always_holds(&self, bounds: &dyn Fn(&str) -> Bounds) -> bool {
        match self {
            Self::Compare(how, a, b) => {
                let (low, high) = a.sub(b).range(bounds);
                match how {
                    Comparison::Equal => low == Some(0) && high == Some(0),
                    Comparison::NotEqual => low.is_some_and(|n| n > 0) || high.is_some_and(|n| n < 0),
                    Comparison::Less => high.is_some_and(|n| n < 0),
                    Comparison::LessOrEqual => high.is_some_and(|n| n <= 0),
                    Comparison::Greater => low.is_some_and(|n| n > 0),
                    Comparison::GreaterOrEqual => low.is_some_and(|n| n >= 0),
                }
            }
            Self::And(parts) => parts.iter().all(|part| part.always_holds(bounds)),
            Self::Or(parts) => parts.iter().any(|part| part.always_holds(bounds)),
            Self::Not(_) => false,
        }
    }

    /// Names of the values in it, each once, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut found = match self {
            Self::Compare(_, a, b) => [a.symbols(), b.symbols()].concat(),
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::names).collect(),
            Self::Not(part) => part.names(),
        };
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |parts: &[Self], word: &str| parts.iter().map(|p| format!("({p})")).collect::<Vec<_>>().join(word);
        match self {
            Self::Compare(how, a, b) => write!(f, "{a} {} {b}", how.sign()),
            Self::And(parts) => f.write_str(&list(parts, " and ")),
            Self::Or(parts) => f.write_str(&list(parts, " or ")),
            Self::Not(part) => write!(f, "not ({part})"),
        }
    }
}

/// A guard as the program states it. Serializes as its text.
///
/// In [`Guard::condition`] the sizes are named by their place in the program's flat inputs: `inputs[0].shape[1]`,
/// `inputs[0].stride[0]`. Evaluate it with a function that looks these paths up:
///
/// ```
/// use aoti_inspect::model::{Comparison, Condition, Expr};
/// let rows = Expr::symbol("inputs[0].shape[0]");
/// let guard = Condition::Compare(Comparison::Equal, rows.modulo(&Expr::Int(4)), Expr::Int(0));
/// assert_eq!(guard.eval(&|_| Some(8)), Some(true));
/// assert_eq!(guard.eval(&|_| None), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Python text, `L['x'].size()[0] % 4 == 0`
    pub code: String,
    /// what it asks; `None` for a text that this version does not understand
    pub condition: Option<Condition>,
}

impl std::fmt::Display for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.code)
    }
}

super::dtype::as_text!(Guard, "Guard");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_part_decides_over_unknown_ones() {
        let fact = |n: i64| Condition::Compare(Comparison::Equal, Expr::Int(n), Expr::Int(0));
        let open = Condition::Compare(Comparison::Less, Expr::symbol("x"), Expr::Int(5));
        let unknown = |_: &str| None;
        assert_eq!(Condition::And(vec![open.clone(), fact(1)]).eval(&unknown), Some(false));
        assert_eq!(Condition::And(vec![open.clone(), fact(0)]).eval(&unknown), None);
        assert_eq!(Condition::Or(vec![open.clone(), fact(0)]).eval(&unknown), Some(true));
        assert_eq!(Condition::Not(Box::new(open)).eval(&|_| Some(5)), Some(true));
    }

    #[test]
    fn ranges_prove_conditions() {
        let x = |how, n| Condition::Compare(how, Expr::symbol("x"), Expr::Int(n));
        let bounds = |_: &str| (Some(2), Some(9));
        assert!(x(Comparison::Greater, 1).always_holds(&bounds) && !x(Comparison::Greater, 2).always_holds(&bounds));
        assert!(x(Comparison::LessOrEqual, 9).always_holds(&bounds) && !x(Comparison::Less, 9).always_holds(&bounds));
        assert!(x(Comparison::NotEqual, 1).always_holds(&bounds) && !x(Comparison::Equal, 2).always_holds(&bounds));
        let renamed = x(Comparison::Less, 4).substitute(&|_| Some(Expr::symbol("s0")));
        assert_eq!(renamed.to_string(), "s0 < 4");
    }
}
