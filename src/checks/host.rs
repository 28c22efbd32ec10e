//! Will the host's system and libraries open it?

mod codes;

pub use codes::CODES;

use super::{Judgement, Subject};
use crate::model::{CxxRuntime, DeviceKind, Requires};
use crate::report::{Finding, Outcome};
use crate::target::Version;

/// First glibc whose dlopen refuses libraries that want an executable stack.
const STACK_REFUSED: &str = "2.41";
/// Folders whose absolute paths are the same on every system.
const SYSTEM_FOLDERS: &[&str] = &["/usr/lib/", "/lib/", "/lib64/", "/usr/lib64/", "/System/Library/"];
/// OpenMP runtimes that no torch wheel for Linux brings.
const FOREIGN_OPENMP: &[&str] = &["libomp.", "libiomp5."];

/// Judges one model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    check_host_unknown(subject, judgement);
    let Some(platform) = &subject.model.platform else { return };
    check_platform(subject, judgement);
    if platform.os == "linux" {
        check_glibc(subject, judgement);
        check_libstdcxx(subject, judgement);
        check_stack(subject, judgement);
    }
    check_libraries(subject, judgement);
    if subject.model.requires.cxx_runtime == Some(CxxRuntime::StaticExported) {
        let message = "brings its own C++ runtime and exports it, so that other libraries may bind to it".to_owned();
        judgement.push(
            Finding::new("host-cxx-runtime", Outcome::Warn, subject.path("requires.cxx_runtime"), message)
                .fix("link libstdc++ dynamically, or with -Wl,--exclude-libs,ALL"),
        );
    }
}

/// What `--this-host` could not read counts where this model needs it.
fn check_host_unknown(subject: &Subject, judgement: &mut Judgement) {
    let needs_gpu = subject.model.device.as_ref().is_none_or(|d| d.kind != DeviceKind::Cpu);
    for unknown in &subject.config.host_unknown {
        let concerns = match unknown.topic {
            "gpu" => needs_gpu,
            "gpu-memory" => false,
            "glibc" => subject.model.requires.glibc.is_some(),
            "libstdcxx" => subject.model.requires.glibcxx.is_some(),
            _ => true,
        };
        if concerns {
            let message = format!("{}: {}", unknown.topic, unknown.reason);
            judgement.push(Finding::new("host-fact-unknown", Outcome::Unknown, unknown.topic, message));
        }
    }
}

fn check_platform(subject: &Subject, judgement: &mut Judgement) {
    let (Some(given), Some(library)) = (&subject.config.platform, &subject.model.platform) else { return };
    let fits = library.os == given.os && library.arch == given.arch;
    let path = subject.path("platform");
    let of_library = format!("{}-{}", library.os, library.arch);
    judgement.push(if fits {
        Finding::new("host-platform", Outcome::Pass, path, format!("the library is for {given}"))
    } else {
        let message = format!("the library is for {of_library}, and the target is {given}");
        Finding::new("host-platform", Outcome::Fail, path, message)
            .sides(&of_library, given)
            .fix(format!("compile for {given}"))
    });
}

fn check_glibc(subject: &Subject, judgement: &mut Judgement) {
    let wanted = subject.model.requires.glibc.as_deref();
    let given = subject.config.glibc.as_ref();
    compare(subject, judgement, &Runtime { code: "host-glibc", fact: "requires.glibc", name: "glibc" }, wanted, given);
}

fn check_libstdcxx(subject: &Subject, judgement: &mut Judgement) {
    let wanted = subject.model.requires.glibcxx.as_deref();
    let given = subject.config.libstdcxx.as_ref();
    let runtime = Runtime { code: "host-libstdcxx", fact: "requires.glibcxx", name: "libstdc++" };
    compare(subject, judgement, &runtime, wanted, given);
}

/// A library with symbol versions.
struct Runtime {
    code: &'static str,
    fact: &'static str,
    name: &'static str,
}

fn compare(
    subject: &Subject,
    judgement: &mut Judgement,
    runtime: &Runtime,
    wanted: Option<&str>,
    given: Option<&Version>,
) {
    let Runtime { code, fact, name } = runtime;
    let Some(given) = given else {
        if wanted.is_some() {
            judgement.not_asked(name.replace("c++", "cxx"));
        }
        return;
    };
    let path = subject.path(fact);
    let Some(wanted) = wanted else {
        judgement.push(match subject.unknown_reason(fact) {
            Some(reason) => Finding::new(code, Outcome::Unknown, path, format!("what it wants of {name}: {reason}")),
            None => Finding::new(code, Outcome::Pass, path, format!("wants no version of {name}")),
        });
        return;
    };
    let fits = Version::from_text(wanted).map(|wanted| wanted <= *given);
    judgement.push(match fits {
        Some(true) => Finding::new(code, Outcome::Pass, path, format!("wants {name} {wanted}, the target has {given}")),
        Some(false) => {
            let message = format!("wants {name} {wanted} or newer, and the target has {given}");
            Finding::new(code, Outcome::Fail, path, message)
                .sides(wanted, given)
                .fix(format!("compile on a system with {name} {given} or older, or update the target"))
        }
        None => Finding::new(code, Outcome::Unknown, path, format!("wants {name} `{wanted}`, which is no version")),
    });
}

