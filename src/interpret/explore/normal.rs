//! Relations as sums compared with zero, and the bounds that they give.

use crate::interpret::value::{Expressions, Node, Relation, Shadow};
use crate::model::Bounds;

/// Sum of terms compared with zero.
pub struct Normal {
    /// terms, sorted
    pub terms: Vec<(Shadow, i64)>,
    /// number
    pub constant: i64,
    /// relation of the sum to zero
    pub relation: Relation,
}

/// A relation as `sum of terms REL 0`, with comparisons that were stored as numbers unfolded.
pub fn normal(expressions: &mut Expressions, relation: Relation, left: Shadow, right: Shadow) -> Normal {
    let difference = expressions.add_scaled(left, right, -1);
    let (terms, constant) = expressions.linear(difference);
    if let ([(atom, factor)], Relation::Equal | Relation::NotEqual) = (terms.as_slice(), relation) {
        if let Node::Compare(inner, a, b) = *expressions.node(*atom) {
            // factor * (0 or 1) + constant == 0
            let when_zero = constant == 0;
            let when_one = factor.wrapping_add(constant) == 0;
            let wants_equal = relation == Relation::Equal;
            if when_zero != when_one {
                let inner = if when_one == wants_equal { inner } else { inner.negated() };
                return normal(expressions, inner, a, b);
            }
        }
        if let Node::Truncate { of, .. } = *expressions.node(*atom)
            && *factor == 1
        {
            let number = expressions.constant(constant.wrapping_neg());
            return normal(expressions, relation, of, number);
        }
    }
    Normal { terms, constant, relation: relation.as_signed() }
}

/// Bounds of `x` in `factor*x + constant REL 0`; `None` for "not equal".
pub fn bounds(form: &Normal, factor: i64) -> Option<Bounds> {
    let (k, c) = (i128::from(factor), i128::from(form.constant));
    let (relation, k, c) = if k < 0 { (form.relation.swapped(), -k, -c) } else { (form.relation, k, c) };
    if k == 0 {
        return None;
    }
    let floor = |n: i128| i64::try_from(n.div_euclid(k)).ok();
    let (min, max) = match relation {
        Relation::Equal => (floor(-c + k - 1), floor(-c)),
        Relation::GreaterEqual => (floor(-c + k - 1), None),
        Relation::Greater => (floor(-c + 1 + k - 1), None),
        Relation::LessEqual => (None, floor(-c)),
        Relation::Less => (None, floor(-c - 1)),
        _ => return None,
    };
    Some((min, max))
}

/// No number lies in both.
pub fn is_disjoint(a: Bounds, b: Bounds) -> bool {
    let low = a.0.max(b.0);
    let high = a.1.into_iter().chain(b.1).min();
    low.zip(high).is_some_and(|(low, high)| low > high)
}
