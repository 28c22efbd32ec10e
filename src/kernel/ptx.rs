//! PTX: NVIDIA's assembly text, which the driver compiles at load.

use super::{Entry, KernelImage, assertion};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Arch, ImageFormat};
use crate::source::Region;

/// The directives at the top of a PTX text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `.version 9.0`
    pub version: Option<(u16, u16)>,
    /// `.target sm_90a`
    pub target: Option<Arch>,
}

impl Header {
    /// Reads up to the first directive that is neither of the three.
    pub fn read(text: &str) -> Self {
        let mut header = Self::default();
        for line in text.lines().map(|l| l.trim_matches(['\0', ' ', '\t', '\r'])) {
            if let Some(rest) = line.strip_prefix(".version") {
                header.version = rest.trim().split_once('.').and_then(|(major, minor)| {
                    let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
                    Some((major.parse().ok()?, minor.get(..digits)?.parse().ok()?))
                });
            } else if header.target.is_none()
                && let Some(rest) = line.strip_prefix(".target")
            {
                header.target = rest.split([',', ' ', '\t']).find(|w| !w.is_empty()).and_then(Arch::from_text);
            } else if !line.is_empty() && !line.starts_with("//") && !line.starts_with(".address_size") {
                break;
            }
        }
        header
    }
}

/// True for bytes that begin like a PTX text: comments, then `.version`.
pub fn is_ptx(head: &[u8]) -> bool {
    let text = crate::source::text(head);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("//"));
    first.is_some_and(|line| line.starts_with(".version"))
}

/// Reads a PTX text as an image.
///
/// # Errors
/// A text over the cap, or without `.target`.
pub fn read_ptx(region: Region<'_>) -> Result<KernelImage> {
    let bytes = region.all(limits::FATBIN_ENTRY_BYTES)?;
    let bytes = bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or_default();
    let text = crate::source::text(bytes).into_owned();
    let header = Header::read(&text);
    if header.version.is_none() && header.target.is_none() {
        return Err(Error::damaged("PTX text without `.version` and `.target`").in_section("PTX"));
    }
    let mut image = KernelImage::new(ImageFormat::Ptx);
    image.arch = header.target;
    image.ptx_version = header.version;
    image.entries = entries(&text)?;
    image.assertions = assertion::in_ptx(&text)?;
    image.ptx = Some(text);
    Ok(image)
}

/// Kernels with their parameters and thread directives.
fn entries(text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut in_head = false;
    for line in text.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once(".entry ") {
            if entries.len() >= limits::KERNELS {
                return Err(Error::limit(format!("more than {} kernels", limits::KERNELS)).in_section("PTX"));
            }
            let name = rest.split(['(', ' ']).next().unwrap_or_default();
            entries.push(Entry { name: name.to_owned(), static_shared_bytes: None, ..Entry::default() });
            in_head = true;
        }
        let Some(entry) = entries.last_mut().filter(|_| in_head) else { continue };
        let declared =
            line.split_once('(').filter(|(before, _)| before.contains(".entry")).map_or(line, |(_, rest)| rest);
        if let Some(declaration) = declared.trim().strip_prefix(".param ") {
            if entry.parameter_bytes.len() >= limits::KERNEL_PARAMETERS {
                let what = format!("more than {} parameters", limits::KERNEL_PARAMETERS);
                return Err(Error::limit(what).in_section("PTX"));
            }
            entry.parameter_bytes.push(parameter_bytes(declaration).unwrap_or(0));
        } else if let Some(rest) = line.strip_prefix(".reqntid") {
            entry.required_threads = product(rest);
        } else if let Some(rest) = line.strip_prefix(".maxntid") {
            entry.max_threads = product(rest);
        } else if line.starts_with('{') {
            in_head = false;
        }
    }
    Ok(entries)
}

/// `.u64 .ptr .global .align 1 k_param_0,` is 8; `.align 64 .b8 k_param_3[128]` is 128.
fn parameter_bytes(declaration: &str) -> Option<u32> {
    let kind = declaration.split_whitespace().find_map(|word| {
        let bits: u32 = word.strip_prefix('.')?.get(1..)?.parse().ok()?;
        matches!(word.as_bytes().get(1), Some(b'u' | b's' | b'b' | b'f')).then_some(bits / 8)
    })?;
    let count = declaration.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(n, _)| n.trim().parse());
    match count {
        Some(Ok(count)) => kind.checked_mul(count),
        Some(Err(_)) => None,
        None => Some(kind),
    }
}

fn product(text: &str) -> Option<u32> {
    text.split([',', ' ', '\t', '{'])
        .filter(|n| !n.is_empty())
        .try_fold(1u32, |p, n| p.checked_mul(n.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_are_read_after_comments() {
        let header =
            Header::read("//\n// Generated\n\n.version 8.4\n.target sm_90a, debug\n.address_size 64\n.target sm_10\n");
        assert_eq!(header.version, Some((8, 4)));
        assert_eq!(header.target, Some(Arch::Sm { number: 90, suffix: Some('a') }));
    }

    #[test]
    fn an_entry_states_parameters_and_threads() {
        let text = ".version 9.0\n.target sm_90\n.visible .entry k(\n.param .u64 .ptr .global .align 1 k_param_0,\n\
                    .param .u32 k_param_1,\n.param .align 64 .b8 k_param_2[128]\n)\n.reqntid 64, 2\n{\n.param .b64 param0;\n}";
        let entries = entries(text).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].name, "k");
        assert_eq!(entries[0].parameter_bytes, [8, 4, 128]);
        assert_eq!(entries[0].required_threads, Some(128));
    }

    #[test]
    fn kernels_of_a_text_have_a_border() {
        let of = |count: usize| entries(&".entry k\n{\n".repeat(count)).map(|entries| entries.len());
        assert_eq!(of(limits::KERNELS).unwrap(), limits::KERNELS);
        assert!(of(limits::KERNELS + 1).unwrap_err().message().contains("more than 65536 kernels"));
    }

    #[test]
    fn the_text_and_its_parameters_have_a_border() {
        // NULs end the text: at the border it is looked at
        let of = |len: u64| read_ptx(Region::whole(&vec![0; usize::try_from(len).unwrap()])).unwrap_err();
        assert_eq!(of(limits::FATBIN_ENTRY_BYTES).kind(), crate::error::ErrorKind::Damaged);
        assert_eq!(of(limits::FATBIN_ENTRY_BYTES + 1).kind(), crate::error::ErrorKind::Limit);
        let of = |count: usize| {
            let text = format!(".entry k(\n{}", ".param .u32 p,\n".repeat(count));
            entries(&text).map(|entries| entries[0].parameter_bytes.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::KERNEL_PARAMETERS), Ok(limits::KERNEL_PARAMETERS));
        assert!(of(limits::KERNEL_PARAMETERS + 1).unwrap_err().contains("more than 32764 parameters"));
    }
}