fn check_stack(subject: &Subject, judgement: &mut Judgement) {
    let code = "host-executable-stack";
    let path = subject.path("requires.executable_stack");
    let refuses = Version::from_text(STACK_REFUSED);
    let refused = match (&subject.config.glibc, &refuses) {
        (Some(glibc), Some(first)) => Some(glibc >= first),
        _ => None,
    };
    let fix = "clear the flag with patchelf --clear-execstack; the code does not need it";
    judgement.push(match (subject.model.requires.executable_stack, refused) {
        (Some(false), _) => Finding::new(code, Outcome::Pass, path, "asks for no executable stack"),
        (Some(true), Some(false)) => {
            Finding::new(code, Outcome::Pass, path, "asks for an executable stack, which this glibc grants")
        }
        (Some(true), Some(true)) => {
            let message = format!("asks for an executable stack, which glibc {STACK_REFUSED} and newer refuse at load");
            Finding::new(code, Outcome::Fail, path, message).fix(fix)
        }
        (Some(true), None) => {
            let message = format!("asks for an executable stack: it does not load with glibc {STACK_REFUSED} or newer");
            Finding::new(code, Outcome::Warn, path, message).fix(fix)
        }
        (None, Some(_)) => {
            subject.unknown(code, "requires.executable_stack", "whether it asks for an executable stack")
        }
        (None, None) => return,
    });
}

fn check_libraries(subject: &Subject, judgement: &mut Judgement) {
    let Requires { libraries, run_paths, idle_libraries, .. } = &subject.model.requires;
    let path = subject.path("requires.libraries");
    let is_foreign =
        |name: &&String| is_absolute(name) && !SYSTEM_FOLDERS.iter().any(|folder| name.starts_with(folder));
    let absolute: Vec<&String> = libraries.iter().filter(is_foreign).collect();
    for library in &absolute {
        let message = format!("needs {library}, at exactly this path");
        judgement.push(Finding::new("host-absolute-library", Outcome::Warn, &path, message));
    }
    let paths: Vec<&String> = run_paths.iter().filter(|p| is_absolute(p)).collect();
    for run_path in &paths {
        let message = format!("searches {run_path} of the build host for its libraries");
        judgement.push(Finding::new(
            "host-absolute-library",
            Outcome::Warn,
            subject.path("requires.run_paths"),
            message,
        ));
    }
    if absolute.is_empty() && paths.is_empty() {
        let message = "names no paths of the build host";
        judgement.push(Finding::new("host-absolute-library", Outcome::Pass, &path, message));
    }
    for library in idle_libraries {
        let message = format!("needs {library}, from which nothing is imported");
        judgement.push(
            Finding::new("host-idle-library", Outcome::Warn, subject.path("requires.idle_libraries"), message)
                .fix(format!("patchelf --remove-needed {library}")),
        );
    }
    let base = |name: &str| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let openmp = libraries.iter().find(|l| FOREIGN_OPENMP.iter().any(|f| base(l).starts_with(f)));
    let is_linux = subject.model.platform.as_ref().is_some_and(|p| p.os == "linux");
    if let Some(library) = openmp.filter(|_| is_linux) {
        let message = format!("needs {library}, and torch brings libgomp.so.1 alone");
        judgement.push(Finding::new("host-openmp", Outcome::Warn, &path, message));
    }
}

fn is_absolute(name: &str) -> bool {
    name.starts_with('/') || name.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/")
}

#[cfg(test)]
mod tests {
    use super::super::sample::{find, library, outcome};
    use super::*;
    use crate::model::Artifact;
    use crate::target::{HostUnknown, LoadConfig, PlatformName};
    use Outcome::{Fail, Pass, Unknown, Warn};

    fn model() -> Artifact {
        library("2.15.0-cpu-mlp_dynamic.so")
    }
    fn glibc(version: &str) -> LoadConfig {
        LoadConfig { glibc: Version::glibc(version).ok(), ..LoadConfig::default() }
    }

