//! Fatbins: several images, for several targets, one after the other.
//!
//! Layout and flags: from files that `fatbinary` of CUDA 13.5 made in each of its compression modes, and
//! from the multi-arch kernels of torch 2.11; format reference 8.4.

use super::sections::Fields;
use super::{FileFormat, KernelFile, cubin, ptx};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Arch, ImageFormat};
use crate::source::Region;
use std::io::Read;

/// First four bytes.
pub const MAGIC: u32 = 0xba55_ed50;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// Set by `fatbinary` for `sm_90a`, `sm_100a`, clear for the plain target.
const FLAG_ARCH_SPECIFIC: u64 = 0x10_0000;
/// Set for `sm_100f`, `sm_120f`; the only place besides the assembler's command line that tells `f`.
const FLAG_FAMILY_SPECIFIC: u64 = 0x20_0000;

struct EntryHeader {
    kind: u16,
    header_bytes: u64,
    payload_bytes: u64,
    compressed_bytes: u64,
    version: (u16, u16),
    sm: u32,
    flags: u64,
    inflated_bytes: u64,
}

impl EntryHeader {
    fn read(bytes: Fields<'_>) -> Option<Self> {
        Some(Self {
            kind: bytes.u16(0)?,
            header_bytes: u64::from(bytes.u32(4)?),
            payload_bytes: bytes.u64(8)?,
            compressed_bytes: u64::from(bytes.u32(0x10)?),
            version: (bytes.u16(0x1a)?, bytes.u16(0x18)?),
            sm: bytes.u32(0x1c)?,
            flags: bytes.u64(0x28)?,
            inflated_bytes: bytes.u64(0x38)?,
        })
    }
    fn arch(&self) -> Option<Arch> {
        let suffix = match self.flags & (FLAG_ARCH_SPECIFIC | FLAG_FAMILY_SPECIFIC) {
            FLAG_ARCH_SPECIFIC => Some('a'),
            FLAG_FAMILY_SPECIFIC => Some('f'),
            _ => None,
        };
        Some(Arch::Sm { number: u16::try_from(self.sm).ok()?, suffix })
    }
    fn says(&self) -> String {
        let kind = match self.kind {
            1 => "PTX",
            2 => "cubin",
            _ => "entry",
        };
        format!("{kind} for {}", self.arch().map_or_else(|| "an unknown target".into(), |a| a.to_string()))
    }
}

/// Reads one container into `file`.
///
/// # Errors
/// Headers or payloads that are not there; more images than the cap.
pub fn read_fatbin(region: Region<'_>, file: &mut KernelFile) -> Result<()> {
    read_container(region, file).map(|_| ())
}

/// Reads the host fatbins of a library: containers one after the other, aligned to 8 (`.nv_fatbin`). Each holds
/// the kernels of one source file of `nvcc`, for several targets.
///
/// # Errors
/// As [`read_fatbin`].
pub fn read_host_fatbins(section: Region<'_>) -> Result<Vec<KernelFile>> {
    let mut files: Vec<KernelFile> = Vec::new();
    let mut at = 0u64;
    while let Some(rest) = section.len().checked_sub(at).filter(|r| *r >= 16).and_then(|r| section.sub(at, r)) {
        // padding between containers is zero
        if rest.head(8).iter().all(|b| *b == 0) {
            at += 8;
            continue;
        }
        if files.len() >= limits::KERNELS {
            return Err(Error::limit(format!("more than {} fatbins", limits::KERNELS)).in_section(".nv_fatbin"));
        }
        let mut file = KernelFile { format: FileFormat::Fatbin, images: Vec::new(), not_read: Vec::new() };
        let used = read_container(rest, &mut file).map_err(|e| e.in_section(".nv_fatbin"))?;
        files.push(file);
        at = at.saturating_add(used).checked_next_multiple_of(8).unwrap_or(u64::MAX);
    }
    Ok(files)
}

/// Returns the bytes that the container takes.
fn read_container(region: Region<'_>, file: &mut KernelFile) -> Result<u64> {
    let head = Fields(region.head(16));
    let cut = || Error::damaged("fatbin header is cut off").in_section("fatbin header");
    if head.u32(0) != Some(MAGIC) {
        return Err(Error::damaged("no fatbin magic number").in_section("fatbin header").at_offset(0));
    }
    let header_bytes = u64::from(head.u16(6).ok_or_else(cut)?);
    let total = head.u64(8).ok_or_else(cut)?;
    let end = header_bytes.checked_add(total).filter(|end| *end <= region.len()).ok_or_else(|| {
        Error::damaged(format!("states {total} bytes of images in a file of {}", region.len()))
            .in_section("fatbin header")
            .at_offset(8)
            .help("the file is cut off: copy it again")
    })?;
    let mut inflated = 0u64;
    let mut at = header_bytes;
    while at < end {
        if file.images.len() + file.not_read.len() >= limits::KERNELS {
            return Err(Error::limit(format!("more than {} images", limits::KERNELS)).in_section("fatbin"));
        }
        let place = |e: Error| e.in_section("fatbin entry").at_offset(at);
        let entry = region
            .get(at, 0x40)
            .and_then(|b| EntryHeader::read(Fields(b)))
            .ok_or_else(|| place(Error::damaged("entry header is cut off")))?;
        let payload_at = at.checked_add(entry.header_bytes);
        let next = payload_at.and_then(|p| p.checked_add(entry.payload_bytes)).filter(|n| *n <= end && *n > at);
        let (Some(payload_at), Some(next)) = (payload_at, next) else {
            let bytes = entry.payload_bytes;
            return Err(place(Error::damaged(format!("entry of {bytes} bytes does not fit into the file"))));
        };
        let payload = region
            .sub(payload_at, entry.payload_bytes)
            .ok_or_else(|| place(Error::damaged("payload is not in the file")))?;
        read_entry(&entry, payload, &mut inflated, file).map_err(place)?;
        at = next;
    }
    Ok(end)
}

