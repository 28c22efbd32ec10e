//! Symbols, libraries and instruction set of the host.

use super::{Lookup, Origin, Pattern, ROW, Rank, torch};

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "undef",
        class: "C09",
        origin: Origin::System,
        literals: &["undefined symbol: ", "symbol lookup error"],
        regex: r"undefined symbol: ([^\s,]+)(?:, version (\S+))?",
        lookup: Lookup::Symbol,
        sentence: "The library needs the symbol {1}, which nothing in the process provides.",
        fix: "Load it with a torch that has the symbol: at least the release that compiled it, of the same build (cpu or cuda).",
        samples: &["OSError: /tmp/m.so: undefined symbol: aoti_torch_cuda_mm_out"],
        ..ROW
    },
    Pattern {
        id: "static-tls",
        class: "C10",
        origin: Origin::System,
        literals: &["in static TLS block"],
        regex: r"(?:([^\s:]+): )?cannot allocate memory in static TLS block",
        lookup: Lookup::Nothing,
        sentence: "Too many libraries with thread-local data were loaded before[[ {1}]]: the room that the linker keeps for them is used up.",
        fix: "Load the library earlier (LD_PRELOAD, or before other imports), or set GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384.",
        samples: &["OSError: /venv/lib/libgomp.so.1: cannot allocate memory in static TLS block"],
        ..ROW
    },
    Pattern {
        id: "undef-mac",
        class: "C09",
        origin: Origin::System,
        literals: &["ymbol not found"],
        regex: r"[Ss]ymbol not found(?: in flat namespace)?:? \(?'?_?([A-Za-z_]\w+)",
        lookup: Lookup::Symbol,
        sentence: "The library needs the symbol {1}, which nothing in the process provides.",
        fix: "Load it with a torch that has the symbol: at least the release that compiled it.",
        samples: &["ImportError: dlopen(m.so, 0x0002): symbol not found in flat namespace '_aoti_torch_cpu_addmm_out'"],
        ..ROW
    },
    Pattern {
        id: "undef-win",
        class: "C21",
        origin: Origin::System,
        literals: &["WinError 127", "The specified procedure could not be found"],
        regex: r"WinError 127|The specified procedure could not be found",
        lookup: Lookup::Library,
        sentence: "A DLL that the library needs lacks a function.",
        fix: "Load it with the torch release that compiled it.",
        samples: &["OSError: [WinError 127] The specified procedure could not be found."],
        ..ROW
    },
    Pattern {
        id: "glibc",
        class: "C10",
        origin: Origin::System,
        literals: &["' not found (required by", "GLIBC_", "GLIBCXX_", "CXXABI_", "`GOMP_", "'GOMP_", " GOMP_"],
        regex: r"version [`']?(GLIBC|GLIBCXX|CXXABI|GOMP)_([\d.]+)'? not found",
        lookup: Lookup::SymbolVersion,
        sentence: "The library needs {1} {2} and this host has an older one.",
        fix: "Run on a newer system image, or compile on one as old as the target.",
        samples: &[
            "OSError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /tmp/m.so)",
        ],
        ..ROW
    },
    Pattern {
        id: "nolib",
        class: "C10",
        origin: Origin::System,
        literals: &["cannot open shared object file"],
        regex: r"([^\s:]+): cannot open shared object file(?:: No such file or directory)?",
        lookup: Lookup::Library,
        sentence: "The shared library {1} is not on this host, or not where the linker looks.",
        fix: "Install it, or put its folder on LD_LIBRARY_PATH; in Python import torch first.",
        samples: &[
            "OSError: libc10_cuda.so: cannot open shared object file: No such file or directory",
            "libc10_cuda.so: cannot open shared object file",
        ],
        ..ROW
    },
    Pattern {
        id: "nolib-mac",
        class: "C10",
        origin: Origin::System,
        literals: &["Library not loaded: "],
        regex: r"Library not loaded: (\S+)",
        lookup: Lookup::Library,
        sentence: "The shared library {1} is not on this host.",
        fix: "Install it there, or change the path in the load command (`install_name_tool`).",
        samples: &["dyld[123]: Library not loaded: /opt/homebrew/opt/libomp/lib/libomp.dylib"],
        ..ROW
    },
    Pattern {
        id: "nolib-win",
        class: "C21",
        origin: Origin::System,
        literals: &["WinError 126", "The specified module could not be found"],
        regex: r"WinError 126|The specified module could not be found",
        lookup: Lookup::Library,
        sentence: "A DLL that the library needs is not on this host.",
        fix: "Put the missing DLL beside the library or on PATH; `aoti-inspect MODEL` lists what it imports.",
        samples: &["OSError: [WinError 126] The specified module could not be found."],
        ..ROW
    },
    Pattern {
        id: "omp-twice",
        class: "C10",
        origin: Origin::System,
        literals: &["OMP: Error #15"],
        regex: r"OMP: Error #15: Initializing (\S+?), but found (\S+) already initialized",
        lookup: Lookup::Library,
        sentence: "Two OpenMP runtimes are in one process: {1} and {2}.",
        fix: "Make torch and the model use the same OpenMP library.",
        samples: &["OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib already initialized."],
        ..ROW
    },
    Pattern {
        id: "sigill",
        class: "C13",
        origin: Origin::System,
        literals: &[
            "SIGILL",
            "Illegal instruction",
            "illegal hardware instruction",
            "ILL_ILLOPN",
            "trap invalid opcode",
        ],
        regex: r"SIGILL|Illegal instruction(?:: (\d+))?|illegal hardware instruction|ILL_ILLOPN|trap invalid opcode",
        lookup: Lookup::CpuIsa,
        sentence: "The processor met an instruction that it does not have.",
        fix: "Compile on a host like the target, or limit the instruction set (ATEN_CPU_CAPABILITY=avx2 and a lower -march) when compiling.",
        samples: &[
            "Illegal instruction (core dumped)",
            "traps: python3[4242] trap invalid opcode ip:7f8a1b2c3d4e sp:7ffc0 error:0 in cx.wrapper.so[7f8a1b2c0000+5000]",
        ],
        ..ROW
    },
    Pattern {
        id: "nofn",
        class: "C09",
        literals: &[" in .so!"],
        regex: r"No (\w+) (?:function )?in \.so!",
        lookup: Lookup::MissingExport,
        sentence: "The library does not have the function {1}, which was called.",
        fix: "Compile with a newer torch, or do not call that function.",
        samples: &[
            "RuntimeError: No free_inactive_constant_buffer in .so! Please recompile.",
            "No AOTInductorModelContainerRunSingleThreaded function in .so!",
        ],
        ..ROW
    },
    Pattern {
        id: "codecvt",
        class: "C10",
        origin: Origin::System,
        literals: &["do_unshift"],
        regex: r"std::(?:\w+::)*codecvt[^\n]*do_unshift",
        lookup: Lookup::Library,
        sentence: "Two C++ runtimes are in one process: the crash is in a stream of the wrong one.",
        fix: "Do not link libstdc++ statically with its symbols exported.",
        samples: &["#1  0x00007f in std::codecvt<char, char, __mbstate_t>::do_unshift () from /opt/x.so"],
        ..ROW
    },
    Pattern {
        id: "dlopen",
        class: "C09",
        literals: &["Error in dlopen:"],
        regex: r"Error in dlopen:\s*(.*)",
        lookup: Lookup::Layout,
        sentence: "The library could not be opened: {1}",
        fix: "Ask `aoti-inspect verify MODEL --this-host`, which tests libraries, symbols and versions.",
        samples: &["RuntimeError: Error in dlopen: /tmp/m.so: a text of the linker"],
        ..ROW
    },
    Pattern {
        id: "loadfail",
        class: "C14",
        literals: &["Failed to load model:"],
        regex: r"Failed to load model:\s*(.*)",
        lookup: Lookup::Layout,
        sentence: "The library could not be loaded: {1}",
        fix: "Ask `aoti-inspect verify MODEL --this-host`.",
        samples: &["RuntimeError: Failed to load model: /tmp/m.so"],
        ..ROW
    },
    Pattern {
        id: "dlsym",
        class: "C09",
        rank: Rank::Context,
        since: torch(8),
        literals: &["Could not dlsym "],
        regex: r"Could not dlsym (\w+)",
        lookup: Lookup::MissingExport,
        sentence: "The library is older than the loader and lacks {1}: harmless unless that function is called.",
        fix: "",
        samples: &["[WARNING] Could not dlsym AOTInductorModelContainerGetConstantDataSize"],
        ..ROW
    },
];
