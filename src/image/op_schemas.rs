//! Operators that a library registers, told from the schema texts in it.
//!
//! `TORCH_LIBRARY(ns, m) { m.def("op(Tensor a) -> Tensor"); }` leaves the schema as a text, with the namespace in
//! front of it or, mostly, as a text of its own (torch/library.h).

use crate::error::{Error, Result};
use crate::limits;
use std::collections::BTreeSet;

/// Texts longer than this are no schema.
const SCHEMA_BYTES: usize = 4_096;

/// The schemas of one library.
#[derive(Debug, Clone, Default)]
pub struct OpSchemas {
    /// names before the bracket of every schema: `blend`, `blend.Tensor`, `mylib::blend`
    names: BTreeSet<String>,
}

impl OpSchemas {
    /// Finds the schemas among all bytes of a library.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Limit`] for more than [`limits::SYMBOLS`]: those beyond would pass for missing ones.
    pub fn read(library: &[u8]) -> Result<Self> {
        Ok(Self { names: schema_names(library, limits::SYMBOLS)? })
    }

    /// True when the library that they were read from registers `ns::op` or `ns::op.overload`. The overload called
    /// `default` is the one without a name.
    pub fn define(&self, library: &[u8], operator: &str) -> bool {
        let operator = operator.strip_suffix(".default").unwrap_or(operator);
        let Some((namespace, op)) = operator.split_once("::") else { return false };
        self.names.contains(operator) || self.names.contains(op) && has_text(library, namespace)
    }
}

/// A text of its own, between two NULs.
fn has_text(library: &[u8], text: &str) -> bool {
    let needle = [b"\0", text.as_bytes(), b"\0"].concat();
    memchr::memmem::find(library, &needle).is_some()
}

/// What stands before the bracket of every text with `) -> `, of at most `most` different ones.
fn schema_names(all: &[u8], most: usize) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for arrow in memchr::memmem::find_iter(all, b") ->") {
        let from = arrow.saturating_sub(SCHEMA_BYTES);
        let before = all.get(from..arrow).unwrap_or_default();
        let start = memchr::memrchr(0, before).map_or(0, |nul| nul + 1);
        let text = before.get(start..).unwrap_or_default();
        let Some(bracket) = memchr::memchr(b'(', text) else { continue };
        let name = text.get(..bracket).unwrap_or_default().trim_ascii();
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.:".contains(b);
        if !name.is_empty() && name.len() <= limits::NAME_BYTES && name.iter().all(is_name) {
            names.insert(String::from_utf8_lossy(name).into_owned());
        }
        if names.len() > most {
            return Err(Error::limit(format!("more than {most} operator schemas")));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_with_and_without_namespace_are_found() {
        let bytes =
            b"\x7fELF\0mylib\0blend(Tensor a, float w=1.) -> Tensor\0other::run.out(Tensor(a!) x) -> ()\0x -> y\0";
        let schemas = OpSchemas::read(bytes).unwrap();
        assert!(schemas.define(bytes, "mylib::blend"));
        assert!(schemas.define(bytes, "mylib::blend.default"));
        assert!(schemas.define(bytes, "other::run.out"));
        assert!(!schemas.define(bytes, "mylib::blend.Tensor"), "another overload");
        assert!(!schemas.define(bytes, "yourlib::blend"), "the namespace is not there");
        assert!(!schemas.define(bytes, "mylib::blur"));
        assert!(!schemas.define(bytes, "blend"));
    }

    #[test]
    fn the_number_of_schemas_has_a_border() {
        // so many as [`limits::SYMBOLS`] take a test too much time
        let of = |count: usize| {
            let schemas: String = (0..count).map(|n| format!("op{n}(Tensor a) -> Tensor\0")).collect();
            schema_names(schemas.repeat(2).as_bytes(), 3).map(|names| names.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(3), Ok(3));
        assert!(of(4).unwrap_err().contains("more than 3 operator schemas"));
    }
}
