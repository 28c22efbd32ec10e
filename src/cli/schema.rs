//! `schema`: the JSON schema of the output.

use super::CliError;
use super::arguments::OutputArgs;
use crate::report::Exit;

/// Prints it.
pub fn run(output: &OutputArgs) -> Result<Exit, CliError> {
    output.write_text(&format!("{:#}\n", crate::render::json::schema()))?;
    Ok(Exit::Holds)
}
