//! Pages of the codes about packages.

use crate::checks::codes::{Code, Page};
use crate::report::Level;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "package-model-prefix",
        summary: "the name of one model is the beginning of another's",
        level: Level::Deny,
        page: Page {
            compares: "The names of the models in the package with each other.",
            matters: "Loaders of 2.6 to 2.12 take every member whose name begins with the wanted model's, so `model` also \
                      unpacks `model2`, and the library that stands last in the file is run.",
            reports: "torch/csrc/inductor/aoti_package/model_package_loader.cpp of 2.6 to 2.12; tried with 2.7 and 2.9.",
            fix: "Choose names of which none begins with another's, or load with torch 2.13 or newer.",
        },
    },
    Code {
        id: "package-metadata-missing",
        summary: "the metadata file that loaders look for is not in the package",
        level: Level::Deny,
        page: Page {
            compares: "The stem of the last `.cpp` of the model's folder, or of the library where 2.13 and newer find no \
                       source, with the metadata files.",
            matters: "The load ends in `File not found: …_metadata.json`, although library and weights are there.",
            reports: "Altered packages, tried with 2.7, 2.9, 2.13 and 2.15 (format reference 2.3).",
            fix: "Leave sources and metadata in the package as torch writes them.",
        },
    },
    Code {
        id: "package-metadata-differs",
        summary: "the copies of the metadata state different values",
        level: Level::Deny,
        page: Page {
            compares: "All `*_metadata.json` of a model with each other, key by key.",
            matters: "The C++ loader reads the copy of the kernel source, the Python loader of 2.10 and newer the one of \
                      the wrapper: the device key of one of them may be wrong.",
            reports: "Altered packages, tried with 2.7, 2.9, 2.13 and 2.15 (format reference 2.3).",
            fix: "Package the model again; do not edit one copy alone.",
        },
    },
    Code {
        id: "package-root",
        summary: "loaders take another root folder than the package has",
        level: Level::Deny,
        page: Page {
            compares: "The first parts of the first two names in the archive, by which loaders of 2.8 and newer tell the \
                       root; the loaders of 2.6 and 2.7 know none.",
            matters: "Nothing is found: `Failed to find a generated cpp file or so file`.",
            reports: "Altered packages, tried with 2.7, 2.9, 2.13 and 2.15 (format reference 2.3).",
            fix: "Do not repack archives with other tools; package with the release that loads, or a newer one.",
        },
    },
    Code {
        id: "package-several-libraries",
        summary: "a model's folder holds several libraries",
        level: Level::Deny,
        page: Page {
            compares: "The libraries in the folder with the one that the loader takes: the last one up to 2.12, the one \
                       called `*.wrapper.so` since 2.13.",
            matters: "A launcher library is opened as the model, or the load ends in `Multiple wrapper shared libraries \
                      found`.",
            reports: "pytorch pull request 182251.",
            fix: "Package each model into a folder of its own; load models with Triton-CPU kernels with 2.13 or newer.",
        },
    },
    Code {
        id: "package-unsafe-name",
        summary: "a member's name leads outside the package or is ambiguous",
        level: Level::Deny,
        page: Page {
            compares: "The names of all members: parts `..`, absolute paths, drive letters, backslashes, control \
                       characters, links, and the same name twice.",
            matters: "The official loaders write such members where their names lead, outside the temporary folder. This \
                      is how a package overwrites files of the person that loads it.",
            reports: "Tried with the loaders of 2.7, 2.9, 2.13 and 2.15 (format reference 2.3).",
            fix: "Do not load or unpack this file; ask where it comes from.",
        },
    },
    Code {
        id: "package-version",
        summary: "the archive states a version that the Python loader refuses",
        level: Level::Deny,
        page: Page {
            compares: "`archive_version` with 0, the only version so far.",
            matters: "The Python loader raises a `ValueError`; the C++ loader does not look at it.",
            reports: "torch/export/pt2_archive; tried with 2.9, 2.13 and 2.15.",
            fix: "Package with a release that writes version 0, or load with a release that knows the new version.",
        },
    },
    Code {
        id: "package-sources-only",
        summary: "the package holds sources and no library: a compiler runs at load",
        level: Level::Warn,
        page: Page {
            compares: "The members of the model's folder: wrapper source and flags, and no library.",
            matters: "Every process that loads it needs the C++ compiler, the headers of torch and the time to compile.",
            reports: "Option `aot_inductor.package_cpp_only`; torch/csrc/inductor/aoti_package/model_package_loader.cpp.",
            fix: "Package the compiled library, or build it once with the CMakeLists.txt in the package.",
        },
    },
    Code {
        id: "package-standalone",
        summary: "compiled to stand alone: torch's loaders cannot open it",
        level: Level::Deny,
        page: Page {
            compares: "The sources in the package with the interface that loaders call.",
            matters: "The load ends in a compiler error or a missing symbol; such a model is built into a program.",
            reports: "Option `aot_inductor.compile_standalone`, torch/_inductor/config.py.",
            fix: "Build it with its own CMakeLists.txt and link it, or compile without that option.",
        },
    },
    Code {
        id: "constants-two-devices",
        summary: "constants on two devices, in a runtime that keeps them in one buffer",
        level: Level::Deny,
        page: Page {
            compares: "The devices in the constants table with the release that compiled the file: since 2.13 constants on \
                       the CPU have a buffer of their own.",
            matters: "Loading on the CPU is refused (`Mixed-device constants are only supported …`), and updates from CPU \
                      tensors throw in 2.11 and 2.12.",
            reports: "pytorch issue 180446.",
            fix: "Compile again with 2.13 or newer, or move all constants to one device before export.",
        },
    },
];
