//! NVIDIA's cubin: an ELF image for one target (`e_machine` 190).
//!
//! Layouts and attribute codes: from files of the assemblers 11.8, 12.4, 12.8, 12.9, 13.0, 13.4 and 13.5,
//! compared with what `cuobjdump` prints for them (see `testdata/artifacts/kernels`).

use super::assertion::{self, Assertion};
use super::sections::{Elf, Fields, c_text};
use super::{Entry, KernelImage, ptx};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Arch, ImageFormat};
use crate::source::Region;
use std::collections::{HashMap, HashSet};

/// Targets that a toolkit from 11.0 to 13.5 knows; anything else means the other header layout.
const KNOWN_SM: &[u16] =
    &[35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121];

/// Shared memory that the driver reserves in each block from capability 9.0 on; the section counts it too.
const RESERVED_SHARED_BYTES: u64 = 1024;

/// `st_other` bit of a kernel, as opposed to a device function.
const ENTRY_FLAG: u8 = 0x10;

/// Reads one cubin.
///
/// # Errors
/// A header, table or descriptive section that is not there.
pub fn read_cubin(region: Region<'_>) -> Result<KernelImage> {
    let elf = Elf::read(region)?;
    let mut image = KernelImage::new(ImageFormat::Cubin);
    let target = Target::read(&elf)?;
    image.arch = target.number.map(|number| Arch::Sm { number, suffix: target.suffix });
    image.is_arch_uncertain = target.is_uncertain;
    image.toolkit = target.toolkit;
    read_entries(&elf, &mut image)?;
    read_texts(&elf, &mut image)?;
    Ok(image)
}

struct Target {
    number: Option<u16>,
    suffix: Option<char>,
    is_uncertain: bool,
    toolkit: Option<(u16, u16)>,
}

impl Target {
    fn read(elf: &Elf<'_>) -> Result<Self> {
        let header = elf.header;
        let low = (header.flags & 0xff) as u16;
        let high = (header.flags >> 8 & 0xff) as u16;
        let is_second_layout = header.abi_version >= 8 || header.os_abi != 0x33;
        let (first, other) = if is_second_layout { (high, low) } else { (low, high) };
        let is_uncertain = !KNOWN_SM.contains(&first);
        let number = [first, other].into_iter().find(|sm| KNOWN_SM.contains(sm));
        let by_flag = if is_second_layout { header.flags & 0x8 != 0 } else { header.flags & 0x800 != 0 };
        let note = Note::read(elf)?;
        let mut suffix = (by_flag || is_accelerated(elf)?).then_some('a');
        let mut toolkit = note.toolkit;
        if !is_second_layout && toolkit.is_none() {
            toolkit = u16::try_from(header.version).ok().filter(|v| (60..400).contains(v)).map(|v| (v / 10, v % 10));
        }
        // The suffix `f` stands nowhere but in the assembler's command line. It may name the target as a
        // word of its own or in a list, and a link step repeats no `-arch`.
        if suffix.is_none()
            && let Some(number) = number
            && note.arguments.split([' ', ',', '=']).any(|word| word == format!("sm_{number}f"))
        {
            suffix = Some('f');
        }
        Ok(Self { number, suffix, is_uncertain, toolkit })
    }
}

/// `.nv.compat` attribute 9 (`CUDA_ACCELERATOR_TARGET` in `cuobjdump`'s words) is 1 for `a` targets.
fn is_accelerated(elf: &Elf<'_>) -> Result<bool> {
    let Some(bytes) = elf.named(".nv.compat")? else { return Ok(false) };
    Ok(attributes(bytes).any(|a| a.code == 0x09 && a.value.first() == Some(&1)))
}

/// What the assembler says about itself in `.note.nv.tkinfo` and `.note.nv.cuinfo`.
struct Note {
    toolkit: Option<(u16, u16)>,
    arguments: String,
}

impl Note {
    fn read(elf: &Elf<'_>) -> Result<Self> {
        let mut note = Self { toolkit: None, arguments: String::new() };
        // payload: u16 version (2), u16 target, u16 toolkit * 10
        if let Some(payload) = elf.named(".note.nv.cuinfo")?.and_then(note_payload)
            && payload.u16(0) == Some(2)
            && let Some(toolkit) = payload.u16(4)
        {
            note.toolkit = Some((toolkit / 10, toolkit % 10));
        }
        // payload: u32 version, then offsets of four texts in what follows: tool, release, build, arguments
        if let Some(payload) = elf.named(".note.nv.tkinfo")?.and_then(note_payload) {
            let texts = payload.0.get(24..).unwrap_or_default();
            let text_at = |field| payload.u32(field).and_then(|at| texts.get(at as usize..)).map(c_text);
            note.arguments = text_at(20).unwrap_or_default();
            if note.toolkit.is_none()
                && let Some(release) = text_at(12)
            {
                note.toolkit = release.split_once("release ").and_then(|(_, rest)| version(rest));
            }
        }
        Ok(note)
    }
}

