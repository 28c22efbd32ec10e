//! Codes about the host's libraries and system.

use crate::checks::codes::{Code, Page};
use crate::report::Level;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "host-platform",
        summary: "the library is for another system or machine",
        level: Level::Deny,
        page: Page {
            compares: "Format, system and machine in the header of the library with the platform of the target.",
            matters: "The target's loader cannot open it: `invalid ELF header`, `not a mach-o file`, `is not a valid Win32 \
                      application`. File names do not tell: the library in a package is called `.so` everywhere.",
            reports: "Class C21 of the failure study; metadata keys AOTI_PLATFORM and AOTI_MACHINE (2.10 and newer).",
            fix: "Compile for the target's platform.",
        },
    },
    Code {
        id: "host-glibc",
        summary: "the library wants a newer glibc than the target has",
        level: Level::Deny,
        page: Page {
            compares: "The highest GLIBC_ version that the library asks for with the glibc of the target.",
            matters: "The system's loader refuses it: ``version `GLIBC_2.34' not found``. The version comes from the build host.",
            reports: "Symbol versions of artefacts built on Debian 12 and Ubuntu 24.04 (2.32 to 2.38).",
            fix: "Compile on a system no newer than the oldest target, for example in a manylinux container.",
        },
    },
    Code {
        id: "host-libstdcxx",
        summary: "the library wants a newer libstdc++ than the target has",
        level: Level::Deny,
        page: Page {
            compares: "The highest GLIBCXX_ version that the library asks for with the libstdc++ of the target.",
            matters: "The system's loader refuses it: ``version `GLIBCXX_3.4.30' not found``. A process loads one libstdc++: \
                      that of the environment (conda) or of the system, whichever came first.",
            reports: "Symbol versions of artefacts built with GCC 12 and 13 (3.4.30).",
            fix: "Install a newer libstdc++ (conda: `libstdcxx-ng`), or compile with an older GCC.",
        },
    },
    Code {
        id: "host-executable-stack",
        summary: "the library asks for an executable stack, which glibc 2.41 and newer refuse",
        level: Level::Deny,
        page: Page {
            compares: "The executable flag of PT_GNU_STACK with the glibc of the target.",
            matters: "glibc 2.41 and newer fail at dlopen: `cannot enable executable stack as shared object requires`. Nearly \
                      all libraries that torch up to 2.15 makes on x86-64 Linux have the flag, because the object with the \
                      constants lacks a note.",
            reports: "glibc 2.41 release notes (dlopen and executable stacks); headers of artefacts of 2.2 to 2.15.",
            fix: "Clear the flag with `patchelf --clear-execstack` (the code does not need it), or link with \
                  `-Wl,-z,noexecstack`.",
        },
    },
    Code {
        id: "host-absolute-library",
        summary: "a needed library or run path is an absolute path of the build host",
        level: Level::Warn,
        page: Page {
            compares: "Names of needed libraries and run paths: absolute paths outside of the system's folders.",
            matters: "The path must exist on the target: `Library not loaded: /opt/homebrew/opt/libomp/lib/libomp.dylib`. A run \
                      path that does not exist is skipped, and the library is then found elsewhere or not at all.",
            reports: "pytorch/torchchat pull request 1493, pytorch pull request 157571.",
            fix: "Install the library at that path, or change the name with `install_name_tool -change` or `patchelf`.",
        },
    },
    Code {
        id: "host-idle-library",
        summary: "a needed library provides nothing that is used, and must be there all the same",
        level: Level::Warn,
        page: Page {
            compares: "Needed libraries with the imported symbols that each of them could provide.",
            matters: "The system's loader insists on every needed library: a CPU model that names libtorch_cuda.so or \
                      libc10_cuda.so does not open under a CPU-only torch.",
            reports: "applied-material-modeling/neml2 pull request 398.",
            fix: "Remove the entry with `patchelf --remove-needed`, or compile with `-Wl,--as-needed`.",
        },
    },
    Code {
        id: "host-cxx-runtime",
        summary: "the library brings its own C++ runtime and offers it to others",
        level: Level::Warn,
        page: Page {
            compares: "Whether the library exports the C++ runtime (`__cxa_throw`, `std::locale`) instead of importing it.",
            matters: "Two C++ runtimes in one process mix their tables of types and locales: crashes in `std::` code of either \
                      side, depending on the order of loading.",
            reports: "pytorch/TensorRT pull request 4592.",
            fix: "Link libstdc++ dynamically, or hide it with `-Wl,--exclude-libs,ALL`.",
        },
    },
    Code {
        id: "host-openmp",
        summary: "the library wants an OpenMP runtime that torch does not bring",
        level: Level::Warn,
        page: Page {
            compares: "Needed OpenMP runtimes with the one in torch's wheels (libgomp.so.1 on Linux).",
            matters: "Another runtime (libomp, libiomp5) must be installed on the target, and two of them in one process \
                      oversubscribe the CPU or abort.",
            reports: "pytorch/torchchat pull request 1493; needed libraries of clang builds.",
            fix: "Install that runtime on the target, or compile with g++.",
        },
    },
    Code {
        id: "host-fact-unknown",
        summary: "this machine does not tell what the check needs",
        level: Level::Deny,
        page: Page {
            compares: "What `--this-host` reads with what the model needs.",
            matters: "A gate that cannot see a GPU or a library must not say that all is well; on login nodes and in build \
                      containers the GPU is often not visible.",
            reports: "Files below /proc/driver/nvidia, /proc/cpuinfo and the system's library folders.",
            fix: "Run `aoti-inspect host` on the machine that will run the model and give its output with --target.",
        },
    },
];
