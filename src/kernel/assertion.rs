//! Assertions in PTX, and which kernel parameter an index is compared with.
//!
//! `tl.device_assert((0 <= i) & (i < bound) | ~mask, text)` becomes a block that calls `__assertfail` with
//! the text, entered when `mask & ((i < 0) | (i >= bound))`. Going back from the branch into that block
//! over the predicates to the compare of the index that is also compared with 0 finds the bound, and going
//! back from the bound finds the parameter. Masks are compares too; they lack the partner with 0.

use super::sections::c_text;
use crate::error::{Error, Result};
use crate::limits;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Registers followed back, or lines gone up, from one assertion; real kernels need some dozen.
const STEPS: usize = 4_096;
/// Places looked at that write one register; loops and branches make a handful.
const WRITERS: usize = 64;

/// A text that a kernel prints before it traps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// `index out of bounds: 0 <= tmp14 < ks0`
    pub text: String,
    /// where its bound comes from, if the PTX shows it
    pub bound: Option<Origin>,
}

/// Where a bound comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// kernel parameters that it is computed from, from 0
    pub parameters: Vec<u32>,
    /// it is the one parameter, unchanged but for its width
    pub is_parameter: bool,
    /// it is a number
    pub constant: Option<i64>,
}

/// An image with some of its assertions would pass for one with all of them.
pub fn all_of(count: usize) -> Result<()> {
    if count > limits::ASSERTIONS {
        return Err(Error::limit(format!("more than {} assertions", limits::ASSERTIONS)));
    }
    Ok(())
}

/// All assertions of a PTX text, in order of their calls.
///
/// # Errors
/// More messages than [`limits::ASSERTIONS`].
pub fn in_ptx(text: &str) -> Result<Vec<Assertion>> {
    if memchr::memmem::find(text.as_bytes(), b"assertMessage").is_none() {
        return Ok(Vec::new());
    }
    let messages = messages(text)?;
    let mut found: Vec<Assertion> = Vec::new();
    for kernel in kernels(text) {
        let code = Code::read(kernel);
        for (line, name) in code.assertion_calls() {
            let Some(message) = messages.get(name) else { continue };
            let bound = code.bound(line);
            match found.iter_mut().find(|a| a.text == *message) {
                Some(known) if known.bound.is_none() => known.bound = bound,
                Some(_) => {}
                None => found.push(Assertion { text: message.clone(), bound }),
            }
        }
    }
    // a message without a call that could be followed is still an assertion
    let called: HashSet<&str> = found.iter().map(|a| a.text.as_str()).collect();
    let rest: BTreeSet<&String> = messages.values().filter(|m| !called.contains(m.as_str())).collect();
    let rest: Vec<Assertion> = rest.into_iter().map(|text| Assertion { text: text.clone(), bound: None }).collect();
    found.extend(rest);
    Ok(found)
}

/// `.global .align 1 .b8 assertMessage_0[38] = {105, 110, …};`
fn messages(text: &str) -> Result<HashMap<&str, String>> {
    let mut messages = HashMap::new();
    for line in text.lines().filter(|l| l.contains(" assertMessage")) {
        let Some((declared, values)) = line.split_once('=') else { continue };
        let Some(name) = declared.split_whitespace().last().and_then(|w| w.split('[').next()) else { continue };
        let bytes: Option<Vec<u8>> =
            values.trim().trim_matches(['{', '}', ';']).split(',').map(|n| n.trim().parse().ok()).collect();
        if let Some(bytes) = bytes {
            messages.insert(name, c_text(&bytes));
            all_of(messages.len())?;
        }
    }
    Ok(messages)
}

/// The parts of a text from one `.entry` or `.func` body to the next, without the tables for debuggers at the end, which are
/// longer than all code.
fn kernels(text: &str) -> impl Iterator<Item = &str> {
    let end = memchr::memmem::find(text.as_bytes(), b".section\t.debug_");
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).split(".entry ").skip(1)
}

/// One instruction: `@%p1 setp.lt.s32 %p2, %r7, %r6;`
#[derive(Debug, Clone, Copy)]
struct Instruction<'a> {
    /// `%p1` or `!%p1`
    guard: Option<&'a str>,
    opcode: &'a str,
    operands: &'a str,
}

