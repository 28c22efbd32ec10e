//! Packages that the official loaders of some releases misread (format reference 2.3 and 11).
//!
//! Each hazard names the releases whose loader has it. With `--torch` the hazard holds or not; without, it is a
//! warning that names the releases.

mod codes;

pub use codes::CODES;

use super::{Judgement, Subject};
use crate::model::{Artifact, DeviceKind, Hazard, Kind, Member, Release};
use crate::report::{Finding, Outcome};
use crate::target::{LoadConfig, Loader};
use std::collections::{BTreeMap, BTreeSet};

/// Releases of the loader, from the first to the one before `until`.
#[derive(Debug, Clone, Copy)]
struct Releases {
    from: Release,
    until: Option<Release>,
}

impl Releases {
    const fn new(from: (u16, u16), until: Option<(u16, u16)>) -> Self {
        let until = match until {
            Some((major, minor)) => Some(Release::new(major, minor)),
            None => None,
        };
        Self { from: Release::new(from.0, from.1), until }
    }
    fn has(&self, release: Release) -> bool {
        release >= self.from && self.until.is_none_or(|until| release < until)
    }
    /// `2.6 to 2.12`, `2.8 and newer`
    fn says(&self) -> String {
        match self.until {
            Some(Release { major, minor }) => format!("{} to {major}.{}", self.from, minor.saturating_sub(1)),
            None => format!("{} and newer", self.from),
        }
    }
}

/// The finding for a hazard that the file has.
fn hazard(code: &'static str, config: &LoadConfig, releases: Releases, subject: String, what: String) -> Finding {
    let torch = config.torch.as_ref().map(|torch| torch.release);
    let (outcome, message) = match torch {
        Some(torch) if releases.has(torch) => (Outcome::Fail, format!("{what} (torch {torch})")),
        Some(torch) => {
            (Outcome::Pass, format!("torch {torch} is not among those concerned ({}): {what}", releases.says()))
        }
        None => (Outcome::Warn, format!("{what} (torch {})", releases.says())),
    };
    Finding::new(code, outcome, subject, message)
}

/// Hazards of the file as a whole.
pub fn check_artifact(artifact: &Artifact, config: &LoadConfig, judgement: &mut Judgement) {
    let zipped = artifact.kind != Kind::Directory;
    let Some(archive) = &artifact.archive else { return };
    if zipped {
        check_root(artifact, config, judgement);
    }
    check_names(artifact, config, judgement);
    match archive.version.as_deref().map(str::trim) {
        Some("0") | None => {}
        Some(version) => {
            let message = format!("the archive has version {version:?}, and the Python loader takes 0 alone");
            let outcome = match config.loader {
                Some(Loader::Python) => Outcome::Fail,
                Some(_) => Outcome::Pass,
                None => Outcome::Warn,
            };
            judgement.push(Finding::new("package-version", outcome, "archive.version", message).sides("0", version));
        }
    }
    match artifact.kind {
        Kind::Standalone => judgement.push(
            Finding::new(
                "package-standalone",
                Outcome::Fail,
                "kind",
                "compiled with compile_standalone: it has no interface that the loaders of torch know",
            )
            .fix("build it with its own CMakeLists.txt, or compile without compile_standalone"),
        ),
        Kind::Sources => judgement.push(
            Finding::new(
                "package-sources-only",
                Outcome::Warn,
                "kind",
                "holds sources and no library: the loader runs a C++ compiler at each load",
            )
            .fix("package the compiled library (without aot_inductor.package_cpp_only)"),
        ),
        _ => {}
    }
}

/// Hazards of one model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    check_prefix(subject, judgement);
    let folder = Folder::of(subject);
    if !folder.files.is_empty() && subject.artifact.kind == Kind::Package {
        check_metadata_file(subject, &folder, judgement);
    }
    check_metadata_copies(subject, judgement);
    check_libraries(subject, &folder, judgement);
    check_devices(subject, judgement);
}

/// Members of the model's folder: base names, in archive order.
struct Folder<'a> {
    files: Vec<&'a str>,
}

