//! `verify`: compare artefacts with how they are going to be loaded.

use super::arguments::{OutputArgs, VerifyArgs};
use super::{CliError, open, project, remark};
use crate::checks::{self, Policy};
use crate::model::Artifact;
use crate::report::{Exit, Report, Verdict};
use crate::target::{LoadConfig, UsageError, Which};
use crate::{CodeReading, Settings};
use std::path::PathBuf;

/// The exit code is the worst verdict.
pub fn run(args: &VerifyArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let project = project::load(&args.project)?;
    let mut policy = policy(args)?;
    project::add_levels(project.as_ref(), &mut policy);
    let given = open::given(&args.files)?;
    let jobs = match &project {
        Some(project) if given.is_empty() && !project.artifacts.is_empty() => project::jobs(project, &args.load)?,
        _ => Vec::new(),
    };
    let configs = if jobs.is_empty() { args.load.configs(project.as_ref())? } else { Vec::new() };
    let budget = project.as_ref().map(|p| p.budget).unwrap_or_default();
    let configs: Vec<LoadConfig> = configs.into_iter().map(|config| LoadConfig { budget, ..config }).collect();
    let all_configs = || configs.iter().chain(jobs.iter().flat_map(|job| &job.configs));
    for config in all_configs() {
        require(&args.require, config)?;
    }
    let settings = Settings {
        code: if args.files.no_interpret { CodeReading::Never } else { CodeReading::Always },
        scans_instructions: all_configs().any(|c| c.cpu.is_some()),
        hashes_file: args.files.digest,
        ..Settings::default()
    };
    let paths: Vec<PathBuf> = match (jobs.is_empty(), given.is_empty()) {
        (true, true) => vec![only_artifact()?],
        (true, false) => given,
        (false, _) => jobs.iter().map(|job| job.path.clone()).collect(),
    };
    let baseline = args.project.write_baseline.as_deref();
    let configured = [&args.files.files_from, &args.project.config, &args.project.baseline].into_iter().flatten();
    let inputs: Vec<PathBuf> = paths.iter().chain(configured).chain(args.load.files()).cloned().collect();
    let out = output.open(&inputs, baseline)?;
    let artifacts = if jobs.is_empty() {
        let opened = open::open(&paths, &settings)?;
        remark(&opened.remarks);
        for config in &configs {
            check_use(config, &opened.artifacts)?;
        }
        opened.artifacts.iter().map(|artifact| checks::verify_targets(artifact, &configs, &policy)).collect()
    } else {
        let judge = |(artifact, job): (Artifact, &project::Job)| {
            let mut report = checks::verify_targets(&artifact, &job.configs, &policy);
            report.asked_at = Some(job.place.clone());
            report
        };
        open::read_all(&paths, &settings).into_iter().zip(&jobs).map(judge).collect()
    };
    let mut report = Report { command: "verify".to_owned(), artifacts };
    project::accept(&mut report, project.as_ref(), &args.project)?;
    output.write_report(&report, out)?;
    if report.artifacts.is_empty() {
        return Ok(Exit::Unreadable);
    }
    match &args.project.write_baseline {
        Some(file) => {
            project::write_baseline(&report, file)?;
            let is_unreadable = report.artifacts.iter().any(|a| a.verdict == Verdict::Unreadable);
            Ok(if is_unreadable { Exit::Unreadable } else { Exit::Holds })
        }
        None => Ok(report.exit()),
    }
}

fn policy(args: &VerifyArgs) -> Result<Policy, CliError> {
    let mut policy = Policy::default();
    for code in &args.allow_unknown {
        if code == "*" {
            policy.allow_all_unknown = true;
        } else if checks::codes::find(code).is_some() {
            policy.allow_unknown.push(code.clone());
        } else {
            let valid: Vec<&str> = checks::codes::all().map(|code| code.id).collect();
            return Err(UsageError::unknown_word("code", code, &valid).within("--allow-unknown").into());
        }
    }
    Ok(policy)
}

