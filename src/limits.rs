//! Every cap on what a file may ask of us, with its reason.
//!
//! The tests of a cap have `border` in their names and lie beside the code that enforces it, or in `tests/hostile.rs`:
//! `cargo test border` runs them. They go to the cap and one beyond; where the cap itself is too large for a test, to a
//! smaller one through the same code. `tests/hostile.rs` fails for a cap that no such test mentions.

/// Largest input taken from standard input: it has to be kept in memory, where a file given by name is only mapped.
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
/// Depth of folders walked: model stores nest by name, version and device; deeper trees are caches and source.
pub const FOLDER_DEPTH: usize = 16;
/// JSON text read in one piece (metadata, weights configuration, exported programs); parsed it takes several times as much
/// memory. Lists that a person gives have the same cap.
pub const JSON_BYTES: u64 = 64 << 20;
/// Objects of one JSON text: so many of a list each take 200 MB of memory.
pub const JSON_OBJECTS: usize = 1 << 18;
/// Objects, lists and commas together, which bounds the values.
pub const JSON_VALUES: usize = 1 << 22;
/// Nesting of JSON: the recursion limit of serde_json itself, whose parser recurses.
pub const JSON_DEPTH: usize = 127;
/// Nesting of expressions, guards and other texts that we parse ourselves: their parsers recurse.
pub const NESTING: usize = 64;
/// Nodes of one call spec or expression: two for each of [`TENSORS`], and fewer than [`JSON_OBJECTS`].
pub const NODES: usize = 1 << 17;
/// Wrapper source read in one piece; 1,200 inputs give 2.5 MB.
pub const SOURCE_BYTES: u64 = 64 << 20;
/// Sections of one object file: linked ones have some dozen, objects one for each function. Also rows of the dynamic
/// table and versions.
pub const SECTIONS: usize = 16_384;
/// Symbols of one table; the largest real library has about 30,000.
pub const SYMBOLS: usize = 1 << 20;
/// Bytes of one symbol, section or library name; mangled names of templates are long.
pub const SYMBOL_NAME_BYTES: usize = 16 << 10;
/// Inputs, outputs or constants of one model: more than any model of the corpus by far.
pub const TENSORS: usize = 65_536;
/// Models of one package. Real ones have a handful; each is read and shown in full.
pub const MODELS: usize = 256;
/// Dims of one tensor; torch itself stops at 64.
pub const RANK: usize = 64;
/// Kernels of one model, images of one kernel file, kernels of one image: more than any model of the corpus by far.
pub const KERNELS: usize = 65_536;
/// Bytes of one descriptive section of a kernel file (attributes, texts, notes); real ones have some KiB.
pub const KERNEL_SECTION_BYTES: u64 = 16 << 20;
/// Parameters of one kernel; CUDA 12.1 and later allow 32,764 bytes of them.
pub const KERNEL_PARAMETERS: usize = 32_764;
/// Assertions of one kernel image; real kernels have a handful.
pub const ASSERTIONS: usize = 1_024;
/// Inflated bytes of one entry of a fatbin, and of a PTX text: a cubin that holds 64 MiB would be a library of kernels.
pub const FATBIN_ENTRY_BYTES: u64 = 64 << 20;
/// Inflated bytes of all entries of one fatbin together: one for each of some ten targets is usual.
pub const FATBIN_TOTAL_BYTES: u64 = 256 << 20;
/// Bytes of executable code decoded by the instruction scan and the cross-reference method: some seconds of work.
pub const CODE_BYTES: u64 = 256 << 20;
/// Check messages followed by the cross-reference method: 1,200 inputs of four dims have less than 20,000, and each is kept
/// with the registers at it, some 700 bytes.
pub const CHECKS: usize = 1 << 17;
/// Instructions followed from one check message to its value; real code needs some ten.
pub const CHECK_STEPS: usize = 200;
/// Bytes searched for check messages that no code mentions; compilers keep the texts of one file together.
pub const CHECK_TEXT_BYTES: u64 = 16 << 20;
/// Bytes of thread-local variables; static C++ libraries have some hundred.
pub const THREAD_LOCAL_BYTES: u64 = 1 << 16;
/// Instructions interpreted for one library at most, whatever its size (see `interpret`).
pub const INSTRUCTIONS: u64 = 200_000_000;
/// Instructions interpreted for all libraries of one artefact together: seconds, however many it holds.
pub const ARTIFACT_INSTRUCTIONS: u64 = 400_000_000;
/// Instructions that every library may use, however small: 20 times what a static C++ library without
/// optimisation needs.
pub const INSTRUCTIONS_BASE: u64 = 3_000_000;
/// Further instructions for each byte of its executable segments: wide models have long constructors. A library with
/// 1,000 constants, compiled with torch's own options (-O1), executes 1.6 million for 1.2 MB of code; one with 10,000,
/// without optimisation and with a static C++ library, 130 million for 6.6 MB.
pub const INSTRUCTIONS_PER_BYTE: u64 = 24;
/// Pages of 4 KiB that an interpreted library may touch; 10,000 constants need some 2,000.
pub const INTERPRETED_PAGES: usize = 16_384;
/// Depth of calls in an interpreted library: endless recursion should end before it fills the memory.
pub const CALL_DEPTH: usize = 300;
/// Bytes that an interpreted library copies in one call. Weights are not copied at all.
pub const COPY_BYTES: u64 = 4 << 20;
/// Entries of the log of writes that can be undone, some 40 bytes each.
pub const UNDO_ENTRIES: usize = 1 << 20;
/// Expressions over symbols that one interpretation may make, some 100 bytes each.
pub const EXPRESSIONS: usize = 1 << 20;
/// Nodes of one such expression, written out: nobody reads a longer one, and shared parts could make it grow without end.
pub const EXPRESSION_NODES: u32 = 1_000;
/// Calls, allocations and launches that are kept for `show --trace`: as many as there may be kernels.
pub const TRACE_ENTRIES: usize = 65_536;
/// Bytes of log read for `explain`, some seconds of work; that there are more is told. The cause stands before what it
/// leads to.
pub const LOG_BYTES: u64 = 1 << 30;
/// Distinct error texts, stack frames and error lines kept of a log: the first is what matters. Of further error texts the
/// number is told.
pub const LOG_TEXTS: usize = 256;
/// Bytes of one log line that are looked at: no text that is known is longer.
pub const LOG_LINE_BYTES: usize = 64 << 10;
/// Bytes of a text shown to a person that came from a file: a screen full.
pub const SHOWN_TEXT_BYTES: usize = 4_096;
/// Relocations of one library; the widest real one (1,200 inputs) has some thousand. Each takes some 90 bytes of ours, and
/// one packed word can stand for 63.
pub const RELOCATIONS: usize = 1 << 20;
/// Recorded input lists (`--cases`) judged in one run: some hundred bytes each in memory.
pub const CASES: usize = 1_000_000;
/// Bytes of a file of recorded input lists: [`CASES`] of a thousand bytes.
pub const CASES_BYTES: u64 = 1 << 30;
/// Functions named per instruction set extension: examples of who needs it, the kernels first.
pub const FUNCTIONS_PER_EXTENSION: usize = 8;
/// Segments of one object file; linkers make fewer than twenty, and a PE image may have 96 sections.
pub const SEGMENTS: usize = 256;
/// Bytes of all names of one symbol table together; each is read once, and a table may name one text a million times.
pub const SYMBOL_NAMES_BYTES: u64 = 256 << 20;
/// Problems told about one object file; the rest repeats them.
pub const PROBLEMS: usize = 256;
/// Bytes of constants searched for the texts that tell the release; weights are not among them, and sections of a damaged
/// file may overlap.
pub const TEXT_BYTES: u64 = 256 << 20;
