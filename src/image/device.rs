//! Which device a library was compiled for, by what it imports and needs (format reference 4.3, 4.4).

use super::Image;
use super::imports::{Provider, provider};
use crate::model::{DeviceKind, Evidence, Witness};
use crate::target::release_tables::{self, ShimClass};

/// Libraries that only a build for that device needs, by the beginning of their names.
const LIBRARIES: &[(&str, &str)] = &[
    ("libcuda.so", "cuda"),
    ("libtorch_cuda", "cuda"),
    ("libamdhip64", "cuda"),
    ("libtorch_hip", "cuda"),
    ("libze_loader", "xpu"),
    ("libsycl", "xpu"),
    ("libtorch_xpu", "xpu"),
    ("torch_cuda.dll", "cuda"),
    ("nvcuda.dll", "cuda"),
    ("torch_xpu.dll", "xpu"),
];

fn device_of_import(name: &str) -> Option<&'static str> {
    match provider(name) {
        Provider::Gpu => Some("cuda"),
        Provider::Xpu => Some("xpu"),
        Provider::Shim => device_of_shim(name),
        _ => None,
    }
}

/// Words in shims' names that stand for a device: `aoti_torch_cuda_addmm_out`, `aoti_torch_create_cuda_guard`.
fn device_of_shim(name: &str) -> Option<&'static str> {
    // from the device-string parser that every library has; they say nothing
    if name.starts_with("aoti_torch_device_type_") {
        return None;
    }
    match release_tables::shim(name).map(|s| s.class) {
        Some(ShimClass::Cuda) => Some("cuda"),
        Some(ShimClass::Xpu) => Some("xpu"),
        Some(ShimClass::Mps) => Some("mps"),
        Some(ShimClass::Any | ShimClass::Cpu) => None,
        // newer than the table
        None => ["cuda", "xpu", "mps"].into_iter().find(|d| name.starts_with(&format!("aoti_torch_{d}_"))),
    }
}

/// The device and what speaks for it. `None` for the device when imports cannot be read; `cpu` is concluded
/// from the absence of all others. A needed library that nothing is imported from does not count.
pub fn device(image: &Image<'_>) -> (Option<DeviceKind>, Vec<Evidence>) {
    let Ok(imports) = image.imports() else { return (None, Vec::new()) };
    let devices: Vec<Option<&'static str>> = imports.iter().map(|import| device_of_import(import.name)).collect();
    let mut evidence = Vec::new();
    let mut found: Option<&'static str> = None;
    let names = |device| imports.iter().map(|i| i.name).zip(&devices).filter(move |(_, d)| **d == Some(device));
    for device in ["cuda", "xpu", "mps"] {
        let Some((first, _)) = names(device).next() else { continue };
        let more = match names(device).count() {
            1 => String::new(),
            n => format!(" and {} more of {device}", n.saturating_sub(1)),
        };
        evidence.push(Evidence::new(Witness::Imports, format!("{first}{more}")));
        found = found.or(Some(device));
    }
    if let Ok(needed) = image.needed() {
        for library in &needed.libraries {
            let base = library.rsplit(['/', '\\']).next().unwrap_or(library);
            if let Some((_, device)) = LIBRARIES.iter().find(|row| base.starts_with(row.0))
                && found == Some(device)
            {
                evidence.push(Evidence::new(Witness::Needed, *library));
            }
        }
    }
    if found.is_none() {
        evidence.push(Evidence::new(Witness::Imports, "no CUDA, XPU or MPS functions are imported"));
    }
    (Some(DeviceKind::from_name(found.unwrap_or("cpu"))), evidence)
}

/// True when the GPU functions are AMD's: such a build calls its device `cuda`.
pub fn is_rocm(image: &Image<'_>) -> bool {
    image
        .imports()
        .is_ok_and(|imports| imports.iter().any(|i| i.name.starts_with("hip") && provider(i.name) == Provider::Gpu))
}
