//! Symbols, libraries, versions and instruction sets that the artefact needs.

use super::super::case::{Case, Diagnosis};
use super::super::demangle;
use super::super::log::Hit;
use crate::model::{Model, Witness};
use crate::target::release_tables;

/// `undef`: group 1 is the symbol.
pub fn symbol(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let name = hit.found.group(1).unwrap_or_default();
    let readable = demangle(name);
    let is_mangled = readable != name;
    if is_mangled {
        said.say(Witness::Inferred, format!("{name} is {readable}"));
    }
    let shim =
        name.starts_with("aoti_torch_") || name.starts_with("torch_") || name.starts_with("executorch_aoti_torch_");
    let build = ["cuda", "xpu", "mps", "hip"]
        .into_iter()
        .find(|d| name.starts_with(&format!("aoti_torch_{d}_")) || name.contains(&format!("_{d}_")));
    let model = case.model().map(|(_, m)| m);
    if let Some(model) = model {
        let known = model.requires.shims.iter().any(|s| s == name)
            || model.requires.leaked_cxx.iter().any(|s| *s == readable || s == name)
            || model.requires.unknown_shims.iter().any(|s| s == name)
            || model.requires.other_imports.iter().chain(&model.requires.gpu_runtime).any(|s| s == name);
        said.say(
            Witness::Imports,
            if known {
                format!("this artefact imports {name}")
            } else {
                format!("{name} is not in the list of imports that was read of this artefact")
            },
        );
        if let Some(min) = model.requires.torch_min {
            said.say(
                Witness::Imports,
                format!(
                    "its imports need torch {min} or newer{}",
                    model.requires.torch_max.map(|m| format!(", and at most {m}")).unwrap_or_default()
                ),
            );
        }
        compiled_by(model, &mut said);
    }
    let compiled =
        model.and_then(|m| m.compiled_by.torch_min).map(|r| format!(" (torch {r} or newer)")).unwrap_or_default();
    let (sentence, fix) = if name.starts_with("executorch_") {
        (
            "The library was compiled for ExecuTorch: its shims have a private prefix that libtorch does not have."
                .to_owned(),
            "Load it with ExecuTorch.".to_owned(),
        )
    } else if is_mangled && (readable.contains("c10::") || readable.contains("at::") || readable.contains("torch::")) {
        let abi = string_abi(name, &readable);
        (
            format!(
                "The library calls the C++ function {readable} directly{abi}; C++ of torch is the same only in the release, and build, that compiled it."
            ),
            format!(
                "Load it with exactly the torch that compiled it{compiled}, same string ABI, or compile it again with torch 2.4 or newer, which goes through C shims."
            ),
        )
    } else if shim {
        let lowest = match release_tables::shim(name) {
            Some(shim) => match shim.last {
                Some(last) => format!(" (torch {} to {last} have it)", shim.first),
                None => format!(" (torch has it from {} on)", shim.first),
            },
            None => " (no torch up to 2.15 is known to have it)".to_owned(),
        };
        match build {
            Some(device) => (
                format!(
                    "The torch that loads it has no {name}{lowest}: it is a build without {device}, or is older than the artefact."
                ),
                format!(
                    "Install the torch build for {device}, at least of the release that compiled the artefact{compiled}."
                ),
            ),
            None => (
                format!(
                    "The torch that loads it has no C shim {name}{lowest}: it is older than the artefact, or the process does not link libtorch."
                ),
                format!(
                    "Load it with a torch that is not older than the one that compiled it{compiled}; in Python import torch first, in C++ link libtorch."
                ),
            ),
        }
    } else if name.starts_with("cu") || name.starts_with("hip") || name.starts_with("ze") {
        (
            format!("The GPU runtime or driver of this host has no {name}."),
            "Update the driver, or use the toolkit version that the artefact was compiled with.".to_owned(),
        )
    } else if name.starts_with("GOMP_") || name.starts_with("omp_") || name.starts_with("__kmpc_") {
        (
            format!("No OpenMP runtime with {name} is in the process."),
            "Install and link the OpenMP library that the artefact needs (libgomp, libomp).".to_owned(),
        )
    } else {
        (
            format!("The library needs {readable}, which nothing in the process provides."),
            "Load the library that defines it first, or compile again on a host like the target.".to_owned(),
        )
    };
    (said.sentence, said.fix) = (Some(sentence), Some(fix));
    said
}

