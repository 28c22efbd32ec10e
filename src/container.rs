//! What a file or folder holds: its kind by content, its members with their roles, and the model folders among them.
//!
//! Nothing is unpacked. Stored members are windows into the mapped file; deflated ones are inflated into memory, once, when
//! they are first read; files of a folder are mapped when they are first read. Opening reads the directory of an
//! archive and the beginnings of a few members, whatever the size of the file.

pub mod dating;
mod directory;
mod end_record;
mod inflate;
mod layout;
mod member;
mod recognise;
pub(crate) mod saved;
mod walk;
mod zip;

pub use layout::ModelFolder;
pub use member::{Member, MemberId};
pub use recognise::LookAlike;
pub use walk::{Walk, walk};

use crate::error::{Error, ErrorKind, Place, Result};
use crate::limits;
use crate::model::{self, Hazard, Kind, Problem, Role};
use crate::source::{self, Bytes, Region};
use layout::Layout;
use member::{Content, Stored};
use recognise::Format;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// An opened file or folder. It owns the bytes; members borrow from it.
#[derive(Debug)]
pub struct Container {
    kind: Kind,
    look_alike: Option<LookAlike>,
    error: Option<String>,
    root: String,
    version: Option<String>,
    is_version_key_new: Option<bool>,
    bytes: Box<dyn Bytes>,
    members: Vec<Stored>,
    models: Vec<ModelFolder>,
    exported: Vec<MemberId>,
    problems: Vec<Problem>,
    inflated: inflate::Budget,
    /// folder of a bare library: its kernel files may lie there
    beside: Option<PathBuf>,
}

/// Bytes of a kernel file: a member's, or those of a file beside a bare library.
#[derive(Debug)]
pub enum KernelFile<'a> {
    /// in the package
    Member(Region<'a>),
    /// beside the library
    Beside(Box<dyn Bytes>),
}

impl KernelFile<'_> {
    /// All of it.
    pub fn region(&self) -> Region<'_> {
        match self {
            Self::Member(region) => *region,
            Self::Beside(bytes) => Region::whole(bytes.as_ref()),
        }
    }
}

/// Opens a file or folder. What it is decides the content, never the name; a look-alike opens too, and says what it is.
///
/// # Errors
/// The file cannot be read, or a folder holds no package (walk it then).
pub fn open(path: &Path) -> Result<Container> {
    if path.is_dir() {
        return open_folder(path);
    }
    let bytes = source::open_file(path)?;
    Ok(open_bytes(bytes, Some(path)))
}

/// Opens bytes that were read already, from a stream for instance. `path` is where they lie, when they do: a bare library's
/// siblings are looked for beside it.
pub fn open_bytes(bytes: Box<dyn Bytes>, path: Option<&Path>) -> Container {
    match recognise::recognise(Region::whole(bytes.as_ref())) {
        Format::Zip => open_zip(bytes),
        Format::HostLibrary => open_library(bytes, path),
        Format::LookAlike(found) => Container::without_model(bytes, Some(found)),
        Format::Unrecognised => Container::without_model(bytes, None),
    }
}

fn open_zip(bytes: Box<dyn Bytes>) -> Container {
    let directory = match zip::read(Region::whole(bytes.as_ref())) {
        Ok(directory) => directory,
        Err(e) => {
            let mut container = Container::without_model(bytes, None);
            container.error = Some(e.to_string());
            return container;
        }
    };
    let names: Vec<String> = directory.entries.iter().map(|e| e.name.replace('\\', "/")).collect();
    let is_safe = |index: usize| {
        let unsafe_name = [Hazard::ParentPart, Hazard::AbsoluteName, Hazard::Duplicate];
        directory.entries.get(index).is_some_and(|e| !e.hazards.iter().any(|h| unsafe_name.contains(h)))
    };
    let layout = layout::lay_out(&names, &is_safe);
    let members = directory.entries.into_iter().zip(names).zip(&layout.roles).map(|((entry, name), role)| {
        let mut hazards = entry.hazards;
        let content = match entry.start {
            Err(reason) => Content::Refused(reason),
            Ok(start) if entry.is_deflated => {
                if inflate::is_bomb(entry.stored_bytes, entry.size_bytes) {
                    hazards.push(Hazard::Bomb);
                }
                Content::Deflated { start, crc32: entry.crc32, inflated: OnceLock::new() }
            }
            Ok(start) => Content::Window { start },
        };
        let (size_bytes, stored_bytes) = (entry.size_bytes, entry.stored_bytes);
        Stored { name, role: *role, size_bytes, stored_bytes, hazards, content }
    });
    let mut container = Container { members: members.collect(), ..Container::empty(bytes) };
    container.settle(layout, Kind::Package);
    container.list_problems(directory.problems);
    container
}

