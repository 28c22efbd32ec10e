//! The project file at work: which artefacts it names, for which targets, and what it says about findings.

use super::CliError;
use super::arguments::ProjectArgs;
use super::load::{LoadArgs, read_text};
use crate::checks::known::{self, Baseline};
use crate::checks::{self, Policy};
use crate::report::{ArtifactReport, ConfigPlace, Finding, Report, Verdict};
use crate::target::LoadConfig;
use crate::target::project::{self, ArtifactTable, Project, TargetTable};
use crate::{container, limits};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An artefact that the project names, and what is asked of it.
pub struct Job {
    /// the file or unpacked package
    pub path: PathBuf,
    /// one per target; one without a name where the project names none
    pub configs: Vec<LoadConfig>,
    /// line that asks
    pub place: ConfigPlace,
}

/// The file that applies: `--config`, else the nearest one upwards, unless `--no-config`.
pub fn load(args: &ProjectArgs) -> Result<Option<Project>, CliError> {
    match (&args.config, args.no_config) {
        (_, true) => Ok(None),
        (Some(file), false) => read(file).map(Some),
        (None, false) => nearest(),
    }
}

/// The nearest project file, here or above.
pub fn nearest() -> Result<Option<Project>, CliError> {
    let here = std::env::current_dir().map_err(|e| CliError::Io(format!("no current folder: {e}")))?;
    // said as people would, relative to where they are
    let file = project::find(&here).map(|found| found.strip_prefix(&here).map(Path::to_path_buf).unwrap_or(found));
    file.map(|file| read(&file)).transpose()
}

fn read(file: &Path) -> Result<Project, CliError> {
    let text = read_text(file, limits::JSON_BYTES)?;
    Ok(Project::from_text(&text, file, &|code| checks::codes::find(code).is_some())?)
}

/// Everything that the project asks for, in its order; an artefact that two entries name is one job.
pub fn jobs(project: &Project, flags: &LoadArgs) -> Result<Vec<Job>, CliError> {
    let mut jobs: Vec<Job> = Vec::new();
    for entry in &project.artifacts {
        let paths = expand(&project.folder, entry)?;
        if paths.is_empty() && !entry.optional {
            let at = &entry.place;
            return Err(CliError::usage(format!(
                "{}:{}:{}: `{}` matches no file; write optional = true if that is fine",
                at.file, at.line, at.column, entry.path
            )));
        }
        let configs = configs(project, entry, flags)?;
        for path in paths {
            match jobs.iter_mut().find(|job| job.path == path) {
                Some(job) => job.configs.extend(configs.iter().cloned()),
                None => jobs.push(Job { path, configs: configs.clone(), place: entry.place.clone() }),
            }
        }
    }
    Ok(jobs)
}

fn configs(project: &Project, entry: &ArtifactTable, flags: &LoadArgs) -> Result<Vec<LoadConfig>, CliError> {
    let unnamed = TargetTable::default();
    let named = entry.targets.iter().filter_map(|name| Some((project.targets.get(name)?, Some(name.clone()))));
    let mut tables: Vec<_> = named.collect();
    if tables.is_empty() {
        tables.push((&unnamed, None));
    }
    tables
        .into_iter()
        .map(|(table, name)| {
            let mut table = table.clone();
            if entry.inputs.is_some() {
                table.inputs.clone_from(&entry.inputs);
            }
            table.dims.extend(entry.dims.clone());
            let mut config = flags.config(&table.below(&project.folder), name)?;
            config.model = config.model.or_else(|| entry.model.clone());
            config.budget = entry.budget.or(project.budget);
            config.interface_id.clone_from(&entry.interface_id);
            Ok(config)
        })
        .collect()
}