/// Which of the two string ABIs a mangled name shows.
fn string_abi(name: &str, readable: &str) -> &'static str {
    if name.contains("B5cxx11") || name.contains("__cxx11") {
        " (with the C++11 string ABI)"
    } else if readable.contains("std::string") || name.contains("Ss") {
        " (with the pre-C++11 string ABI, as pip wheels had it up to torch 2.6)"
    } else {
        ""
    }
}

fn compiled_by(model: &Model, said: &mut Diagnosis) {
    let range = match (model.compiled_by.torch_min, model.compiled_by.torch_max) {
        (Some(min), Some(max)) if min == max => format!("torch {min}"),
        (Some(min), Some(max)) => format!("torch {min} to {max}"),
        (Some(min), None) => format!("torch {min} or newer"),
        (None, Some(max)) => format!("torch up to {max}"),
        (None, None) => return,
    };
    said.say(Witness::Exports, format!("the artefact was compiled by {range}"));
}

/// A C function of the container that the library does not export.
pub fn missing_export(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    compiled_by(model, &mut said);
    let name = hit.found.group(1).unwrap_or_default();
    if let Some(first) = release_tables::export(name) {
        said.say(Witness::Exports, format!("{name} is exported by artefacts of torch {first} and newer"));
    }
    if !model.capabilities.is_empty() {
        said.say(Witness::Exports, format!("it offers: {}", model.capabilities.join(", ")));
    }
    if let Some(max) = model.compiled_by.torch_max {
        said.sentence = Some(format!(
            "The artefact was compiled by torch {max} or older and does not export {name}; the torch that loads it is newer."
        ));
    }
    said
}

/// `glibc`: groups family, version.
pub fn symbol_version(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    let needs = &model.requires;
    let family = hit.found.group(1).unwrap_or_default();
    let wanted = hit.found.group(2).unwrap_or_default();
    let (mine, package) = match family {
        "GLIBC" => (&needs.glibc, "glibc"),
        "GLIBCXX" => (&needs.glibcxx, "libstdc++ (GLIBCXX)"),
        "CXXABI" => (&needs.cxxabi, "libstdc++ (CXXABI)"),
        _ => (&needs.gomp, "libgomp"),
    };
    if let Some(mine) = mine {
        said.say(Witness::Header, format!("the artefact needs {package} {mine}"));
        let higher = newer(wanted, mine);
        said.sentence = Some(if higher {
            format!("{package} {wanted} is needed by another library in the process: this artefact needs only {mine}.")
        } else {
            format!("The artefact needs {package} {mine} and this host has an older one.")
        });
        said.fix = Some(format!(
            "Run on a system image with {package} {} or newer, or compile on one as old as the target.",
            if higher { wanted } else { mine }
        ));
    }
    said
}

fn newer(a: &str, b: &str) -> bool {
    let parts = |v: &str| v.split('.').map(|p| p.parse::<u64>().unwrap_or_default()).collect::<Vec<_>>();
    parts(a) > parts(b)
}

