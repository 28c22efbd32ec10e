//! Thin user of the library: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    aoti_inspect::source::exit_on_truncation();
    ExitCode::from(aoti_inspect::cli::run(std::env::args_os()) as u8)
}
