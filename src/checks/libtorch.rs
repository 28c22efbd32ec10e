//! Will this libtorch have what the library imports, and in the same form?

mod codes;

pub use codes::CODES;

use super::{Judgement, Subject};
use crate::model::{Evidence, Release, Witness};
use crate::report::{Finding, Outcome};
use crate::target::libtorch::Libtorch;
use crate::target::release_tables::{self, NEWEST, PARAMETER_CHANGES, ShimClass, shim};
use crate::target::{Build, TorchVersion};

/// Names in one message; the rest is counted.
const NAMED: usize = 4;
/// From this release on libraries use C functions alone.
const C_ONLY: Release = Release::new(2, 6);

/// Judges one model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let requires = &subject.model.requires;
    if subject.model.library.is_none() && requires.shims.is_empty() {
        return;
    }
    check_executorch(subject, judgement);
    let config = subject.config;
    match (&config.libtorch, &config.torch) {
        (None, None) => {
            judgement.not_asked("torch");
            check_unasked(subject, judgement);
        }
        (Some(libtorch), torch) => {
            check_exports(subject, libtorch, judgement);
            check_cxx_exports(subject, libtorch, judgement);
            check_abi(subject, libtorch, judgement);
            if let Some(torch) = torch {
                check_release(subject, torch, judgement);
            }
        }
        (None, Some(torch)) => {
            check_table(subject, torch, judgement);
            check_build(subject, torch, judgement);
            check_release(subject, torch, judgement);
            check_leaked(subject, torch, judgement);
        }
    }
}

/// What can be said without a configuration: warnings alone.
fn check_unasked(subject: &Subject, judgement: &mut Judgement) {
    let requires = &subject.model.requires;
    let path = subject.path("requires.shims");
    if !requires.unknown_shims.is_empty() {
        let message = format!("imports {}, which no torch from 2.2 to {NEWEST} has", listed(&requires.unknown_shims));
        judgement.push(Finding::new("libtorch-shim-unknown", Outcome::Warn, path, message));
    }
    if !requires.leaked_cxx.is_empty() {
        let message = format!(
            "imports {} C++ functions of libtorch, such as {}: it loads with the release that compiled it{}, and hardly \
             with another",
            requires.leaked_cxx.len(),
            first(&requires.leaked_cxx),
            dated(subject)
        );
        judgement.push(Finding::new(
            "libtorch-leaked-cxx",
            Outcome::Warn,
            subject.path("requires.leaked_cxx"),
            message,
        ));
    }
}

fn check_executorch(subject: &Subject, judgement: &mut Judgement) {
    let foreign = &subject.model.requires.executorch_shims;
    if !foreign.is_empty() {
        let message = format!("imports {} of ExecuTorch's runtime, which libtorch does not have", listed(foreign));
        judgement.push(Finding::new(
            "libtorch-executorch",
            Outcome::Fail,
            subject.path("requires.executorch_shims"),
            message,
        ));
    }
}

/// Shims against the table of releases.
fn check_table(subject: &Subject, torch: &TorchVersion, judgement: &mut Judgement) {
    let requires = &subject.model.requires;
    let path = subject.path("requires.shims");
    if torch.release > NEWEST {
        let message = format!("torch {torch} is newer than the tables: judged as torch {NEWEST}");
        judgement.push(Finding::new("libtorch-release-new", Outcome::Warn, "torch", message));
    }
    if let Some(reason) = subject.unknown_reason("requires.shims") {
        let message = format!("the imports cannot be read: {reason}");
        judgement.push(Finding::new("libtorch-shim-missing", Outcome::Unknown, path, message));
        return;
    }
    if !requires.unknown_shims.is_empty() {
        let message = format!(
            "imports {}, which no torch up to {NEWEST} has: a newer torch or another library has to bring them",
            listed(&requires.unknown_shims)
        );
        // a release beyond the tables may well have them
        judgement.push(
            Finding::new("libtorch-shim-unknown", Outcome::Unknown, &path, message)
                .fix("give --libtorch DIR with the target's libraries"),
        );
    }
    let judged = torch.judged_as();
    let missing: Vec<String> =
        requires.shims.iter().filter(|n| shim(n).is_some_and(|s| !s.is_in(judged))).cloned().collect();
    judgement.push(if missing.is_empty() {
        let message = format!("torch {torch} has all {} C functions that are imported", requires.shims.len());
        Finding::new("libtorch-shim-missing", Outcome::Pass, path, message)
    } else {
        let message =
            format!("torch {torch} lacks {} of the C functions that are imported: {}", missing.len(), listed(&missing));
        let lives = missing.iter().take(NAMED).filter_map(|name| {
            let shim = shim(name)?;
            let until = shim.last.map_or("newer".to_owned(), |last| last.to_string());
            Some(Evidence::new(Witness::Imports, format!("{name} is in torch {} to {until}", shim.first)))
        });
        let rows: Vec<_> = requires.shims.iter().filter_map(|name| shim(name)).collect();
        let range = release_tables::releases_with(rows.iter());
        let fix = match range {
            Some((lowest, highest)) if highest < NEWEST => format!("use torch {lowest} to {highest}, or compile again"),
            Some((lowest, _)) => format!("use torch {lowest} or newer, or compile again with torch {}", torch.release),
            None => "compile again: no single release has all of them".to_owned(),
        };
        Finding::new("libtorch-shim-missing", Outcome::Fail, path, message).fix(fix).evidence(lives)
    });
    if torch.is_prerelease && requires.torch_min == Some(judged) {
        let message =
            format!("torch {torch} is a build before {judged}, which may lack functions that {judged} brought");
        judgement.push(Finding::new(
            "libtorch-shim-missing",
            Outcome::Warn,
            subject.path("requires.torch_min"),
            message,
        ));
    }
}

