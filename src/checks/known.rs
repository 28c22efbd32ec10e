//! Findings that are known: waivers of the project file, and a baseline. They do not fail; what of them is
//! expired, unmatched or gone is reported.

use crate::report::{ArtifactReport, Finding, Level, Outcome, Report, Verdict, Waived};
use crate::target::project::{Waiver, is_expired};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Findings that were accepted at one time, in a file of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// 1
    pub version: u32,
    /// in the order of the report
    pub findings: Vec<KnownFinding>,
}

/// One accepted finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFinding {
    /// path of the artefact
    pub artifact: String,
    /// its code, for people
    pub code: String,
    /// its subject, for people
    pub subject: String,
    /// what is compared
    pub fingerprint: String,
}

impl Baseline {
    /// All findings of a report that count now.
    pub fn of(report: &Report) -> Self {
        let findings = report.artifacts.iter().flat_map(|artifact| {
            artifact.findings.iter().filter(|f| is_open(f)).map(|f| KnownFinding {
                artifact: artifact.path.clone(),
                code: f.code.to_owned(),
                subject: f.subject.clone(),
                fingerprint: f.fingerprint.clone(),
            })
        });
        let mut findings: Vec<KnownFinding> = findings.collect();
        findings.dedup();
        Self { version: 1, findings }
    }

    /// Marks what it knows and returns what is gone, as findings of the baseline itself.
    pub fn apply(&self, report: &mut Report, file: &str) -> Vec<Finding> {
        let mut seen = vec![false; self.findings.len()];
        for artifact in &mut report.artifacts {
            for finding in artifact.findings.iter_mut().filter(|f| is_open(f)) {
                let known = self
                    .findings
                    .iter()
                    .position(|k| k.artifact == artifact.path && k.fingerprint == finding.fingerprint);
                if let Some(seen) = known.and_then(|at| seen.get_mut(at)) {
                    *seen = true;
                    finding.waived = Some(Waived { reason: format!("known since {file}"), until: None });
                }
            }
            artifact.settle();
        }
        let looked_at = |path: &str| report.artifacts.iter().any(|a| a.path == path);
        let gone = self.findings.iter().zip(seen).filter(|(known, seen)| !seen && looked_at(&known.artifact));
        gone.map(|(known, _)| {
            let message = format!("{} of {} ({}) is no longer found", known.code, known.artifact, known.subject);
            Finding::new("baseline-vanished", Outcome::Warn, &known.subject, message)
                .level(Level::Warn)
                .fix("write the baseline again with --write-baseline")
        })
        .collect()
    }
}

/// Counts against the verdict and can be accepted: damage cannot.
fn is_open(finding: &Finding) -> bool {
    matches!(finding.verdict(), Verdict::Fail | Verdict::Unknown)
}

/// Marks what the waivers cover. Returns what is wrong with them; `today` is `2027-03-01`, globs start in `folder`.
pub fn apply_waivers(report: &mut Report, waivers: &[Waiver], folder: &Path, today: &str) -> Vec<Finding> {
    let mut remarks = Vec::new();
    for waiver in waivers {
        let glob = waiver.path.as_ref().and_then(|glob| matcher(folder, glob));
        let covers = |artifact: &ArtifactReport| waiver.path.is_none() || matches(glob.as_ref(), &artifact.path);
        let mut found = 0;
        let expired = waiver.until.as_ref().filter(|day| is_expired(day, today));
        for artifact in &mut report.artifacts {
            if !covers(artifact) {
                continue;
            }
            for finding in &mut artifact.findings {
                let is_its_target = waiver.target.is_none() || waiver.target == finding.target;
                if finding.code == waiver.code
                    && is_its_target
                    && finding.outcome != Outcome::Pass
                    && finding.waived.is_none()
                {
                    found += 1;
                    if expired.is_none() {
                        finding.waived = Some(Waived { reason: waiver.reason.clone(), until: waiver.until.clone() });
                    }
                }
            }
            artifact.settle();
        }
        let at = format!("line {}", waiver.place.line);
        if let Some(day) = expired {
            let message = format!("the waiver of {} ended on {day}; it would cover {found} findings", waiver.code);
            remarks.push(Finding::new("waiver-expired", Outcome::Warn, at, message).level(Level::Warn));
        } else if found == 0 {
            let message = format!("the waiver of {} covers no finding of this run", waiver.code);
            remarks.push(Finding::new("waiver-unmatched", Outcome::Warn, at, message).level(Level::Warn));
        }
    }
    remarks
}

