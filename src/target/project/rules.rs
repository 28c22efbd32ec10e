//! Waivers and size budgets.

use crate::report::ConfigPlace;
use serde::Deserialize;

/// A finding that is known and accepted for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiver {
    /// code of the finding
    pub code: String,
    /// glob over artefact paths, relative to the file; absent: all
    pub path: Option<String>,
    /// target whose findings it covers; absent: all
    pub target: Option<String>,
    /// why
    pub reason: String,
    /// last day in UTC, `2027-03-01`
    pub until: Option<String>,
    /// its line
    pub place: ConfigPlace,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWaiver {
    pub(super) code: toml::Spanned<String>,
    path: Option<toml::Spanned<String>>,
    target: Option<String>,
    reason: toml::Spanned<String>,
    until: Option<toml::Spanned<toml::Value>>,
}

impl RawWaiver {
    /// The waiver, or what is wrong, with the offset of the key concerned.
    pub(super) fn read(self, at: &dyn Fn(usize) -> ConfigPlace) -> (usize, Result<Waiver, String>) {
        let start = self.code.span().start;
        if self.reason.get_ref().trim().is_empty() {
            return (self.reason.span().start, Err("a waiver needs a reason".to_owned()));
        }
        if let Some(glob) = &self.path
            && let Err(message) = check_glob(glob.get_ref())
        {
            return (glob.span().start, Err(message));
        }
        let mut until = None;
        if let Some(day) = &self.until {
            let date = match day.get_ref() {
                toml::Value::Datetime(datetime) => datetime.date,
                toml::Value::String(text) => text.parse::<toml::value::Datetime>().ok().and_then(|d| d.date),
                _ => None,
            };
            let Some(date) = date else {
                return (day.span().start, Err("the date is none: write it as 2027-03-01".to_owned()));
            };
            until = Some(format!("{:04}-{:02}-{:02}", date.year, date.month, date.day));
        }
        let waiver = Waiver {
            code: self.code.into_inner(),
            path: self.path.map(toml::Spanned::into_inner),
            target: self.target,
            reason: self.reason.into_inner(),
            until,
            place: at(start),
        };
        (start, Ok(waiver))
    }
}

/// Sizes that must not be exceeded: a number of bytes, or `200 MiB`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// bytes of the file
    #[serde(deserialize_with = "size")]
    pub package: Option<u64>,
    /// bytes of all constants
    #[serde(deserialize_with = "size")]
    pub weights: Option<u64>,
    /// bytes of the library
    #[serde(deserialize_with = "size")]
    pub library: Option<u64>,
}

impl Budget {
    /// This budget, with `other`'s limits where it has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            package: self.package.or(other.package),
            weights: self.weights.or(other.weights),
            library: self.library.or(other.library),
        }
    }
}

fn size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(deserializer)? {
        Size::Bytes(n) => Ok(Some(n)),
        Size::Text(text) => crate::target::parse_bytes(&text).map(Some).map_err(serde::de::Error::custom),
    }
}

pub(super) fn check_glob(glob: &str) -> Result<(), String> {
    globset::Glob::new(glob).map(|_| ()).map_err(|e| e.to_string())
}

/// True when the last day of a waiver lies before `today` (both `2027-03-01`).
pub fn is_expired(until: &str, today: &str) -> bool {
    until < today
}

/// The date in UTC, `2027-03-01`.
pub fn today() -> String {
    chrono::Utc::now().date_naive().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiver_holds_through_its_last_day() {
        assert!(!is_expired("2027-03-01", "2027-03-01"));
        assert!(is_expired("2027-03-01", "2027-03-02"));
    }
}
