//! A library of the target that registers operators.

use crate::error::Result;
use crate::image::op_schemas::OpSchemas;
use crate::source::{self, Bytes};
use std::path::Path;
use std::sync::Arc;

/// One library of the target.
#[derive(Debug, Clone)]
pub struct OpLibrary {
    /// as the person gave it
    pub path: String,
    schemas: OpSchemas,
    bytes: Arc<dyn Bytes>,
}

impl OpLibrary {
    /// Finds the schemas in a library.
    ///
    /// # Errors
    /// The file cannot be read, or has more schemas than [`crate::limits`] allow.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let bytes: Arc<dyn Bytes> = source::open_file(path).map_err(|e| e.in_member(&name))?.into();
        let schemas = bytes.range(0, bytes.len()).map(OpSchemas::read).transpose().map_err(|e| e.in_member(&name))?;
        let schemas = schemas.unwrap_or_default();
        Ok(Self { path: name, schemas, bytes })
    }

    /// True when the library registers `ns::op` or `ns::op.overload`.
    pub fn defines(&self, operator: &str) -> bool {
        self.bytes.range(0, self.bytes.len()).is_some_and(|all| self.schemas.define(all, operator))
    }
}
