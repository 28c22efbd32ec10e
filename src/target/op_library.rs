//! A library that registers operators: which ones, told from the schema texts in it.
//!
//! `TORCH_LIBRARY(ns, m) { m.def("op(Tensor a) -> Tensor"); }` leaves the schema as a text, with the namespace in
//! front of it or, mostly, as a text of its own (torch/library.h).

use crate::error::Result;
use crate::limits;
use crate::source::{self, Bytes};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Texts longer than this are no schema.
const SCHEMA_BYTES: usize = 4_096;

/// One library of the target.
#[derive(Debug, Clone)]
pub struct OpLibrary {
    /// as the person gave it, or the member of a package
    pub path: String,
    /// names before the bracket of every schema: `blend`, `blend.Tensor`, `mylib::blend`
    names: BTreeSet<String>,
    bytes: Arc<dyn Bytes>,
}

impl OpLibrary {
    /// Finds the schemas in a library.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let bytes = source::open_file(path).map_err(|e| e.in_member(&name))?;
        Ok(Self::new(name, bytes.into()))
    }

    fn new(path: String, bytes: Arc<dyn Bytes>) -> Self {
        let names = bytes.range(0, bytes.len()).map(schema_names).unwrap_or_default();
        Self { path, names, bytes }
    }

    /// True when the library registers `ns::op` or `ns::op.overload`.
    pub fn defines(&self, operator: &str) -> bool {
        let Some((namespace, op)) = operator.split_once("::") else { return false };
        if self.names.contains(operator) {
            return true;
        }
        self.names.contains(op) && self.has_text(namespace)
    }

    /// A text of its own, between two NULs.
    fn has_text(&self, text: &str) -> bool {
        let needle = [b"\0", text.as_bytes(), b"\0"].concat();
        self.bytes.range(0, self.bytes.len()).is_some_and(|all| memchr::memmem::find(all, &needle).is_some())
    }
}

/// What stands before the bracket of every text with `) -> `.
fn schema_names(all: &[u8]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for arrow in memchr::memmem::find_iter(all, b") ->") {
        let from = arrow.saturating_sub(SCHEMA_BYTES);
        let before = all.get(from..arrow).unwrap_or_default();
        let start = memchr::memrchr(0, before).map_or(0, |nul| nul + 1);
        let text = before.get(start..).unwrap_or_default();
        let Some(bracket) = memchr::memchr(b'(', text) else { continue };
        let name = text.get(..bracket).unwrap_or_default().trim_ascii();
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.:".contains(b);
        if !name.is_empty() && name.len() < limits::NAME_BYTES && name.iter().all(is_name) {
            names.insert(String::from_utf8_lossy(name).into_owned());
        }
        if names.len() >= limits::SYMBOLS {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_with_and_without_namespace_are_found() {
        let bytes =
            b"\x7fELF\0mylib\0blend(Tensor a, float w=1.) -> Tensor\0other::run.out(Tensor(a!) x) -> ()\0x -> y\0"
                .to_vec();
        let library = OpLibrary::new("lib.so".into(), Arc::new(bytes));
        assert!(library.defines("mylib::blend"));
        assert!(library.defines("other::run.out"));
        assert!(!library.defines("mylib::blend.Tensor"), "another overload");
        assert!(!library.defines("yourlib::blend"), "the namespace is not there");
        assert!(!library.defines("mylib::blur"));
        assert!(!library.defines("blend"));
    }
}
