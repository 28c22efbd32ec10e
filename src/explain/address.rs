//! Crash addresses: from a frame or a kernel message to member, function, instruction and the shim call nearest to it.

use super::frame::{Frame, Place};
use super::log::Reading;
use crate::container::Container;
use crate::explain::demangle;
use crate::image::functions::{Function, functions};
use crate::image::{Architecture, Image};
use crate::model::Role;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use std::collections::HashMap;

/// Frames that are followed.
const FRAMES: usize = 16;
/// Bytes of one function that are decoded to find its calls.
const FUNCTION_BYTES: u64 = 4 << 20;

/// A place in a library of the artefact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// line of the log, from 1
    pub line: u64,
    /// name of the member, or of the file
    pub member: String,
    /// virtual address in it
    pub address: u64,
    /// readable name of the function; `None` when stripped
    pub function: Option<String>,
    /// where the function begins and ends, when known
    pub bounds: Option<(u64, u64)>,
    /// the exported function before it and the distance, when the function has no name
    pub nearest_export: Option<(String, u64)>,
    /// what stands there, for an illegal instruction
    pub instruction: Option<Decoded>,
    /// C shim of libtorch called nearest before the place in its function
    pub nearest_shim: Option<String>,
    /// what the kernel says happened
    pub event: Option<String>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// its bytes in hexadecimal
    pub bytes: String,
    /// `Vpaddd`; `None` when no instruction has these bytes
    pub mnemonic: Option<String>,
    /// CPU features it needs, lower case
    pub features: Vec<String>,
}

/// Follows every frame that names a library of the artefact.
pub fn locate(reading: &Reading, container: &Container) -> Vec<Located> {
    let mut found = Vec::new();
    let mut opened: Vec<(String, Option<Opened>)> = Vec::new();
    for frame in reading.frames.iter().filter(|f| f.module.is_some() || f.is_in_artifact()) {
        if found.len() >= FRAMES {
            break;
        }
        let Some((name, region)) = library_of(frame, container) else { continue };
        if !opened.iter().any(|(n, _)| *n == name) {
            opened.push((name.clone(), Image::open(region).ok().map(Opened::new)));
        }
        if let Some((_, Some(library))) = opened.iter().find(|(n, _)| *n == name)
            && let Some(located) = library.place(frame, name)
        {
            found.push(located);
        }
    }
    found
}

/// The member that a frame names: by file name, or the artefact itself when it is a bare library.
fn library_of<'a>(frame: &Frame, container: &'a Container) -> Option<(String, crate::source::Region<'a>)> {
    let mut libraries = container.members().filter(|m| m.role() == Role::Library || m.role() == Role::CustomOpLibrary);
    let Some(file) = frame.module_name() else {
        let only = libraries.next()?;
        return libraries.next().is_none().then_some(only).and_then(|m| Some((m.name().to_owned(), m.region().ok()?)));
    };
    if let Some(member) = container.members().find(|m| m.file_name() == file) {
        return Some((member.name().to_owned(), member.region().ok()?));
    }
    let is_bare = container.kind() == crate::model::Kind::Library;
    (is_bare && frame.is_in_artifact()).then(|| (file.to_owned(), container.whole()))
}

struct Opened<'a> {
    image: Image<'a>,
    functions: Vec<Function<'a>>,
    /// slot → name of the function that the loader writes there
    slots: HashMap<u64, String>,
}

impl<'a> Opened<'a> {
    fn new(image: Image<'a>) -> Self {
        let functions = functions(&image).unwrap_or_default();
        let slots = image
            .relocations()
            .unwrap_or_default()
            .iter()
            .filter_map(|r| Some((r.address, r.target.as_ref()?.name.to_owned())))
            .collect();
        Self { image, functions, slots }
    }

