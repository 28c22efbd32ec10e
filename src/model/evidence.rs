//! Who says so, and why something could not be said.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Where a fact was read. Ordered from the cheapest claim to the strongest proof is *not* implied:
/// code (`Code`, `CrossReference`) beats claims (`Metadata`, `Source`, `FileName`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// layout, names and order of a package's members
    Archive,
    /// a metadata JSON member
    Metadata,
    /// generated wrapper or kernel source, shipped or beside the library
    Source,
    /// an exported program
    ExportedProgram,
    /// header, sections, symbols of the library
    Header,
    /// functions that the library imports
    Imports,
    /// functions that the library exports
    Exports,
    /// libraries named as needed
    Needed,
    /// texts in the library
    Strings,
    /// machine code, interpreted
    Code,
    /// machine code, message paired with its number along the control flow
    CrossReference,
    /// a kernel file or embedded kernel
    Kernel,
    /// device or layout of the constants
    Constants,
    /// derived by a rule from other facts; `detail` names the rule
    Inferred,
    /// the name of a file
    FileName,
    /// a line of the log, or the exit status, that a person gave to `explain`
    Log,
    /// the load configuration that a person gave
    LoadConfiguration,
}

/// One witness's statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evidence {
    /// who says so
    pub source: Witness,
    /// the member it stands in
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// line of a text, counted from 1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// byte offset in the member
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// what it says, in its own words where short
    pub detail: String,
}

impl Evidence {
    /// A statement without a place.
    pub fn new(source: Witness, detail: impl Into<String>) -> Self {
        Self { source, member: None, line: None, offset: None, detail: detail.into() }
    }
    /// Adds the member.
    #[must_use]
    pub fn in_member(mut self, member: impl Into<String>) -> Self {
        self.member = Some(member.into());
        self
    }
    /// Adds the line, from 1.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
    /// Adds the byte offset.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }
}

/// A part of interpreting a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// its tables are put into memory
    Loading,
    /// what runs when it is opened
    Initialisers,
    /// the model is made
    Creation,
    /// names, counts and constants are asked for
    Getters,
    /// the model runs
    Run,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Loading => "loading",
            Self::Initialisers => "initialisers",
            Self::Creation => "creation",
            Self::Getters => "getters",
            Self::Run => "run",
        })
    }
}

/// A fact that could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unknown {
    /// path of the fact: `models[0].inputs[0].shape[1]`; in an [`super::Interface`] without the `models[N].`
    pub fact: String,
    /// one clause a person understands
    pub reason: String,
    /// interpreting the machine code ended there, for this reason
    #[serde(skip)]
    pub stopped_in: Option<Phase>,
}

impl Unknown {
    /// `fact` is a path such as `inputs[0].dtype`.
    pub fn new(fact: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { fact: fact.into(), reason: reason.into(), stopped_in: None }
    }
    /// All that interpreting the machine code would have told beyond a phase.
    pub fn behind(phase: Phase, reason: &str) -> Self {
        let reason = format!("reading the machine code, {phase}: {reason}");
        Self { fact: String::new(), reason, stopped_in: Some(phase) }
    }
}

/// Two witnesses that disagree about one fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conflict {
    /// code of the check that reports it: `device-conflict`, `source-differs-from-code`, `source-stale`, …
    pub code: String,
    /// path of the fact below the model: `device`, `inputs[0].shape[1]`
    pub subject: String,
    /// the statement that was believed, first, and those that contradict it
    pub sides: Vec<Evidence>,
}
