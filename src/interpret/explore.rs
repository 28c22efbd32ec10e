//! Branches on symbols: which side does the library accept?
//!
//! At a jump whose condition depends on symbols the side that looks like a failed check is tried first (a *probe*):
//! if it ends in a throw, the other side is *required* and the relation is a fact. Only when neither side throws is
//! the branch *open*: the run goes on along the current assignment and can come back.
//! A probe follows further branches on the same symbols by their values, assumes equalities that a check would
//! demand (`assert_size_stride` collects all mismatches before it throws), and gives up after a while: then the side
//! is taken to go on.

mod normal;

use normal::is_disjoint;
pub use normal::{Normal, bounds, normal};

use super::cpu::{Condition, Frame, Registers};
use super::machine::{Exit, Machine, Stop};
use super::tensors::Kind;
use super::value::{Expressions, Node, Operation, Origin, Property, Relation, Shadow, Value};
use crate::model::Bounds;
use std::collections::{BTreeMap, BTreeSet};

/// How branches on symbols are decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// by the current values
    #[default]
    Follow,
    /// both sides matter
    Explore,
    /// inside a probe
    Probe,
}

/// A relation that holds on the path of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// address of the jump
    pub at: u64,
    /// how the sides compare
    pub relation: Relation,
    /// left side
    pub left: Shadow,
    /// right side
    pub right: Shadow,
    /// the other side throws
    pub is_required: bool,
    /// no assignment was found under which it holds: the file or the model contradicts it
    pub is_violated: bool,
    /// text that the other side was about to throw
    pub message: String,
}

struct Snapshot {
    registers: Registers,
    frames: Vec<Frame>,
    memory: usize,
    assignment: usize,
    constraints: usize,
    records: usize,
    tensors: usize,
    messages: usize,
}

/// A branch of which the other side is still to be tried.
struct Open {
    snapshot: Snapshot,
    condition: Condition,
    outcome: bool,
    at: u64,
    taken: u64,
    otherwise: u64,
    pinned: BTreeSet<Shadow>,
    substitutions: BTreeMap<Shadow, Shadow>,
    ranges: BTreeMap<Shadow, Bounds>,
}

/// State of the exploration.
#[derive(Default)]
pub struct Explorer {
    /// how branches are decided
    pub mode: Mode,
    /// relations in the order in which the path met them
    pub constraints: Vec<Constraint>,
    /// symbols that a required equality fixed
    pinned: BTreeSet<Shadow>,
    /// symbols that a required equality expressed by others
    pub substitutions: BTreeMap<Shadow, Shadow>,
    /// values that required relations leave to a symbol
    ranges: BTreeMap<Shadow, Bounds>,
    open: Vec<Open>,
    /// jumps of which a side was seen to throw
    checks: BTreeSet<(u64, bool)>,
    probe_symbols: Vec<Shadow>,
    probe_branches: u32,
}

/// What became of a probe.
enum Probed {
    Throws(String),
    GoesOn,
}

/// Instructions of one probe. A throw with an unoptimised static C++ library takes some 20,000.
const PROBE_INSTRUCTIONS: u64 = 60_000;
/// Branches on other symbols that a probe passes; `assert_size_stride` of eight dims has some twenty.
const PROBE_BRANCHES: u32 = 40;
/// Undo log beyond which open branches are given up.
const OPEN_LOG_BYTES: usize = 4 << 20;
/// Open branches that can be returned to.
const MOST_OPEN: usize = 64;

