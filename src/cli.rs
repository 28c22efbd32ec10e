//! The command line: arguments, one file per command, exit codes.

mod arguments;
mod codes;
mod completions;
mod diff;
mod explain;
mod host;
mod init;
mod load;
mod man;
mod open;
mod output;
mod project;
mod schema;
mod show;
mod trace;
mod verify;

use crate::report::Exit;
use crate::target::{UsageError, near_matches};
use arguments::{Cli, Command};
use clap::{CommandFactory, FromArgMatches, Subcommand};
use std::ffi::OsString;
use std::io::Write;

/// Why a command ended without a verdict.
#[derive(Debug, thiserror::Error)]
enum CliError {
    /// exit 2
    #[error("{0}")]
    Usage(#[from] UsageError),
    /// a file of the configuration could not be read, or the output not be written
    #[error("{0}")]
    Io(String),
}

impl CliError {
    fn usage(message: impl Into<String>) -> Self {
        Self::Usage(UsageError::new(message))
    }
}

/// Runs the tool; `args` begins with the program's name.
///
/// The report goes to standard output, all else to standard error. A reader that closes the pipe is no error.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let output = &cli.output;
    let result = match &cli.command {
        Command::Show(args) => show::run(args, output),
        Command::Verify(args) => verify::run(args, output),
        Command::Explain(args) => explain::run(args, output),
        Command::Diff(args) => diff::run(args, output),
        Command::Host(args) => host::run(args, output),
        Command::Codes(args) => codes::run(args, output),
        Command::Init(args) => init::run(args, output),
        Command::Schema => schema::run(output),
        Command::Completions(args) => completions::run(args, output),
        Command::Man => man::run(output),
    };
    result.unwrap_or_else(|error| complain(&error.to_string()))
}

fn complain(message: &str) -> Exit {
    let mut stderr = anstream::stderr();
    let _ = writeln!(stderr, "error: {}", crate::render::escape::plain(message));
    Exit::Usage
}

/// Remarks are no part of the report.
fn remark(remarks: &[String]) {
    let mut stderr = anstream::stderr();
    for remark in remarks {
        let _ = writeln!(stderr, "note: {}", crate::render::escape::plain(remark));
    }
}

/// Parses; `show` is taken for granted where no command is given. On failure everything has been said already.
fn parse(args: &[OsString]) -> Result<Cli, Exit> {
    let program = args.first().cloned().unwrap_or_else(|| "aoti-inspect".into());
    let given = args.get(1..).unwrap_or_default();
    let first = first_word(given);
    let is_command = first.is_some_and(|word| Command::has_subcommand(word) || word == "help");
    let is_bare = given.is_empty() || first.is_none() && given.iter().any(is_help);
    let mut full = vec![program];
    if !is_command && !is_bare {
        if let Some(word) = first
            && word != "-"
            && !std::path::Path::new(word).exists()
            && let command = Cli::command()
            && let names = command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>()
            && let [near, ..] = near_matches(word, &names).as_slice()
        {
            return Err(complain(&format!("`{word}` is no file and no command: did you mean `{near}`?")));
        }
        full.push("show".into());
    }
    full.extend(given.iter().cloned());
    let parse_with = |command: clap::Command| {
        command.try_get_matches_from(&full).and_then(|matches| Cli::from_arg_matches(&matches))
    };
    // making the arguments of all commands takes longer than reading a small file: they are made for messages and help
    let is_show = !is_bare && (!is_command || first == Some("show"));
    if let Some(cli) = is_show.then(|| parse_with(Cli::only_show()).ok()).flatten() {
        return Ok(cli);
    }
    parse_with(Cli::command()).map_err(|error| {
        use clap::error::ErrorKind::{MissingRequiredArgument, UnknownArgument};
        // show takes sizes only for a trace
        let also = if error.kind() == MissingRequiredArgument { " (or to show --trace)" } else { "" };
        if matches!(error.kind(), UnknownArgument | MissingRequiredArgument)
            && let Some(line) = verify_line(given, is_command, first)
        {
            return complain(&format!("these flags belong to verify{also}: {line}"));
        }
        let _ = error.print();
        if error.use_stderr() { Exit::Usage } else { Exit::Holds }
    })
}

fn is_help(arg: &OsString) -> bool {
    arg.to_str().is_some_and(|a| ["-h", "--help", "-V", "--version"].contains(&a))
}

/// The first argument that is neither a flag nor the value of one that may stand before a command.
fn first_word(given: &[OsString]) -> Option<&str> {
    let mut rest = given.iter().filter_map(|a| a.to_str());
    while let Some(arg) = rest.next() {
        if arguments::GLOBAL_WITH_VALUE.contains(&arg) {
            rest.next();
        } else if arg == "-" || !arg.starts_with('-') {
            return Some(arg);
        }
    }
    None
}

/// The same arguments for `verify`, when it takes them.
fn verify_line(given: &[OsString], is_command: bool, first: Option<&str>) -> Option<String> {
    if is_command && first != Some("show") {
        return None;
    }
    let rest = given.iter().filter(|a| !(is_command && a.to_str() == first)).cloned();
    let full: Vec<OsString> = ["aoti-inspect".into(), "verify".into()].into_iter().chain(rest).collect();
    Cli::command().try_get_matches_from(&full).ok()?;
    Some(full.iter().map(|arg| quoted(&arg.to_string_lossy())).collect::<Vec<_>>().join(" "))
}

/// For a shell, so that the line can be copied.
fn quoted(arg: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(is_safe) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}
