//! The `hotspan` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(hotspan::run(std::env::args_os()))
}
