//! From a person's word to a GPU.

use super::{Gpu, GpuKind, Product, TABLE, capability};
use crate::target::{UsageError, near_matches};

/// Vendor and family words, which people leave out.
const SKIPPED: &[&str] = &["nvidia", "tesla", "geforce", "corporation", "gpu", "graphics", "nvgpu"];

/// Form factors and kinds of memory: the capability does not depend on them.
const FORMS: &[&str] = &[
    "hbm2", "hbm2e", "hbm3", "hbm3e", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "nvl", "ac", "laptop",
    "mobile", "with", "max", "q", "design", "fhhl", "lc",
];

/// Names shown for one that is not known.
const NEAR: usize = 5;

/// Marketing names of AMD's data centre GPUs (LLVM, AMDGPUUsage, "Processors").
const AMD: &[(&str, &str)] = &[
    ("mi100", "gfx908"),
    ("mi210", "gfx90a"),
    ("mi250", "gfx90a"),
    ("mi250x", "gfx90a"),
    ("mi300a", "gfx942"),
    ("mi300x", "gfx942"),
    ("mi325x", "gfx942"),
    ("mi350x", "gfx950"),
    ("mi355x", "gfx950"),
];

pub(super) fn read(text: &str) -> Result<Gpu, UsageError> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some(sm) = capability_number(&lower) {
        return match capability(sm) {
            Some(_) => Ok(Gpu { name: format!("sm_{sm}"), kind: GpuKind::Nvidia { sm, memory_bytes: None } }),
            None => Err(unknown(text, &near_capabilities(sm))),
        };
    }
    let words = words(&lower);
    if let Some(target) = other_vendor(&lower, &words) {
        return Ok(Gpu { name: target.clone(), kind: GpuKind::Other(target) });
    }
    let stated_gib = words.iter().find_map(|w| memory_gib(w));
    let is_part = words.iter().any(|w| w == "mig" || w == "laptop" || w == "mobile");
    match find(&words) {
        Some(product) => {
            let stated = stated_gib.filter(|_| !product.size_is_host_memory);
            let gib = stated.or(product.memory_gib).filter(|_| !is_part);
            let memory_bytes = gib.map(|gib| gib << 30);
            Ok(Gpu { name: product.name.clone(), kind: GpuKind::Nvidia { sm: product.sm, memory_bytes } })
        }
        None => Err(unknown(text, &near_names(&words.join(" ")))),
    }
}

/// `sm_90a`, `sm90`, `compute_90`, `9.0`, `(9, 0)`, `90` as capability times ten.
fn capability_number(text: &str) -> Option<u16> {
    for prefix in ["sm_", "sm", "compute_", "cc"] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return rest.trim_end_matches(['a', 'f']).parse().ok();
        }
    }
    let text = text.trim_matches(['(', ')', '[', ']', ' ']);
    if let Some((major, minor)) = text.split_once(['.', ',']) {
        let (major, minor): (u16, u16) = (major.trim().parse().ok()?, minor.trim().parse().ok()?);
        return (minor < 10).then(|| major.checked_mul(10)?.checked_add(minor)).flatten();
    }
    let number: u16 = text.parse().ok()?;
    match number {
        // `AOTI_COMPUTE_CAPABILITY` is written so: 90, 120
        50..=999 => Some(number),
        5..=49 => Some(number * 10),
        _ => None,
    }
}

fn other_vendor(lower: &str, words: &[String]) -> Option<String> {
    if lower.starts_with("gfx") && lower.chars().all(|c| c.is_ascii_alphanumeric() || "-:+".contains(c)) {
        return Some(lower.split(':').next()?.to_owned());
    }
    words.iter().find_map(|word| AMD.iter().find(|row| row.0 == word).map(|row| row.1.to_owned()))
}

fn words(lower: &str) -> Vec<String> {
    lower
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
        .filter(|w| !w.is_empty() && !SKIPPED.contains(w))
        .map(str::to_owned)
        .collect()
}

/// `80gb`, `480gb`, `144g`
fn memory_gib(word: &str) -> Option<u64> {
    let digits = word.strip_suffix("gb").or_else(|| word.strip_suffix("gib")).or_else(|| word.strip_suffix('g'))?;
    digits.parse().ok().filter(|gib| (1..10_000).contains(gib))
}

fn key(name: &str) -> String {
    words(&name.to_ascii_lowercase()).concat()
}

fn find(words: &[String]) -> Option<&'static Product> {
    let exact = |wanted: &str| {
        TABLE.products.list.iter().find(|p| std::iter::once(&p.name).chain(&p.also).any(|n| key(n) == wanted))
    };
    let before_mig: Vec<String> = words.iter().take_while(|w| *w != "mig").cloned().collect();
    let without_size: Vec<String> = before_mig.iter().filter(|w| memory_gib(w).is_none()).cloned().collect();
    let plain: String = without_size.iter().filter(|w| !FORMS.contains(&w.as_str())).map(String::as_str).collect();
    if plain.is_empty() {
        return None;
    }
    exact(&words.concat())
        .or_else(|| exact(&without_size.concat()))
        .or_else(|| exact(&plain))
        .or_else(|| exact(&format!("rtx{plain}")))
        .or_else(|| exact(&format!("gtx{plain}")))
}

