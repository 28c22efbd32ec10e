//! The most bytes of buffers that are live at once: what an allocation brings stays until it is freed.

use super::{Bounds, Device, Dim, Expr, Step, SymbolSize};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The peak of a run. Buffers on the model's device count; inputs belong to the caller, outputs stay live.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Peak {
    /// live buffers at the peak; where no moment is the worst for all sizes, the largest of the candidates
    pub buffers: Option<Dim>,
    /// the same with the constants
    pub total: Option<Dim>,
    /// at the largest sizes that the symbols may have; absent when one of them has no upper bound
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<PeakAt>,
    /// buffers of unknown size on that device: with them the peak may be higher
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_counted: Vec<String>,
}

/// The peak in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeakAt {
    /// sizes of the symbols in it; empty when it does not depend on any
    pub sizes: Vec<SymbolSize>,
    /// live buffers
    pub buffers: u64,
    /// with the constants
    pub total: Option<u64>,
    /// position in the list of steps
    pub step: usize,
    /// names of the buffers that are live then
    pub live: Vec<String>,
}

/// A moment that may be the worst.
struct Candidate {
    bytes: Expr,
    step: usize,
}

/// Candidates of which none is the worst for all sizes. Real models have one to three.
const CANDIDATES: usize = 16;
/// Terms of the sum of all live buffers; real models have a handful of distinct sizes.
const TERMS: usize = 64;
/// Parts of the size of one buffer.
const PARTS: usize = 256;
/// Largest number in the size of one buffer; sums of all of them stay within 64 bits.
const LARGEST: i64 = 1 << 46;

/// Works out the peak of complete steps. `bounds` gives those of a symbol.
pub fn peak(
    steps: &[Step],
    device: Option<&Device>,
    constant_bytes: Option<u64>,
    bounds: &dyn Fn(&str) -> Bounds,
) -> Peak {
    let mut peak = Peak::default();
    let mut sizes: BTreeMap<&str, Expr> = BTreeMap::new();
    let mut live = Expr::Int(0);
    let mut front = vec![Candidate { bytes: Expr::Int(0), step: 0 }];
    let mut is_open = false;
    let mut grown: Option<usize> = None;
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Allocate { tensor, bytes, device: on, .. } if is_on(device, on.as_ref()) => {
                match bytes.as_ref().map(Dim::expr).filter(|e| e.nodes() <= PARTS && is_reasonable(e)) {
                    Some(bytes) => {
                        live = live.add(&bytes);
                        if matches!(&live, Expr::Sum(terms) if terms.len() > TERMS) {
                            // a hostile library makes every buffer of another size
                            return peak;
                        }
                        sizes.insert(tensor, bytes);
                        grown = Some(at);
                    }
                    None => peak.not_counted.push(tensor.clone()),
                }
            }
            Step::Free { tensor } => {
                // only what was live before something is freed can be the most
                if let Some(step) = grown.take() {
                    is_open |= !add(&mut front, Candidate { bytes: live.clone(), step }, bounds);
                }
                if let Some(bytes) = sizes.remove(tensor.as_str()) {
                    live = live.sub(&bytes);
                }
            }
            _ => {}
        }
    }
    if let Some(step) = grown {
        is_open |= !add(&mut front, Candidate { bytes: live, step }, bounds);
    }
    peak.largest = largest(steps, device, &front, constant_bytes, bounds).filter(|_| !is_open);
    if !is_open {
        let expr = front.into_iter().map(|c| c.bytes).reduce(|a, b| largest_of(&a, &b)).unwrap_or(Expr::Int(0));
        let dim = |expr: Expr| {
            let (min, max) = expr.range(bounds);
            Dim::from_expr(expr, min, max)
        };
        let constants = constant_bytes.and_then(|n| i64::try_from(n).ok()).filter(|n| *n < LARGEST);
        peak.total = constants.map(|n| dim(plus(&expr, n)));
        peak.buffers = Some(dim(expr));
    }
    peak
}

/// A buffer whose device is not known counts.
fn is_on(model: Option<&Device>, buffer: Option<&Device>) -> bool {
    match (model, buffer) {
        (Some(model), Some(buffer)) => model.kind == buffer.kind,
        _ => true,
    }
}

