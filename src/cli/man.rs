//! `man`: the manual page, of all commands.

use super::CliError;
use super::arguments::{Cli, OutputArgs};
use crate::report::Exit;
use clap::CommandFactory;

/// Prints it as roff.
pub fn run(output: &OutputArgs) -> Result<Exit, CliError> {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    let broken = |e: std::io::Error| CliError::Io(format!("cannot write the page: {e}"));
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(broken)?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let mut out = Vec::new();
        let man = clap_mangen::Man::new(sub.clone());
        man.render_description_section(&mut out).map_err(broken)?;
        man.render_options_section(&mut out).map_err(broken)?;
        page.extend(format!(".SH {}\n", sub.get_name().to_uppercase()).into_bytes());
        // sections of a command stand below its own
        page.extend(String::from_utf8_lossy(&out).replace(".SH ", ".SS ").into_bytes());
    }
    output.write_text(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Holds)
}
