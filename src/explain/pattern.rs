//! Error texts as data: one row per text, with its class, its rank and what to look up in the artefact.
//!
//! Rows stand in files by subject. Their order matters only within one line of a log: the first row that
//! matches claims the line, so specific texts stand before the general ones that wrap them
//! (`undefined symbol` before `Error in dlopen`).

mod compile;
mod constants;
mod devices;
mod faults;
mod gpu;
mod host;
mod inputs;
mod operators;
mod package;
mod phase;

use crate::model::{DType, DeviceKind, Release};
use aho_corasick::AhoCorasick;
use regex::Regex;
use std::sync::{LazyLock, OnceLock};

/// How much a text says about why something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// the cause itself; the earliest one in a log wins
    Cause,
    /// explains, or warns of something that may be harmless
    Context,
    /// tells only whether it failed while loading or while running
    Phase,
}

/// Which program prints a text; its version decides whether it can be printed at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// code inside the artefact: generated, or headers of the torch that compiled it
    Artifact,
    /// the torch that loads it
    Torch,
    /// GPU driver or runtime
    Driver,
    /// dynamic linker, kernel, C library
    System,
    /// another runtime
    Other,
}

/// What the artefact is asked about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// number and names of inputs and outputs
    Count,
    /// call spec
    CallSpec,
    /// groups: input, expected dtype, its enumerator, given dtype
    InputDType,
    /// groups: input, dim, expected, given
    InputDim,
    /// groups: input, dim, lower bound, given
    InputLower,
    /// groups: input, dim, upper bound, given
    InputUpper,
    /// groups: input, dim, expected, given
    InputStride,
    /// groups: input, expected device number, its name, given device number
    InputDevice,
    /// group 1, where there is one: number of the input
    Alignment,
    /// all inputs: an operator refused a shape
    OperatorShape,
    /// all inputs: an operator refused a dtype
    OperatorDType,
    /// all inputs: an operator refused a device
    OperatorDevice,
    /// device of the artefact
    Device,
    /// device index; group 1: `cpu`, `cuda`, …
    RunnerDevice,
    /// group 1: a symbol
    Symbol,
    /// group 1: function that the library does not export
    MissingExport,
    /// group 1: family, group 2: version
    SymbolVersion,
    /// group 1: library
    Library,
    /// kernel files
    KernelFile,
    /// targets of the kernels
    KernelTarget,
    /// shared memory and launch parameters of the kernels
    KernelLaunch,
    /// names of kernels and of entries in their files
    KernelName,
    /// instruction sets
    CpuIsa,
    /// total of the constants
    Memory,
    /// bytes of the weights in the file
    WeightBytes,
    /// group 1: internal or original name of a constant
    ConstantName,
    /// devices of the constants; group 1: name of one
    ConstantDevice,
    /// group 1: operator
    Operator,
    /// model names; group 1: the one asked for
    ModelName,
    /// members of the package; group 1: file that is missed
    Member,
    /// what the file is at all
    Layout,
    /// assertion: groups lower bound, index, upper bound
    Assertion,
    /// nothing can be proved: preconditions, and what can be ruled out
    Fault,
    /// capture and threads: entry points
    SingleThreaded,
    /// nothing
    Nothing,
}

/// One row.
#[derive(Debug)]
pub struct Pattern {
    /// stable id, `chk-dim`
    pub id: &'static str,
    /// id of the class
    pub class: &'static str,
    /// how much it says
    pub rank: Rank,
    /// who prints it
    pub origin: Origin,
    /// first torch release that prints it, where known
    pub since: Option<Release>,
    /// last torch release that prints it, where it was withdrawn
    pub until: Option<Release>,
    /// one of these occurs verbatim in every text that `regex` matches: what the pass over a log looks for
    pub literals: &'static [&'static str],
    /// for the `regex` crate; groups are what `lookup` documents
    pub regex: &'static str,
    /// what to ask the artefact
    pub lookup: Lookup,
    /// one sentence without the artefact; see [`render`] for its placeholders
    pub sentence: &'static str,
    /// what to do
    pub fix: &'static str,
    /// texts that this row must claim
    pub samples: &'static [&'static str],
}

/// Starting point of every row.
const ROW: Pattern = Pattern {
    id: "",
    class: "",
    rank: Rank::Cause,
    origin: Origin::Torch,
    since: None,
    until: None,
    literals: &[],
    regex: "",
    lookup: Lookup::Nothing,
    sentence: "",
    fix: "",
    samples: &[],
};