impl<'a> Folder<'a> {
    fn of(subject: &Subject<'a>) -> Self {
        let Some(archive) = &subject.artifact.archive else { return Self { files: Vec::new() } };
        let root = if archive.root.is_empty() { String::new() } else { format!("{}/", archive.root) };
        let folder = format!("{root}data/aotinductor/{}/", subject.model.name);
        let below = |m: &'a Member| m.name.strip_prefix(&folder).filter(|rest| !rest.contains('/'));
        Self { files: archive.members.iter().filter_map(below).collect() }
    }
    fn last_stem(&self, ending: &str) -> Option<&'a str> {
        self.files.iter().rev().find_map(|f| f.strip_suffix(ending))
    }
    fn has(&self, name: &str) -> bool {
        self.files.contains(&name)
    }
}

fn check_root(artifact: &Artifact, config: &LoadConfig, judgement: &mut Judgement) {
    let Some(archive) = &artifact.archive else { return };
    let first_part = |m: &Member| m.name.split('/').next().unwrap_or_default().to_owned();
    let firsts: Vec<String> = archive.members.iter().take(2).map(first_part).collect();
    let agree = matches!(firsts.as_slice(), [a, b] if a == b);
    let path = "archive.root".to_owned();
    let is_package = matches!(artifact.kind, Kind::Package | Kind::Sources);
    if !is_package || archive.members.is_empty() {
        return;
    }
    // torch/csrc/inductor/aoti_package/model_package_loader.cpp: 2.6 and 2.7 look for `data/aotinductor/` at the start
    // of each name; from 2.8 on the first part of entries 0 and 1, if equal, is taken for the root
    let new = Releases::new((2, 8), None);
    if archive.root.is_empty() {
        if agree {
            let what = format!("has no root folder, and loaders take `{}/` for one: nothing is found", firsts[0]);
            judgement.push(
                hazard("package-root", config, new, path, what)
                    .fix("package with torch 2.8 or newer, or keep archive_format as the first member"),
            );
        } else {
            judgement.push(Finding::new(
                "package-root",
                Outcome::Pass,
                path,
                "has the layout of 2.6 and 2.7, which all loaders read",
            ));
        }
        return;
    }
    if !agree {
        let what =
            "its first two members do not share the root folder: loaders take no root, and nothing is found".to_owned();
        judgement.push(hazard("package-root", config, new, path, what).fix("write the members of the package first"));
        return;
    }
    let old = Releases::new((2, 6), Some((2, 8)));
    let what = format!("has the root folder `{}`, which the loaders of 2.6 and 2.7 do not look into", archive.root);
    let mut finding = hazard("package-root", config, old, path, what);
    // every package of 2.8 and newer is so: no warning for it
    if finding.outcome == Outcome::Warn {
        finding.outcome = Outcome::Pass;
    }
    judgement.push(finding);
}

/// What the loaders of all releases do wrong with a member's name; tried with 2.7, 2.9, 2.13 and 2.15. The outcome
/// is the one for a given torch; without one it is a warning, as for every hazard of loaders.
const UNSAFE: &[(Hazard, Outcome, &str)] = &[
    (Hazard::ParentPart, Outcome::Fail, "leaves the folder that it is unpacked into (`..`)"),
    (Hazard::AbsoluteName, Outcome::Fail, "is an absolute path"),
    (Hazard::SymbolicLink, Outcome::Fail, "is a symbolic link"),
    (Hazard::Backslash, Outcome::Warn, "has backslashes, which are separators on Windows alone"),
    (Hazard::OddCharacters, Outcome::Warn, "has control characters or is no UTF-8"),
    (Hazard::Duplicate, Outcome::Fail, "is there twice with different content"),
];

/// Names that lead outside the package.
pub(super) fn check_names(artifact: &Artifact, config: &LoadConfig, judgement: &mut Judgement) {
    let members = artifact.archive.as_ref().map(|archive| archive.members.as_slice()).unwrap_or_default();
    let mut is_fine = true;
    for (hazard, outcome, what) in UNSAFE {
        let names: Vec<&str> = members.iter().filter(|m| m.hazards.contains(hazard)).map(|m| m.name.as_str()).collect();
        let Some(first) = names.first() else { continue };
        is_fine = false;
        let more = if names.len() > 1 { format!(" (and {} more)", names.len() - 1) } else { String::new() };
        let outcome = if config.torch.is_some() { *outcome } else { Outcome::Warn };
        judgement.push(
            Finding::new("package-unsafe-name", outcome, "archive.members", format!("{first:?} {what}{more}"))
                .fix("do not load or unpack this file; package the model again"),
        );
    }
    if is_fine && !members.is_empty() {
        let message = format!("no name of {} members leads outside the package", members.len());
        judgement.push(Finding::new("package-unsafe-name", Outcome::Pass, "archive.members", message));
    }
}