impl<'a> Instruction<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.split("//").next()?.trim().trim_start_matches("{ ");
        let line = line.split(';').next()?.trim();
        let (guard, line) = match line.strip_prefix('@') {
            Some(rest) => rest.split_once(char::is_whitespace).map(|(g, l)| (Some(g), l.trim()))?,
            None => (None, line),
        };
        let (opcode, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        (!opcode.is_empty() && !opcode.starts_with(['.', '$', '}', '{'])).then_some(Self {
            guard,
            opcode,
            operands: operands.trim(),
        })
    }
    /// Operands one by one, without braces.
    fn list(&self) -> impl Iterator<Item = &'a str> {
        self.operands.split(',').map(|o| o.trim().trim_matches(['{', '}', ' ']))
    }
    fn sources(&self) -> impl Iterator<Item = &'a str> {
        self.list().skip(1)
    }
    fn is(&self, family: &str) -> bool {
        self.opcode.split('.').next() == Some(family)
    }
}

struct Code<'a> {
    lines: Vec<&'a str>,
    instructions: Vec<Option<Instruction<'a>>>,
    /// where each register is written; loops write some twice
    writers: HashMap<&'a str, Vec<usize>>,
    /// the first branch to each label
    branches: HashMap<&'a str, usize>,
}

impl<'a> Code<'a> {
    fn read(text: &'a str) -> Self {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let instructions: Vec<_> = lines.iter().map(|line| Instruction::read(line)).collect();
        let mut writers: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut branches = HashMap::new();
        for (index, instruction) in instructions.iter().enumerate() {
            let Some(instruction) = instruction else { continue };
            if instruction.is("bra")
                && let Some(label) = instruction.operands.split_whitespace().next()
            {
                branches.entry(label).or_insert(index);
            }
            if ["st", "bra", "call", "ret", "red", "bar"].iter().any(|f| instruction.is(f)) {
                continue;
            }
            // `setp` may write two: `%p1|%p2`; `mov.b64 {%r1, %r2}, %rd1` writes its first operands
            let writes_list = instruction.operands.starts_with('{');
            let destinations = if writes_list {
                instruction.operands.split('}').next().unwrap_or_default()
            } else {
                instruction.operands.split(',').next().unwrap_or_default()
            };
            for register in destinations.split([',', '|', '{', ' ']).filter(|r| r.starts_with('%')) {
                let places = writers.entry(register).or_default();
                if places.len() < WRITERS {
                    places.push(index);
                }
            }
        }
        Self { lines, instructions, writers, branches }
    }

    /// Lines of the calls, with the name of the message that each passes.
    fn assertion_calls(&self) -> Vec<(usize, &'a str)> {
        let mut calls = Vec::new();
        let mut message = None;
        for (index, instruction) in self.instructions.iter().enumerate() {
            let Some(instruction) = instruction else { continue };
            if let Some(name) = instruction.sources().find(|o| o.starts_with("assertMessage")) {
                message = Some(name);
            } else if instruction.is("call")
                && instruction.operands.contains("__assertfail")
                && let Some(name) = message.take()
            {
                calls.push((index, name));
            }
            // the messages of further calls are told, without their bound
            if calls.len() >= limits::ASSERTIONS {
                break;
            }
        }
        calls
    }

