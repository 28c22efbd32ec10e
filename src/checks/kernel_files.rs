//! Are the kernel files that the model wants there, and are they the right ones?

use super::codes::{Code, Page};
use super::gpu::name_some;
use super::{Judgement, Subject};
use crate::model::{ImageFormat, Kernel, KernelKind, Kind};
use crate::report::{Finding, Level, Outcome};

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "kernel-file-missing",
        summary: "a kernel file that the model loads is not in the package or beside the library",
        level: Level::Deny,
        page: Page {
            compares: "The base name of every path that the code hands to the loader of kernels with the files of the \
                       model's folder; for a bare library, with the files beside it.",
            matters: "The load succeeds, and the first run ends in `CUDA driver error: file not found`, which does not \
                      name the file.",
            reports: "pytorch issues 120194, 140055 and 152067, pull request 139848.",
            fix: "Package again; for a bare library copy the kernel files beside it and give that folder to the runner, \
                  or compile with `aot_inductor.embed_kernel_binary=True` (2.8 and newer).",
        },
    },
    Code {
        id: "kernel-file-unused",
        summary: "a kernel file of the package is never loaded",
        level: Level::Warn,
        page: Page {
            compares: "The kernel files of the model's folder with the names that the code loads.",
            matters: "It costs room at every unpacking, and mostly shows that files of two builds were mixed.",
            reports: "Package layout, aoti-format 8.1; folders that keep the results of earlier compilations.",
            fix: "Compile and package into an empty folder.",
        },
    },
    Code {
        id: "kernel-path-absolute",
        summary: "kernel files are looked for where the build host had them",
        level: Level::Warn,
        page: Page {
            compares: "The paths of kernel files in a bare library: the runtime uses them as they are, unless the runner \
                       is given a folder (`cubin_dir`).",
            matters: "On another machine or in a container the first run ends in `CUDA driver error: file not found`.",
            reports: "pytorch issues 120194 and 140055.",
            fix: "Give the runner the folder of the kernel files, deploy the `.pt2` package instead of the library, or \
                  compile with `aot_inductor.embed_kernel_binary=True`.",
        },
    },
    Code {
        id: "kernel-symbol-missing",
        summary: "a kernel file does not hold the function that the model looks up in it",
        level: Level::Deny,
        page: Page {
            compares: "The symbol that the code asks for with the entry functions of each image of the file.",
            matters: "The file belongs to another build: the first run ends in `named symbol not found`.",
            reports: "Packages put together from two builds, class C12 of the failure study.",
            fix: "Compile and package again in one run.",
        },
    },
    Code {
        id: "kernel-multi-arch",
        summary: "multi-arch kernel files that are for one capability only",
        level: Level::Warn,
        page: Page {
            compares: "The targets of all images of kernel files that can hold several.",
            matters: "The option promises portability, and for capability 9.0 and newer the PTX carries the same `a` \
                      suffix as the code: neither runs on any other GPU.",
            reports: "Multi-arch packages of torch 2.11 (aoti-format 8.4); pytorch issue 174161.",
            fix: "Judge the package with `--gpu`; name all GPUs of the target in `TORCH_CUDA_ARCH_LIST` and compile with a \
                  release that honours it.",
        },
    },
];

/// Files wanted and present, their functions, and what a multi-arch file is worth.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let model = subject.model;
    let kernels: Vec<&Kernel> = model.kernels.iter().filter(|k| k.kind == KernelKind::Triton).collect();
    check_present(subject, &kernels, judgement);
    if !model.unused_kernel_files.is_empty() {
        let names = name_some(model.unused_kernel_files.iter().map(String::as_str));
        let message = format!("{} kernel files are never loaded: {names}", model.unused_kernel_files.len());
        judgement.push(Finding::new("kernel-file-unused", Outcome::Warn, subject.path("unused_kernel_files"), message));
    }
    if kernels.is_empty() {
        return;
    }
    check_symbols(subject, &kernels, judgement);
    let multi: Vec<&&Kernel> = kernels.iter().filter(|k| k.images.len() > 1).collect();
    if let [first, ..] = multi.as_slice()
        && let Some(arch) = first.archs.first()
        && multi.iter().all(|k| k.archs.iter().all(|a| a == arch))
    {
        let ptx = first.images.iter().any(|i| i.format == ImageFormat::Ptx);
        let message = format!(
            "{} of {} kernel files hold several images, and all are for {arch}{}",
            multi.len(),
            kernels.len(),
            if ptx { ", the PTX too" } else { "" }
        );
        judgement.push(Finding::new("kernel-multi-arch", Outcome::Warn, subject.path("kernels"), message));
    }
}

