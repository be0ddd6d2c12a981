//! Commands, one file each: its arguments with their help, and what it does.

pub(crate) mod advise;
#[cfg(feature = "collect")]
pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod diff;
#[cfg(feature = "collect")]
pub(crate) mod doctor;
#[cfg(feature = "collect")]
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod gpu;
pub(crate) mod info;
pub(crate) mod ranks;
#[cfg(feature = "collect")]
pub(crate) mod record;
#[cfg(feature = "collect")]
pub(crate) mod record_memory;
pub(crate) mod report;
mod report_html;
#[cfg(feature = "collect")]
pub(crate) mod run;
pub(crate) mod stats;
mod stats_lines;
pub(crate) mod steps;
#[cfg(feature = "collect")]
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
        #[cfg(feature = "collect")]
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments, output),
        Command::Steps(arguments) => steps::run(&arguments, output),
        Command::Gpu(arguments) => gpu::run(&arguments, output),
        Command::Ranks(arguments) => ranks::run(&arguments, output),
        Command::Tree(arguments) => tree::run(&arguments, output),
        #[cfg(feature = "collect")]
        Command::Attach(arguments) => attach::run(&arguments),
        #[cfg(feature = "collect")]
        Command::Record(arguments) => record::run(&arguments),
        #[cfg(feature = "collect")]
        Command::Top(arguments) => top::run(&arguments, output),
        #[cfg(feature = "collect")]
        Command::Dump(arguments) => dump::run(&arguments, output),
        Command::Info(arguments) => info::run(&arguments, output),
        Command::View(arguments) => view::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments, output),
        Command::Diff(arguments) => diff::run(&arguments, output),
        Command::Export(arguments) => export::run(&arguments),
        #[cfg(feature = "collect")]
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, output),
    }
}