    /// The predicate that decides about reaching the block of `line`.
    fn guard_of(&self, line: usize) -> Option<&'a str> {
        let mut at = line;
        // up to the label of the block, or to the branch that skips it
        let label = loop {
            at = at.checked_sub(1).filter(|at| line - at <= STEPS)?;
            if let Some(label) = self.lines.get(at)?.strip_suffix(':').or_else(|| self.label(at)) {
                if label.starts_with("$L__tmp") {
                    continue;
                }
                break label;
            }
            if let Some(Some(instruction)) = self.instructions.get(at)
                && instruction.is("bra")
            {
                return instruction.guard;
            }
        };
        match self.branches.get(label) {
            Some(branch) => match self.instructions.get(*branch)?.as_ref()?.guard {
                Some(guard) => Some(guard),
                // `@%p bra past; bra.uni here;`
                None => self.previous(*branch).filter(|i| i.is("bra")).and_then(|i| i.guard),
            },
            // entered by falling through: `@%p bra past;` stands before the label
            None => self.previous(at).filter(|i| i.is("bra")).and_then(|i| i.guard),
        }
    }

    fn label(&self, line: usize) -> Option<&'a str> {
        let text = self.lines.get(line)?.split("//").next()?.trim();
        text.strip_suffix(':').filter(|l| l.starts_with('$'))
    }

    fn previous(&self, line: usize) -> Option<&Instruction<'a>> {
        self.instructions.get(..line)?.iter().rev().take(STEPS).flatten().next()
    }

    /// The bound of the assertion that is called in `line`.
    fn bound(&self, line: usize) -> Option<Origin> {
        let guard = self.guard_of(line)?.trim_start_matches('!');
        let compares = self.compares_behind(guard);
        let with_zero: HashSet<&str> =
            compares.iter().filter(|c| c.is_signed && (c.right == "0" || c.right == "-1")).map(|c| c.left).collect();
        let is_zero = |o: &str| o == "0" || o == "-1";
        // two elements of one thread are compared with the same bound
        let mut bounds: BTreeSet<(&str, bool)> = BTreeSet::new();
        for compare in &compares {
            let (left, right) = (compare.left, compare.right);
            if with_zero.contains(left) && !is_zero(right) {
                bounds.insert((right, compare.right_is_inside));
            } else if with_zero.contains(right) && !is_zero(left) {
                bounds.insert((left, false));
            }
        }
        if bounds.is_empty() {
            // `0 <= i & i < 10` folds to one unsigned compare, `i > 9` or `i < 10`
            bounds.extend(compares.iter().filter(|c| !c.is_signed).map(|c| (c.right, c.right_is_inside)));
        }
        let mut origins = bounds.iter().map(|(bound, is_last_valid)| {
            let mut origin = self.origin(bound)?;
            if *is_last_valid {
                origin.constant = origin.constant.map(|c| c.saturating_add(1));
                origin.is_parameter = false;
            }
            Some(origin)
        });
        let first = origins.next()??;
        origins.all(|o| o.as_ref() == Some(&first)).then_some(first)
    }

    /// All ordering compares that a predicate depends on.
    fn compares_behind(&self, predicate: &'a str) -> Vec<Compare<'a>> {
        let mut compares = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![predicate];
        while let Some(register) = open.pop() {
            if !seen.insert(register) || seen.len() > STEPS {
                continue;
            }
            for index in self.writers.get(register).into_iter().flatten() {
                let Some(Some(instruction)) = self.instructions.get(*index) else { continue };
                if instruction.is("setp") {
                    compares.extend(Compare::read(instruction));
                } else if ["and", "or", "xor", "not", "mov", "selp"].iter().any(|f| instruction.is(f)) {
                    open.extend(instruction.sources().filter(|o| o.starts_with("%p")));
                }
            }
        }
        compares
    }

    /// Where a value comes from.
    fn origin(&self, operand: &'a str) -> Option<Origin> {
        if let Ok(constant) = operand.parse() {
            return Some(Origin { parameters: Vec::new(), is_parameter: false, constant: Some(constant) });
        }
        let mut parameters = BTreeSet::new();
        let mut is_parameter = true;
        let mut seen = HashSet::new();
        let mut open = vec![operand];
        while let Some(register) = open.pop() {
            if !seen.insert(register) {
                continue;
            }
            if seen.len() > STEPS {
                return None;
            }
            for index in self.writers.get(register).into_iter().flatten() {
                let Some(Some(instruction)) = self.instructions.get(*index) else { continue };
                if instruction.opcode.starts_with("ld.param") {
                    parameters.insert(parameter_number(instruction.operands)?);
                } else if instruction.is("ld") || instruction.is("call") || instruction.is("atom") {
                    // out of memory: no parameter alone decides it
                    return None;
                } else {
                    is_parameter &= instruction.is("mov") || instruction.is("cvt");
                    open.extend(instruction.sources().filter(|o| o.starts_with('%')));
                }
            }
        }
        let parameters: Vec<u32> = parameters.into_iter().collect();
        is_parameter &= parameters.len() == 1;
        (!parameters.is_empty()).then_some(Origin { parameters, is_parameter, constant: None })
    }
}

struct Compare<'a> {
    left: &'a str,
    right: &'a str,
    is_signed: bool,
    /// `gt` or `le`: the right side is still inside
    right_is_inside: bool,
}

impl<'a> Compare<'a> {
    /// `setp.ge.s64 %p8, %rd32, %rd9`, and with a predicate as last operand
    fn read(instruction: &Instruction<'a>) -> Option<Self> {
        let mut words = instruction.opcode.split('.').skip(1);
        let order = words.next()?;
        if !matches!(order, "lt" | "le" | "gt" | "ge" | "lo" | "ls" | "hi" | "hs") {
            return None;
        }
        let kind = words.last()?;
        if !kind.starts_with(['s', 'u']) {
            return None;
        }
        let mut sources = instruction.sources();
        Some(Self {
            left: sources.next()?,
            right: sources.next()?,
            is_signed: kind.starts_with('s'),
            right_is_inside: matches!(order, "gt" | "le" | "hi" | "ls"),
        })
    }
}

