//! Which instruction set extensions the code really uses, per function. Decodes all code: only on demand.

mod aarch64;
mod x86_64;

use super::functions::{Function, code_ranges, functions};
use super::{Architecture, Image, RelocationKind};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::model::{CpuIsa, FunctionIsa};
use std::collections::{BTreeMap, BTreeSet};

/// A set of extensions: bit n is row n of the architecture's table.
type Extensions = u128;

/// An extension's name, as /proc/cpuinfo prints it.
fn names(architecture: Architecture, set: Extensions) -> Vec<String> {
    let table: &[&str] = match architecture {
        Architecture::X86_64 => x86_64::NAMES,
        _ => aarch64::NAMES,
    };
    table.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, name)| (*name).to_owned()).collect()
}

/// What one function does.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    extensions: Extensions,
    /// asks the CPU what it can do: such code runs anywhere and decides by itself
    asks: bool,
}

/// Decodes the code and fills `used` and `functions`; `declared` stays empty.
///
/// `functions` names up to [`limits::FUNCTIONS_PER_EXTENSION`] functions per extension, the model's kernels
/// first. `used` leaves out what only guarded functions need.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for other machines, [`ErrorKind::Limit`] for more than [`limits::CODE_BYTES`].
pub fn scan(image: &Image<'_>) -> Result<CpuIsa> {
    let scan_bytes = match image.architecture() {
        Architecture::X86_64 => x86_64::scan,
        Architecture::Aarch64 => aarch64::scan,
        other => return Err(Error::new(ErrorKind::Unsupported, format!("{other} code is not decoded"))),
    };
    let all = functions(image)?;
    let pieces = if all.is_empty() { whole_ranges(image) } else { all };
    check_size(&pieces)?;
    let uses: Vec<Use> = pieces
        .iter()
        .map(|f| scan_bytes(image.read(f.start, f.end.saturating_sub(f.start)).unwrap_or_default(), f.start))
        .collect();
    let guards = Guards::of(image, &pieces, &uses);
    let mut used: Extensions = 0;
    let mut by_extension: BTreeMap<u32, Vec<(bool, usize)>> = BTreeMap::new();
    for (index, (function, usage)) in pieces.iter().zip(&uses).enumerate() {
        let guarded = guards.covers(function, *usage);
        if !guarded {
            used |= usage.extensions;
        }
        let mut rest = usage.extensions;
        while rest != 0 {
            by_extension.entry(rest.trailing_zeros()).or_default().push((guarded, index));
            rest &= rest - 1;
        }
    }
    let chosen = choose(&by_extension, &pieces);
    let describe = |index: &usize| {
        let (function, usage) = (pieces.get(*index)?, uses.get(*index)?);
        Some(FunctionIsa {
            function: function_name(image, function),
            features: names(image.architecture(), usage.extensions),
            is_guarded: guards.covers(function, *usage),
        })
    };
    Ok(CpuIsa {
        declared: None,
        used: Some(names(image.architecture(), used)),
        functions: chosen.iter().filter_map(describe).collect(),
    })
}

fn check_size(pieces: &[Function<'_>]) -> Result<()> {
    let total = pieces.iter().fold(0u64, |sum, f| sum.saturating_add(f.end.saturating_sub(f.start)));
    if total > limits::CODE_BYTES {
        let what = format!("{total} bytes of code, more than the {} that are decoded", limits::CODE_BYTES);
        return Err(Error::limit(what));
    }
    Ok(())
}

/// Without symbols and unwind tables everything that holds code is one piece.
fn whole_ranges<'a>(image: &Image<'a>) -> Vec<Function<'a>> {
    code_ranges(image).into_iter().map(|(start, end)| Function { start, end, name: None }).collect()
}

