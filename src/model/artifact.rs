//! The artefact as a whole.

use super::{
    Constant, Device, Evidence, Guard, Kernel, OperatorCall, Relation, Release, Requires, SymbolRange, SymbolSize,
    TensorSpec, Trace, Unknown, Weights,
};
use crate::error::Place;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// What a file is, decided by content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// zip with `data/aotinductor/`
    Package,
    /// bare shared library that exports the container interface
    Library,
    /// unpacked package
    Directory,
    /// package without a library: compiled at load
    Sources,
    /// `compile_standalone` package: has no C interface
    Standalone,
    /// exported program without a compiled model
    ExportedProgram,
    /// TorchScript archive
    Torchscript,
    /// `torch.save` archive
    TorchSave,
    /// pickle stream
    Pickle,
    /// ExecuTorch program or data
    Executorch,
    /// Python extension module
    PythonExtension,
    /// any other shared library
    SharedLibrary,
    /// a kernel file: cubin, fatbin, code object
    Kernel,
    /// none of these
    Unknown,
}

impl Kind {
    /// In words: `AOTInductor package`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Package => "AOTInductor package",
            Self::Library => "AOTInductor library",
            Self::Directory => "unpacked AOTInductor package",
            Self::Sources => "AOTInductor package of sources, compiled at load",
            Self::Standalone => "standalone AOTInductor package, without C interface",
            Self::ExportedProgram => "exported program",
            Self::Torchscript => "TorchScript archive",
            Self::TorchSave => "torch.save archive",
            Self::Pickle => "pickle stream",
            Self::Executorch => "ExecuTorch program",
            Self::PythonExtension => "Python extension module",
            Self::SharedLibrary => "shared library",
            Self::Kernel => "GPU kernel",
            Self::Unknown => "unknown file",
        }
    }
    /// True for what `show` and `verify` can judge; the others end in exit 3.
    pub fn is_aoti(self) -> bool {
        matches!(self, Self::Package | Self::Library | Self::Directory | Self::Sources | Self::Standalone)
    }
}

/// Role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// model library
    Library,
    /// generated wrapper source
    Wrapper,
    /// generated kernel source
    KernelSource,
    /// metadata JSON
    Metadata,
    /// extern kernel nodes
    ExternNodes,
    /// GPU kernel
    Kernel,
    /// weights in any form
    Weights,
    /// user's file
    Extra,
    /// library that registers operators
    CustomOpLibrary,
    /// anything else
    Other,
}

/// A member of a package or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Member {
    /// name as stored, with `/`
    pub name: String,
    /// what it is for
    pub role: Role,
    /// uncompressed bytes
    pub size_bytes: u64,
    /// stored bytes, where they differ (deflated)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// why its content is not read: encrypted, a symbolic link, cut, an unknown compression
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// what a careless unpacker would do wrong with it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hazards: Vec<Hazard>,
}

/// What makes a member of an archive dangerous or ambiguous. The official loaders test for none of these
/// (format reference 2.3: `..` is written outside the folder by 2.7 to 2.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hazard {
    /// a `..` part: leaves the folder it is unpacked into
    ParentPart,
    /// begins with `/` or a drive letter
    AbsoluteName,
    /// `\\` in the name: a separator on Windows, a letter elsewhere
    Backslash,
    /// control characters, NUL or bytes that are not UTF-8
    OddCharacters,
    /// a symbolic link
    SymbolicLink,
    /// another member has the same name and different content
    Duplicate,
    /// shares bytes with another member or with the directory
    Overlap,
    /// its own header contradicts the archive's directory
    HeadersDisagree,
    /// encrypted
    Encrypted,
    /// inflates more than any real member does
    Bomb,
}

/// Layout of a package.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Archive {
    /// folder that all members share; empty when there is none
    pub root: String,
    /// `archive_version` or `version`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// in archive order
    pub members: Vec<Member>,
}

/// Platform of the library, from its header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Platform {
    /// `elf`, `macho`, `pe`
    pub format: String,
    /// `linux`, `macos`, `windows`
    pub os: String,
    /// `x86_64`, `aarch64`
    pub arch: String,
}

/// Who compiled it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct CompiledBy {
    /// lowest release that makes such files
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch_min: Option<Release>,
    /// highest release that makes such files; absent when it may be newer than the tables
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch_max: Option<Release>,
    /// C++ compiler, as its comment says
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cxx: Option<String>,
    /// each line narrows the range
    pub evidence: Vec<Evidence>,
}

impl CompiledBy {
    /// `compiled by torch 2.10 to 2.12`, as far as it is known.
    pub fn range(&self) -> Option<String> {
        match (self.torch_min, self.torch_max) {
            (Some(min), Some(max)) if min == max => Some(format!("compiled by torch {min}")),
            (Some(min), Some(max)) => Some(format!("compiled by torch {min} to {max}")),
            (Some(min), None) => Some(format!("compiled by torch {min} or newer")),
            (None, Some(max)) => Some(format!("compiled by torch {max} or older")),
            (None, None) => None,
        }
    }
}

