//! Two witnesses of one model against each other: what is believed, and what contradicts it.
//!
//! Code beats claims. Where both agree the claim's names stay, since source knows PyTorch's names of symbols.

use crate::model::{Conflict, Constant, Dim, Evidence, Expr, Interface, TensorSpec, Unknown, Witness};
use std::collections::{HashMap, HashSet};

/// Conflicts of one pair that are listed; two unrelated builds differ everywhere.
const LISTED: usize = 32;

/// Puts what `code` proves into what `claim` says. `code_name` is the conflict's code: `source-differs-from-code`.
///
/// Returns the merged testimony and the contradictions.
pub fn weigh(mut claim: Interface, code: &Interface, conflict: &str) -> (Interface, Vec<Conflict>) {
    let mut sides = Sides { claim: side(&claim), code: side(code), name: conflict.to_owned(), found: Vec::new() };
    for (what, claimed, proven) in [
        ("inputs", &mut claim.input_count, code.input_count),
        ("outputs", &mut claim.output_count, code.output_count),
        ("constants", &mut claim.constant_count, code.constant_count),
    ] {
        if let (Some(said), Some(is)) = (*claimed, proven)
            && said != is
        {
            sides.add(what.to_owned(), &format!("{is} in the library"), &format!("{said} in the source"));
        }
        *claimed = proven.or(*claimed);
    }
    let counts_agree = sides.found.is_empty();
    sides.device(&mut claim, code);
    if !counts_agree {
        // another model altogether: nothing of the claim can be matched
        let found = sides.found;
        return (Interface { device: code.device.clone().or(claim.device), ..code.clone() }, found);
    }
    let names = symbol_names(&claim, code);
    let rename = |dim: &Dim| {
        let expr = dim.expr().substitute(&|s| names.get(s).cloned());
        let (min, max) = dim.bounds();
        Dim::from_expr(expr, min, max)
    };
    for (kind, mine, theirs) in
        [("inputs", &mut claim.inputs, &code.inputs), ("outputs", &mut claim.outputs, &code.outputs)]
    {
        if mine.is_empty() {
            mine.clone_from(theirs);
            continue;
        }
        for (said, is) in mine.iter_mut().zip(theirs) {
            sides.tensor(kind, said, is, &rename);
        }
    }
    if claim.constants.is_empty() {
        claim.constants.clone_from(&code.constants);
    } else {
        for (said, is) in claim.constants.iter_mut().zip(&code.constants) {
            sides.constant(said, is);
        }
    }
    for (mine, theirs) in [(&mut claim.in_spec, &code.in_spec), (&mut claim.out_spec, &code.out_spec)] {
        if let (Some(said), Some(is)) = (&*mine, theirs)
            && said != is
        {
            sides.add("call_spec".to_owned(), &"another call spec", &"its own");
        }
        *mine = theirs.clone().or(mine.take());
    }
    claim.checks = code.checks.clone().or(claim.checks);
    claim.has_lower_bounds = code.has_lower_bounds.or(claim.has_lower_bounds);
    claim.include_weights = code.include_weights.or(claim.include_weights);
    claim.weights = code.weights.or(claim.weights);
    if claim.operators.is_empty() {
        claim.operators.clone_from(&code.operators);
    }
    merge_kernels(&mut claim, code);
    claim.trace = code.trace.clone();
    super::trace::rename(&mut claim, &names);
    // what the code settled is no longer unknown; what the claim had settled the code need not
    claim.unknown.retain(|u| !is_known(&claim_view(&claim.inputs, &claim.outputs), &u.fact));
    let known = claim_view(&claim.inputs, &claim.outputs);
    let named: HashSet<&str> = claim.unknown.iter().map(|u| u.fact.as_str()).collect();
    let is_new =
        |u: &&Unknown| !named.contains(u.fact.as_str()) && !is_known(&known, &u.fact) && concerns_tensor(&u.fact);
    let new: Vec<Unknown> = code.unknown.iter().filter(is_new).cloned().collect();
    claim.unknown.extend(new);
    let found = sides.found;
    (claim, found)
}

