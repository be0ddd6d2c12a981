//! Commands, one file each: its arguments with their help, and what it does.

pub(crate) mod advise;
#[cfg(target_os = "linux")]
pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
#[cfg(target_os = "linux")]
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod gpu;
pub(crate) mod info;
pub(crate) mod ranks;
#[cfg(target_os = "linux")]
pub(crate) mod record;
pub(crate) mod record_memory;
pub(crate) mod report;
mod report_html;
pub(crate) mod run;
pub(crate) mod stats;
mod stats_lines;
pub(crate) mod steps;
#[cfg(target_os = "linux")]
pub(crate) mod top;
pub(crate) mod tree;
pub(crate) mod view;

use std::io::Write;

use crate::cli::Command;
use crate::error::CommandError;

/// Runs one command; its data goes to `output`.
pub(crate) fn run(command: Command, output: &mut dyn Write) -> Result<(), CommandError> {
    match command {
        Command::Stats(arguments) => stats::run(&arguments, output),
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments, output),
        Command::Steps(arguments) => steps::run(&arguments, output),
        Command::Gpu(arguments) => gpu::run(&arguments, output),
        Command::Ranks(arguments) => ranks::run(&arguments, output),
        Command::Tree(arguments) => tree::run(&arguments, output),
        #[cfg(target_os = "linux")]
        Command::Attach(arguments) => attach::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Record(arguments) => record::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Top(arguments) => top::run(&arguments, output),
        #[cfg(target_os = "linux")]
        Command::Dump(arguments) => dump::run(&arguments, output),
        Command::Info(arguments) => info::run(&arguments, output),
        Command::View(arguments) => view::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments, output),
        Command::Diff(arguments) => diff::run(&arguments, output),
        Command::Export(arguments) => export::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, output),
    }
}
