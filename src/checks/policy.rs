//! How much a finding counts: built-in levels, the project's levels, unknowns that are allowed.

use super::codes;
use crate::report::{Finding, Level, Outcome};

/// The person's rules about findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// level per code, over the built-in one
    pub levels: Vec<(String, Level)>,
    /// unknowns of every code are allowed
    pub allow_all_unknown: bool,
    /// codes whose unknowns are allowed
    pub allow_unknown: Vec<String>,
}

impl Policy {
    /// Settles the level. The weaker of the check's own word and the registry's counts, unless the person says
    /// otherwise; a warning never changes the verdict by itself.
    pub fn apply(&self, finding: &mut Finding) {
        if let Some(code) = codes::find(finding.code) {
            finding.level = weaker(finding.level, code.level);
        }
        if finding.outcome == Outcome::Warn {
            finding.level = weaker(finding.level, Level::Warn);
        }
        let allowed = self.allow_all_unknown || self.allow_unknown.iter().any(|code| code == finding.code);
        if finding.outcome == Outcome::Unknown && allowed {
            finding.level = weaker(finding.level, Level::Warn);
        }
        if let Some((_, level)) = self.levels.iter().rev().find(|(code, _)| code == finding.code) {
            finding.level = *level;
        }
    }
}

fn weaker(a: Level, b: Level) -> Level {
    [Level::Allow, Level::Warn, Level::Deny].into_iter().find(|l| *l == a || *l == b).unwrap_or(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    fn unknown() -> Finding {
        Finding::new("input-dim", Outcome::Unknown, "models[0].inputs[0].shape[0]", "cannot be told")
    }

    #[test]
    fn unknowns_count_unless_allowed() {
        let mut finding = unknown();
        Policy::default().apply(&mut finding);
        assert_eq!(finding.verdict(), Verdict::Unknown);
        let policy = Policy { allow_unknown: vec!["input-dim".into()], ..Policy::default() };
        policy.apply(&mut finding);
        assert_eq!(finding.verdict(), Verdict::Pass);
        let mut other = unknown();
        Policy { allow_unknown: vec!["input-rank".into()], ..Policy::default() }.apply(&mut other);
        assert_eq!(other.verdict(), Verdict::Unknown);
    }

    #[test]
    fn a_warning_counts_only_when_the_person_says_so() {
        let mut finding = Finding::new("input-not-contiguous", Outcome::Warn, "models[0]", "strides");
        Policy::default().apply(&mut finding);
        assert_eq!((finding.level, finding.verdict()), (Level::Warn, Verdict::Pass));
        Policy { levels: vec![("input-not-contiguous".into(), Level::Deny)], ..Policy::default() }.apply(&mut finding);
        assert_eq!(finding.verdict(), Verdict::Fail);
    }
}