impl Machine<'_> {
    /// Answers a branch whose condition depends on symbols.
    pub fn branch(&mut self, condition: Condition, at: u64, taken: u64, otherwise: u64) -> Result<(), Exit> {
        let outcome = condition.relation.holds(condition.left.bits as i64, condition.right.bits as i64);
        let side = |outcome: bool| if outcome { taken } else { otherwise };
        let e = &mut self.bus.expressions;
        let (left, right) = (e.of(condition.left, 8), e.of(condition.right, 8));
        let form = normal(e, condition.relation, left, right);
        let mut symbols = Vec::new();
        form.terms.iter().for_each(|t| e.symbols(t.0, &mut symbols));
        if symbols.is_empty() || self.explorer.mode == Mode::Follow {
            self.cpu.set_pc(side(outcome));
            return Ok(());
        }
        if self.explorer.mode == Mode::Probe {
            return self.branch_in_probe(&form, &symbols, outcome, taken, otherwise);
        }
        let demands = self.demands(&form);
        let known = if is_emptiness(&self.bus.expressions, &form) { Some(outcome) } else { self.decided(&form) };
        if let Some(known) = known {
            self.cpu.set_pc(side(known));
            return Ok(());
        }

        if self.bus.memory.log_bytes() > OPEN_LOG_BYTES {
            self.explorer.open.clear(); // too far back to return to
            self.bus.memory.set_logging(false);
        }
        // the side that looks like a failed check comes first: "not equal", or what the first guess is not
        let suspect = match form.relation {
            Relation::Equal => false,
            Relation::NotEqual => true,
            _ => !outcome,
        };
        // a check that is the same code for all tensors (`assert_size_stride`) was seen to throw; what it demands of an
        // operator's result would be taken as demanded anyway
        let is_known_check = demands && self.explorer.checks.contains(&(at, suspect)) && !self.is_about_input(&form);
        if is_known_check {
            self.take(&condition, at, !suspect, true, String::new());
            self.cpu.set_pc(side(!suspect));
            return Ok(());
        }
        for failing in [suspect, !suspect] {
            // what a failed check of the run says is of no interest
            if self.bus.skips_kernels && self.only_gives_up(side(failing)) {
                self.take(&condition, at, !failing, true, String::new());
                self.cpu.set_pc(side(!failing));
                return Ok(());
            }
            let snapshot = self.snapshot();
            if let Probed::Throws(message) = self.probe(&form, symbols.clone(), failing, side(failing))? {
                self.restore(&snapshot);
                self.explorer.checks.insert((at, failing));
                self.take(&condition, at, !failing, true, message);
                self.cpu.set_pc(side(!failing));
                return Ok(());
            }
            self.restore(&snapshot);
        }
        if self.explorer.open.len() < MOST_OPEN {
            let snapshot = self.snapshot();
            let (pinned, substitutions) = (self.explorer.pinned.clone(), self.explorer.substitutions.clone());
            let ranges = self.explorer.ranges.clone();
            self.explorer.open.push(Open {
                snapshot,
                condition,
                outcome,
                at,
                taken,
                otherwise,
                pinned,
                substitutions,
                ranges,
            });
        }
        // what an assertion demands is taken as demanded, although it looks further before it throws (a stride does
        // not matter when the dim turns out to have one element)
        let outcome = if demands { form.relation == Relation::Equal } else { outcome };
        self.take(&condition, at, outcome, demands, String::new());
        self.cpu.set_pc(side(outcome));
        Ok(())
    }

    /// The outcome, when what is required already decides it.
    fn decided(&mut self, form: &Normal) -> Option<bool> {
        if let [(symbol, factor)] = form.terms.as_slice()
            && let Some(range) = self.explorer.ranges.get(symbol)
        {
            let with = |relation| bounds(&Normal { terms: Vec::new(), constant: form.constant, relation }, *factor);
            if with(form.relation).is_some_and(|wanted| is_disjoint(*range, wanted)) {
                return Some(false);
            }
            if with(form.relation.negated()).is_some_and(|wanted| is_disjoint(*range, wanted)) {
                return Some(true);
            }
        }
        let e = &mut self.bus.expressions;
        let mut symbols = Vec::new();
        form.terms.iter().for_each(|t| e.symbols(t.0, &mut symbols));
        if !symbols.iter().all(|s| self.explorer.pinned.contains(s)) {
            return None;
        }
        // pinned to numbers: the value decides. Pinned to expressions: only if these cancel out.
        let mut sum = e.constant(form.constant);
        for (atom, factor) in &form.terms {
            let atom = self.explorer.substitutions.get(atom).copied().unwrap_or(*atom);
            sum = e.add_scaled(sum, atom, *factor);
        }
        let mut left = Vec::new();
        e.symbols(sum, &mut left);
        if left.iter().any(|s| !self.explorer.pinned.contains(s) || self.explorer.substitutions.contains_key(s)) {
            return None;
        }
        let value = e.eval(sum);
        Some(form.relation.holds(value, 0))
    }

    fn branch_in_probe(
        &mut self,
        form: &Normal,
        symbols: &[Shadow],
        outcome: bool,
        taken: u64,
        otherwise: u64,
    ) -> Result<(), Exit> {
        let mut outcome = outcome;
        let is_related = symbols.iter().all(|s| self.explorer.probe_symbols.contains(s));
        if !is_related {
            self.explorer.probe_branches += 1;
            if self.explorer.probe_branches > PROBE_BRANCHES {
                return Err(probe_goes_on());
            }
            match self.decided(form) {
                Some(known) => outcome = known,
                // further checks of the same kind are taken to hold
                None if self.demands(form) => {
                    outcome = form.relation == Relation::Equal;
                    self.make(form, outcome);
                    self.explorer.probe_symbols.extend_from_slice(symbols);
                }
                // it may throw for this reason as well: nothing is known about the side as such
                None => return Err(probe_goes_on()),
            }
        }
        self.cpu.set_pc(if outcome { taken } else { otherwise });
        Ok(())
    }

    /// An equality that a check demands: of a rank or type, of a size or stride with an expression or a number.
    /// Of an input's size, equality with 0 or 1 is rather a question (a dim of one element needs no stride).
    fn demands(&self, form: &Normal) -> bool {
        if !matches!(form.relation, Relation::Equal | Relation::NotEqual) {
            return false;
        }
        form.terms.iter().any(|(atom, factor)| {
            let Some(Origin::Tensor(id, property)) = self.bus.expressions.origin(*atom) else { return false };
            let is_alone = form.terms.len() == 1;
            let number = form.constant.wrapping_neg().wrapping_mul(*factor);
            let is_input = self.tensors.get(id).is_some_and(|t| matches!(t.kind, Kind::Input(_)));
            match property {
                Property::Rank | Property::DType | Property::Device => is_alone,
                Property::Size(_) => !is_alone || number >= if is_input { 2 } else { 0 },
                Property::Stride(_) => !is_alone || number >= 0,
                _ => false,
            }
        })
    }

    /// True when a relation is about an input of the model, whose checks are facts of their own.
    fn is_about_input(&self, form: &Normal) -> bool {
        form.terms.iter().any(|(atom, _)| match self.bus.expressions.origin(*atom) {
            Some(Origin::Tensor(id, _)) => self.tensors.get(id).is_none_or(|t| matches!(t.kind, Kind::Input(_))),
            _ => true,
        })
    }

    /// Runs one side until it throws, or until it is clear that it goes on.
    fn probe(&mut self, form: &Normal, symbols: Vec<Shadow>, outcome: bool, pc: u64) -> Result<Probed, Exit> {
        let outer = std::mem::replace(&mut self.explorer.mode, Mode::Probe);
        let outer_symbols = std::mem::replace(&mut self.explorer.probe_symbols, symbols);
        self.explorer.probe_branches = 0;
        let first_message = self.messages.len();
        self.make(form, outcome);
        self.cpu.set_pc(pc);
        let total = self.bus.remaining;
        self.bus.remaining = total.min(PROBE_INSTRUCTIONS);
        let allowance = self.bus.remaining;
        let result = loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(_)) => break Ok(Probed::GoesOn),
                Err(Exit::Throw(message)) => {
                    let text: String = self.messages.get(first_message..).unwrap_or_default().concat();
                    break Ok(Probed::Throws(if text.is_empty() { message } else { text }));
                }
                // what a probe cannot do is no reason to end the run: the side is not known to throw
                Err(Exit::Stop(Stop::Memory | Stop::Expressions | Stop::CodeWritten(_))) => {
                    break Err(Exit::Stop(Stop::Memory));
                }
                Err(Exit::Stop(_)) => {
                    self.bus.memory.fault = None;
                    break Ok(Probed::GoesOn);
                }
            }
        };
        let used = allowance.saturating_sub(self.bus.remaining);
        self.bus.remaining = total.saturating_sub(used);
        self.explorer.mode = outer;
        self.explorer.probe_symbols = outer_symbols;
        result
    }

    /// Goes on along one side: assigns so that it holds and notes the relation.
    fn take(&mut self, condition: &Condition, at: u64, outcome: bool, is_required: bool, message: String) {
        let e = &mut self.bus.expressions;
        let (left, right) = (e.of(condition.left, 8), e.of(condition.right, 8));
        let relation = if outcome { condition.relation } else { condition.relation.negated() };
        let form = normal(e, relation, left, right);
        let holds = self.make(&form, true);
        // behind an open branch a bound may hold for this path alone
        let is_required = is_required && (self.explorer.open.is_empty() || form.relation == Relation::Equal);
        if is_required && form.relation == Relation::Equal {
            self.pin(&form);
        }
        if let ([(symbol, factor)], true) = (form.terms.as_slice(), is_required && holds)
            && let Some((min, max)) = bounds(&form, *factor)
        {
            let range = self.explorer.ranges.entry(*symbol).or_default();
            range.0 = range.0.max(min);
            range.1 = range.1.into_iter().chain(max).min();
        }
        self.explorer.constraints.push(Constraint {
            at,
            relation,
            left,
            right,
            is_required,
            is_violated: !holds,
            message,
        });
    }

    /// Remembers that an equality fixes a symbol.
    fn pin(&mut self, form: &Normal) {
        let e = &mut self.bus.expressions;
        if let [(symbol, _)] = form.terms.as_slice() {
            if e.origin(*symbol).is_some() {
                self.explorer.pinned.insert(*symbol);
            }
            return;
        }
        let Some((symbol, factor)) = free_symbol(e, &self.explorer, form) else { return };
        // symbol = -(rest) / factor
        let mut rest = e.constant(form.constant.wrapping_mul(-factor));
        for (atom, k) in form.terms.iter().filter(|t| t.0 != symbol) {
            let atom = self.explorer.substitutions.get(atom).copied().unwrap_or(*atom);
            rest = e.add_scaled(rest, atom, k.wrapping_mul(-factor));
        }
        self.explorer.pinned.insert(symbol);
        self.explorer.substitutions.insert(symbol, rest);
    }

    /// Changes the assignment so that a relation has the wanted outcome. False when no way was found.
    fn make(&mut self, form: &Normal, outcome: bool) -> bool {
        let e = &mut self.bus.expressions;
        let relation = if outcome { form.relation } else { form.relation.negated() };
        let sum = form
            .terms
            .iter()
            .fold(form.constant, |sum, (atom, factor)| sum.wrapping_add(factor.wrapping_mul(e.eval(*atom))));
        if relation.holds(sum, 0) {
            return true;
        }
        let Some((symbol, factor)) = free_symbol(e, &self.explorer, form) else { return false };
        let now = e.eval(symbol);
        // factor is 1 or -1 unless the symbol is alone; solve factor*x + rest REL 0 for the nearest x
        let rest = sum.wrapping_sub(factor.wrapping_mul(now));
        let exact = rest.wrapping_neg().div_euclid(factor);
        let candidates = [exact, exact.wrapping_add(1), exact.wrapping_sub(1)];
        let fits = |x: i64| relation.holds(factor.wrapping_mul(x).wrapping_add(rest), 0);
        let Some(value) = candidates.into_iter().find(|x| fits(*x)) else { return false };
        self.assign(symbol, value);
        true
    }

    /// Gives a symbol another value.
    pub fn assign(&mut self, symbol: Shadow, value: i64) {
        self.bus.expressions.assign(symbol, value);
        self.cpu.refresh(&mut self.bus.expressions);
        for frame in &mut self.bus.frames {
            for saved in frame.preserved.iter_mut().flat_map(|p| p.iter_mut()) {
                if let Some(shadow) = saved.shadow {
                    saved.bits = self.bus.expressions.eval(shadow) as u64;
                }
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.bus.memory.set_logging(true);
        Snapshot {
            registers: self.registers(),
            frames: self.bus.frames.clone(),
            memory: self.bus.memory.point(),
            assignment: self.bus.expressions.point(),
            constraints: self.explorer.constraints.len(),
            records: self.recorder.point(),
            tensors: self.tensors.len(),
            messages: self.messages.len(),
        }
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.bus.memory.undo(snapshot.memory);
        self.bus.expressions.undo(snapshot.assignment);
        self.cpu.restore(&snapshot.registers);
        self.bus.frames.clone_from(&snapshot.frames);
        self.explorer.constraints.truncate(snapshot.constraints);
        self.recorder.undo(snapshot.records);
        self.tensors.truncate(snapshot.tensors);
        self.messages.truncate(snapshot.messages);
        if self.explorer.open.is_empty() {
            self.bus.memory.set_logging(false);
        }
    }

    /// After a throw: returns to the last open branch and takes its other side. False when there is none.
    pub fn back_to_open_branch(&mut self) -> bool {
        if self.explorer.mode != Mode::Explore {
            return false;
        }
        let Some(open) = self.explorer.open.pop() else { return false };
        let message = self.messages.get(open.snapshot.messages..).unwrap_or_default().concat();
        self.restore(&open.snapshot);
        self.explorer.pinned = open.pinned;
        self.explorer.substitutions = open.substitutions;
        self.explorer.ranges = open.ranges;
        let outcome = !open.outcome;
        self.take(&open.condition, open.at, outcome, true, message);
        self.cpu.set_pc(if outcome { open.taken } else { open.otherwise });
        true
    }

    /// Relations that could have been the other way round without a throw, each branch once.
    pub fn open_constraints(&self, from: usize) -> Vec<Constraint> {
        let mut seen = BTreeSet::new();
        let constraints = self.explorer.constraints.get(from..).unwrap_or_default();
        constraints.iter().filter(|c| !c.is_required && seen.insert((c.at, c.left, c.right))).cloned().collect()
    }
    /// Arranges that the next run takes the other side of an open branch. False when no way was found.
    pub fn turn(&mut self, constraint: &Constraint) -> bool {
        let form = normal(&mut self.bus.expressions, constraint.relation, constraint.left, constraint.right);
        let mut symbols = Vec::new();
        form.terms.iter().for_each(|t| self.bus.expressions.symbols(t.0, &mut symbols));
        let is_item = |s: &Shadow| matches!(self.bus.expressions.origin(*s), Some(Origin::Tensor(_, Property::Item)));
        if symbols.iter().any(is_item) {
            // the tensor will be another one, with a value of its own
            self.host.other_items = true;
            return true;
        }
        self.make(&form, false)
    }

    /// Starts or ends an exploration; open branches and the undo log are forgotten.
    pub fn set_mode(&mut self, mode: Mode) {
        self.explorer.mode = mode;
        self.explorer.open.clear();
        self.bus.memory.set_logging(false);
    }
}

/// Ends a probe whose side goes on.
fn probe_goes_on() -> Exit {
    Exit::Stop(Stop::Budget)
}

/// A symbol that may be changed to make a relation hold: not fixed, with a factor that divides, the last one.
fn free_symbol(e: &Expressions, explorer: &Explorer, form: &Normal) -> Option<(Shadow, i64)> {
    let is_alone = form.terms.len() == 1;
    form.terms
        .iter()
        .filter(|(atom, factor)| {
            e.origin(*atom).is_some() && !explorer.pinned.contains(atom) && (is_alone || matches!(factor, 1 | -1))
        })
        .max_by_key(|(atom, _)| e.origin(*atom))
        .copied()
}

/// The question whether there is anything to do: a tensor without elements, a launch without blocks. Never a check.
fn is_emptiness(e: &Expressions, form: &Normal) -> bool {
    match form.terms.as_slice() {
        [(atom, _)] if form.constant == 0 => match e.node(*atom) {
            Node::Symbol(Origin::Tensor(_, Property::Elements)) => true,
            Node::Binary(Operation::Divide | Operation::ShiftRight | Operation::ShiftRightSigned, ..) => {
                matches!(form.relation, Relation::Equal | Relation::NotEqual)
            }
            _ => false,
        },
        _ => false,
    }
}

/// A value that is a symbol.
pub fn symbolic(e: &mut Expressions, origin: Origin, initial: i64) -> Value {
    let shadow = e.symbol(origin, initial);
    Value { bits: e.eval(shadow) as u64, shadow: Some(shadow) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_round_inwards() {
        let form = |relation, constant| Normal { terms: Vec::new(), constant, relation };
        assert_eq!(bounds(&form(Relation::Greater, -1), 1), Some((Some(2), None)));
        assert_eq!(bounds(&form(Relation::LessEqual, -1024), 1), Some((None, Some(1024))));
        assert_eq!(bounds(&form(Relation::GreaterEqual, -7), 2), Some((Some(4), None)));
        assert_eq!(bounds(&form(Relation::Less, 7), -2), Some((Some(4), None)));
        assert_eq!(bounds(&form(Relation::NotEqual, 0), 1), None);
        assert!(is_disjoint((Some(2), Some(1024)), (None, Some(1))));
        assert!(!is_disjoint((Some(2), None), (None, Some(2))));
    }
}
