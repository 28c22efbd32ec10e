//! `diff`: two builds compared.

use super::arguments::{DiffArgs, OutputArgs};
use super::{CliError, open};
use crate::report::{ArtifactReport, Exit, Report, Verdict};
use crate::{CodeReading, Settings, diff};

/// Exit 1 for changes of the grade that fails, 3 when one cannot be read.
pub fn run(args: &DiffArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let code = if args.no_interpret { CodeReading::Never } else { CodeReading::WhenNeeded };
    let out = output.open(&[args.old.clone(), args.new.clone()], None)?;
    let settings = Settings { code, ..Settings::default() };
    let opened = open::open(&[args.old.clone(), args.new.clone()], &settings)?;
    let artifacts = match opened.artifacts.as_slice() {
        [old, new] => match [old, new].into_iter().find(|a| a.error.is_some()) {
            Some(broken) => vec![ArtifactReport {
                error: broken.error.clone(),
                ..ArtifactReport::new(&broken.path, Verdict::Unreadable)
            }],
            None => vec![diff::report(old, new, args.fail_on.into())],
        },
        _ => return Err(CliError::usage("diff compares two files or unpacked packages")),
    };
    let report = Report { command: "diff".to_owned(), artifacts };
    output.write_report(&report, out)?;
    Ok(report.exit())
}
