//! The zip directory as it stands: rows with the place of their bytes, and everything odd about them.
//!
//! `rawzip` reads the end records and the central directory; what it does not judge (overlaps, duplicates, local headers
//! that disagree, names) is judged here. Sizes, checksum and place come from the central directory: packages of
//! torch 2.8+ hold zeros in the local headers and a data descriptor behind the data (format reference 1.3).

use super::end_record;
use crate::error::{Error, Place, Result};
use crate::limits;
use crate::model::{Hazard, Problem};
use crate::source::Region;
use std::collections::HashMap;

/// One row of the central directory.
#[derive(Debug)]
pub(super) struct Entry {
    /// as stored, bytes that are not UTF-8 replaced
    pub name: String,
    pub size_bytes: u64,
    pub stored_bytes: u64,
    pub crc32: u32,
    pub is_deflated: bool,
    /// first byte of the data in the file, or why it cannot be read
    pub start: std::result::Result<u64, String>,
    pub hazards: Vec<Hazard>,
}

/// A zip's directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub entries: Vec<Entry>,
    pub problems: Vec<Oddity>,
}

/// Something wrong, and what it makes doubtful.
#[derive(Debug)]
pub(super) struct Oddity {
    pub problem: Problem,
    pub spoils: Spoils,
}

/// What an oddity makes doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoils {
    Nothing,
    /// content of the entry with this index
    Entry(usize),
    /// every member: the official reader does not open the archive, or sees other members
    Everything,
}

/// `rawzip` copies what it reads; the mapping stays untouched elsewhere.
struct Reader<'a>(Region<'a>);

impl rawzip::ReaderAt for Reader<'_> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let len = (buf.len() as u64).min(self.0.len().saturating_sub(offset));
        let bytes = self.0.get(offset, len).unwrap_or_default();
        if let Some(target) = buf.get_mut(..bytes.len()) {
            target.copy_from_slice(bytes);
        }
        Ok(bytes.len())
    }
}

type Archive<'a> = rawzip::ZipArchive<Reader<'a>>;