/// Files and unpacked packages that a glob names, sorted; a name without wildcards need not be searched for.
fn expand(folder: &Path, entry: &ArtifactTable) -> Result<Vec<PathBuf>, CliError> {
    let is_literal = !entry.path.contains(['*', '?', '[', '{']);
    let literal = folder.join(&entry.path);
    if is_literal {
        return Ok(if literal.exists() { vec![literal] } else { Vec::new() });
    }
    let Some(glob) = known::matcher(folder, &entry.path) else { return Ok(Vec::new()) };
    let fixed: PathBuf = Path::new(&entry.path)
        .iter()
        .take_while(|part| !part.to_string_lossy().contains(['*', '?', '[', '{']))
        .collect();
    let pattern = &entry.path;
    // without `**` a pattern names one folder for each of its parts, and what lies deeper cannot match
    let is_recursive = pattern.contains("**");
    let deepest = if is_recursive { limits::FOLDER_DEPTH } else { pattern.matches('/').count() };
    let mut found = Vec::new();
    let mut open = vec![(folder.join(fixed), 0)];
    while let Some((folder, depth)) = open.pop() {
        let at = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        // a folder that is not there holds no match; one that does not open may hold some
        let failed =
            |e: std::io::Error| CliError::usage(format!("`{pattern}`: cannot look into {}: {e}", at.display()));
        let entries = match std::fs::read_dir(at) {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|t| t.is_dir());
            let is_match = std::path::absolute(&path).is_ok_and(|full| glob.is_match(full));
            if is_match && (!is_folder || container::open(&path).is_ok()) {
                found.push(path);
            } else if is_folder && depth < deepest {
                open.push((path, depth + 1));
            } else if is_folder && is_recursive {
                let most = limits::FOLDER_DEPTH;
                return Err(CliError::usage(format!(
                    "`{pattern}`: {} lies more than {most} folders deep; name the first folders in the pattern",
                    path.display()
                )));
            }
            if found.len() > limits::MEMBERS {
                return Err(CliError::usage(format!("more than {} files match", limits::MEMBERS)));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Levels of the project below those of the flags.
pub fn add_levels(project: Option<&Project>, policy: &mut Policy) {
    policy.levels.extend(project.iter().flat_map(|p| p.levels.clone()));
}

/// Waivers and baseline mark what is known; what is wrong with them is reported under their own file's name.
pub fn accept(report: &mut Report, project: Option<&Project>, args: &ProjectArgs) -> Result<(), CliError> {
    if let Some(project) = project {
        let today = project::today();
        let remarks = known::apply_waivers(report, &project.waivers, &project.folder, &today);
        add_remarks(report, &project.file, remarks);
    }
    if let Some(file) = &args.baseline {
        let text = read_text(file, limits::JSON_BYTES)?;
        let wrong = |what: String| CliError::usage(format!("--baseline {}: {what}", file.display()));
        let baseline: Baseline = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if baseline.version != 1 {
            return Err(wrong(format!("version {} is not known", baseline.version)));
        }
        let gone = baseline.apply(report, &file.display().to_string());
        add_remarks(report, file, gone);
    }
    Ok(())
}

fn add_remarks(report: &mut Report, file: &Path, findings: Vec<Finding>) {
    if !findings.is_empty() {
        let mut about = ArtifactReport::new(file.display().to_string(), Verdict::Pass);
        about.summary = "what it says about findings".to_owned();
        about.findings = findings;
        report.artifacts.push(about);
    }
}

/// Writes all findings that count now, to be accepted from now on.
pub fn write_baseline(report: &Report, file: &Path) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(&Baseline::of(report)).map_err(|e| CliError::Io(e.to_string()))?;
    std::fs::write(file, text + "\n").map_err(|e| CliError::Io(format!("cannot write {}: {e}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::project::Budget;

    fn matches(root: &Path, glob: &str) -> Result<usize, String> {
        let entry = ArtifactTable {
            path: glob.to_owned(),
            place: ConfigPlace { file: String::new(), line: 1, column: 1 },
            targets: Vec::new(),
            optional: false,
            model: None,
            inputs: None,
            dims: Default::default(),
            interface_id: None,
            budget: Budget::default(),
        };
        expand(root, &entry).map(|found| found.len()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_folder_that_does_not_open_is_told() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        assert_eq!(matches(root.path(), "gone/*.pt2"), Ok(0));
        assert!(matches(root.path(), "file/*.pt2").unwrap_err().contains("cannot look into"));
    }

    #[test]
    fn folders_of_a_glob_have_a_border() {
        let of = |depth: usize, glob: &str| {
            let root = tempfile::tempdir().unwrap();
            let deepest = (0..depth).fold(root.path().to_path_buf(), |at, _| at.join("d"));
            std::fs::create_dir_all(&deepest).unwrap();
            std::fs::write(deepest.join("model.pt2"), "").unwrap();
            matches(root.path(), glob)
        };
        assert_eq!(of(limits::FOLDER_DEPTH, "**/*.pt2"), Ok(1));
        assert!(of(limits::FOLDER_DEPTH + 1, "**/*.pt2").unwrap_err().contains("lies more than 16 folders deep"));
        // no deeper folder can match here, and by its own parts a pattern may go deeper
        assert_eq!(of(limits::FOLDER_DEPTH + 1, "d/*.pt2"), Ok(0));
        assert_eq!(of(limits::FOLDER_DEPTH + 1, &format!("{}*.pt2", "*/".repeat(limits::FOLDER_DEPTH + 1))), Ok(1));
    }
}
