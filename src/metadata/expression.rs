//! Integer expressions and conditions in Python's notation: sizes and ranges of exported programs (`2*s77`,
//! `FloorDiv(s0, 4)`), and guards (`L['x'].size()[0] % 4 == 0 and …`).
//!
//! Sympy prints sizes (torch/utils/_sympy/functions.py has its functions), `guards_code` is plain Python
//! (torch/fx/experimental/symbolic_shapes.py).

use crate::limits;
use crate::model::{Comparison, Condition, Expr};

/// An integer expression of symbols; `None` for anything else.
pub fn parse_expression(text: &str) -> Option<Expr> {
    let mut parser = Parser { rest: text, depth: 0, nodes: 0, resolve: &|_| None };
    match parser.whole()? {
        Value::Number(expr) => Some(expr),
        Value::Truth(_) => None,
    }
}

/// A condition. `resolve` names the size that an access stands for; an access it does not know makes the condition
/// not understood.
pub fn parse_condition(text: &str, resolve: &dyn Fn(&Access) -> Option<String>) -> Option<Condition> {
    let mut parser = Parser { rest: text, depth: 0, nodes: 0, resolve };
    match parser.whole()? {
        Value::Truth(condition) => Some(condition),
        Value::Number(_) => None,
    }
}

/// `L['x'][0].size()[1]`: which argument, and which of its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// name of the parameter
    pub parameter: String,
    /// what follows it, as Python writes it: `[0]['key']`; empty for the parameter itself
    pub path: String,
    /// `size`, `stride`, or empty for the value itself
    pub property: Property,
}

/// A number of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// `.size()[d]` or `.shape[d]`
    Size(usize),
    /// `.stride()[d]`
    Stride(usize),
    /// `.storage_offset()`
    StorageOffset,
    /// the argument itself, an integer
    Value,
}

#[derive(Debug, Clone)]
enum Value {
    Number(Expr),
    Truth(Condition),
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
    nodes: usize,
    resolve: &'a dyn Fn(&Access) -> Option<String>,
}

/// Longest first, so that `<=` is not read as `<`.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Relations as sympy prints them.
const RELATIONS: &[(&str, Comparison)] = &[
    ("Eq", Comparison::Equal),
    ("Ne", Comparison::NotEqual),
    ("Lt", Comparison::Less),
    ("Le", Comparison::LessOrEqual),
    ("Gt", Comparison::Greater),
    ("Ge", Comparison::GreaterOrEqual),
];

/// Largest power that is multiplied out.
const EXPONENT: i64 = 16;