fn open_folder(path: &Path) -> Result<Container> {
    let (files, is_model_folder) = match directory::look(path)? {
        directory::Form::Package(files) => (files, false),
        directory::Form::ModelFolder(files) => (files, true),
        directory::Form::Plain => {
            return Err(Error::new(ErrorKind::NotAoti, "this folder is no unpacked package")
                .help("give the folder that contains `data/aotinductor/`"));
        }
    };
    let names: Vec<String> = files.iter().map(|f| f.name.clone()).collect();
    let layout = if is_model_folder { layout::lay_out_folder(&names) } else { layout::lay_out(&names, &|_| true) };
    let members = files.into_iter().zip(&layout.roles).map(|(file, role)| {
        let (hazards, content) = if file.is_symlink {
            (vec![Hazard::SymbolicLink], Content::Refused("is a symbolic link, which is not followed".into()))
        } else {
            (Vec::new(), Content::File { path: file.path, opened: OnceLock::new() })
        };
        let size = file.size_bytes;
        Stored { name: file.name, role: *role, size_bytes: size, stored_bytes: size, hazards, content }
    });
    let mut container = Container { members: members.collect(), ..Container::empty(Box::new(Vec::new())) };
    container.settle(layout, Kind::Directory);
    container.list_problems(Vec::new());
    Ok(container)
}

/// Endings of the files that belong to a library by its stem (format reference 2.1).
const SIBLINGS: &[(&str, Role)] = &[
    (".cpp", Role::Wrapper),
    ("_metadata.json", Role::Metadata),
    (".json", Role::ExternNodes),
    ("_weights.blob", Role::Weights),
];

fn open_library(bytes: Box<dyn Bytes>, path: Option<&Path>) -> Container {
    let size = bytes.len();
    let name = path.and_then(Path::file_name).map_or_else(|| "model.so".into(), |n| n.to_string_lossy().into_owned());
    let mut container = Container { kind: Kind::Library, ..Container::empty(bytes) };
    container.push(Stored {
        name,
        role: Role::Library,
        size_bytes: size,
        stored_bytes: size,
        hazards: Vec::new(),
        content: Content::Window { start: 0 },
    });
    let mut model = ModelFolder { name: "model".into(), library: Some(MemberId(0)), ..ModelFolder::default() };
    if let Some(path) = path {
        container.beside = path.parent().map(Path::to_path_buf);
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        for (ending, role) in SIBLINGS {
            let name = format!("{stem}{ending}");
            let sibling = path.with_file_name(&name);
            // asks the system about the name only; the file is opened when its content is wanted
            let Some(meta) = std::fs::metadata(&sibling).ok().filter(std::fs::Metadata::is_file) else { continue };
            let id = container.push(Stored {
                name,
                role: *role,
                size_bytes: meta.len(),
                stored_bytes: meta.len(),
                hazards: Vec::new(),
                content: Content::File { path: sibling, opened: OnceLock::new() },
            });
            match role {
                Role::Wrapper => model.wrapper = Some(id),
                Role::Metadata => model.metadata.push(id),
                Role::ExternNodes => model.extern_nodes = Some(id),
                _ => model.blobs.push(id),
            }
        }
    }
    container.models.push(model);
    container
}

impl Container {
    fn empty(bytes: Box<dyn Bytes>) -> Self {
        Self {
            kind: Kind::Unknown,
            look_alike: None,
            error: None,
            root: String::new(),
            version: None,
            is_version_key_new: None,
            bytes,
            members: Vec::new(),
            models: Vec::new(),
            exported: Vec::new(),
            problems: Vec::new(),
            inflated: inflate::Budget::default(),
            beside: None,
        }
    }

