//! Will the GPU kernels run on the GPUs, with the driver and within the shared memory that the target has?

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::{DeviceKind, Evidence, ImageFormat, Kernel, KernelKind, Witness};
use crate::report::{Finding, Level, Outcome};
use crate::target::gpu::{Driver, Gpu, GpuKind, RunsOn, driver_for_cuda, kernel_runs_on};

/// Kernels named in one message; the rest is counted.
const NAMED: usize = 5;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "gpu-arch",
        summary: "a kernel has no image that this GPU can load",
        level: Level::Deny,
        page: Page {
            compares: "The target of every cubin and PTX text of every kernel with the compute capability of the GPU: code \
                       runs on the same major version with an equal or higher minor, an `a` target on exactly one \
                       capability, an `f` target on its family, PTX without suffix on everything newer.",
            matters: "The driver refuses the kernel at the first run (`no kernel image is available`, `device kernel image \
                      is invalid`). One such kernel is enough to stop the model. Ordinary kernels for capability 9.0 and \
                      newer carry the `a` suffix and run on no other capability, newer ones included.",
            reports: "pytorch/pytorch issues 153697 and 174161, pull request 185328; huggingface/flux-fast issue 11. \
                      Rules: CUDA C++ Programming Guide, binary and PTX compatibility.",
            fix: "Compile on a GPU of the target's capability, or with \
                  `aot_inductor.emit_multi_arch_kernel=True` and the target in `TORCH_CUDA_ARCH_LIST`; then verify again.",
        },
    },
    Code {
        id: "gpu-jit",
        summary: "kernels reach this GPU only as PTX, which the driver compiles at load",
        level: Level::Warn,
        page: Page {
            compares: "The images that a GPU can load: machine code, or only PTX text.",
            matters: "The first run waits until the driver has compiled every such kernel, and the driver must know the \
                      PTX version. Results are the same; speed may differ from code made for that GPU.",
            reports: "pytorch/executorch pull requests 22198 and 15967; CUDA C++ Programming Guide, just-in-time \
                      compilation.",
            fix: "Add machine code for the target: compile there, or name it in `TORCH_CUDA_ARCH_LIST` with \
                  `aot_inductor.emit_multi_arch_kernel=True`.",
        },
    },
    Code {
        id: "gpu-shared-memory",
        summary: "a kernel asks for more shared memory than a block may have on this GPU",
        level: Level::Deny,
        page: Page {
            compares: "Static plus dynamic shared memory of each kernel with the opt-in limit of the GPU's capability.",
            matters: "The driver answers `invalid argument` when the kernel is prepared, at the first run. Kernels tuned \
                      on a data centre GPU often exceed what a workstation GPU of the same generation has.",
            reports: "pytorch/executorch pull request 21984; CUDA C++ Programming Guide, technical specifications per \
                      compute capability.",
            fix: "Compile and tune on the smaller GPU, or restrict the configurations that tuning may choose.",
        },
    },
    Code {
        id: "gpu-driver",
        summary: "the driver is too old for the GPU, for the PTX, or for the toolkit that made the kernels",
        level: Level::Deny,
        page: Page {
            compares: "The driver with the first one that knows the GPU's capability, the one that each PTX version needs, \
                       and the first one of the CUDA major version whose assembler made the machine code.",
            matters: "An older driver does not see the GPU or refuses the PTX (`unsupported toolchain`). Machine code from \
                      a newer CUDA major version may load; NVIDIA promises it only within one major version.",
            reports: "CUDA release notes, table of toolkit and driver versions; CUDA Compatibility Guide, minor version \
                      compatibility.",
            fix: "Install the named driver or a newer one, or compile with an older CUDA version.",
        },
    },
];

