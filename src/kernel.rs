//! Kernel files: which GPUs the images in them are for, what they need, and what they assert.
//!
//! [`read`] takes a whole file, a member of a package or the bytes of a kernel inside a library, and decides
//! by content. NVIDIA's formats are read; the others are recognised and said to be unread.

pub mod assertion;
pub mod cubin;
pub mod embedded;
pub mod fatbin;
pub mod other_vendors;
pub mod ptx;
mod sections;

use crate::error::{Error, Result};
use crate::model::{Arch, AssertionBound, Evidence, Image, ImageFormat, Kernel, Witness};
use crate::source::Region;
use assertion::Assertion;

/// What a kernel file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// ELF for one NVIDIA target
    Cubin,
    /// several cubins and PTX texts
    Fatbin,
    /// NVIDIA's assembly text
    Ptx,
    /// ELF for one AMD target
    Hsaco,
    /// clang's bundle of code objects for several AMD targets
    OffloadBundle,
    /// SPIR-V
    Spirv,
    /// ELF for an Intel GPU
    Zebin,
    /// compiled Metal library
    Metal,
}

/// A kernel file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFile {
    /// by content
    pub format: FileFormat,
    /// in file order
    pub images: Vec<KernelImage>,
    /// parts that were not read, and why: one clause each
    pub not_read: Vec<String>,
}

/// One image: a cubin, a PTX text, a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelImage {
    /// its format
    pub format: ImageFormat,
    /// its target; `None` when the bytes do not tell
    pub arch: Option<Arch>,
    /// the header's two layouts disagree about the target
    pub is_arch_uncertain: bool,
    /// PTX instruction set version; of a cubin: that of the text inside it, which is not what it needs to load
    pub ptx_version: Option<(u16, u16)>,
    /// CUDA toolkit that assembled it
    pub toolkit: Option<(u16, u16)>,
    /// kernels in it
    pub entries: Vec<Entry>,
    /// texts that its assertions print
    pub assertions: Vec<Assertion>,
    /// PTX text: the image itself, or what the assembler kept of it in a cubin
    pub ptx: Option<String>,
    /// source file it was compiled from, as the build host named it
    pub source_path: Option<String>,
}

impl KernelImage {
    fn new(format: ImageFormat) -> Self {
        Self {
            format,
            arch: None,
            is_arch_uncertain: false,
            ptx_version: None,
            toolkit: None,
            entries: Vec::new(),
            assertions: Vec::new(),
            ptx: None,
            source_path: None,
        }
    }

    /// The image in the vocabulary's terms, with the numbers of the kernel `symbol`, or of the only kernel.
    pub fn describe(&self, symbol: Option<&str>) -> Image {
        let entry = match (self.entries.as_slice(), symbol) {
            ([only], _) => Some(only),
            (several, Some(symbol)) => several.iter().find(|e| e.name == symbol),
            _ => None,
        };
        Image {
            format: self.format,
            arch: self.arch.clone(),
            ptx_version: self.ptx_version.filter(|_| self.format == ImageFormat::Ptx),
            toolkit: self.toolkit,
            registers: entry.and_then(|e| e.registers),
            static_shared_bytes: entry.and_then(|e| e.static_shared_bytes),
            required_threads: entry.and_then(|e| e.required_threads),
            max_threads: entry.and_then(|e| e.max_threads),
            frame_bytes: entry.and_then(|e| e.frame_bytes),
            parameter_bytes: entry.map(|e| e.parameter_bytes.clone()).unwrap_or_default(),
            entries: self.entries.iter().map(|e| e.name.clone()).collect(),
        }
    }
}

/// A kernel in an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// symbol
    pub name: String,
    /// registers per thread
    pub registers: Option<u32>,
    /// static shared memory per block, without what the driver reserves
    pub static_shared_bytes: Option<u64>,
    /// threads per block that it requires (`.reqntid`)
    pub required_threads: Option<u32>,
    /// threads per block that it allows (`.maxntid`)
    pub max_threads: Option<u32>,
    /// stack bytes per thread; not zero means spilled registers
    pub frame_bytes: Option<u32>,
    /// sizes of the parameters in order
    pub parameter_bytes: Vec<u32>,
}

/// What the first bytes say; `None` for anything that is no kernel file.
///
/// 4 KiB are enough: PTX may begin with comments.
pub fn recognise(head: &[u8]) -> Option<FileFormat> {
    let u32_at = |offset: usize| {
        head.get(offset..offset.checked_add(4)?).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
    };
    if head.starts_with(b"\x7fELF") {
        return match head.get(0x12..0x14) {
            Some([190, 0]) => Some(FileFormat::Cubin),
            Some([224, 0]) => Some(FileFormat::Hsaco),
            Some([205, 0]) => Some(FileFormat::Zebin),
            _ => None,
        };
    }
    if u32_at(0) == Some(fatbin::MAGIC) {
        return Some(FileFormat::Fatbin);
    }
    if head.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") || head.starts_with(b"CCOB") {
        return Some(FileFormat::OffloadBundle);
    }
    if u32_at(0) == Some(other_vendors::SPIRV_MAGIC) {
        return Some(FileFormat::Spirv);
    }
    if head.starts_with(b"MTLB") {
        return Some(FileFormat::Metal);
    }
    ptx::is_ptx(head).then_some(FileFormat::Ptx)
}

