//! What the file is, what is in it, which models and operators.

use super::super::case::{Case, Diagnosis};
use super::super::log::Hit;
use crate::model::{Artifact, Kind, Role, Witness};

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.take(16).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// What the listing in a log shows the archive to be, when no artefact was given.
fn listed(hit: &Hit) -> Option<&'static str> {
    let any = |word: &str| hit.after.iter().any(|l| l.contains(word));
    if any("/code/__torch__/") || any("constants.pkl") && any("/code/") {
        Some("a TorchScript archive (torch.jit.save)")
    } else if any("/models/") && any(".json") && !any("data/aotinductor/") {
        Some("an exported program (torch.export.save)")
    } else if any("data.pkl") {
        Some("a torch.save archive")
    } else {
        None
    }
}

/// What to do with a file that is no AOTInductor artefact.
fn remedy(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::ExportedProgram => {
            "Compile it first (`torch._inductor.aoti_compile_and_package(torch.export.load(…))`), or load it with torch.export.load."
        }
        Kind::Torchscript => {
            "Load it with torch.jit.load; for AOTInductor export the module with torch.export and compile it."
        }
        Kind::TorchSave | Kind::Pickle => "It holds weights or objects, no compiled model: load it with torch.load.",
        Kind::Executorch => "Load it with the ExecuTorch runtime.",
        Kind::PythonExtension | Kind::SharedLibrary => {
            "It is a library without a compiled model: give the .so or .pt2 that the compiler wrote."
        }
        Kind::Kernel => "It is one GPU kernel: give the library or package that uses it.",
        Kind::Standalone => {
            "A standalone package has no C interface: link its code into a program, or compile without compile_standalone."
        }
        Kind::Unknown => "Give the .pt2 that torch._inductor.aoti_compile_and_package wrote, copied completely.",
        Kind::Package | Kind::Library | Kind::Directory | Kind::Sources => return None,
    })
}

/// Says what the file is, when it is none that can be loaded; true when it did.
fn look_alike(said: &mut Diagnosis, artifact: &Artifact) -> bool {
    let Some(fix) = remedy(artifact.kind) else { return false };
    let title = artifact.kind.title();
    let article =
        if title.starts_with(['a', 'e', 'i', 'o', 'u']) && !title.starts_with("unknown") { "an" } else { "a" };
    said.sentence = Some(match (&artifact.error, artifact.kind) {
        (Some(error), Kind::Unknown) => format!("The file is no package (zip archive) of AOTInductor: {error}"),
        _ => format!("The file is {article} {title}, no compiled AOTInductor model."),
    });
    if let Some(error) = &artifact.error {
        said.say(Witness::Archive, error.clone());
    }
    said.fix = Some(fix.to_owned());
    true
}

fn say_problems(said: &mut Diagnosis, artifact: &Artifact) {
    for problem in artifact.problems.iter().take(6) {
        let place = problem.place.to_string();
        let separator = if place.is_empty() { "" } else { ": " };
        said.say(Witness::Archive, format!("{place}{separator}{}", problem.message));
    }
}

/// The file is not what the loader wants.
pub fn layout(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some(artifact) = case.artifact else {
        if let Some(kind) = listed(hit) {
            said.sentence = Some(format!("The file is {kind}, no compiled AOTInductor model."));
        }
        return said;
    };
    said.say(
        Witness::Archive,
        format!("{}: {} of {} bytes", artifact.path, artifact.kind.title(), artifact.size_bytes),
    );
    say_problems(&mut said, artifact);
    if look_alike(&mut said, artifact) {
        return said;
    }
    let id = hit.found.pattern.id;
    if let Some(error) = &artifact.error {
        said.sentence = Some(format!("The file is damaged: {error}"));
        said.say(Witness::Archive, error.clone());
        said.fix = Some("Copy it again and compare its size and checksum.".to_owned());
        return said;
    }
    match (id, artifact.kind) {
        ("elf-header", Kind::Package | Kind::Directory | Kind::Sources) => {
            said.sentence =
                Some("A package (.pt2, a zip archive) was given where a bare library is expected.".to_owned());
            said.fix = Some("Open a package with torch._inductor.aoti_load_package or AOTIModelPackageLoader; only the .so inside it is a library.".to_owned());
        }
        ("zip" | "not-a-zip", Kind::Library) => {
            said.sentence =
                Some("A bare library (.so) was given where a package (zip archive) is expected.".to_owned());
            said.fix = Some("Open a library with torch._export.aot_load or AOTIModelContainerRunnerCpu/Cuda, or compile into a .pt2 package.".to_owned());
        }
        ("zip" | "not-a-zip", Kind::Package) => {
            said.say(
                Witness::Inferred,
                "this file is a readable package: the loader was given another file, or saw it half written",
            );
        }
        ("elf-class", _) => {
            if let Some(platform) = case.model().and_then(|(_, m)| m.platform.as_ref()) {
                said.sentence =
                    Some(format!("The library is for {} on {} and this process is not.", platform.os, platform.arch));
                said.fix = Some("Compile on, or cross-compile for, the platform that loads it.".to_owned());
            }
        }
        ("execstack", _) => {
            if let Some(mark) = case.model().and_then(|(_, m)| m.requires.executable_stack) {
                said.say(
                    Witness::Header,
                    if mark {
                        "the library has the mark (PT_GNU_STACK with execute)"
                    } else {
                        "this library does not ask for an executable stack: the log is about another one"
                    },
                );
            }
        }
        _ => {}
    }
    if hit.found.pattern.class == crate::explain::class::COMPILE {
        compile_text(&mut said, artifact);
    }
    said
}