/// Judges all kernels for each GPU of the configuration.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let config = subject.config;
    let is_gpu_model = subject.model.device.as_ref().is_none_or(|d| d.kind != DeviceKind::Cpu);
    let kernels: Vec<&Kernel> =
        subject.model.kernels.iter().filter(|k| k.kind == KernelKind::Triton || !k.images.is_empty()).collect();
    if config.gpus.is_empty() && is_gpu_model {
        judgement.not_asked("gpu");
    }
    for gpu in &config.gpus {
        check_arch(subject, gpu, &kernels, is_gpu_model, judgement);
        check_shared_memory(subject, gpu, &kernels, judgement);
    }
    match &config.driver {
        Some(driver) => check_driver(subject, driver, &kernels, judgement),
        None if is_gpu_model => judgement.not_asked("driver"),
        None => {}
    }
}

fn check_arch(subject: &Subject, gpu: &Gpu, kernels: &[&Kernel], is_gpu_model: bool, judgement: &mut Judgement) {
    let finding = |outcome, message: String| {
        Finding::new("gpu-arch", outcome, subject.path("kernels"), message).sides(archs(kernels), gpu)
    };
    let of_other_kind = subject.model.device.as_ref().filter(|d| !matches!(d.kind, DeviceKind::Cpu | DeviceKind::Cuda));
    if let (Some(device), GpuKind::Nvidia { .. }) = (of_other_kind, &gpu.kind) {
        let message = format!("{gpu}: the model is for {device}, which is no NVIDIA GPU");
        judgement.push(finding(Outcome::Fail, message).fix("compile again for cuda"));
        return;
    }
    if kernels.is_empty() {
        let says = if !is_gpu_model {
            format!("{gpu}: the model is for cpu and has no GPU kernels")
        } else if subject.unknown_reason("kernels").is_some() {
            let what = format!("{gpu}: which kernels the model has cannot be told");
            judgement.push(subject.unknown("gpu-arch", "kernels", &what));
            return;
        } else {
            format!("{gpu}: the model has no kernels of its own; those of libtorch are for the GPUs of that build")
        };
        judgement.push(finding(Outcome::Pass, says));
        return;
    }
    let verdicts: Vec<(&Kernel, RunsOn)> = kernels.iter().map(|k| (*k, kernel_runs_on(k, gpu))).collect();
    let all = verdicts.len();
    let of = |wanted: fn(&RunsOn) -> bool| -> Vec<(&Kernel, &RunsOn)> {
        verdicts.iter().filter(|(_, v)| wanted(v)).map(|(k, v)| (*k, v)).collect()
    };
    let refused = of(|v| matches!(v, RunsOn::WillNotLoad(_)));
    let open = of(|v| matches!(v, RunsOn::Unknown(_)));
    let compiled = of(|v| matches!(v, RunsOn::RunsAfterJit { .. }));
    let names = |list: &[(&Kernel, &RunsOn)]| name_some(list.iter().map(|(k, _)| k.name.as_str()));
    let why = |list: &[(&Kernel, &RunsOn)]| match list.first() {
        Some((_, RunsOn::WillNotLoad(why) | RunsOn::Unknown(why))) => why.clone(),
        _ => String::new(),
    };
    let evidence = |list: &[(&Kernel, &RunsOn)]| {
        let lines = list.iter().take(NAMED).filter_map(|(k, _)| {
            let detail = format!("{}: {}", k.name, archs(&[k]));
            k.file.as_ref().map(|file| Evidence::new(Witness::Kernel, detail).in_member(file))
        });
        lines.collect::<Vec<_>>()
    };
    if !refused.is_empty() {
        let message =
            format!("{gpu}: {} of {all} kernels will not load ({}): {}", refused.len(), names(&refused), why(&refused));
        let fix = match gpu.last_toolkit() {
            Some(last) => format!("compile for {gpu}, with CUDA {last} or older, which newer releases do not support"),
            None => format!(
                "compile on {gpu}, or with aot_inductor.emit_multi_arch_kernel=True and that GPU in \
                 TORCH_CUDA_ARCH_LIST (then verify again)"
            ),
        };
        judgement.push(finding(Outcome::Fail, message).fix(fix).evidence(evidence(&refused)));
    } else if !open.is_empty() {
        let message =
            format!("{gpu}: {} of {all} kernels cannot be judged ({}): {}", open.len(), names(&open), why(&open));
        judgement.push(finding(Outcome::Unknown, message).evidence(evidence(&open)));
    } else {
        judgement.push(finding(Outcome::Pass, format!("{gpu}: all {all} kernels have an image that it loads")));
    }
    if !compiled.is_empty() && refused.is_empty() {
        let message = format!(
            "{gpu}: {} of {all} kernels are PTX for it and are compiled by the driver at load ({})",
            compiled.len(),
            names(&compiled)
        );
        judgement.push(Finding::new("gpu-jit", Outcome::Warn, subject.path("kernels"), message));
    }
}

