//! From an error to its cause in the artefact.
