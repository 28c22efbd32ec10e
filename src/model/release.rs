//! Minor releases of torch: `2.9`, `2.10`, compared as numbers.

use super::Evidence;
use std::fmt;

/// A minor release of torch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// `2` of `2.10`
    pub major: u16,
    /// `10` of `2.10`
    pub minor: u16,
}

impl Release {
    /// `Release::new(2, 10)` is torch 2.10.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
    /// The first two numbers of `2.10`, `2.9.1+cu128`, `2.6.0a0+git`; `None` for anything else.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, '.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?;
        let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        Some(Self { major, minor: minor.get(..digits)?.parse().ok()? })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

/// A feature that dates the compiler: the releases that write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated {
    /// lowest release that writes it
    pub min: Option<Release>,
    /// highest release that writes it
    pub max: Option<Release>,
    /// what was seen, and where
    pub evidence: Evidence,
}

super::dtype::as_text!(Release, "Release");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_as_numbers() {
        assert!(Release::from_text("2.10") > Release::from_text("2.9.1+cu128"));
        assert_eq!(Release::from_text("2.6.0a0+git1"), Some(Release::new(2, 6)));
        assert_eq!(Release::from_text("2"), None);
        assert_eq!(Release::from_text("2.x"), None);
    }
}
