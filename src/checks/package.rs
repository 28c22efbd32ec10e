//! Names that the caller relies on: the model in the package, and metadata keys.

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::Artifact;
use crate::report::{Finding, Level, Outcome};
use crate::target::LoadConfig;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "model-missing",
        summary: "the package has no model of that name",
        level: Level::Deny,
        page: Page {
            compares: "The name in `--model` with the folders below `data/aotinductor` of the package.",
            matters: "The loader finds no library: `Failed to find a model named … in the package`, or takes another \
                      model whose name begins alike.",
            reports: "Class C14 of the failure study; the loader's default name is `model`.",
            fix: "Load one of the names that `show` prints, or package the model under the wanted name.",
        },
    },
    Code {
        id: "metadata-key",
        summary: "a metadata key is missing or has another value",
        level: Level::Deny,
        page: Page {
            compares: "Keys and values given with `--metadata` with the metadata JSON of the model.",
            matters: "The serving code reads its own settings from there and falls back to something else.",
            reports: "Interatomic-potential packages that keep their cut-offs and defaults as metadata.",
            fix: "Compile with `aot_inductor.metadata={…}` holding the key, or correct the expectation.",
        },
    },
];

/// The model that is asked for is there.
pub fn check_model_name(artifact: &Artifact, config: &LoadConfig, judgement: &mut Judgement) {
    let Some(name) = &config.model else { return };
    let names: Vec<&str> = artifact.models.iter().map(|m| m.name.as_str()).collect();
    judgement.push(if names.contains(&name.as_str()) {
        Finding::new("model-missing", Outcome::Pass, "models", format!("there is a model `{name}`"))
    } else {
        let message = format!("there is no model `{name}`, but {}", names.join(", "));
        Finding::new("model-missing", Outcome::Fail, "models", message)
            .sides(names.join(", "), name)
            .fix("load one of the names that are there")
    });
}

/// Metadata keys, with their values where given.
pub fn check_metadata(subject: &Subject, judgement: &mut Judgement) {
    for (key, wanted) in &subject.config.metadata {
        let path = subject.path("metadata");
        let found = subject.model.metadata.iter().find(|entry| entry.key == *key);
        judgement.push(match (found, wanted) {
            (None, _) if subject.artifact.unknown_reason(&path).is_some() => {
                subject.unknown("metadata-key", "metadata", &format!("whether the metadata has `{key}`"))
            }
            (None, _) => Finding::new("metadata-key", Outcome::Fail, path, format!("the metadata has no key `{key}`"))
                .fix("compile with aot_inductor.metadata holding it"),
            (Some(entry), Some(wanted)) if entry.value != *wanted => {
                let message = format!("metadata `{key}` is `{}`, not `{wanted}`", entry.value);
                Finding::new("metadata-key", Outcome::Fail, path, message).sides(&entry.value, wanted)
            }
            (Some(entry), _) => {
                Finding::new("metadata-key", Outcome::Pass, path, format!("metadata `{key}` is `{}`", entry.value))
            }
        });
    }
}
