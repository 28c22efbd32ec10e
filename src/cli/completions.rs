//! `completions SHELL`.

use super::CliError;
use super::arguments::{Cli, CompletionsArgs, OutputArgs};
use crate::report::Exit;
use clap::CommandFactory;

/// Prints the script.
pub fn run(args: &CompletionsArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "aoti-inspect", &mut script);
    // clap_complete 4.6 has two spellings of a program's name with a hyphen in its script for bash, of which one is
    // never met: the words behind a subcommand would not be completed
    let script = String::from_utf8_lossy(&script).replace("aoti__subcmd__inspect", "aoti__inspect");
    output.write_text(&script)?;
    Ok(Exit::Holds)
}
