//! Faults of torch's AOTInductor runtime and loaders that are known from public reports: `data/advisories.toml`.

use crate::model::Release;
use serde::{Deserialize, Deserializer};
use std::sync::LazyLock;

/// Which torch has the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Culprit {
    /// the runtime that the compiling torch put into the artefact
    Artifact,
    /// the torch that loads it
    Loader,
}

/// What the artefact must have for the fault to matter. Evaluated by [`crate::checks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precondition {
    /// a GPU model with constants
    GpuConstants,
    /// a CPU model with constants
    CpuConstants,
    /// constants that are computed at run time beside others
    FoldedConstants,
    /// dims of inputs that depend on each other
    RelatedDims,
    /// at least one input
    HasInputs,
    /// a model whose name another's begins with
    NamePrefix,
    /// appended weights at an offset that is no multiple of 64 KiB
    #[serde(rename = "appended-off-64k")]
    AppendedOff64k,
    /// a library for Linux
    LinuxLibrary,
}

/// What in the load configuration decides whether a target is hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedBy {
    /// `--device cuda:1`
    DeviceIndex,
    /// `--page-size 64k`
    PageSize,
}

/// One known fault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// its name
    pub id: String,
    /// which torch has it
    #[serde(rename = "in")]
    pub culprit: Culprit,
    /// first release with it
    #[serde(deserialize_with = "release")]
    pub first: Release,
    /// last release that surely has it; absent: all newer ones do
    #[serde(default, deserialize_with = "some_release")]
    pub last: Option<Release>,
    /// last release that may have it, where that differs
    #[serde(default, deserialize_with = "some_release")]
    pub maybe_last: Option<Release>,
    /// what the artefact must have
    pub precondition: Precondition,
    /// what in the configuration decides
    #[serde(default)]
    pub asked_by: Option<AskedBy>,
    /// what happens
    pub effect: String,
    /// what to do
    pub fix: String,
    /// the report
    pub link: String,
    /// where the range of releases comes from
    pub read: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    advisory: Vec<Advisory>,
}

static TABLE: LazyLock<Vec<Advisory>> = LazyLock::new(|| {
    let table: serde_json::Result<Table> =
        serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/advisories.json")));
    table.map(|t| t.advisory).unwrap_or_default()
});

/// All known faults.
pub fn advisories() -> &'static [Advisory] {
    &TABLE
}

fn release<'de, D: Deserializer<'de>>(from: D) -> Result<Release, D::Error> {
    let text = String::deserialize(from)?;
    Release::from_text(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no release")))
}

fn some_release<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Release>, D::Error> {
    release(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_reads_and_its_ranges_make_sense() {
        assert!(advisories().len() >= 7);
        let mut ids = std::collections::BTreeSet::new();
        for row in advisories() {
            assert!(ids.insert(&row.id), "{} twice", row.id);
            assert!(row.last.is_none_or(|last| last >= row.first), "{}", row.id);
            assert!(row.maybe_last.is_none_or(|maybe| row.last.is_some_and(|last| maybe > last)), "{}", row.id);
            assert!(row.link.starts_with("https://") && !row.effect.ends_with('.') && !row.fix.ends_with('.'));
        }
    }
}
