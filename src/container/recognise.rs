//! What a file is, from its first bytes: the container, a host library, or a look-alike that is named for what it is.

use crate::model::Kind;
use crate::source::Region;

/// Bytes that are looked at to recognise a format.
pub(super) const HEAD_BYTES: u64 = 4096;

/// The outcome of a look at the first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Format {
    /// a zip archive
    Zip,
    /// ELF, Mach-O or PE, loadable by a host
    HostLibrary,
    /// anything else, named
    LookAlike(LookAlike),
    /// nothing known begins like this
    Unrecognised,
}

/// Something that is no AOTInductor artefact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookAlike {
    /// what it is, for the report
    pub kind: Kind,
    /// noun phrase: `a Git LFS pointer`
    pub what: String,
    /// imperative clause: what the person can do
    pub advice: String,
}

impl LookAlike {
    fn new(kind: Kind, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { kind, what: what.into(), advice: advice.into() }
    }
    /// One sentence.
    pub fn sentence(&self) -> String {
        format!("this is {}, not an AOTInductor artefact: {}", self.what, self.advice)
    }
    /// A library that does not export the container interface, as its symbol table tells.
    pub fn foreign_library(is_python_extension: bool) -> Self {
        if is_python_extension {
            return Self::new(
                Kind::PythonExtension,
                "a Python extension module",
                "give the model's library or package; this one is imported by Python",
            );
        }
        Self::new(
            Kind::SharedLibrary,
            "a shared library without AOTInductorModelContainerRun",
            "give the library that torch._inductor.aot_compile wrote, or its package",
        )
    }
}

const COMPILE_IT: &str = "compile the model with torch.export and torch._inductor.aoti_compile_and_package first";
const UNPACK_IT: &str = "unpack it and give the .pt2 or .so inside";
const GIVE_MODEL: &str = "give the .pt2 or .so that the compilation wrote";
const GIVE_OWNER: &str = "give the model that uses it";

