//! Symbols of sizes: their ranges over all dims, and relations that the source leaves open (design: "Inference").

use crate::model::{Bounds, Dim, Evidence, Expr, Interface, Relation, SymbolRange, TensorSpec, Unknown, Witness};
use std::collections::{HashMap, HashSet};

/// Ranges of symbols, in order of first appearance.
#[derive(Debug, Default)]
pub struct Ranges {
    list: Vec<SymbolRange>,
    by_name: HashMap<String, usize>,
}

impl Ranges {
    fn entry(&mut self, symbol: &str) -> Option<&mut SymbolRange> {
        let index = *self.by_name.entry(symbol.to_owned()).or_insert(self.list.len());
        if index == self.list.len() {
            self.list.push(SymbolRange { symbol: symbol.to_owned(), min: None, max: None, subjects: Vec::new() });
        }
        self.list.get_mut(index)
    }
    /// Bounds of a symbol; open for one that is not known.
    pub fn bounds(&self, symbol: &str) -> Bounds {
        self.by_name.get(symbol).and_then(|i| self.list.get(*i)).map_or((None, None), |r| (r.min, r.max))
    }
    /// The list.
    pub fn into_list(self) -> Vec<SymbolRange> {
        self.list
    }
}

/// Both bounds hold.
fn intersect(a: Bounds, b: Bounds) -> Bounds {
    let low = match (a.0, b.0) {
        (Some(x), Some(y)) => Some(x.max(y)),
        (x, y) => x.or(y),
    };
    let high = match (a.1, b.1) {
        (Some(x), Some(y)) => Some(x.min(y)),
        (x, y) => x.or(y),
    };
    (low, high)
}

/// Settles open relations, gives every dim the bounds of its symbols, and fills in strides that a rule gives.
pub fn settle(interface: &mut Interface) -> Vec<SymbolRange> {
    let open: HashSet<String> = interface.relations.iter().map(|r| r.subject.clone()).collect();
    let mut ranges = Ranges::default();
    collect(&interface.inputs, &mut ranges, &open);
    let relations = std::mem::take(&mut interface.relations);
    for relation in relations {
        let settled = settle_relation(&mut interface.inputs, &ranges, relation);
        interface.relations.extend(settled);
    }
    // the dims settled now belong to their symbols, the open ones to their own
    let mut ranges = Ranges::default();
    collect(&interface.inputs, &mut ranges, &HashSet::new());
    for tensor in interface.inputs.iter_mut().chain(&mut interface.outputs) {
        for dim in tensor.shape.iter_mut().chain(&mut tensor.stride).flatten().flatten() {
            bound(dim, &ranges);
        }
    }
    for input in &mut interface.inputs {
        contiguous(input, &ranges, &mut interface.unknown);
    }
    for output in &interface.outputs {
        let dims = output.shape.iter().flatten().flatten();
        for symbol in dims.flat_map(|d| d.expr().symbols().into_iter().map(str::to_owned).collect::<Vec<_>>()) {
            ranges.entry(&symbol);
        }
    }
    ranges.into_list()
}

/// Bounds of each symbol from the dims that are it, else from those that are linear in it.
fn collect(inputs: &[TensorSpec], ranges: &mut Ranges, skip: &HashSet<String>) {
    let mut derived: Vec<(String, Bounds)> = Vec::new();
    for input in inputs {
        for (position, dim) in input.shape.iter().flatten().enumerate() {
            let Some(dim) = dim else { continue };
            let subject = format!("inputs[{}].shape[{position}]", input.index);
            if skip.contains(&subject) {
                continue;
            }
            match dim {
                Dim::Static { .. } => {}
                Dim::Symbol { symbol, min, max } => {
                    if let Some(range) = ranges.entry(symbol) {
                        (range.min, range.max) = intersect((range.min, range.max), (*min, *max));
                        range.subjects.push(subject);
                    }
                }
                Dim::Expr { expr, min, max } => {
                    for symbol in expr.symbols() {
                        ranges.entry(symbol);
                    }
                    derived.extend(through(expr, (*min, *max)));
                }
            }
        }
    }
    for (symbol, bounds) in derived {
        if let Some(range) = ranges.entry(&symbol) {
            (range.min, range.max) = intersect((range.min, range.max), bounds);
        }
    }
}

