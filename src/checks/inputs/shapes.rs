//! Sizes of all inputs together: static dims, ranges, and relations between dims.

use super::Sink;
use crate::checks::sizes::{Holds, Variables};
use crate::model::{Dim, Expr, TensorSpec};
use crate::target::{Size, Span, TensorRequest};
use std::collections::BTreeMap;

/// Position of a dim: input, dim.
pub type Place = (usize, usize);

/// Given sizes as expressions over given values, and what the artefact's symbols are for them.
#[derive(Debug, Default)]
pub struct Shapes {
    /// the given values
    pub variables: Variables,
    /// per input with a usable shape: each dim, `None` where not asked
    pub given: BTreeMap<usize, Vec<Option<Expr>>>,
    /// artefact's symbol → given size, and the dim it was taken from
    bound: BTreeMap<String, (Expr, Place)>,
    /// names without a size that no size fits, with the places they stand at
    impossible: Vec<(String, Vec<Place>)>,
    /// names without a size
    free: Vec<String>,
}

impl Shapes {
    /// Takes the shapes whose rank fits, and binds the artefact's symbols to them.
    pub fn new(inputs: &[TensorSpec], tensors: &BTreeMap<usize, TensorRequest>, dims: &[(String, Span)]) -> Self {
        let mut shapes = Self::default();
        for (name, span) in dims {
            shapes.variables.narrow(name, *span);
        }
        for (position, tensor) in tensors {
            let (Some(sizes), Some(input)) = (&tensor.shape, inputs.get(*position)) else { continue };
            if input.rank.is_none_or(|rank| rank == sizes.len()) {
                let given = sizes.iter().enumerate().map(|(d, size)| shapes.given_size(size, (*position, d))).collect();
                shapes.given.insert(*position, given);
            }
        }
        shapes.narrow_free(inputs);
        shapes.bind_symbols(inputs);
        shapes
    }

    fn given_size(&mut self, size: &Size, (input, dim): Place) -> Option<Expr> {
        match size {
            Size::Any => None,
            Size::Is(expr) => {
                for name in expr.symbols() {
                    if self.variables.span(name).is_none() && !self.free.iter().any(|f| f == name) {
                        self.free.push(name.to_owned());
                    }
                }
                Some(expr.clone())
            }
            // two ranges are independent of each other, even when they read the same
            Size::Within(span) => {
                let name = format!("inputs[{input}].shape[{dim}]");
                self.variables.narrow(&name, *span);
                Some(Expr::Symbol(name))
            }
        }
    }

    /// A name without a size stands for every size that its dims accept.
    fn narrow_free(&mut self, inputs: &[TensorSpec]) {
        for name in self.free.clone() {
            let mut places = Vec::new();
            let mut possible = true;
            for (input, sizes) in &self.given {
                for (d, size) in sizes.iter().enumerate() {
                    if *size != Some(Expr::symbol(&name)) {
                        continue;
                    }
                    places.push((*input, d));
                    let (min, max) = dim_at(inputs, (*input, d)).map_or((None, None), Dim::bounds);
                    possible &= self.variables.narrow(&name, Span { min: min.unwrap_or(0), max });
                }
            }
            if !possible {
                self.impossible.push((name, places));
            } else if self.variables.span(&name).is_none() {
                self.variables.narrow(&name, Span { min: 0, max: None });
            }
        }
    }

    fn bind_symbols(&mut self, inputs: &[TensorSpec]) {
        let mut rest = Vec::new();
        for (input, sizes) in &self.given {
            for (d, size) in sizes.iter().enumerate() {
                let (Some(size), Some(dim)) = (size, dim_at(inputs, (*input, d))) else { continue };
                match dim {
                    Dim::Static { .. } => {}
                    Dim::Symbol { symbol, .. } => {
                        self.bound.entry(symbol.clone()).or_insert_with(|| (size.clone(), (*input, d)));
                    }
                    Dim::Expr { expr, .. } => rest.push((expr.clone(), size.clone(), (*input, d))),
                }
            }
        }
        // an expression with one open symbol binds it; that may open the next one
        let mut progress = true;
        while progress {
            progress = false;
            for (expr, size, place) in &rest {
                if let Some((symbol, value)) = self.solve(expr, size) {
                    self.bound.insert(symbol, (value, *place));
                    progress = true;
                }
            }
        }
    }

    /// The open symbol of `expr = size` and its value, when the expression is linear in it.
    fn solve(&self, expr: &Expr, size: &Expr) -> Option<(String, Expr)> {
        let open: Vec<&str> = expr.symbols().into_iter().filter(|s| !self.bound.contains_key(*s)).collect();
        let [symbol] = open.as_slice() else { return None };
        let terms = match expr {
            Expr::Sum(terms) => terms.clone(),
            other => vec![other.clone()],
        };
        let (with, without): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(|t| t.symbols().contains(symbol));
        let [term] = with.as_slice() else { return None };
        let factor = match term {
            Expr::Symbol(_) => 1,
            Expr::Product(factors) => match factors.as_slice() {
                [Expr::Int(n), Expr::Symbol(_)] if *n > 0 => *n,
                _ => return None,
            },
            _ => return None,
        };
        let others = without.iter().fold(Expr::Int(0), |sum, t| sum.add(t));
        let value = size.sub(&self.value_of(&others)?).floor_div(&Expr::Int(factor));
        Some(((*symbol).to_owned(), value))
    }