/// Device classes among the imports.
fn classes(subject: &Subject) -> Vec<(ShimClass, &'static str, String)> {
    let requires = &subject.model.requires;
    let words = [(ShimClass::Cuda, "CUDA"), (ShimClass::Xpu, "XPU"), (ShimClass::Mps, "MPS")];
    let of = |class: ShimClass| {
        let by_shim = requires.shims.iter().find(|n| shim(n).is_some_and(|s| s.class == class));
        let by_runtime = || requires.gpu_runtime.first().filter(|_| class == ShimClass::Cuda && !uses_xpu(subject));
        by_shim.or_else(by_runtime).cloned()
    };
    words.into_iter().filter_map(|(class, word)| Some((class, word, of(class)?))).collect()
}

fn uses_xpu(subject: &Subject) -> bool {
    subject.model.device.as_ref().is_some_and(|d| d.kind == crate::model::DeviceKind::Xpu)
}

fn check_build(subject: &Subject, torch: &TorchVersion, judgement: &mut Judgement) {
    let Some(build) = &torch.build else { return };
    let path = subject.path("requires.shims");
    for (class, word, name) in classes(subject) {
        let runtime = |prefix: &str| subject.model.requires.gpu_runtime.iter().find(|name| name.starts_with(prefix));
        let foreign = match build {
            // both builds have the CUDA shims; the driver is the other vendor's
            Build::Rocm => runtime("cu"),
            Build::Cuda { .. } => runtime("hip"),
            _ => None,
        };
        if let Some(function) = foreign.filter(|_| class == ShimClass::Cuda) {
            let message = format!("torch {torch} is a {build}, and the library imports {function} of the other vendor");
            judgement.push(Finding::new("libtorch-build", Outcome::Fail, &path, message).fix("compile on that build"));
            continue;
        }
        judgement.push(if build.has(class) {
            let message = format!("torch {torch} is a {build}, which has the {word} functions");
            Finding::new("libtorch-build", Outcome::Pass, &path, message)
        } else {
            let message = format!("torch {torch} is a {build}, and the library imports {name}");
            Finding::new("libtorch-build", Outcome::Fail, &path, message)
                .sides(format!("{word} build"), build)
                .fix(format!("install a {word} build of torch {}", torch.release))
        });
    }
}

/// Same name, other parameters.
fn check_release(subject: &Subject, torch: &TorchVersion, judgement: &mut Judgement) {
    let compiled = &subject.model.compiled_by;
    let (Some(lowest), target) = (compiled.torch_min, torch.judged_as()) else { return };
    let highest = compiled.torch_max.unwrap_or(NEWEST);
    for change in PARAMETER_CHANGES.iter().filter(|c| subject.model.requires.shims.iter().any(|s| s == c.name)) {
        let crosses = |compiler: Release| {
            let old = |release: Release| release <= change.before;
            let new = |release: Release| release >= change.after;
            (old(compiler) && new(target)) || (new(compiler) && old(target))
        };
        let outcome = match (crosses(lowest), crosses(highest)) {
            (true, true) => Outcome::Fail,
            (false, false) => continue,
            _ => Outcome::Unknown,
        };
        let message = format!(
            "{} has other parameters up to torch {} than from {} on; the library was compiled by torch {lowest} to {highest}",
            change.name, change.before, change.after
        );
        judgement.push(Finding::new("libtorch-parameters", outcome, subject.path("requires.shims"), message));
    }
}

