//! Kernels for AMD, Intel and Apple GPUs: recognised, their targets named where the header tells them,
//! and said to be unread.

use super::sections::{Elf, Fields};
use super::{FileFormat, KernelFile, KernelImage};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Arch, ImageFormat};
use crate::source::Region;

/// First word of a SPIR-V module (SPIR-V specification, 2.3).
pub const SPIRV_MAGIC: u32 = 0x0723_0203;

/// `e_flags & 0xff` of an AMD code object (LLVM, AMDGPUUsage, "ELF header", `EF_AMDGPU_MACH`).
const AMD_TARGETS: &[(u8, &str)] = &[
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2b, "gfx810"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
];

/// Adds the images of a file in one of the formats that are only recognised.
///
/// # Errors
/// A header or bundle table that is cut off.
pub fn recognise_images(region: Region<'_>, format: FileFormat, file: &mut KernelFile) -> Result<()> {
    let (image, not_read) = match format {
        FileFormat::Hsaco => {
            let elf = Elf::read(region)?;
            let code = (elf.header.flags & 0xff) as u8;
            let mut image = KernelImage::new(ImageFormat::Hsaco);
            image.arch = AMD_TARGETS.iter().find(|t| t.0 == code).map(|t| Arch::Other(t.1.to_owned()));
            (image, "AMD code object: registers, shared memory and assertions are not read")
        }
        FileFormat::OffloadBundle => return read_bundle(region, file),
        FileFormat::Spirv => {
            let head = Fields(region.head(20));
            if head.u32(12).is_none() {
                return Err(Error::damaged("SPIR-V header is cut off").in_section("SPIR-V header"));
            }
            let version = Fields(region.head(8)).u32(4).unwrap_or_default();
            let mut image = KernelImage::new(ImageFormat::Spirv);
            image.arch = Some(Arch::Other(format!("spirv{}.{}", version >> 16 & 0xff, version >> 8 & 0xff)));
            (image, "SPIR-V module: compiled by the Intel driver at load, not read")
        }
        FileFormat::Zebin => {
            let elf = Elf::read(region)?;
            if elf.section(".ze_info").is_none() {
                return Err(Error::damaged("ELF for an Intel GPU without `.ze_info`").in_section("section table"));
            }
            (KernelImage::new(ImageFormat::Zebin), "Intel GPU binary: its target and needs are not read")
        }
        FileFormat::Metal => (KernelImage::new(ImageFormat::Metal), "Metal library: not read"),
        FileFormat::Cubin | FileFormat::Fatbin | FileFormat::Ptx => return Ok(()),
    };
    file.images.push(image);
    file.not_read.push(not_read.to_owned());
    Ok(())
}

/// clang's offload bundle: magic, u64 count, then per entry u64 offset, size, length of the name, and the
/// name, `hipv4-amdgcn-amd-amdhsa--gfx942` (LLVM, ClangOffloadBundler). Compressed ones begin with `CCOB`.
fn read_bundle(region: Region<'_>, file: &mut KernelFile) -> Result<()> {
    let cut = || Error::damaged("offload bundle is cut off").in_section("offload bundle");
    if region.head(4) == b"CCOB" {
        file.not_read.push("compressed bundle of AMD code objects: its targets are not read".to_owned());
        return Ok(());
    }
    let count = region.get(24, 8).and_then(|b| Fields(b).u64(0)).ok_or_else(cut)?;
    if count > limits::KERNELS as u64 {
        return Err(
            Error::limit(format!("{count} entries, more than {}", limits::KERNELS)).in_section("offload bundle")
        );
    }
    let mut at = 32u64;
    for _ in 0..count {
        let row = Fields(region.get(at, 24).ok_or_else(cut)?);
        let len = row.u64(16).filter(|len| *len <= limits::NAME_BYTES as u64).ok_or_else(cut)?;
        let name = region.get(at + 24, len).ok_or_else(cut)?;
        at = at.checked_add(24 + len).ok_or_else(cut)?;
        let name = String::from_utf8_lossy(name);
        // the entry for the host is empty
        if let Some((_, target)) = name.split_once("amdgcn-amd-amdhsa-") {
            let target = target.trim_start_matches('-').split(':').next().unwrap_or_default();
            let mut image = KernelImage::new(ImageFormat::Hsaco);
            image.arch = (!target.is_empty()).then(|| Arch::Other(target.to_owned()));
            file.images.push(image);
        }
    }
    file.not_read.push("bundle of AMD code objects: registers, shared memory and assertions are not read".to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_names_its_targets() {
        let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
        let names: [&[u8]; 3] = [
            b"host-x86_64-unknown-linux--",
            b"hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
            b"hipv4-amdgcn-amd-amdhsa--gfx90a",
        ];
        bytes.extend((names.len() as u64).to_le_bytes());
        for name in names {
            bytes.extend(0u64.to_le_bytes());
            bytes.extend(0u64.to_le_bytes());
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name);
        }
        let file = crate::kernel::read(Region::whole(&bytes)).map(|f| f.images);
        let archs: Vec<_> = file.into_iter().flatten().filter_map(|i| i.arch).map(|a| a.to_string()).collect();
        assert_eq!(archs, ["gfx942", "gfx90a"]);
        bytes.truncate(60);
        assert!(crate::kernel::read(Region::whole(&bytes)).is_err());
    }

    #[test]
    fn a_code_object_names_its_target() {
        let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
        bytes.resize(64, 0);
        bytes[0x12] = 224;
        bytes[0x30] = 0x4c;
        let file = crate::kernel::read(Region::whole(&bytes)).map(|f| (f.images[0].arch.clone(), f.not_read.len()));
        assert_eq!(file.ok(), Some((Some(Arch::Other("gfx942".into())), 1)));
    }

    #[test]
    fn spirv_states_its_version() {
        let mut bytes = SPIRV_MAGIC.to_le_bytes().to_vec();
        bytes.extend([0, 4, 1, 0]);
        bytes.extend([0; 12]);
        let file = crate::kernel::read(Region::whole(&bytes)).map(|f| f.images[0].arch.clone());
        assert_eq!(file.ok().flatten(), Some(Arch::Other("spirv1.4".into())));
    }
}
