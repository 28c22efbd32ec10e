//! Sizes that are given against sizes that are compiled: which hold for every value in the given ranges.
//!
//! The artefact states each dim as an expression over its symbols with bounds; the person gives numbers, ranges and
//! names. Given values are *variables* here, each over a [`Span`]; a lone symbol of the artefact is bound to what is
//! given for it, and every other dim with that symbol must then agree. A claim about a whole range is proved by
//! linear arithmetic or by going through every value; what neither settles is unknown.

use crate::model::{Bounds, Expr};
use crate::target::Span;
use std::collections::BTreeMap;

/// More values than this are not gone through one by one.
const VALUES: u64 = 65_536;

/// A claim about one assignment of the variables; `None` when it cannot be evaluated.
type Claim<'a> = &'a dyn Fn(&dyn Fn(&str) -> Option<i64>) -> Option<bool>;

/// How far a claim holds over all given values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// for every value
    Always,
    /// for no value, or not for all; the text says which part is accepted and which is refused
    Not {
        /// `accepts 2..512, refuses 1`; `None` when nothing is accepted or the part has no short form
        part: Option<String>,
        /// only sizes below this lower bound are refused
        only_below: Option<i64>,
    },
    /// it could not be settled
    Undecided,
}

impl Holds {
    fn never() -> Self {
        Self::Not { part: None, only_below: None }
    }
}

/// The given values by name.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    spans: BTreeMap<String, Span>,
}

impl Variables {
    /// Adds a variable or narrows its range; `false` when no value is left.
    pub fn narrow(&mut self, name: &str, span: Span) -> bool {
        let known = self.spans.entry(name.to_owned()).or_insert(span);
        known.min = known.min.max(span.min);
        known.max = match (known.max, span.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        known.max.is_none_or(|max| known.min <= max)
    }
    /// The range of a variable.
    pub fn span(&self, name: &str) -> Option<Span> {
        self.spans.get(name).copied()
    }
    fn bounds(&self, name: &str) -> Bounds {
        self.span(name).map_or((Some(0), None), |s| (Some(s.min), s.max))
    }
    /// Variables with one value become that number.
    pub fn simplify(&self, expr: &Expr) -> Expr {
        expr.substitute(&|name| self.span(name).and_then(Span::single).map(Expr::Int))
    }
    /// Smallest and largest value, both reachable when the expression is linear.
    pub fn range(&self, expr: &Expr) -> Bounds {
        expr.range(&|name| self.bounds(name))
    }

    /// Whether `a` and `b` are the same for every value of the variables in them.
    pub fn equal(&self, a: &Expr, b: &Expr) -> Holds {
        let difference = self.simplify(&a.sub(b));
        match &difference {
            Expr::Int(0) => return Holds::Always,
            Expr::Int(_) => return Holds::never(),
            _ => {}
        }
        let (low, high) = self.range(&difference);
        if low.is_some_and(|n| n > 0) || high.is_some_and(|n| n < 0) {
            return Holds::never();
        }
        let claim = |values: &dyn Fn(&str) -> Option<i64>| difference.eval(values).map(|n| n == 0);
        if let Some(settled) = self.try_all(&difference.symbols(), &claim) {
            return settled;
        }
        // a linear expression that is not constant differs from zero somewhere: some variable has two values
        if is_linear(&difference) || self.has_counterexample(&difference.symbols(), &claim) {
            return Holds::never();
        }
        Holds::Undecided
    }

    /// Whether `expr` lies within `min..=max` for every value of the variables in it.
    pub fn within(&self, expr: &Expr, min: Option<i64>, max: Option<i64>) -> Holds {
        let expr = self.simplify(expr);
        let (low, high) = self.range(&expr);
        let low_holds = min.is_none_or(|min| low.is_some_and(|low| low >= min));
        let high_holds = max.is_none_or(|max| high.is_some_and(|high| high <= max));
        if low_holds && high_holds {
            return Holds::Always;
        }
        let only_below = if high_holds { min } else { None };
        if let Expr::Symbol(name) = &expr {
            let span = self.span(name).unwrap_or(Span { min: 0, max: None });
            return Holds::Not { part: span_part(span, min, max), only_below };
        }
        let exact = is_linear(&expr);
        let claim = |values: &dyn Fn(&str) -> Option<i64>| {
            expr.eval(values).map(|n| min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max))
        };
        match self.try_all(&expr.symbols(), &claim) {
            Some(Holds::Not { part, .. }) => Holds::Not { part, only_below },
            Some(settled) => settled,
            None if exact || self.has_counterexample(&expr.symbols(), &claim) => Holds::Not { part: None, only_below },
            None => Holds::Undecided,
        }
    }

