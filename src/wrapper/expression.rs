//! Integer expressions as the generator prints them, in C++ and in Python's notation.
//!
//! C++: `16L*s0`, `(-1L)*s0`, `c10::div_floor_integer(static_cast<int64_t>(s0), 4L)`, `std::max(…)`
//! (torch/utils/_sympy/printers.py, `CppPrinter`; before 2.7 torch/_inductor/codegen/cpp_utils.py).
//! Python, in messages: `s0//4`, `Mod(s0, 4)`, `FloorDiv(s0, 4)`.

use super::text::is_word;
use crate::limits;
use crate::model::Expr;

/// Largest exponent of `std::pow` that is multiplied out; sizes with more factors do not occur.
const EXPONENT: i64 = 16;

/// Reads a whole expression; `None` for anything that is not an integer expression of known operations.
pub fn parse(text: &str) -> Option<Expr> {
    let mut parser = Parser { rest: text.trim(), depth: 0 };
    let value = parser.sum()?;
    parser.skip_blanks();
    parser.rest.is_empty().then(|| value.whole())
}

/// A value with a positive denominator: `(1.0/2.0)*x` is how a solved `2*s = x` may be printed.
struct Value {
    numerator: Expr,
    denominator: i64,
}

impl Value {
    fn new(numerator: Expr) -> Self {
        Self { numerator, denominator: 1 }
    }
    fn whole(self) -> Expr {
        if self.denominator == 1 { self.numerator } else { self.numerator.floor_div(&Expr::Int(self.denominator)) }
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
    fn eat(&mut self, token: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<Value> {
        self.depth = self.depth.checked_add(1).filter(|d| *d <= limits::NESTING)?;
        let mut value = self.product()?;
        loop {
            if self.eat("+") {
                value = Value::new(value.whole().add(&self.product()?.whole()));
            } else if self.eat("-") {
                value = Value::new(value.whole().sub(&self.product()?.whole()));
            } else {
                break;
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Some(value)
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.unary()?;
        loop {
            self.skip_blanks();
            if self.rest.starts_with("**") {
                self.eat("**");
                let Expr::Int(n) = self.unary()?.whole() else { return None };
                value = Value::new(power(&value.whole(), n)?);
            } else if self.eat("*") {
                let right = self.unary()?;
                value = Value {
                    numerator: value.numerator.mul(&right.numerator),
                    denominator: value.denominator.checked_mul(right.denominator)?,
                };
            } else if self.eat("//") {
                value = Value::new(value.whole().floor_div(&self.unary()?.whole()));
            } else if self.eat("/") {
                // sizes are not negative, so C's division rounds as Python's
                match self.unary()?.whole() {
                    Expr::Int(n) if n > 0 => value.denominator = value.denominator.checked_mul(n)?,
                    divisor => value = Value::new(value.whole().floor_div(&divisor)),
                }
            } else if self.eat("%") {
                value = Value::new(value.whole().modulo(&self.unary()?.whole()));
            } else {
                return Some(value);
            }
        }
    }

    fn unary(&mut self) -> Option<Value> {
        let mut negative = false;
        loop {
            if self.eat("-") {
                negative = !negative;
            } else if !self.eat("+") {
                break;
            }
        }
        let value = self.primary()?;
        if !negative {
            return Some(value);
        }
        Some(Value { numerator: value.numerator.mul(&Expr::Int(-1)), denominator: value.denominator })
    }

    fn primary(&mut self) -> Option<Value> {
        if self.eat("(") {
            let value = self.sum()?;
            if !self.eat(")") {
                return None;
            }
            // `(int64_t)x`: a cast
            if let Expr::Symbol(name) = &value.numerator
                && is_integer_type(name)
            {
                return self.unary();
            }
            return Some(value);
        }
        let word = self.word()?;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word).map(|n| Value::new(Expr::Int(n)));
        }
        if self.rest.starts_with('<') {
            // the type of a cast or of std::max
            self.rest = self.rest.split_once('>')?.1;
        }
        if !self.eat("(") {
            return Some(Value::new(Expr::symbol(word)));
        }
        let arguments = self.arguments()?;
        call(word, arguments).map(Value::new)
    }

    /// A number or a name with its namespaces.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let end = self.rest.find(|c| !is_word(c) && c != ':' && c != '.').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn arguments(&mut self) -> Option<Vec<Expr>> {
        let mut list = Vec::new();
        let braced = self.eat("{");
        while !self.eat(")") {
            list.push(self.sum()?.whole());
            if braced && self.eat("}") {
                continue;
            }
            if !self.eat(",") && !self.rest.trim_start().starts_with(')') {
                return None;
            }
        }
        Some(list)
    }
}

fn is_integer_type(name: &str) -> bool {
    matches!(name, "int" | "long" | "int32_t" | "int64_t" | "uint32_t" | "uint64_t" | "size_t")
}

/// `16`, `16L`, `16LL`, `16ULL`, and `16.0` where it is whole.
fn number(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches(['L', 'U', 'l', 'u']);
    digits.strip_suffix(".0").or_else(|| digits.strip_suffix('.')).unwrap_or(digits).parse().ok()
}

fn power(base: &Expr, exponent: i64) -> Option<Expr> {
    (0..=EXPONENT).contains(&exponent).then(|| (0..exponent).fold(Expr::Int(1), |p, _| p.mul(base)))
}

/// Functions by their last name.
fn call(name: &str, arguments: Vec<Expr>) -> Option<Expr> {
    let function = name.rsplit("::").next().unwrap_or(name);
    match (function, arguments.as_slice()) {
        ("static_cast" | "trunc" | "floor" | "int64_t" | "ToFloat" | "TruncToInt" | "FloorToInt", [x]) => {
            Some(x.clone())
        }
        ("div_floor_integer" | "div_floor" | "FloorDiv" | "CleanDiv" | "PythonicFloorDiv" | "floordiv", [a, b]) => {
            Some(a.floor_div(b))
        }
        ("div_mod" | "Mod" | "PythonMod" | "ModularIndexing2" | "mod", [a, b]) => Some(a.modulo(b)),
        ("ModularIndexing", [a, b, c]) => Some(a.floor_div(b).modulo(c)),
        ("pow" | "PowByNatural", [a, Expr::Int(n)]) => power(a, *n),
        ("max" | "Max", [first, rest @ ..]) => Some(rest.iter().fold(first.clone(), |m, x| m.max_with(x))),
        ("min" | "Min", [first, rest @ ..]) => Some(rest.iter().fold(first.clone(), |m, x| m.min_with(x))),
        _ => None,
    }
}

/// Solves `expression == Symbol(result)` for the symbol `unknown`, where it occurs once and linearly.
///
/// The generator prints the solution of `dim = f(s)` for s (`int64_t s5 = c10::div_floor_integer(x_size_0, 4L);`,
/// torch 2.7+, cpp_wrapper_cpu.py `codegen_symbol`); this turns it back into the dim.
pub fn solve(expression: &Expr, unknown: &str, result: &Expr) -> Option<Expr> {
    let has = |e: &Expr| e.symbols().contains(&unknown);
    match expression {
        Expr::Symbol(name) if name == unknown => Some(result.clone()),
        // the division came out even at compile time, or there would be no solution
        Expr::FloorDiv(a, b) if has(a) && !has(b) => solve(a, unknown, &result.mul(b)),
        Expr::Sum(terms) => {
            let (with, without): (Vec<&Expr>, Vec<&Expr>) = terms.iter().partition(|t| has(t));
            let [term] = with.as_slice() else { return None };
            solve(term, unknown, &without.into_iter().fold(result.clone(), |r, t| r.sub(t)))
        }
        Expr::Product(factors) => {
            let (with, without): (Vec<&Expr>, Vec<&Expr>) = factors.iter().partition(|t| has(t));
            let ([factor], [Expr::Int(-1)]) = (with.as_slice(), without.as_slice()) else { return None };
            solve(factor, unknown, &result.mul(&Expr::Int(-1)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        parse(text).map(|e| e.to_string())
    }

    #[test]
    fn forms_of_the_generator() {
        for (text, expected) in [
            ("16L*s0", "16*s0"),
            ("s0 + 1L", "s0 + 1"),
            ("(-1L)*s0", "-s0"),
            ("8L*s27*s77", "8*s27*s77"),
            ("c10::div_floor_integer(static_cast<int64_t>(s0), static_cast<int64_t>(16L))", "s0//16"),
            ("std::max<int64_t>({static_cast<int64_t>(1L), s0})", "max(1, s0)"),
            ("std::min(s0, 8L)", "min(8, s0)"),
            ("(1.0/2.0)*arg0_1_size_0", "arg0_1_size_0//2"),
            ("((xnumel + (128 - 1)) / (128))", "(xnumel + 127)//128"),
            ("(int64_t)s0", "s0"),
            ("static_cast<int64_t>(std::pow(s0, 2L))", "s0*s0"),
            ("2*s0", "2*s0"),
            ("Mod(s0, 4)", "s0%4"),
            ("s0//4", "s0//4"),
            ("7L % 4L", "3"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_integer_expression_is_refused() {
        for text in ["", "s0 +", "buf0.item().toLong()", "f(", "\"x\"", "0.5*s0", "s0 ? 1 : 0", "std::sqrt(s0)"] {
            assert_eq!(parse(text).filter(|e| !matches!(e, Expr::Symbol(_))), None, "{text}");
        }
        assert_eq!(parse(&"(".repeat(100_000)), None);
        assert_eq!(parse(&"-".repeat(100_000)), None);
    }

    #[test]
    fn solutions_are_turned_back() {
        let back = |text: &str| solve(&parse(text)?, "x", &Expr::symbol("s5")).map(|e| e.to_string());
        assert_eq!(back("c10::div_floor_integer(x, 4L)").as_deref(), Some("4*s5"));
        assert_eq!(back("x + (-1L)").as_deref(), Some("s5 + 1"));
        assert_eq!(back("(-1L)*x + 7L").as_deref(), Some("-s5 + 7"));
        assert_eq!(back("c10::div_floor_integer(x + (-3L), 2L)").as_deref(), Some("2*s5 + 3"));
        assert_eq!(back("x*x"), None);
    }

    #[test]
    fn nesting_has_a_border() {
        let deep = |n: usize| parse(&format!("{}s0{}", "(".repeat(n), ")".repeat(n)));
        // the whole is a level too
        assert_eq!(deep(limits::NESTING - 1), Some(Expr::symbol("s0")));
        assert_eq!(deep(limits::NESTING), None);
    }

    mod properties {
        use super::*;
        use crate::model::any_expr;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn shown_expressions_are_read_back(expr in any_expr()) {
                prop_assert_eq!(parse(&expr.to_string()), Some(expr));
            }

            #[test]
            fn no_text_panics(text in "\\PC{0,60}") {
                let _ = parse(&text);
            }

            #[test]
            fn no_text_of_their_words_panics(
                words in proptest::collection::vec(proptest::sample::select(&[
                    "s0", "u1", "0", "4L", "-9223372036854775808", "9223372036854775807L", "1.0", "+", "-", "*", "**", "//", "%",
                    "/", "(", ")", ",", "{", "}", "std::max<int64_t>", "std::min", "std::pow", "static_cast<int64_t>",
                    "c10::div_floor_integer", "Mod", "(int64_t)",
                ][..]), 0..20),
            ) {
                let text = words.concat();
                if let Some(expr) = parse(&text) {
                    let _ = solve(&expr, "s0", &Expr::symbol("s5"));
                    let _ = solve(&expr, "u1", &Expr::Int(i64::MIN));
                }
            }
        }
    }
}
