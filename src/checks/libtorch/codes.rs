//! Codes about libtorch.

use crate::checks::codes::{Code, Page};
use crate::report::Level;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "libtorch-shim-missing",
        summary: "the library wants C functions that this libtorch does not have",
        level: Level::Deny,
        page: Page {
            compares: "Every imported `aoti_*` function with the table of releases (`--torch`) or with the exports of the \
                       libraries in a folder (`--libtorch`).",
            matters: "The system's loader refuses the library, at load or at the first call: `undefined symbol: aoti_torch_…`. \
                      Old artefacts run on newer releases; the reverse is not promised.",
            reports: "pytorch issues 122989 and 146203, pull requests 138009, 181458 and 187621; headers of 2.2 to 2.15 \
                      below torch/csrc/inductor/aoti_torch.",
            fix: "Use the named torch release or a newer one, or compile again with the release of the target.",
        },
    },
    Code {
        id: "libtorch-shim-unknown",
        summary: "the library wants C functions that no known release of torch has",
        level: Level::Warn,
        page: Page {
            compares: "Imported `aoti_*` and `torch_*` functions with those of torch 2.2 to 2.15.",
            matters: "They belong to a newer release, to a library of custom shims or to a private backend; without it the \
                      library cannot be opened.",
            reports: "Option `aot_inductor.custom_ops_to_c_shims` (2.8 and newer); backends outside of torch.",
            fix: "Give `--libtorch DIR` with the target's libraries, and load the library that has them before the model.",
        },
    },
    Code {
        id: "libtorch-build",
        summary: "the library wants functions of a device that this build of torch does not have",
        level: Level::Deny,
        page: Page {
            compares: "The device classes of the imported functions with the build: the part of torch.__version__ behind `+`, \
                       or the libraries in the folder.",
            matters: "A CPU build has neither `aoti_torch_cuda_*` nor the CUDA runtime: `undefined symbol` or \
                      `libtorch_cuda.so: cannot open shared object file`.",
            reports: "pytorch pull request 187621; applied-material-modeling/neml2 pull request 398.",
            fix: "Install the build of torch for the model's device, or compile the model for the device of this build.",
        },
    },
    Code {
        id: "libtorch-parameters",
        summary: "a C function has other parameters in this release than in the one that compiled the library",
        level: Level::Deny,
        page: Page {
            compares: "Imported functions that kept their name while their parameters changed, the release that compiled the \
                       library, and the release of the target.",
            matters: "Such a pair links, and then passes wrong arguments: crashes or wrong numbers.",
            reports: "Declarations of 2.2 to 2.15 below torch/csrc/inductor/aoti_torch, compared name by name.",
            fix: "Compile again with the release of the target.",
        },
    },
    Code {
        id: "libtorch-leaked-cxx",
        summary: "the library is bound to C++ of one libtorch release",
        level: Level::Deny,
        page: Page {
            compares: "Imported mangled names of `torch::`, `at::` and `c10::` with the exports of the libraries in a folder; \
                       with `--torch`, the release with the one that compiled the library.",
            matters: "C++ names change with every release and with the string ABI: `undefined symbol: _ZN3c10…`. Up to 2.5 \
                      this was the default; 2.6 and newer use C functions alone.",
            reports: "pytorch issues 122313 and 122989, WasmEdge pull request 3724.",
            fix: "Load with exactly the release and build that compiled it, or compile again with torch 2.6 or newer \
                  (2.3 to 2.5: `TORCH_INDUCTOR_ABI_COMPATIBLE=1`).",
        },
    },
    Code {
        id: "libtorch-string-abi",
        summary: "std::string has another form in this libtorch",
        level: Level::Deny,
        page: Page {
            compares: "The string form in mangled names of the library (`cxx11` or older) with that of the libtorch.",
            matters: "Imported C++ with strings cannot be found; constant maps that cross the border are undefined behaviour.",
            reports: "pytorch issue 122313; PyPI wheels up to 2.6 use the older form.",
            fix: "Use the libtorch distribution of the same form, or compile again with that distribution's torch.",
        },
    },
    Code {
        id: "libtorch-executorch",
        summary: "the library belongs to ExecuTorch's runtime, not to libtorch",
        level: Level::Deny,
        page: Page {
            compares: "Prefixes of the imported functions: `executorch_aoti_torch_*` are ExecuTorch's own.",
            matters: "libtorch has no such functions: `undefined symbol: executorch_aoti_torch_…`.",
            reports: "executorch pull request 21290, pytorch pull request 190922.",
            fix: "Run it inside ExecuTorch, or compile the model with `torch._inductor.aoti_compile_and_package`.",
        },
    },
    Code {
        id: "libtorch-release-new",
        summary: "this torch is newer than the tables, which judge it by their newest row",
        level: Level::Warn,
        page: Page {
            compares: "The release with the newest one in the tables of this tool.",
            matters: "Since 2.4 one function in all was withdrawn, so that the newest row is a good stand-in for a newer \
                      release; certainty needs `--libtorch`.",
            reports: "Maintainers' statement in pytorch pull request 138009.",
            fix: "Update aoti-inspect, or give `--libtorch DIR` with the libraries of that release.",
        },
    },
];