fn check_prefix(subject: &Subject, judgement: &mut Judgement) {
    let name = &subject.model.name;
    let longer: Vec<&str> = subject
        .artifact
        .models
        .iter()
        .map(|m| m.name.as_str())
        .filter(|other| *other != name && other.starts_with(name.as_str()))
        .collect();
    if subject.artifact.models.len() < 2 {
        return;
    }
    let path = subject.path("name");
    let Some(other) = longer.first() else {
        let message = format!("no other model's name begins with {name:?}");
        judgement.push(Finding::new("package-model-prefix", Outcome::Pass, path, message));
        return;
    };
    let what =
        format!("{name:?} is the beginning of {other:?}: loaders mix the two, and the last library in the file wins");
    judgement.push(
        hazard("package-model-prefix", subject.config, Releases::new((2, 6), Some((2, 13))), path, what)
            .fix("give the models names of which none begins with another's"),
    );
}

fn check_metadata_file(subject: &Subject, folder: &Folder, judgement: &mut Judgement) {
    let path = subject.path("metadata");
    let code = "package-metadata-missing";
    match folder.last_stem(".cpp") {
        Some(stem) => {
            let wanted = format!("{stem}_metadata.json");
            if folder.has(&wanted) {
                judgement.push(Finding::new(
                    code,
                    Outcome::Pass,
                    path,
                    format!("{wanted} is there, where loaders look for it"),
                ));
            } else {
                let what = format!("loaders want {wanted}, which is not in the package");
                judgement.push(
                    hazard(code, subject.config, Releases::new((2, 6), None), path, what)
                        .fix("package the model again"),
                );
            }
        }
        None => {
            let library = folder.last_stem(".wrapper.so").map(|s| format!("{s}.wrapper"));
            let stem = library.or_else(|| folder.last_stem(".so").map(str::to_owned));
            let has_own = stem.is_some_and(|stem| folder.has(&format!("{stem}_metadata.json")));
            let what =
                "has no source file, by whose name loaders look for the metadata: the load ends in \"File not found\"";
            let releases = if has_own { Releases::new((2, 6), Some((2, 13))) } else { Releases::new((2, 6), None) };
            judgement.push(
                hazard(code, subject.config, releases, path, what.into()).fix("leave the sources in the package"),
            );
        }
    }
}

fn check_metadata_copies(subject: &Subject, judgement: &mut Judgement) {
    let mut copies: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for entry in &subject.model.metadata {
        if let Some(member) = &entry.member {
            copies.entry(member).or_default().insert(&entry.key, &entry.value);
        }
    }
    if copies.len() < 2 {
        return;
    }
    let mut values = copies.values();
    let first = values.next();
    if values.all(|copy| Some(copy) == first) {
        let message = format!("{} copies of the metadata agree", copies.len());
        judgement.push(Finding::new("package-metadata-differs", Outcome::Pass, subject.path("metadata"), message));
        return;
    }
    let keys: BTreeSet<&str> = copies.values().flat_map(|c| c.keys().copied()).collect();
    let differ: Vec<&str> =
        keys.into_iter().filter(|key| copies.values().map(|c| c.get(key)).collect::<BTreeSet<_>>().len() > 1).collect();
    let what = format!(
        "copies of the metadata differ in {}: the C++ loader reads the kernel's copy, the Python loader of 2.10 and newer \
         the wrapper's",
        differ.join(", ")
    );
    // a wrong device key picks a wrong runner; other keys mislead people only
    let mut finding =
        hazard("package-metadata-differs", subject.config, Releases::new((2, 7), None), subject.path("metadata"), what)
            .fix("package the model again; do not edit one copy alone");
    if finding.outcome == Outcome::Fail && !differ.contains(&"AOTI_DEVICE_KEY") {
        finding.outcome = Outcome::Warn;
    }
    judgement.push(finding);
}