/// Searches the end record from the end of the file; a signature that begins no valid record (it can stand in a comment
/// or in appended bytes) is passed over a few times.
fn locate(file: Region<'_>) -> Result<Archive<'_>> {
    const ATTEMPTS: usize = 8;
    // the end record of an ordinary package lies in the last page
    let mut buffer = [0u8; 4096];
    let mut end = file.len();
    let mut first_failure = None;
    for _ in 0..ATTEMPTS {
        let locator = rawzip::ZipLocator::new().max_search_space(limits::ZIP_END_SEARCH_BYTES);
        let failure = match locator.locate_in_reader(Reader(file), &mut buffer, end) {
            Ok(archive) => return Ok(archive),
            Err((_, failure)) => failure,
        };
        let at = failure.eocd_offset();
        first_failure.get_or_insert((at, failure));
        match at {
            Some(offset) if offset < end => end = offset,
            _ => break,
        }
    }
    Err(match first_failure {
        Some((Some(offset), failure)) => Error::damaged(format!("the zip's end record is wrong ({failure})"))
            .in_section("end of central directory")
            .at_offset(offset)
            .help("copy or download the file again"),
        _ => Error::damaged("the zip has no end record: the upload or copy was cut short")
            .in_section("end of central directory")
            .help("compare the size with the original and copy the file again"),
    })
}

/// True when a zip's end record is near the end of `file`: a zip with foreign bytes before it.
pub(super) fn has_end_record(file: Region<'_>) -> bool {
    locate(file).is_ok()
}

/// Reads the central directory of a zip.
///
/// # Errors
/// No end record, or not a single readable row although some are promised.
pub(super) fn read(file: Region<'_>) -> Result<Directory> {
    let archive = locate(file)?;
    let directory_len = file.len().saturating_sub(archive.directory_offset());
    let buffer_len = usize::try_from(directory_len).unwrap_or(usize::MAX);
    let mut buffer = vec![0u8; buffer_len.clamp(1, rawzip::MAX_CENTRAL_DIRECTORY_RECORD_SIZE)];
    let mut found = Directory::default();
    let mut first_header = archive.directory_offset();
    let mut headers = Vec::new();
    let (mut directory_start, mut directory_bytes) = (None, 0u64);
    let (mut refused_row, mut lowest_disk) = (None, u16::MAX);
    let mut is_cut_at_limit = false;
    let mut rows = archive.entries(&mut buffer);
    let stopped = loop {
        match rows.next_entry() {
            Ok(Some(_)) if found.entries.len() >= limits::MEMBERS => {
                is_cut_at_limit = true;
                break Some(format!("more than {} members: the rest is not looked at", limits::MEMBERS));
            }
            Ok(Some(row)) => {
                let offset = row.local_header_offset();
                first_header = first_header.min(offset);
                headers.push(offset);
                let row_offset = row.central_directory_offset();
                directory_start.get_or_insert(row_offset);
                if let Some((len, disk, refusal)) = end_record::row(file, row_offset) {
                    directory_bytes = directory_bytes.saturating_add(len);
                    lowest_disk = lowest_disk.min(disk);
                    refused_row = refused_row.or(refusal);
                }
                let index = found.entries.len();
                let entry = read_row(file, &row, index, &mut found.problems);
                found.entries.push(entry);
            }
            Ok(None) => break None,
            Err(failure) => {
                break Some(format!("the directory is damaged after {} members ({failure})", found.entries.len()));
            }
        }
    };
    let promised = archive.entries_hint();
    if found.entries.is_empty() && promised > 0 {
        let place = Error::damaged(format!("the zip's directory promises {promised} members and none can be read"));
        return Err(place
            .in_section("central directory")
            .at_offset(archive.directory_offset())
            .help("copy or download the file again"));
    }
    let rows = end_record::Rows {
        offset: directory_start.unwrap_or(archive.directory_offset()),
        count: found.entries.len() as u64,
        size_bytes: directory_bytes,
        lowest_disk,
    };
    let refusal = end_record::refusal(file, archive.eocd_offset(), (!is_cut_at_limit).then_some(rows));
    let mut whole = |message: String, offset: u64, spoils: Spoils| {
        found.problems.push(Oddity { problem: problem("central directory", offset, message), spoils });
    };
    if let Some(message) = stopped {
        // rows that the end record does not promise are read by nobody
        let is_short = !is_cut_at_limit && promised != rows.count;
        let spoils = if is_short { Spoils::Everything } else { Spoils::Nothing };
        whole(message, archive.directory_offset(), spoils);
    }
    if let Some(refused) = refused_row {
        whole(refused.message, refused.offset, Spoils::Everything);
    }
    if first_header > 0 && !found.entries.is_empty() {
        whole(format!("{first_header} bytes before the first member"), 0, Spoils::Nothing);
    }
    let behind = file.len().saturating_sub(archive.end_offset());
    if behind > 0 {
        whole(format!("{behind} bytes behind the end of the zip"), archive.end_offset(), Spoils::Nothing);
    }
    if let Some(refused) = refusal {
        let problem = problem("end of central directory", refused.offset, refused.message);
        found.problems.push(Oddity { problem, spoils: Spoils::Everything });
    }
    mark_duplicates(&mut found);
    mark_overlaps(&mut found, &headers, archive.directory_offset());
    Ok(found)
}

fn problem(section: &str, offset: u64, message: String) -> Problem {
    let place = Place { member: None, section: Some(section.to_owned()), offset: Some(offset) };
    Problem { place, message, affects: Vec::new() }
}

fn read_row(
    file: Region<'_>,
    row: &rawzip::ZipFileHeaderRecord<'_>,
    index: usize,
    problems: &mut Vec<Oddity>,
) -> Entry {
    let path = row.file_path();
    let raw: &[u8] = path.as_bytes();
    let name = String::from_utf8_lossy(raw.get(..raw.len().min(limits::NAME_BYTES)).unwrap_or(raw)).into_owned();
    let mut hazards = name_hazards(raw);
    if row.mode().is_symlink() {
        hazards.push(Hazard::SymbolicLink);
    }
    if row.flags().is_encrypted() {
        hazards.push(Hazard::Encrypted);
    }
    let header = LocalHeader::read(file, row.local_header_offset());
    if let Some(message) = header.as_ref().and_then(|h| h.contradiction(raw, row)) {
        hazards.push(Hazard::HeadersDisagree);
        let mut problem = problem("local header", row.local_header_offset(), message);
        problem.place.member = Some(name.clone());
        problems.push(Oddity { problem, spoils: Spoils::Entry(index) });
    }
    let start = data_start(file, row, header, &name);
    if raw.len() > limits::NAME_BYTES {
        let message = format!("a name of {} bytes is cut to {}", raw.len(), limits::NAME_BYTES);
        problems.push(Oddity {
            problem: problem("central directory", row.central_directory_offset(), message),
            spoils: Spoils::Nothing,
        });
    }
    Entry {
        name,
        size_bytes: row.uncompressed_size_hint(),
        stored_bytes: row.compressed_size_hint(),
        crc32: row.crc32(),
        is_deflated: row.compression_method() == rawzip::CompressionMethod::DEFLATE,
        start,
        hazards,
    }
}

/// Where the data begins, or one clause why it is not read.
fn data_start(
    file: Region<'_>,
    row: &rawzip::ZipFileHeaderRecord<'_>,
    header: Option<LocalHeader<'_>>,
    name: &str,
) -> std::result::Result<u64, String> {
    if row.flags().is_encrypted() {
        return Err("is encrypted, which is not supported".into());
    }
    if row.mode().is_symlink() {
        return Err("is a symbolic link, which is not followed".into());
    }
    let method = row.compression_method();
    if method != rawzip::CompressionMethod::STORE && method != rawzip::CompressionMethod::DEFLATE {
        return Err(format!("has compression method {}; only stored and deflated are read", method.as_u16()));
    }
    if method == rawzip::CompressionMethod::STORE && row.compressed_size_hint() != row.uncompressed_size_hint() {
        return Err(format!(
            "is stored with {} bytes and said to have {}",
            row.compressed_size_hint(),
            row.uncompressed_size_hint()
        ));
    }
    let Some(header) = header else {
        return Err(format!("has no local header at offset {:#x}", row.local_header_offset()));
    };
    let start = header.data_start;
    if file.sub(start, row.compressed_size_hint()).is_none() {
        return Err(format!(
            "is said to have {} bytes, but only {} follow its header",
            row.compressed_size_hint(),
            file.len().saturating_sub(start)
        ));
    }
    if name.ends_with('/') && row.uncompressed_size_hint() > 0 {
        return Err("is a folder with content".into());
    }
    Ok(start)
}

/// The fixed part of a local header (APPNOTE 4.3.7) and the bytes of its name.
struct LocalHeader<'a> {
    method: u16,
    flags: u16,
    stored_bytes: u32,
    size_bytes: u32,
    name: &'a [u8],
    data_start: u64,
}