fn check_shared_memory(subject: &Subject, gpu: &Gpu, kernels: &[&Kernel], judgement: &mut Judgement) {
    let GpuKind::Nvidia { .. } = gpu.kind else { return };
    // what was not read is unknown already (`gpu-arch`);
    // what nvcc linked in is launched by its own code, which states no sizes here
    let is_read = |k: &&Kernel| k.kind == KernelKind::Triton && !k.images.is_empty();
    let kernels: Vec<&Kernel> = kernels.iter().copied().filter(is_read).collect();
    if kernels.is_empty() {
        return;
    }
    let limit = gpu.shared_limit_bytes();
    // dynamic bytes are stated where the kernel is launched, static ones in the image that would be loaded
    let static_bytes = |kernel: &Kernel| kernel.images.iter().filter_map(|i| i.static_shared_bytes).max();
    let asked = |kernel: &Kernel| match (kernel.shared_bytes, static_bytes(kernel)) {
        (Some(dynamic), Some(fixed)) => Some(dynamic.saturating_add(fixed)),
        _ => None,
    };
    let subject_path = subject.path("kernels");
    let finding = |outcome, message: String| Finding::new("gpu-shared-memory", outcome, &subject_path, message);
    let Some(limit) = limit else {
        judgement.push(finding(Outcome::Unknown, format!("{gpu}: its shared memory limit is not in the table")));
        return;
    };
    let known_part =
        |k: &Kernel| k.shared_bytes.unwrap_or_default().saturating_add(static_bytes(k).unwrap_or_default());
    let over: Vec<&&Kernel> = kernels.iter().filter(|k| known_part(k) > limit).collect();
    let open: Vec<&&Kernel> = kernels.iter().filter(|k| asked(k).is_none()).collect();
    let most = kernels.iter().map(|k| known_part(k)).max().unwrap_or_default();
    if !over.is_empty() {
        let names = name_some(over.iter().map(|k| k.name.as_str()));
        let message = format!(
            "{gpu}: {} of {} kernels ask for up to {most} bytes of shared memory per block, the limit is {limit} ({names})",
            over.len(),
            kernels.len()
        );
        judgement.push(finding(Outcome::Fail, message).sides(most, limit).fix(format!("compile and tune on {gpu}")));
    } else if !open.is_empty() {
        let names = name_some(open.iter().map(|k| k.name.as_str()));
        let message =
            format!("{gpu}: the shared memory of {} of {} kernels is not known ({names})", open.len(), kernels.len());
        judgement.push(finding(Outcome::Unknown, message));
    } else {
        let message = format!("{gpu}: kernels ask for up to {most} bytes of shared memory per block of {limit}");
        judgement.push(finding(Outcome::Pass, message).sides(most, limit));
    }
}