    /// Whether a claim holds for every value of the variables `names`.
    pub fn always(&self, names: &[&str], claim: Claim) -> Holds {
        match self.try_all(names, claim) {
            Some(settled) => settled,
            None if self.has_counterexample(names, claim) => Holds::never(),
            None => Holds::Undecided,
        }
    }

    /// Goes through every value of the variables `names` when there are few enough.
    fn try_all(&self, names: &[&str], claim: Claim) -> Option<Holds> {
        let mut spans = Vec::new();
        let mut total: u64 = 1;
        for name in names {
            let span = self.span(name)?;
            let width = u64::try_from(span.max?.checked_sub(span.min)?).ok()?.checked_add(1)?;
            total = total.checked_mul(width)?;
            if total > VALUES {
                return None;
            }
            spans.push((*name, span.min, width));
        }
        let mut accepted: Vec<i64> = Vec::new();
        let mut refused: Vec<i64> = Vec::new();
        for n in 0..total {
            let mut rest = n;
            let mut point: Vec<(&str, i64)> = Vec::with_capacity(spans.len());
            for (name, min, width) in &spans {
                let step = i64::try_from(rest.checked_rem(*width)?).ok()?;
                rest = rest.checked_div(*width)?;
                point.push((name, min.checked_add(step)?));
            }
            let holds = claim(&|name| point.iter().find(|(other, _)| *other == name).map(|(_, v)| *v))?;
            let first = point.first().map_or(0, |(_, v)| *v);
            if holds { accepted.push(first) } else { refused.push(first) }
        }
        if refused.is_empty() {
            return Some(Holds::Always);
        }
        let part = (spans.len() == 1 && !accepted.is_empty())
            .then(|| format!("accepts {}, refuses {}", runs(&accepted), runs(&refused)));
        Some(Holds::Not { part, only_below: None })
    }

    /// Tries the ends of the ranges and values next to them.
    fn has_counterexample(&self, names: &[&str], claim: Claim) -> bool {
        (0..64u32).any(|pattern| {
            let point: Vec<(&str, i64)> = names
                .iter()
                .enumerate()
                .map(|(at, name)| {
                    let span = self.span(name).unwrap_or(Span { min: 0, max: None });
                    let shift = u32::try_from(at).unwrap_or(u32::MAX).saturating_mul(2).min(30);
                    let value = match (pattern >> shift) & 3 {
                        0 => span.min,
                        1 => span.max.unwrap_or_else(|| span.min.saturating_add(1000)),
                        2 => span.min.saturating_add(1),
                        _ => span.min.saturating_add(2),
                    };
                    (*name, value.min(span.max.unwrap_or(i64::MAX)))
                })
                .collect();
            claim(&|name| point.iter().find(|(other, _)| *other == name).map(|(_, v)| *v)) == Some(false)
        })
    }
}

/// `accepts 2..512, refuses 1` for a range against bounds; `None` when nothing of it is accepted.
fn span_part(span: Span, min: Option<i64>, max: Option<i64>) -> Option<String> {
    let low = min.map_or(span.min, |min| min.max(span.min));
    let high = match (span.max, max) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    if high.is_some_and(|high| high < low) {
        return None;
    }
    let mut refused = Vec::new();
    if low > span.min {
        refused.push(Span { min: span.min, max: Some(low.saturating_sub(1)) }.to_string());
    }
    if let Some(high) = high
        && span.max.is_none_or(|max| max > high)
    {
        refused.push(Span { min: high.saturating_add(1), max: span.max }.to_string());
    }
    Some(format!("accepts {}, refuses {}", Span { min: low, max: high }, refused.join(" and ")))
}