/// Which functions are told, in this order: those that are not guarded first, kernels before the rest.
fn choose(by_extension: &BTreeMap<u32, Vec<(bool, usize)>>, pieces: &[Function<'_>]) -> Vec<usize> {
    let rank = |(guarded, index): (bool, usize)| {
        let name = pieces.get(index).and_then(|f| f.name.as_deref()).unwrap_or_default();
        (guarded, !name.contains("cpp_fused_"), index)
    };
    let mut chosen = BTreeSet::new();
    for users in by_extension.values() {
        let mut ranked: Vec<_> = users.iter().copied().map(rank).collect();
        ranked.sort_unstable();
        chosen.extend(ranked.into_iter().take(limits::FUNCTIONS_PER_EXTENSION));
    }
    chosen.into_iter().map(|(_, _, index)| index).collect()
}

/// A function's name, or its distance from the nearest export before it.
fn function_name(image: &Image<'_>, function: &Function<'_>) -> String {
    if let Some(name) = &function.name {
        return super::imports::demangled(name);
    }
    let exports = image.exports().unwrap_or_default();
    let before = exports.iter().filter(|s| !s.is_absolute && s.address <= function.start).max_by_key(|s| s.address);
    match before {
        Some(symbol) => format!("{}+{:#x}", super::imports::demangled(&symbol.name), function.start - symbol.address),
        None => format!("{:#x}", function.start),
    }
}

/// How a library chooses code at run time.
struct Guards {
    /// results of functions that choose (`STT_GNU_IFUNC`, `IRELATIVE`) are not named anywhere, so that every
    /// function with a clone's suffix counts
    has_resolvers: bool,
    /// the x86-64 library asks the CPU somewhere
    asks: bool,
}

impl Guards {
    fn of(image: &Image<'_>, pieces: &[Function<'_>], uses: &[Use]) -> Self {
        let relocations = image.relocations().unwrap_or_default();
        let has_resolvers = relocations
            .iter()
            .any(|r| r.kind == RelocationKind::IndirectRelative || r.target.as_ref().is_some_and(|t| t.is_indirect));
        const QUESTIONS: &[&str] = &[
            "__cpu_model",
            "__cpu_indicator_init",
            "__init_cpu_features",
            "__aarch64_cpu_features",
            "getauxval",
            "__getauxval",
        ];
        let asks_by_name = image.imports().unwrap_or_default().iter().any(|i| QUESTIONS.contains(&i.name))
            || pieces.iter().any(|f| f.name.as_deref().is_some_and(|n| QUESTIONS.contains(&n)));
        let asks = asks_by_name || uses.iter().any(|u| u.asks);
        Self { has_resolvers, asks: asks && image.architecture() == Architecture::X86_64 }
    }

    /// True for a function that runs only after a test of the CPU.
    fn covers(&self, function: &Function<'_>, usage: Use) -> bool {
        if usage.extensions == 0 {
            return false;
        }
        /// libgcc's atomics, each of which tests a flag and has both forms
        const SELF_TESTING: &[&str] =
            &["__aarch64_cas", "__aarch64_swp", "__aarch64_ld", "init_cpu_features", "__cpu_indicator_init"];
        /// suffixes that GCC and clang give to clones for one CPU (function multiversioning)
        const CLONES: &[&str] = &[".avx", ".arch_", ".sse4", ".fma", ".bmi", ".popcnt", "._M", ".default"];
        let name = function.name.as_deref().unwrap_or_default();
        usage.asks
            || SELF_TESTING.iter().any(|part| name.contains(part))
            || self.has_resolvers && CLONES.iter().any(|suffix| name.contains(suffix))
            || self.asks && usage.extensions & !x86_64::ASKED_FIRST == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(start: u64, end: u64) -> Function<'static> {
        Function { start, end, name: None }
    }

    #[test]
    fn code_has_a_border() {
        let half = limits::CODE_BYTES / 2;
        assert!(check_size(&[function(0, half), function(half, 2 * half)]).is_ok());
        let refused = check_size(&[function(0, half), function(half, 2 * half + 1)]).unwrap_err();
        assert!(refused.message().contains("268435457 bytes of code, more than the 268435456"), "{refused}");
        assert!(check_size(&[function(0, u64::MAX), function(0, u64::MAX)]).is_err());
    }

    #[test]
    fn functions_of_an_extension_have_a_border() {
        let of = |count: usize| {
            let pieces: Vec<_> = (0..count as u64).map(|n| function(n, n + 1)).collect();
            let users = (0..count).map(|index| (false, index)).collect();
            choose(&BTreeMap::from([(3, users)]), &pieces).len()
        };
        assert_eq!(of(limits::FUNCTIONS_PER_EXTENSION), limits::FUNCTIONS_PER_EXTENSION);
        assert_eq!(of(limits::FUNCTIONS_PER_EXTENSION + 1), limits::FUNCTIONS_PER_EXTENSION);
    }
}