fn check_driver(subject: &Subject, driver: &Driver, kernels: &[&Kernel], judgement: &mut Judgement) {
    let path = subject.path("kernels");
    let finding = |outcome, message: String| {
        let mut finding = Finding::new("gpu-driver", outcome, &path, message);
        finding.found = Some(driver.to_string());
        finding
    };
    let mut is_fine = true;
    for gpu in &subject.config.gpus {
        if let Some((first, cuda)) = gpu.first_driver()
            && !driver.is_at_least(first)
        {
            is_fine = false;
            let message = format!("driver {driver} does not know {gpu}: {first} (CUDA {cuda}) is the first that does");
            judgement.push(finding(Outcome::Fail, message).fix(format!("install driver {first} or newer")));
        }
        if let Some(last) = gpu.last_driver_branch()
            && driver.branch() > last
        {
            is_fine = false;
            let message = format!("driver {driver} no longer supports {gpu}: branch {last} is the last that does");
            judgement.push(finding(Outcome::Fail, message).fix(format!("install the last driver of branch {last}")));
        }
        for kernel in kernels {
            let RunsOn::RunsAfterJit { cuda: Some(cuda) } = kernel_runs_on(kernel, gpu) else { continue };
            let text = format!("the PTX of {}, for CUDA {}.{}", kernel.name, cuda.0, cuda.1);
            match driver_for_cuda(cuda) {
                Some(lowest) if driver.is_at_least(lowest) => continue,
                Some(lowest) => judgement.push(
                    finding(
                        Outcome::Fail,
                        format!("driver {driver} does not read {text}: {lowest} is the first that does"),
                    )
                    .fix(format!("install driver {lowest} or newer")),
                ),
                None => {
                    judgement.push(finding(Outcome::Unknown, format!("which driver reads {text}, is not in the table")))
                }
            }
            is_fine = false;
            break;
        }
    }
    let is_cubin = |i: &&crate::model::Image| i.format == ImageFormat::Cubin;
    let toolkit = kernels.iter().flat_map(|k| k.images.iter().filter(is_cubin)).filter_map(|i| i.toolkit).max();
    if let Some((major, minor)) = toolkit
        && let Some(lowest) = driver_for_cuda((major, 0))
        && !driver.is_at_least(lowest)
    {
        is_fine = false;
        let message = format!(
            "the kernels were assembled by CUDA {major}.{minor}; NVIDIA promises that they load from driver {lowest} on, \
             and this is {driver}"
        );
        judgement
            .push(finding(Outcome::Unknown, message).fix(format!("install driver {lowest} or newer, or try it there")));
    }
    if is_fine {
        let message = match toolkit {
            Some((major, minor)) => format!("driver {driver} takes kernels assembled by CUDA {major}.{minor}"),
            None => format!("nothing in the file asks for a newer driver than {driver}"),
        };
        judgement.push(finding(Outcome::Pass, message));
    }
}

