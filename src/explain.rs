//! From an error to its cause: error texts as data, log reading, and what the artefact says about them.

pub mod class;
pub mod exit;
pub mod frame;
pub mod log;
pub mod pattern;
