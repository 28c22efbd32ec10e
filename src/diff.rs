//! What changed between two artefacts.
