//! Does a kernel image run on a GPU?
//!
//! Binary rules: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility", and the NVIDIA
//! Blackwell Compatibility Guide for `a` and `f` targets. PTX rules were tried with ptxas 12.9 and 13.5.

use super::{Gpu, GpuKind, TABLE, capability};
use crate::model::{Arch, Image, ImageFormat, Kernel};

/// What happens to an image, or to a kernel with several, on a GPU. Ordered from best to worst.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunsOn {
    /// as it is
    Runs,
    /// after the driver has compiled it, which costs time at the first load
    RunsAfterJit {
        /// CUDA version that the driver must have for this PTX; `None` when the text does not state it
        cuda: Option<(u16, u16)>,
    },
    /// it cannot be told, and why
    Unknown(String),
    /// the driver refuses it, and why
    WillNotLoad(String),
}

/// Judges one image.
pub fn runs_on(image: &Image, gpu: &Gpu) -> RunsOn {
    let GpuKind::Nvidia { sm: wanted, .. } = gpu.kind else {
        return RunsOn::Unknown("kernels of other vendors than NVIDIA are not checked".into());
    };
    let (number, suffix) = match (&image.arch, image.format) {
        (Some(Arch::Sm { number, suffix }), ImageFormat::Cubin | ImageFormat::Ptx) => (*number, *suffix),
        (_, ImageFormat::Cubin | ImageFormat::Ptx) => {
            return RunsOn::Unknown("its file does not tell its target".into());
        }
        (Some(arch), _) => return RunsOn::WillNotLoad(format!("it is for {arch}, another vendor's GPU")),
        (None, _) => return RunsOn::WillNotLoad("it is for another vendor's GPU".into()),
    };
    let arch = Arch::Sm { number, suffix };
    let fits = match image.format {
        ImageFormat::Ptx => ptx_fits(number, suffix, wanted),
        _ => code_fits(number, suffix, wanted),
    };
    match fits {
        Fit::Yes if image.format == ImageFormat::Ptx => {
            RunsOn::RunsAfterJit { cuda: image.ptx_version.and_then(ptx_cuda_version) }
        }
        Fit::Yes => RunsOn::Runs,
        Fit::Open(why) => RunsOn::Unknown(format!("it is {arch}, and {why}")),
        Fit::No(why) => RunsOn::WillNotLoad(format!("it is {arch}, {why}")),
    }
}

enum Fit {
    Yes,
    No(&'static str),
    Open(&'static str),
}

fn code_fits(number: u16, suffix: Option<char>, wanted: u16) -> Fit {
    if number == wanted {
        return Fit::Yes;
    }
    // 10.1 became 11.0 with CUDA 13; whether its driver takes the older code is not documented
    if number == 101 && wanted == 110 {
        return Fit::Open("capability 10.1 was renumbered to 11.0");
    }
    match suffix {
        Some('a') => return Fit::No("code for exactly that capability"),
        Some('f') if family(number).contains(&wanted) => return Fit::Yes,
        Some(_) => return Fit::No("code for that family"),
        None => {}
    }
    if number / 10 != wanted / 10 {
        return Fit::No("code for that major version");
    }
    if number > wanted {
        return Fit::No("code for a newer GPU of the same generation");
    }
    if is_tegra(number) != is_tegra(wanted) {
        return Fit::Open(
            "NVIDIA does not promise that code for discrete GPUs and for systems on a chip is exchangeable",
        );
    }
    Fit::Yes
}

fn ptx_fits(number: u16, suffix: Option<char>, wanted: u16) -> Fit {
    match suffix {
        Some('a') if number == wanted => Fit::Yes,
        Some('a') => Fit::No("assembly text for exactly that capability"),
        Some(_) if family(number).contains(&wanted) => Fit::Yes,
        Some(_) => Fit::No("assembly text for that family"),
        None if number <= wanted => Fit::Yes,
        None => Fit::No("assembly text for a newer GPU"),
    }
}

fn family(number: u16) -> &'static [u16] {
    capability(number).map_or(&[], |row| row.family.as_slice())
}

fn is_tegra(number: u16) -> bool {
    capability(number).is_some_and(|row| row.tegra)
}

/// CUDA version that introduced a PTX version (PTX ISA, "Release Notes"; the same table in
/// triton/third_party/nvidia/backend/compiler.py). `None` below 7.0, which every driver of the table knows.
pub fn ptx_cuda_version(ptx: (u16, u16)) -> Option<(u16, u16)> {
    match ptx {
        (7, minor) => Some((11, minor)),
        (8, minor @ 0..=5) => Some((12, minor)),
        (8, minor) => Some((12, minor + 1)),
        (major @ 9.., minor) => Some((major.saturating_add(4), minor)),
        _ => None,
    }
}

/// Judges a kernel: the driver takes the image that suits best.
pub fn kernel_runs_on(kernel: &Kernel, gpu: &Gpu) -> RunsOn {
    let verdicts = kernel.images.iter().map(|image| runs_on(image, gpu));
    let is_open = !kernel.not_read.is_empty();
    match verdicts.min() {
        Some(RunsOn::WillNotLoad(_))
            if is_open && matches!(gpu.kind, GpuKind::Nvidia { .. }) && !has_other_vendor(kernel) =>
        {
            RunsOn::Unknown(kernel.not_read.join("; "))
        }
        Some(RunsOn::WillNotLoad(why)) if kernel.images.len() > 1 => {
            let archs: Vec<String> = kernel
                .images
                .iter()
                .map(|image| {
                    let kind = if image.format == ImageFormat::Ptx { " (PTX)" } else { "" };
                    image.arch.as_ref().map_or_else(|| "unknown".into(), |arch| format!("{arch}{kind}"))
                })
                .collect();
            // every image was refused; one reason stands for all
            RunsOn::WillNotLoad(format!("it has {}; {why}", archs.join(", ")))
        }
        Some(verdict) => verdict,
        None if is_open => RunsOn::Unknown(kernel.not_read.join("; ")),
        None => RunsOn::Unknown(match &kernel.file {
            Some(file) => format!("its file {file} is not here or was not read"),
            None => "its images were not read".into(),
        }),
    }
}

fn has_other_vendor(kernel: &Kernel) -> bool {
    kernel.images.iter().any(|i| !matches!(i.format, ImageFormat::Cubin | ImageFormat::Ptx))
}

/// On which of the common GPUs all kernels of a model run, and on which not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommonGpus {
    /// as they are
    pub runs: Vec<&'static str>,
    /// after the driver has compiled some
    pub runs_after_jit: Vec<&'static str>,
    /// at least one kernel is refused
    pub does_not: Vec<&'static str>,
    /// not decidable
    pub unknown: Vec<&'static str>,
}