    /// An artefact's expression in terms of what is given; `None` while one of its symbols is open.
    pub fn value_of(&self, expr: &Expr) -> Option<Expr> {
        let bound = |name: &str| self.bound.get(name).map(|(value, _)| value.clone());
        if expr.symbols().iter().any(|s| !self.bound.contains_key(*s)) {
            return None;
        }
        Some(self.variables.simplify(&expr.substitute(&bound)))
    }

    /// The size given at a place such as `inputs[0].shape[1]`; `None` where none is.
    pub fn size_at(&self, place: &str) -> Option<Expr> {
        let (input, d) = place.strip_prefix("inputs[")?.split_once("].shape[")?;
        let sizes = self.given.get(&input.parse().ok()?)?;
        sizes.get(d.strip_suffix(']')?.parse::<usize>().ok()?)?.clone()
    }

    /// Binds a symbol that only strides mention.
    pub fn bind(&mut self, symbol: &str, value: Expr, place: Place) {
        self.bound.entry(symbol.to_owned()).or_insert((value, place));
    }

    /// A size as a person gave it.
    pub fn show(&self, size: &Expr) -> String {
        match size {
            Expr::Symbol(name) => match self.variables.span(name) {
                Some(span) if name.contains('[') => span.to_string(),
                Some(span) if !self.free.contains(name) => format!("{name} = {span}"),
                _ => name.clone(),
            },
            other => other.to_string(),
        }
    }

    /// Judges every asked dim of one input.
    pub fn judge(&self, sink: &mut Sink, input: &TensorSpec) {
        let Some(sizes) = self.given.get(&input.index) else { return };
        for (d, size) in sizes.iter().enumerate() {
            let Some(size) = size else { continue };
            let fact = format!("inputs[{}].shape[{d}]", input.index);
            if let Some((name, places)) = self.impossible.iter().find(|(name, _)| *size == Expr::symbol(name)) {
                let places: Vec<String> = places.iter().map(|(i, d)| format!("input {i} dim {d}")).collect();
                let message = format!("no size fits all places of {name}: {}", places.join(", "));
                sink.fail("input-dim-relation", &fact, message, |f| {
                    f.fix(format!("give these dims different names than {name}"))
                });
                continue;
            }
            match input.shape.as_ref().and_then(|shape| shape.get(d)).and_then(Option::as_ref) {
                None => sink.unknown(
                    "input-dim",
                    &fact,
                    &format!("whether {} takes {} in dim {d}", input.called("input"), self.show(size)),
                ),
                Some(Dim::Static { size: fixed }) => self.judge_static(sink, input, d, *fixed, size),
                Some(dim) => self.judge_dynamic(sink, input, d, dim, size),
            }
        }
    }

    fn judge_static(&self, sink: &mut Sink, input: &TensorSpec, d: usize, fixed: i64, size: &Expr) {
        let fact = format!("inputs[{}].shape[{d}]", input.index);
        let given = self.show(size);
        match self.variables.equal(size, &Expr::Int(fixed)) {
            Holds::Always => sink.pass("input-dim", &fact, || format!("{} dim {d} is {fixed}", input.called("input"))),
            Holds::Not { part, .. } => {
                let message =
                    format!("{} dim {d} is fixed at {fixed}, not {given}{}", input.called("input"), tail(part));
                sink.fail("input-dim", &fact, message, |f| {
                    f.sides(fixed, given)
                        .fix(format!("pass {fixed}, or export again with this dim in dynamic_shapes and compile"))
                        .evidence(input.evidence.iter().cloned())
                });
            }
            Holds::Undecided => {
                sink.undecided("input-dim", &fact, format!("cannot settle whether {given} is always {fixed}"))
            }
        }
    }

    fn judge_dynamic(&self, sink: &mut Sink, input: &TensorSpec, d: usize, dim: &Dim, size: &Expr) {
        let fact = format!("inputs[{}].shape[{d}]", input.index);
        let name = input.called("input");
        let given = self.show(size);
        let (min, max) = dim.bounds();
        let range = bounds_text(min, max);
        match self.variables.within(size, min, max) {
            Holds::Always => {
                sink.pass("input-dim-range", &fact, || format!("{name} dim {d} takes {given} ({range})"));
                self.judge_relation(sink, input, d, dim, size);
            }
            Holds::Not { part, only_below: Some(2) } => {
                let message = format!(
                    "{name} dim {d} takes {range}, not {given}{}: export fixes the sizes 0 and 1 by default",
                    tail(part)
                );
                sink.fail("input-dim-01-specialization", &fact, message, |f| {
                    f.sides(range, given).fix(FIX_01).evidence(input.evidence.iter().cloned())
                });
            }
            Holds::Not { part, .. } => {
                let message = format!("{name} dim {d} takes {range}, not {given}{}", tail(part));
                sink.fail("input-dim-range", &fact, message, |f| {
                    f.sides(range, given)
                        .fix(
                            "pass a size in the range, or export again with a wider torch.export.Dim range and compile",
                        )
                        .evidence(input.evidence.iter().cloned())
                });
            }
            Holds::Undecided => {
                sink.undecided("input-dim-range", &fact, format!("cannot settle whether {given} lies in {range}"))
            }
        }
    }

