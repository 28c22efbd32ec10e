//! Assertions of kernels: what bounds an index, as an expression of the input sizes.

use crate::limits;
use crate::model::{Bounds, Expr, Kernel, Launch, Model};

/// The sides of `index out of bounds: 0 <= tmp14 < ks0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion<'a> {
    /// what is compared from below, `0`; `None` where the text has only an upper side
    pub lower: Option<&'a str>,
    /// variable that holds the index, `tmp14`
    pub index: &'a str,
    /// what the index has to stay below, `ks0`; `None` when the text has none or was cut
    pub upper: Option<&'a str>,
}

impl<'a> Assertion<'a> {
    /// From the text in a kernel or a log; `None` for other assertions.
    pub fn from_text(text: &'a str) -> Option<Self> {
        let rest = text.split_once(Kernel::INDEX_ASSERTION).map(|(_, rest)| rest)?.trim();
        let (lower, rest) = match rest.split_once(" <= ") {
            Some((lower, rest)) => (Some(lower.trim()), rest),
            None => (None, rest),
        };
        let (index, upper) = match rest.split_once(" < ") {
            Some((index, upper)) => (index, Some(upper.trim()).filter(|u| !u.is_empty())),
            None => (rest, None),
        };
        Some(Self { lower, index: index.trim().trim_end_matches(" <"), upper })
    }
}

/// Where the upper bound of one assertion comes from, at one launch of its kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundOrigin<'a> {
    /// the launch; `None` when none was read
    pub launch: Option<&'a Launch>,
    /// parameters of the kernel in the bound and the arguments behind them: `("ks0", "s59")`
    pub arguments: Vec<(String, String)>,
    /// the argument was taken by its order, since no source and no assembly text names the parameters
    pub is_by_order: bool,
    /// the bound over the model's symbols; `Err` tells where following it had to stop
    pub bound: Result<Expr, String>,
}

/// Follows the upper bound of an assertion through every launch of its kernel.
///
/// `upper` is the bound's text. The names of parameters come from source; without it, from what the kernel's
/// assembly text shows (`Kernel::assertion_bounds`), for the assertion at `position`.
pub fn origins<'a>(kernel: &'a Kernel, upper: &str, position: Option<usize>) -> Vec<BoundOrigin<'a>> {
    let text = parse(upper);
    if let Some(bound) = &text
        && bound.symbols().is_empty()
    {
        let launch = kernel.launches.first();
        return vec![BoundOrigin { launch, arguments: Vec::new(), is_by_order: false, bound: Ok(bound.clone()) }];
    }
    if kernel.launches.is_empty() {
        return vec![BoundOrigin {
            launch: None,
            arguments: Vec::new(),
            is_by_order: false,
            bound: Err(format!("no launch of {} was read", kernel.name)),
        }];
    }
    kernel.launches.iter().map(|launch| at_launch(kernel, launch, upper, text.as_ref(), position)).collect()
}

fn at_launch<'a>(
    kernel: &Kernel,
    launch: &'a Launch,
    upper: &str,
    text: Option<&Expr>,
    position: Option<usize>,
) -> BoundOrigin<'a> {
    let shown = kernel.assertion_bounds.iter().find(|b| Some(b.assertion) == position);
    let mut arguments = Vec::new();
    let mut missing = None;
    let mut is_by_order = false;
    for name in identifiers(upper).into_iter().filter(|name| is_size(name)) {
        let by_name = kernel.parameters.iter().position(|p| p == name);
        let by_code = shown.filter(|b| b.parameters.len() == 1).and_then(|b| b.parameters.first());
        let known = by_name.or(by_code.and_then(|p| usize::try_from(*p).ok()));
        let by_order = || size_argument(name, launch).filter(|_| kernel.parameters.is_empty());
        let place = known.or_else(by_order);
        is_by_order |= known.is_none() && place.is_some();
        match place.and_then(|p| launch.arguments.get(p)) {
            Some(argument) => arguments.push((name.to_owned(), argument.clone())),
            None => missing = Some(format!("which argument of the launch is `{name}` could not be read")),
        }
    }
    let unread = arguments.iter().find(|a| parse(&a.1).is_none());
    let bound = match (missing, text, unread) {
        (Some(reason), ..) => Err(reason),
        (_, None, _) => Err(format!("the bound `{upper}` is an expression that is not followed further")),
        (.., Some((name, argument))) => Err(format!("`{name}` is `{argument}`, which is not followed further")),
        (_, Some(text), None) => {
            Ok(text.substitute(&|name: &str| arguments.iter().find(|a| a.0 == name).and_then(|a| parse(&a.1))))
        }
    };
    BoundOrigin { launch: Some(launch), arguments, is_by_order, bound }
}