/// A glob of the project file over absolute paths.
pub fn matcher(folder: &Path, glob: &str) -> Option<globset::GlobMatcher> {
    let base = globset::escape(&absolute(folder).display().to_string());
    let text = if Path::new(glob).is_absolute() { glob.to_owned() } else { format!("{base}/{glob}") };
    globset::GlobBuilder::new(&text).literal_separator(true).build().ok().map(|g| g.compile_matcher())
}

fn matches(glob: Option<&globset::GlobMatcher>, path: &str) -> bool {
    glob.is_some_and(|glob| glob.is_match(absolute(Path::new(path))))
}

/// Absolute and without `.`; the file need not exist.
fn absolute(path: &Path) -> PathBuf {
    let start = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(start).unwrap_or_else(|_| start.to_path_buf()).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ConfigPlace;

    fn report() -> Report {
        let mut artifact = ArtifactReport::new("build/a.pt2", Verdict::Fail);
        let mut finding = Finding::new("gpu-arch", Outcome::Fail, "models[0]", "no");
        finding.fingerprint = "01".into();
        artifact.findings = vec![finding, Finding::new("device-type", Outcome::Pass, "models[0].device", "yes")];
        let unreadable =
            ArtifactReport { error: Some("cut".into()), ..ArtifactReport::new("build/b.pt2", Verdict::Unreadable) };
        Report { command: "verify".into(), artifacts: vec![artifact, unreadable] }
    }

    fn waiver(path: &str, until: Option<&str>) -> Waiver {
        Waiver {
            code: "gpu-arch".into(),
            path: Some(path.into()),
            target: None,
            reason: "old".into(),
            until: until.map(str::to_owned),
            place: ConfigPlace { file: "aoti-inspect.toml".into(), line: 3, column: 1 },
        }
    }

    #[test]
    fn a_waiver_covers_its_findings_until_its_day() {
        let mut covered = report();
        let remarks =
            apply_waivers(&mut covered, &[waiver("build/*.pt2", Some("2027-03-01"))], Path::new(""), "2027-03-01");
        assert_eq!((covered.artifacts[0].verdict, remarks.len()), (Verdict::Pass, 0));
        assert_eq!(covered.artifacts[1].verdict, Verdict::Unreadable);

        let mut late = report();
        let remarks = apply_waivers(&mut late, &[waiver("build/*", Some("2027-03-01"))], Path::new(""), "2027-03-02");
        assert_eq!((late.artifacts[0].verdict, remarks[0].code), (Verdict::Fail, "waiver-expired"));

        let elsewhere = Waiver { target: Some("lab".into()), ..waiver("build/*", None) };
        let mut other = report();
        let remarks = apply_waivers(&mut other, &[elsewhere], Path::new(""), "2027-03-02");
        assert_eq!((other.artifacts[0].verdict, remarks[0].code), (Verdict::Fail, "waiver-unmatched"));

        let mut other = report();
        let remarks = apply_waivers(&mut other, &[waiver("dist/*", None)], Path::new(""), "2027-03-02");
        assert_eq!((other.artifacts[0].verdict, remarks[0].code), (Verdict::Fail, "waiver-unmatched"));
    }

    #[test]
    fn a_baseline_knows_old_findings_and_misses_those_that_are_gone() {
        let baseline = Baseline::of(&report());
        assert_eq!(baseline.findings.len(), 1);
        let mut again = report();
        assert!(baseline.apply(&mut again, "baseline.json").is_empty());
        assert_eq!(again.artifacts[0].verdict, Verdict::Pass);
        assert_eq!(again.artifacts[1].verdict, Verdict::Unreadable, "never covers exit 3");

        let mut changed = report();
        changed.artifacts[0].findings[0].fingerprint = "02".into();
        let gone = baseline.apply(&mut changed, "baseline.json");
        assert_eq!((changed.artifacts[0].verdict, gone[0].code), (Verdict::Fail, "baseline-vanished"));
    }
}
