//! Every cap on what a file may ask of us, with its reason. Tests of the readers try each border.

/// Largest input taken from standard input; it has to be kept in memory.
pub const STDIN_BYTES: u64 = 1 << 30;
/// Entries of a zip's central directory or files below a folder. The widest real package has some thousand kernels.
pub const MEMBERS: usize = 65_536;
/// Bytes of one member name; zip itself cannot state more than 65,535.
pub const NAME_BYTES: usize = 4_096;
/// Inflated size of one compressed member. Packages are stored by torch; only third-party tools deflate,
/// and libraries reach some tens of MiB.
pub const INFLATED_BYTES: u64 = 256 << 20;
/// Inflated size of all compressed members of one artefact together.
pub const INFLATED_TOTAL_BYTES: u64 = 512 << 20;
/// Inflated bytes per compressed byte. Deflate cannot exceed 1,032; real libraries stay below 20.
pub const INFLATION_RATIO: u64 = 200;
/// A member that inflates to no more than this is never taken for a bomb: short texts of one letter are normal.
pub const INFLATION_FREE_BYTES: u64 = 1 << 20;
/// Bytes of a compressed member that are inflated to recognise its format, even when all of it is refused.
pub const INFLATED_HEAD_BYTES: u64 = 64 << 10;
/// Bytes from the end of a file in which a zip's end record is searched: its comment is at most 64 KiB, and some
/// transfers append padding.
pub const ZIP_END_SEARCH_BYTES: u64 = 1 << 20;
/// Oddities of one archive that are listed one by one; the rest is counted.
pub const LISTED_PROBLEMS: usize = 64;
/// Depth of folders walked.
pub const FOLDER_DEPTH: usize = 16;
/// JSON text read in one piece (metadata, weights configuration, exported programs).
pub const JSON_BYTES: u64 = 64 << 20;
/// Objects, lists and commas of one JSON text: an exported program of a large model has some hundred thousand, and an
/// empty object takes 700 bytes of memory.
pub const JSON_VALUES: usize = 1 << 20;
/// Nesting of JSON: the recursion limit of serde_json itself, whose parser recurses.
pub const JSON_DEPTH: usize = 127;
/// Nesting of expressions, guards and other texts that we parse ourselves.
pub const NESTING: usize = 64;
/// Nodes of one call spec or expression.
pub const NODES: usize = 1 << 18;
/// Wrapper source read in one piece; 1,200 inputs give 2.5 MB.
pub const SOURCE_BYTES: u64 = 64 << 20;
/// Sections and segments of one object file.
pub const SECTIONS: usize = 16_384;
/// Symbols of one table; the largest real library has about 30,000.
pub const SYMBOLS: usize = 1 << 20;
/// Bytes of one symbol, section or library name; mangled names of templates are long.
pub const SYMBOL_NAME_BYTES: usize = 16 << 10;
/// Inputs, outputs or constants of one model.
pub const TENSORS: usize = 65_536;
/// Dims of one tensor; torch itself stops at 64.
pub const RANK: usize = 64;
/// Kernels of one model and images of one kernel file.
pub const KERNELS: usize = 65_536;
/// Bytes of one descriptive section of a kernel file (attributes, texts, notes); real ones have some KiB.
pub const KERNEL_SECTION_BYTES: u64 = 16 << 20;
/// Parameters of one kernel; CUDA 12.1 and later allow 32,764 bytes of them.
pub const KERNEL_PARAMETERS: usize = 32_764;
/// Assertions of one kernel image; real kernels have a handful.
pub const ASSERTIONS: usize = 1_024;
/// Inflated bytes of one entry of a fatbin.
pub const FATBIN_ENTRY_BYTES: u64 = 64 << 20;
/// Inflated bytes of all entries of one fatbin together.
pub const FATBIN_TOTAL_BYTES: u64 = 256 << 20;
/// Bytes of executable code decoded by the instruction scan and the cross-reference method.
pub const CODE_BYTES: u64 = 256 << 20;
/// Check messages followed by the cross-reference method; an input of rank 64 has less than 200.
pub const CHECKS: usize = 1 << 20;
/// Instructions followed from one check message to its value; real code needs some ten.
pub const CHECK_STEPS: usize = 200;
/// Bytes searched for check messages that no code mentions.
pub const CHECK_TEXT_BYTES: u64 = 16 << 20;
/// Bytes of thread-local variables; static C++ libraries have some hundred.
pub const THREAD_LOCAL_BYTES: u64 = 1 << 16;
/// Instructions interpreted for one library at most, whatever its size (see `interpret`).
pub const INSTRUCTIONS: u64 = 200_000_000;
/// Instructions that every library may use, however small: 20 times what a static C++ library without
/// optimisation needs.
pub const INSTRUCTIONS_BASE: u64 = 3_000_000;
/// Further instructions for each byte of its executable segments: wide models have long constructors. With 10,000
/// constants a library of torch's own options (-O1) has some 4 MB of code and executes some 16 million instructions.
pub const INSTRUCTIONS_PER_BYTE: u64 = 8;
/// Pages of 4 KiB that an interpreted library may touch; 10,000 constants need some 2,000.
pub const INTERPRETED_PAGES: usize = 16_384;
/// Depth of calls in an interpreted library.
pub const CALL_DEPTH: usize = 300;
/// Bytes that an interpreted library copies in one call. Weights are not copied at all.
pub const COPY_BYTES: u64 = 4 << 20;
/// Writes that can be undone.
pub const UNDO_ENTRIES: usize = 1 << 20;
/// Expressions over symbols that one interpretation may make.
pub const EXPRESSIONS: usize = 1 << 20;
/// Nodes of one such expression, written out.
pub const EXPRESSION_NODES: u32 = 1_000;
/// Calls, allocations and launches that are kept for `show --trace`.
pub const TRACE_ENTRIES: usize = 65_536;
/// Bytes of log read for `explain`; what lies beyond is counted, not kept.
pub const LOG_BYTES: u64 = 1 << 30;
/// Distinct error texts, stack frames and error lines kept of a log; what comes after is counted.
pub const LOG_TEXTS: usize = 256;
/// Bytes of one log line that are looked at.
pub const LOG_LINE_BYTES: usize = 64 << 10;
/// Bytes of a text shown to a person that came from a file.
pub const SHOWN_TEXT_BYTES: usize = 4_096;
/// Relocations of one library; the widest real one (1,200 inputs) has some thousand.
pub const RELOCATIONS: usize = 1 << 22;
/// Recorded input lists (`--cases`) judged in one run.
pub const CASES: usize = 1_000_000;
/// Bytes of a file of recorded input lists.
pub const CASES_BYTES: u64 = 1 << 30;
/// Functions named per instruction set extension; the rest of them is counted, not kept.
pub const FUNCTIONS_PER_EXTENSION: usize = 8;
/// Segments of one object file; linkers make fewer than twenty, and a PE image may have 96 sections.
pub const SEGMENTS: usize = 256;
/// Bytes of all names of one symbol table together; each is read once, and a table may name one text a million times.
pub const SYMBOL_NAMES_BYTES: u64 = 256 << 20;
/// Problems told about one object file; the rest repeats them.
pub const PROBLEMS: usize = 256;
/// Bytes of constants searched for the texts that tell the release.
pub const TEXT_BYTES: u64 = 256 << 20;
