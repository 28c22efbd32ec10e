//! Kernels inside the library: `aot_inductor.embed_kernel_binary` (torch 2.8 and later).
//!
//! For each kernel the library has the symbols `__<kernel>_start` and `__<kernel>_end`
//! (torch/_inductor/codecache.py, `_build_kernel_binary…`); the bytes between are a cubin or a fatbin.

use super::KernelFile;
use crate::error::{Error, Result};
use crate::source::Region;
use std::collections::HashMap;

/// A kernel of a library.
#[derive(Debug)]
pub struct Embedded {
    /// `triton_poi_fused_relu_0`, from the symbols' names
    pub kernel: String,
    /// address of its first byte
    pub address: u64,
    /// what it holds, or why it could not be read
    pub file: Result<KernelFile>,
}

/// Finds and reads the kernels in a library.
///
/// `symbols` are its defined symbols, as name and address; `bytes` gives the bytes of the file for an
/// address and a length. In order of address.
pub fn read_embedded<'a, 'n>(
    symbols: impl IntoIterator<Item = (&'n str, u64)>,
    bytes: impl Fn(u64, u64) -> Option<Region<'a>>,
) -> Vec<Embedded> {
    let mut starts: Vec<(&str, u64)> = Vec::new();
    let mut ends: HashMap<&str, u64> = HashMap::new();
    for (name, address) in symbols {
        // Mach-O puts one more underscore before each name
        let Some(name) = name.strip_prefix("__") else { continue };
        if let Some(kernel) = name.strip_suffix("_start") {
            starts.push((kernel, address));
        } else if let Some(kernel) = name.strip_suffix("_end") {
            ends.insert(kernel, address);
        }
    }
    starts.sort_unstable_by_key(|(name, address)| (*address, *name));
    starts.dedup();
    let mut found: Vec<Embedded> = Vec::new();
    for (kernel, address) in starts {
        // pairs of other makes (`__bss_start` and `__bss_end`) hold no kernel
        let Some(end) = ends.get(kernel).copied() else { continue };
        let Some(len) = end.checked_sub(address).filter(|len| *len > 0) else { continue };
        let file = match bytes(address, len) {
            Some(region) if super::recognise(region.head(4096)).is_none() => continue,
            Some(region) => super::read(region),
            None => Err(Error::damaged(format!("{len} bytes at address {address:#x} are not in the file"))),
        };
        let file = file.map_err(|e| e.in_section(format!("__{kernel}_start")));
        found.push(Embedded { kernel: kernel.trim_start_matches('_').to_owned(), address, file });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_symbols_give_kernels() {
        let text = b"xx.version 8.0\n.target sm_80\n.visible .entry k()\n{\n}\n".to_vec();
        let len = text.len() as u64;
        let symbols =
            [("__k_end", 0x100 + len), ("__k_start", 0x102), ("__bss_start", 0x100), ("__bss_end", 0x102), ("main", 7)];
        let found = read_embedded(symbols, |address, len| Region::whole(&text).sub(address.checked_sub(0x100)?, len));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kernel, "k");
        let file = found[0].file.as_ref().map(|f| f.images.len());
        assert_eq!(file.ok(), Some(1));
    }

    #[test]
    fn a_kernel_outside_the_file_is_an_error_not_an_absence() {
        let found = read_embedded([("__k_start", 16), ("__k_end", 64)], |_, _| None);
        assert!(found[0].file.is_err());
        assert!(read_embedded([("__k_start", 64), ("__k_end", 16)], |_, _| None).is_empty());
    }
}
