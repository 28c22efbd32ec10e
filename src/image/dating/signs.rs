//! The signs and the releases that show them: format reference, section 10, read in the wheels of 2.2 to 2.15
//! and checked against artefacts of most of them.

use super::Releases;

/// Something that only some releases leave behind.
#[derive(Debug, Clone, Copy)]
pub struct Sign {
    /// what was seen, as evidence prints it
    pub what: &'static str,
    /// who does that
    pub releases: Releases,
}

const fn since(what: &'static str, minor: u16) -> Sign {
    Sign { what, releases: Releases::between((2, minor), None) }
}
const fn until(what: &'static str, minor: u16) -> Sign {
    Sign { what, releases: Releases::between((2, 2), Some((2, minor))) }
}
const fn between(what: &'static str, first: u16, last: u16) -> Sign {
    Sign { what, releases: Releases::between((2, first), Some((2, last))) }
}

/// Literals of the runtime that is compiled in, with their terminating NUL where the end tells.
pub(super) const TEXTS: &[(&[u8], Sign)] = &[
    (b"(cpu|cuda)(:([0-9]+))?", between("device pattern (cpu|cuda)", 3, 5)),
    (b"(cpu|cuda|xpu)(:([0-9]+))?", between("device pattern (cpu|cuda|xpu)", 6, 7)),
    (b"(cpu|cuda|xpu|mps)(:([0-9]+))?", since("device pattern (cpu|cuda|xpu|mps)", 8)),
    (b"[WARNING] Found constant \0", between("text `[WARNING] Found constant `", 4, 6)),
    (
        b"[WARNING] Found constant or module state buffer \0",
        between("text `[WARNING] Found constant or module state buffer `", 7, 9),
    ),
    (
        b"[WARNING] Found constant or module state buffer or ",
        since("text `[WARNING] Found constant or module state buffer or `", 10),
    ),
    (b"Weigths data seems corrupt", between("text `Weigths data seems corrupt`", 4, 7)),
    (b"Weights data seems corrupt", since("text `Weights data seems corrupt`", 8)),
    (b"ConstantState::NONE", since("text `ConstantState::NONE`", 8)),
    (b"Mixed-device constants are only supported", since("text `Mixed-device constants are only supported`", 11)),
    (
        b"update_constant_buffer does not support mixed device constants",
        between("text `update_constant_buffer does not support mixed device constants`", 11, 12),
    ),
    (
        b"Shared library file is smaller than embedded weights size",
        since("text `Shared library file is smaller than embedded weights size`", 13),
    ),
    (b"most often comes from a incorrect fake", between("text `comes from a incorrect fake`", 13, 13)),
    (b"most often comes from an incorrect fake", since("text `comes from an incorrect fake`", 14)),
    (b"[AOTI_LOAD] ", since("text `[AOTI_LOAD] `", 14)),
    (b"Failed to allocate \0", since("text `Failed to allocate `", 15)),
    (b"Stream affinity refers to an unknown model", since("text `Stream affinity`", 15)),
    (b"input_handles[0]: unmatched dtype, ", since("input checks (2.4 to 2.6: debug builds alone)", 4)),
    (b": unmatched device type, ", since("input checks compare devices", 8)),
    (b" is not aligned to 16 bytes", between("text `is not aligned to 16 bytes`", 6, 6)),
    (b" was compiled as 16-bytes aligned", since("text `was compiled as 16-bytes aligned`", 7)),
];

// of a library
pub(super) const NO_DEVICE_PATTERN: Sign = until("no device pattern among the texts", 2);
pub(super) const LEAKED_CXX: Sign = until("imports mangled C++ of libtorch", 5);
pub(super) const SMALL_LRODATA: Sign = until("constants section without the flag for large data", 5);
pub(super) const LARGE_LRODATA: Sign = since("constants section with the flag for large data", 6);
pub(super) const LDATA: Sign = since("constants in a writable section", 4);
pub(super) const BLOB_SIZE_SYMBOL: Sign = until("symbol _binary_constants_bin_size", 5);
pub(super) const UNALIGNED_BLOB: Sign = until("constants do not begin at a multiple of 64", 3);
pub(super) const FAST_MATH: Sign = until("start file that sets fast floating-point mode", 5);
pub(super) const CHECK_FUNCTIONS: Sign = since("one check function per input", 8);
pub(super) const LINE_TABLES: Sign = since("line tables for debuggers", 13);
pub(super) const MAYBE_OWNING_HANDLES: Sign = between("constructor takes MaybeOwningAtenTensorHandle", 8, 14);
pub(super) const RAII_HANDLES: Sign = Sign {
    what: "constructor takes RAIIAtenTensorHandle",
    releases: Releases::between((2, 2), Some((2, 7))).or(Releases::between((2, 15), None)),
};
