//! One pass over the code in address order: where check messages are mentioned, and all conditional jumps.

use super::code::Code;
use super::decode::{Callee, Condition, Decoder, Flags, Flow, Registers, Step};
use super::message::{self, CheckKind};
use crate::error::{Error, Result};
use crate::limits;

/// Environment variable that switches the checks on (2.7+; `_check_aoti_runtime_check_inputs_env`).
const ENVIRONMENT: &[u8] = b"AOTI_RUNTIME_CHECK_INPUTS\0";

/// Instructions between a comparison, or a call, and the jump that depends on it.
const COMPARE_DISTANCE: usize = 6;
/// The dtype is asked for before the comparison, with some moves between.
const CALL_DISTANCE: usize = 16;

/// A conditional jump and what it depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Branch {
    pub(super) target: u64,
    pub(super) condition: Condition,
    pub(super) compares: Option<i64>,
    /// the last function called before it
    pub(super) callee: Option<Callee>,
}

/// A place that takes the address of a check message.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    pub(super) input: usize,
    pub(super) kind: CheckKind,
    /// of the text
    pub(super) text: u64,
    /// of the instruction
    pub(super) at: u64,
    /// of the instruction after it
    pub(super) next: u64,
    /// first instruction of the straight run of code that it stands in
    pub(super) run: u64,
    /// the conditional jump that falls through into that run
    pub(super) fallen_from: Option<Branch>,
    /// registers after it
    pub(super) registers: Registers,
}

/// Result of the pass.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    pub(super) mentions: Vec<Mention>,
    pub(super) branches: Vec<Branch>,
    /// the environment variable is mentioned
    pub(super) has_environment: bool,
    /// instructions decoded
    pub(super) instructions: u64,
}

/// What the pass remembers of the instructions just read.
#[derive(Default)]
struct Recent {
    compare: Option<(usize, i64)>,
    callee: Option<(usize, Callee)>,
    run: Option<u64>,
    fallen_from: Option<Branch>,
}

pub(super) fn sweep(code: &Code<'_>) -> Result<Sweep> {
    go_on(code, Sweep::default())
}

/// Adds what the code holds to what is known.
pub(super) fn go_on(code: &Code<'_>, mut sweep: Sweep) -> Result<Sweep> {
    for part in &code.executable {
        let mut registers = Registers::default();
        let mut recent = Recent { run: Some(part.address), ..Recent::default() };
        let mut decoder = Decoder::new(code.processor, part.bytes, part.address, part.address);
        let mut count = 0;
        while let Some(step) = decoder.step(&mut registers) {
            count += 1;
            sweep.look(code, &step, &registers, &recent);
            sweep.follow(&step, count, &mut recent);
        }
        sweep.instructions = sweep.instructions.saturating_add(count as u64);
    }
    sweep.branches.sort_by_key(|branch| branch.target);
    sweep.mentions = all_of(sweep.mentions)?;
    Ok(sweep)
}

/// The list, unless it goes beyond [`limits::CHECKS`], where its end is not kept.
pub(super) fn all_of<T>(messages: Vec<T>) -> Result<Vec<T>> {
    if messages.len() > limits::CHECKS {
        return Err(Error::limit(format!("more than {} check messages", limits::CHECKS)));
    }
    Ok(messages)
}

impl Sweep {
    /// Notes a mention of a message.
    fn look(&mut self, code: &Code<'_>, step: &Step, registers: &Registers, recent: &Recent) {
        let Some(text) = step.forms else { return };
        let bytes = code.text(text);
        if bytes.starts_with(ENVIRONMENT) {
            self.has_environment = true;
        }
        let is_copy = self.mentions.last().is_some_and(|last| last.text == text);
        if !bytes.starts_with(message::HANDLES) || is_copy || self.mentions.len() > limits::CHECKS {
            return;
        }
        if let Some((input, kind)) = message::parse_message(bytes) {
            self.mentions.push(Mention {
                input,
                kind,
                text,
                at: step.address,
                next: step.address.wrapping_add(step.length),
                run: recent.run.unwrap_or(step.address),
                fallen_from: recent.fallen_from,
                registers: *registers,
            });
        }
    }

    /// Notes a conditional jump, and what later ones may depend on.
    fn follow(&mut self, step: &Step, count: usize, recent: &mut Recent) {
        match step.flags {
            Flags::Kept => {}
            Flags::Compared(value) => recent.compare = Some((count, value)),
            Flags::Changed => recent.compare = None,
        }
        let next = Some(step.address.wrapping_add(step.length));
        match step.flow {
            Flow::Next => {}
            Flow::Call(callee) => {
                recent.callee = Some((count, callee));
                recent.compare = None;
            }
            Flow::Jump(_) | Flow::Stop => *recent = Recent { run: next, ..Recent::default() },
            Flow::Branch { target, condition, compares } => {
                let near = |at: usize, distance| count.saturating_sub(at) <= distance;
                let before = recent.compare.filter(|(at, _)| near(*at, COMPARE_DISTANCE)).map(|(_, value)| value);
                let callee = recent.callee.filter(|(at, _)| near(*at, CALL_DISTANCE)).map(|(_, callee)| callee);
                let branch = Branch { target, condition, compares: compares.or(before), callee };
                self.branches.push(branch);
                recent.run = next;
                recent.fallen_from = Some(branch);
            }
        }
    }
}