    fn place(&self, frame: &Frame, member: String) -> Option<Located> {
        let by_name = frame.function.as_deref().and_then(|f| self.by_name(f));
        let address = match frame.place {
            Some(Place::Relative(offset)) => self.base().checked_add(offset)?,
            Some(Place::InFile(offset)) => self.image.address_of(offset)?,
            Some(Place::InMapping { delta }) => {
                // the mapping begins at the page that holds the segment's first byte
                let segment = self.image.segments().iter().find(|s| s.is_executable)?;
                (segment.address & !0xFFF).checked_add(delta)?
            }
            Some(Place::InFunction(offset)) => by_name?.start.checked_add(offset)?,
            Some(Place::Absolute(_)) | None => by_name?.start,
        };
        let is_fault = frame.event.is_some();
        // a return address may be the first byte behind its function
        let probe = if is_fault { address } else { address.saturating_sub(1) };
        let function = by_name.or_else(|| self.functions.iter().find(|f| (f.start..f.end).contains(&probe)));
        if function.is_none() && self.image.file_offset(address).is_none() {
            return None;
        }
        let name = function.and_then(|f| f.name.as_deref()).map(demangle);
        Some(Located {
            line: frame.line,
            member,
            address,
            bounds: function.map(|f| (f.start, f.end)),
            nearest_export: if name.is_none() { self.nearest_export(address) } else { None },
            function: name,
            instruction: is_fault.then(|| self.decode(address)).flatten(),
            nearest_shim: function.and_then(|f| self.nearest_shim(f, address)),
            event: frame.event.clone(),
        })
    }

    fn base(&self) -> u64 {
        self.image.segments().iter().map(|s| s.address).min().unwrap_or(0) & !0xFFFF
    }

    fn by_name(&self, name: &str) -> Option<&Function<'a>> {
        let bare = |n: &str| n.split('(').next().unwrap_or(n).to_owned();
        let wanted = bare(name);
        let named = |f: &&Function<'a>| f.name.as_deref().is_some_and(|n| n == wanted);
        let readable =
            |f: &&Function<'a>| f.name.as_deref().is_some_and(|n| n.starts_with("_Z") && demangle(n) == name);
        self.functions.iter().find(named).or_else(|| self.functions.iter().find(readable))
    }

    fn nearest_export(&self, address: u64) -> Option<(String, u64)> {
        let exports = self.image.exports().ok()?;
        let nearest = exports.iter().filter(|e| !e.is_absolute && e.address <= address).max_by_key(|e| e.address)?;
        Some((demangle(&nearest.name), address.saturating_sub(nearest.address)))
    }

    fn decode(&self, address: u64) -> Option<Decoded> {
        let bytes = self.image.bytes_from(address, 16)?;
        let hex = |b: &[u8]| b.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        if self.image.architecture() != Architecture::X86_64 {
            return Some(Decoded { bytes: hex(bytes.get(..4)?), mnemonic: None, features: Vec::new() });
        }
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return Some(Decoded { bytes: hex(bytes.get(..8).unwrap_or(bytes)), mnemonic: None, features: Vec::new() });
        }
        let features = instruction.cpuid_features().iter().map(|f| format!("{f:?}").to_lowercase()).collect();
        Some(Decoded {
            bytes: hex(bytes.get(..instruction.len()).unwrap_or(bytes)),
            mnemonic: Some(format!("{:?}", instruction.mnemonic()).to_lowercase()),
            features,
        })
    }

    /// The last call of a C shim before `address` in its function.
    fn nearest_shim(&self, function: &Function<'a>, address: u64) -> Option<String> {
        if self.image.architecture() != Architecture::X86_64 {
            return None;
        }
        let length = address.saturating_sub(function.start).saturating_add(1).min(FUNCTION_BYTES);
        let bytes = self.image.bytes_from(function.start, length.saturating_add(16))?;
        let mut decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut last = None;
        while decoder.can_decode() && decoder.ip() <= address {
            decoder.decode_out(&mut instruction);
            if instruction.mnemonic() == Mnemonic::Call
                && let Some(name) = self.callee(&instruction)
                && name.starts_with("aoti_torch_")
            {
                last = Some(name.clone());
            }
        }
        last
    }

    /// Name of the imported function that a call reaches: through its slot, or through a stub that jumps there.
    fn callee(&self, call: &Instruction) -> Option<&String> {
        if call.is_ip_rel_memory_operand() {
            return self.slots.get(&call.ip_rel_memory_address());
        }
        if call.op0_kind() != OpKind::NearBranch64 {
            return None;
        }
        let bytes = self.image.bytes_from(call.near_branch_target(), 24)?;
        let mut decoder = Decoder::with_ip(64, bytes, call.near_branch_target(), DecoderOptions::NONE);
        for _ in 0..3 {
            let instruction = decoder.decode();
            if instruction.mnemonic() == Mnemonic::Jmp && instruction.is_ip_rel_memory_operand() {
                return self.slots.get(&instruction.ip_rel_memory_address());
            }
        }
        None
    }
}