fn check_libraries(subject: &Subject, folder: &Folder, judgement: &mut Judgement) {
    let is_library = |f: &&&str| f.ends_with(".so") || f.ends_with(".pyd");
    let is_wrapper = |f: &&&str| f.ends_with(".wrapper.so") || f.ends_with(".wrapper.pyd");
    let libraries: Vec<&&str> = folder.files.iter().filter(is_library).collect();
    let wrappers: Vec<&&str> = folder.files.iter().filter(is_wrapper).collect();
    let path = subject.path("library");
    let code = "package-several-libraries";
    if let [first, second, ..] = wrappers.as_slice() {
        let what = format!(
            "holds {} model libraries ({first}, {second}): loaders of 2.13 and newer refuse that, older ones take the last",
            wrappers.len()
        );
        judgement.push(
            hazard(code, subject.config, Releases::new((2, 6), None), path, what)
                .fix("package the model into an empty file"),
        );
        return;
    }
    let last = libraries.last().map(|l| **l);
    let own = subject.model.library.as_deref().map(|l| l.rsplit('/').next().unwrap_or(l));
    if let (Some(last), Some(own)) = (last, own)
        && libraries.len() > 1
        && last != own
    {
        let what = format!("loaders take the last library of the folder, {last}, for the model; it is {own}");
        judgement.push(
            hazard(code, subject.config, Releases::new((2, 6), Some((2, 13))), path, what)
                .fix("load it with torch 2.13 or newer"),
        );
    } else if libraries.len() == 1 {
        judgement.push(Finding::new(code, Outcome::Pass, path, "holds one library"));
    }
}

fn check_devices(subject: &Subject, judgement: &mut Judgement) {
    let devices: BTreeSet<&str> =
        subject.model.constants.iter().flatten().filter_map(|c| c.device.as_ref()).map(|d| d.kind.name()).collect();
    if devices.len() < 2 {
        return;
    }
    let compiled = &subject.model.compiled_by;
    let path = subject.path("constants");
    let names: Vec<&str> = devices.into_iter().collect();
    let names = names.join(" and ");
    // c10 of 2.13: constants on the CPU get a buffer of their own
    let own_buffer = Release::new(2, 13);
    let is_new = compiled.torch_min.is_some_and(|min| min >= own_buffer);
    let (outcome, message) = if is_new {
        (Outcome::Pass, format!("constants are on {names}; this release keeps them apart"))
    } else {
        let asked_cpu = subject.config.device.as_ref().is_some_and(|d| d.kind == DeviceKind::Cpu);
        let outcome = if asked_cpu { Outcome::Fail } else { Outcome::Warn };
        (
            outcome,
            format!("constants are on {names}, and only runtimes of 2.13 and newer keep them in buffers of their own"),
        )
    };
    judgement.push(
        Finding::new("constants-two-devices", outcome, path, message)
            .fix("compile again with torch 2.13 or newer, or move all constants to one device before export"),
    );
}

#[cfg(test)]
mod tests {
    use super::super::sample::{cpu, outcome, with_kernel_files};
    use super::*;
    use crate::report::Outcome::{Fail, Pass, Warn};

    fn torch(version: &str) -> LoadConfig {
        LoadConfig { torch: crate::target::TorchVersion::from_text(version).ok(), ..LoadConfig::default() }
    }

    fn whole(artifact: &Artifact, config: &LoadConfig, code: &str) -> Vec<Outcome> {
        let mut judgement = Judgement::default();
        check_artifact(artifact, config, &mut judgement);
        assert!(crate::checks::codes::find(code).is_some(), "{code} is not registered");
        judgement.findings.iter().filter(|f| f.code == code).map(|f| f.outcome).collect()
    }

    fn rename(artifact: &mut Artifact, edit: impl Fn(&str) -> String) {
        for member in &mut artifact.archive.as_mut().expect("an archive").members {
            member.name = edit(&member.name);
        }
    }

