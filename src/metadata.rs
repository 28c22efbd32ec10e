//! The JSON members of a package: metadata, call specs, extern nodes, weights configuration, build flags, exported
//! programs. All of it is text from outside: parsed under caps, and tolerant, so that damage to one part leaves the rest
//! readable.

pub mod aoti;
pub mod call_spec;
pub mod exported_program;
pub mod expression;
pub mod extern_nodes;
pub mod flags;
mod json;
pub mod objects;
pub mod symbol_number;
pub mod weights_config;
