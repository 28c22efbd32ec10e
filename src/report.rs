//! What `verify`, `explain` and `diff` say: findings and verdicts. One model for every format.

use crate::model::Evidence;
use schemars::JsonSchema;
use serde::Serialize;

/// The fact that a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// it holds
    Pass,
    /// it does not hold
    Fail,
    /// it may stop or mislead somebody, not proven for this configuration
    Warn,
    /// it cannot be told
    Unknown,
}

/// The policy for a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// changes the verdict
    Deny,
    /// shown, never changes the exit code
    Warn,
    /// not shown in text
    Allow,
}

/// Verdict over an artefact, or over one of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// all that was asked holds
    Pass,
    /// something does not hold
    Fail,
    /// something asked for is unknown, nothing failed
    Unknown,
    /// the file cannot be read, is damaged or no AOTInductor artefact
    Unreadable,
}

/// Exit code of the process. The numbers are an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: all that was asked holds
    Holds = 0,
    /// 1: something does not hold
    Fails = 1,
    /// 2: usage or configuration error
    Usage = 2,
    /// 3: unreadable, damaged or not an AOTInductor artefact
    Unreadable = 3,
    /// 4: undecided
    Undecided = 4,
}

impl Exit {
    /// Over many artefacts: 3 before 1 before 4 before 0; a usage error beats all.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        const ORDER: [Exit; 5] = [Exit::Usage, Exit::Unreadable, Exit::Fails, Exit::Undecided, Exit::Holds];
        ORDER.into_iter().find(|e| *e == self || *e == other).unwrap_or(self)
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Holds,
            Verdict::Fail => Self::Fails,
            Verdict::Unknown => Self::Undecided,
            Verdict::Unreadable => Self::Unreadable,
        }
    }
}

/// The code of damage that hides a fact: its failure makes the artefact unreadable.
pub const DAMAGED: &str = "artifact-damaged";

/// One check's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// registered code, `gpu-arch`
    pub code: &'static str,
    /// the fact
    pub outcome: Outcome,
    /// the policy
    pub level: Level,
    /// named target it was judged for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// set when a waiver covers it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<Waived>,
    /// path of the fact, `models[0].inputs[0].shape[1]`
    pub subject: String,
    /// one sentence that a person acts on
    pub message: String,
    /// what the artefact wants
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// what the configuration gives
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// what to do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// hash of code, subject and interface: the same for the same finding in the next build
    pub fingerprint: String,
    /// who says so
    pub evidence: Vec<Evidence>,
}

/// The waiver that covers a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Waived {
    /// why, as the configuration says
    pub reason: String,
    /// last day, `2027-03-01`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Finding {
    /// A finding at its default level; `checks` sets the level from the registry and the fingerprint at the end.
    pub fn new(code: &'static str, outcome: Outcome, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            outcome,
            level: Level::Deny,
            target: None,
            waived: None,
            subject: subject.into(),
            message: message.into(),
            expected: None,
            found: None,
            fix: None,
            fingerprint: String::new(),
            evidence: Vec::new(),
        }
    }
    /// Sets the level where it depends on the configuration.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
    /// Both sides of a comparison.
    #[must_use]
    pub fn sides(mut self, expected: impl ToString, found: impl ToString) -> Self {
        self.expected = Some(expected.to_string());
        self.found = Some(found.to_string());
        self
    }
    /// The remedy.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
    /// Adds evidence.
    #[must_use]
    pub fn evidence(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }
    /// What this finding does to the verdict.
    pub fn verdict(&self) -> Verdict {
        match (self.level, self.outcome, &self.waived) {
            // what cannot be read cannot be accepted either
            (Level::Deny, Outcome::Fail, _) if self.code == DAMAGED => Verdict::Unreadable,
            // a warning is denied only where the person says so
            (Level::Deny, Outcome::Fail | Outcome::Warn, None) => Verdict::Fail,
            (Level::Deny, Outcome::Unknown, None) => Verdict::Unknown,
            _ => Verdict::Pass,
        }
    }
}

/// Verdict for one named target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TargetVerdict {
    /// its name
    pub name: String,
    /// its verdict
    pub verdict: Verdict,
}