    fn without_model(bytes: Box<dyn Bytes>, found: Option<LookAlike>) -> Self {
        let mut container = Self::empty(bytes);
        container.kind = found.as_ref().map_or(Kind::Unknown, |f| f.kind);
        container.error = Some(found.as_ref().map_or_else(
            || "this is in no format that is known here: give the .pt2 or .so that the compilation wrote".to_owned(),
            LookAlike::sentence,
        ));
        container.look_alike = found;
        container
    }

    fn push(&mut self, stored: Stored) -> MemberId {
        self.members.push(stored);
        MemberId(self.members.len().saturating_sub(1))
    }

    /// Takes over a layout and decides what kind of package it makes.
    fn settle(&mut self, layout: Layout, package: Kind) {
        self.root = layout.root;
        if layout.models.len() > limits::MODELS {
            self.kind = package;
            self.error = Some(format!("{} models, more than {}", layout.models.len(), limits::MODELS));
            return;
        }
        self.models = layout.models;
        self.exported = layout.exported;
        if let Some((id, is_new)) = layout.version {
            self.is_version_key_new = Some(is_new);
            let text = self.member(id).and_then(|m| m.bytes(64).ok()).map(String::from_utf8_lossy);
            self.version = text.map(|t| t.trim().to_owned());
        }
        self.judge_format();
        for (about, message) in layout.remarks {
            let member = about.and_then(|id| self.member(id)).map(|m| m.name().to_owned());
            let place = Place { member, section: None, offset: None };
            self.problems.push(Problem { place, message, affects: Vec::new() });
        }
        self.kind = package;
        if layout.has_model_folder || !self.models.is_empty() {
            let mut incomplete = Vec::new();
            let nothing_to_load = |m: &ModelFolder| m.library.is_none() && m.compile_flags.is_none();
            for (index, model) in self.models.iter().enumerate().filter(|(_, model)| nothing_to_load(model)) {
                let member = model.files().next().and_then(|id| self.member(id)).map(|m| m.name().to_owned());
                let message = format!("model {} has neither a library nor flags to compile one with", model.name);
                let place = Place { member, ..Place::default() };
                incomplete.push(Problem { place, message, affects: vec![format!("models[{index}].library")] });
            }
            self.problems.append(&mut incomplete);
            if package == Kind::Package && self.models.iter().all(|m| m.library.is_none()) {
                let is_standalone = self.models.iter().any(|m| self.is_standalone(m));
                self.kind = if is_standalone { Kind::Standalone } else { Kind::Sources };
            }
            if self.models.iter().all(|m| m.library.is_none() && m.wrapper.is_none() && m.unpaired_sources.is_empty()) {
                self.kind = package;
                let message = "the package holds no model: there is neither a library nor generated source in it";
                self.error = Some(format!("{message}; pack it again"));
            }
            return;
        }
        let found = if self.exported.is_empty() {
            let prefix = if self.root.is_empty() { String::new() } else { format!("{}/", self.root) };
            recognise::zip_look_alike(self.members.iter().map(|m| m.name.strip_prefix(&prefix).unwrap_or(&m.name)))
        } else {
            recognise::exported_program()
        };
        self.kind = found.kind;
        self.error = Some(found.sentence());
        self.look_alike = Some(found);
    }

    /// `compile_standalone` writes a header and includes it instead of the pasted interface (format reference 1.5).
    fn is_standalone(&self, model: &ModelFolder) -> bool {
        let Some(header) = model.header.and_then(|id| self.member(id)) else { return false };
        let Some(wrapper) = model.wrapper.and_then(|id| self.member(id)) else { return false };
        let head = wrapper.head(recognise::HEAD_BYTES);
        let include = format!("#include \"{}\"", header.file_name());
        memchr::memmem::find(&head, include.as_bytes()).is_some()
    }

