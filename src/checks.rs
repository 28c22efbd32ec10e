//! Judges an [`Artifact`] against a [`LoadConfig`]: pure functions, one file per subject.
//!
//! To add a check: write `fn check(&Subject, &mut Judgement)` (or one over the whole artefact) in the file of its
//! subject, register its codes in that file's `CODES`, and add the function to [`MODEL_CHECKS`] or
//! [`ARTIFACT_CHECKS`] and the table to [`codes`].

mod advisories;
pub mod assertions;
pub mod codes;
mod conflicts;
mod constants;
mod cpu;
mod damage;
mod device;
mod exported;
mod gpu;
mod hazards;
mod host;
pub mod inputs;
mod kernel_files;
pub mod known;
mod libtorch;
mod operators;
mod package;
mod policy;
mod project;
#[cfg(test)]
mod sample;
mod security;
mod sizes;

pub use policy::Policy;

use crate::model::{Artifact, Model};
use crate::report::{ArtifactReport, Finding, Outcome, Verdict};
use crate::target::LoadConfig;

/// One model and the configuration it is judged for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// all of the file
    pub artifact: &'a Artifact,
    /// position of the model in it
    pub index: usize,
    /// the model
    pub model: &'a Model,
    /// how it is going to be loaded
    pub config: &'a LoadConfig,
}

impl Subject<'_> {
    /// Full path of a fact of this model: `device` becomes `models[0].device`.
    pub fn path(&self, fact: &str) -> String {
        format!("models[{}].{fact}", self.index)
    }
    /// Why a fact of this model is unknown, as the readers said it.
    pub fn why_unknown(&self, fact: &str) -> &str {
        self.artifact.unknown_reason(&self.path(fact)).unwrap_or("nothing in the file states it")
    }
    /// The readers' reason, when they gave one for this fact.
    pub fn unknown_reason(&self, fact: &str) -> Option<&str> {
        self.artifact.unknown_reason(&self.path(fact))
    }
    /// The finding for something that was asked and cannot be told; its message ends with the readers' reason.
    pub fn unknown(&self, code: &'static str, fact: &str, what: &str) -> Finding {
        Finding::new(code, Outcome::Unknown, self.path(fact), format!("{what}: {}", self.why_unknown(fact)))
    }
}

/// What the checks say. They push; nobody reads it before all have run.
#[derive(Debug, Default)]
pub struct Judgement {
    /// every result, passes too
    pub findings: Vec<Finding>,
    /// topics that the configuration leaves open: `gpu`, `inputs 1 to 25`
    pub not_asked: Vec<String>,
    /// what cannot be known from this file
    pub not_knowable: Vec<String>,
    /// recorded lists of inputs, where asked
    pub cases: Option<crate::report::Cases>,
}

impl Judgement {
    /// Adds a result.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
    /// Notes a topic that was not asked, once.
    pub fn not_asked(&mut self, topic: impl Into<String>) {
        let topic = topic.into();
        if !self.not_asked.contains(&topic) {
            self.not_asked.push(topic);
        }
    }
    /// Notes what this file cannot tell, once.
    pub fn not_knowable(&mut self, topic: impl Into<String>) {
        let topic = topic.into();
        if !self.not_knowable.contains(&topic) {
            self.not_knowable.push(topic);
        }
    }
}

/// Checks of one model, in the order of the report.
pub const MODEL_CHECKS: &[fn(&Subject, &mut Judgement)] = &[
    conflicts::check,
    device::check,
    package::check_metadata,
    hazards::check,
    inputs::check,
    exported::check,
    gpu::check,
    kernel_files::check,
    constants::check,
    operators::check,
    cpu::check,
    libtorch::check,
    host::check,
    security::check,
    advisories::check,
];

/// Checks of the file as a whole.
pub const ARTIFACT_CHECKS: &[fn(&Artifact, &LoadConfig, &mut Judgement)] =
    &[damage::check, package::check_model_name, hazards::check_artifact, security::check_artifact, project::check];

