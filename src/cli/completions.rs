//! `completions SHELL`.

use super::CliError;
use super::arguments::{Cli, CompletionsArgs, OutputArgs};
use crate::report::Exit;
use clap::CommandFactory;

/// Prints the script.
pub fn run(args: &CompletionsArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "aoti-inspect", &mut script);
    output.write_text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Holds)
}