/// `13.0, V13.0.88` to (13, 0).
fn version(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn note_payload(bytes: &[u8]) -> Option<Fields<'_>> {
    let fields = Fields(bytes);
    let owner = (fields.u32(0)? as usize).checked_next_multiple_of(4)?;
    let start = owner.checked_add(12)?;
    fields.bytes(start, fields.u32(4)? as usize).map(Fields)
}

/// A record of `.nv.info` or `.nv.compat`: `u8 format, u8 code`, then two bytes, or a length and that many.
struct Attribute<'a> {
    code: u8,
    value: &'a [u8],
}

fn attributes(bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let mut at = 0usize;
    std::iter::from_fn(move || {
        let fields = Fields(bytes);
        let format = fields.u8(at)?;
        let code = fields.u8(at + 1)?;
        let value = match format {
            4 => {
                let len = usize::from(fields.u16(at + 2)?);
                let value = fields.bytes(at + 4, len)?;
                at += len;
                value
            }
            // 0 pads the section to its alignment
            1..=3 => fields.bytes(at + 2, 2)?,
            _ => return None,
        };
        at += 4;
        Some(Attribute { code, value })
    })
}

fn read_entries(elf: &Elf<'_>, image: &mut KernelImage) -> Result<()> {
    let symbols = elf.symbols()?;
    let mut by_symbol: HashMap<u32, usize> = HashMap::new();
    let functions = || symbols.iter().enumerate().filter(|(_, s)| s.kind == 2 && s.section != 0);
    let has_flags = functions().any(|(_, s)| s.other & ENTRY_FLAG != 0);
    for (index, symbol) in functions().filter(|(_, s)| !has_flags || s.other & ENTRY_FLAG != 0) {
        if image.entries.len() >= limits::KERNELS {
            return Err(Error::limit(format!("more than {} kernels", limits::KERNELS)).in_section(".symtab"));
        }
        by_symbol.insert(u32::try_from(index).unwrap_or(u32::MAX), image.entries.len());
        image.entries.push(Entry { name: symbol.name.clone(), ..Entry::default() });
    }
    if symbols.is_empty() {
        // sections are fewer than the cap on kernels
        let names = elf.sections.iter().filter_map(|s| s.name.strip_prefix(".text."));
        image.entries = names.map(|n| Entry { name: n.to_owned(), ..Entry::default() }).collect();
    }
    for attribute in attributes(elf.named(".nv.info")?.unwrap_or_default()) {
        let value = Fields(attribute.value);
        let (Some(symbol), Some(number)) = (value.u32(0), value.u32(4)) else { continue };
        let Some(entry) = by_symbol.get(&symbol).and_then(|i| image.entries.get_mut(*i)) else { continue };
        match attribute.code {
            0x2f => entry.registers = Some(number),
            0x11 => entry.frame_bytes = Some(number),
            _ => {}
        }
    }
    let reserved = match &image.arch {
        Some(Arch::Sm { number, .. }) if *number >= 90 => RESERVED_SHARED_BYTES,
        _ => 0,
    };
    // one pass over the sections, since a linked image may hold thousands of kernels
    let by_name: HashMap<String, usize> = image.entries.iter().enumerate().map(|(i, e)| (e.name.clone(), i)).collect();
    let mut api_version = None;
    for entry in &mut image.entries {
        entry.static_shared_bytes = Some(0);
    }
    for section in &elf.sections {
        if let Some(index) = section.name.strip_prefix(".nv.shared.").and_then(|n| by_name.get(n)) {
            if let Some(entry) = image.entries.get_mut(*index) {
                entry.static_shared_bytes = Some(section.size.saturating_sub(reserved));
            }
        } else if let Some(index) = section.name.strip_prefix(".nv.info.").and_then(|n| by_name.get(n))
            && let Some(entry) = image.entries.get_mut(*index)
        {
            let bytes = elf.named(&section.name)?.unwrap_or_default();
            api_version = api_version.or(read_entry(bytes, entry)?);
        }
    }
    if image.toolkit.is_none() {
        image.toolkit = api_version;
    }
    Ok(())
}

