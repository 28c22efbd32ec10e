//! How an artefact is going to be loaded: the flags' and files' notations, and what they mean.

mod config;

pub use config::{LoadConfig, Loader};