/// No number of a size is so large that sums of sizes could overflow.
fn is_reasonable(expr: &Expr) -> bool {
    match expr {
        Expr::Int(n) => n.checked_abs().is_some_and(|n| n < LARGEST),
        Expr::Symbol(_) => true,
        Expr::Sum(parts) | Expr::Product(parts) | Expr::Min(parts) | Expr::Max(parts) => {
            parts.iter().all(is_reasonable)
        }
        Expr::FloorDiv(a, b) | Expr::Mod(a, b) => is_reasonable(a) && is_reasonable(b),
    }
}

/// Keeps what may be the worst for some sizes; `false` when there are too many of them.
fn add(front: &mut Vec<Candidate>, new: Candidate, bounds: &dyn Fn(&str) -> Bounds) -> bool {
    let is_above = |a: &Expr, b: &Expr| a.sub(b).range(bounds).0.is_some_and(|least| least >= 0);
    if front.iter().any(|known| is_above(&known.bytes, &new.bytes)) {
        return true;
    }
    front.retain(|known| !is_above(&new.bytes, &known.bytes));
    if front.len() >= CANDIDATES {
        return false;
    }
    front.push(new);
    true
}

/// `max(a, b)`, without one `max` inside the other.
fn largest_of(a: &Expr, b: &Expr) -> Expr {
    let parts = |e: &Expr| match e {
        Expr::Max(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut all = [parts(a), parts(b)].concat();
    all.sort();
    all.dedup();
    if all.len() == 1 { all.remove(0) } else { Expr::Max(all) }
}

/// `max(a, b) + n` as `max(a + n, b + n)`, which is easier to read.
fn plus(expr: &Expr, n: i64) -> Expr {
    match expr {
        Expr::Max(parts) => Expr::Max(parts.iter().map(|part| part.add(&Expr::Int(n))).collect()),
        other => other.add(&Expr::Int(n)),
    }
}

/// The worst candidate when every symbol has its largest value.
fn largest(
    steps: &[Step],
    device: Option<&Device>,
    front: &[Candidate],
    constant_bytes: Option<u64>,
    bounds: &dyn Fn(&str) -> Bounds,
) -> Option<PeakAt> {
    let mut names: Vec<&str> = front.iter().flat_map(|c| c.bytes.symbols()).collect();
    names.sort_unstable();
    names.dedup();
    let size = |name: &&str| Some(SymbolSize { symbol: (*name).to_owned(), size: bounds(name).1? });
    let sizes = names.iter().map(size).collect::<Option<Vec<_>>>()?;
    let value = |name: &str| sizes.iter().find(|s| s.symbol == name).map(|s| s.size);
    let mut worst: Option<(i64, usize)> = None;
    for candidate in front {
        let bytes = candidate.bytes.eval(&value)?;
        if worst.is_none_or(|(most, _)| bytes > most) {
            worst = Some((bytes, candidate.step));
        }
    }
    let (bytes, step) = worst?;
    let buffers = u64::try_from(bytes).ok()?;
    let total = constant_bytes.and_then(|constants| buffers.checked_add(constants));
    Some(PeakAt { sizes, buffers, total, step, live: live_at(steps, device, step) })
}

/// Buffers that are live after a step.
fn live_at(steps: &[Step], device: Option<&Device>, last: usize) -> Vec<String> {
    let mut live: Vec<&str> = Vec::new();
    for step in steps.iter().take(last.saturating_add(1)) {
        match step {
            Step::Allocate { tensor, device: on, .. } if is_on(device, on.as_ref()) => live.push(tensor),
            Step::Free { tensor } => live.retain(|name| name != tensor),
            _ => {}
        }
    }
    live.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DeviceKind;

    fn allocate_on(tensor: &str, bytes: Option<Expr>, device: DeviceKind) -> Step {
        Step::Allocate {
            tensor: tensor.to_owned(),
            dtype: None,
            shape: None,
            bytes: bytes.map(|b| Dim::from_expr(b, None, None)),
            device: Some(Device::new(device)),
            operator: None,
        }
    }
    fn allocate(tensor: &str, bytes: Expr) -> Step {
        allocate_on(tensor, Some(bytes), DeviceKind::Cuda)
    }
    fn free(tensor: &str) -> Step {
        Step::Free { tensor: tensor.to_owned() }
    }
    fn n(bytes: i64) -> Expr {
        Expr::Int(bytes)
    }
    fn s(factor: i64) -> Expr {
        Expr::symbol("s0").mul(&n(factor))
    }
    /// s0 lies within 2..100
    fn of(steps: &[Step]) -> Peak {
        let device = Device::new(DeviceKind::Cuda);
        peak(steps, Some(&device), Some(64), &|_| (Some(2), Some(100)))
    }
    fn text(peak: &Peak) -> String {
        peak.buffers.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn live_follows_allocations_and_frees() {
        let steps = [allocate("a", n(10)), allocate("b", n(20)), free("a"), allocate("c", n(5)), free("b"), free("c")];
        let peak = of(&steps);
        assert_eq!((text(&peak).as_str(), peak.total), ("30", Some(Dim::fixed(94))));
        let largest = peak.largest.unwrap();
        assert_eq!((largest.buffers, largest.total, largest.step, largest.sizes.len()), (30, Some(94), 1, 0));
        assert_eq!(largest.live, ["a", "b"]);
    }

    #[test]
    fn a_moment_that_is_worst_for_all_sizes_is_the_peak() {
        let steps = [allocate("a", s(4)), free("a"), allocate("b", s(8)), free("b")];
        assert_eq!(text(&of(&steps)), "8*s0");
        // 8*s0 is at least 16
        let steps = [allocate("a", n(12)), free("a"), allocate("b", s(8))];
        let peak = of(&steps);
        assert_eq!(text(&peak), "8*s0");
        let largest = peak.largest.unwrap();
        assert_eq!((largest.buffers, largest.sizes.first().map(|s| s.size)), (800, Some(100)));
    }

    #[test]
    fn where_it_depends_on_the_sizes_both_stand() {
        let steps = [allocate("a", n(100)), free("a"), allocate("b", s(8)), free("b"), allocate("c", s(4))];
        let peak = of(&steps);
        assert_eq!(text(&peak), "max(100, 8*s0)");
        assert_eq!(peak.total.as_ref().map(ToString::to_string).unwrap(), "max(164, 8*s0 + 64)");
        assert_eq!(peak.buffers.unwrap().bounds(), (Some(100), Some(800)));
    }

    #[test]
    fn other_devices_and_unknown_sizes_are_not_counted() {
        let steps = [
            allocate_on("host", Some(n(1000)), DeviceKind::Cpu),
            allocate_on("result", None, DeviceKind::Cuda),
            allocate_on("huge", Some(n(i64::MAX)), DeviceKind::Cuda),
            allocate("a", n(8)),
        ];
        let peak = of(&steps);
        assert_eq!(text(&peak), "8");
        assert_eq!(peak.not_counted, ["result", "huge"]);
    }

    #[test]
    fn without_an_upper_bound_there_is_no_number() {
        let steps = [allocate("a", s(4))];
        let peak = peak(&steps, None, None, &|_| (Some(0), None));
        assert_eq!((text(&peak).as_str(), &peak.largest, &peak.total), ("4*s0", &None, &None));
    }

    #[test]
    fn nothing_allocated_is_nothing() {
        let peak = of(&[free("a")]);
        assert_eq!((text(&peak).as_str(), peak.largest.map(|l| l.buffers)), ("0", Some(0)));
    }

    #[test]
    fn very_many_sizes_are_not_claimed() {
        let steps: Vec<Step> = (0..100).map(|k| allocate(&format!("b{k}"), Expr::symbol(format!("s{k}")))).collect();
        let peak = of(&steps);
        assert_eq!((peak.buffers, peak.total, peak.largest), (None, None, None));
    }

    #[test]
    fn very_many_candidates_are_not_claimed() {
        let steps: Vec<Step> = (0..100)
            .flat_map(|k| {
                let name = format!("b{k}");
                // each is the worst at s0 = k: 2*k*s0 + 20000 - k^2
                [allocate(&name, s(2 * k).add(&n(20_000 - k * k))), free(&name)]
            })
            .collect();
        let peak = of(&steps);
        assert_eq!((peak.buffers, peak.largest), (None, None));
    }
}