/// Run-time input checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Checks {
    /// the code is there
    pub compiled_in: bool,
    /// environment variable that switches them on; absent when they are always on
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_by: Option<String>,
    /// which of its values switch them off (2.7: none, 2.8+: those that begin with 0)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_by: Option<String>,
}

/// A line of metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MetadataEntry {
    /// its key
    pub key: String,
    /// its value
    pub value: String,
    /// member it stands in
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// A compiled model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Model {
    /// folder name below `data/aotinductor/`; a bare library is called `model`
    pub name: String,
    /// device it was compiled for
    pub device: Option<Device>,
    /// all that speaks for or against it
    pub device_evidence: Vec<Evidence>,
    /// `None` for packages without a library
    pub platform: Option<Platform>,
    /// compiler
    pub compiled_by: CompiledBy,
    /// inputs in flat order; `None` when not even the count is known
    pub inputs: Option<Vec<TensorSpec>>,
    /// leaves of the input call spec that are not tensors, as call paths: baked in at export
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baked_in: Vec<String>,
    /// outputs in flat order
    pub outputs: Option<Vec<TensorSpec>>,
    /// values of the symbols in shapes
    pub symbols: Vec<SymbolRange>,
    /// dims whose relation to others is open
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
    /// constants table
    pub constants: Option<Vec<Constant>>,
    /// where the weights are
    pub weights: Weights,
    /// kernels
    pub kernels: Vec<Kernel>,
    /// kernel files that nothing asks for
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused_kernel_files: Vec<String>,
    /// operators called, in order, where code or source tell
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OperatorCall>,
    /// what one run does: absent when it was not asked for, `null` when it is not known
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Option<Trace>>,
    /// needs
    pub requires: Requires,
    /// what the exported functions allow: `run_single_threaded`, `update_constants`
    pub capabilities: Vec<String>,
    /// run-time input checks; `None` when not known
    pub checks: Option<Checks>,
    /// metadata in the loader's order of preference
    pub metadata: Vec<MetadataEntry>,
    /// member name of the library
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// contradictions between witnesses, judged by `checks`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<super::Conflict>,
}

impl Model {
    /// The trace, when it was asked for and is known.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref().and_then(Option::as_ref)
    }
    /// Puts sizes in the place of symbols, in the trace alone. Returns why the steps and the peak are not those of these
    /// sizes, when the code takes another way for them.
    pub fn set_trace_sizes(&mut self, sizes: &[SymbolSize]) -> Option<String> {
        let Some(Some(trace)) = &mut self.trace else { return None };
        trace.set_sizes(sizes, self.device.as_ref(), &self.symbols)
    }
}

/// An exported program in the same file, or given beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exported {
    /// its name in the archive
    pub name: String,
    /// torch release that wrote it, where stated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch_version: Option<String>,
    /// user inputs
    pub inputs: Vec<TensorSpec>,
    /// user outputs
    pub outputs: Vec<TensorSpec>,
    /// values of the symbols
    pub symbols: Vec<SymbolRange>,
    /// Python guards, the only place of divisibility
    pub guards: Vec<Guard>,
}

/// Damage or oddity that did not stop reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// where
    #[serde(flatten)]
    pub place: Place,
    /// what is wrong
    pub message: String,
    /// facts that cannot be trusted or read because of it, as paths; empty: none
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affects: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.to_string();
        let separator = if place.is_empty() { "" } else { ": " };
        write!(f, "{place}{separator}{}", self.message)
    }
}

/// Everything known about one file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Artifact {
    /// as the person gave it
    pub path: String,
    /// by content
    pub kind: Kind,
    /// bytes of the file, or of all files of the folder
    pub size_bytes: u64,
    /// hash over the interface (inputs, outputs, constants, device): equal for builds that callers cannot tell apart
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface_id: Option<String>,
    /// sha256 of the file, on demand
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// layout, for packages and folders
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
    /// set when it cannot be judged at all (exit 3): one sentence on what it is or what is broken, and what to do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// compiled models
    pub models: Vec<Model>,
    /// exported program
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported: Option<Exported>,
    /// unknown facts and why
    pub unknown: Vec<Unknown>,
    /// damage and oddities
    pub problems: Vec<Problem>,
}

impl Artifact {
    /// One line for reports: kind, device, release range of the compiler.
    pub fn summary(&self) -> String {
        let mut parts = vec![self.kind.title().to_owned()];
        match self.models.as_slice() {
            [] => {}
            [model] => {
                parts.push(model.name.clone());
                parts.push(match &model.device {
                    Some(device) => format!("for {device}"),
                    None => "for an unknown device".to_owned(),
                });
                parts.extend(model.compiled_by.range());
            }
            models => parts.push(format!("{} models", models.len())),
        }
        parts.join(" · ")
    }
    /// Why a fact is unknown: the reason for `fact` itself, else that of the nearest enclosing fact.
    ///
    /// `fact` is a path such as `models[0].inputs[1].shape[0]`.
    pub fn unknown_reason(&self, fact: &str) -> Option<&str> {
        self.unknown
            .iter()
            .filter(|u| {
                fact.strip_prefix(u.fact.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
            .max_by_key(|u| u.fact.len())
            .map(|u| u.reason.as_str())
    }
}