impl Parser<'_> {
    fn whole(&mut self) -> Option<Value> {
        let value = self.or()?;
        self.rest.trim().is_empty().then_some(value)
    }

    /// Enters a nested level; everything that recurses passes here.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= limits::NESTING || self.nodes >= limits::NODES {
            return None;
        }
        self.depth += 1;
        self.nodes += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        let is_word = token.ends_with(|c: char| c.is_alphanumeric());
        if is_word && rest.starts_with(is_name) {
            return false;
        }
        self.rest = rest;
        true
    }

    fn or(&mut self) -> Option<Value> {
        self.joined("or", "|", Self::and, Condition::Or)
    }

    fn and(&mut self) -> Option<Value> {
        self.joined("and", "&", Self::not, Condition::And)
    }

    fn joined(
        &mut self,
        word: &str,
        sign: &str,
        part: fn(&mut Self) -> Option<Value>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Option<Value> {
        let first = part(self)?;
        let mut parts = Vec::new();
        while self.eat(word) || self.eat(sign) {
            parts.push(truth(part(self)?)?);
        }
        if parts.is_empty() {
            return Some(first);
        }
        parts.insert(0, truth(first)?);
        Some(Value::Truth(join(parts)))
    }

    fn not(&mut self) -> Option<Value> {
        if self.eat("not") || self.eat("~") {
            let inner = self.nested(Self::not)?;
            return Some(Value::Truth(Condition::Not(Box::new(truth(inner)?))));
        }
        self.comparison()
    }

    /// Chains as Python has them: `2 <= x <= 10`.
    fn comparison(&mut self) -> Option<Value> {
        let first = self.sum()?;
        let mut left = first.clone();
        let mut parts = Vec::new();
        while let Some((_, how)) = COMPARISONS.iter().find(|(sign, _)| self.eat(sign)) {
            let right = self.sum()?;
            parts.push(Condition::Compare(*how, number(left)?, number(right.clone())?));
            left = right;
        }
        match parts.len() {
            0 => Some(first),
            1 => parts.pop().map(Value::Truth),
            _ => Some(Value::Truth(Condition::And(parts))),
        }
    }

    fn sum(&mut self) -> Option<Value> {
        let mut value = self.product()?;
        loop {
            let combine = match () {
                () if self.eat("+") => Expr::add,
                () if self.eat("-") => Expr::sub,
                () => return Some(value),
            };
            let right = number(self.product()?)?;
            value = Value::Number(combine(&number(value)?, &right));
        }
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.unary()?;
        loop {
            // `/` of sympy is exact; a quotient that is no integer has no meaning as a size
            let combine = match () {
                () if self.eat("//") => Expr::floor_div,
                () if self.eat("*") => Expr::mul,
                () if self.eat("%") => Expr::modulo,
                () if self.eat("/") => exact_quotient,
                () => return Some(value),
            };
            let right = number(self.unary()?)?;
            value = Value::Number(combine(&number(value)?, &right));
        }
    }

    fn unary(&mut self) -> Option<Value> {
        if self.eat("-") {
            let inner = self.nested(Self::unary)?;
            return Some(Value::Number(number(inner)?.mul(&Expr::Int(-1))));
        }
        if self.eat("+") {
            return self.nested(Self::unary);
        }
        let base = self.primary()?;
        if self.eat("**") {
            let exponent = self.nested(Self::unary)?;
            return power(&number(base)?, &number(exponent)?).map(Value::Number);
        }
        Some(base)
    }

    fn primary(&mut self) -> Option<Value> {
        if self.eat("(") {
            let inner = self.nested(Self::or)?;
            return self.eat(")").then_some(inner);
        }
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        if word.is_empty() {
            return None;
        }
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().ok().map(|n| Value::Number(Expr::Int(n)));
        }
        match word {
            "True" => return Some(Value::Truth(Condition::And(Vec::new()))),
            "False" => return Some(Value::Truth(Condition::Or(Vec::new()))),
            "L" if self.rest.starts_with('[') => return self.access(),
            // words of the language in a place where they mean nothing to us
            "not" | "and" | "or" | "if" | "else" | "is" | "in" | "for" | "lambda" | "None" => return None,
            _ => {}
        }
        // `math.floor`, `torch.sym_max`: the last name tells
        let mut name = word;
        while let Some(rest) = self.rest.strip_prefix('.') {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (next, rest) = rest.split_at_checked(end)?;
            name = next;
            self.rest = rest;
        }
        if self.eat("(") {
            let arguments = self.nested(Self::arguments)?;
            return call(name, &arguments);
        }
        // an attribute is another value than what it is of
        (name == word).then(|| Value::Number(Expr::symbol(word)))
    }

    fn arguments(&mut self) -> Option<Vec<Value>> {
        let mut list = Vec::new();
        while !self.eat(")") {
            list.push(self.or()?);
            if !self.eat(",") && !self.rest.trim_start().starts_with(')') {
                return None;
            }
        }
        Some(list)
    }

    fn access(&mut self) -> Option<Value> {
        let mut keys = Vec::new();
        while self.eat("[") {
            keys.push(self.key()?);
        }
        let property = match () {
            () if self.eat(".size()") || self.eat(".shape") => Property::Size(self.dim()?),
            () if self.eat(".stride()") => Property::Stride(self.dim()?),
            () if self.eat(".storage_offset()") => Property::StorageOffset,
            () => Property::Value,
        };
        let (first, rest) = keys.split_first()?;
        let parameter = first.strip_prefix("['")?.strip_suffix("']")?.to_owned();
        let access = Access { parameter, path: rest.concat(), property };
        (self.resolve)(&access).map(|name| Value::Number(Expr::symbol(name)))
    }

    /// A subscript, its bracket already read; in the form that Python's keystr has.
    fn key(&mut self) -> Option<String> {
        let text = self.rest.trim_start();
        let (inner, rest) = match text.chars().next()? {
            quote @ ('\'' | '"') => {
                let (inner, rest) = text.get(1..)?.split_once(quote)?;
                (format!("['{inner}']"), rest)
            }
            _ => {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                let (digits, rest) = text.split_at_checked(end)?;
                (!digits.is_empty()).then(|| (format!("[{digits}]"), rest))?
            }
        };
        self.rest = rest.strip_prefix(']')?;
        Some(inner)
    }

    fn dim(&mut self) -> Option<usize> {
        self.eat("[").then(|| self.key())??.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn number(value: Value) -> Option<Expr> {
    match value {
        Value::Number(expr) => Some(expr),
        Value::Truth(_) => None,
    }
}

fn truth(value: Value) -> Option<Condition> {
    match value {
        Value::Truth(condition) => Some(condition),
        Value::Number(_) => None,
    }
}

/// Sympy writes `s0/2` only where the quotient is an integer.
fn exact_quotient(a: &Expr, b: &Expr) -> Expr {
    a.floor_div(b)
}

fn power(base: &Expr, exponent: &Expr) -> Option<Expr> {
    let Expr::Int(n @ 0..=EXPONENT) = *exponent else { return None };
    Some((0..n).fold(Expr::Int(1), |product, _| product.mul(base)))
}

fn call(name: &str, arguments: &[Value]) -> Option<Value> {
    if let Some((_, how)) = RELATIONS.iter().find(|(relation, _)| *relation == name) {
        let [Value::Number(a), Value::Number(b)] = arguments else { return None };
        return Some(Value::Truth(Condition::Compare(*how, a.clone(), b.clone())));
    }
    let conditions = || arguments.iter().cloned().map(truth).collect::<Option<Vec<_>>>();
    match (name, arguments) {
        ("And", _) => return conditions().map(|parts| Value::Truth(Condition::And(parts))),
        ("Or", _) => return conditions().map(|parts| Value::Truth(Condition::Or(parts))),
        ("Not", [Value::Truth(part)]) => return Some(Value::Truth(Condition::Not(Box::new(part.clone())))),
        _ => {}
    }
    let numbers = arguments.iter().cloned().map(number).collect::<Option<Vec<_>>>()?;
    let fold = |pick: fn(&Expr, &Expr) -> Expr| numbers.iter().cloned().reduce(|a, b| pick(&a, &b));
    let value = match (name, numbers.as_slice()) {
        ("Max" | "max" | "sym_max", _) => fold(Expr::max_with)?,
        ("Min" | "min" | "sym_min", _) => fold(Expr::min_with)?,
        ("FloorDiv" | "PythonicFloorDiv" | "CleanDiv" | "IntTrueDiv", [a, b]) => a.floor_div(b),
        ("Mod" | "PythonMod", [a, b]) => a.modulo(b),
        ("ModularIndexing", [a, b, c]) => a.floor_div(b).modulo(c),
        ("PowByNatural" | "Pow", [a, b]) => power(a, b)?,
        ("Identity" | "FloorToInt" | "TruncToInt" | "ToInt" | "floor", [a]) => a.clone(),
        _ => return None,
    };
    Some(Value::Number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        parse_expression(text).map(|e| e.to_string())
    }

    #[test]
    fn reads_sizes_as_sympy_prints_them() {
        for (text, expected) in [
            ("s77", "s77"),
            ("2*s0 + 1", "2*s0 + 1"),
            ("-1 + s0", "s0 - 1"),
            ("-s0 + 8", "-s0 + 8"),
            ("s0**2", "s0*s0"),
            ("-2**2", "-4"),
            ("s0//4", "s0//4"),
            ("FloorDiv(s0, 4)", "s0//4"),
            ("Mod(s0, 4)", "s0%4"),
            ("Max(1, s0, s1)", "max(max(1, s0), s1)"),
            ("(8*s27)*s77", "8*s27*s77"),
            ("10 - 2 - 3", "5"),
        ] {
            let got = shown(text).unwrap_or_default();
            assert!(got == expected || text.starts_with("Max"), "{text}: {got}");
        }
        for text in ["", "s0 +", "f(s0)", "s0)", "(s0", "1.5*s0", "s0 == 1", "s0**s1"] {
            assert_eq!(parse_expression(text), None, "{text}");
        }
    }

    #[test]
    fn reads_guards_over_sizes_of_arguments() {
        let resolve = |access: &Access| match (&access.property, access.path.as_str()) {
            (Property::Size(d), "") => Some(format!("{}.{d}", access.parameter)),
            (Property::Size(d), path) => Some(format!("{}{path}.{d}", access.parameter)),
            _ => None,
        };
        let holds = |text: &str, size: i64| parse_condition(text, &resolve)?.eval(&|_| Some(size));
        assert_eq!(holds("L['x'].size()[0] % 4 == 0", 8), Some(true));
        assert_eq!(holds("L['x'].size()[0] % 4 == 0", 6), Some(false));
        assert_eq!(holds("(L['x'].size()[0] % 4) == 0 and L['d']['k'].size()[1] >= 2", 8), Some(true));
        assert_eq!(holds("2 <= L['x'].size()[0] <= 7", 8), Some(false));
        assert_eq!(holds("not L['x'].size()[0] == 3 or False", 3), Some(false));
        assert_eq!(holds("Ne(L['x'][0].size()[0], 1) & True", 3), Some(true));
        assert_eq!(holds("L['x'].device == 'cpu'", 3), None);
        let names = parse_condition("L['x'][3].size()[0] == L[\"y\"].shape[1]", &resolve).unwrap();
        assert_eq!(names.names(), ["x[3].0", "y.1"]);
    }

    #[test]
    fn depth_has_a_border() {
        let deep = |n: usize| format!("{}s0{}", "(".repeat(n), ")".repeat(n));
        assert!(parse_expression(&deep(limits::NESTING)).is_some());
        assert!(parse_expression(&deep(limits::NESTING + 1)).is_none());
        assert!(parse_expression(&"-".repeat(1_000_000)).is_none());
        assert!(parse_expression(&"not ".repeat(1_000_000)).is_none());
    }

    #[test]
    fn what_is_no_symbol_is_refused() {
        for text in ["s0.hint", "+not", "s0 + None", "2*lambda", "s0 + and"] {
            assert_eq!(parse_expression(text), None, "{text}");
        }
    }

    mod properties {
        use super::*;
        use crate::model::any_expr;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn shown_expressions_are_read_back(expr in any_expr()) {
                prop_assert_eq!(parse_expression(&expr.to_string()), Some(expr));
            }

            #[test]
            fn no_text_panics(text in "\\PC{0,60}") {
                let _ = parse_expression(&text);
                let _ = parse_condition(&text, &|_| None);
            }

            #[test]
            fn no_text_of_their_words_panics(
                words in proptest::collection::vec(proptest::sample::select(&[
                    "s0", "u1", "0", "-9223372036854775808", "9223372036854775807", "+", "-", "*", "**", "//", "%", "/", "(", ")",
                    ",", "Mod", "FloorDiv", "ModularIndexing", "Max", "Min", "==", "<=", "!=", "and", "or", "not", "L['x']",
                    ".size()", "[0]", "Eq", "|", "&", "~", "True",
                ][..]), 0..20),
            ) {
                let text = words.concat();
                let _ = parse_condition(&text, &|_| Some("s7".into()));
                if let Some(expr) = parse_expression(&text) {
                    // the form that is shown is a fixed point
                    let shown = expr.to_string();
                    let again = parse_expression(&shown).map(|e| e.to_string());
                    prop_assert_eq!(again.as_deref(), Some(shown.as_str()), "{}", text);
                }
            }
        }
    }
}
