//! Reads compiled PyTorch AOTInductor artefacts without running them, and tells whether they will load and run.
//!
//! ```
//! use aoti_inspect::target::{InputRequests, InputTexts, LoadConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::path::Path::new("testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2");
//! # if !path.exists() { return Ok(()) }
//! let artifact = aoti_inspect::inspect(path, &aoti_inspect::Settings::default())?;
//! let model = artifact.models.first().ok_or("no model")?;
//! println!("{} is compiled for {:?}", model.name, model.device);
//!
//! let inputs = ["f32[8, 10]".to_owned()];
//! let config = LoadConfig {
//!     inputs: InputRequests::from_texts(InputTexts { input: &inputs, ..InputTexts::default() })?,
//!     ..LoadConfig::default()
//! };
//! let report = aoti_inspect::verify(&artifact, &config);
//! assert_eq!(report.verdict, aoti_inspect::report::Verdict::Pass);
//! # Ok(())
//! # }
//! ```

pub mod assemble;
pub mod checks;
pub mod cli;
pub mod container;
pub mod diff;
pub mod error;
pub mod explain;
pub mod image;
pub mod interpret;
pub mod kernel;
pub mod limits;
pub mod metadata;
pub mod model;
pub mod render;
pub mod report;
pub mod source;
pub mod target;
pub mod wrapper;
pub mod xref;

pub use assemble::{CodeReading, Settings};
pub use checks::verify_artifact;

use std::path::Path;

/// Opens a file or an unpacked package and says all that is known about it.
///
/// What it is decides the content. A file that is no AOTInductor artefact, or a broken one, gives an
/// [`model::Artifact`] whose `error` says what it is and what to do.
///
/// # Errors
/// The file cannot be read, or a folder holds no package.
pub fn inspect(path: &Path, settings: &Settings) -> error::Result<model::Artifact> {
    let container = container::open(path)?;
    Ok(assemble::assemble(&path.display().to_string(), &container, settings))
}

/// Judges an artefact for one load configuration, with the built-in levels.
pub fn verify(artifact: &model::Artifact, config: &target::LoadConfig) -> report::ArtifactReport {
    checks::verify_artifact(artifact, config, &checks::Policy::default())
}
