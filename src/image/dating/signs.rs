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

// of a package
/// Entry `version` beside `archive_format`.
pub const VERSION_ENTRY: Sign = between("entry `version`", 5, 7);
/// Entry `archive_version`.
pub const ARCHIVE_VERSION: Sign = since("entry `archive_version`", 8);
/// Members directly in `data/aotinductor/`.
pub const NO_MODEL_FOLDER: Sign = between("members directly in data/aotinductor/", 5, 5);
/// `build_package.py` or `Makefile`.
pub const BUILD_SCRIPT: Sign = between("build_package.py", 5, 5);
/// Library called `<hash>.so`.
pub const PLAIN_LIBRARY_NAME: Sign = between("library is called <hash>.so", 6, 6);
/// Library called `<hash>.wrapper.so`.
pub const WRAPPER_LIBRARY_NAME: Sign = since("library is called <hash>.wrapper.so", 7);
/// `custom_objs_config.json` that holds `{}`.
pub const EMPTY_CUSTOM_OBJECTS: Sign = between("empty custom_objs_config.json", 7, 7);
/// A metadata JSON at all.
pub const METADATA: Sign = since("metadata JSON", 6);
/// Key `AOTI_PLATFORM` or its companions.
pub const PLATFORM_KEYS: Sign = since("metadata key AOTI_PLATFORM", 10);
/// A `*_weights.blob` member.
pub const WEIGHTS_BLOB: Sign = since("weights in a *_weights.blob member", 10);
/// `kernel_information.json`.
pub const KERNEL_INFORMATION: Sign = since("kernel_information.json", 9);
/// Several libraries in one model folder.
pub const SEVERAL_LIBRARIES: Sign = since("several libraries in one model folder", 13);
/// A `weights_config.json`.
pub const WEIGHTS_CONFIG: Sign = since("weights_config.json", 8);

// of generated source
/// Constructor without a device string.
pub const CONSTRUCTOR_WITHOUT_DEVICE: Sign = between("constructor without a device string", 2, 2);
/// Constructor with `device_str` and no `include_weights` parameter, base call on one line.
pub const CONSTRUCTOR_WITH_DEVICE: Sign = between("constructor with a device string", 3, 5);
/// Constructor with a parameter `include_weights`.
pub const CONSTRUCTOR_WITH_INCLUDE_WEIGHTS: Sign = between("constructor with parameter include_weights", 6, 7);
/// Base call with six arguments, one a line.
pub const CONSTRUCTOR_MULTILINE: Sign = since("constructor call with one argument a line", 8);
/// Call spec as an escaped literal.
pub const ESCAPED_SPEC: Sign = until("call spec is an escaped literal", 7);
/// Call spec as a raw literal.
pub const RAW_SPEC: Sign = since("call spec is a raw literal", 8);
/// Call spec split into several raw literals.
pub const SPLIT_SPEC: Sign = since("call spec is split into several raw literals", 9);
/// `constants_info_[i].type =`.
pub const CONSTANT_TYPE: Sign = since("constants state their type", 6);
/// `constants_info_[i].device_type =`.
pub const CONSTANT_DEVICE: Sign = since("constants state their device", 11);
/// `constants_info_[i].original_fqn =`.
pub const CONSTANT_FQN: Sign = since("constants state their original name", 3);
/// dtype of constants without a cast.
pub const CONSTANT_DTYPE_PLAIN: Sign = since("dtype of constants without a cast", 11);
/// `!= 0)` in the environment test.
pub const ENVIRONMENT_NUMBER: Sign = between("environment variable is compared with the number 0", 7, 7);
/// `!= '0'` in the environment test.
pub const ENVIRONMENT_CHARACTER: Sign = since("environment variable is compared with the character 0", 8);
/// `std::move(ss).str()`.
pub const MOVED_STREAM: Sign = since("std::move(ss).str()", 13);
/// `assert_size_stride(…, "input")`.
pub const ASSERT_SIZE_STRIDE: Sign = since("assert_size_stride for inputs", 13);
/// `assert_size_stride` with dtype arguments.
pub const ASSERT_SIZE_STRIDE_DTYPE: Sign = since("assert_size_stride with dtype", 14);
/// `assert_alignment(`.
pub const ASSERT_ALIGNMENT: Sign = since("assert_alignment", 15);
/// `by zero");`.
pub const DIVISION_CHECK: Sign = since("checks for division by zero", 12);
/// `-std=c++17` in the compile comment; not on Windows.
pub const CXX17: Sign = until("compiled as C++17", 11);
/// `-std=c++20` in the compile comment; not on Windows.
pub const CXX20: Sign = since("compiled as C++20", 12);
/// `TORCH_INDUCTOR_PRECOMPILE_HEADERS`.
pub const PRECOMPILED_HEADERS: Sign = since("TORCH_INDUCTOR_PRECOMPILE_HEADERS", 12);
/// `-g1` in the default compile comment.
pub const DEFAULT_LINE_TABLES: Sign = since("compiled with -g1", 13);
/// `call_<kernel>` helpers of GPU kernels.
pub const KERNEL_HELPERS: Sign = since("one call helper per GPU kernel", 7);
/// Triton text in comments.
pub const TRITON_TEXT: Sign = since("Triton source in comments", 8);
/// `profile_scratch`.
pub const PROFILE_SCRATCH: Sign = since("profile_scratch", 9);
/// `__attribute__((noinline)) void call_`.
pub const NOINLINE_HELPERS: Sign = since("call helpers are not inlined", 12);
/// `loaded_modules_`.
pub const LOADED_MODULES: Sign = since("loaded_modules_", 13);
/// An eighth argument of `launchKernel`.
pub const DEPENDENT_LAUNCH: Sign = since("launchKernel with a dependent-launch flag", 15);
/// Kernel symbol `triton_`.
pub const TRITON_SYMBOL: Sign = until("kernels are called triton_", 5);
/// Symbols `s0`, `s1`, … in sequence.
pub const SEQUENTIAL_SYMBOLS: Sign = until("symbols s0, s1, …", 7);
/// Symbols such as `s77`, numbered by their source.
pub const HASHED_SYMBOLS: Sign = since("symbols numbered by their source", 8);