/// `sm_90a`, or `sm_90a, sm_80 (PTX)`
fn archs(kernels: &[&Kernel]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for image in kernels.iter().flat_map(|k| &k.images) {
        let ptx = if image.format == ImageFormat::Ptx { " (PTX)" } else { "" };
        let text = image.arch.as_ref().map_or_else(|| "unknown target".into(), |a| format!("{a}{ptx}"));
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() { "no images".into() } else { texts.join(", ") }
}

/// The first few names, and how many more.
pub(super) fn name_some<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let all = names.len();
    let mut shown: Vec<String> = names.take(NAMED).map(str::to_owned).collect();
    if all > shown.len() {
        shown.push(format!("{} more", all - shown.len()));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, find, outcome};
    use super::*;
    use crate::report::Outcome::{Fail, Pass, Unknown, Warn};

    fn config(gpu: &str, driver: Option<&str>) -> crate::target::LoadConfig {
        crate::target::LoadConfig {
            gpus: vec![Gpu::from_text(gpu).expect("a GPU")],
            driver: driver.map(|d| Driver::from_text(d).expect("a driver")),
            ..Default::default()
        }
    }

    #[test]
    fn real_kernels_of_torch_2_11_run_on_hopper_alone() {
        for name in ["torch-2.11-cumsum_index.cubin", "torch-2.11-multi_arch.fatbin"] {
            let artifact = sample::with_kernel_files(&[name]);
            assert_eq!(outcome(check, &artifact, &config("H100", None), "gpu-arch"), [Pass]);
            assert_eq!(outcome(check, &artifact, &config("NVIDIA GH200 480GB", None), "gpu-arch"), [Pass]);
            for gpu in ["A100", "B200", "L4", "sm_100a", "12.0"] {
                assert_eq!(outcome(check, &artifact, &config(gpu, None), "gpu-arch"), [Fail], "{name} on {gpu}");
            }
            assert_eq!(outcome(check, &artifact, &config("gfx942", None), "gpu-arch"), [Unknown]);
        }
    }

    #[test]
    fn the_weakest_kernel_decides_and_is_named() {
        let artifact = sample::with_kernel_files(&["ptxas-12.9-sm_86.cubin", "ptxas-13.5-sm_89.cubin"]);
        let found = find(check, &artifact, &config("A10", None), "gpu-arch");
        assert_eq!(found[0].outcome, Fail);
        assert!(
            found[0].message.contains("1 of 2 kernels") && found[0].message.contains("sm_89"),
            "{}",
            found[0].message
        );
    }

    #[test]
    fn text_needs_a_driver_that_reads_it() {
        let artifact = sample::with_kernel_files(&["fatbinary-13.5-plain.fatbin"]);
        let old = config("RTX 4090", Some("550.54"));
        assert_eq!(outcome(check, &artifact, &old, "gpu-arch"), [Pass], "sm_80 code runs on 8.9");
        let b200 = config("RTX 5090", Some("575.57.08"));
        assert_eq!(outcome(check, &artifact, &b200, "gpu-arch"), [Pass]);
        assert_eq!(outcome(check, &artifact, &b200, "gpu-jit"), [Warn], "PTX sm_80 alone fits");
        assert_eq!(outcome(check, &artifact, &b200, "gpu-driver"), [Fail, Unknown], "PTX 9.0 needs CUDA 13");
        assert_eq!(outcome(check, &artifact, &config("RTX 5090", Some("580.95.05")), "gpu-driver"), [Pass]);
    }

    #[test]
    fn a_driver_must_know_the_gpu() {
        let artifact = sample::with_kernel_files(&["ptxas-12.9-sm_90a.cubin"]);
        assert_eq!(outcome(check, &artifact, &config("H100", Some("470.82.01")), "gpu-driver"), [Fail, Unknown]);
        assert_eq!(outcome(check, &artifact, &config("H100", Some("535.104.05")), "gpu-driver"), [Pass]);
        let pascal = sample::with_kernel_files(&["ptxas-12.9-sm_61.cubin"]);
        assert_eq!(outcome(check, &pascal, &config("Tesla P40", Some("590.44.01")), "gpu-driver"), [Fail]);
    }

    #[test]
    fn shared_memory_is_static_plus_dynamic() {
        let mut artifact = sample::with_kernel_files(&["ptxas-12.9-sm_86.cubin"]);
        let kernel = &mut artifact.models[0].kernels[0];
        assert_eq!(kernel.images[0].static_shared_bytes, Some(256));
        kernel.shared_bytes = Some(99 * 1024 - 256);
        assert_eq!(outcome(check, &artifact, &config("A10", None), "gpu-shared-memory"), [Pass]);
        artifact.models[0].kernels[0].shared_bytes = Some(99 * 1024 - 255);
        assert_eq!(outcome(check, &artifact, &config("A10", None), "gpu-shared-memory"), [Fail]);
        artifact.models[0].kernels[0].shared_bytes = None;
        assert_eq!(outcome(check, &artifact, &config("A10", None), "gpu-shared-memory"), [Unknown]);
    }

    #[test]
    fn a_cpu_model_has_nothing_to_refuse() {
        let mut artifact = sample::cpu();
        assert_eq!(outcome(check, &artifact, &config("T4", None), "gpu-arch"), [Pass]);
        artifact.models[0].device = Some(crate::model::Device::new(DeviceKind::Mps));
        assert_eq!(outcome(check, &artifact, &config("T4", None), "gpu-arch"), [Fail], "made for another vendor's");
    }
}