impl<'a> LocalHeader<'a> {
    const LEN: u64 = 30;

    fn read(file: Region<'a>, offset: u64) -> Option<Self> {
        let fixed = file.get(offset, Self::LEN)?;
        let u16_at = |at: usize| fixed.get(at..at + 2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes);
        let u32_at = |at: usize| fixed.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        if !fixed.starts_with(b"PK\x03\x04") {
            return None;
        }
        let (name_len, extra_len) = (u64::from(u16_at(26)?), u64::from(u16_at(28)?));
        let name_start = offset.checked_add(Self::LEN)?;
        Some(Self {
            flags: u16_at(6)?,
            method: u16_at(8)?,
            stored_bytes: u32_at(18)?,
            size_bytes: u32_at(22)?,
            name: file.get(name_start, name_len)?,
            data_start: name_start.checked_add(name_len)?.checked_add(extra_len)?,
        })
    }

    /// What it says differently from the central directory; the sizes count only where the header states them.
    fn contradiction(&self, name: &[u8], row: &rawzip::ZipFileHeaderRecord<'_>) -> Option<String> {
        const DESCRIPTOR_FOLLOWS: u16 = 1 << 3;
        const ENCRYPTED: u16 = 1;
        if self.name != name {
            let local = String::from_utf8_lossy(self.name.get(..self.name.len().min(80)).unwrap_or(self.name));
            return Some(format!("its own header calls it {local:?}"));
        }
        if self.method != row.compression_method().as_u16() {
            let central = row.compression_method().as_u16();
            return Some(format!("its own header says compression {}, the directory {central}", self.method));
        }
        if (self.flags & ENCRYPTED != 0) != row.flags().is_encrypted() {
            return Some("its own header and the directory disagree about encryption".into());
        }
        let differs = |local: u32, central: u64| local != u32::MAX && u64::from(local) != central;
        if self.flags & DESCRIPTOR_FOLLOWS == 0
            && (differs(self.stored_bytes, row.compressed_size_hint())
                || differs(self.size_bytes, row.uncompressed_size_hint()))
        {
            return Some(format!(
                "its own header says {} bytes ({} stored), the directory {} ({} stored)",
                self.size_bytes,
                self.stored_bytes,
                row.uncompressed_size_hint(),
                row.compressed_size_hint()
            ));
        }
        None
    }
}

