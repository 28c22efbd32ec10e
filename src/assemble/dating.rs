//! The torch release that compiled it: the intersection of all that dates it.

use crate::model::{CompiledBy, Conflict, Evidence, Release, Witness};

/// A statement that narrows the range of releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// lowest release that makes such files
    pub min: Option<Release>,
    /// highest release that makes such files
    pub max: Option<Release>,
    /// what was seen, and where
    pub evidence: Evidence,
}

impl Row {
    fn narrows(&self, range: (Option<Release>, Option<Release>)) -> bool {
        self.min.is_some_and(|min| range.0.is_none_or(|known| min > known))
            || self.max.is_some_and(|max| range.1.is_none_or(|known| max < known))
    }
}

/// Intersects the rows; those that narrow nothing are left out of the evidence. Where claims contradict the library, the
/// library is believed.
pub fn date(rows: &[Row], cxx: Option<String>) -> (CompiledBy, Option<Conflict>) {
    let is_claim = |row: &Row| matches!(row.evidence.source, Witness::Source | Witness::Archive | Witness::Metadata);
    let library: Vec<&Row> = rows.iter().filter(|row| !is_claim(row)).collect();
    let claims: Vec<&Row> = rows.iter().filter(|row| is_claim(row)).collect();
    let all: Vec<&Row> = library.iter().chain(&claims).copied().collect();
    let range = intersect(&all);
    let is_empty = |range: (Option<Release>, Option<Release>)| range.0.zip(range.1).is_some_and(|(min, max)| min > max);
    if !is_empty(range) {
        return (compiled_by(&all, range, cxx), None);
    }
    let proven = intersect(&library);
    let conflict = claims.iter().find(|row| {
        is_empty(intersect(&library.iter().copied().chain([**row]).collect::<Vec<_>>()))
    });
    let sides = [library.first().copied(), conflict.copied()].into_iter().flatten().map(|row| row.evidence.clone());
    let conflict = Conflict { code: "witness-conflict".into(), subject: "compiled_by".into(), sides: sides.collect() };
    if is_empty(proven) || library.is_empty() {
        return (CompiledBy { cxx, ..CompiledBy::default() }, Some(conflict));
    }
    (compiled_by(&library, proven, cxx), Some(conflict))
}

fn intersect(rows: &[&Row]) -> (Option<Release>, Option<Release>) {
    (rows.iter().filter_map(|row| row.min).max(), rows.iter().filter_map(|row| row.max).min())
}

fn compiled_by(rows: &[&Row], range: (Option<Release>, Option<Release>), cxx: Option<String>) -> CompiledBy {
    let mut evidence = Vec::new();
    let mut known = (None, None);
    for row in rows {
        if row.narrows(known) {
            known = (row.min.max(known.0), [row.max, known.1].into_iter().flatten().min());
            evidence.push(row.evidence.clone());
        }
    }
    CompiledBy { torch_min: range.0, torch_max: range.1, cxx, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(source: Witness, min: u16, max: u16) -> Row {
        let of = |minor: u16| (minor > 0).then(|| Release::new(2, minor));
        Row { min: of(min), max: of(max), evidence: Evidence::new(source, format!("{min}..{max}")) }
    }

    #[test]
    fn rows_are_intersected_and_idle_ones_left_out() {
        let (by, conflict) =
            date(&[row(Witness::Exports, 10, 12), row(Witness::Source, 8, 0), row(Witness::Source, 11, 0)], None);
        assert_eq!((by.torch_min, by.torch_max), (Some(Release::new(2, 11)), Some(Release::new(2, 12))));
        assert_eq!(by.evidence.len(), 2);
        assert_eq!(conflict, None);
    }

    #[test]
    fn the_library_is_believed_against_a_claim() {
        let (by, conflict) = date(&[row(Witness::Source, 0, 7), row(Witness::Exports, 10, 12)], None);
        assert_eq!((by.torch_min, by.torch_max), (Some(Release::new(2, 10)), Some(Release::new(2, 12))));
        assert_eq!(conflict.map(|c| c.sides.len()), Some(2));
    }
}