/// Runs every check for the models that the configuration selects (all, unless it names one).
pub fn judge(artifact: &Artifact, config: &LoadConfig) -> Judgement {
    let mut judgement = Judgement::default();
    for check in ARTIFACT_CHECKS {
        check(artifact, config, &mut judgement);
    }
    for (index, model) in artifact.models.iter().enumerate() {
        if config.model.as_ref().is_none_or(|name| *name == model.name) {
            let subject = Subject { artifact, index, model, config };
            for check in MODEL_CHECKS {
                check(&subject, &mut judgement);
            }
        }
    }
    judgement
}

/// Judges one artefact for one load configuration, with levels and fingerprints settled.
pub fn verify_artifact(artifact: &Artifact, config: &LoadConfig, policy: &Policy) -> ArtifactReport {
    if let Some(error) = &artifact.error {
        // what cannot be judged can still be dangerous to unpack
        let mut judgement = Judgement::default();
        hazards::check_names(artifact, config, &mut judgement);
        judgement.findings.retain(|finding| finding.outcome != Outcome::Pass);
        settle(&mut judgement.findings, artifact, config, policy);
        return ArtifactReport {
            summary: artifact.kind.title().to_owned(),
            findings: judgement.findings,
            error: Some(error.clone()),
            ..ArtifactReport::new(&artifact.path, Verdict::Unreadable)
        };
    }
    let Judgement { mut findings, not_asked, not_knowable, cases } = judge(artifact, config);
    settle(&mut findings, artifact, config, policy);
    let verdict = Verdict::Pass;
    let targets = config.name.iter().map(|name| crate::report::TargetVerdict { name: name.clone(), verdict }).collect();
    let mut report = ArtifactReport {
        summary: artifact.summary(),
        targets,
        findings,
        not_asked,
        not_knowable,
        cases,
        ..ArtifactReport::new(&artifact.path, verdict)
    };
    report.settle();
    report
}

/// Levels, targets and fingerprints.
fn settle(findings: &mut [Finding], artifact: &Artifact, config: &LoadConfig, policy: &Policy) {
    for finding in findings {
        policy.apply(finding);
        finding.target.clone_from(&config.name);
        finding.fingerprint = fingerprint(finding, artifact.interface_id.as_deref());
    }
}

/// Judges one artefact for several targets; findings name theirs, and the worst verdict is the artefact's.
pub fn verify_targets(artifact: &Artifact, configs: &[LoadConfig], policy: &Policy) -> ArtifactReport {
    let mut reports = configs.iter().map(|config| verify_artifact(artifact, config, policy));
    let Some(mut merged) = reports.next() else { return verify_artifact(artifact, &LoadConfig::default(), policy) };
    for report in reports {
        merged.findings.extend(report.findings);
        merged.targets.extend(report.targets);
        // a topic is open only when no target asks it
        merged.not_asked.retain(|topic| report.not_asked.contains(topic));
        let new = report.not_knowable.into_iter().filter(|topic| !merged.not_knowable.contains(topic));
        merged.not_knowable.extend(new.collect::<Vec<_>>());
        merged.cases = merged.cases.or(report.cases);
    }
    merged.settle();
    merged
}

/// The same for the same finding in the next build of an unchanged interface: the same demand is missed in the same way.
/// Another target, GPU or version is another finding, which a baseline does not know.
fn fingerprint(finding: &Finding, interface_id: Option<&str>) -> String {
    use sha2::{Digest, Sha256};
    use std::fmt::Write;
    let sides = [&finding.target, &finding.expected, &finding.found].map(|side| side.as_deref().unwrap_or_default());
    let interface = interface_id.unwrap_or_default();
    let text = format!("{}\n{}\n{interface}\n{}", finding.code, finding.subject, sides.join("\n"));
    Sha256::digest(text.as_bytes()).iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