/// Bounds of s when `k*s + c` lies within `bounds`, k positive.
fn through(expr: &Expr, bounds: Bounds) -> Option<(String, Bounds)> {
    let [symbol] = expr.symbols()[..] else { return None };
    let at = |value: i64| expr.eval(&|_| Some(value));
    let offset = at(0)?;
    let factor = at(1)?.checked_sub(offset)?;
    // linear: the values at 2 and 3 follow
    let is_linear = [2i64, 3]
        .into_iter()
        .all(|n| n.checked_mul(factor).and_then(|v| v.checked_add(offset)).is_some_and(|value| at(n) == Some(value)));
    if factor <= 0 || !is_linear {
        return None;
    }
    let low =
        bounds.0.and_then(|b| b.checked_sub(offset)?.checked_add(factor.checked_sub(1)?)?.checked_div_euclid(factor));
    let high = bounds.1.and_then(|b| b.checked_sub(offset)?.checked_div_euclid(factor));
    Some((symbol.to_owned(), (low, high)))
}

fn bound(dim: &mut Dim, ranges: &Ranges) {
    let by_name = |symbol: &str| ranges.bounds(symbol);
    match dim {
        Dim::Static { .. } => {}
        Dim::Symbol { symbol, min, max } => (*min, *max) = intersect((*min, *max), ranges.bounds(symbol)),
        Dim::Expr { expr, min, max } => (*min, *max) = intersect((*min, *max), expr.range(&by_name)),
    }
}

/// A dim that `run_impl` binds to nothing is a function of bound symbols: Inductor binds each symbol at its first
/// plain dim and solves for it where there is none (torch/_inductor/codegen/cpp_wrapper_cpu.py, `codegen_inputs`, 2.7 to 2.12).
/// One `k*s` that turns the range of s into the dim's is taken; otherwise the relation stays open.
fn settle_relation(inputs: &mut [TensorSpec], ranges: &Ranges, mut relation: Relation) -> Option<Relation> {
    if !relation.candidates.is_empty() {
        return Some(relation);
    }
    let (input, position) = place(&relation.subject)?;
    let input = inputs.get_mut(input)?;
    let slot = input.shape.as_mut()?.get_mut(position)?;
    let (min, max) = slot.as_ref()?.bounds();
    let candidates: Vec<Expr> = ranges.list.iter().filter_map(|range| multiple(range, (min, max))).collect();
    let [only] = candidates.as_slice() else {
        relation.candidates = candidates;
        return Some(relation);
    };
    *slot = Some(Dim::from_expr(only.clone(), min, max));
    let rule = format!("shape[{position}] = {only}: the only multiple of a bound symbol with this range");
    input.evidence.push(Evidence::new(Witness::Inferred, rule));
    input.inferred.push(format!("shape[{position}]"));
    None
}

/// `k*s` with the given bounds, when there is such a k.
fn multiple(range: &SymbolRange, wanted: Bounds) -> Option<Expr> {
    let factor = |of: Option<i64>, to: Option<i64>| match (of, to) {
        (None, None) => Some(None),
        (Some(of), Some(to)) if of > 0 && to % of == 0 && to >= of => Some(Some(to / of)),
        // zero times anything: says nothing about k
        (Some(0), Some(0)) => Some(None),
        _ => None,
    };
    let k = match (factor(range.min, wanted.0)?, factor(range.max, wanted.1)?) {
        (Some(a), Some(b)) if a == b => a,
        (Some(k), None) | (None, Some(k)) => k,
        _ => return None,
    };
    Some(Expr::symbol(&range.symbol).mul(&Expr::Int(k)))
}

/// `(1, 0)` of `inputs[1].shape[0]`.
fn place(subject: &str) -> Option<(usize, usize)> {
    let (input, dim) = subject.strip_prefix("inputs[")?.split_once("].shape[")?;
    Some((input.parse().ok()?, dim.strip_suffix(']')?.parse().ok()?))
}