/// The attributes of one kernel; returns the toolkit that they state.
fn read_entry(bytes: &[u8], entry: &mut Entry) -> Result<Option<(u16, u16)>> {
    let mut toolkit = None;
    let mut parameters: Vec<(u16, u32)> = Vec::new();
    for attribute in attributes(bytes) {
        let value = Fields(attribute.value);
        let threads = || {
            let product = u64::from(value.u32(0)?) * u64::from(value.u32(4)?);
            u32::try_from(product.checked_mul(u64::from(value.u32(8)?))?).ok()
        };
        match attribute.code {
            0x10 => entry.required_threads = threads(),
            0x05 => entry.max_threads = threads(),
            // u32 index, u16 ordinal, u16 offset, u32 with the size from bit 18 on
            0x17 => {
                if let (Some(ordinal), Some(bits)) = (value.u16(4), value.u32(8)) {
                    parameters.push((ordinal, bits >> 18));
                }
                if parameters.len() > limits::KERNEL_PARAMETERS {
                    let what = format!("more than {} parameters", limits::KERNEL_PARAMETERS);
                    return Err(Error::limit(what).in_section(".nv.info"));
                }
            }
            0x37 => {
                let number = value.u32(0).and_then(|v| u16::try_from(v).ok());
                toolkit = number.map(|v| (v / 10, v % 10));
            }
            _ => {}
        }
    }
    parameters.sort_unstable();
    entry.parameter_bytes = parameters.into_iter().map(|(_, size)| size).collect();
    Ok(toolkit)
}

/// Assertion texts, the kept PTX, the source path.
fn read_texts(elf: &Elf<'_>, image: &mut KernelImage) -> Result<()> {
    if let Some(bytes) = elf.named(".nv_debug_ptx_txt")? {
        // the assembler keeps the text with NUL for each newline
        let text: Vec<u8> = bytes.iter().map(|b| if *b == 0 { b'\n' } else { *b }).collect();
        let text = String::from_utf8_lossy(&text).into_owned();
        let header = ptx::Header::read(&text);
        image.ptx_version = header.version;
        image.assertions = assertion::in_ptx(&text)?;
        image.ptx = Some(text);
    }
    let mut path = None;
    if let Some(bytes) = elf.named(".nv.global.init")? {
        let section = elf.sections.iter().position(|s| s.name == ".nv.global.init");
        let mut seen = 0;
        for symbol in elf.symbols()? {
            if Some(usize::from(symbol.section)) != section {
                continue;
            }
            let text = || bytes.get(usize::try_from(symbol.value).ok()?..).map(c_text);
            // names that Triton's lowering gives to the three texts of an assertion
            if symbol.name.starts_with("assertMessage") {
                seen += 1;
                assertion::all_of(seen)?;
                note_assertion(image, text());
            } else if symbol.name.starts_with("assertFile") {
                path = path.or_else(text);
            }
        }
        // without symbols the texts still stand there, one after the other
        let mut seen = HashSet::new();
        for text in bytes.split(|b| *b == 0) {
            if text.starts_with(b"index out of bounds") {
                if seen.insert(text) {
                    assertion::all_of(seen.len())?;
                    note_assertion(image, Some(String::from_utf8_lossy(text).into_owned()));
                }
            } else if path.is_none() && text.starts_with(b"/") && text.ends_with(b".py") {
                path = Some(String::from_utf8_lossy(text).into_owned());
            }
        }
    }
    image.source_path = match path {
        Some(path) => Some(path),
        None => elf.named(".debug_line")?.and_then(source_path),
    };
    Ok(())
}

fn note_assertion(image: &mut KernelImage, text: Option<String>) {
    let Some(text) = text.filter(|t| !t.is_empty()) else { return };
    if image.assertions.iter().all(|a| a.text != text) {
        image.assertions.push(Assertion { text, bound: None });
    }
}