/// `nolib`: group 1 is the library.
pub fn library(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    let needs = &model.requires;
    if !needs.libraries.is_empty() {
        said.say(Witness::Needed, format!("the artefact needs {}", needs.libraries.join(", ")));
    }
    if !needs.run_paths.is_empty() {
        said.say(Witness::Needed, format!("and looks for them in {}", needs.run_paths.join(", ")));
    }
    let Some(name) = hit.found.group(1).map(|n| n.rsplit('/').next().unwrap_or(n)) else { return said };
    let is_named = needs.libraries.iter().any(|l| l == name || l.rsplit('/').next() == Some(name));
    let cuda = name.contains("cuda") || name.contains("cudart") || name.contains("c10_cuda");
    let uses_cuda = !needs.gpu_runtime.is_empty() || needs.shims.iter().any(|s| s.contains("_cuda_"));
    said.sentence = Some(match (is_named, cuda, uses_cuda) {
        (false, ..) => {
            format!("{name} is not on this host; the artefact does not name it, so another library asks for it.")
        }
        (true, true, false) => {
            format!("The artefact names {name} and uses nothing of it: it was linked by a CUDA build of torch.")
        }
        (true, true, true) => format!(
            "The artefact needs {name}, which only a CUDA build of torch (or the toolkit of that major version) has."
        ),
        (true, ..) => format!("The artefact needs {name}, which is not on this host or not where the linker looks."),
    });
    said.fix = Some(match (is_named, cuda, uses_cuda) {
        (true, true, false) => {
            format!("Take the entry out (`patchelf --remove-needed {name}`), or compile with the cpu build of torch.")
        }
        (true, true, true) => "Install the CUDA build of torch of the same CUDA major version.".to_owned(),
        _ if name.starts_with("libtorch") || name.starts_with("libc10") => {
            "Put torch's lib folder on LD_LIBRARY_PATH; in Python import torch before loading.".to_owned()
        }
        _ => format!("Install {name}, or put its folder on LD_LIBRARY_PATH."),
    });
    said
}

/// Instruction sets: declared, found in the code, asked.
pub fn cpu(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    super::fault::located(case, &mut said);
    let isa = &model.requires.cpu_isa;
    if let Some(declared) = &isa.declared {
        said.say(Witness::Metadata, format!("compiled for {declared}"));
    }
    match &isa.used {
        Some(used) if used.is_empty() => {
            said.say(Witness::Code, "the code needs nothing beyond the base instruction set")
        }
        Some(used) => said.say(Witness::Code, format!("the code uses {}", used.join(", "))),
        None => said.say(
            Witness::Code,
            format!(
                "which instructions the code uses was not read{}",
                case.artifact
                    .and_then(|a| a.unknown_reason("models[0].requires.cpu_isa.used"))
                    .map(|r| format!(": {r}"))
                    .unwrap_or_default()
            ),
        ),
    }
    for function in isa.functions.iter().filter(|f| !f.is_guarded).take(6) {
        said.say(Witness::Code, format!("{} needs {}", function.function, function.features.join(", ")));
    }
    if let Some((sentence, fix)) = super::fault::illegal_instruction(case, &mut said) {
        (said.sentence, said.fix) = (Some(sentence), Some(fix));
        return said;
    }
    if hit.found.pattern.id == "sigill"
        && let Some(used) = isa.used.as_ref().filter(|u| !u.is_empty())
    {
        if let Some(cpu) = &case.load.cpu {
            let missing: Vec<&str> = used.iter().map(String::as_str).filter(|u| !cpu.features.contains(*u)).collect();
            if missing.is_empty() {
                said.say(
                    Witness::LoadConfiguration,
                    format!(
                        "{} has all of them: the instruction is in another library, or the system does not enable it",
                        cpu.name
                    ),
                );
                return said;
            }
            said.say(Witness::LoadConfiguration, format!("{} has no {}", cpu.name, missing.join(", ")));
        }
        let asked = case.load.cpu.as_ref().map(|c| format!(" ({})", c.name)).unwrap_or_default();
        said.sentence = Some(format!(
            "The code of the artefact uses {}; this processor{asked} lacks one of them.",
            used.join(", ")
        ));
        said.fix = Some("Compile on a host like the target, or for a lower instruction set (ATEN_CPU_CAPABILITY=avx2, `-march` of the target); `aoti-inspect verify MODEL --cpu NAME` tells beforehand.".to_owned());
    }
    said
}
