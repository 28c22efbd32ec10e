//! GPU kernels: files, targets, names, launches.

use super::super::case::{Case, Diagnosis};
use super::super::log::Hit;
use crate::model::{Kernel, KernelKind, Model, Witness};

fn gpu(model: &Model) -> impl Iterator<Item = &Kernel> {
    model.kernels.iter().filter(|k| k.kind == KernelKind::Triton || k.kind == KernelKind::Metal || k.file.is_some())
}

fn list<T: AsRef<str>>(items: &[T], cap: usize) -> String {
    let shown: Vec<&str> = items.iter().take(cap).map(AsRef::as_ref).collect();
    let more = items.len().saturating_sub(cap);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// No GPU kernel at all: the text cannot be about this artefact's kernels.
fn without_kernels(said: &mut Diagnosis, case: &Case) -> bool {
    let Some((_, model)) = case.model() else { return true };
    if gpu(model).next().is_some() {
        return false;
    }
    said.say(Witness::Kernel, "no GPU kernel of its own is known in this artefact");
    if model.device.as_ref().is_some_and(|d| d.kind.name() == "cpu") {
        said.sentence =
            Some("This artefact is compiled for cpu and has no GPU kernels: the text is about another one.".to_owned());
        said.fix = Some("Give the artefact that was loaded when the log was written.".to_owned());
    }
    true
}

/// Kernel files that the model asks for, and whether they are there.
pub fn files(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    if without_kernels(&mut said, case) {
        return said;
    }
    let Some((_, model)) = case.model() else { return said };
    let wanted: Vec<&Kernel> = gpu(model).filter(|k| k.file.is_some()).collect();
    let missing: Vec<&Kernel> = wanted.iter().copied().filter(|k| k.present == Some(false)).collect();
    for kernel in missing.iter().take(16) {
        let from = kernel.build_path.as_deref().map(|p| format!(", which the build had at {p}")).unwrap_or_default();
        said.say(
            Witness::Archive,
            format!("{} wants {}{from}: not there", kernel.name, kernel.file.as_deref().unwrap_or_default()),
        );
    }
    let outside: Vec<&str> = wanted.iter().filter_map(|k| k.build_path.as_deref()).collect();
    said.say(Witness::Archive, format!("{} kernel files are wanted, {} are missing", wanted.len(), missing.len()));
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().filter_map(|k| k.file.as_deref()).collect();
        said.sentence =
            Some(format!("{} of {} kernel files are missing: {}.", missing.len(), wanted.len(), list(&names, 4)));
        said.fix = Some("Make the package again with all of its members; with a bare library copy the .cubin files to the folder that is given as cubin directory.".to_owned());
    } else if !outside.is_empty() && wanted.iter().all(|k| k.present != Some(true)) {
        said.sentence =
            Some(format!("The library looks for its kernels at paths of the build machine: {}.", list(&outside, 3)));
        said.fix = Some("Put the files at those paths, or give the folder that holds them as cubin directory, or compile into a package.".to_owned());
    } else if missing.is_empty() {
        said.say(Witness::Inferred, "all of them are in the artefact: the unpacked folder was removed while the model was loaded, or the cubin directory that the caller gives is wrong");
        said.sentence = Some("Every kernel file is in the artefact, so the folder that the loader was told to look in is wrong or was removed.".to_owned());
    }
    said
}