/// `torch(9)` is release 2.9.
const fn torch(minor: u16) -> Option<Release> {
    Some(Release::new(2, minor))
}

const FILES: &[&[Pattern]] = &[
    inputs::ROWS,
    devices::ROWS,
    constants::ROWS,
    package::ROWS,
    operators::ROWS,
    host::ROWS,
    gpu::ROWS,
    faults::ROWS,
    compile::ROWS,
    phase::ROWS,
];

/// Every row, in claiming order.
pub fn table() -> impl Iterator<Item = &'static Pattern> {
    FILES.iter().flat_map(|rows| rows.iter())
}

/// The rows with their compiled forms, made once.
struct Matcher {
    rows: Vec<(&'static Pattern, OnceLock<Option<Regex>>)>,
    automaton: AhoCorasick,
    /// per literal: the rows that have it
    owners: Vec<Vec<usize>>,
}

static MATCHER: LazyLock<Option<Matcher>> = LazyLock::new(|| {
    let rows: Vec<_> = table().map(|p| (p, OnceLock::new())).collect();
    let mut literals: Vec<&'static str> = Vec::new();
    let mut owners: Vec<Vec<usize>> = Vec::new();
    for (row, (pattern, _)) in rows.iter().enumerate() {
        for literal in pattern.literals {
            let at = literals.iter().position(|l| l == literal).unwrap_or_else(|| {
                literals.push(literal);
                owners.push(Vec::new());
                literals.len() - 1
            });
            if let Some(owner) = owners.get_mut(at) {
                owner.push(row);
            }
        }
    }
    let automaton = AhoCorasick::builder().kind(Some(aho_corasick::AhoCorasickKind::DFA)).build(&literals).ok()?;
    Some(Matcher { rows, automaton, owners })
});

impl Matcher {
    fn regex(&self, row: usize) -> Option<(&'static Pattern, &Regex)> {
        let (pattern, compiled) = self.rows.get(row)?;
        let regex = compiled.get_or_init(|| Regex::new(pattern.regex).ok()).as_ref()?;
        Some((pattern, regex))
    }
}

/// A row that matched, with its groups.
#[derive(Debug, Clone)]
pub struct Match {
    /// the row
    pub pattern: &'static Pattern,
    /// the matched text
    pub text: String,
    /// where it begins in the line, in bytes
    pub start: usize,
    /// groups from 1; `None` where an optional one is absent
    pub groups: Vec<Option<String>>,
}

impl Match {
    /// Group `n`, from 1.
    pub fn group(&self, n: usize) -> Option<&str> {
        self.groups.get(n.checked_sub(1)?)?.as_deref()
    }
    /// Group `n` as a number.
    pub fn number(&self, n: usize) -> Option<i64> {
        self.group(n)?.parse().ok()
    }
}

/// What matches in one clean line: the first row of rank cause, and every row of another rank.
pub fn matches(line: &str) -> Vec<Match> {
    let Some(matcher) = MATCHER.as_ref() else { return Vec::new() };
    let mut rows: Vec<usize> = matcher
        .automaton
        .find_overlapping_iter(line)
        .filter_map(|m| matcher.owners.get(m.pattern().as_usize()))
        .flatten()
        .copied()
        .collect();
    rows.sort_unstable();
    rows.dedup();
    let mut found: Vec<Match> = Vec::new();
    for row in rows {
        let Some((pattern, regex)) = matcher.regex(row) else { continue };
        if pattern.rank == Rank::Cause && found.iter().any(|m| m.pattern.rank == Rank::Cause) {
            continue;
        }
        if let Some(captures) = regex.captures(line)
            && let Some(whole) = captures.get(0)
        {
            found.push(Match {
                pattern,
                text: whole.as_str().to_owned(),
                start: whole.start(),
                groups: captures.iter().skip(1).map(|g| g.map(|g| g.as_str().to_owned())).collect(),
            });
        }
    }
    found
}

/// Fills in a sentence: `{2}` is group 2, `{2:dtype}` the same number as a dtype, `{2:device}` as a device;
/// a part in `[[…]]` is left out when one of its groups is absent.
pub fn render(template: &str, found: &Match) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("[[") {
        text.push_str(&fill(before, found).unwrap_or_default());
        // `[[ of inputs[{1}]]]`: the first of three belongs to the part
        let close =
            after.find("]]").map(|at| if after.get(at..).is_some_and(|r| r.starts_with("]]]")) { at + 1 } else { at });
        let (part, tail) = close.and_then(|at| after.split_at_checked(at)).unwrap_or((after, ""));
        let tail = tail.strip_prefix("]]").unwrap_or(tail);
        text.push_str(&fill(part, found).unwrap_or_default());
        rest = tail;
    }
    text.push_str(&fill(rest, found).unwrap_or_default());
    text
}

