//! `explain CODE`: the page of a finding.

use super::arguments::{ExplainArgs, OutputArgs};
use super::{CliError, codes};
use crate::report::Exit;

/// Prints the pages.
pub fn run(args: &ExplainArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    if args.codes.is_empty() {
        return Err(CliError::usage("nothing to explain: give a code, as `aoti-inspect codes` lists them"));
    }
    let pages = args.codes.iter().map(|code| codes::find(code).map(codes::page)).collect::<Result<Vec<_>, _>>()?;
    output.write_text(&pages.join("\n"))?;
    Ok(Exit::Holds)
}
