//! GPU kernels: files, targets, launches. Texts of the CUDA driver are the driver's own.

use super::{Lookup, Origin, Pattern, ROW};

const DRIVER: Pattern = Pattern { origin: Origin::Driver, ..ROW };

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "drv-file",
        class: "C12",
        literals: &["driver error: file not found", "CUDA_ERROR_FILE_NOT_FOUND"],
        regex: r"(?:CUDA|HIP) driver error: file not found|CUDA_ERROR_FILE_NOT_FOUND",
        lookup: Lookup::KernelFile,
        sentence: "A kernel file is not where the model looks for it; the driver never names the file.",
        fix: "Ship the kernel files with the library, or compile into a package; with a bare library keep them at the path of the build.",
        samples: &["Error: CUDA driver error: file not found"],
        ..DRIVER
    },
    Pattern {
        id: "drv-arch",
        class: "C11",
        literals: &["no kernel image is available", "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice"],
        regex: r"no kernel image is available(?: for execution on the device)?|CUDA_ERROR_NO_BINARY_FOR_GPU|cudaErrorNoKernelImageForDevice",
        lookup: Lookup::KernelTarget,
        sentence: "The kernels were compiled for another GPU than this one.",
        fix: "Compile on a GPU of the same capability, or with several targets (aot_inductor.emit_multi_arch_kernel=True).",
        samples: &["Error: CUDA driver error: no kernel image is available for execution on the device"],
        ..DRIVER
    },
    Pattern {
        id: "drv-inv",
        class: "C11",
        literals: &["device kernel image is invalid", "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage"],
        regex: r"device kernel image is invalid|CUDA_ERROR_INVALID_IMAGE|cudaErrorInvalidKernelImage",
        lookup: Lookup::KernelTarget,
        sentence: "The driver does not accept a kernel file: it is for another GPU, damaged, or newer than the driver.",
        fix: "Compile for this GPU; when the file is for it, copy it again or update the driver.",
        samples: &["Error: CUDA driver error: device kernel image is invalid"],
        ..DRIVER
    },
    Pattern {
        id: "drv-name",
        class: "C11",
        literals: &["named symbol not found", "CUDA_ERROR_NOT_FOUND"],
        regex: r"named symbol not found|CUDA_ERROR_NOT_FOUND",
        lookup: Lookup::KernelName,
        sentence: "A kernel file does not hold the kernel that the model looks up in it: library and kernel files are of different builds.",
        fix: "Ship library and kernel files of the same build.",
        samples: &["Error: CUDA driver error: named symbol not found"],
        ..DRIVER
    },
    Pattern {
        id: "drv-ptx",
        class: "C11",
        literals: &[
            "unsupported toolchain",
            "unsupported PTX version",
            "PTX with .target",
            "Unsupported .version",
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            "PTX JIT compilation",
        ],
        regex: r"PTX was compiled with an unsupported toolchain|unsupported PTX version|PTX with \.target '(\w+)' cannot be compiled for architecture '(\w+)'|Unsupported \.version ([\d.]+)|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|PTX JIT compilation (?:failed|was disabled)|a PTX JIT compilation failed",
        lookup: Lookup::KernelTarget,
        sentence: "The driver cannot compile the PTX of a kernel[[: it is for {1}, the GPU is {2}]][[: its version is {3}]].",
        fix: "Update the driver to the CUDA version that compiled the kernels, or compile for this GPU; PTX with a letter in its target does not move to other GPUs.",
        samples: &[
            "CUDA driver error: the provided PTX was compiled with an unsupported toolchain.",
            "ptxas fatal : PTX with .target 'sm_120a' cannot be compiled for architecture 'sm_120'",
        ],
        ..DRIVER
    },
    Pattern {
        id: "drv-launch",
        class: "C11",
        literals: &["out of resource", "too many resources requested", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
        regex: r"too many resources requested for launch|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES|out of resource: shared memory, Required: (\d+), Hardware limit: (\d+)|OutOfResources",
        lookup: Lookup::KernelLaunch,
        sentence: "A kernel needs more shared memory, registers or threads than this GPU has[[: {1} bytes, {2} at most]].",
        fix: "Compile and autotune on the GPU that runs it.",
        samples: &[
            "CUDA driver error: too many resources requested for launch",
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.",
        ],
        ..DRIVER
    },
    Pattern {
        id: "memcpy-h2d",
        class: "C22",
        origin: Origin::Other,
        literals: &["cudaMemcpy H2D failed"],
        regex: r"cudaMemcpy H2D failed: ([^\n]+)",
        lookup: Lookup::Device,
        sentence: "An ExecuTorch program planned for GPU memory was loaded by an interface that plans on the host.",
        fix: "Load it with the memory planning that its device tags ask for.",
        samples: &["[E] cudaMemcpy H2D failed: invalid argument"],
        ..ROW
    },
    Pattern {
        id: "drv-arg",
        class: "C11",
        literals: &["driver error: invalid argument"],
        regex: r"(?:CUDA|HIP) driver error: invalid argument",
        lookup: Lookup::KernelLaunch,
        sentence: "The driver refused a kernel's shared memory or an argument of its launch.",
        fix: "Compile on the GPU that runs it when shared memory is the reason; else check that every input is on the GPU.",
        samples: &["Error: CUDA driver error: invalid argument"],
        ..DRIVER
    },
    Pattern {
        id: "rt-arg",
        class: "C01",
        literals: &["CUDA error: invalid argument", "cudaErrorInvalidValue", "HIP error: invalid argument"],
        regex: r"(?:CUDA|HIP) error: invalid argument|cudaErrorInvalidValue",
        lookup: Lookup::Device,
        sentence: "The CUDA runtime got a pointer of the wrong kind: model, runner and inputs are not all on the GPU.",
        fix: "Use the runner of the artefact's device and put every input on it.",
        samples: &["Error: CUDA error: invalid argument"],
        ..DRIVER
    },
    Pattern {
        id: "devfn",
        class: "C11",
        literals: &["invalid device function", "cudaErrorInvalidDeviceFunction"],
        regex: r"invalid device function|cudaErrorInvalidDeviceFunction",
        lookup: Lookup::KernelTarget,
        sentence: "A library in the process has no kernel for this GPU (usually another library than the model's own kernels).",
        fix: "Use a torch build that supports this GPU, and compile the model for it.",
        samples: &["RuntimeError: CUDA error: invalid device function"],
        ..DRIVER
    },
    Pattern {
        id: "l0",
        class: "C11",
        literals: &["L0 build module failed", "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE"],
        regex: r"L0 build module failed(?:\. Log: ?([^\n]*))?|ZE_RESULT_ERROR_MODULE_BUILD_FAILURE",
        lookup: Lookup::KernelTarget,
        sentence: "The Intel GPU driver could not build a kernel[[: {1}]].",
        fix: "Compile for this GPU, and update the driver.",
        samples: &["Error: L0 build module failed. Log: undefined reference"],
        ..DRIVER
    },
    Pattern {
        id: "hip-file",
        class: "C11",
        literals: &["hipErrorNoBinaryForGpu", "hipErrorFileNotFound", "hipErrorSharedObjectInitFailed"],
        regex: r"hipErrorNoBinaryForGpu|hipErrorFileNotFound|hipErrorSharedObjectInitFailed",
        lookup: Lookup::KernelTarget,
        sentence: "A kernel file is missing or for another AMD GPU.",
        fix: "Compile for this GPU (PYTORCH_ROCM_ARCH), and ship the kernel files.",
        samples: &["hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"],
        ..DRIVER
    },
    Pattern {
        id: "metal-shader",
        class: "C21",
        literals: &["Failed to create Metal", "failed to compile Metal", "MTLLibraryErrorDomain"],
        regex: r"Failed to create Metal (?:library|function)[^\n]*|failed to compile Metal[^\n]*|MTLLibraryErrorDomain",
        lookup: Lookup::KernelTarget,
        sentence: "A Metal shader of the model does not compile on this system.",
        fix: "Run on the macOS release that compiled it, or compile again there.",
        samples: &["RuntimeError: Failed to create Metal library, error: Error Domain=MTLLibraryErrorDomain Code=3"],
        ..DRIVER
    },
];