fn read_entry(entry: &EntryHeader, payload: Region<'_>, inflated: &mut u64, file: &mut KernelFile) -> Result<()> {
    if entry.kind != 1 && entry.kind != 2 {
        file.not_read.push(format!("{} is of kind {}, neither PTX nor cubin", entry.says(), entry.kind));
        return Ok(());
    }
    if entry.flags & FLAG_ZSTD != 0 {
        let bytes = inflate(entry, payload, inflated)?;
        return read_image(entry, Region::whole(&bytes), file);
    }
    if entry.flags & FLAG_LZ4 != 0 || entry.compressed_bytes != 0 {
        file.not_read.push(format!(
            "{} is compressed with LZ4: registers, shared memory and assertions are not read",
            entry.says()
        ));
        file.images.push(by_header(entry));
        return Ok(());
    }
    read_image(entry, payload, file)
}

/// What the entry's header says about an image that is not read itself.
fn by_header(entry: &EntryHeader) -> super::KernelImage {
    let mut image = super::KernelImage::new(if entry.kind == 1 { ImageFormat::Ptx } else { ImageFormat::Cubin });
    image.arch = entry.arch();
    image.ptx_version = (entry.kind == 1).then_some(entry.version);
    image
}

fn read_image(entry: &EntryHeader, bytes: Region<'_>, file: &mut KernelFile) -> Result<()> {
    let stated = by_header(entry);
    let mut image = match entry.kind {
        1 => ptx::read_ptx(bytes)?,
        _ => cubin::read_cubin(bytes)?,
    };
    match (&mut image.arch, &stated.arch) {
        // the entry's flag knows `f`, the cubin's header does not
        (Some(Arch::Sm { number, suffix: suffix @ None }), Some(Arch::Sm { number: same, suffix: Some(stated) }))
            if number == same =>
        {
            *suffix = Some(*stated);
        }
        (arch @ None, stated) => arch.clone_from(stated),
        _ => {}
    }
    file.images.push(image);
    Ok(())
}

fn inflate(entry: &EntryHeader, payload: Region<'_>, total: &mut u64) -> Result<Vec<u8>> {
    let size = entry.inflated_bytes;
    if size > limits::FATBIN_ENTRY_BYTES {
        let cap = limits::FATBIN_ENTRY_BYTES;
        return Err(Error::limit(format!("states {size} inflated bytes, more than {cap}")));
    }
    *total = total.saturating_add(size);
    if *total > limits::FATBIN_TOTAL_BYTES {
        let cap = limits::FATBIN_TOTAL_BYTES;
        return Err(Error::limit(format!("its entries inflate to more than {cap} bytes")));
    }
    // padding behind the frame is no part of it
    let stored = if entry.compressed_bytes == 0 { payload.len() } else { entry.compressed_bytes.min(payload.len()) };
    let stored = payload.get(0, stored).unwrap_or_default();
    let broken = |e: &dyn std::fmt::Display| Error::damaged(format!("zstd data cannot be inflated: {e}"));
    let decoder = ruzstd::decoding::StreamingDecoder::new(stored).map_err(|e| broken(&e))?;
    let mut bytes = Vec::new();
    decoder.take(size.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| broken(&e))?;
    if bytes.len() as u64 != size {
        return Err(Error::damaged(format!("zstd data does not inflate to the {size} bytes that the entry states")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, inflated_bytes: u64) -> EntryHeader {
        EntryHeader {
            kind,
            header_bytes: 0x40,
            payload_bytes: 0,
            compressed_bytes: 0,
            version: (9, 0),
            sm: 90,
            flags: FLAG_ZSTD,
            inflated_bytes,
        }
    }

    #[test]
    fn inflated_entries_have_a_border() {
        // no zstd data: at the border its inflation is tried
        let stored = vec![0; 16];
        let of = |size: u64, before: u64| {
            let mut total = before;
            inflate(&entry(2, size), Region::whole(&stored), &mut total).unwrap_err().message().to_owned()
        };
        assert!(of(limits::FATBIN_ENTRY_BYTES, 0).contains("cannot be inflated"));
        assert!(of(limits::FATBIN_ENTRY_BYTES + 1, 0).contains("more than 67108864"));
        let room = limits::FATBIN_TOTAL_BYTES - 1_000;
        assert!(of(1_000, room).contains("cannot be inflated"));
        assert!(of(1_001, room).contains("more than 268435456 bytes"));
    }

    #[test]
    fn images_of_a_fatbin_have_a_border() {
        let of = |count: usize| {
            // of a kind that is not looked into
            let mut header = vec![7, 0, 0, 0, 0x40, 0, 0, 0];
            header.resize(0x40, 0);
            let mut bytes = [MAGIC.to_le_bytes(), [1, 0, 16, 0]].concat();
            bytes.extend((0x40 * count as u64).to_le_bytes());
            bytes.extend(header.repeat(count));
            let mut file = KernelFile { format: FileFormat::Fatbin, images: Vec::new(), not_read: Vec::new() };
            read_fatbin(Region::whole(&bytes), &mut file).map(|()| file.not_read.len())
        };
        assert_eq!(of(limits::KERNELS).unwrap(), limits::KERNELS);
        assert!(of(limits::KERNELS + 1).unwrap_err().message().contains("more than 65536 images"));
    }
}