    #[test]
    fn names_that_begin_alike_are_mixed_up_to_2_12() {
        let mut artifact = cpu();
        let code = "package-model-prefix";
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), []);
        let mut second = artifact.models[0].clone();
        second.name = "model2".into();
        artifact.models.push(second);
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Warn, Pass]);
        assert_eq!(outcome(check, &artifact, &torch("2.12.1+cu130"), code), [Fail, Pass]);
        assert_eq!(outcome(check, &artifact, &torch("2.13.0"), code), [Pass, Pass]);
        artifact.models[1].name = "other".into();
        assert_eq!(outcome(check, &artifact, &torch("2.12"), code), [Pass, Pass]);
    }

    #[test]
    fn metadata_is_looked_for_by_the_last_source() {
        let code = "package-metadata-missing";
        let mut artifact = cpu();
        assert_eq!(outcome(check, &artifact, &torch("2.9"), code), [Pass]);
        let members = &mut artifact.archive.as_mut().expect("an archive").members;
        members.retain(|m| !m.name.ends_with("kernel_metadata.json"));
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Warn]);
        assert_eq!(outcome(check, &artifact, &torch("2.15"), code), [Fail]);
        artifact.archive.as_mut().expect("an archive").members.retain(|m| !m.name.ends_with(".cpp"));
        assert_eq!(outcome(check, &artifact, &torch("2.12"), code), [Fail], "no source: no name to look for");
        assert_eq!(outcome(check, &artifact, &torch("2.13"), code), [Pass], "by the library's name");
    }

    #[test]
    fn copies_of_the_metadata_are_compared() {
        let code = "package-metadata-differs";
        let mut artifact = cpu();
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Pass]);
        artifact.models[0].metadata[0].value = "cuda".into();
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Warn]);
        assert_eq!(outcome(check, &artifact, &torch("2.9"), code), [Fail]);
    }

    #[test]
    fn the_root_is_told_by_the_first_two_members() {
        let code = "package-root";
        let mut artifact = cpu();
        assert_eq!(whole(&artifact, &LoadConfig::default(), code), [Pass]);
        assert_eq!(whole(&artifact, &torch("2.7.1"), code), [Fail], "2.7 looks into no root");
        artifact.archive.as_mut().expect("an archive").root.clear();
        rename(&mut artifact, |name| name.trim_start_matches("m/").to_owned());
        assert_eq!(whole(&artifact, &torch("2.9"), code), [Fail], "`data` is taken for the root");
        artifact.archive.as_mut().expect("an archive").members[0].name = "archive_format".into();
        assert_eq!(whole(&artifact, &torch("2.9"), code), [Pass], "as 2.6 and 2.7 write it");
    }

    #[test]
    fn dangerous_names_warn_until_a_torch_is_given() {
        let code = "package-unsafe-name";
        let mut artifact = cpu();
        assert_eq!(whole(&artifact, &LoadConfig::default(), code), [Pass]);
        artifact.archive.as_mut().expect("an archive").members[0].hazards.push(Hazard::ParentPart);
        assert_eq!(whole(&artifact, &LoadConfig::default(), code), [Warn]);
        assert_eq!(whole(&artifact, &torch("2.9"), code), [Fail]);
    }

    #[test]
    fn kind_and_version_of_the_archive_are_judged() {
        let mut artifact = cpu();
        artifact.archive.as_mut().expect("an archive").version = Some("1".into());
        assert_eq!(whole(&artifact, &LoadConfig::default(), "package-version"), [Warn]);
        let python = LoadConfig { loader: Some(Loader::Python), ..LoadConfig::default() };
        assert_eq!(whole(&artifact, &python, "package-version"), [Fail]);
        artifact.kind = Kind::Sources;
        assert_eq!(whole(&artifact, &python, "package-sources-only"), [Warn]);
        artifact.kind = Kind::Standalone;
        assert_eq!(whole(&artifact, &python, "package-standalone"), [Fail]);
    }

    #[test]
    fn one_library_is_right() {
        let code = "package-several-libraries";
        let mut artifact = cpu();
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Pass]);
        let mut second = artifact.archive.as_ref().expect("an archive").members[4].clone();
        second.name = second.name.replace("a.wrapper", "launcher");
        artifact.archive.as_mut().expect("an archive").members.push(second.clone());
        assert_eq!(outcome(check, &artifact, &torch("2.12"), code), [Fail], "the last one is taken");
        assert_eq!(outcome(check, &artifact, &torch("2.13"), code), [Pass]);
        second.name = second.name.replace("launcher", "c.wrapper");
        artifact.archive.as_mut().expect("an archive").members.push(second);
        assert_eq!(outcome(check, &artifact, &torch("2.13"), code), [Fail]);
    }

    #[test]
    fn constants_on_two_devices_need_2_13() {
        let code = "constants-two-devices";
        let mut artifact = with_kernel_files(&[]);
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), []);
        artifact.models[0].constants.as_mut().expect("constants")[0].device =
            Some(crate::model::Device::new(DeviceKind::Cpu));
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Warn]);
        artifact.models[0].compiled_by.torch_min = Some(Release::new(2, 13));
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), code), [Pass]);
    }
}
