//! Pages of the codes about constants.

use crate::checks::codes::{Code, Page};
use crate::report::Level;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "weights-absent",
        summary: "the artefact has no weights: the caller loads them",
        level: Level::Warn,
        page: Page {
            compares: "The constants table with the bytes in the file: none are there, and the option that leaves them out \
                       was used.",
            matters: "This is a normal state. A run before the weights are loaded ends in a segmentation fault or an \
                      illegal memory access, without a message.",
            reports: "pytorch pull request 142246, issue 152356.",
            fix: "Load all constants before the first run; `--weights FILE.safetensors` says whether they fit.",
        },
    },
    Code {
        id: "weights-truncated",
        summary: "the file holds fewer bytes of weights than its constants table wants",
        level: Level::Deny,
        page: Page {
            compares: "The sum of the sizes in the constants table with the bytes in the library, behind it, or in the \
                       blob file.",
            matters: "The constants behind the gap are read from wrong memory: wrong numbers or a crash at load.",
            reports: "Cut copies of large libraries and exchanged blob files, class C15 of the failure study; layout in \
                      aoti_runtime/model_base.h.",
            fix: "Copy the artefact again; do not exchange blob files between builds.",
        },
    },
    Code {
        id: "weights-blob-missing",
        summary: "the weights are in a blob file that is not in the package",
        level: Level::Deny,
        page: Page {
            compares: "The library, which says that its weights are in a file apart, with the members of the package.",
            matters: "The load succeeds and the first run ends in an illegal memory access or a segmentation fault.",
            reports: "Loader of torch 2.10 and newer (aoti_package/model_package_loader.cpp); logs of 2.11 without blob.",
            fix: "Package again with `aot_inductor.package_constants_on_disk_format` as it was, and deploy all members.",
        },
    },
    Code {
        id: "weights-offset",
        summary: "appended weights do not begin at a page of the target",
        level: Level::Deny,
        page: Page {
            compares: "The offset of the weights behind the library with 16384, which the runtime asks for, and with the \
                       page size of the target.",
            matters: "The runtime refuses an offset that is no multiple of 16384, and `mmap() failed` follows on hosts \
                      with larger pages.",
            reports: "pytorch issue 145610 (aarch64 with 64 KiB pages).",
            fix: "Compile on a host with the page size of the target, or embed the weights.",
        },
    },
    Code {
        id: "weights-mismatch",
        summary: "the weights file does not fit the constants of the model",
        level: Level::Deny,
        page: Page {
            compares: "Names, dtypes and shapes in the safetensors header with the constants by their original names; the \
                       data is not read.",
            matters: "Missing names end the update with an error or keep old values; another dtype or shape copies the \
                      wrong bytes.",
            reports: "pytorch pull requests 149243 and 197430, issue 180446.",
            fix: "Save the state dict of the very module that was exported, with the names of that module.",
        },
    },
    Code {
        id: "gpu-memory",
        summary: "the constants need more memory than the GPU has",
        level: Level::Deny,
        page: Page {
            compares: "The sum of all constants on the GPU, folded ones included and each rounded up to 64 bytes, with the \
                       memory of the GPU. Activations, workspace and the CUDA context come on top and are not known.",
            matters: "The load ends in `CUDA error: out of memory`. While constants are updated, a second buffer of the \
                      same size is needed.",
            reports: "pytorch/torchchat issues 996 and 1302; pytorch issue 152356.",
            fix: "Use a GPU with more memory, a smaller dtype, or free the weights of the eager model first.",
        },
    },
    Code {
        id: "load-cost",
        summary: "what loading costs: bytes unpacked, host memory, device memory",
        level: Level::Allow,
        page: Page {
            compares: "Nothing; it adds up what the official loader unpacks to the temporary folder and what the runtime \
                       allocates.",
            matters: "Every process unpacks the package again, and full temporary folders or memory are a common surprise.",
            reports: "pytorch issues 169154, 141772 and 141853.",
            fix: "Load once and share the container between threads, or keep the weights in a blob or appended form that \
                  is mapped.",
        },
    },
    Code {
        id: "constant-unaligned",
        summary: "constants do not begin at multiples of 64 bytes",
        level: Level::Warn,
        page: Page {
            compares: "The offset of each CPU constant in the file with 64 bytes, which the compiler assumes since 2.4.",
            matters: "Vectorised code and oneDNN read such constants slowly, or with aligned instructions that fault.",
            reports: "Files of 2.2 and 2.3 (format reference 4.5 and 4.6), class C08 of the failure study.",
            fix: "Compile again with torch 2.4 or newer.",
        },
    },
    Code {
        id: "input-alignment",
        summary: "inputs were compiled as aligned to 16 bytes",
        level: Level::Warn,
        page: Page {
            compares: "Inputs whose address the kernels assume to be a multiple of 16 with what the runtime in the file \
                       does with others: 2.6 throws, 2.7 and newer copy them.",
            matters: "A slice of a tensor, or memory of another library, can begin anywhere: an error in 2.6, one more \
                      copy at each run later.",
            reports: "Class C08 of the failure study; `copy_misaligned_inputs` in torch/_inductor/codegen.",
            fix: "Pass tensors that begin at an allocation of their own, or compile again with 2.7 or newer.",
        },
    },
];
