//! Fuzz targets of aoti-inspect: one plain function per reader, see [`targets`].

pub mod targets;

pub use targets::{
    READERS, call_spec, cubin, elf, exported_program, fatbin, interpret, log, macho, pe, ptx, spec_notation, wrapper,
    zip,
};

/// The reader with this name.
pub fn reader(name: &str) -> Option<targets::Reader> {
    READERS.iter().find(|(known, _)| *known == name).map(|(_, reader)| *reader)
}