fn near_capabilities(sm: u16) -> Vec<String> {
    let mut near: Vec<u16> = TABLE.capability.iter().map(|c| c.sm).collect();
    near.sort_by_key(|known| known.abs_diff(sm));
    near.iter().take(3).map(|sm| format!("{}.{}", sm / 10, sm % 10)).collect()
}

fn unknown(text: &str, near: &[String]) -> UsageError {
    let meant = match near {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(", ")),
    };
    UsageError::new(format!(
        "GPU `{text}` is not known: {meant}A capability (9.0, sm_90) is understood too; `nvidia-smi \
         --query-gpu=compute_cap --format=csv` prints it"
    ))
}

/// Misspelt names, and names that the given one is a part of (`RTX 6000` stands for three generations).
fn near_names(wanted: &str) -> Vec<String> {
    let names: Vec<&str> =
        TABLE.products.list.iter().flat_map(|p| std::iter::once(&p.name).chain(&p.also)).map(String::as_str).collect();
    let asked = words(wanted);
    let has_all = |name: &str| {
        let known = words(&name.to_ascii_lowercase());
        !asked.is_empty() && asked.iter().all(|w| known.contains(w))
    };
    let products = TABLE.products.list.iter().map(|p| p.name.as_str());
    let mut near: Vec<&str> = products.filter(|name| has_all(name)).take(NEAR).collect();
    near.extend(near_matches(wanted, &names));
    let mut seen = std::collections::HashSet::new();
    near.into_iter().filter(|n| seen.insert(*n)).take(NEAR).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sm(text: &str) -> Option<u16> {
        match Gpu::from_text(text) {
            Ok(Gpu { kind: GpuKind::Nvidia { sm, .. }, .. }) => Some(sm),
            _ => None,
        }
    }

    fn gib(text: &str) -> Option<u64> {
        Gpu::from_text(text).ok().and_then(|g| g.memory_bytes()).map(|b| b >> 30)
    }

    #[test]
    fn capabilities_are_read_in_every_notation() {
        for text in ["sm_90", "sm_90a", "SM90", "compute_90", "9.0", "(9, 0)", "9,0", "90", "9", " 9.0 "] {
            assert_eq!(sm(text), Some(90), "{text}");
        }
        assert_eq!(sm("sm_100a"), Some(100));
        assert_eq!(sm("120"), Some(120), "12.0, not 1.20");
        assert_eq!(sm("12.1"), Some(121));
    }

    #[test]
    fn names_are_read_as_nvidia_smi_prints_them() {
        let rows = [
            ("NVIDIA H100 80GB HBM3", 90, Some(80)),
            ("NVIDIA H100 PCIe", 90, Some(80)),
            ("NVIDIA H100 NVL", 90, Some(94)),
            ("NVIDIA H200", 90, Some(141)),
            ("NVIDIA GH200 480GB", 90, None),
            ("NVIDIA A100-SXM4-40GB", 80, Some(40)),
            ("NVIDIA A100 80GB PCIe", 80, Some(80)),
            ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 80, None),
            ("NVIDIA A10G", 86, Some(24)),
            ("A10G", 86, Some(24)),
            ("NVIDIA L40S", 89, Some(48)),
            ("Tesla T4", 75, Some(16)),
            ("T4", 75, Some(16)),
            ("Tesla V100-SXM2-32GB", 70, Some(32)),
            ("Tesla P100-PCIE-16GB", 60, Some(16)),
            ("NVIDIA B200", 100, Some(180)),
            ("NVIDIA B300 SXM6 AC", 103, Some(288)),
            ("NVIDIA GB10", 121, Some(128)),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120, Some(96)),
            ("NVIDIA RTX 6000 Ada Generation", 89, Some(48)),
            ("NVIDIA RTX A6000", 86, Some(48)),
            ("Quadro RTX 6000", 75, Some(24)),
            ("NVIDIA GeForce RTX 4090", 89, Some(24)),
            ("NVIDIA GeForce RTX 4090 Laptop GPU", 89, None),
            ("NVIDIA GeForce RTX 2080 with Max-Q Design", 75, Some(8)),
            ("rtx4090", 89, Some(24)),
            ("3090", 86, Some(24)),
            ("Orin (nvgpu)", 87, None),
            ("NVIDIA Thor", 110, None),
        ];
        for (text, capability, memory) in rows {
            assert_eq!(sm(text), Some(capability), "{text}");
            assert_eq!(gib(text), memory, "{text}");
        }
    }

    #[test]
    fn unknown_names_come_with_near_ones() {
        let says = |text: &str| Gpu::from_text(text).expect_err("unknown").to_string();
        assert!(says("H10").contains("H100"));
        assert!(says("A1000").contains("A100"));
        let many = says("RTX 6000");
        assert!(many.contains("Ada") && many.contains("Blackwell"), "three generations are called so: {many}");
        assert!(says("8.4").contains("8.6"));
        assert!(says("").contains("not known"));
        assert!(says("sm_99x").contains("not known"));
        assert!(says(&"x".repeat(100_000)).contains("not known"));
    }

    #[test]
    fn other_vendors_are_named_and_not_checked() {
        for text in ["gfx942", "gfx942:sramecc+:xnack-", "AMD Instinct MI300X"] {
            assert_eq!(Gpu::from_text(text).map(|g| g.kind), Ok(GpuKind::Other("gfx942".into())), "{text}");
        }
    }
}
