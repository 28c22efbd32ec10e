//! `show`: what files are.

use super::arguments::{Format, OutputArgs, ShowArgs};
use super::output::SHOWN;
use super::{CliError, open, trace};
use crate::render::json::FACTS;
use crate::render::text;
use crate::report::Exit;
use crate::target::UsageError;
use crate::{CodeReading, Settings};
use clap::ValueEnum;
use std::path::PathBuf;

/// Exit 3 when one of the files is no readable artefact.
pub fn run(args: &ShowArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    for fact in &args.only {
        if !FACTS.contains(&fact.as_str()) {
            return Err(UsageError::unknown_word("--only", fact, FACTS).into());
        }
    }
    if args.only.iter().any(|fact| fact == "trace") && !args.trace {
        return Err(CliError::usage("--only trace: give --trace, too: machine code is read for it"));
    }
    let sizes = trace::read(&args.sizes)?;
    if let Some(format) = output.formats().into_iter().find(|format| !SHOWN.contains(format)) {
        let name = format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(CliError::usage(format!("{name} is a form of reports: show writes text, json, jsonl or csv")));
    }
    if args.call && output.formats().iter().any(|format| *format != Format::Text) {
        return Err(CliError::usage("--call writes text; what it is made of is in `show --json`"));
    }
    let given = open::given(&args.files)?;
    if given.is_empty() {
        return Err(CliError::usage("no ARTIFACT is given: aoti-inspect model.pt2"));
    }
    let code = code_reading(args.files.no_interpret, args.deep);
    let settings = Settings { code, traces: args.trace, hashes_file: args.files.digest, ..Settings::default() };
    let inputs: Vec<PathBuf> = given.iter().chain(&args.files.files_from).cloned().collect();
    let out = output.open(&inputs, None)?;
    let mut opened = open::open(&given, &settings)?;
    if let Some(sizes) = &sizes {
        sizes.apply(&mut opened.artifacts)?;
    }
    super::remark(&opened.remarks);
    let exit = if opened.artifacts.iter().any(|a| a.error.is_some()) || opened.artifacts.is_empty() {
        Exit::Unreadable
    } else {
        Exit::Holds
    };
    if args.call {
        out.write_each(|_, out| opened.artifacts.iter().try_for_each(|a| text::render_call(a, out)))?;
        return Ok(exit);
    }
    let options = text::TextOptions { shows_all: args.all, only: args.only.clone(), ..output.text_options() };
    output.write_show(&opened.artifacts, &options, out)?;
    Ok(exit)
}

fn code_reading(is_off: bool, is_deep: bool) -> CodeReading {
    match (is_off, is_deep) {
        (true, _) => CodeReading::Never,
        (false, true) => CodeReading::Always,
        (false, false) => CodeReading::WhenNeeded,
    }
}