/// A text of the compiler with an artefact at hand: only a package of sources is compiled at load.
fn compile_text(said: &mut Diagnosis, artifact: &Artifact) {
    if artifact.kind == Kind::Sources {
        said.class = Some("C14");
        said.sentence =
            Some("The package holds sources and no library: the loader compiles it, and this host cannot.".to_owned());
        said.fix = Some(
            "Compile without package_cpp_only on the build machine, or install the compiler and headers on this host."
                .to_owned(),
        );
    } else {
        said.say(
            Witness::Archive,
            "this artefact holds a compiled library: the text comes from another compilation, not from loading it",
        );
    }
}

/// The model that was asked for, against the models that are there.
pub fn model_name(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let asked = asked_name(hit);
    let Some(artifact) = case.artifact else {
        if let Some(kind) = listed(hit) {
            said.sentence = Some(format!("The file is {kind}, no compiled AOTInductor model."));
        } else if let Some(asked) = &asked {
            said.sentence = Some(format!("The package has no compiled model named `{asked}`."));
        }
        return said;
    };
    if look_alike(&mut said, artifact) {
        return said;
    }
    let names: Vec<&str> = artifact.models.iter().map(|m| m.name.as_str()).collect();
    say_problems(&mut said, artifact);
    let word = if names.len() == 1 { "the model" } else { "the models" };
    said.say(Witness::Archive, format!("the package holds {word} {}", quoted(names.iter().copied())));
    let libraries = artifact.models.iter().filter(|m| m.library.is_some()).count();
    let first = names.first().copied().unwrap_or("model");
    match asked {
        Some(asked) if !names.contains(&asked.as_str()) => {
            said.sentence = Some(format!(
                "The model `{asked}` was asked for and the package holds {word} {}.",
                quoted(names.iter().copied())
            ));
            said.fix =
                Some(format!("Ask for `{first}`{}.", if first == "model" { ", or leave the name out" } else { "" }));
        }
        _ if libraries == 0 => {
            said.sentence = Some(
                "The model is in the package, and its library is not: no compiled .so and no source was found for it."
                    .to_owned(),
            );
            said.fix = Some("Make the package again and keep all of its members.".to_owned());
        }
        Some(asked) => {
            said.say(Witness::Inferred, format!("`{asked}` is in this package: the loader was given another file"));
        }
        None => {
            said.sentence = Some(format!(
                "The package holds {word} {}, and another name was asked for.",
                quoted(names.iter().copied())
            ));
            said.fix = Some(format!("Ask for `{first}`."));
        }
    }
    said
}

/// The name that the person gave: a group of the text, or the third text of `Invoked with:`, where the Python
/// loader of 2.8 to 2.15 puts the name in the place of `run_single_threaded`.
fn asked_name(hit: &Hit) -> Option<String> {
    if let Some(name) = hit.found.group(1) {
        return Some(name.to_owned());
    }
    let invoked = hit.after.iter().find(|l| l.contains("Invoked with:"))?;
    let texts: Vec<&str> = invoked.split('\'').skip(1).step_by(2).collect();
    texts.get(2).or(texts.get(1)).map(|t| (*t).to_owned())
}