/// What an unpacker that trusts the name would do wrong.
pub(super) fn name_hazards(raw: &[u8]) -> Vec<Hazard> {
    let mut hazards = Vec::new();
    let is_separator = |b: &u8| matches!(b, b'/' | b'\\');
    if raw.split(is_separator).any(|part| part == b"..") {
        hazards.push(Hazard::ParentPart);
    }
    let has_drive = matches!(raw, [letter, b':', ..] if letter.is_ascii_alphabetic());
    if raw.first().is_some_and(is_separator) || has_drive {
        hazards.push(Hazard::AbsoluteName);
    }
    if raw.contains(&b'\\') {
        hazards.push(Hazard::Backslash);
    }
    let is_odd = |text: &str| {
        text.chars().any(|c| {
            c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        })
    };
    if std::str::from_utf8(raw).map_or(true, is_odd) {
        hazards.push(Hazard::OddCharacters);
    }
    hazards
}

fn mark_duplicates(found: &mut Directory) {
    let mut first: HashMap<String, usize> = HashMap::with_capacity(found.entries.len());
    let mut clashes = Vec::new();
    for (index, entry) in found.entries.iter().enumerate() {
        let key = entry.name.replace('\\', "/");
        if let Some(&earlier) = first.get(&key) {
            clashes.push((earlier, index));
        } else {
            first.insert(key, index);
        }
    }
    for (earlier, index) in clashes {
        let (Some(a), Some(b)) = (found.entries.get(earlier), found.entries.get(index)) else { continue };
        let is_same = a.crc32 == b.crc32 && a.size_bytes == b.size_bytes;
        let message = if is_same {
            "is listed twice with the same content".to_owned()
        } else {
            "is listed twice with different content: which one a loader takes is chance; the first is shown".to_owned()
        };
        let place = Place { member: Some(a.name.clone()), section: Some("central directory".into()), offset: None };
        let spoils = if is_same { Spoils::Nothing } else { Spoils::Entry(earlier) };
        found.problems.push(Oddity { problem: Problem { place, message, affects: Vec::new() }, spoils });
        if let Some(entry) = found.entries.get_mut(index) {
            entry.hazards.push(Hazard::Duplicate);
        }
    }
}

/// Two members that share bytes show different content to different readers, and let a small file inflate without end.
fn mark_overlaps(found: &mut Directory, headers: &[u64], directory_offset: u64) {
    let mut spans: Vec<(u64, u64, usize)> = Vec::with_capacity(headers.len());
    for (index, (entry, header)) in found.entries.iter().zip(headers).enumerate() {
        if let Ok(start) = entry.start {
            spans.push((*header, start.saturating_add(entry.stored_bytes), index));
        }
    }
    spans.sort_unstable();
    let mut reached: Option<(u64, usize)> = None;
    for (begin, end, index) in spans {
        let clash = match reached {
            Some((limit, other)) if begin < limit => {
                Some(found.entries.get(other).map_or_else(String::new, |e| e.name.clone()))
            }
            _ if end > directory_offset => Some("the zip's directory".to_owned()),
            _ => None,
        };
        if let (Some(with), Some(entry)) = (clash, found.entries.get_mut(index)) {
            entry.hazards.push(Hazard::Overlap);
            let place = Place { member: Some(entry.name.clone()), section: None, offset: Some(begin) };
            let message = format!("shares bytes with {with}");
            found.problems.push(Oddity {
                problem: Problem { place, message, affects: Vec::new() },
                spoils: Spoils::Entry(index),
            });
        }
        if reached.is_none_or(|(limit, _)| end > limit) {
            reached = Some((end, index));
        }
    }
}