/// The first file of a line table (DWARF 2 to 4, section 6.2.4): the kernel's own source.
fn source_path(bytes: &[u8]) -> Option<String> {
    let fields = Fields(bytes);
    let version = fields.u16(4)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let opcode_base = 10 + 4 + usize::from(version >= 4);
    let mut at = opcode_base.checked_add(usize::from(fields.u8(opcode_base)?))?;
    let mut directories = Vec::new();
    loop {
        let text = c_text(bytes.get(at..)?.get(..limits::NAME_BYTES.min(bytes.len().checked_sub(at)?))?);
        at = at.checked_add(text.len())?.checked_add(1)?;
        if text.is_empty() || directories.len() > 256 {
            break;
        }
        directories.push(text);
    }
    let rest = bytes.get(at..)?;
    let file = c_text(rest.get(..rest.len().min(limits::NAME_BYTES))?);
    let directory = *rest.get(file.len().checked_add(1)?)?;
    if file.is_empty() {
        return None;
    }
    // 0 is the directory of the compilation, which this table does not name
    match usize::from(directory).checked_sub(1).and_then(|i| directories.get(i)) {
        Some(directory) if !file.starts_with('/') => Some(format!("{directory}/{file}")),
        _ => Some(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_records_of_every_form_are_walked() {
        let bytes = [
            0x04, 0x2f, 8, 0, 7, 0, 0, 0, 10, 0, 0, 0, // registers of symbol 7
            0x03, 0x1b, 0xff, 0x00, // register cap, two bytes in place
            0x01, 0x4a, 0x00, 0x00, // flag
            0x04, 0x37, 4, 0, 0x82, 0, 0, 0,
        ];
        let seen: Vec<(u8, usize)> = attributes(&bytes).map(|a| (a.code, a.value.len())).collect();
        assert_eq!(seen, [(0x2f, 8), (0x1b, 2), (0x4a, 2), (0x37, 4)]);
    }

    #[test]
    fn a_record_longer_than_its_section_ends_the_walk() {
        assert_eq!(attributes(&[0x04, 0x2f, 0xff, 0xff, 1, 2]).count(), 0);
        assert_eq!(attributes(&[0x04]).count(), 0);
    }

    #[test]
    fn parameters_are_ordered_and_sized() {
        let record = |ordinal: u8, low: [u8; 4]| {
            let mut r = vec![0x04, 0x17, 12, 0, 0, 0, 0, 0, ordinal, 0, 0, 0];
            r.extend(low);
            r
        };
        let mut bytes = record(1, [0x00, 0xf0, 0x11, 0x00]);
        bytes.extend(record(0, [0x00, 0xf4, 0x21, 0x00]));
        let mut entry = Entry::default();
        assert_eq!(read_entry(&bytes, &mut entry).unwrap(), None);
        assert_eq!(entry.parameter_bytes, [8, 4]);
    }

    #[test]
    fn toolkit_release_text_gives_a_version() {
        assert_eq!(version("12.9, V12.9.86"), Some((12, 9)));
        assert_eq!(version("x"), None);
    }

    #[test]
    fn kernels_of_an_image_have_a_border() {
        let of = |count: usize| {
            // a function in section 1, a kernel by its flag
            let row = [0, 0, 0, 0, 2, ENTRY_FLAG, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let file = crate::kernel::sections::tests::image(&[(".symtab", 2, &row.repeat(count))]);
            read_cubin(Region::whole(&file)).map(|image| image.entries.len())
        };
        assert_eq!(of(limits::KERNELS).unwrap(), limits::KERNELS);
        assert!(of(limits::KERNELS + 1).unwrap_err().message().contains("more than 65536 kernels"));
        const { assert!(limits::SECTIONS < limits::KERNELS) };
    }

    #[test]
    fn parameters_have_a_border() {
        let of = |count: usize| {
            let record = [0x04, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
            let mut entry = Entry::default();
            let read = read_entry(&record.repeat(count), &mut entry).map_err(|e| e.to_string());
            read.map(|_| entry.parameter_bytes.len())
        };
        assert_eq!(of(limits::KERNEL_PARAMETERS), Ok(limits::KERNEL_PARAMETERS));
        assert!(of(limits::KERNEL_PARAMETERS + 1).unwrap_err().contains("more than 32764 parameters"));
    }

    #[test]
    fn assertions_have_a_border() {
        let of = |count: usize| {
            let texts: Vec<String> = (0..count).map(|n| format!("index out of bounds: {n}\0")).collect();
            let file = crate::kernel::sections::tests::image(&[(".nv.global.init", 1, texts.concat().as_bytes())]);
            read_cubin(Region::whole(&file)).map(|image| image.assertions.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::ASSERTIONS), Ok(limits::ASSERTIONS));
        assert!(of(limits::ASSERTIONS + 1).unwrap_err().contains("more than 1024 assertions"));
        let named = |count: usize| {
            // in section 1, all at its one text; named as section 2
            let row = [17, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(count);
            let file = crate::kernel::sections::tests::image(&[
                (".nv.global.init", 1, b"tmp0 < 8\0"),
                ("assertMessage_0", 1, b"x"),
                (".symtab", 2, &row),
            ]);
            read_cubin(Region::whole(&file)).map(|image| image.assertions.len()).map_err(|e| e.to_string())
        };
        assert_eq!(named(limits::ASSERTIONS), Ok(1));
        assert!(named(limits::ASSERTIONS + 1).unwrap_err().contains("more than 1024 assertions"));
    }
}
