//! The parts of a library that the method reads, by address.

use super::decode::{Callee, Decoder, Processor, Registers};
use super::message;
use crate::error::{Error, ErrorKind, Result};
use crate::image::{Architecture, Image, SectionKind};
use crate::limits;
use std::collections::HashMap;

/// Consecutive bytes of the library in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) address: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Part<'a> {
    /// The bytes from `address` on, when it lies inside.
    fn from(&self, address: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(offset..).filter(|rest| !rest.is_empty())
    }
}

/// Instructions of a stub in front of its jump through a pointer.
const STUB_STEPS: usize = 4;

/// Code and data of one library.
pub(super) struct Code<'a> {
    pub(super) processor: Processor,
    /// sections with instructions, or segments when there is no section table
    pub(super) executable: Vec<Part<'a>>,
    /// everything that has bytes in the file
    loaded: Vec<Part<'a>>,
}

impl<'a> Code<'a> {
    /// # Errors
    /// [`ErrorKind::Unsupported`] for other processors, [`ErrorKind::Limit`] for more than [`limits::CODE_BYTES`].
    pub(super) fn new(image: &Image<'a>) -> Result<Self> {
        let processor = match image.architecture() {
            Architecture::X86_64 => Processor::X86_64,
            Architecture::Aarch64 => Processor::Aarch64,
            other => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("no cross references are read in {other} code"),
                ));
            }
        };
        let segments = |only_executable: bool| {
            let chosen = image.segments().iter().filter(move |s| s.is_executable || !only_executable);
            chosen.filter_map(|s| Some(Part { address: s.address, bytes: image.bytes_from(s.address, s.file_size)? }))
        };
        let sections = image.sections().iter().filter(|s| s.kind == SectionKind::Code);
        let mut executable: Vec<Part<'a>> = sections
            .filter_map(|s| Some(Part { address: s.address, bytes: image.section_bytes(s)? }))
            .filter(|part| !part.bytes.is_empty())
            .collect();
        if executable.is_empty() {
            executable = segments(true).collect();
        }
        let total = executable.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes.len() as u64));
        if total > limits::CODE_BYTES {
            return Err(Error::limit(format!(
                "{total} bytes of code, more than the {} that are decoded",
                limits::CODE_BYTES
            )));
        }
        Ok(Self { processor, executable, loaded: segments(false).collect() })
    }

    /// One piece of code and one of data.
    #[cfg(test)]
    pub(super) fn of(processor: Processor, executable: Part<'a>, data: Part<'a>) -> Self {
        Self { processor, executable: vec![executable], loaded: vec![executable, data] }
    }

    /// Up to `max` bytes from `address` on; none where nothing is loaded.
    pub(super) fn bytes(&self, address: u64, max: usize) -> &'a [u8] {
        let all = self.loaded.iter().find_map(|part| part.from(address)).unwrap_or_default();
        all.get(..max).unwrap_or(all)
    }

    /// Enough bytes for any check message.
    pub(super) fn text(&self, address: u64) -> &'a [u8] {
        self.bytes(address, message::TEXT_BYTES)
    }

    /// The executable part that `address` lies in.
    pub(super) fn part(&self, address: u64) -> Option<Part<'a>> {
        self.executable.iter().copied().find(|part| part.from(address).is_some())
    }

    /// The pointer that a call goes through: its own, or that of the stub which it calls.
    fn slot(&self, callee: Callee) -> Option<u64> {
        let address = match callee {
            Callee::Slot(slot) => return Some(slot),
            Callee::Code(address) => address,
            Callee::Unknown => return None,
        };
        let part = self.part(address)?;
        let mut decoder = Decoder::new(self.processor, part.bytes, part.address, address);
        let mut registers = Registers::default();
        (0..STUB_STEPS).find_map(|_| decoder.step(&mut registers)?.slot)
    }
}

/// Imported functions by the address of their pointer.
pub(super) struct Imports<'a>(HashMap<u64, &'a str>);

impl<'a> Imports<'a> {
    pub(super) fn new(image: &'a Image<'_>) -> Result<Self> {
        let named = image.relocations()?.iter().filter_map(|r| Some((r.address, r.target.as_ref()?.name)));
        Ok(Self(named.collect()))
    }

    /// Name of a called function, when it is imported.
    pub(super) fn name(&self, code: &Code<'_>, callee: Callee) -> Option<&'a str> {
        self.0.get(&code.slot(callee)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::elf_tests::{Row, object};
    use crate::source::Region;

    #[test]
    fn code_has_a_border() {
        let of = |size: u64| {
            let section = Row { kind: 1, flags: 6, offset: 4096, size, ..Row::default() };
            let file = object(4096 + usize::try_from(size).unwrap(), &[], &[section]);
            let image = Image::open(Region::whole(&file)).unwrap();
            Code::new(&image).map(|code| code.executable.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::CODE_BYTES), Ok(1));
        assert!(of(limits::CODE_BYTES + 1).unwrap_err().contains("268435457 bytes of code, more than the 268435456"));
    }
}