fn check_present(subject: &Subject, kernels: &[&Kernel], judgement: &mut Judgement) {
    let path = subject.path("kernels");
    let with_file: Vec<&&Kernel> = kernels.iter().filter(|k| k.file.is_some()).collect();
    let is_library = subject.artifact.kind == Kind::Library;
    let missing: Vec<&&&Kernel> = with_file.iter().filter(|k| k.present == Some(false)).collect();
    let unknown: Vec<&&&Kernel> = with_file.iter().filter(|k| k.present.is_none()).collect();
    let files = |list: &[&&&Kernel]| {
        let names: Vec<&str> = list.iter().filter_map(|k| k.file.as_deref()).collect();
        name_some(names.into_iter())
    };
    if !missing.is_empty() {
        // beside a bare library the files may still be brought along; in a package nobody adds them
        let (outcome, place) =
            if is_library { (Outcome::Warn, "beside the library") } else { (Outcome::Fail, "in the package") };
        let message = format!(
            "{} of {} kernel files are not {place}: {}; the first run will fail with \"file not found\"",
            missing.len(),
            with_file.len(),
            files(&missing)
        );
        let fix = if is_library { "copy them beside the library" } else { "package again" };
        judgement.push(Finding::new("kernel-file-missing", outcome, &path, message).fix(fix));
    } else if !unknown.is_empty() {
        let message = format!("whether {} kernel files will be there is not known: {}", unknown.len(), files(&unknown));
        let finding = Finding::new("kernel-file-missing", Outcome::Unknown, &path, message);
        judgement.push(finding.level(Level::Warn));
    } else if !with_file.is_empty() {
        let message = format!("all {} kernel files are there", with_file.len());
        judgement.push(Finding::new("kernel-file-missing", Outcome::Pass, &path, message));
    }
    let foreign: Vec<&str> = with_file.iter().filter_map(|k| k.build_path.as_deref()).collect();
    if is_library && let Some(first) = foreign.first() {
        let folder = first.rsplit_once(['/', '\\']).map_or(*first, |(folder, _)| folder);
        let message = format!(
            "{} kernel files are looked for in the build folder ({folder}), unless the runner is given another one",
            foreign.len()
        );
        judgement.push(
            Finding::new("kernel-path-absolute", Outcome::Warn, &path, message)
                .fix("give the runner the folder of the kernel files (cubin_dir)"),
        );
    }
}

fn check_symbols(subject: &Subject, kernels: &[&Kernel], judgement: &mut Judgement) {
    let mut checked = 0usize;
    let mut is_fine = true;
    for kernel in kernels {
        let Some(symbol) = &kernel.symbol else { continue };
        // an image whose entries were not read says nothing
        let lists: Vec<&Vec<String>> = kernel.images.iter().map(|i| &i.entries).filter(|e| !e.is_empty()).collect();
        if lists.is_empty() {
            continue;
        }
        checked += 1;
        if let Some(entries) = lists.iter().find(|entries| !entries.contains(symbol)) {
            is_fine = false;
            let file = kernel.file.as_deref().unwrap_or("the embedded kernel");
            let message =
                format!("{file} has no function {symbol}; it has {}", name_some(entries.iter().map(String::as_str)));
            judgement.push(
                Finding::new("kernel-symbol-missing", Outcome::Fail, subject.path("kernels"), message)
                    .sides(symbol, entries.join(", ")),
            );
        }
    }
    if is_fine && checked > 0 {
        let message = format!("all {checked} kernel files hold the function that is looked up in them");
        judgement.push(Finding::new("kernel-symbol-missing", Outcome::Pass, subject.path("kernels"), message));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{outcome, with_kernel_files};
    use super::*;
    use crate::report::Outcome::{Fail, Pass, Unknown, Warn};
    use crate::target::LoadConfig;

    #[test]
    fn a_missing_file_fails_a_package_and_warns_for_a_library() {
        let mut artifact = with_kernel_files(&["torch-2.11-cumsum_index.cubin", "torch-2.11-embedding.cubin"]);
        let config = LoadConfig::default();
        assert_eq!(outcome(check, &artifact, &config, "kernel-file-missing"), [Pass]);
        artifact.models[0].kernels[1].present = Some(false);
        assert_eq!(outcome(check, &artifact, &config, "kernel-file-missing"), [Fail]);
        artifact.kind = Kind::Library;
        artifact.models[0].kernels[1].build_path = Some("/build/c/x.cubin".into());
        assert_eq!(outcome(check, &artifact, &config, "kernel-file-missing"), [Warn]);
        assert_eq!(outcome(check, &artifact, &config, "kernel-path-absolute"), [Warn]);
        artifact.models[0].kernels[1].present = None;
        assert_eq!(outcome(check, &artifact, &config, "kernel-file-missing"), [Unknown]);
    }

    #[test]
    fn a_file_of_another_kernel_is_found_out() {
        let mut artifact = with_kernel_files(&["torch-2.11-cumsum_index.cubin"]);
        let config = LoadConfig::default();
        assert_eq!(outcome(check, &artifact, &config, "kernel-symbol-missing"), [Pass]);
        artifact.models[0].kernels[0].symbol = Some("triton_".into());
        assert_eq!(outcome(check, &artifact, &config, "kernel-symbol-missing"), [Fail]);
    }

    #[test]
    fn multi_arch_is_judged_by_its_images() {
        let config = LoadConfig::default();
        let hopper = with_kernel_files(&["torch-2.11-multi_arch.fatbin"]);
        assert_eq!(outcome(check, &hopper, &config, "kernel-multi-arch"), [Warn]);
        let real = with_kernel_files(&["fatbinary-13.5-zstd.fatbin"]);
        assert_eq!(outcome(check, &real, &config, "kernel-multi-arch"), []);
        let mut unused = real;
        assert_eq!(outcome(check, &unused, &config, "kernel-file-unused"), []);
        unused.models[0].unused_kernel_files.push("old.cubin".into());
        assert_eq!(outcome(check, &unused, &config, "kernel-file-unused"), [Warn]);
    }
}
