//! Sizes as a person gives them: `10`, `1..512`, `_`, `B`, `2*B`; and lists of them, `2x10`, `[2, 10]`.

use super::UsageError;
use crate::limits;
use crate::model::Expr;

/// One size or stride of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// `_`: not asked
    Any,
    /// a number, a name, or a small expression of names: `10`, `B`, `2*B`
    Is(Expr),
    /// `1..512`: every size in it
    Within(Span),
}

/// Sizes from `min` to `max`, both included; without `max` there is no upper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// smallest
    pub min: i64,
    /// largest
    pub max: Option<i64>,
}

impl Span {
    /// The only size in it, when there is one.
    pub fn single(self) -> Option<i64> {
        (self.max == Some(self.min)).then_some(self.min)
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.single(), self.max) {
            (Some(n), _) => write!(f, "{n}"),
            (None, Some(max)) => write!(f, "{}..{max}", self.min),
            (None, None) => write!(f, "{}..", self.min),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("_"),
            Self::Is(expr) => write!(f, "{expr}"),
            Self::Within(span) => write!(f, "{span}"),
        }
    }
}

/// `512` or `1..512` (both ends included), `2..`, `..64`.
///
/// # Errors
/// For anything else, for a negative number and for a range whose ends are swapped.
pub fn parse_span(text: &str) -> Result<Span, UsageError> {
    let text = text.trim();
    let Some((low, high)) = text.split_once("..") else {
        let n = number(text)?;
        return Ok(Span { min: n, max: Some(n) });
    };
    let min = if low.trim().is_empty() { 0 } else { number(low)? };
    let high = high.trim_start_matches('=').trim();
    let max = if high.is_empty() { None } else { Some(number(high)?) };
    if max.is_some_and(|max| max < min) {
        return Err(UsageError::new(format!("`{text}` is empty: the smaller end comes first, `2..512`")));
    }
    Ok(Span { min, max })
}

fn number(text: &str) -> Result<i64, UsageError> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(n) if n >= 0 && !text.starts_with('+') => Ok(n),
        Ok(_) => Err(UsageError::new(format!("`{text}`: a size is not negative"))),
        Err(_) => Err(UsageError::new(format!("`{text}` is no size: write a number, a range 1..512, _ or a name"))),
    }
}

/// True for `B`, `batch_size`; `_` alone means "not asked".
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    text != "_"
        && chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// One size.
///
/// # Errors
/// For anything that is no number, range, `_`, name or sum of products of those.
pub fn parse_size(text: &str) -> Result<Size, UsageError> {
    let text = text.trim();
    if text == "_" {
        return Ok(Size::Any);
    }
    if text.contains("..") {
        let span = parse_span(text)?;
        return Ok(span.single().map_or(Size::Within(span), |n| Size::Is(Expr::Int(n))));
    }
    parse_expr(text).map(Size::Is)
}

/// Sums of products of numbers and names: `2*B + 1`.
fn parse_expr(text: &str) -> Result<Expr, UsageError> {
    if text.chars().filter(|c| matches!(c, '+' | '-' | '*')).count() > limits::NESTING {
        return Err(UsageError::new(format!("more than {} operations in a size", limits::NESTING)));
    }
    let mut sum = Expr::Int(0);
    // `-A + B` is how a difference is shown
    let (mut sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    loop {
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let (term, tail) = rest.split_at(end);
        let mut product = Expr::Int(sign);
        for factor in term.split('*') {
            let factor = factor.trim();
            let value = if is_name(factor) { Expr::symbol(factor) } else { Expr::Int(number(factor)?) };
            product = product.mul(&value);
        }
        sum = sum.add(&product);
        match tail.chars().next() {
            None => break,
            Some(c) => {
                sign = if c == '-' { -1 } else { 1 };
                rest = tail.get(1..).unwrap_or_default();
            }
        }
    }
    match sum {
        Expr::Int(n) if n < 0 => Err(UsageError::new(format!("`{text}`: a size is not negative"))),
        sum => Ok(sum),
    }
}

/// A list of sizes: `2x10`, `2,10`, `[2, 10]`, `(2, 10)`, `torch.Size([2, 10])`; without any: `scalar`, `[]`, `()`.
///
/// # Errors
/// For an empty text, an empty place in the list, unbalanced brackets, or more dims than torch has.
pub fn parse_sizes(text: &str) -> Result<Vec<Size>, UsageError> {
    let whole = text.trim();
    if whole == "scalar" {
        return Ok(Vec::new());
    }
    if whole.is_empty() {
        return Err(UsageError::new("empty: write `scalar` for a tensor without dims"));
    }
    let inner = whole.strip_prefix("torch.Size").unwrap_or(whole).trim();
    let (inner, bracketed) = strip_brackets(inner);
    let (inner, _) = strip_brackets(inner);
    if inner.contains(['[', ']', '(', ')', '{', '}']) {
        return Err(UsageError::new(format!("`{whole}`: brackets do not match")));
    }
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let with_x = !inner.contains(',') && inner.contains('x') && !(bracketed && is_name(inner));
    let parts: Vec<&str> =
        if with_x { inner.split('x').collect() } else { inner.trim_end().trim_end_matches(',').split(',').collect() };
    if parts.len() > limits::RANK {
        return Err(UsageError::new(format!("{} dims: a tensor has at most {}", parts.len(), limits::RANK)));
    }
    if with_x && parts.iter().any(|p| p.trim().is_empty()) {
        return Err(UsageError::new(format!(
            "`{whole}`: a size is missing beside an x (a name with an x in it: [name, 10])"
        )));
    }
    parts.iter().map(|part| parse_size(part)).collect()
}

/// The content of one pair of matching brackets around all of `text`.
fn strip_brackets(text: &str) -> (&str, bool) {
    let text = text.trim();
    [('[', ']'), ('(', ')')]
        .iter()
        .find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close))
        .map_or((text, false), |inner| (inner.trim(), true))
}

