//! How an artefact is going to be loaded: the flags' and files' notations, and what they mean.

mod bytes;
mod config;
pub mod project;
mod usage;

pub use bytes::parse_bytes;
pub use config::{LoadConfig, Loader};
pub use usage::{UsageError, near_matches};