/// Offset, bytes, kind, what it is, what to do. The first match counts, so longer signatures stand before shorter ones.
type Signature = (usize, &'static [u8], Kind, &'static str, &'static str);

const SIGNATURES: &[Signature] = &[
    // torch.serialization.MAGIC_NUMBER as a pickled long: every file of the format before 1.6
    (
        0,
        b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
        Kind::TorchSave,
        "a torch.save file in the old format",
        COMPILE_IT,
    ),
    (0, b"\x80\x02", Kind::Pickle, "a pickle stream", COMPILE_IT),
    (0, b"\x80\x03", Kind::Pickle, "a pickle stream", COMPILE_IT),
    (0, b"\x80\x04", Kind::Pickle, "a pickle stream", COMPILE_IT),
    (0, b"\x80\x05", Kind::Pickle, "a pickle stream", COMPILE_IT),
    (
        4,
        b"ET12",
        Kind::Executorch,
        "an ExecuTorch program",
        "run it with ExecuTorch, or compile the model with torch._inductor.aoti_compile_and_package",
    ),
    (4, b"FT01", Kind::Executorch, "an ExecuTorch data file", "give the model; this file holds its weights"),
    (4, b"TFL3", Kind::Unknown, "a TensorFlow Lite model", COMPILE_IT),
    (0, b"ftrt", Kind::Unknown, "a TensorRT engine", COMPILE_IT),
    (0, b"GGUF", Kind::Unknown, "a GGUF weights file", GIVE_MODEL),
    (0, b"\x93NUMPY", Kind::Unknown, "a NumPy array", GIVE_MODEL),
    (0, b"\x89HDF\r\n\x1a\n", Kind::Unknown, "an HDF5 file", GIVE_MODEL),
    (0, b"\x50\xed\x55\xba", Kind::Kernel, "a CUDA fatbin, a kernel file", GIVE_OWNER),
    (0, b"__CLANG_OFFLOAD_BUNDLE__", Kind::Kernel, "a ROCm code bundle, a kernel file", GIVE_OWNER),
    (0, b"CCOB", Kind::Kernel, "a compressed ROCm code bundle, a kernel file", GIVE_OWNER),
    (0, b"\x03\x02\x23\x07", Kind::Kernel, "a SPIR-V module, a kernel file", GIVE_OWNER),
    (0, b"MTLB", Kind::Kernel, "a Metal library, a kernel file", GIVE_OWNER),
    (0, b"BC\xc0\xde", Kind::Unknown, "LLVM bitcode", GIVE_MODEL),
    (0, b"!<arch>\n", Kind::Unknown, "a static library", "link it, or give the shared library of the model"),
    (0, b"\x1f\x8b", Kind::Unknown, "a gzip file", UNPACK_IT),
    (0, b"\x28\xb5\x2f\xfd", Kind::Unknown, "a zstd file", UNPACK_IT),
    (0, b"\xfd7zXZ\0", Kind::Unknown, "an xz file", UNPACK_IT),
    (0, b"7z\xbc\xaf\x27\x1c", Kind::Unknown, "a 7z archive", UNPACK_IT),
    (0, b"BZh", Kind::Unknown, "a bzip2 file", UNPACK_IT),
    (0, b"\x04\x22\x4d\x18", Kind::Unknown, "an lz4 file", UNPACK_IT),
    (0, b"Rar!\x1a\x07", Kind::Unknown, "a RAR archive", UNPACK_IT),
    (257, b"ustar", Kind::Unknown, "a tar archive", UNPACK_IT),
    (0, b"\0asm", Kind::Unknown, "a WebAssembly module", GIVE_MODEL),
    (0, b"\x89PNG\r\n", Kind::Unknown, "a PNG picture", GIVE_MODEL),
    (0, b"%PDF-", Kind::Unknown, "a PDF document", GIVE_MODEL),
];

/// Decides by the first bytes.
pub(super) fn recognise(file: Region<'_>) -> Format {
    let head = file.head(HEAD_BYTES);
    match recognise_head(head, file.len()) {
        // a zip may follow foreign bytes; an end record is searched only when nothing else is known
        Format::Unrecognised => match text(head) {
            Some(found) if !super::zip::has_end_record(file) => Format::LookAlike(found),
            None if !super::zip::has_end_record(file) => Format::Unrecognised,
            _ => Format::Zip,
        },
        known => known,
    }
}

/// Decides by magic numbers alone; `len` is the length of the whole file.
pub(super) fn recognise_head(head: &[u8], len: u64) -> Format {
    let look_alike = |kind, what: &str, advice: &str| Format::LookAlike(LookAlike::new(kind, what, advice));
    if len == 0 {
        return look_alike(Kind::Unknown, "an empty file", "compile or copy it again");
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Format::Zip;
    }
    if let Some(object) = object_file(head, len) {
        return object;
    }
    for (offset, magic, kind, what, advice) in SIGNATURES {
        if head.get(*offset..).is_some_and(|rest| rest.starts_with(magic)) {
            return look_alike(*kind, what, advice);
        }
    }
    if is_safetensors(head, len) {
        return look_alike(
            Kind::Unknown,
            "a safetensors weights file",
            "give the model, and this one with `--weights` to compare them",
        );
    }
    if head.len() >= 64 && head.iter().all(|b| *b == 0) {
        return look_alike(Kind::Unknown, "a file that begins with zeros", "copy it again: its content never arrived");
    }
    Format::Unrecognised
}

fn u16_at(head: &[u8], at: usize, is_big: bool) -> Option<u16> {
    let bytes: [u8; 2] = head.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
}

fn u32_at(head: &[u8], at: usize, is_big: bool) -> Option<u32> {
    let bytes: [u8; 4] = head.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

/// `e_machine` of code for GPUs: EM_CUDA, EM_AMDGPU, EM_INTELGT.
const GPU_MACHINES: &[(u16, &str)] =
    &[(190, "a CUDA cubin, a kernel file"), (224, "an AMD code object, a kernel file"), (205, "an Intel kernel file")];

/// ELF, Mach-O, PE. Damage behind the header is left to the reader of object files.
fn object_file(head: &[u8], len: u64) -> Option<Format> {
    let look_alike = |kind, what: &str, advice: &str| Some(Format::LookAlike(LookAlike::new(kind, what, advice)));
    if head.starts_with(b"\x7fELF") {
        let is_big = head.get(5) == Some(&2);
        let (e_type, machine) = (u16_at(head, 16, is_big), u16_at(head, 18, is_big));
        if let Some((_, what)) = GPU_MACHINES.iter().find(|(m, _)| Some(*m) == machine) {
            return look_alike(Kind::Kernel, what, GIVE_OWNER);
        }
        return match e_type {
            Some(1) => look_alike(Kind::Unknown, "an object file", "link it, or give the shared library of the model"),
            Some(2) => look_alike(Kind::Unknown, "an executable", GIVE_MODEL),
            Some(4) => look_alike(Kind::Unknown, "a core dump", "give the model that crashed, to `explain --exit 139`"),
            _ => Some(Format::HostLibrary),
        };
    }
    if head.starts_with(b"MZ") {
        let pe = usize::try_from(u32_at(head, 0x3c, false).unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
        let is_inside = u64::try_from(pe).is_ok_and(|at| at.saturating_add(4) <= len);
        let begins = head.get(pe..).is_none_or(|rest| rest.is_empty() || rest.starts_with(b"PE\0\0"));
        if is_inside && begins {
            return Some(Format::HostLibrary);
        }
        let what = "a DOS header without the Windows library that should follow";
        return look_alike(Kind::Unknown, what, "copy the file again: it is cut or overwritten");
    }
    match head.get(..4)? {
        [0xcf, 0xfa, 0xed, 0xfe] => match u32_at(head, 12, false) {
            Some(1) => look_alike(Kind::Unknown, "a macOS object file", "link it, or give the library of the model"),
            Some(2) => look_alike(Kind::Unknown, "a macOS executable", GIVE_MODEL),
            _ => Some(Format::HostLibrary),
        },
        // shared with Java class files, whose next number is a version of at least 45
        [0xca, 0xfe, 0xba, 0xbe] => match u32_at(head, 4, true) {
            Some(slices @ 1..=32) if u64::from(slices).saturating_mul(20) < len => Some(Format::HostLibrary),
            Some(version)
                if (45..=200).contains(&(version & 0xffff)) && version >> 16 <= 0xffff && version < 0x1_0000 =>
            {
                look_alike(Kind::Unknown, "a Java class file", GIVE_MODEL)
            }
            Some(slices) => {
                let what = format!("a universal macOS header that promises {slices} slices in {len} bytes");
                look_alike(Kind::Unknown, &what, "copy the file again: it is cut or overwritten")
            }
            None => None,
        },
        _ => None,
    }
}

/// Eight bytes of length, then a JSON object of that length.
fn is_safetensors(head: &[u8], len: u64) -> bool {
    let Some(size) = head.get(..8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes) else { return false };
    size > 2 && size < len && head.get(8) == Some(&b'{') && matches!(head.get(9), Some(b'"'))
}

/// Beginnings of texts, in lower case after blanks and a byte order mark.
const TEXTS: &[(&str, &str, &str)] = &[
    ("<!doctype html", "an HTML page", "open it to read the error, then download the file itself"),
    ("<html", "an HTML page", "open it to read the error, then download the file itself"),
    ("<?xml", "an XML answer of a server", "open it to read the error, then download the file itself"),
    ("<error", "an XML answer of a server", "open it to read the error, then download the file itself"),
    (".version", "PTX assembly text, a kernel file", GIVE_OWNER),
    ("#!", "a script", GIVE_MODEL),
    ("[target", "a configuration file", GIVE_MODEL),
];

/// Keys of JSON objects that people confuse with the artefact.
const JSON_KEYS: &[(&str, Kind, &str, &str)] = &[
    ("\"graph_module\"", Kind::ExportedProgram, "the JSON of an exported program", "give the .pt2 it was taken from"),
    ("\"AOTI_DEVICE_KEY\"", Kind::Unknown, "the metadata of a model", "give the .so or .pt2 that it belongs to"),
    ("\"nodes\"", Kind::Unknown, "a list of extern kernel nodes", "give the .so or .pt2 that it belongs to"),
    ("\"error", Kind::Unknown, "a JSON error message", "open it to read the error, then download the file itself"),
    ("\"message\"", Kind::Unknown, "a JSON error message", "open it to read the error, then download the file itself"),
];

/// Names a text; `None` for bytes that are no text.
fn text(head: &[u8]) -> Option<LookAlike> {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // the head may end inside a character
        Err(e) if e.error_len().is_none() => std::str::from_utf8(head.get(..e.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    let trimmed = valid.trim_start_matches('\u{feff}').trim_start();
    if let Some(pointer) = trimmed.strip_prefix("version https://git-lfs.github.com/spec/") {
        let size = pointer.lines().find_map(|line| line.strip_prefix("size ")).unwrap_or("unknown");
        let what = format!("a Git LFS pointer to a file of {} bytes", size.trim());
        return Some(LookAlike::new(Kind::Unknown, what, "run `git lfs pull` to fetch the file itself"));
    }
    if valid.chars().any(|c| c.is_control() && !c.is_whitespace() && c != '\u{1b}') {
        return None;
    }
    let is_wrapper = valid.contains("AOTInductorModel::AOTInductorModel(")
        || trimmed.starts_with("#include <torch/csrc/inductor/aoti_");
    if is_wrapper {
        let advice = "give the library or package that was compiled from it; beside a library it is read by itself";
        return Some(LookAlike::new(Kind::Unknown, "generated wrapper source", advice));
    }
    if trimmed.starts_with(['{', '[']) {
        for (key, kind, what, advice) in JSON_KEYS {
            if trimmed.contains(key) {
                return Some(LookAlike::new(*kind, *what, *advice));
            }
        }
        return Some(LookAlike::new(Kind::Unknown, "JSON text", GIVE_MODEL));
    }
    let lower: String = trimmed.chars().take(32).collect::<String>().to_ascii_lowercase();
    // PTX begins with a comment of the assembler
    let is_ptx = trimmed.starts_with("//") && valid.contains("\n.version ") && valid.contains("\n.target ");
    let row = if is_ptx {
        TEXTS.iter().find(|row| row.0 == ".version")
    } else {
        TEXTS.iter().find(|row| lower.starts_with(row.0))
    };
    if let Some((start, what, advice)) = row {
        let kind = if *start == ".version" { Kind::Kernel } else { Kind::Unknown };
        return Some(LookAlike::new(kind, *what, *advice));
    }
    Some(LookAlike::new(Kind::Unknown, "a text file", GIVE_MODEL))
}

/// A zip that is something else: a name or ending among its members (without the root), what it is, what to do.
/// Order matters: a TorchScript archive also has `data.pkl`.
pub(super) fn zip_look_alike<'a>(names: impl Iterator<Item = &'a str> + Clone) -> LookAlike {
    let has = |test: &dyn Fn(&str) -> bool| names.clone().any(test);
    if has(&|n| n == "constants.pkl" || n.starts_with("code/")) && has(&|n| n == "data.pkl") {
        let advice = "load it with torch.jit.load, or export and compile the model anew";
        return LookAlike::new(Kind::Torchscript, "a TorchScript archive", advice);
    }
    if has(&|n| n == "data.pkl") {
        return LookAlike::new(Kind::TorchSave, "a torch.save file", COMPILE_IT);
    }
    if has(&|n| n.ends_with(".dist-info/WHEEL")) {
        return LookAlike::new(Kind::Unknown, "a Python wheel", GIVE_MODEL);
    }
    if has(&|n| n == "META-INF/MANIFEST.MF" || n == "[Content_Types].xml") {
        return LookAlike::new(Kind::Unknown, "a zip of another program", GIVE_MODEL);
    }
    if let Some(inner) = names.clone().find(|n| n.ends_with(".pt2")) {
        let advice = format!("unpack it and give {inner:?}");
        return LookAlike::new(Kind::Unknown, "a zip around a package", advice);
    }
    if names.clone().next().is_none() {
        return LookAlike::new(Kind::Unknown, "an empty zip", "compile or copy it again");
    }
    if names.clone().all(|n| n.ends_with(".npy")) {
        return LookAlike::new(Kind::Unknown, "a NumPy archive", GIVE_MODEL);
    }
    if has(&|n| n == "archive_format") {
        let what = "a PT2 archive without a compiled model or an exported program";
        return LookAlike::new(Kind::Unknown, what, "pack it again with the model's files");
    }
    LookAlike::new(Kind::Unknown, "a zip without `data/aotinductor/`", GIVE_MODEL)
}

/// An archive with an exported program and nothing compiled.
pub(super) fn exported_program() -> LookAlike {
    LookAlike::new(
        Kind::ExportedProgram,
        "an exported program",
        "compile it with torch._inductor.aoti_compile_and_package(torch.export.load(FILE))",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(bytes: &[u8]) -> String {
        let held = bytes.to_vec();
        match recognise(Region::whole(&held)) {
            Format::LookAlike(found) => found.what,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn names_what_people_confuse_with_a_model() {
        let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1672655\n";
        for (bytes, what) in [
            (&b""[..], "an empty file"),
            (lfs, "a Git LFS pointer to a file of 1672655 bytes"),
            (b"\xef\xbb\xbf \n<!DOCTYPE html><html>", "an HTML page"),
            (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code>", "an XML answer of a server"),
            (b"{\"error\": \"not found\"}", "a JSON error message"),
            (b"\x80\x04\x95", "a pickle stream"),
            (b"\x1f\x8b\x08", "a gzip file"),
            (b"PK\x03\x04", "Zip"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0", "HostLibrary"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xbe\0", "a CUDA cubin, a kernel file"),
            (b"\xca\xfe\xba\xbe\0\0\0\x34\0\0", "a Java class file"),
            (b"hello world", "a text file"),
            (b"//\n// by NVIDIA\n.version 8.8\n.target sm_90\n", "PTX assembly text, a kernel file"),
            (b"\x01\x02\x03\xff\xfe", "Unrecognised"),
        ] {
            assert_eq!(named(bytes), what);
        }
        let mut executorch = b"\x1c\0\0\0ET12".to_vec();
        executorch.resize(100, 0);
        assert_eq!(named(&executorch), "an ExecuTorch program");
    }
}
