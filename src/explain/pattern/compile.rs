//! Failures of the compile environment: no artefact exists yet. They are handed back as such; only a package
//! that holds sources (`package_cpp_only`) meets these texts at load.

use super::{Lookup, Origin, Pattern, ROW};
use crate::explain::class::COMPILE;

const BUILD: Pattern = Pattern { class: COMPILE, origin: Origin::System, lookup: Lookup::Layout, ..ROW };

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "cc-header",
        literals: &["fatal error: "],
        regex: r"fatal error: (\S+\.h\w*|\S+): No such file or directory",
        sentence: "The C++ compiler did not find the header[[ {1}]]: this is a failure to compile, no artefact exists yet.",
        fix: "Install the development files that hold the header (CUDA toolkit for cuda.h, python3-dev for Python.h, libomp-dev for omp.h).",
        samples: &[
            "/usr/include/torch/x.h:5:10: fatal error: cuda.h: No such file or directory",
            "main.c:3:10: fatal error: Python.h: No such file or directory",
        ],
        ..BUILD
    },
    Pattern {
        id: "cc-header-clang",
        literals: &["' file not found"],
        regex: r"fatal error: '(\S+)' file not found",
        sentence: "The C++ compiler did not find the header {1}: this is a failure to compile, no artefact exists yet.",
        fix: "Install the development files that hold the header.",
        samples: &["/x.cpp:2:10: fatal error: 'omp.h' file not found"],
        ..BUILD
    },
    Pattern {
        id: "cuda-home",
        literals: &[
            "CUDA_HOME",
            "nvcc: not found",
            "nvcc: command not found",
            "Cannot find ptxas",
            "ptxas fatal",
            "'nvcc'",
        ],
        regex: r"CUDA_HOME (?:environment variable )?is not set|nvcc: (?:command )?not found|Cannot find ptxas|No such file or directory: '?(?:\S*/)?nvcc'?|ptxas fatal",
        sentence: "The CUDA toolkit is missing or does not fit: this is a failure to compile, no artefact exists yet.",
        fix: "Install the toolkit and set CUDA_HOME.",
        samples: &[
            "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
            "sh: 1: nvcc: not found",
        ],
        ..BUILD
    },
    Pattern {
        id: "cxx-compile",
        literals: &[
            "CppCompileError",
            "C++ compile error",
            "Failed to compile cpp file",
            "Failed to link files",
            "InvalidCxxCompiler",
            "No working C++ compiler found",
            "BackendCompilerFailed",
            "InductorError",
            "LoweringException",
        ],
        regex: r"CppCompileError|C\+\+ compile error|Failed to compile cpp file|Failed to link files|InvalidCxxCompiler|No working C\+\+ compiler found|BackendCompilerFailed|InductorError|LoweringException",
        sentence: "The compiler failed: no artefact exists yet (or a package that holds sources was compiled at load).",
        fix: "Look at the compiler's own lines above; for a package of sources install the same compiler and headers on the host that loads it.",
        samples: &[
            "torch._inductor.exc.CppCompileError: C++ compile error",
            "RuntimeError: Failed to compile cpp file.",
        ],
        ..BUILD
    },
    Pattern {
        id: "linker",
        literals: &[
            "undefined reference to",
            "relocation R_X86_64",
            "truncated or malformed object",
            "cannot find -l",
            "ld returned 1 exit status",
            "linker command failed",
            "relocation truncated to fit",
            "unresolved external symbol",
        ],
        regex: r"undefined reference to [`']?(\w+)|relocation R_X86_64_\w+ out of range|truncated or malformed object|cannot find -l(\S+)|ld returned 1 exit status|linker command failed|relocation truncated to fit|unresolved external symbol (\S+)",
        sentence: "The linker failed[[ at {1}]][[: library {2} is missing]][[ at {3}]]: this is a failure to compile, no artefact exists yet.",
        fix: "Install the missing library; for very large constants keep the weights apart (package_constants_on_disk_format, or mmap_weights).",
        samples: &[
            "ld: undefined reference to `WinMain'",
            "ld.lld: error: relocation R_X86_64_PC32 out of range: 2147483700",
            "/usr/bin/ld: cannot find -lcuda",
        ],
        ..BUILD
    },
    Pattern {
        id: "export",
        literals: &[
            "torch._dynamo.exc.",
            "torch.export.UnsupportedOperator",
            "ConstraintViolationError",
            "SerializeError",
            "GuardOnDataDependentSymNode",
            "torch._export.",
            "Could not guard on data-dependent",
            "Constraints violated",
        ],
        regex: r"torch\._dynamo\.exc\.(\w+)|ConstraintViolationError|Constraints violated|SerializeError|GuardOnDataDependentSymNode|Could not guard on data-dependent",
        sentence: "torch.export refused the model[[ ({1})]]: no artefact exists yet.",
        fix: "Follow the message of torch.export; it is not about AOTInductor.",
        samples: &[
            "torch._dynamo.exc.UserError: Constraints violated (batch)! For more information",
            "torch._export.serde.serialize.SerializeError: Failed serializing node",
        ],
        ..BUILD
    },
    Pattern {
        id: "triton-compile",
        literals: &[
            "triton.compiler.errors",
            "PassManager::run failed",
            "NoTritonConfigsError",
            "TritonMissing",
            "No module named 'triton",
        ],
        regex: r"triton\.compiler\.errors\.(\w+)|PassManager::run failed|NoTritonConfigsError|TritonMissing|No module named 'triton",
        sentence: "Triton could not compile a kernel: no artefact exists yet.",
        fix: "Install the Triton that belongs to this torch; reduce the kernel to report it.",
        samples: &["triton.compiler.errors.CompilationError: at 5:11:"],
        ..BUILD
    },
];