/// C++ names with nothing but a release to compare: the same release may do, another will not.
fn check_leaked(subject: &Subject, torch: &TorchVersion, judgement: &mut Judgement) {
    let leaked = &subject.model.requires.leaked_cxx;
    let path = subject.path("requires.leaked_cxx");
    if leaked.is_empty() {
        if subject.unknown_reason("requires.leaked_cxx").is_none() {
            let message = "imports no C++ of libtorch".to_owned();
            judgement.push(Finding::new("libtorch-leaked-cxx", Outcome::Pass, path, message));
        }
        return;
    }
    let compiled = &subject.model.compiled_by;
    let release = torch.judged_as();
    let below = compiled.torch_min.is_some_and(|min| release < min);
    let above = compiled.torch_max.map_or(release >= C_ONLY, |max| release > max);
    let what = format!("imports {} C++ functions of libtorch, such as {}", leaked.len(), first(leaked));
    judgement.push(if below || above {
        let message =
            format!("{what}: compiled by another release{}, torch {torch} does not have them", dated(subject));
        Finding::new("libtorch-leaked-cxx", Outcome::Fail, path, message)
            .sides(dated(subject).trim_start_matches([' ', '(']).trim_end_matches(')'), torch)
            .fix("load with the release that compiled it, or compile again with torch 2.6 or newer")
    } else {
        let message = format!("{what}: whether torch {torch} has them, only its libraries tell");
        Finding::new("libtorch-leaked-cxx", Outcome::Unknown, path, message).fix("give --libtorch DIR")
    });
}

/// Shims against real exports.
fn check_exports(subject: &Subject, libtorch: &Libtorch, judgement: &mut Judgement) {
    let requires = &subject.model.requires;
    let path = subject.path("requires.shims");
    let missing: Vec<String> = requires.shims.iter().filter(|n| !libtorch.shims.contains(*n)).cloned().collect();
    let folder = &libtorch.folder;
    judgement.push(if missing.is_empty() {
        let message = format!("{folder} exports all {} C functions that are imported", requires.shims.len());
        Finding::new("libtorch-shim-missing", Outcome::Pass, path, message)
    } else {
        let message = format!("{folder} lacks {} C functions that are imported: {}", missing.len(), listed(&missing));
        let read = Evidence::new(Witness::LoadConfiguration, format!("read: {}", libtorch.libraries.join(", ")));
        Finding::new("libtorch-shim-missing", Outcome::Fail, path, message)
            .fix("use a newer libtorch, or compile again with this one")
            .evidence([read])
    });
    let library = subject.model.platform.as_ref().map(|p| format!("{}-{}", p.os, p.arch));
    if let (Some(library), Some(given)) = (&library, &libtorch.platform)
        && library != given
    {
        let message = format!("{folder} is for {given}, and the library for {library}");
        judgement.push(
            Finding::new("libtorch-build", Outcome::Fail, subject.path("platform"), message).sides(library, given),
        );
    }
    for (class, word, name) in classes(subject) {
        let path = subject.path("requires.shims");
        judgement.push(if libtorch.has(class) {
            Finding::new("libtorch-build", Outcome::Pass, path, format!("{folder} is a {word} build"))
        } else {
            let message = format!("{folder} is no {word} build, and the library imports {name}");
            Finding::new("libtorch-build", Outcome::Fail, path, message).fix(format!("use a {word} build of libtorch"))
        });
    }
}

fn check_cxx_exports(subject: &Subject, libtorch: &Libtorch, judgement: &mut Judgement) {
    let requires = &subject.model.requires;
    if requires.leaked_symbols.is_empty() {
        return;
    }
    let path = subject.path("requires.leaked_cxx");
    let Some(exports) = &libtorch.cxx else {
        let message = "the target file does not list the C++ functions of its libtorch".to_owned();
        judgement.push(
            Finding::new("libtorch-leaked-cxx", Outcome::Unknown, path, message)
                .fix("give --libtorch DIR on the target"),
        );
        return;
    };
    // both lists are in one order
    let missing: Vec<String> = requires
        .leaked_symbols
        .iter()
        .zip(&requires.leaked_cxx)
        .filter(|(symbol, _)| !exports.contains(*symbol))
        .map(|(_, name)| name.clone())
        .collect();
    judgement.push(if missing.is_empty() {
        let message = format!(
            "{} exports all {} C++ functions that are imported",
            libtorch.folder,
            requires.leaked_symbols.len()
        );
        Finding::new("libtorch-leaked-cxx", Outcome::Pass, path, message)
    } else {
        let message = format!(
            "{} lacks {} of the {} C++ functions that are imported: {}",
            libtorch.folder,
            missing.len(),
            requires.leaked_symbols.len(),
            listed(&missing)
        );
        Finding::new("libtorch-leaked-cxx", Outcome::Fail, path, message)
            .fix("use exactly the libtorch that compiled it, or compile again with torch 2.6 or newer")
    });
}