/// A topic of `--require` and how to tell that it is asked.
type Topic = (&'static str, fn(&LoadConfig) -> bool);

/// Topics of `--require`.
const TOPICS: &[Topic] = &[
    ("device", |c| c.device.is_some()),
    ("inputs", |c| !c.inputs.is_empty() || !c.cases.is_empty()),
    ("model", |c| c.model.is_some()),
    ("gpu", |c| !c.gpus.is_empty()),
    ("driver", |c| c.driver.is_some()),
    ("gpu-memory", |c| c.gpu_memory_bytes.is_some()),
    ("cpu", |c| c.cpu.is_some()),
    ("torch", |c| c.torch.is_some() || c.libtorch.is_some()),
    ("libtorch", |c| c.libtorch.is_some()),
    ("loader", |c| c.loader.is_some()),
    ("platform", |c| c.platform.is_some()),
    ("glibc", |c| c.glibc.is_some()),
    ("libstdcxx", |c| c.libstdcxx.is_some()),
    ("page-size", |c| c.page_size_bytes.is_some()),
    ("weights", |c| !c.weights.is_empty()),
    ("metadata", |c| !c.metadata.is_empty()),
    ("exported", |c| c.exported.is_some()),
    ("ops", |c| !c.ops.is_empty() || !c.op_libraries.is_empty()),
];

fn require(topics: &[String], config: &LoadConfig) -> Result<(), CliError> {
    for topic in topics {
        let Some((_, is_asked)) = TOPICS.iter().find(|(name, _)| name == topic) else {
            let valid: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
            return Err(UsageError::unknown_word("topic", topic, &valid).within("--require").into());
        };
        if !is_asked(config) {
            let target = config.name.as_ref().map(|name| format!(" for target {name}")).unwrap_or_default();
            return Err(CliError::usage(format!("--require {topic}: it is not asked{target}; give --{topic}")));
        }
    }
    Ok(())
}

/// Wrong use that shows only with the artefacts at hand: names of inputs, and which of several models is meant.
fn check_use(config: &LoadConfig, artifacts: &[Artifact]) -> Result<(), CliError> {
    let asks_inputs = !config.inputs.is_empty() || !config.cases.is_empty();
    for artifact in artifacts {
        let names: Vec<&str> = artifact.models.iter().map(|m| m.name.as_str()).collect();
        if asks_inputs && names.len() > 1 && config.model.is_none() {
            return Err(CliError::usage(format!(
                "{} has several models ({}): say with --model which one the inputs are for",
                artifact.path,
                names.join(", ")
            )));
        }
    }
    let [artifact] = artifacts else { return Ok(()) };
    for model in artifact.models.iter().filter(|m| config.model.as_ref().is_none_or(|name| *name == m.name)) {
        let Some(inputs) = &model.inputs else { continue };
        let resolved = config.inputs.resolve(inputs);
        let is_flag = |name: &str| config.inputs.entries.iter().any(|e| e.which == Which::Named(name.to_owned()));
        if let Some((_, error)) = resolved.missing.into_iter().find(|(name, _)| is_flag(name)) {
            return Err(error.into());
        }
        if let Some(error) = resolved.twice.into_iter().next() {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Without ARTIFACT: the only one here, unless a CI job runs this, where a guess would be a gate that checks nothing.
fn only_artifact() -> Result<PathBuf, CliError> {
    if std::env::var_os("CI").is_some() {
        return Err(CliError::usage("no ARTIFACT is given; in CI (the variable CI is set) none is looked for"));
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(".")
        .map_err(|e| CliError::Io(format!("cannot list the current folder: {e}")))?
        .flatten()
        .map(|entry| entry.file_name().into())
        .filter(|path: &PathBuf| path.extension().is_some_and(|e| e == "pt2" || e == "so"))
        .collect();
    found.sort();
    match found.as_slice() {
        [one] => {
            remark(&[format!("no ARTIFACT is given: {} is the only one here", one.display())]);
            Ok(one.clone())
        }
        [] => Err(CliError::usage("no ARTIFACT is given, and there is none in the current folder")),
        several => {
            let names: Vec<String> = several.iter().take(8).map(|p| p.display().to_string()).collect();
            Err(CliError::usage(format!("no ARTIFACT is given, and there are several here: {}", names.join(", "))))
        }
    }
}