/// As a person reads it: `[2, B]`.
pub fn show_sizes(sizes: &[Size]) -> String {
    format!("[{}]", sizes.iter().map(Size::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixed(sizes: &[i64]) -> Vec<Size> {
        sizes.iter().map(|n| Size::Is(Expr::Int(*n))).collect()
    }

    #[test]
    fn one_shape_in_all_notations() {
        for text in ["2x10", "2,10", "[2, 10]", "(2, 10)", "(2,10,)", "torch.Size([2, 10])", " [2,10] ", "[2x10]"] {
            assert_eq!(parse_sizes(text), Ok(fixed(&[2, 10])), "{text}");
        }
        for text in ["scalar", "[]", "()", "torch.Size([])"] {
            assert_eq!(parse_sizes(text), Ok(vec![]), "{text}");
        }
        assert_eq!(parse_sizes("(8,)"), Ok(fixed(&[8])));
        assert_eq!(parse_sizes("8"), Ok(fixed(&[8])));
    }

    #[test]
    fn ranges_names_and_blanks() {
        let b = Size::Is(Expr::symbol("B"));
        assert_eq!(parse_sizes("Bx13"), Ok(vec![b.clone(), Size::Is(Expr::Int(13))]));
        assert_eq!(
            parse_sizes("[1..512, _, B]"),
            Ok(vec![Size::Within(Span { min: 1, max: Some(512) }), Size::Any, b])
        );
        assert_eq!(parse_size("4..4"), Ok(Size::Is(Expr::Int(4))));
        assert_eq!(parse_sizes("[max]"), Ok(vec![Size::Is(Expr::symbol("max"))]));
        assert_eq!(parse_size("2*B + 1").unwrap().to_string(), "2*B + 1");
        assert_eq!(parse_size("B-A").unwrap().to_string(), "-A + B");
        assert_eq!(parse_size("-A + B"), parse_size("B-A"));
    }

    #[test]
    fn wrong_ones_say_why() {
        for (text, part) in [
            ("", "scalar"),
            ("2xx10", "missing"),
            ("[2, 10", "brackets"),
            ("2,-3", "negative"),
            ("2,,3", "no size"),
            ("5..2", "smaller end"),
            ("2.5", "no size"),
            ("99999999999999999999", "no size"),
        ] {
            let message = parse_sizes(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn operations_of_a_size_have_a_border() {
        let of = |count: usize| parse_size(&format!("B{}", "+1".repeat(count))).map(|size| size.to_string());
        assert_eq!(of(limits::NESTING).as_deref(), Ok("B + 64"));
        assert!(of(limits::NESTING + 1).unwrap_err().to_string().contains("more than 64 operations"));
    }

    /// Any size as it can be asked for.
    pub(crate) fn any_size() -> impl Strategy<Value = Size> {
        let symbolic = (1i64..99, "[A-WYZa-wyz_][a-wyz0-9_]{1,6}", 0i64..99).prop_map(|(factor, name, offset)| {
            Size::Is(Expr::Int(factor).mul(&Expr::symbol(&name)).add(&Expr::Int(offset)))
        });
        prop_oneof![
            Just(Size::Any),
            (0..i64::MAX).prop_map(|n| Size::Is(Expr::Int(n))),
            symbolic,
            (0i64..1_000, 1i64..1_000).prop_map(|(min, more)| Size::Within(Span { min, max: Some(min + more) })),
            (0i64..1_000).prop_map(|min| Size::Within(Span { min, max: None })),
        ]
    }

    proptest! {
        #[test]
        fn shown_sizes_of_every_form_are_read_back(sizes in proptest::collection::vec(any_size(), 0..8)) {
            prop_assert_eq!(parse_sizes(&show_sizes(&sizes)), Ok(sizes));
        }

        #[test]
        fn no_text_of_their_letters_panics(text in "[0-9xB_.,*+() \\[\\]-]{0,40}") {
            if let Ok(sizes) = parse_sizes(&text) {
                prop_assert_eq!(parse_sizes(&show_sizes(&sizes)), Ok(sizes));
            }
        }

        #[test]
        fn shown_sizes_are_read_back(sizes in proptest::collection::vec(0i64..1_000_000, 0..8)) {
            let sizes = fixed(&sizes);
            prop_assert_eq!(parse_sizes(&show_sizes(&sizes)), Ok(sizes));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_sizes(&text);
            let _ = parse_span(&text);
        }
    }
}
