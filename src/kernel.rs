//! GPU kernel files.
