//! Known faults of torch that hit this artefact: `target/data/advisories.toml`. Always judged.

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::{Constant, DeviceKind, Dim, Evidence, Release, WeightsLocation, Witness};
use crate::report::{Finding, Level, Outcome};
use crate::target::advisories::{Advisory, AskedBy, Culprit, Precondition, advisories};

/// Codes of this subject.
pub const CODES: &[Code] = &[Code {
    id: "advisory-applies",
    summary: "a known fault of the torch that compiled or loads it concerns this artefact",
    level: Level::Deny,
    page: Page {
        compares: "The releases that may have compiled the artefact (or the one that loads it) and what it holds with a list \
                   of faults from public reports.",
        matters: "The runtime is compiled into the artefact: upgrading torch on the host does not repair a file that an older \
                  release made. A fault is a warning unless the load configuration meets it for certain.",
        reports: "Each row of the list names its report and how its range of releases was read.",
        fix: "Do what the finding says; compiling again with a newer torch removes faults of the runtime.",
    },
}];

/// Page size from which appended weights of most builds cannot be mapped.
const LARGE_PAGE: u64 = 65_536;

/// Judges one model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let mut judged = 0usize;
    let before = judgement.findings.len();
    for advisory in advisories() {
        judged += 1;
        let Some(certainty) = releases_fit(subject, advisory) else { continue };
        match holds(subject, advisory.precondition) {
            Some(true) => judgement.push(finding(subject, advisory, certainty)),
            Some(false) => {}
            // what cannot be told stands in the artefact's unknown facts already
            None => {}
        }
    }
    if judgement.findings.len() == before {
        let message = format!("none of {judged} known faults concerns it");
        judgement.push(Finding::new("advisory-applies", Outcome::Pass, subject.path("compiled_by"), message));
    }
}

/// Whether the releases that may be meant all have the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Sure,
    Possible,
}

/// `None`: no release that may be meant has it.
fn releases_fit(subject: &Subject, advisory: &Advisory) -> Option<Certainty> {
    let (low, high) = match advisory.culprit {
        Culprit::Artifact => {
            let compiled = &subject.model.compiled_by;
            (compiled.torch_min?, compiled.torch_max)
        }
        Culprit::Loader => match &subject.config.torch {
            Some(torch) => (torch.release, Some(torch.release)),
            None => return Some(Certainty::Possible),
        },
    };
    let last_possible = advisory.maybe_last.or(advisory.last);
    let reaches = |release: Release| last_possible.is_none_or(|last| release <= last);
    let overlaps = reaches(low) && high.is_none_or(|high| high >= advisory.first);
    let inside = low >= advisory.first
        && match (high, advisory.last) {
            (_, None) => true,
            (Some(high), Some(last)) => high <= last,
            (None, Some(_)) => false,
        };
    match (overlaps, inside) {
        (false, _) => None,
        (true, true) => Some(Certainty::Sure),
        (true, false) => Some(Certainty::Possible),
    }
}

/// `None`: the fact is not known.
fn holds(subject: &Subject, precondition: Precondition) -> Option<bool> {
    let model = subject.model;
    let kind = || model.device.as_ref().map(|d| &d.kind);
    let has_bytes = |c: &Constant| c.folded != Some(true) && c.size_bytes != Some(0);
    let has_constants = || model.constants.as_ref().map(|all| all.iter().any(has_bytes));
    match precondition {
        Precondition::GpuConstants => Some(*kind()? != DeviceKind::Cpu && has_constants()?),
        Precondition::CpuConstants => Some(*kind()? == DeviceKind::Cpu && has_constants()?),
        Precondition::FoldedConstants => {
            let constants = model.constants.as_ref()?;
            Some(constants.iter().any(|c| c.folded == Some(true)) && constants.iter().any(has_bytes))
        }
        Precondition::RelatedDims => related_dims(subject),
        Precondition::HasInputs => Some(!model.inputs.as_ref()?.is_empty()),
        Precondition::NamePrefix => {
            let others = subject.artifact.models.iter().filter(|other| other.name != model.name);
            Some(others.into_iter().any(|other| other.name.starts_with(&model.name)))
        }
        Precondition::AppendedOff64k => match model.weights.location? {
            WeightsLocation::Appended => Some(!model.weights.offset?.is_multiple_of(LARGE_PAGE)),
            _ => Some(false),
        },
        Precondition::LinuxLibrary => Some(model.platform.as_ref()?.os == "linux"),
    }
}

/// True when two dims of inputs share a symbol, or one is an expression.
fn related_dims(subject: &Subject) -> Option<bool> {
    let model = subject.model;
    if !model.relations.is_empty() || model.symbols.iter().any(|s| s.subjects.len() > 1) {
        return Some(true);
    }
    let inputs = model.inputs.as_ref()?;
    let mut seen = std::collections::BTreeSet::new();
    for dim in inputs.iter().filter_map(|i| i.shape.as_ref()).flatten().flatten() {
        match dim {
            Dim::Expr { .. } => return Some(true),
            Dim::Symbol { symbol, .. } if !seen.insert(symbol) => return Some(true),
            _ => {}
        }
    }
    Some(false)
}

