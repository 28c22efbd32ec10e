//! What each torch release offers to artefacts, and what artefacts of each release offer: `data/shims.json`,
//! `data/shims_earlier.json`, `data/exports.json` (how they were made: `data/README.md`).
//!
//! The files hold one row a line, sorted by name, so that a name is found by halving the list of lines, which is made at
//! compile time: parsing 200 KB for the fifty names of a library would cost more than all else that `show` does.

use crate::model::Release;
use std::cmp::Ordering;

/// A table as text, and where its lines begin (the last number is the text's length).
struct Table<const LINES: usize> {
    text: &'static str,
    starts: [u32; LINES],
}

macro_rules! table {
    ($name:ident, $file:literal) => {
        static $name: Table<{ count_lines(include_str!($file)) }> = Table::new(include_str!($file));
    };
}

table!(SHIMS, "data/shims.json");
table!(SHIMS_EARLIER, "data/shims_earlier.json");
table!(EXPORTS, "data/exports.json");

/// Releases that the tables cover, oldest first.
pub const RELEASES: [Release; 14] = [
    Release::new(2, 2),
    Release::new(2, 3),
    Release::new(2, 4),
    Release::new(2, 5),
    Release::new(2, 6),
    Release::new(2, 7),
    Release::new(2, 8),
    Release::new(2, 9),
    Release::new(2, 10),
    Release::new(2, 11),
    Release::new(2, 12),
    Release::new(2, 13),
    Release::new(2, 14),
    NEWEST,
];
/// The newest release that was read.
pub const NEWEST: Release = Release::new(2, 15);

/// Builds of libtorch that have a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShimClass {
    /// every build
    Any,
    /// builds with CPU operators: all
    Cpu,
    /// CUDA and ROCm builds
    Cuda,
    /// XPU builds
    Xpu,
    /// builds with Metal
    Mps,
}

/// A C function that libtorch offers to artefacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shim {
    /// first release of the present stretch
    pub first: Release,
    /// last release that has it; `None`: the newest one still does
    pub last: Option<Release>,
    /// builds that have it
    pub class: ShimClass,
    /// releases before `first` that had it already
    pub earlier: Vec<Release>,
}

impl Shim {
    /// True when libtorch of that release has it, in a build of its class. A release newer than the tables has
    /// what the newest one has.
    pub fn is_in(&self, release: Release) -> bool {
        let since = self.first <= release && self.last.is_none_or(|last| release <= last);
        since || self.earlier.contains(&release)
    }
}

/// Looks up a C shim by name.
pub fn shim(name: &str) -> Option<Shim> {
    let mut words = quoted(SHIMS.row(name)?);
    let first = Release::from_text(words.next()?)?;
    let second = words.next()?;
    // a `null` is not quoted: then the second word is the class already
    let (last, class) = match words.next() {
        Some(class) => (Release::from_text(second), class),
        None => (None, second),
    };
    let class = match class {
        "cpu" => ShimClass::Cpu,
        "cuda" => ShimClass::Cuda,
        "xpu" => ShimClass::Xpu,
        "mps" => ShimClass::Mps,
        _ => ShimClass::Any,
    };
    let earlier = SHIMS_EARLIER.row(name).map(|row| quoted(row).filter_map(Release::from_text).collect());
    Some(Shim { first, last, class, earlier: earlier.unwrap_or_default() })
}

/// The first release whose artefacts export a function of the C interface.
pub fn export(name: &str) -> Option<Release> {
    Release::from_text(quoted(EXPORTS.row(name)?).next()?)
}

/// The functions of the C interface with the first release that exports them.
pub fn exports() -> impl Iterator<Item = (&'static str, Release)> {
    EXPORTS.rows().filter_map(|(name, value)| Some((name, Release::from_text(quoted(value).next()?)?)))
}

/// Releases of the tables that have every one of these shims, as (lowest, highest). `None`: no single release has
/// them all.
pub fn releases_with<'s>(shims: impl Iterator<Item = &'s Shim> + Clone) -> Option<(Release, Release)> {
    let mut fitting = RELEASES.into_iter().filter(|release| shims.clone().all(|shim| shim.is_in(*release)));
    let lowest = fitting.next()?;
    Some((lowest, fitting.next_back().unwrap_or(lowest)))
}

/// A C function that kept its name and changed its parameters: linking such a pair works, calling it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterChange {
    /// the function
    pub name: &'static str,
    /// last release with the old parameters
    pub before: Release,
    /// first release with the new ones
    pub after: Release,
}

const fn change(name: &'static str, before: (u16, u16), after: (u16, u16)) -> ParameterChange {
    ParameterChange { name, before: Release::new(before.0, before.1), after: Release::new(after.0, after.1) }
}