/// The string form of a libtorch shows in its exports.
fn check_abi(subject: &Subject, libtorch: &Libtorch, judgement: &mut Judgement) {
    let Some(wanted) = &subject.model.requires.string_abi else { return };
    let Some(exports) = libtorch.cxx.as_ref().filter(|e| !e.is_empty()) else { return };
    let given = match exports.iter().any(|name| name.contains("NSt7__cxx1112basic_string")) {
        true => "cxx11",
        false if exports.iter().any(|name| name.contains("NSt3__1")) => "libc++",
        false => "pre-cxx11",
    };
    let path = subject.path("requires.string_abi");
    judgement.push(if wanted == given {
        Finding::new("libtorch-string-abi", Outcome::Pass, path, format!("both have {given} strings"))
    } else {
        // where every C++ name is there all the same, and with C functions alone, strings meet only where constants
        // are replaced
        let crosses = subject.model.requires.leaked_symbols.iter().any(|name| !exports.contains(name));
        let outcome = if crosses { Outcome::Fail } else { Outcome::Warn };
        let message = format!("the library has {wanted} strings and {} {given} ones", libtorch.folder);
        Finding::new("libtorch-string-abi", outcome, path, message).sides(wanted, given)
    });
}

/// ` (torch 2.4 to 2.5)`
fn dated(subject: &Subject) -> String {
    let compiled = &subject.model.compiled_by;
    match (compiled.torch_min, compiled.torch_max) {
        (Some(min), Some(max)) if min == max => format!(" (torch {min})"),
        (Some(min), Some(max)) => format!(" (torch {min} to {max})"),
        (Some(min), None) => format!(" (torch {min} or newer)"),
        (None, Some(max)) => format!(" (torch {max} or older)"),
        (None, None) => String::new(),
    }
}

