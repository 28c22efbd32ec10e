//! Constants and weights. Texts of the runtime: torch/csrc/inductor/aoti_runtime/model.h and model_base.h, 2.2 to 2.15.

use super::{Lookup, Origin, Pattern, ROW, Rank, torch};

const RUNTIME: Pattern = Pattern { origin: Origin::Artifact, ..ROW };

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "corrupt",
        class: "C15",
        since: torch(4),
        literals: &["s data seems corrupt"],
        regex: r"Wei(?:gths|ghts) data seems corrupt",
        lookup: Lookup::WeightBytes,
        sentence: "The weights behind the library are damaged: their magic number does not match.",
        fix: "Copy the file again (compare its size and checksum); do not strip or patch a library with appended weights.",
        samples: &["Error: Weigths data seems corrupt", "Error: Weights data seems corrupt"],
        ..RUNTIME
    },
    Pattern {
        id: "w16k",
        class: "C16",
        since: torch(4),
        literals: &["must be aligned to 16K boundary"],
        regex: r"weights_offset must be aligned to 16K boundary",
        lookup: Lookup::WeightBytes,
        sentence: "The appended weights do not begin at a multiple of 16 KiB: the file was changed after it was built.",
        fix: "Copy the file as it was built; do not strip, sign or patch it.",
        samples: &["Error: weights_offset must be aligned to 16K boundary"],
        ..RUNTIME
    },
    Pattern {
        id: "mmap",
        class: "C16",
        since: torch(4),
        literals: &["mmap() failed", "Failed to unmap"],
        regex: r"mmap\(\) failed|Failed to unmap",
        lookup: Lookup::WeightBytes,
        sentence: "The weights could not be mapped: their offset is no multiple of this host's page size, or memory is short.",
        fix: "On hosts with 64 KiB pages compile without mmap_weights; else check memory limits.",
        samples: &["Error: mmap() failed"],
        ..RUNTIME
    },
    Pattern {
        id: "short",
        class: "C16",
        since: torch(13),
        literals: &["smaller than embedded weights size", "Failed to seek to end of shared library"],
        regex: r"Shared library file is smaller than embedded weights size|Failed to seek to end of shared library file",
        lookup: Lookup::WeightBytes,
        sentence: "The library file is cut off: it is smaller than the weights it should hold.",
        fix: "Copy the file again and compare its size.",
        samples: &["Error: Shared library file is smaller than embedded weights size"],
        ..RUNTIME
    },
    Pattern {
        id: "self-open",
        class: "C16",
        since: torch(4),
        literals: &["Shared library file cannot be opened", "Can't find shared library name"],
        regex: r"Shared library file cannot be opened|Can't find shared library name",
        lookup: Lookup::WeightBytes,
        sentence: "The library could not open its own file to map the weights at its end.",
        fix: "Keep the file where it was loaded from, readable, and not loaded from memory.",
        samples: &["Error: Shared library file cannot be opened"],
        ..RUNTIME
    },
    Pattern {
        id: "no-mmap",
        class: "C16",
        since: torch(10),
        literals: &["Constants are not mmap'd"],
        regex: r"Constants are not mmap'd",
        lookup: Lookup::WeightBytes,
        sentence: "An external weights file was given to an artefact that does not map its weights.",
        fix: "Load it without an external file, or compile with mmap_weights.",
        samples: &["Error: Constants are not mmap'd. Use load_constants instead."],
        ..RUNTIME
    },
    Pattern {
        id: "const-miss",
        class: "C15",
        since: torch(3),
        literals: &["in constants_map!"],
        regex: r"Cannot find constants (\S+) in constants_map!",
        lookup: Lookup::ConstantName,
        sentence: "The weights were never loaded, or the map that was loaded lacks `{1}`.",
        fix: "Load a value for every constant, under its original name, before the first run.",
        samples: &["Error: Cannot find constants fc1_weight in constants_map!"],
        ..RUNTIME
    },
    Pattern {
        id: "const-warn",
        class: "C15",
        rank: Rank::Context,
        since: torch(4),
        literals: &["in model, but not provided by user"],
        regex: r"Found constant (?:or module state buffer )?(?:or empty module state parameter )?(\S+) in model, but not provided by user",
        lookup: Lookup::ConstantName,
        sentence: "An update of the constants left out `{1}`; its old value stays.",
        fix: "Give it too when it was meant to change.",
        samples: &[
            "[WARNING] Found constant fc1_weight in model, but not provided by user!",
            "[WARNING] Found constant or module state buffer or empty module state parameter bn1_running_mean in model, but not provided by user!",
        ],
        ..RUNTIME
    },
    Pattern {
        id: "const-dev",
        class: "C15",
        since: torch(13),
        literals: &["update_constant_buffer: constant"],
        regex: r"update_constant_buffer: constant '([^']+)' is on device type (\d+)(?: but expected device type (\d+))?",
        lookup: Lookup::ConstantDevice,
        sentence: "The new value of `{1}` is on {2:device}[[ and the model keeps it on {3:device}]].",
        fix: "Move the new values to the device of the constants before the update.",
        samples: &[
            "Error: update_constant_buffer: constant 'fc1_weight' is on device type 0 but expected device type 1",
        ],
        ..RUNTIME
    },
    Pattern {
        id: "const-dev-old",
        class: "C15",
        since: torch(11),
        until: torch(12),
        literals: &["does not support mixed device constants"],
        regex: r"update_constant_buffer does not support mixed device constants",
        lookup: Lookup::ConstantDevice,
        sentence: "The new values of the constants are on another device than the model keeps them on.",
        fix: "Move the new values to the device of the constants before the update.",
        samples: &["Error: update_constant_buffer does not support mixed device constants."],
        ..RUNTIME
    },
    Pattern {
        id: "const-name",
        class: "C15",
        origin: Origin::Torch,
        literals: &["Constant not found: "],
        regex: r"Constant not found: (\S+)",
        lookup: Lookup::ConstantName,
        sentence: "The model has no constant with the original name `{1}`.",
        fix: "Use the original (fully qualified) names that the artefact states.",
        samples: &["RuntimeError: Constant not found: L__self___fc1.weight"],
        ..ROW
    },
    Pattern {
        id: "skip-copy",
        class: "C15",
        since: torch(3),
        until: torch(6),
        literals: &["doesn't support skip copy"],
        regex: r"pure cpu mode doesn't support skip copy",
        lookup: Lookup::ConstantDevice,
        sentence: "An update without copying was asked from a CPU model of torch 2.3 to 2.6.",
        fix: "Update with a copy, or compile with torch 2.7 or newer.",
        samples: &["Error: pure cpu mode doesn't support skip copy"],
        ..RUNTIME
    },
    Pattern {
        id: "weights-file",
        class: "C15",
        origin: Origin::Torch,
        literals: &[
            "Failed to open serialized weights file",
            "Failed to open external weights file",
            "Failed to load weights",
        ],
        regex: r"Failed to open (?:serialized|external) weights file:?\s*(\S*)|Failed to load weights",
        lookup: Lookup::WeightBytes,
        sentence: "The file that holds the weights apart from the library could not be opened[[: {1}]].",
        fix: "Ship the weights file together with the package, where the loader looks for it.",
        samples: &["RuntimeError: Failed to open external weights file: /srv/models/model_weights.blob"],
        ..ROW
    },
    Pattern {
        id: "oom-host",
        class: "C15",
        origin: Origin::System,
        literals: &["std::bad_alloc", "DefaultCPUAllocator", "Failed to allocate ", "Cannot allocate memory"],
        regex: r"std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)|Failed to allocate (\d+) bytes|Cannot allocate memory",
        lookup: Lookup::Memory,
        sentence: "Memory could not be had[[: {1} bytes were asked]].",
        fix: "Compare what the constants need with what is free; each process and each runner has its own copy.",
        samples: &[
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:115] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 17179869184 bytes.",
        ],
        ..ROW
    },
    Pattern {
        id: "oom-killer",
        class: "C15",
        origin: Origin::System,
        literals: &["Killed", "oom-kill", "OOMKilled"],
        regex: r"(?m)^\s*Killed\s*$|Out of memory: Killed process|oom-kill|OOMKilled|: \d+ Killed\b",
        lookup: Lookup::Memory,
        sentence: "The system killed the process, most often because the host's memory ran out.",
        fix: "Compare what the constants need with what is free; each process and each runner has its own copy.",
        samples: &[
            "Killed",
            "[123.4] Out of memory: Killed process 4242 (python3)",
            "State: Terminated Reason: OOMKilled",
        ],
        ..ROW
    },
    Pattern {
        id: "oom",
        class: "C15",
        origin: Origin::Driver,
        literals: &["out of memory", "OutOfMemoryError", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"],
        regex: r"out of memory(?:\. Tried to allocate ([\d.]+ \w+))?|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        lookup: Lookup::Memory,
        sentence: "Device memory is used up[[ while {1} were asked]].",
        fix: "Compare what the constants need with what is free: free eager copies of the weights first, and load fewer models per device.",
        samples: &[
            "Error: CUDA error: out of memory",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        ],
        ..ROW
    },
    Pattern {
        id: "et-weights",
        class: "C22",
        origin: Origin::Other,
        literals: &["weights_blob", "named data map"],
        regex: r"(?i)(?:(?:not ?found|failed|missing)[^\n]*?(\S*weights_blob\S*)|(\S*weights_blob\S*)[^\n]*?(?:not ?found|failed|missing))|(?:not found in|no) named data map",
        lookup: Lookup::WeightBytes,
        sentence: "The weights of an ExecuTorch delegate are not there: its data file is missing.",
        fix: "Give the `.ptd` file that was exported together with the program.",
        samples: &["[cuda_backend.cpp:210] NotFound: forward_weights_blob is missing from the named data map"],
        ..ROW
    },
];