/// Declarations in torch/csrc/inductor/aoti_torch/c and generated/, compared release by release.
pub const PARAMETER_CHANGES: &[ParameterChange] = &[
    change("aoti_torch_convolution", (2, 2), (2, 3)),
    change("aoti_torch_cpu_resize_", (2, 3), (2, 4)),
    change("aoti_torch_cpu_resize_as_", (2, 3), (2, 4)),
    change("aoti_torch_cuda_resize_", (2, 3), (2, 4)),
    change("aoti_torch_cuda_resize_as_", (2, 3), (2, 4)),
    change("aoti_torch_cuda__flash_attention_forward", (2, 3), (2, 4)),
    change("aoti_torch_cuda__flash_attention_backward", (2, 3), (2, 4)),
    change("aoti_torch_cuda__efficient_attention_forward", (2, 3), (2, 4)),
    change("aoti_torch_cuda__efficient_attention_backward", (2, 3), (2, 4)),
    change("aoti_torch_cuda__scaled_mm", (2, 4), (2, 5)),
    change("aoti_torch_cuda__scaled_dot_product_cudnn_attention", (2, 3), (2, 5)),
    change("aoti_torch_cuda__scaled_mm_out", (2, 3), (2, 6)),
    change("aoti_torch_cpu_set__source_Tensor", (2, 3), (2, 7)),
    change("aoti_torch_cuda_set__source_Tensor", (2, 3), (2, 7)),
    change("aoti_torch_cpu_fill__Scalar", (2, 3), (2, 8)),
    change("aoti_torch_cuda_fill__Scalar", (2, 3), (2, 8)),
];

/// Lines of a text, and one for its end.
#[expect(clippy::indexing_slicing, reason = "bounded by the loop, and evaluated at compile time")]
const fn count_lines(text: &str) -> usize {
    let (bytes, mut lines, mut at) = (text.as_bytes(), 1, 0);
    while at < bytes.len() {
        if bytes[at] == b'\n' {
            lines += 1;
        }
        at += 1;
    }
    lines
}

impl<const LINES: usize> Table<LINES> {
    /// `text` ends with a line feed.
    #[expect(clippy::indexing_slicing, reason = "bounded by the loop, and evaluated at compile time")]
    const fn new(text: &'static str) -> Self {
        let (bytes, mut starts, mut line, mut at) = (text.as_bytes(), [0; LINES], 1, 0);
        while at < bytes.len() {
            at += 1;
            if bytes[at - 1] == b'\n' {
                starts[line] = at as u32;
                line += 1;
            }
        }
        Self { text, starts }
    }

    /// A line behind its first quote: `name": value`; `None` for the braces around the rows.
    fn line(&self, index: usize) -> Option<&'static str> {
        let (start, end) = (*self.starts.get(index)?, *self.starts.get(index.checked_add(1)?)?);
        self.text.get(start as usize..end as usize)?.trim_ascii_start().strip_prefix('"')
    }

    /// All rows.
    fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        (0..LINES).filter_map(|index| self.line(index)?.split_once('"'))
    }

    /// The value of a row.
    fn row(&self, name: &str) -> Option<&'static str> {
        // most of what a library imports is of the C and C++ libraries
        if name.starts_with('_') {
            return None;
        }
        // the braces are the first line and the last one
        let (mut low, mut high) = (1, LINES.saturating_sub(2));
        while low < high {
            let middle = low.midpoint(high);
            let line = self.line(middle)?;
            // the quote behind a shorter name sorts before all characters of names
            let start = line.as_bytes().get(..name.len()).unwrap_or(line.as_bytes());
            match start.cmp(name.as_bytes()) {
                Ordering::Equal if line.as_bytes().get(name.len()) == Some(&b'"') => {
                    return line.get(name.len().checked_add(1)?..);
                }
                Ordering::Equal => high = middle,
                Ordering::Less => low = middle.saturating_add(1),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

fn quoted(value: &'static str) -> impl Iterator<Item = &'static str> {
    value.as_bytes().split(|byte| *byte == b'"').skip(1).step_by(2).filter_map(|word| std::str::from_utf8(word).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The look-up depends on the layout of the files; this is what a careless regeneration would break.
    #[test]
    fn every_row_is_found() {
        let table: BTreeMap<String, (String, Option<String>, String)> = serde_json::from_str(SHIMS.text).unwrap();
        assert_eq!(table.len(), 3265);
        for (name, (first, last, _)) in &table {
            let shim = shim(name).unwrap_or_else(|| panic!("{name} is not found"));
            assert_eq!(shim.first.to_string(), *first, "{name}");
            assert_eq!(shim.last.map(|r| r.to_string()), *last, "{name}");
        }
        let earlier: BTreeMap<String, Vec<String>> = serde_json::from_str(SHIMS_EARLIER.text).unwrap();
        for (name, releases) in earlier {
            let found: Vec<String> = shim(&name).unwrap().earlier.iter().map(ToString::to_string).collect();
            assert_eq!(found, releases, "{name}");
        }
        assert_eq!(exports().count(), 49);
        assert!(exports().all(|(name, release)| export(name) == Some(release)));
        assert_eq!(shim("aoti_torch_"), None);
        assert_eq!(shim(""), None);
        assert_eq!(shim("~"), None);
    }

    #[test]
    fn a_name_that_came_back_is_missing_in_between() {
        let shim = shim("aoti_torch_cpu_permute").unwrap();
        assert!(shim.is_in(Release::new(2, 3)));
        assert!(!shim.is_in(Release::new(2, 4)));
        assert!(shim.is_in(Release::new(2, 15)) && shim.is_in(Release::new(2, 40)));
    }

    #[test]
    fn a_withdrawn_name_bounds_from_above() {
        let range = |names: [&str; 2]| releases_with(names.map(|name| shim(name).unwrap()).iter());
        let common = range(["aoti_torch_cpu__qconv2d_pointwise_tensor", "aoti_torch_empty_strided"]);
        assert_eq!(common, Some((Release::new(2, 6), Release::new(2, 7))));
        assert_eq!(range(["aoti_check_inf_and_nan", "aoti_torch_as_strided"]), None);
    }
}