/// The report over one artefact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArtifactReport {
    /// as the person gave it
    pub path: String,
    /// one line: kind, device, release range
    pub summary: String,
    /// over all targets
    pub verdict: Verdict,
    /// per named target
    pub targets: Vec<TargetVerdict>,
    /// every check that ran
    pub findings: Vec<Finding>,
    /// what the configuration did not ask
    pub not_asked: Vec<String>,
    /// what this file cannot tell
    pub not_knowable: Vec<String>,
    /// `explain`: likely causes, best first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// `diff`: what changed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// `verify --cases`: each recorded list of inputs
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
    /// the line of the configuration that asked for this artefact
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<ConfigPlace>,
    /// why it could not be read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ArtifactReport {
    /// A report without any finding yet.
    pub fn new(path: impl Into<String>, verdict: Verdict) -> Self {
        Self {
            path: path.into(),
            summary: String::new(),
            verdict,
            targets: Vec::new(),
            findings: Vec::new(),
            not_asked: Vec::new(),
            not_knowable: Vec::new(),
            causes: Vec::new(),
            changes: Vec::new(),
            cases: None,
            asked_at: None,
            error: None,
        }
    }

    /// Settles the verdicts, over all and per target, from the findings as they now are. A file that could not be
    /// read stays so.
    pub fn settle(&mut self) {
        if self.error.is_some() {
            return;
        }
        self.verdict = worst(self.findings.iter());
        for target in &mut self.targets {
            let concerns = |f: &&Finding| f.target.as_ref().is_none_or(|name| *name == target.name);
            target.verdict = worst(self.findings.iter().filter(concerns));
        }
    }
}

/// Unreadable before failed before unknown before passed.
fn worst<'a>(findings: impl Iterator<Item = &'a Finding>) -> Verdict {
    let verdicts: Vec<Verdict> = findings.map(Finding::verdict).collect();
    let order = [Verdict::Unreadable, Verdict::Fail, Verdict::Unknown];
    order.into_iter().find(|v| verdicts.contains(v)).unwrap_or(Verdict::Pass)
}

/// Where a configuration file asks for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigPlace {
    /// path of the file, as found
    pub file: String,
    /// line, from 1
    pub line: usize,
    /// column, from 1
    pub column: usize,
}

/// How a model takes many recorded lists of inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Cases {
    /// lists, each counted as often as it occurred
    pub total: u64,
    /// taken
    pub accepted: u64,
    /// refused
    pub refused: u64,
    /// not to be told
    pub undecided: u64,
    /// reasons of those not taken, most frequent first
    pub refusals: Vec<Refusals>,
    /// line of the file and its verdict
    pub verdicts: Vec<(usize, Verdict)>,
}

impl Cases {
    /// Accepted ones in percent, rounded down so that 100 % means all.
    pub fn share(&self) -> String {
        let permille = self.accepted.saturating_mul(1000).checked_div(self.total).unwrap_or(0);
        format!("{}.{} %", permille / 10, permille % 10)
    }
}

/// Recorded lists that are not taken for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusals {
    /// code of the reason
    pub code: &'static str,
    /// path of the fact
    pub subject: String,
    /// `fail` or `unknown`
    pub verdict: Verdict,
    /// the first one's sentence
    pub message: String,
    /// lists
    pub count: u64,
    /// the first lines
    pub lines: Vec<usize>,
}

impl Refusals {
    /// An empty group for a reason.
    pub fn new(finding: &Finding) -> Self {
        Self {
            code: finding.code,
            subject: finding.subject.clone(),
            verdict: if finding.outcome == Outcome::Fail { Verdict::Fail } else { Verdict::Unknown },
            message: finding.message.clone(),
            count: 0,
            lines: Vec::new(),
        }
    }
}

/// A likely cause of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// from 1
    pub rank: usize,
    /// id of the pattern, `chk-dim`
    pub pattern: String,
    /// class of the failure, `C04`
    pub class: String,
    /// line of the log, from 1; absent when it follows from the artefact alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// the cause in one sentence
    pub sentence: String,
    /// what log and artefact say about it
    pub evidence: Vec<Evidence>,
    /// what to do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// How a change concerns people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// nobody has to care
    Cosmetic,
    /// works as before, and more
    Compatible,
    /// something that worked may fail
    Breaking,
}

/// Whom a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// the code that calls the model
    Caller,
    /// the machine that runs it
    Host,
}

/// One change between two artefacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// path of the fact
    pub subject: String,
    /// `added`, `removed`, `changed`
    pub kind: String,
    /// how much it matters
    pub grade: Grade,
    /// to whom
    pub side: Side,
    /// value before
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// value after
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `verify`, `explain`, `diff`
    pub command: String,
    /// in the order given
    pub artifacts: Vec<ArtifactReport>,
}

impl Report {
    /// The exit code that the verdicts give.
    pub fn exit(&self) -> Exit {
        self.artifacts.iter().map(|a| Exit::from(a.verdict)).fold(Exit::Holds, Exit::worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_beats_failed_beats_undecided() {
        assert_eq!(Exit::Fails.worst(Exit::Undecided), Exit::Fails);
        assert_eq!(Exit::Fails.worst(Exit::Unreadable), Exit::Unreadable);
        assert_eq!(Exit::Holds.worst(Exit::Undecided), Exit::Undecided);
        assert_eq!(Exit::Usage.worst(Exit::Unreadable), Exit::Usage);
    }
}