    fn judge_relation(&self, sink: &mut Sink, input: &TensorSpec, d: usize, dim: &Dim, size: &Expr) {
        let fact = format!("inputs[{}].shape[{d}]", input.index);
        if let Some(relation) = sink.subject.model.relations.iter().find(|r| r.subject == fact) {
            return self.judge_candidates(sink, &fact, input, d, &relation.candidates, size);
        }
        let expr = dim.expr();
        let Some(value) = self.value_of(&expr) else { return };
        let is_origin = expr.symbols().iter().any(|s| self.bound.get(*s).is_some_and(|b| b.1 == (input.index, d)));
        if is_origin && matches!(dim, Dim::Symbol { .. }) {
            return;
        }
        // a name without a size takes only the sizes that fit
        let is_free = matches!(size, Expr::Symbol(name) if self.free.contains(name));
        if is_origin && is_free {
            return;
        }
        let others: Vec<String> = expr
            .symbols()
            .iter()
            .filter_map(|s| self.bound.get(*s).map(|(value, place)| (s, value, place)))
            .filter(|(_, _, place)| **place != (input.index, d))
            .map(|(s, value, (i, d))| format!("{s} = {} in input {i} dim {d}", self.show(value)))
            .collect();
        let why = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        let given = self.show(size);
        match self.variables.equal(size, &value) {
            Holds::Always => {
                sink.pass("input-dim-relation", &fact, || format!("{} dim {d} is {expr}", input.called("input")))
            }
            Holds::Not { part, .. } => {
                let message =
                    format!("{} dim {d} must be {expr}, not {given}{why}{}", input.called("input"), tail(part));
                let wanted = if value == expr { expr.to_string() } else { format!("{expr} = {}", self.show(&value)) };
                let evidence = input.evidence.clone();
                let ranges = given.contains("..");
                sink.fail("input-dim-relation", &fact, message, |f| {
                    let f = f.sides(wanted, &given).evidence(evidence);
                    f.fix(if ranges {
                        "dims of one size need one name: write it in both shapes and give its range with --dim NAME=1..512"
                    } else {
                        "pass inputs whose sizes agree"
                    })
                });
            }
            Holds::Undecided => {
                sink.undecided("input-dim-relation", &fact, format!("cannot settle whether {given} is always {expr}"));
            }
        }
    }

    /// The relation is open: it is told only when all candidates say the same about the given sizes.
    fn judge_candidates(
        &self,
        sink: &mut Sink,
        fact: &str,
        input: &TensorSpec,
        d: usize,
        candidates: &[Expr],
        size: &Expr,
    ) {
        let verdicts: Vec<bool> = candidates
            .iter()
            .map(|c| self.value_of(c).is_none_or(|value| self.variables.equal(size, &value) == Holds::Always))
            .collect();
        let given = self.show(size);
        let name = input.called("input");
        let list: Vec<String> = candidates.iter().map(Expr::to_string).collect();
        if verdicts.is_empty() {
            let message = format!(
                "{name} dim {d} depends on other dims, and nothing records how: cannot tell whether {given} fits"
            );
            sink.undecided("input-dim-relation", fact, message);
        } else if verdicts.iter().all(|v| *v) {
            sink.pass("input-dim-relation", fact, || {
                format!("{name} dim {d} fits {given} whichever relation holds: {}", list.join(" or "))
            });
        } else if !verdicts.contains(&true) {
            let message =
                format!("{name} dim {d} depends on other dims ({}), and {given} is none of these", list.join(" or "));
            sink.fail("input-dim-relation", fact, message, |f| {
                f.sides(list.join(" or "), given).fix("pass inputs whose sizes agree")
            });
        } else {
            let message = format!(
                "{name} dim {d} is {}: releases before 2.13 do not record which, and {given} fits not all",
                list.join(" or ")
            );
            sink.undecided("input-dim-relation", fact, message);
        }
    }
}

const FIX_01: &str = "pass 2 or more (pad, and cut the result); or compile with 2.10 or newer and \
                      aot_inductor.check_lowerbound=False when the model is known to be right for 0 and 1";

fn tail(part: Option<String>) -> String {
    part.map(|part| format!(" ({part})")).unwrap_or_default()
}

/// `2..1024`, `at least 2`, `any size`.
pub fn bounds_text(min: Option<i64>, max: Option<i64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min}..{max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any size".to_owned(),
    }
}

fn dim_at(inputs: &[TensorSpec], (input, d): Place) -> Option<&Dim> {
    inputs.get(input)?.shape.as_ref()?.get(d)?.as_ref()
}
