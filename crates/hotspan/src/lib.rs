//! The hotspan program as a library, so that the Python wheel runs the same command line.
//!
//! [`run`] parses the arguments, runs one command and returns its exit code: 0 fine, 1 failed, 2 wrong usage, 3 findings that
//! `advise --fail-on` names. Data
//! goes to stdout, talk and progress to stderr.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod destination;
mod error;
mod files;
mod max_memory;
mod present;
mod progress;
mod run_folder;
mod source_text;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;

use present::Outlet;

pub use commands::shared_page;
pub use error::CommandError;
pub use present::pstats_text::stats_text;
pub use present::{advice_text, line_text, report_html, torch_table};
pub use source_text::read_source;

/// Runs the command line `arguments`, the program's own name first, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return tell(&error),
    };
    let mut output = Outlet::stdout();
    let result = commands::run(cli.command, &mut output);
    // What a command has to show is shown, also when it failed in the end.
    let flushed = output.flush().map_err(CommandError::from);
    match result.and(flushed) {
        Ok(()) => 0,
        // Whoever read our output has seen enough.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(CommandError::Ended(code)) => code,
        Err(error) => {
            error::report(&error);
            error.exit_code()
        }
    }
}

/// Prints help, or what is wrong with the arguments, which it quotes; returns the exit code.
pub(crate) fn tell(error: &clap::Error) -> u8 {
    let print = |output: &mut dyn Write, style: present::Style| {
        let text = error.render();
        let _ = if style.color { write!(output, "{}", text.ansi()) } else { write!(output, "{text}") };
        let _ = output.flush();
    };
    if error.use_stderr() {
        let mut output = Outlet::stderr();
        let style = output.style();
        print(&mut output, style);
        2
    } else {
        // Help and version are no errors.
        let mut output = Outlet::stdout();
        let style = output.style();
        print(&mut output, style);
        0
    }
}