/// Judges the common GPUs of the table, newest first; `None` when the model has no GPU kernels with images of NVIDIA's.
pub fn common_gpus(kernels: &[Kernel]) -> Option<CommonGpus> {
    let kernels: Vec<&Kernel> = kernels.iter().filter(|k| !k.images.is_empty() && !has_other_vendor(k)).collect();
    if kernels.is_empty() {
        return None;
    }
    let mut common = CommonGpus::default();
    for product in TABLE.products.list.iter().filter(|p| p.common) {
        let gpu = Gpu { name: product.name.clone(), kind: GpuKind::Nvidia { sm: product.sm, memory_bytes: None } };
        // the weakest kernel decides
        let list = match kernels.iter().map(|kernel| kernel_runs_on(kernel, &gpu)).max() {
            Some(RunsOn::Runs) | None => &mut common.runs,
            Some(RunsOn::RunsAfterJit { .. }) => &mut common.runs_after_jit,
            Some(RunsOn::Unknown(_)) => &mut common.unknown,
            Some(RunsOn::WillNotLoad(_)) => &mut common.does_not,
        };
        list.push(product.name.as_str());
    }
    Some(common)
}

impl std::fmt::Display for CommonGpus {
    /// `runs on H100, H200, GH200; not on A100, L4, B200`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("runs on", &self.runs),
            ("after compilation by the driver on", &self.runs_after_jit),
            ("not on", &self.does_not),
            ("not known for", &self.unknown),
        ];
        let mut sep = "";
        for (words, names) in parts.iter().filter(|(_, names)| !names.is_empty()) {
            write!(f, "{sep}{words} {}", names.join(", "))?;
            sep = "; ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::KernelKind;

    fn image(format: ImageFormat, target: &str) -> Image {
        Image {
            format,
            arch: Arch::from_text(target),
            ptx_version: (format == ImageFormat::Ptx).then_some((8, 7)),
            toolkit: None,
            registers: None,
            static_shared_bytes: None,
            required_threads: None,
            max_threads: None,
            frame_bytes: None,
            parameter_bytes: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn verdict(format: ImageFormat, target: &str, gpu: &str) -> RunsOn {
        runs_on(&image(format, target), &Gpu::from_text(gpu).expect("a GPU"))
    }

    #[test]
    fn code_runs_on_its_major_and_newer_minors() {
        for (target, gpu) in [
            ("sm_80", "A100"),
            ("sm_80", "A10"),
            ("sm_80", "L4"),
            ("sm_86", "L40S"),
            ("sm_90", "H200"),
            ("sm_90a", "H100"),
            ("sm_100", "B300"),
            ("sm_100f", "B300"),
            ("sm_120", "GB10"),
            ("sm_120f", "GB10"),
            ("sm_75", "T4"),
            ("sm_87", "Orin"),
        ] {
            assert_eq!(verdict(ImageFormat::Cubin, target, gpu), RunsOn::Runs, "{target} on {gpu}");
        }
        for (target, gpu) in [
            ("sm_86", "A100"),
            ("sm_89", "A10"),
            ("sm_90", "B200"),
            ("sm_90a", "B200"),
            ("sm_90a", "A100"),
            ("sm_100a", "B300"),
            ("sm_103f", "B200"),
            ("sm_100f", "RTX 5090"),
            ("sm_120", "B200"),
            ("sm_80", "T4"),
            ("sm_120a", "GB10"),
        ] {
            assert!(matches!(verdict(ImageFormat::Cubin, target, gpu), RunsOn::WillNotLoad(_)), "{target} on {gpu}");
        }
    }

    #[test]
    fn systems_on_a_chip_are_apart() {
        assert!(matches!(verdict(ImageFormat::Cubin, "sm_86", "Orin"), RunsOn::Unknown(_)));
        assert!(matches!(verdict(ImageFormat::Cubin, "sm_87", "L4"), RunsOn::Unknown(_)));
        assert!(matches!(verdict(ImageFormat::Cubin, "sm_101", "Thor"), RunsOn::Unknown(_)));
    }

    #[test]
    fn text_without_suffix_runs_on_everything_newer() {
        let jit = RunsOn::RunsAfterJit { cuda: Some((12, 8)) };
        for (target, gpu) in [("sm_80", "B200"), ("sm_90", "RTX 5090"), ("sm_90a", "H100"), ("sm_100f", "B300")] {
            assert_eq!(verdict(ImageFormat::Ptx, target, gpu), jit, "{target} on {gpu}");
        }
        for (target, gpu) in [("sm_90", "A100"), ("sm_90a", "B200"), ("sm_100f", "RTX 5090"), ("sm_103f", "B200")] {
            assert!(matches!(verdict(ImageFormat::Ptx, target, gpu), RunsOn::WillNotLoad(_)), "{target} on {gpu}");
        }
    }

    #[test]
    fn ptx_versions_lead_to_cuda_versions() {
        let rows = [((7, 8), (11, 8)), ((8, 5), (12, 5)), ((8, 6), (12, 7)), ((8, 8), (12, 9)), ((9, 0), (13, 0))];
        for (ptx, cuda) in rows {
            assert_eq!(ptx_cuda_version(ptx), Some(cuda));
        }
        assert_eq!(ptx_cuda_version((6, 5)), None);
    }

    #[test]
    fn the_best_image_of_a_kernel_and_the_weakest_kernel_decide() {
        let mut multi = Kernel::new("multi", KernelKind::Triton);
        multi.images = vec![image(ImageFormat::Cubin, "sm_90a"), image(ImageFormat::Ptx, "sm_80")];
        let gpu = |name| Gpu::from_text(name).expect("a GPU");
        assert_eq!(kernel_runs_on(&multi, &gpu("H100")), RunsOn::Runs);
        assert!(matches!(kernel_runs_on(&multi, &gpu("A100")), RunsOn::RunsAfterJit { .. }));
        assert!(matches!(kernel_runs_on(&multi, &gpu("T4")), RunsOn::WillNotLoad(_)));
        let mut single = Kernel::new("single", KernelKind::Triton);
        single.images = vec![image(ImageFormat::Cubin, "sm_90a")];
        let common = common_gpus(&[multi, single]).expect("GPU kernels");
        assert_eq!(common.runs, ["H100", "H200", "GH200"]);
        assert!(common.does_not.contains(&"A100") && common.does_not.contains(&"B200"));
        assert!(common.to_string().starts_with("runs on H100, H200, GH200; not on "));
        assert_eq!(common_gpus(&[]), None);
    }

    #[test]
    fn what_was_not_read_is_unknown() {
        let mut kernel = Kernel::new("k", KernelKind::Triton);
        let gpu = Gpu::from_text("A100").expect("a GPU");
        assert!(matches!(kernel_runs_on(&kernel, &gpu), RunsOn::Unknown(_)));
        kernel.images = vec![image(ImageFormat::Hsaco, "gfx942")];
        kernel.not_read = vec!["AMD code object".into()];
        assert!(matches!(kernel_runs_on(&kernel, &gpu), RunsOn::WillNotLoad(_)), "another vendor's");
        let amd = Gpu::from_text("gfx942").expect("a target");
        assert!(matches!(kernel_runs_on(&kernel, &amd), RunsOn::Unknown(_)), "not checked");
    }
}