fn first(names: &[String]) -> &str {
    let name = names.first().map(String::as_str).unwrap_or_default();
    name.split('(').next().unwrap_or(name)
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{find, library, outcome};
    use super::*;
    use crate::target::LoadConfig;
    use Outcome::{Fail, Pass, Unknown, Warn};

    fn torch(version: &str) -> LoadConfig {
        LoadConfig { torch: Some(TorchVersion::from_text(version).unwrap()), ..LoadConfig::default() }
    }

    #[test]
    fn releases_are_judged_by_the_table() {
        let model = library("2.15.0-cpu-mlp_dynamic.so");
        let code = "libtorch-shim-missing";
        assert_eq!(outcome(check, &model, &torch("2.15.0+cpu"), code), [Pass]);
        assert_eq!(outcome(check, &model, &torch("2.7.1"), code), [Pass]);
        let found = find(check, &model, &torch("2.6.0"), code);
        assert_eq!(found[0].outcome, Fail);
        assert!(found[0].fix.as_deref().is_some_and(|f| f.contains("2.7")), "{found:?}");
        assert_eq!(outcome(check, &model, &torch("2.42.0"), code), [Pass]);
        assert_eq!(outcome(check, &model, &torch("2.42.0"), "libtorch-release-new"), [Warn]);
        assert_eq!(outcome(check, &model, &torch("2.7.0a0+git"), code), [Pass, Warn]);
    }

    #[test]
    fn a_cuda_library_wants_a_cuda_build() {
        let model = library("2.11.0-cuda-embed_cubin.so");
        assert_eq!(outcome(check, &model, &torch("2.11.0+cpu"), "libtorch-build"), [Fail]);
        assert_eq!(outcome(check, &model, &torch("2.11.0+cu130"), "libtorch-build"), [Pass]);
        assert!(outcome(check, &model, &torch("2.11.0"), "libtorch-build").is_empty());
        assert!(outcome(check, &library("2.15.0-cpu-mlp_dynamic.so"), &torch("2.15+cpu"), "libtorch-build").is_empty());
    }

    #[test]
    fn leaked_cxx_fits_one_release_at_most() {
        let model = library("2.4.1-cpu-mlp_dynamic.so");
        let code = "libtorch-leaked-cxx";
        for (version, expected) in [("2.2", Fail), ("2.4.1", Unknown), ("2.5", Unknown), ("2.6", Fail), ("2.15", Fail)]
        {
            assert_eq!(outcome(check, &model, &torch(version), code), [expected], "{version}");
        }
        assert_eq!(outcome(check, &model, &LoadConfig::default(), code), [Warn]);
        assert_eq!(outcome(check, &library("2.15.0-cpu-mlp_dynamic.so"), &torch("2.15"), code), [Pass]);
    }

    #[test]
    fn real_exports_decide() {
        let model = library("2.4.1-cpu-mlp_dynamic.so");
        let requires = &model.models[0].requires;
        let whole = Libtorch {
            folder: "lib".into(),
            libraries: vec!["libtorch_cpu.so".into()],
            platform: Some("linux-x86_64".into()),
            shims: requires.shims.iter().cloned().collect(),
            cxx: Some(requires.leaked_symbols.iter().cloned().collect()),
            ..Libtorch::default()
        };
        let with = |libtorch: Libtorch| LoadConfig { libtorch: Some(libtorch), ..LoadConfig::default() };
        for code in ["libtorch-shim-missing", "libtorch-leaked-cxx", "libtorch-string-abi"] {
            assert_eq!(outcome(check, &model, &with(whole.clone()), code), [Pass], "{code}");
        }
        let mut cut = whole.clone();
        cut.shims.pop_first();
        cut.cxx.as_mut().unwrap().pop_first();
        cut.cxx.as_mut().unwrap().insert("_ZN3c104nameERKNSt7__cxx1112basic_stringIcE".into());
        for code in ["libtorch-shim-missing", "libtorch-leaked-cxx", "libtorch-string-abi"] {
            assert_eq!(outcome(check, &model, &with(cut.clone()), code), [Fail], "{code}");
        }
        let mut elsewhere = whole.clone();
        elsewhere.platform = Some("linux-aarch64".into());
        assert!(outcome(check, &model, &with(whole.clone()), "libtorch-build").is_empty());
        assert_eq!(outcome(check, &model, &with(elsewhere), "libtorch-build"), [Fail]);
        let from_file = Libtorch { cxx: None, ..whole };
        assert_eq!(outcome(check, &model, &with(from_file), "libtorch-leaked-cxx"), [Unknown]);
    }

    #[test]
    fn a_cpu_libtorch_has_no_cuda() {
        let model = library("2.11.0-cuda-embed_cubin.so");
        let mut libtorch = Libtorch { libraries: vec!["libtorch_cpu.so".into()], ..Libtorch::default() };
        libtorch.shims = model.models[0].requires.shims.iter().filter(|s| !s.contains("cuda")).cloned().collect();
        libtorch.shims.insert("aoti_torch_device_type_cuda".into());
        let config = |l: &Libtorch| LoadConfig { libtorch: Some(l.clone()), ..LoadConfig::default() };
        assert_eq!(outcome(check, &model, &config(&libtorch), "libtorch-build"), [Fail]);
        libtorch.libraries.push("libtorch_cuda.so".into());
        assert_eq!(outcome(check, &model, &config(&libtorch), "libtorch-build"), [Pass]);
    }

    #[test]
    fn foreign_and_unknown_functions_are_told() {
        let mut model = library("2.15.0-cpu-mlp_dynamic.so");
        let requires = &mut model.models[0].requires;
        requires.executorch_shims.push("executorch_aoti_torch_empty_strided".into());
        requires.shims.push("aoti_torch_cpu_from_the_future".into());
        requires.unknown_shims.push("aoti_torch_cpu_from_the_future".into());
        assert_eq!(outcome(check, &model, &torch("2.15"), "libtorch-executorch"), [Fail]);
        assert_eq!(outcome(check, &model, &torch("2.15"), "libtorch-shim-unknown"), [Unknown]);
        assert_eq!(outcome(check, &model, &LoadConfig::default(), "libtorch-shim-unknown"), [Warn]);
    }

    #[test]
    fn changed_parameters_are_told() {
        let mut model = library("2.11.0-cuda-embed_cubin.so");
        model.models[0].requires.shims.push("aoti_torch_cuda__scaled_mm".into());
        assert_eq!(outcome(check, &model, &torch("2.4"), "libtorch-parameters"), [Fail]);
        assert!(outcome(check, &model, &torch("2.11"), "libtorch-parameters").is_empty());
        model.models[0].compiled_by.torch_min = Some(Release::new(2, 4));
        assert_eq!(outcome(check, &model, &torch("2.4"), "libtorch-parameters"), [Unknown]);
    }
}
