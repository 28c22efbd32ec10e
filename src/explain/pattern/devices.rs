//! Device of the load against device of the artefact.

use super::{Lookup, Origin, Pattern, ROW, Rank, torch};

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "host-mem",
        class: "C01",
        literals: &["pointer resides on host memory"],
        regex: r"The specified pointer resides on host memory and is not registered with any CUDA device",
        lookup: Lookup::Device,
        sentence: "Constants in host memory were wrapped as CUDA tensors: a CPU artefact was loaded as CUDA.",
        fix: "Load it with the device it was compiled for, or compile it for cuda.",
        samples: &[
            "RuntimeError: The specified pointer resides on host memory and is not registered with any CUDA device.",
        ],
        ..ROW
    },
    Pattern {
        id: "dev-idx",
        class: "C02",
        literals: &["does not match device of data"],
        regex: r"Specified device (\S+) does not match device of data (\S+?)\.?(?:$|\s)",
        lookup: Lookup::RunnerDevice,
        sentence: "The loader asked for {1} and the data are on {2}.",
        fix: "Same type, other index: load on the index it was compiled on, or compile with a newer torch. Other type: use the runner of the artefact's device.",
        samples: &["RuntimeError: Specified device cuda:1 does not match device of data cuda:0"],
        ..ROW
    },
    Pattern {
        id: "no-gpu",
        class: "C01",
        since: torch(14),
        literals: &["Cannot load AOTInductor package for device"],
        regex: r"Cannot load AOTInductor package for device '(\w+)'(?: because (\w+) is not available)?",
        lookup: Lookup::Device,
        sentence: "The package is for {1} and this process has no {1} device.",
        fix: "Run on a host with such a device and a torch build for it, or compile for cpu.",
        samples: &[
            "RuntimeError: Cannot load AOTInductor package for device 'cuda' because CUDA is not available in this process.",
        ],
        ..ROW
    },
    Pattern {
        id: "no-driver",
        class: "C01",
        origin: Origin::Other,
        literals: &["There should only be one"],
        regex: r"(\d+) active drivers \(\[(.*)\]\)\. There should only be one",
        lookup: Lookup::Device,
        sentence: "A GPU package was opened on a host with {1} usable GPU drivers (the text is Triton's).",
        fix: "Run on a host with a GPU that this process can see, or compile for cpu.",
        samples: &["RuntimeError: 0 active drivers ([]). There should only be one."],
        ..ROW
    },
    Pattern {
        id: "bad-runner",
        class: "C01",
        literals: &["Incorrect device passed to aoti_runner_"],
        regex: r"Incorrect device passed to aoti_runner_(\w+)",
        lookup: Lookup::RunnerDevice,
        sentence: "The {1} runner was given a device that is not plain `{1}`.",
        fix: "Give the device that the artefact was compiled for; the CPU has no index.",
        samples: &["RuntimeError: Incorrect device passed to aoti_runner_cpu"],
        ..ROW
    },
    Pattern {
        id: "driver-old",
        class: "C01",
        origin: Origin::Driver,
        literals: &[
            "CUDA driver version is insufficient",
            "cudaErrorInsufficientDriver",
            "driver on your system is too old",
        ],
        regex: r"CUDA driver version is insufficient(?: for CUDA runtime version)?|cudaErrorInsufficientDriver|The NVIDIA driver on your system is too old(?: \(found version (\d+)\))?",
        lookup: Lookup::Device,
        sentence: "CUDA was asked for on a host without a driver, or with one that is too old for this torch.",
        fix: "Load a CPU artefact as cpu; for a CUDA artefact install the driver, or use the torch build for the driver that is there.",
        samples: &["torch.AcceleratorError: CUDA error: CUDA driver version is insufficient for CUDA runtime version"],
        ..ROW
    },
    Pattern {
        id: "no-cuda-device",
        class: "C01",
        origin: Origin::Driver,
        literals: &[
            "no CUDA-capable device is detected",
            "No CUDA GPUs are available",
            "Found no NVIDIA driver",
            "Torch not compiled with CUDA enabled",
            "No HIP GPUs are available",
            "PyTorch is not linked with support for cuda",
            "CUDA_ERROR_NO_DEVICE",
        ],
        regex: r"no CUDA-capable device is detected|No (?:CUDA|HIP) GPUs are available|Found no NVIDIA driver|Torch not compiled with CUDA enabled|PyTorch is not linked with support for cuda|CUDA_ERROR_NO_DEVICE",
        lookup: Lookup::Device,
        sentence: "CUDA was asked for and this process sees no GPU.",
        fix: "Check `nvidia-smi`, CUDA_VISIBLE_DEVICES and the container's GPU option; a CPU artefact has to be loaded as cpu.",
        samples: &[
            "RuntimeError: No CUDA GPUs are available",
            "RuntimeError: CUDA error: no CUDA-capable device is detected",
            "AssertionError: Torch not compiled with CUDA enabled",
        ],
        ..ROW
    },
    Pattern {
        id: "ordinal",
        class: "C02",
        origin: Origin::Driver,
        literals: &["invalid device ordinal", "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice"],
        regex: r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|cudaErrorInvalidDevice\b",
        lookup: Lookup::RunnerDevice,
        sentence: "The GPU index that was asked for does not exist in this process.",
        fix: "Give an index below the number of visible GPUs (CUDA_VISIBLE_DEVICES renumbers them).",
        samples: &["torch.AcceleratorError: CUDA error: invalid device ordinal"],
        ..ROW
    },
    Pattern {
        id: "bad-device",
        class: "C01",
        origin: Origin::Artifact,
        since: torch(3),
        literals: &["Invalid device: "],
        regex: r"Invalid device: (\S+)",
        lookup: Lookup::RunnerDevice,
        sentence: "The runtime inside the artefact does not understand the device `{1}`.",
        fix: "Give `cpu`, `cuda` or `cuda:N`.",
        samples: &["Error: Invalid device: gpu0"],
        ..ROW
    },
    Pattern {
        id: "py-device",
        class: "C01",
        since: torch(3),
        literals: &["Unsupported device "],
        regex: r"Unsupported device (?:key found: )?(\S+)",
        lookup: Lookup::Device,
        sentence: "The loader has no runner for the device {1}.",
        fix: "Use a torch build with that device, or load for the device that the artefact was compiled for.",
        samples: &["RuntimeError: Unsupported device key found: xpu", "RuntimeError: Unsupported device meta"],
        ..ROW
    },
    Pattern {
        id: "mixed",
        class: "C15",
        origin: Origin::Artifact,
        since: torch(11),
        literals: &["Mixed-device constants are only supported"],
        regex: r"Mixed-device constants are only supported when the secondary device is CPU(?:\. Constant '([^']+)')?",
        lookup: Lookup::ConstantDevice,
        sentence: "The device of the load and the device of the constants differ[[: the first is `{1}`]].",
        fix: "Load for the device that the artefact was compiled for.",
        samples: &[
            "Error: Mixed-device constants are only supported when the secondary device is CPU. Constant 'fc1_weight' is on device type 1",
        ],
        ..ROW
    },
    Pattern {
        id: "devinfo",
        class: "C13",
        rank: Rank::Context,
        since: torch(10),
        literals: &["Device information mismatch for"],
        regex: r"Device information mismatch for (\w+)(?:: (.+?) vs (.+?)\. This could)?",
        lookup: Lookup::CpuIsa,
        sentence: "{1} differs between the host that compiled and this one[[: {2} against {3}]]; it is a warning, the code decides.",
        fix: "Ask `aoti-inspect verify MODEL --this-host` whether the code really needs it.",
        samples: &[
            "W1201 Device information mismatch for AOTI_CPU_ISA: AVX512 AVX512_VNNI vs AVX2. This could cause some issues when loading the AOTInductor compiled artifacts.",
        ],
        ..ROW
    },
    Pattern {
        id: "runners",
        class: "C19",
        since: torch(8),
        literals: &["num_runners must be 1", "num_models must be positive"],
        regex: r"num_runners must be 1 when run_single_threaded is true|num_models must be positive, but got (\S+)",
        lookup: Lookup::SingleThreaded,
        sentence: "The number of runners that was asked for does not fit.",
        fix: "Ask for exactly one runner together with run_single_threaded, else for one or more.",
        samples: &[
            "RuntimeError: num_runners must be 1 when run_single_threaded is true",
            "Error: num_models must be positive, but got 0",
        ],
        ..ROW
    },
];