    #[test]
    fn versions_are_compared() {
        assert_eq!(outcome(check, &model(), &glibc("2.36"), "host-glibc"), [Pass]);
        assert_eq!(outcome(check, &model(), &glibc("2.31"), "host-glibc"), [Fail]);
        let libstdcxx = |v: &str| LoadConfig { libstdcxx: Version::libstdcxx(v).ok(), ..LoadConfig::default() };
        assert_eq!(outcome(check, &model(), &libstdcxx("3.4.32"), "host-libstdcxx"), [Pass]);
        assert_eq!(outcome(check, &model(), &libstdcxx("3.4.9"), "host-libstdcxx"), [Fail]);
        assert!(outcome(check, &model(), &LoadConfig::default(), "host-glibc").is_empty());
    }

    #[test]
    fn executable_stacks_depend_on_glibc() {
        let code = "host-executable-stack";
        assert_eq!(outcome(check, &model(), &LoadConfig::default(), code), [Warn]);
        assert_eq!(outcome(check, &model(), &glibc("2.41"), code), [Fail]);
        assert_eq!(outcome(check, &model(), &glibc("2.40"), code), [Pass]);
        let mut cleared = model();
        cleared.models[0].requires.executable_stack = Some(false);
        assert_eq!(outcome(check, &cleared, &glibc("2.41"), code), [Pass]);
    }

    #[test]
    fn platforms_are_compared() {
        let on = |name: &str| LoadConfig { platform: PlatformName::from_text(name).ok(), ..LoadConfig::default() };
        assert_eq!(outcome(check, &model(), &on("linux-x86_64"), "host-platform"), [Pass]);
        assert_eq!(outcome(check, &model(), &on("linux-aarch64"), "host-platform"), [Fail]);
        let mac = library("2.15.0-cpu-mlp_dynamic-macos_arm64.pt2");
        assert_eq!(outcome(check, &mac, &on("macos-arm64"), "host-platform"), [Pass]);
        assert_eq!(outcome(check, &mac, &on("linux-x86_64"), "host-platform"), [Fail]);
        let windows = library("2.15.0-cpu-mlp_dynamic-mingw-stripped.pt2");
        assert_eq!(outcome(check, &windows, &on("windows-amd64"), "host-platform"), [Pass]);
        assert!(outcome(check, &windows, &glibc("2.41"), "host-executable-stack").is_empty());
    }

    #[test]
    fn paths_of_the_build_host_are_told() {
        assert_eq!(outcome(check, &model(), &LoadConfig::default(), "host-absolute-library"), [Pass]);
        let mut mac = library("2.15.0-cpu-mlp_dynamic-macos_arm64.pt2");
        mac.models[0].requires.libraries = vec!["/opt/homebrew/opt/libomp/lib/libomp.dylib".into()];
        mac.models[0].requires.run_paths = vec!["/usr/lib/llvm-14/lib".into(), "$ORIGIN".into()];
        let found = find(check, &mac, &LoadConfig::default(), "host-absolute-library");
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains("/opt/homebrew"), "{found:?}");
    }

    #[test]
    fn superfluous_and_foreign_libraries_are_told() {
        let old = library("2.4.1-cpu-mlp_dynamic.so");
        let found = find(check, &old, &LoadConfig::default(), "host-idle-library");
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("libgomp.so.1"), "{found:?}");
        assert!(outcome(check, &model(), &LoadConfig::default(), "host-idle-library").is_empty());
        let mut clang = model();
        clang.models[0].requires.libraries.push("libomp.so.5".into());
        assert_eq!(outcome(check, &clang, &LoadConfig::default(), "host-openmp"), [Warn]);
        assert!(outcome(check, &model(), &LoadConfig::default(), "host-openmp").is_empty());
        clang.models[0].requires.cxx_runtime = Some(CxxRuntime::StaticExported);
        assert_eq!(outcome(check, &clang, &LoadConfig::default(), "host-cxx-runtime"), [Warn]);
        assert!(outcome(check, &model(), &LoadConfig::default(), "host-cxx-runtime").is_empty());
    }

    #[test]
    fn an_invisible_gpu_leaves_a_gpu_model_undecided() {
        let blind = LoadConfig {
            host_unknown: vec![HostUnknown { topic: "gpu", reason: "no GPU is visible".into() }],
            ..LoadConfig::default()
        };
        let code = "host-fact-unknown";
        assert_eq!(outcome(check, &library("2.11.0-cuda-embed_cubin.so"), &blind, code), [Unknown]);
        assert!(outcome(check, &model(), &blind, code).is_empty());
    }
}