    /// Problems of the directory and of names, with the facts they make doubtful.
    fn list_problems(&mut self, oddities: Vec<zip::Oddity>) {
        let mut found = Vec::new();
        for oddity in oddities {
            let mut problem = oddity.problem;
            problem.affects = match oddity.spoils {
                zip::Spoils::Nothing => Vec::new(),
                zip::Spoils::Entry(index) => self.facts_from(MemberId(index)),
                zip::Spoils::Everything => self.all_facts(),
            };
            found.push(problem);
        }
        for (index, stored) in self.members.iter().enumerate() {
            let place = || Place { member: Some(stored.name.clone()), section: None, offset: None };
            let leads_outside = [Hazard::ParentPart, Hazard::AbsoluteName];
            if let Content::Refused(reason) = &stored.content {
                let affects = self.facts_from(MemberId(index));
                found.push(Problem { place: place(), message: reason.clone(), affects });
            } else if stored.hazards.iter().any(|h| leads_outside.contains(h)) {
                let message = "has a name that leads outside the folder it is unpacked into: do not unpack this file";
                found.push(Problem { place: place(), message: message.into(), affects: Vec::new() });
            }
        }
        let mut backslashed = self.members.iter().filter(|m| m.hazards.contains(&Hazard::Backslash));
        if let Some(first) = backslashed.next() {
            let place = Place { member: Some(first.name.clone()), ..Place::default() };
            let message = match backslashed.count() {
                0 => "has backslashes in its name, which are folders on Windows only".to_owned(),
                more => {
                    format!("has backslashes in its name, which are folders on Windows only; {more} more members too")
                }
            };
            found.push(Problem { place, message, affects: Vec::new() });
        }
        if found.len() > limits::LISTED_PROBLEMS {
            let rest = found.split_off(limits::LISTED_PROBLEMS);
            let mut affects: Vec<String> = rest.iter().flat_map(|p| p.affects.iter().cloned()).collect();
            affects.sort();
            affects.dedup();
            let message = format!("{} more problems of this kind are not listed", rest.len());
            found.push(Problem { place: Place::default(), message, affects });
        }
        self.problems.extend(found);
    }

    /// Paths of the facts that are read from the archive as a whole.
    fn all_facts(&self) -> Vec<String> {
        let exported = (!self.exported.is_empty()).then(|| "exported".to_owned());
        (0..self.models.len()).map(|index| format!("models[{index}]")).chain(exported).collect()
    }

    /// PyTorch's reader of the format (2.8+) asserts what the member says. Packages of torch 2.7 and older have none.
    fn judge_format(&mut self) {
        const NAME: &str = "archive_format";
        const TEXT: &[u8] = b"pt2";
        let Some(member) = self.member_named(NAME) else { return };
        let message = match member.bytes(64) {
            Ok(TEXT) => return,
            Ok(text) => {
                let text = String::from_utf8_lossy(text);
                format!("says {text:?} and not \"pt2\": torch refuses the package as one of another format")
            }
            Err(error) => error.message().to_owned(),
        };
        let place = Place { member: Some(member.name().to_owned()), section: None, offset: Some(0) };
        self.problems.push(Problem { place, message, affects: self.all_facts() });
    }

    /// Paths of the facts that are read from a member.
    fn facts_from(&self, id: MemberId) -> Vec<String> {
        let Some(role) = self.members.get(id.0).map(|m| m.role) else { return Vec::new() };
        let below = match role {
            Role::Library | Role::Wrapper => "",
            Role::Metadata => ".metadata",
            Role::ExternNodes => ".requires.custom_ops",
            Role::Kernel => ".kernels",
            Role::Weights => ".weights",
            _ => return Vec::new(),
        };
        let owners = self.models.iter().enumerate().filter(|(_, m)| m.files().any(|file| file == id));
        owners.map(|(index, _)| format!("models[{index}]{below}")).collect()
    }

