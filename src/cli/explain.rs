//! `explain`: the page of a code, or from an error to its likely cause in an artefact.

mod given;

use super::arguments::{ExplainArgs, OutputArgs};
use super::{CliError, codes, open};
use crate::checks::{self, Policy};
use crate::explain::exit::Exit as Ended;
use crate::explain::log::{self, Reading};
use crate::explain::{self, Case, address};
use crate::report::{ArtifactReport, Exit, Report};
use crate::target::LoadConfig;
use crate::{CodeReading, Settings, assemble, container, limits};
use given::Given;
use std::path::{Path, PathBuf};

/// Pages of codes; else exit 0 when the error was recognised and 4 when not; without an error it is `verify`.
pub fn run(args: &ExplainArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let given = Given::sort(&args.given)?;
    if !given.pages.is_empty() {
        if !given.artifacts.is_empty() || !given.logs.is_empty() {
            return Err(CliError::usage("a code asks for its page: give it without artefacts and logs"));
        }
        output.write_text(&given.pages.join("\n"))?;
        return Ok(Exit::Holds);
    }
    let ended = args.exit.as_deref().map(exit_status).transpose()?;
    let (reading, has_log) = read_error(args, &given)?;
    if reading.is_cut {
        super::remark(&[format!("only the first {} MiB of the log were read", limits::LOG_BYTES >> 20)]);
    }
    let has_error = has_log || ended.is_some_and(|e| e != Ended::Code(0));
    if given.artifacts.is_empty() && !has_error {
        return Err(CliError::usage(
            "nothing to explain: give a code, an artefact, a log (or pipe it in), --message or --exit",
        ));
    }
    let configs = args.load.configs(super::project::nearest()?.as_ref())?;
    let load = configs.first().cloned().unwrap_or_default();
    let inputs = given.artifacts.iter().chain(&given.logs).chain(&args.log).chain(args.load.files());
    let out = output.open(&inputs.cloned().collect::<Vec<_>>(), None)?;
    let needs_instructions = reading.hit("sigill").is_some() || ended.is_some_and(|e| e.is_signal("SIGILL"));
    let settings = Settings {
        code: if args.no_interpret { CodeReading::Never } else { CodeReading::Always },
        scans_instructions: needs_instructions || load.cpu.is_some(),
        ..Settings::default()
    };
    let error = Error { reading: &reading, ended, is_there: has_error };
    let mut artifacts = Vec::new();
    for path in &given.artifacts {
        artifacts.push(one(path, &settings, &configs, &error, args.redact));
    }
    if given.artifacts.is_empty() {
        let case = Case { reading: &reading, artifact: None, places: &[], load: &load, exit: ended };
        let mut report = explain::explain(&case);
        if args.redact {
            explain::redact(&mut report, None);
        }
        artifacts.push(report);
    }
    let report = Report { command: "explain".to_owned(), artifacts };
    output.write_report(&report, out)?;
    Ok(report.exit())
}

/// What the person saw.
struct Error<'a> {
    reading: &'a Reading,
    ended: Option<Ended>,
    is_there: bool,
}

fn one(path: &Path, settings: &Settings, configs: &[LoadConfig], error: &Error, redact: bool) -> ArtifactReport {
    let shown = path.display().to_string();
    let load = configs.first().cloned().unwrap_or_default();
    let (artifact, places) = match container::open(path) {
        Ok(container) => {
            let places = address::locate(error.reading, &container);
            (assemble::assemble(&shown, &container, settings), places)
        }
        Err(e) => (open::unreadable(&shown, &e), Vec::new()),
    };
    let case =
        Case { reading: error.reading, artifact: Some(&artifact), places: &places, load: &load, exit: error.ended };
    let mut report = explain::explain(&case);
    if !error.is_there {
        let causes = std::mem::take(&mut report.causes);
        report = checks::verify_targets(&artifact, configs, &Policy::default());
        report.causes = causes;
    }
    if redact {
        explain::redact(&mut report, Some(&artifact));
    }
    report
}

fn exit_status(text: &str) -> Result<Ended, CliError> {
    Ended::from_text(text).ok_or_else(|| {
        CliError::usage(format!("--exit {text}: write a number or a signal: 139, -11, SIGSEGV, 0xC0000005"))
    })
}

/// Message, log files, piped standard input: all of them are one log. False when none was given, or nothing but
/// blanks came.
fn read_error(args: &ExplainArgs, given: &Given) -> Result<(Reading, bool), CliError> {
    let files: Vec<PathBuf> = given.logs.iter().chain(&args.log).cloned().collect();
    let failed = |what: &str, e: &dyn std::fmt::Display| CliError::usage(format!("{what}: {e}"));
    if !args.message.is_empty() {
        return Ok((log::read_text(&args.message.join("\n")), true));
    }
    if let [file, rest @ ..] = files.as_slice() {
        if let [other, ..] = rest {
            return Err(CliError::usage(format!("several logs ({}, {}): give one", file.display(), other.display())));
        }
        let shown = file.display().to_string();
        if file == Path::new("-") {
            return Ok((log::read(std::io::stdin().lock()).map_err(|e| failed("standard input", &e))?, true));
        }
        let stream = std::fs::File::open(file).map_err(|e| failed(&shown, &e))?;
        return Ok((log::read(stream).map_err(|e| failed(&shown, &e))?, true));
    }
    if given::is_piped() {
        let reading = log::read(std::io::stdin().lock()).map_err(|e| failed("standard input", &e))?;
        let is_there = reading.bytes > 1;
        return Ok((reading, is_there));
    }
    Ok((Reading::default(), false))
}
