//! The library's own C interface, interpreted in a closed machine. Nothing runs natively.
//!
//! Bottom up: `memory` and `value` (bits, and what they mean in symbols), `cpu` (processors), `loader`, `imports`
//! (what the system and libtorch would answer), `explore` (branches on symbols), `machine` (the loop), `session`
//! (create, ask, run), `observe` and `constants` (what was seen, as facts).
//!
//! # Limits
//! Instructions, memory, call depth and expressions are capped ([`crate::limits`]). Whatever ends a run early stands in
//! [`Recovery::stopped`], and every fact that was not reached is unknown with a reason.

mod address_map;
mod constants;
mod cpu;
mod explore;
mod giving_up;
mod imports;
mod layout;
mod loader;
mod machine;
mod memory;
mod observe;
mod session;
mod tensors;
mod trace;
mod value;

pub use observe::WeightsRelation;

use crate::error::Result;
use crate::image::Image;
use crate::limits;
use crate::model::Interface;

/// How a library is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// answer the library's own parser of device strings, nine tenths of all instructions otherwise
    pub answers_device_parser: bool,
    /// keep what the run does, step by step
    pub traces: bool,
    /// instructions at most, below the budget for a library of its size
    pub instructions: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { answers_device_parser: true, traces: false, instructions: limits::INSTRUCTIONS }
    }
}

/// What interpreting a library told.
#[derive(Debug, Clone, Default)]
pub struct Recovery {
    /// the testimony
    pub interface: Interface,
    /// instructions executed, the work of imports included
    pub instructions: u64,
    /// instructions that were allowed
    pub budget: u64,
    /// why it ended before the end of the run
    pub stopped: Option<String>,
    /// imports that were called and are not modelled
    pub unknown_imports: Vec<String>,
    /// what the library asks of the file that its weights are appended to
    pub weights_relations: Vec<WeightsRelation>,
}

/// Interprets a library: creates the model, asks all getters, runs it once on tensors of symbolic sizes.
///
/// # Errors
/// [`crate::error::ErrorKind::Unsupported`] when there is no processor for its machine; those of the image's tables
/// that a loader needs. What goes wrong later is in [`Recovery::stopped`].
pub fn recover(image: &Image<'_>, options: Options) -> Result<Recovery> {
    let mut visit = session::create(image, &options)?;
    visit.ask_all();
    visit.run();
    let stopped = visit.failures.first().map(|(phase, reason)| format!("{phase}: {reason}"));
    let mut observed = observe::observe(&mut visit, image, options.traces);
    let (instructions, budget) = (visit.machine.spent(), visit.machine.budget());
    if let Some(trace) = &mut observed.interface.trace {
        (trace.instructions, trace.budget) = (instructions, budget);
    }
    Ok(Recovery {
        interface: observed.interface,
        instructions,
        budget,
        stopped,
        unknown_imports: visit.machine.imports.unknown.keys().cloned().collect(),
        weights_relations: observed.weights,
    })
}
