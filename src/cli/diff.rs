//! `diff`: two builds compared.

use super::arguments::{DiffArgs, OutputArgs};
use super::{CliError, open};
use crate::model::Artifact;
use crate::report::{ArtifactReport, Exit, Report, Verdict};
use crate::{CodeReading, Settings, diff};

/// What hides facts, so that no change would mean nothing.
fn damage(artifact: &Artifact) -> Option<String> {
    let damaged = artifact.problems.iter().find(|problem| !problem.affects.is_empty());
    artifact.error.clone().or_else(|| damaged.map(ToString::to_string))
}

/// Exit 1 for changes of the grade that fails, 3 when one cannot be read.
pub fn run(args: &DiffArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let code = if args.no_interpret { CodeReading::Never } else { CodeReading::WhenNeeded };
    let out = output.open(&[args.old.clone(), args.new.clone()], None)?;
    let settings = Settings { code, ..Settings::default() };
    let opened = open::open(&[args.old.clone(), args.new.clone()], &settings)?;
    let artifacts = match opened.artifacts.as_slice() {
        [old, new] => match [old, new].into_iter().find_map(|artifact| Some((artifact, damage(artifact)?))) {
            Some((broken, damage)) => {
                vec![ArtifactReport { error: Some(damage), ..ArtifactReport::new(&broken.path, Verdict::Unreadable) }]
            }
            None => vec![diff::report(old, new, args.fail_on.into())],
        },
        _ => return Err(CliError::usage("diff compares two files or unpacked packages")),
    };
    let report = Report { command: "diff".to_owned(), artifacts };
    output.write_report(&report, out)?;
    Ok(report.exit())
}
