//! `host`: this machine as a target file.

use super::CliError;
use super::arguments::{Format, HostArgs, OutputArgs};
use crate::report::Exit;
use crate::target::host::Host;

/// TOML, or JSON where asked for; what cannot be read is no error.
pub fn run(args: &HostArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let host = match &args.libtorch {
        Some(folder) => Host::here().with_libtorch(folder)?,
        None => Host::here(),
    };
    let is_json = output.json || matches!(output.format, Format::Json | Format::Jsonl);
    output.write_text(&if is_json { host.to_json() } else { host.to_toml() })?;
    Ok(Exit::Holds)
}