/// Adds from the code what the source does not know of its kernels.
fn merge_kernels(claim: &mut Interface, code: &Interface) {
    if claim.kernels.is_empty() {
        claim.kernels.clone_from(&code.kernels);
        return;
    }
    let by_name: HashMap<&str, usize> = code.kernels.iter().enumerate().map(|(i, k)| (k.name.as_str(), i)).collect();
    for kernel in &mut claim.kernels {
        let Some(proven) = by_name.get(kernel.name.as_str()).and_then(|i| code.kernels.get(*i)) else { continue };
        kernel.shared_bytes = proven.shared_bytes.or(kernel.shared_bytes);
        kernel.num_warps = kernel.num_warps.or(proven.num_warps);
        kernel.symbol = kernel.symbol.take().or_else(|| proven.symbol.clone());
        kernel.file = proven.file.clone().or(kernel.file.take());
        kernel.present = kernel.present.or(proven.present);
        for (launch, other) in kernel.launches.iter_mut().zip(&proven.launches) {
            for (axis, theirs) in launch.grid.iter_mut().zip(&other.grid) {
                *axis = axis.take().or_else(|| theirs.clone());
            }
            launch.threads = launch.threads.or(other.threads);
        }
        kernel.evidence.extend(proven.evidence.iter().cloned());
    }
}

type View<'a> = [(&'static str, &'a [TensorSpec]); 2];

fn claim_view<'a>(inputs: &'a [TensorSpec], outputs: &'a [TensorSpec]) -> View<'a> {
    [("inputs", inputs), ("outputs", outputs)]
}

fn concerns_tensor(fact: &str) -> bool {
    fact.starts_with("inputs[") || fact.starts_with("outputs[")
}

/// True when a tensor's fact is there after all.
fn is_known(view: &View<'_>, fact: &str) -> bool {
    let Some((list, rest)) = fact.split_once('[') else { return false };
    let Some((index, field)) = rest.split_once("].") else { return false };
    let tensors = view.iter().find(|(name, _)| *name == list).map_or(&[][..], |(_, tensors)| tensors);
    let Some(tensor) = index.parse::<usize>().ok().and_then(|i| tensors.get(i)) else { return false };
    let element = |dims: &Option<Vec<Option<Dim>>>, at: &str| {
        let at = at.trim_end_matches(']').parse::<usize>().ok();
        dims.as_ref().zip(at).is_some_and(|(dims, at)| dims.get(at).is_some_and(Option::is_some))
    };
    match field.split_once('[') {
        None => match field {
            "dtype" => tensor.dtype.is_some(),
            "shape" | "rank" => tensor.shape.is_some(),
            "stride" => tensor.stride.is_some(),
            "device" => tensor.device.is_some(),
            _ => false,
        },
        Some(("shape", at)) => element(&tensor.shape, at),
        Some(("stride", at)) => element(&tensor.stride, at),
        Some(_) => false,
    }
}

fn side(interface: &Interface) -> Evidence {
    let mut evidence = Evidence::new(interface.witness.unwrap_or(Witness::Inferred), "");
    evidence.member.clone_from(&interface.member);
    evidence
}

/// What the claim calls the symbols of the code: the same dim has the same size. A symbol of the code can be an expression
/// of the claim: the source solves a dim for a symbol, the code only knows the dim.
fn symbol_names(claim: &Interface, code: &Interface) -> HashMap<String, Expr> {
    let mut names: HashMap<String, Expr> = HashMap::new();
    // outputs tell where no input states its sizes (2.6)
    let inputs = claim.inputs.iter().zip(&code.inputs);
    for (said, is) in inputs.chain(claim.outputs.iter().zip(&code.outputs)) {
        for (fact, mine, theirs) in [("shape", &said.shape, &is.shape), ("stride", &said.stride, &is.stride)] {
            for (position, (mine, theirs)) in mine.iter().flatten().zip(theirs.iter().flatten()).enumerate() {
                if let (Some(mine), Some(Dim::Symbol { symbol, .. })) = (mine, theirs)
                    && mine.as_static().is_none()
                    && !is.is_inferred(&format!("{fact}[{position}]"))
                {
                    names.entry(symbol.clone()).or_insert_with(|| mine.expr());
                }
            }
        }
    }
    names
}

/// True when two expressions are equal, or at least have the same value wherever they are tried: the same size can be
/// written in more ways than the normal form knows.
fn agree(a: &Expr, b: &Expr) -> bool {
    const TRIED: [i64; 5] = [2, 3, 8, 64, 77];
    if a == b {
        return true;
    }
    let mut symbols = a.symbols();
    symbols.extend(b.symbols());
    symbols.sort_unstable();
    symbols.dedup();
    TRIED.iter().enumerate().all(|(round, start)| {
        let value = |name: &str| {
            let position = symbols.iter().position(|s| *s == name)?;
            start.checked_add(i64::try_from(position.checked_mul(round.checked_add(1)?)?).ok()?)
        };
        a.eval(&value).is_some() && a.eval(&value) == b.eval(&value)
    })
}

struct Sides {
    claim: Evidence,
    code: Evidence,
    name: String,
    found: Vec<Conflict>,
}

