//! The classes of failure, as the study of public threads sorted them.

/// A class of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// `C04`; [`COMPILE`] for failures of the compile environment
    pub id: &'static str,
    /// what it is called
    pub name: &'static str,
}

/// Class of texts that come from compiling, when no artefact exists yet.
pub const COMPILE: &str = "compile";

/// Every class, in order of its number.
pub const CLASSES: &[Class] = &[
    Class { id: "C01", name: "device type at load" },
    Class { id: "C02", name: "device index, several GPUs" },
    Class { id: "C03", name: "input on another device" },
    Class { id: "C04", name: "static shape or rank not respected" },
    Class { id: "C05", name: "size outside its range, 0/1 specialisation, hidden guards" },
    Class { id: "C06", name: "dtype, stride, memory format" },
    Class { id: "C07", name: "call interface: number of inputs, pytree, scalars" },
    Class { id: "C08", name: "alignment of inputs or constants" },
    Class { id: "C09", name: "undefined symbols, C shims, C++ binary interface" },
    Class { id: "C10", name: "shared libraries of the host" },
    Class { id: "C11", name: "GPU architecture, kernel image" },
    Class { id: "C12", name: "kernel file not found" },
    Class { id: "C13", name: "CPU instruction set" },
    Class { id: "C14", name: "package format, model name, unpacking" },
    Class { id: "C15", name: "constants: missing, update, names, memory" },
    Class { id: "C16", name: "very large weights, mmap" },
    Class { id: "C17", name: "custom operators, proxy executor, torchbind" },
    Class { id: "C18", name: "index out of bounds" },
    Class { id: "C19", name: "illegal memory access, threads, CUDA graphs" },
    Class { id: "C20", name: "wrong numbers, compiler crash" },
    Class { id: "C21", name: "Windows, MPS" },
    Class { id: "C22", name: "ExecuTorch delegates" },
    Class { id: "C23", name: "opaque message" },
    Class { id: COMPILE, name: "compile environment: no artefact exists yet" },
];

/// What a class is called; the id itself when it is not in the table.
pub fn name_of(id: &str) -> &str {
    CLASSES.iter().find(|c| c.id == id).map_or(id, |c| c.name)
}
