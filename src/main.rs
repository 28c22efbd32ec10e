//! Thin user of the library: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(aoti_inspect::cli::run(std::env::args_os()) as u8)
}