impl Sides {
    fn add(&mut self, subject: String, is: &dyn std::fmt::Display, said: &dyn std::fmt::Display) {
        if self.found.len() >= LISTED {
            return;
        }
        let with = |side: &Evidence, detail: String| Evidence { detail, ..side.clone() };
        let sides = vec![with(&self.code, is.to_string()), with(&self.claim, said.to_string())];
        self.found.push(Conflict { code: self.name.clone(), subject, sides });
    }

    fn device(&mut self, claim: &mut Interface, code: &Interface) {
        if let (Some(said), Some(is)) = (&claim.device, &code.device)
            && said.kind != is.kind
        {
            self.add("device".to_owned(), is, said);
        }
        claim.device = code.device.clone().or(claim.device.take());
        claim.device_evidence.extend(code.device_evidence.iter().cloned());
    }

    fn fact<T: PartialEq + Clone + std::fmt::Display>(
        &mut self,
        subject: impl Fn() -> String,
        said: &mut Option<T>,
        is: Option<&T>,
    ) {
        let Some(is) = is else { return };
        if let Some(claimed) = said.as_ref().filter(|claimed| *claimed != is) {
            self.add(subject(), is, claimed);
        }
        *said = Some(is.clone());
    }

    fn tensor(&mut self, kind: &str, said: &mut TensorSpec, is: &TensorSpec, rename: &dyn Fn(&Dim) -> Dim) {
        let at = |fact: &str| format!("{kind}[{}].{fact}", said_index(is));
        self.fact(|| at("name"), &mut said.name, is.name.as_ref());
        self.fact(|| at("dtype"), &mut said.dtype, is.dtype.as_ref());
        self.fact(|| at("device"), &mut said.device, is.device.as_ref());
        let mut inferred = std::mem::take(&mut said.inferred);
        for (fact, mine, theirs) in [("shape", &mut said.shape, &is.shape), ("stride", &mut said.stride, &is.stride)] {
            let Some(theirs) = theirs else { continue };
            let Some(mine) = mine.as_mut().filter(|mine| mine.len() == theirs.len()) else {
                if let Some(claimed) = mine.as_ref() {
                    self.add(at(fact), &format!("{} dims", theirs.len()), &format!("{} dims", claimed.len()));
                }
                *mine = Some(theirs.iter().map(|d| d.as_ref().map(rename)).collect());
                continue;
            };
            for (position, (mine, theirs)) in mine.iter_mut().zip(theirs).enumerate() {
                let place = format!("{fact}[{position}]");
                // what a rule gave is no testimony
                let Some(proven) = theirs.as_ref().map(rename).filter(|_| !is.is_inferred(&place)) else { continue };
                let is_stated = !inferred.contains(&place);
                inferred.retain(|known| *known != place);
                let is_same = |claimed: &Dim| match kind {
                    // bounds of outputs are derived, not stated
                    "outputs" => agree(&claimed.expr(), &proven.expr()),
                    _ if fact == "stride" => agree(&claimed.expr(), &proven.expr()),
                    _ => agree(&claimed.expr(), &proven.expr()) && claimed.bounds() == proven.bounds(),
                };
                match &*mine {
                    Some(claimed) if is_same(claimed) => {}
                    Some(claimed) if is_stated => {
                        self.add(at(&place), &text(&proven), &text(claimed));
                        *mine = Some(proven);
                    }
                    _ => *mine = Some(proven),
                }
            }
        }
        said.inferred = inferred;
        said.rank = said.shape.as_ref().map(Vec::len).or(is.rank).or(said.rank);
        said.alignment_bytes = said.alignment_bytes.or(is.alignment_bytes);
        said.aliases = is.aliases.clone().or(said.aliases.take());
        said.evidence.extend(is.evidence.iter().cloned());
    }

    fn constant(&mut self, said: &mut Constant, is: &Constant) {
        let at = |fact: &str| format!("constants[{}].{fact}", is.index);
        self.fact(|| at("name"), &mut said.name, is.name.as_ref());
        self.fact(|| at("fqn"), &mut said.fqn, is.fqn.as_ref());
        self.fact(|| at("dtype"), &mut said.dtype, is.dtype.as_ref());
        self.fact(|| at("size_bytes"), &mut said.size_bytes, is.size_bytes.as_ref());
        self.fact(|| at("folded"), &mut said.folded, is.folded.as_ref());
        self.fact(|| at("device"), &mut said.device, is.device.as_ref());
        for (fact, mine, theirs) in [("shape", &mut said.shape, &is.shape), ("stride", &mut said.stride, &is.stride)] {
            let Some(theirs) = theirs else { continue };
            if let Some(claimed) = mine.as_ref().filter(|claimed| *claimed != theirs) {
                self.add(at(fact), &format!("{theirs:?}"), &format!("{claimed:?}"));
            }
            *mine = Some(theirs.clone());
        }
        said.kind = said.kind.or(is.kind);
        said.storage_offset = is.storage_offset.or(said.storage_offset);
        said.is_opaque |= is.is_opaque;
        said.file_offset = said.file_offset.or(is.file_offset);
    }
}