/// A fault that the configuration meets for certain fails; the configuration may also rule it out.
fn finding(subject: &Subject, advisory: &Advisory, certainty: Certainty) -> Finding {
    let config = subject.config;
    let asked = advisory.asked_by.and_then(|asked| match asked {
        AskedBy::DeviceIndex => config.device.as_ref().and_then(|d| d.index).map(|index| index != 0),
        AskedBy::PageSize => {
            let offset = subject.model.weights.offset;
            config.page_size_bytes.filter(|p| *p > 0).map(|page| offset.is_some_and(|o| !o.is_multiple_of(page)))
        }
    });
    let is_loader = advisory.culprit == Culprit::Loader && config.torch.is_some();
    let outcome = match (asked, certainty) {
        (Some(false), _) => Outcome::Pass,
        (Some(true), Certainty::Sure) => Outcome::Fail,
        (None, Certainty::Sure) if is_loader => Outcome::Fail,
        _ => Outcome::Warn,
    };
    let may = if certainty == Certainty::Sure { "" } else { "may concern it: " };
    let message = format!("{}: {may}{}", advisory.id, advisory.effect);
    let range = match (advisory.last, advisory.maybe_last) {
        (Some(last), None) => format!("torch {} to {last}", advisory.first),
        (Some(last), Some(maybe)) => format!("torch {} to {last}, perhaps {maybe}", advisory.first),
        (None, _) => format!("torch {} and newer", advisory.first),
    };
    Finding::new("advisory-applies", outcome, subject.path(&format!("advisories.{}", advisory.id)), message)
        .fix(advisory.fix.clone())
        .evidence([Evidence::new(Witness::Inferred, format!("{range}: {}", advisory.link))])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{cpu, find, library, with_kernel_files};
    use super::*;
    use crate::model::{Artifact, Device};
    use crate::target::{LoadConfig, TorchVersion};

    fn found(artifact: &Artifact, config: &LoadConfig, id: &str) -> Vec<Outcome> {
        let path = format!(".advisories.{id}");
        find(check, artifact, config, "advisory-applies")
            .iter()
            .filter(|f| f.subject.ends_with(&path))
            .map(|f| f.outcome)
            .collect()
    }
    fn compiled_by(mut artifact: Artifact, min: u16, max: Option<u16>) -> Artifact {
        for model in &mut artifact.models {
            model.compiled_by.torch_min = Some(Release::new(2, min));
            model.compiled_by.torch_max = max.map(|minor| Release::new(2, minor));
        }
        artifact
    }

    #[test]
    fn device_index_fails_only_where_it_is_asked() {
        let old = compiled_by(with_kernel_files(&[]), 4, Some(5));
        let on = |index: Option<u16>| LoadConfig {
            device: Some(Device { index: index.map(Into::into), ..Device::new(DeviceKind::Cuda) }),
            ..LoadConfig::default()
        };
        assert_eq!(found(&old, &LoadConfig::default(), "device-index"), [Outcome::Warn]);
        assert_eq!(found(&old, &on(Some(1)), "device-index"), [Outcome::Fail]);
        assert_eq!(found(&old, &on(Some(0)), "device-index"), [Outcome::Pass]);
        let new = compiled_by(with_kernel_files(&[]), 6, Some(6));
        assert!(found(&new, &on(Some(1)), "device-index").is_empty());
    }

    #[test]
    fn ranges_decide_and_overlaps_say_may() {
        let folded = |min, max| {
            let mut artifact = compiled_by(cpu(), min, max);
            if let Some(constant) = artifact.models[0].constants.as_mut().and_then(|c| c.last_mut()) {
                constant.folded = Some(true);
            }
            artifact
        };
        let id = "partial-update-folded";
        assert_eq!(found(&folded(9, Some(9)), &LoadConfig::default(), id), [Outcome::Warn]);
        let finding = find(check, &folded(11, Some(12)), &LoadConfig::default(), "advisory-applies");
        assert!(finding.iter().any(|f| f.message.contains("may concern")), "{finding:?}");
        assert!(found(&folded(13, Some(13)), &LoadConfig::default(), id).is_empty());
        assert!(found(&compiled_by(cpu(), 9, Some(9)), &LoadConfig::default(), id).is_empty());
    }

    #[test]
    fn the_loader_s_faults_go_with_its_release() {
        let two = library("2.15.0-cpu-two_models.pt2");
        let with = |version: &str| LoadConfig { torch: TorchVersion::from_text(version).ok(), ..LoadConfig::default() };
        let id = "model-name-prefix";
        assert_eq!(found(&two, &LoadConfig::default(), id), [Outcome::Warn]);
        assert_eq!(found(&two, &with("2.9"), id), [Outcome::Fail]);
        assert!(found(&two, &with("2.13"), id).is_empty());
        assert!(found(&library("2.15.0-cpu-mlp_dynamic.pt2"), &with("2.9"), id).is_empty());
    }

    #[test]
    fn appended_weights_want_the_page_size() {
        let appended = library("2.15.0-cpu-mmap_weights.pt2");
        let id = "appended-weights-pages";
        let with = |page: u64| LoadConfig { page_size_bytes: Some(page), ..LoadConfig::default() };
        assert_eq!(found(&appended, &LoadConfig::default(), id), [Outcome::Warn]);
        assert_eq!(found(&appended, &with(65_536), id), [Outcome::Fail]);
        assert_eq!(found(&appended, &with(4_096), id), [Outcome::Pass]);
    }

    #[test]
    fn old_libraries_carry_their_faults_along() {
        let old = library("2.2.2-cpu-mlp_dynamic.so");
        assert_eq!(found(&old, &LoadConfig::default(), "fast-math-at-load"), [Outcome::Warn]);
        let new = library("2.15.0-cpu-mlp_dynamic.pt2");
        let all = find(check, &new, &LoadConfig::default(), "advisory-applies");
        assert_eq!(all.iter().map(|f| f.outcome).collect::<Vec<_>>(), [Outcome::Pass]);
    }
}
