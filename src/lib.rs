//! Reads compiled PyTorch AOTInductor artefacts without running them, and tells whether they will load and run.

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