/// Sorted values as `2..8, 12`; long lists end in `…`.
fn runs(values: &[i64]) -> String {
    let mut runs: Vec<Span> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some(run) if run.max.and_then(|m| m.checked_add(1)) == Some(*value) => run.max = Some(*value),
            _ => runs.push(Span { min: *value, max: Some(*value) }),
        }
    }
    let mut shown: Vec<String> = runs.iter().take(6).map(Span::to_string).collect();
    if runs.len() > shown.len() {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// A sum of numbers times symbols.
pub fn is_linear(expr: &Expr) -> bool {
    match expr {
        Expr::Int(_) | Expr::Symbol(_) => true,
        Expr::Sum(terms) => terms.iter().all(|t| !matches!(t, Expr::Sum(_)) && is_linear(t)),
        Expr::Product(factors) => matches!(factors.as_slice(), [Expr::Int(_), Expr::Symbol(_)]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vars(list: &[(&str, i64, Option<i64>)]) -> Variables {
        let mut variables = Variables::default();
        for (name, min, max) in list {
            variables.narrow(name, Span { min: *min, max: *max });
        }
        variables
    }
    fn s(name: &str) -> Expr {
        Expr::symbol(name)
    }
    fn part(holds: Holds) -> String {
        match holds {
            Holds::Not { part: Some(part), .. } => part,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_range_is_refused_in_part() {
        let v = vars(&[("B", 1, Some(512))]);
        assert_eq!(part(v.within(&s("B"), Some(2), Some(1024))), "accepts 2..512, refuses 1");
        assert_eq!(part(v.within(&s("B"), Some(2), Some(100))), "accepts 2..100, refuses 1 and 101..512");
        assert_eq!(v.within(&s("B"), Some(1), None), Holds::Always);
        assert_eq!(v.within(&s("B"), Some(600), None), Holds::Not { part: None, only_below: Some(600) });
        assert_eq!(part(vars(&[("B", 1, None)]).within(&s("B"), None, Some(7))), "accepts 1..7, refuses 8..");
    }

    #[test]
    fn equality_over_ranges() {
        let v = vars(&[("B", 1, Some(512)), ("C", 1, Some(512)), ("one", 5, Some(5))]);
        assert_eq!(v.equal(&s("B"), &s("B")), Holds::Always);
        assert_eq!(v.equal(&s("B"), &s("C")), Holds::never());
        assert_eq!(v.equal(&s("one"), &Expr::Int(5)), Holds::Always);
        assert_eq!(part(v.equal(&s("B"), &Expr::Int(8))), "accepts 8, refuses 1..7, 9..512");
        let even = s("B").floor_div(&Expr::Int(2)).mul(&Expr::Int(2));
        assert!(part(v.equal(&even, &s("B"))).starts_with("accepts 2, 4, 6"));
    }

    #[test]
    fn what_is_not_settled_is_undecided() {
        let v = vars(&[("B", 1, None)]);
        let odd = s("B").mul(&s("B")).modulo(&Expr::Int(7919));
        assert_eq!(v.equal(&odd, &odd), Holds::Always);
        let same_by_number_theory = s("B").mul(&s("B").add(&Expr::Int(1))).modulo(&Expr::Int(2));
        assert_eq!(v.equal(&same_by_number_theory, &Expr::Int(0)), Holds::Undecided);
    }

    proptest! {
        /// Linear claims agree with trying every value.
        #[test]
        fn linear_claims_are_exact(a in -4i64..5, b in -4i64..5, c in -20i64..20, lo in 0i64..5, width in 0i64..6, min in -30i64..30, span in 0i64..40) {
            let v = vars(&[("x", lo, Some(lo + width)), ("y", 0, Some(3))]);
            let expr = s("x").mul(&Expr::Int(a)).add(&s("y").mul(&Expr::Int(b))).add(&Expr::Int(c));
            let mut inside = true;
            let mut zero = true;
            for x in lo..=lo + width {
                for y in 0..=3 {
                    let n = a * x + b * y + c;
                    inside &= n >= min && n <= min + span;
                    zero &= n == 0;
                }
            }
            prop_assert_eq!(v.within(&expr, Some(min), Some(min + span)) == Holds::Always, inside);
            prop_assert_eq!(v.equal(&expr, &Expr::Int(0)) == Holds::Always, zero);
        }
    }
}