/// A member that the loader misses.
pub fn member(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let missing = hit.found.group(1).map(|f| f.rsplit('/').next().unwrap_or(f).to_owned());
    let Some(artifact) = case.artifact else { return said };
    if look_alike(&mut said, artifact) {
        return said;
    }
    say_problems(&mut said, artifact);
    let Some(archive) = &artifact.archive else { return said };
    let of = |role: Role| archive.members.iter().filter(move |m| m.role == role).map(|m| m.name.as_str());
    let libraries: Vec<&str> = of(Role::Library).collect();
    let metadata: Vec<&str> = of(Role::Metadata).collect();
    said.say(
        Witness::Archive,
        if libraries.is_empty() {
            "no member is a compiled library (.so)".to_owned()
        } else {
            format!("libraries: {}", quoted(libraries.iter().copied()))
        },
    );
    said.say(
        Witness::Archive,
        if metadata.is_empty() {
            "no member is a metadata JSON".to_owned()
        } else {
            format!("metadata: {}", quoted(metadata.iter().copied()))
        },
    );
    match (hit.found.pattern.id, missing) {
        ("manyso", _) => {
            said.sentence = Some(format!(
                "{} libraries of one model are in the package: {}.",
                libraries.len(),
                quoted(libraries.iter().copied())
            ));
        }
        ("no-devkey", _) => {
            said.sentence = Some(if metadata.is_empty() {
                "The package has no metadata JSON, so the loader does not know its device.".to_owned()
            } else {
                "The metadata JSON of the package does not state the device (AOTI_DEVICE_KEY).".to_owned()
            });
        }
        (_, Some(file)) if libraries.is_empty() => {
            said.sentence = Some(format!(
                "The package has no compiled library (.so), so the loader took it for a package of sources and looked for {file}."
            ));
            said.fix = Some(
                "Make the package again and keep all of its members; the library is the member ending in .wrapper.so."
                    .to_owned(),
            );
        }
        (_, Some(file)) if metadata.is_empty() || file.ends_with("_metadata.json") => {
            said.sentence = Some(format!("The package lacks a metadata JSON: the loader looked for {file}."));
            said.fix = Some("Make the package again and keep every *_metadata.json.".to_owned());
        }
        _ => {}
    }
    said
}

/// Custom operators that the artefact calls.
pub fn operator(hit: &Hit, case: &Case) -> Diagnosis {
    let mut said = Diagnosis::default();
    let Some((_, model)) = case.model() else { return said };
    let ops = &model.requires.custom_ops;
    let named = hit.found.group(1).filter(|_| matches!(hit.found.pattern.id, "schema" | "no-backend"));
    for op in ops.iter().take(16) {
        let name = op.name.as_deref().unwrap_or("an operator whose name was not read");
        let python = if op.is_python_only == Some(true) { ", defined in Python" } else { "" };
        said.say(Witness::Metadata, format!("the artefact calls {name} through {}{python}", op.through));
    }
    if ops.is_empty() {
        said.say(Witness::Metadata, "no custom operator is known in this artefact");
    }
    let bare = |n: &str| n.split('.').next().unwrap_or(n).to_owned();
    let found = named.and_then(|n| ops.iter().find(|o| o.name.as_deref().is_some_and(|m| bare(m) == bare(n))));
    if let Some(op) = found {
        let name = op.name.as_deref().unwrap_or_default();
        let namespace = name.split("::").next().unwrap_or_default();
        said.sentence = Some(if op.is_python_only == Some(true) {
            format!(
                "The artefact calls the custom operator {name}, which is defined in Python, and the process that loads it has not registered it."
            )
        } else {
            format!(
                "The artefact calls the custom operator {name}, and the process that loads it has not registered it."
            )
        });
        said.fix = Some(format!(
            "Load the library (torch.ops.load_library, dlopen) or import the module that registers the namespace `{namespace}` before loading the model; in C++ a Python-only operator cannot be called at all."
        ));
    } else if let Some(named) = named
        && !ops.is_empty()
        && ops.iter().all(|o| o.name.is_some())
    {
        said.sentence = Some(format!(
            "{named} is not registered in the process, and this artefact does not call it: another artefact does."
        ));
    }
    let has_list = case
        .artifact
        .and_then(|a| a.archive.as_ref())
        .is_some_and(|a| a.members.iter().any(|m| m.role == Role::ExternNodes));
    if hit.found.pattern.id == "noproxy" {
        said.say(
            Witness::Archive,
            if has_list {
                "the package holds the list of custom operators"
            } else {
                "no extern-node JSON is in the artefact"
            },
        );
    }
    said
}