/// `%rd9, [k_param_3]` and `%r1, [k_param_3+4]` are parameter 3.
fn parameter_number(operands: &str) -> Option<u32> {
    let (_, address) = operands.split_once('[')?;
    let (_, number) = address.split_once(']')?.0.rsplit_once("_param_")?;
    number.split('+').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 9.0\n.target sm_90a\n\
        .global .align 1 .b8 assertMessage_0[6] = {98, 111, 117, 110, 100, 0};\n.visible .entry k(\n";
    const TAIL: &str = "$L__BB0_3:\n{ // callseq 0, 0\nmov.b64 \t%rd49, assertMessage_0;\n\
        call.uni \n__assertfail, \n(\nparam0);\n";

    fn bound(code: &str, call: &str) -> Option<Origin> {
        let found = in_ptx(&format!("{HEAD}{code}{call}")).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "bound");
        found[0].bound.clone()
    }

    const CALL: &str =
        "$L__BB0_3:\nmov.b64 \t%rd49, assertMessage_0;\ncall.uni __assertfail, (param0, param1);\ntrap;\n";

    #[test]
    fn the_mask_is_not_taken_for_the_bound() {
        let code = "ld.param.b32 \t%r6, [k_param_4];\nld.param.b64 \t%rd9, [k_param_3];\n\
            setp.lt.s32 \t%p2, %r7, %r6;\nsetp.lt.s64 \t%p7, %rd32, 0;\nsetp.ge.s64 \t%p8, %rd32, %rd9;\n\
            or.pred \t%p9, %p7, %p8;\nand.pred \t%p10, %p2, %p9;\nnot.pred \t%p11, %p10;\n\
            @%p11 bra \t$L__BB0_4;\nbra.uni \t$L__BB0_3;\n$L__BB0_4:\nret;\n";
        let found = bound(code, CALL);
        assert_eq!(found, Some(Origin { parameters: vec![3], is_parameter: true, constant: None }));
    }

    #[test]
    fn a_constant_bound_is_a_number() {
        let code =
            "setp.lt.s64 %p1, %rd1, 0;\nsetp.gt.s64 %p2, %rd1, 9;\nor.pred %p3, %p1, %p2;\n@%p3 bra $L__BB0_3;\nret;\n";
        assert_eq!(bound(code, CALL), Some(Origin { parameters: vec![], is_parameter: false, constant: Some(10) }));
        let folded = "setp.gt.u64 %p3, %rd1, 9;\n@%p3 bra $L__BB0_3;\nret;\n";
        assert_eq!(bound(folded, CALL).and_then(|o| o.constant), Some(10));
    }

    #[test]
    fn a_bound_from_memory_or_two_parameters_is_not_one_parameter() {
        let compare = "setp.lt.s64 %p1, %rd1, 0;\nsetp.ge.s64 %p2, %rd1, %rd9;\nor.pred %p3, %p1, %p2;\n@%p3 bra $L__BB0_3;\nret;\n";
        let memory = format!("ld.global.b64 %rd9, [%rd2];\n{compare}");
        assert_eq!(bound(&memory, CALL), None);
        let product = format!(
            "ld.param.u64 %rd3, [k_param_1];\nld.param.u64 %rd4, [k_param_2];\nmul.lo.s64 %rd9, %rd3, %rd4;\n{compare}"
        );
        assert_eq!(bound(&product, CALL), Some(Origin { parameters: vec![1, 2], is_parameter: false, constant: None }));
    }

    #[test]
    fn without_a_branch_the_text_alone_is_known() {
        let found = in_ptx(&format!("{HEAD}{TAIL}")).unwrap();
        assert_eq!(found[0].bound, None);
    }

    #[test]
    fn text_without_end_costs_little() {
        let long = format!("{HEAD}{}", "mov.b64 %rd1, %rd1;\n".repeat(20_000));
        assert_eq!(in_ptx(&long).unwrap().len(), 1);
    }

    #[test]
    fn messages_have_a_border() {
        let of = |count: usize| {
            let messages: String = (0..count)
                .map(|n| format!(".global .align 1 .b8 assertMessage_{n}[2] = {{{}, 0}};\n", n % 8 + 65))
                .collect();
            in_ptx(&messages).map(|found| found.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::ASSERTIONS), Ok(8));
        assert!(of(limits::ASSERTIONS + 1).unwrap_err().contains("more than 1024 assertions"));
    }
}