/// One part of a template; `None` when a group of it is absent.
fn fill(part: &str, found: &Match) -> Option<String> {
    let mut text = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, tail) = after.split_once('}')?;
        let (number, form) = name.split_once(':').unwrap_or((name, ""));
        let value = found.group(number.parse().ok()?)?;
        match form {
            "dtype" => text.push_str(&decode_dtype(value)),
            "device" => text.push_str(&decode_device(value)),
            _ => text.push_str(value),
        }
        rest = tail;
    }
    text.push_str(rest);
    Some(text)
}

/// A scalar type number of ATen, or an enumerator, as a dtype's name.
pub fn decode_dtype(value: &str) -> String {
    let known = value.parse().ok().and_then(DType::from_aten).or_else(|| DType::from_enumerator(value));
    known.or_else(|| DType::from_name(value)).map_or_else(|| format!("dtype {value}"), |d| d.name().to_owned())
}

/// A device number. The generated check prints the expected one twice (`11` is 1, `00` is 0, `1313` is 13).
pub fn decode_device(value: &str) -> String {
    let (first, second) = value.split_at_checked(value.len() / 2).unwrap_or((value, ""));
    let number = if !first.is_empty() && first == second { first } else { value };
    number
        .parse()
        .ok()
        .and_then(DeviceKind::from_aten)
        .map_or_else(|| format!("device {value}"), |d| d.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_is_complete() {
        let mut ids = HashSet::new();
        for p in table() {
            assert!(ids.insert(p.id), "{} twice", p.id);
            assert!(super::super::class::CLASSES.iter().any(|c| c.id == p.class), "{}: {}", p.id, p.class);
            assert!(!p.samples.is_empty() && !p.literals.is_empty() && !p.sentence.is_empty(), "{}", p.id);
            assert!(Regex::new(p.regex).is_ok(), "{}", p.id);
            let short = p.literals.iter().find(|l| l.len() < super::super::log::LITERAL_BYTES);
            assert!(short.is_none(), "{}: {short:?} is too short to be searched for", p.id);
        }
    }

    #[test]
    fn every_sample_is_claimed_by_its_own_row() {
        let mut wrong = Vec::new();
        for p in table() {
            for sample in p.samples {
                assert!(p.literals.iter().any(|l| sample.contains(l)), "{}: no literal in {sample}", p.id);
                let found = matches(sample);
                let claimed: Vec<&str> = found.iter().map(|m| m.pattern.id).collect();
                let first = found.iter().find(|m| m.pattern.rank == p.rank);
                let sentence = first.map(|m| render(p.sentence, m)).unwrap_or_default();
                if first.is_none_or(|m| m.pattern.id != p.id) || sentence.contains(['{', '}']) || sentence.len() < 20 {
                    wrong.push(format!("{}: {sample}\n  is claimed by {claimed:?}: {sentence}", p.id));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn numbers_are_decoded() {
        assert_eq!(decode_device("11"), "cuda");
        assert_eq!(decode_device("00"), "cpu");
        assert_eq!(decode_device("0"), "cpu");
        assert_eq!(decode_device("1"), "cuda");
        assert_eq!(decode_device("12"), "xpu");
        assert_eq!(decode_device("1212"), "xpu");
        assert_eq!(decode_dtype("15"), "bfloat16");
        assert_eq!(decode_dtype("Double"), "float64");
    }

    #[test]
    fn absent_groups_drop_their_part() {
        let found = matches("input_handles[0]: unmatched dim value at 1, expected: 1");
        let text = render("dim {2} of input {1} is wrong[[: {3} wanted]][[, {4} given]]", &found[0]);
        assert_eq!(text, "dim 1 of input 0 is wrong: 1 wanted");
    }
}
