//! The one error type of the readers: what is wrong, where exactly, and what to do about it.

use std::fmt;

/// Where in an artefact something was found or went wrong.
///
/// Readers fill in what they know; outer floors add the rest (`Error::in_member`).
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Place {
    /// Member of a package (`data/aotinductor/model/x.wrapper.so`) or file of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Section, table or record inside the member (`.dynsym`, `end of central directory`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Byte offset, counted from the start of the member (of the file when there is no member).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sep = "";
        if let Some(member) = &self.member {
            write!(f, "{member}")?;
            sep = ", ";
        }
        if let Some(section) = &self.section {
            write!(f, "{sep}{section}")?;
            sep = ", ";
        }
        if let Some(offset) = self.offset {
            write!(f, "{sep}offset {offset:#x}")?;
        }
        Ok(())
    }
}

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The file or folder could not be read from the system.
    Io,
    /// Readable, and something else than an AOTInductor artefact.
    NotAoti,
    /// An AOTInductor artefact whose bytes contradict its format.
    Damaged,
    /// A cap of [`crate::limits`] was reached.
    Limit,
    /// A valid form that this version does not read.
    Unsupported,
}

/// A reader's failure: one sentence, its place, and a remedy where there is one.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    place: Place,
    message: String,
    help: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0.place.to_string();
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.0.message)?;
        if let Some(help) = &self.0.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

impl Error {
    /// An error without a place; add one with the `at_*` methods.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, place: Place::default(), message: message.into(), help: None }))
    }
    /// Bytes that contradict the format.
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Damaged, message)
    }
    /// A cap was reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }
    /// Names the section or table.
    #[must_use]
    pub fn in_section(mut self, section: impl Into<String>) -> Self {
        self.0.place.section.get_or_insert_with(|| section.into());
        self
    }
    /// Names the member; a place already set by an inner reader stays.
    #[must_use]
    pub fn in_member(mut self, member: impl Into<String>) -> Self {
        self.0.place.member.get_or_insert_with(|| member.into());
        self
    }
    /// Adds the byte offset.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.place.offset.get_or_insert(offset);
        self
    }
    /// What the person can do about it, as an imperative clause.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }
    /// The class of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// Where it happened.
    pub fn place(&self) -> &Place {
        &self.0.place
    }
    /// The sentence alone, without place and help.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The remedy alone.
    pub fn remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

/// Result of the readers.
pub type Result<T> = std::result::Result<T, Error>;
