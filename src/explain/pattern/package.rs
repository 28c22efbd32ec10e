//! Package format, model names, members. Texts of torch/csrc/inductor/aoti_package/model_package_loader.cpp
//! and torch/_inductor/package/package.py, 2.6 to 2.15.

use super::{Lookup, Origin, Pattern, ROW, Rank, torch};

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "modelname",
        class: "C14",
        since: torch(9),
        literals: &["Failed to find a generated cpp file or so file", "Failed to find wrapper metadata for model"],
        regex: r"Failed to find (?:a generated cpp file or so file|wrapper metadata) for model '([^']*)'",
        lookup: Lookup::ModelName,
        sentence: "The package has no compiled model named `{1}`.",
        fix: "Give the name of a model that is in it; the default name is `model`.",
        samples: &[
            "RuntimeError: Failed to find a generated cpp file or so file for model 'forward' in the zip archive.",
        ],
        ..ROW
    },
    Pattern {
        id: "modelname-py",
        class: "C14",
        since: torch(8),
        literals: &["not found in package", "not found in PT2 archive contents"],
        regex: r"Model (\S+) not found in (?:package|PT2 archive contents)",
        lookup: Lookup::ModelName,
        sentence: "The package has no compiled model named `{1}`.",
        fix: "Give the name of a model that is in it; the default name is `model`.",
        samples: &[
            "RuntimeError: Model encoder not found in package",
            "RuntimeError: Model encoder not found in PT2 archive contents.",
        ],
        ..ROW
    },
    Pattern {
        id: "constructor",
        class: "C14",
        literals: &["incompatible constructor arguments", "AOTIModelPackageLoader(arg0"],
        regex: r"incompatible constructor arguments|AOTIModelPackageLoader\(arg0",
        lookup: Lookup::ModelName,
        sentence: "The Python loader handed a model name on in the wrong place: the package has no model of that name.",
        fix: "Give the name of a model that is in the package; the default name is `model`.",
        samples: &[
            "TypeError: __init__(): incompatible constructor arguments. The following argument types are supported:",
        ],
        ..ROW
    },
    Pattern {
        id: "manyso",
        class: "C14",
        literals: &[
            "Multiple wrapper shared libraries found",
            "Multiple .so files found in",
            "Multiple .cpp files found in",
        ],
        regex: r"Multiple (?:wrapper shared libraries found in AOTI package for model '?([^'\s]*)|\.(?:so|cpp) files found in)",
        lookup: Lookup::Member,
        sentence: "More than one library of a model is in the package and the loader does not choose.",
        fix: "Package again into a new file, with one library per model.",
        samples: &[
            "RuntimeError: Multiple wrapper shared libraries found in AOTI package for model 'model'",
            "AssertionError: Multiple .so files found in ['a.so', 'b.so']",
        ],
        ..ROW
    },
    Pattern {
        id: "no-devkey",
        class: "C14",
        literals: &["No device information found."],
        regex: r"No device information found\.",
        lookup: Lookup::Member,
        sentence: "The metadata of the model does not state its device.",
        fix: "Package again with torch 2.6 or newer; keep the metadata JSON that the compiler writes.",
        samples: &["RuntimeError: No device information found."],
        ..ROW
    },
    Pattern {
        id: "member",
        class: "C14",
        literals: &["File not found: "],
        regex: r"File not found: (\S+?(_metadata|_compile_flags)\.json)",
        lookup: Lookup::Member,
        sentence: "The loader looked for {1} and the package does not hold it.",
        fix: "The package is incomplete: make it again, and do not filter its members.",
        samples: &[
            "RuntimeError: File not found: /tmp/7iByvy/m/data/aotinductor/model/cla2.kernel_compile_flags.json",
            "RuntimeError: File not found: /tmp/aotinductor_bDFpsT/m/data/aotinductor/model/cvs.kernel_metadata.json",
        ],
        ..ROW
    },
    Pattern {
        id: "zip",
        class: "C14",
        literals: &[
            "Failed to initialize zip archive",
            "No files found in zip archive",
            "Invalid archive format",
            "PytorchStreamReader failed",
            "Failed to extract zip file",
            "BadZipFile",
            "Failed to find parent path in",
        ],
        regex: r"Failed to initialize zip archive: ([^\n]*)|No files found in zip archive|Invalid archive format|PytorchStreamReader failed ([^\n]*)|Failed to extract zip file|BadZipFile|Failed to find parent path in",
        lookup: Lookup::Layout,
        sentence: "The file is not readable as a package (zip archive)[[: {1}]][[: {2}]].",
        fix: "Check that it is the .pt2 file and that it was copied completely (size, checksum).",
        samples: &[
            "RuntimeError: Failed to initialize zip archive: not a ZIP archive",
            "RuntimeError: Failed to initialize zip archive: failed finding central directory",
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
            "RuntimeError: No files found in zip archive.",
        ],
        ..ROW
    },
    Pattern {
        id: "open-file",
        class: "C21",
        literals: &["cannot be opened."],
        regex: r"File (\S*[\\…]\S*\.pt2) cannot be opened",
        lookup: Lookup::Layout,
        sentence: "The package {1} is still open elsewhere: Windows does not open a temporary file twice.",
        fix: "Close the file before it is loaded, or load it by a path of its own.",
        samples: &[r"RuntimeError: File C:\Temp\tmpab12.pt2 cannot be opened."],
        ..ROW
    },
    Pattern {
        id: "not-a-zip",
        class: "C14",
        literals: &["Unable to load package. f must be", "cannot be opened.", "is not a zip file"],
        regex: r"Unable to load package\. f must be a buffer or a file ending in \.pt2|(\S+\.pt2) cannot be opened|is not a zip file",
        lookup: Lookup::Layout,
        sentence: "The package loader wants a file ending in .pt2 that it can open[[, and got {1}]].",
        fix: "Give the package; a bare library is loaded with the container runner. ",
        samples: &[
            "ValueError: Unable to load package. f must be a buffer or a file ending in .pt2. Instead got {f}",
            "RuntimeError: File /srv/model.pt2 cannot be opened.",
        ],
        ..ROW
    },
    Pattern {
        id: "archver",
        class: "C14",
        since: torch(8),
        literals: &["does not match our current archive version"],
        regex: r"Saved archive version (\S+) does not match our current archive version (\S+?)\.?(?:$|\s)",
        lookup: Lookup::Layout,
        sentence: "The package has archive version {1} and this torch reads {2}.",
        fix: "Load it with the torch that wrote it, or package again with this one.",
        samples: &["ValueError: Saved archive version 1 does not match our current archive version 0."],
        ..ROW
    },
    Pattern {
        id: "deserial",
        class: "C14",
        literals: &["GraphModuleDeserializer", "Serialized version "],
        regex: r"'GraphModuleDeserializer' object has no attribute '(\w+)'|Serialized version .* does not match our current schema version",
        lookup: Lookup::Layout,
        sentence: "An exported program was written by another torch than the one that reads it.",
        fix: "Read it with the release that wrote it.",
        samples: &["AttributeError: 'GraphModuleDeserializer' object has no attribute 'symbol_name_to_range'"],
        ..ROW
    },
    Pattern {
        id: "elf-header",
        class: "C14",
        origin: Origin::System,
        literals: &[
            "invalid ELF header",
            "file too short",
            "not a mach-o file",
            "is not a valid Win32 application",
            "slice is not valid mach-o",
            "ELF load command",
            "only ET_DYN and ET_EXEC can be loaded",
            "object file has no ",
        ],
        regex: r"([^\s:]+): (invalid ELF header|file too short)|ELF load command (?:past end of file|address/offset not properly aligned)|only ET_DYN and ET_EXEC can be loaded|object file has no (?:dynamic section|loadable segments)|not a mach-o file|slice is not valid mach-o|is not a valid Win32 application",
        lookup: Lookup::Layout,
        sentence: "What was opened as a library is none[[: {1}]].",
        fix: "A package (.pt2) is opened with the package loader, only the .so inside it is a library; a cut file has to be copied again.",
        samples: &[
            "RuntimeError: Error in dlopen: /srv/models/m.pt2: invalid ELF header",
            "OSError: /srv/models/m.so: file too short",
            "OSError: m.so: ELF load command past end of file",
        ],
        ..ROW
    },
    Pattern {
        id: "elf-class",
        class: "C14",
        origin: Origin::System,
        literals: &[
            "wrong ELF class",
            "cannot open shared object file: Exec format",
            "incompatible architecture",
            "Exec format error",
        ],
        regex: r"wrong ELF class: (\w+)|Exec format error|incompatible architecture(?: \(have '?(\w+))?",
        lookup: Lookup::Layout,
        sentence: "The library is for another processor or word size than this process[[: {1}]][[: {2}]].",
        fix: "Compile on, or cross-compile for, the platform that loads it.",
        samples: &[
            "OSError: /srv/m.so: wrong ELF class: ELFCLASS32",
            "dlopen(m.so): incompatible architecture (have 'x86_64', need 'arm64')",
        ],
        ..ROW
    },
    Pattern {
        id: "noexec",
        class: "C14",
        origin: Origin::System,
        literals: &["failed to map segment from shared object"],
        regex: r"(?:([^\s:]+): )?failed to map segment from shared object",
        lookup: Lookup::Nothing,
        sentence: "The system does not allow code to be mapped from where the library lies: the loader unpacks packages into a temporary folder, and that file system is mounted noexec (or memory is locked down).",
        fix: "Point TMPDIR to a folder on a file system that allows execution.",
        samples: &["OSError: /tmp/Ab1/m.wrapper.so: failed to map segment from shared object: Operation not permitted"],
        ..ROW
    },
    Pattern {
        id: "permission",
        class: "C14",
        origin: Origin::System,
        literals: &["Permission denied"],
        regex: r"Permission denied: '?(\S*(?:aotinductor|torchinductor|\.pt2|\.so|/tmp)[^'\s]*)|([^\s:]+\.(?:so|pt2)): [^\n]*Permission denied",
        lookup: Lookup::Nothing,
        sentence: "The process may not read or write[[ {1}]][[ {2}]].",
        fix: "Give the user of the process the right to read the artefact and to write into TMPDIR, where packages are unpacked.",
        samples: &["PermissionError: [Errno 13] Permission denied: '/tmp/aotinductor_abc'"],
        ..ROW
    },
    Pattern {
        id: "execstack",
        class: "C10",
        origin: Origin::System,
        literals: &["cannot enable executable stack"],
        regex: r"(\S+): cannot enable executable stack as shared object requires",
        lookup: Lookup::Layout,
        sentence: "The library asks for an executable stack and this host does not allow one (glibc 2.41 or newer, SELinux, hardened containers).",
        fix: "Clear the mark (`patchelf --clear-execstack`) or link with `-Wl,-z,noexecstack`; generated code does not need it.",
        samples: &[
            "OSError: /tmp/x.wrapper.so: cannot enable executable stack as shared object requires: Invalid argument",
        ],
        ..ROW
    },
    Pattern {
        id: "diskfull",
        class: "C14",
        origin: Origin::System,
        literals: &["No space left on device"],
        regex: r"No space left on device",
        lookup: Lookup::Memory,
        sentence: "The loader unpacks the whole package into a temporary folder, once per process, and the disk is full.",
        fix: "Clear old unpacked folders, or point TMPDIR to a larger disk.",
        samples: &["OSError: [Errno 28] No space left on device"],
        ..ROW
    },
    Pattern {
        id: "oldpkg",
        class: "C14",
        rank: Rank::Context,
        since: torch(8),
        literals: &["outdated pt2 file", "outdated version of the pt2 archive"],
        regex: r"outdated (?:version of the pt2 archive|pt2 file)",
        lookup: Lookup::Nothing,
        sentence: "The Python reader did not accept the package and the older C++ loader was tried: what follows is the C++ loader's word.",
        fix: "",
        samples: &["W1201 02:21:19 package.py:120] Loading outdated pt2 file. Please regenerate your package."],
        ..ROW
    },
    Pattern {
        id: "api-symbol",
        class: "C09",
        literals: &["symbol not found in .so"],
        regex: r"(AOTInductor\w+) symbol not found in \.so",
        lookup: Lookup::MissingExport,
        sentence: "The library does not export {1}: it was compiled by an older torch than the one that calls it, or is no AOTInductor library.",
        fix: "Compile with a newer torch, or do not use that function.",
        samples: &["RuntimeError: AOTInductorModelContainerCreateWithExternalConstants symbol not found in .so"],
        ..ROW
    },
];