    /// What it is, by content. A bare library is called [`Kind::Library`] before its symbols are read; whoever reads them
    /// and finds no container interface takes [`LookAlike::foreign_library`] instead.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// What else it is, when it is no AOTInductor artefact.
    pub fn look_alike(&self) -> Option<&LookAlike> {
        self.look_alike.as_ref()
    }
    /// Why nothing can be judged, as one sentence with a remedy. Members and an exported program may still be readable.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
    /// Bytes of the file, or of all files of the folder.
    pub fn size_bytes(&self) -> u64 {
        match self.kind {
            Kind::Directory => self.members.iter().fold(0, |sum, m| sum.saturating_add(m.size_bytes)),
            _ => self.bytes.len(),
        }
    }
    /// Model folders, in archive order.
    pub fn models(&self) -> &[ModelFolder] {
        &self.models
    }
    /// JSON of exported programs: `models/<name>.json`, or `serialized_exported_program.json` up to torch 2.7.
    pub fn exported(&self) -> impl Iterator<Item = Member<'_>> {
        self.exported.iter().filter_map(|id| self.member(*id))
    }
    /// Damage and oddities of the layout.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
    /// Folder that all members share; empty where there is none.
    pub fn root(&self) -> &str {
        &self.root
    }
    /// Content of `archive_version` or `version`.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
    /// True when the version stands in `archive_version` (2.8+), false for `version` (up to 2.7).
    pub fn is_version_key_new(&self) -> Option<bool> {
        self.is_version_key_new
    }
    /// All members in archive order.
    pub fn members(&self) -> impl Iterator<Item = Member<'_>> {
        self.members.iter().enumerate().map(|(i, stored)| Member { container: self, stored, id: MemberId(i) })
    }
    /// The member with this id.
    pub fn member(&self, id: MemberId) -> Option<Member<'_>> {
        self.members.get(id.0).map(|stored| Member { container: self, stored, id })
    }
    /// The member with this name, without the root: `data/weights/weight_0`.
    pub fn member_named(&self, name: &str) -> Option<Member<'_>> {
        self.members().find(|m| m.inner_name() == name)
    }
    /// All bytes of the file itself; empty for a folder.
    pub fn whole(&self) -> Region<'_> {
        Region::whole(self.bytes.as_ref())
    }

    /// SHA-256 over all bytes of the file, in hexadecimal; `None` for a folder. Reads the whole file, weights included.
    pub fn sha256(&self) -> Option<String> {
        use sha2::{Digest, Sha256};
        const PIECE: u64 = 1 << 20;
        if self.kind == Kind::Directory {
            return None;
        }
        let (file, mut hash, mut offset) = (self.whole(), Sha256::new(), 0);
        while offset < file.len() {
            let piece = file.get(offset, PIECE.min(file.len().saturating_sub(offset)))?;
            hash.update(piece);
            offset = offset.saturating_add(PIECE);
        }
        Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The library of a model, when it begins like one.
    ///
    /// # Errors
    /// Its member cannot be read, or is something else, which is named.
    pub fn library(&self, model: &ModelFolder) -> Result<Option<Region<'_>>> {
        let Some(member) = model.library.and_then(|id| self.member(id)) else { return Ok(None) };
        if let Content::Refused(_) = member.stored.content {
            return member.region().map(Some);
        }
        let head = member.head(recognise::HEAD_BYTES);
        let what = match recognise::recognise_head(&head, member.size_bytes()) {
            Format::HostLibrary => None,
            Format::Zip => Some("a zip archive".to_owned()),
            Format::LookAlike(found) => Some(found.what),
            Format::Unrecognised => Some("no known format".to_owned()),
        };
        match (member.region(), what) {
            (Ok(region), None) => Ok(Some(region)),
            (Err(e), None) => Err(e),
            (result, Some(what)) => {
                let detail = result.err().map(|e| format!("; it {}", e.message())).unwrap_or_default();
                let message = format!("no ELF, Mach-O or PE library: it is {what}{detail}");
                Err(Error::damaged(message).in_member(member.name()).help("pack the model again"))
            }
        }
    }

    /// The kernel file that a model asks for, by base name: among the model's members, or beside a bare library.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn kernel_file(&self, model: &ModelFolder, base_name: &str) -> Result<Option<KernelFile<'_>>> {
        let in_folder = model.kernels.iter().filter_map(|id| self.member(*id)).find(|m| m.file_name() == base_name);
        if let Some(member) = in_folder {
            return member.region().map(|region| Some(KernelFile::Member(region)));
        }
        // the name comes from the library: only a plain name with a kernel's ending is looked for
        let is_plain = layout::is_kernel_file(base_name) && !base_name.contains(['/', '\\', '\0']);
        let Some(path) = self.beside.as_ref().filter(|_| is_plain).map(|folder| folder.join(base_name)) else {
            return Ok(None);
        };
        if !path.is_file() {
            return Ok(None);
        }
        source::open_file(&path).map(|bytes| Some(KernelFile::Beside(bytes))).map_err(|e| e.in_member(base_name))
    }

    /// The layout for the report; `None` for a single file.
    pub fn archive(&self) -> Option<model::Archive> {
        if self.members.is_empty() || self.kind == Kind::Library {
            return None;
        }
        let members = self.members().map(|m| m.describe()).collect();
        Some(model::Archive { root: self.root.clone(), version: self.version.clone(), members })
    }
}