/// Place of `ksN` among the arguments: sizes stand behind the tensors, in the order of their numbers
/// (torch/_inductor/codegen/common.py, `KernelArgs.python_argdefs` and `cpp_argdefs`).
fn size_argument(name: &str, launch: &Launch) -> Option<usize> {
    let number: usize = name.strip_prefix("ks")?.parse().ok()?;
    let tensor = |a: &str| a == "?" || ["buf", "inputs[", "constants["].iter().any(|t| a.starts_with(t));
    let last_tensor = launch.arguments.iter().rposition(|a| tensor(a))?;
    let place = last_tensor.checked_add(1)?.checked_add(number)?;
    launch.arguments.get(place).is_some_and(|a| parse(a).is_some()).then_some(place)
}

/// Kernel parameters for sizes are `ks0`, `ks1`, …; C++ kernels may also name the symbol itself.
fn is_size(name: &str) -> bool {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    letters.len() < name.len() && matches!(letters, "ks" | "ps" | "s" | "u" | "d" | "zuf")
}

/// Identifiers of an expression in Triton or C++, each once.
pub fn identifiers(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// The range of an expression when each symbol lies in the range that the model states for it.
pub fn range(bound: &Expr, model: &Model) -> Bounds {
    bound.range(&|name| model.symbols.iter().find(|s| s.symbol == name).map_or((None, None), |s| (s.min, s.max)))
}

/// An integer expression as kernels and launch sites write it: `ks0`, `64L`, `1 + ks0*ks1`, `ks0 // 2`,
/// `static_cast<int64_t>(s77)`, `c10::div_floor_integer(a, b)`. `None` for everything else.
pub fn parse(text: &str) -> Option<Expr> {
    let mut parser = Parser { rest: text.trim() };
    let expr = parser.sum(0)?;
    parser.rest.is_empty().then_some(expr)
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn sum(&mut self, depth: usize) -> Option<Expr> {
        if depth > limits::NESTING {
            return None;
        }
        let mut left = self.product(depth)?;
        loop {
            if self.eat("+") {
                left = left.add(&self.product(depth)?);
            } else if self.eat("-") {
                left = left.sub(&self.product(depth)?);
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<Expr> {
        let mut left = self.unary(depth)?;
        loop {
            if self.eat("*") {
                left = left.mul(&self.unary(depth)?);
            } else if self.eat("//") {
                left = left.floor_div(&self.unary(depth)?);
            } else if self.eat("%") {
                left = left.modulo(&self.unary(depth)?);
            } else {
                return Some(left);
            }
        }
    }

    fn unary(&mut self, depth: usize) -> Option<Expr> {
        if depth > limits::NESTING {
            return None;
        }
        if self.eat("-") {
            return Some(self.unary(depth.saturating_add(1))?.mul(&Expr::Int(-1)));
        }
        if self.eat("(") {
            let inner = self.sum(depth.saturating_add(1))?;
            return self.eat(")").then_some(inner);
        }
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_:<>.".contains(c))).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            self.rest = rest.trim_start();
            return word.trim_end_matches(['L', 'l', 'u', 'U']).parse().ok().map(Expr::Int);
        }
        if word.is_empty() || (word.contains(['<', '>', ':', '.']) && !rest.starts_with('(')) {
            return None;
        }
        self.rest = rest.trim_start();
        if !self.eat("(") {
            return Some(Expr::symbol(word));
        }
        let first = self.sum(depth.saturating_add(1))?;
        let second = if self.eat(",") { Some(self.sum(depth.saturating_add(1))?) } else { None };
        if !self.eat(")") {
            return None;
        }
        match (word, second) {
            (word, None) if word.starts_with("static_cast<") || word == "int64_t" => Some(first),
            ("c10::div_floor_integer" | "div_floor_integer" | "triton_helpers.div_floor_integer", Some(by)) => {
                Some(first.floor_div(&by))
            }
            ("std::min" | "min" | "Min", Some(other)) => Some(first.min_with(&other)),
            ("std::max" | "max" | "Max", Some(other)) => Some(first.max_with(&other)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AssertionBound, KernelKind};

    fn launch(arguments: &[&str]) -> Launch {
        Launch {
            grid: [None, None, None],
            threads: None,
            arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
            line: Some(880),
        }
    }

    #[test]
    fn sides_of_the_text() {
        let a = Assertion::from_text("Assertion: index out of bounds: 0 <= tmp14 < ks0").unwrap();
        assert_eq!((a.lower, a.index, a.upper), (Some("0"), "tmp14", Some("ks0")));
        let a = Assertion::from_text("index out of bounds: tmp7 < 64").unwrap();
        assert_eq!((a.lower, a.index, a.upper), (None, "tmp7", Some("64")));
        assert_eq!(Assertion::from_text("index out of bounds: 0 <= tmp14 <").unwrap().upper, None);
        assert_eq!(Assertion::from_text("x > 0"), None);
    }

    #[test]
    fn expressions_of_launch_sites() {
        for (text, form) in [
            ("64L", "64"),
            ("1 + ks0*ks1", "ks0*ks1 + 1"),
            ("static_cast<int64_t>(s77)", "s77"),
            ("((-1)*s0) + 8", "-s0 + 8"),
            ("c10::div_floor_integer(static_cast<int64_t>(s0), static_cast<int64_t>(2L))", "s0//2"),
            ("std::max(1L, s0)", "max(1, s0)"),
        ] {
            assert_eq!(parse(text).map(|e| e.to_string()).as_deref(), Some(form), "{text}");
        }
        for text in ["libdevice.trunc(0.12*(ks0.to(tl.float64)))", "", "a b", "std::vector<int>", "f(x)", "(((("] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"(".repeat(100_000)), None);
        assert_eq!(parse(&"-".repeat(100_000)), None);
    }

    #[test]
    fn the_bound_is_followed_by_name_and_by_place() {
        let mut kernel = Kernel::new("k", KernelKind::Triton);
        kernel.launches = vec![launch(&["arg0_1", "buf1", "s59", "s2"])];
        kernel.parameters = ["in_ptr0", "out_ptr1", "ks0", "xnumel"].map(str::to_owned).to_vec();
        let found = origins(&kernel, "ks0", None);
        assert_eq!(found[0].bound, Ok(Expr::symbol("s59")));
        kernel.parameters.clear();
        // without names the sizes stand behind the last tensor, in order
        let by_order = &origins(&kernel, "ks0", Some(0))[0];
        assert!(by_order.is_by_order);
        assert_eq!(by_order.bound, Ok(Expr::symbol("s59")));
        assert!(origins(&kernel, "ks7", Some(0))[0].bound.is_err());
        kernel.assertion_bounds =
            vec![AssertionBound { assertion: 0, parameters: vec![3], is_parameter: true, constant: None }];
        assert_eq!(origins(&kernel, "ks0", Some(0))[0].bound, Ok(Expr::symbol("s2")));
        assert_eq!(origins(&kernel, "64L", None)[0].bound, Ok(Expr::Int(64)));
    }
}