/// Reads a kernel file.
///
/// # Errors
/// Damaged or over-long files, and bytes in no known kernel format.
pub fn read(region: Region<'_>) -> Result<KernelFile> {
    let Some(format) = recognise(region.head(4096)) else {
        return Err(Error::damaged(
            "no kernel file: neither cubin, fatbin, PTX, AMD code object, SPIR-V, Intel GPU binary nor Metal library",
        )
        .help("compile the package again, or copy the file again"));
    };
    let mut file = KernelFile { format, images: Vec::new(), not_read: Vec::new() };
    match format {
        FileFormat::Cubin => file.images.push(cubin::read_cubin(region)?),
        FileFormat::Fatbin => fatbin::read_fatbin(region, &mut file)?,
        FileFormat::Ptx => file.images.push(ptx::read_ptx(region)?),
        FileFormat::Hsaco | FileFormat::OffloadBundle | FileFormat::Spirv | FileFormat::Zebin | FileFormat::Metal => {
            other_vendors::recognise_images(region, format, &mut file)?;
        }
    }
    Ok(file)
}

/// Fills in what a kernel's file says: it is present, its images and targets, registers, assertions.
pub fn describe(kernel: &mut Kernel, file: &KernelFile) {
    let symbol = kernel.symbol.clone().unwrap_or_else(|| kernel.name.clone());
    kernel.present = Some(true);
    kernel.images = file.images.iter().map(|image| image.describe(Some(&symbol))).collect();
    kernel.archs.clear();
    for image in &file.images {
        if let Some(arch) = &image.arch
            && !kernel.archs.contains(arch)
        {
            kernel.archs.push(arch.clone());
        }
    }
    kernel.registers = kernel.images.iter().find_map(|image| image.registers);
    kernel.not_read.clone_from(&file.not_read);
    for image in file.images.iter().filter(|image| image.is_arch_uncertain) {
        let arch = image.arch.as_ref().map_or_else(|| "no known target".to_owned(), ToString::to_string);
        kernel.not_read.push(format!("its header is of an unknown layout, which seems to say {arch}"));
    }
    for image in &file.images {
        for assertion in &image.assertions {
            add_assertion(kernel, assertion);
        }
    }
    if let Some(path) = file.images.iter().find_map(|image| image.source_path.as_deref()) {
        let mut evidence = Evidence::new(Witness::Kernel, format!("compiled from {path}"));
        evidence.member.clone_from(&kernel.file);
        if !kernel.evidence.contains(&evidence) {
            kernel.evidence.push(evidence);
        }
    }
}

/// The same assertion stands in every image, and in the source too, where there is one.
fn add_assertion(kernel: &mut Kernel, assertion: &Assertion) {
    let index = kernel.assertions.iter().position(|text| *text == assertion.text).unwrap_or_else(|| {
        kernel.assertions.push(assertion.text.clone());
        kernel.assertions.len() - 1
    });
    let Some(origin) = &assertion.bound else { return };
    if kernel.assertion_bounds.iter().all(|b| b.assertion != index) {
        kernel.assertion_bounds.push(AssertionBound {
            assertion: index,
            parameters: origin.parameters.clone(),
            is_parameter: origin.is_parameter,
            constant: origin.constant,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_content() {
        let elf = |machine: u8| {
            let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
            bytes.resize(0x40, 0);
            bytes[0x12] = machine;
            bytes
        };
        assert_eq!(recognise(&elf(190)), Some(FileFormat::Cubin));
        assert_eq!(recognise(&elf(224)), Some(FileFormat::Hsaco));
        assert_eq!(recognise(&elf(205)), Some(FileFormat::Zebin));
        assert_eq!(recognise(&elf(62)), None, "an x86-64 library is no kernel");
        assert_eq!(recognise(&[0x50, 0xed, 0x55, 0xba]), Some(FileFormat::Fatbin));
        assert_eq!(recognise(&[0x03, 0x02, 0x23, 0x07]), Some(FileFormat::Spirv));
        assert_eq!(recognise(b"MTLB"), Some(FileFormat::Metal));
        assert_eq!(recognise(b"//\n\n.version 8.4\n.target sm_90a\n"), Some(FileFormat::Ptx));
        assert_eq!(recognise(b""), None);
    }

    #[test]
    fn a_kernel_takes_over_what_its_file_says() {
        let mut image = KernelImage::new(ImageFormat::Cubin);
        image.arch = Some(Arch::Sm { number: 90, suffix: Some('a') });
        image.entries.push(Entry { name: "k".into(), registers: Some(12), ..Entry::default() });
        image.entries.push(Entry { name: "other".into(), registers: Some(99), ..Entry::default() });
        let file = KernelFile { format: FileFormat::Cubin, images: vec![image], not_read: Vec::new() };
        let mut kernel = Kernel::new("k", crate::model::KernelKind::Triton);
        describe(&mut kernel, &file);
        assert_eq!(kernel.present, Some(true));
        assert_eq!(kernel.registers, Some(12), "of the kernel's own entry");
        assert_eq!(kernel.archs, [Arch::Sm { number: 90, suffix: Some('a') }]);
    }
}