fn said_index(tensor: &TensorSpec) -> usize {
    tensor.index
}

/// `s27 (2..1024)`.
fn text(dim: &Dim) -> String {
    let end = |bound: Option<i64>| bound.map_or_else(String::new, |b| b.to_string());
    match dim {
        Dim::Static { size } => size.to_string(),
        dim => {
            let (min, max) = dim.bounds();
            format!("{dim} ({}..{})", end(min), end(max))
        }
    }
}

/// Where the second reader of machine code states something else than what is believed. It knows single numbers alone:
/// types, devices, fixed sizes, bounds and strides.
pub fn cross_check(believed: &Interface, second: &Interface) -> Vec<Conflict> {
    let mut sides = Sides {
        claim: side(second),
        code: side(believed),
        name: "xref-differs-from-code".to_owned(),
        found: Vec::new(),
    };
    for (is, said) in believed.inputs.iter().zip(&second.inputs) {
        let at = |fact: &str| format!("inputs[{}].{fact}", is.index);
        if let (Some(a), Some(b)) = (&is.dtype, &said.dtype)
            && a != b
        {
            sides.add(at("dtype"), a, b);
        }
        if let (Some(a), Some(b)) = (&is.device, &said.device)
            && a.kind != b.kind
            && !is.is_inferred("device")
        {
            sides.add(at("device"), a, b);
        }
        for (fact, mine, theirs) in [("shape", &is.shape, &said.shape), ("stride", &is.stride, &said.stride)] {
            for (position, (a, b)) in mine.iter().flatten().zip(theirs.iter().flatten()).enumerate() {
                let (Some(a), Some(b)) = (a, b) else { continue };
                let is_fixed = a.as_static().is_some() || b.as_static().is_some();
                // the same symbol in other inputs can narrow what is believed
                let contradicts =
                    if is_fixed { a.as_static() != b.as_static() } else { !contains(b.bounds(), a.bounds()) };
                if contradicts {
                    sides.add(at(&format!("{fact}[{position}]")), &text(a), &text(b));
                }
            }
        }
    }
    sides.found
}

/// True when the second range lies within the first.
fn contains(outer: crate::model::Bounds, inner: crate::model::Bounds) -> bool {
    let low = outer.0.is_none_or(|low| inner.0.is_some_and(|n| n >= low));
    let high = outer.1.is_none_or(|high| inner.1.is_some_and(|n| n <= high));
    low && high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DType;

    fn one_input(witness: Witness, symbol: &str, max: i64, dtype: Option<DType>) -> Interface {
        let dim = Dim::Symbol { symbol: symbol.to_owned(), min: Some(2), max: Some(max) };
        let input = TensorSpec { rank: Some(1), shape: Some(vec![Some(dim)]), dtype, ..TensorSpec::default() };
        Interface { witness: Some(witness), input_count: Some(1), inputs: vec![input], ..Interface::default() }
    }

    #[test]
    fn names_of_the_source_stay_where_both_agree() {
        let source = one_input(Witness::Source, "s27", 64, None);
        let code = one_input(Witness::Code, "d0", 64, Some(DType::INT64));
        let (merged, conflicts) = weigh(source, &code, "source-differs-from-code");
        assert!(conflicts.is_empty());
        let input = merged.inputs.first().cloned().unwrap_or_default();
        assert_eq!(input.dtype, Some(DType::INT64));
        let shape: Vec<String> = input.shape.iter().flatten().flatten().map(Dim::to_string).collect();
        assert_eq!(shape, ["s27"]);
    }

    #[test]
    fn code_beats_the_claim_and_the_conflict_names_both() {
        let source = one_input(Witness::Source, "s27", 64, Some(DType::FLOAT32));
        let code = one_input(Witness::Code, "d0", 32, Some(DType::INT64));
        let (merged, conflicts) = weigh(source, &code, "source-differs-from-code");
        let subjects: Vec<&str> = conflicts.iter().map(|c| c.subject.as_str()).collect();
        assert_eq!(subjects, ["inputs[0].dtype", "inputs[0].shape[0]"]);
        let bounds = merged
            .inputs
            .first()
            .and_then(|i| i.shape.clone())
            .map(|s| s.iter().flatten().map(Dim::bounds).collect::<Vec<_>>());
        assert_eq!(bounds, Some(vec![(Some(2), Some(32))]));
    }
}