/// Targets of the kernels against the GPU.
pub fn targets(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    if without_kernels(&mut said, case) {
        return said;
    }
    let Some((_, model)) = case.model() else { return said };
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for kernel in gpu(model) {
        let target = if kernel.archs.is_empty() {
            "unknown targets".to_owned()
        } else {
            kernel.archs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
        };
        match groups.iter_mut().find(|g| g.0 == target) {
            Some(group) => group.1.push(&kernel.name),
            None => groups.push((target, vec![&kernel.name])),
        }
    }
    for (target, names) in groups.iter().take(8) {
        said.say(Witness::Kernel, format!("{} kernels for {target}: {}", names.len(), list(names, 4)));
    }
    for image in gpu(model).flat_map(|k| &k.images).filter(|i| i.ptx_version.is_some()).take(1) {
        if let Some((major, minor)) = image.ptx_version {
            said.say(Witness::Kernel, format!("PTX of version {major}.{minor}"));
        }
    }
    let has_ptx = gpu(model).flat_map(|k| &k.images).any(|i| i.format == crate::model::ImageFormat::Ptx);
    said.say(
        Witness::Kernel,
        if has_ptx {
            "PTX is included: the driver can compile it for newer GPUs"
        } else {
            "no PTX: these kernels run on the targets above (same major, equal or higher minor) and nowhere else"
        },
    );
    let targets: Vec<&str> = groups.iter().map(|g| g.0.as_str()).collect();
    if !targets.is_empty() {
        let asked = if case.load.gpus.is_empty() {
            "this GPU".to_owned()
        } else {
            list(&case.load.gpus.iter().map(ToString::to_string).collect::<Vec<_>>(), 4)
        };
        said.sentence =
            Some(format!("The kernels of this artefact are for {}, which does not fit {asked}.", list(&targets, 4)));
        said.fix = Some("Compile on a GPU of the same capability as the one that runs it, or with several targets (aot_inductor.emit_multi_arch_kernel=True, 2.8+); `aoti-inspect verify MODEL --gpu NAME` tells beforehand.".to_owned());
    }
    said
}

/// Shared memory, threads and registers of the kernels.
pub fn launches(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    if without_kernels(&mut said, case) {
        return said;
    }
    let Some((_, model)) = case.model() else { return said };
    let mut kernels: Vec<&Kernel> = gpu(model).filter(|k| k.shared_bytes.is_some()).collect();
    kernels.sort_by_key(|k| std::cmp::Reverse(k.shared_bytes));
    for kernel in kernels.iter().take(5) {
        let warps = kernel.num_warps.map(|w| format!(", {w} warps")).unwrap_or_default();
        let registers = kernel.registers.map(|r| format!(", {r} registers per thread")).unwrap_or_default();
        said.say(
            Witness::Kernel,
            format!(
                "{}: {} bytes of dynamic shared memory{warps}{registers}",
                kernel.name,
                kernel.shared_bytes.unwrap_or_default()
            ),
        );
    }
    if let Some(most) = kernels.first() {
        let bytes = most.shared_bytes.unwrap_or_default();
        said.sentence = Some(if bytes > 48 << 10 {
            format!("{} needs {bytes} bytes of shared memory per block, which this GPU may not have.", most.name)
        } else {
            format!(
                "No kernel needs more than {bytes} bytes of shared memory, which every GPU has: an argument of a launch is wrong, most often an input that is not on the GPU or is empty."
            )
        });
        if bytes <= 48 << 10 {
            said.is_open = true;
        }
    }
    said
}

/// Names that the library looks up against names inside the files.
pub fn names(_: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    if without_kernels(&mut said, case) {
        return said;
    }
    let Some((_, model)) = case.model() else { return said };
    let mut wrong = Vec::new();
    for kernel in gpu(model) {
        let symbol = kernel.symbol.as_deref().unwrap_or(&kernel.name);
        let entries: Vec<&str> = kernel.images.iter().flat_map(|i| &i.entries).map(String::as_str).collect();
        if !entries.is_empty() && !entries.contains(&symbol) {
            said.say(
                Witness::Kernel,
                format!(
                    "the library looks for `{symbol}` in {}, which holds {}",
                    kernel.file.as_deref().unwrap_or("its image"),
                    list(&entries, 4)
                ),
            );
            wrong.push(symbol);
        }
    }
    if wrong.is_empty() {
        said.say(Witness::Kernel, "every kernel file that was read holds the name that is looked up in it");
    } else {
        said.sentence = Some(format!(
            "{} kernels are not in the files that are opened for them: {}.",
            wrong.len(),
            list(&wrong, 4)
        ));
    }
    said
}