/// Fills in strides that are not stated: symbolic ones have no check before 2.13. All that are stated must agree with a
/// contiguous tensor.
fn contiguous(input: &mut TensorSpec, ranges: &Ranges, unknown: &mut Vec<Unknown>) {
    let (Some(shape), Some(stride)) = (&input.shape, &mut input.stride) else { return };
    if stride.iter().all(Option::is_some) {
        return;
    }
    let mut step = Some(Expr::Int(1));
    let mut plain = vec![None; shape.len()];
    for (position, dim) in shape.iter().enumerate().rev() {
        if let Some(slot) = plain.get_mut(position) {
            slot.clone_from(&step);
        }
        let size = dim.as_ref().map(|d| match d.expr() {
            // torch multiplies by at least 1
            Expr::Int(n) => Expr::Int(n.max(1)),
            size => size,
        });
        step = step.zip(size).map(|(step, size)| step.mul(&size));
    }
    let agrees = |(stated, plain): (&Option<Dim>, &Option<Expr>)| match (stated, plain) {
        (Some(stated), Some(plain)) => stated.expr() == *plain,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let is_contiguous = stride.iter().zip(&plain).all(agrees);
    let by_name = |symbol: &str| ranges.bounds(symbol);
    for (position, slot) in stride.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
        match plain.get_mut(position).and_then(Option::take).filter(|_| is_contiguous) {
            Some(expr) => {
                let rule = format!("stride[{position}] = {expr}: not checked, and all that is checked is contiguous");
                input.evidence.push(Evidence::new(Witness::Inferred, rule));
                input.inferred.push(format!("stride[{position}]"));
                let (min, max) = expr.range(&by_name);
                *slot = Some(Dim::from_expr(expr, min, max));
            }
            None => unknown.push(Unknown::new(
                format!("inputs[{}].stride[{position}]", input.index),
                "a stride that depends on a symbol has no check, and the others are not those of a contiguous tensor",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, min: i64, max: i64) -> Option<Dim> {
        Some(Dim::Symbol { symbol: name.to_owned(), min: Some(min), max: Some(max) })
    }

    fn input(index: usize, shape: Vec<Option<Dim>>) -> TensorSpec {
        let stride = Some(vec![None; shape.len()]);
        TensorSpec { index, rank: Some(shape.len()), shape: Some(shape), stride, ..TensorSpec::default() }
    }

    fn open(subject: &str) -> Relation {
        Relation { subject: subject.to_owned(), candidates: Vec::new(), evidence: Vec::new() }
    }

    fn shape(interface: &Interface, input: usize) -> Vec<String> {
        let dims = interface.inputs.get(input).and_then(|i| i.shape.clone()).unwrap_or_default();
        dims.iter().flatten().map(|d| format!("{d} {:?}", d.bounds())).collect()
    }

    #[test]
    fn the_only_multiple_with_the_range_is_taken() {
        let mut interface = Interface {
            inputs: vec![input(0, vec![symbol("s0", 2, 50)]), input(1, vec![symbol("d0", 4, 100)])],
            relations: vec![open("inputs[1].shape[0]")],
            ..Interface::default()
        };
        let symbols = settle(&mut interface);
        assert_eq!(shape(&interface, 1), ["2*s0 (Some(4), Some(100))"]);
        assert_eq!(symbols.iter().map(|s| s.symbol.as_str()).collect::<Vec<_>>(), ["s0"]);
        assert!(interface.relations.is_empty());
    }

    #[test]
    fn several_multiples_or_none_leave_it_open() {
        for (range, count) in [((2, 50), 2), ((3, 51), 0)] {
            let mut interface = Interface {
                inputs: vec![
                    input(0, vec![symbol("s0", 2, 50), symbol("s1", 2, 50)]),
                    input(1, vec![symbol("d0", range.0, range.1)]),
                ],
                relations: vec![open("inputs[1].shape[0]")],
                ..Interface::default()
            };
            settle(&mut interface);
            assert_eq!(interface.relations.first().map(|r| r.candidates.len()), Some(count));
        }
    }

    #[test]
    fn symbols_take_the_narrowest_range_and_strides_are_contiguous() {
        let mut interface = Interface {
            inputs: vec![
                input(0, vec![symbol("s0", 2, 50), Some(Dim::fixed(8))]),
                input(1, vec![symbol("s0", 4, 100)]),
                input(
                    2,
                    vec![Some(Dim::Expr { expr: Expr::symbol("s1").mul(&Expr::Int(4)), min: Some(9), max: Some(64) })],
                ),
            ],
            ..Interface::default()
        };
        let symbols = settle(&mut interface);
        assert_eq!(symbols.first().map(|s| (s.min, s.max)), Some((Some(4), Some(50))));
        assert_eq!(symbols.get(1).map(|s| (s.min, s.max)), Some((Some(3), Some(16))));
        let stride = interface.inputs.first().and_then(|i| i.stride.clone()).unwrap_or_default();
        assert_eq!(stride, [Some(Dim::fixed(8)), Some(Dim::fixed(1))]);
        assert_eq!(interface.inputs.first().map(|i| i.inferred.len()), Some(2));
    }

    #[test]
    fn transposed_strides_are_not_guessed() {
        let mut transposed = input(0, vec![symbol("s0", 2, 50), symbol("s1", 2, 50)]);
        transposed.stride = Some(vec![Some(Dim::fixed(1)), None]);
        let mut interface = Interface { inputs: vec![transposed], ..Interface::default() };
        settle(&mut interface);
        assert_eq!(interface.unknown.len(), 1);
    }
}
