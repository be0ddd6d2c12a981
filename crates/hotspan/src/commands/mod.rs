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
#[cfg(feature = "collect")]
mod process;
pub(crate) mod ranks;
#[cfg(feature = "collect")]
pub(crate) mod record;
#[cfg(feature = "collect")]
pub(crate) mod record_memory;
pub(crate) mod report;
mod report_html;
#[cfg(feature = "collect")]
pub(crate) mod run;
#[cfg(feature = "collect")]
mod short_names;
pub(crate) mod stats;
mod stats_lines;
pub(crate) mod steps;
#[cfg(feature = "collect")]
pub(crate) mod top;
pub(crate) mod tree;
pub(crate) mod view;

pub use report_html::shared_page;

use std::io::Write;

use crate::cli::Command;
use crate::error::CommandError;
use crate::max_memory::Reading;

/// Runs one command; its data goes to `output`.
pub(crate) fn run(command: Command, output: &mut dyn Write) -> Result<(), CommandError> {
    match command {
        Command::Stats(reading) => with_limit(&reading, |arguments| stats::run(arguments, output)),
        #[cfg(feature = "collect")]
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(reading) => with_limit(&reading, |arguments| report::run(arguments, output)),
        Command::Steps(reading) => with_limit(&reading, |arguments| steps::run(arguments, output)),
        Command::Gpu(reading) => with_limit(&reading, |arguments| gpu::run(arguments, output)),
        Command::Ranks(reading) => with_limit(&reading, |arguments| ranks::run(arguments, output)),
        Command::Tree(reading) => with_limit(&reading, |arguments| tree::run(arguments, output)),
        #[cfg(feature = "collect")]
        Command::Attach(arguments) => attach::run(&arguments),
        #[cfg(feature = "collect")]
        Command::Record(arguments) => record::run(&arguments),
        #[cfg(feature = "collect")]
        Command::Top(arguments) => top::run(&arguments, output),
        #[cfg(feature = "collect")]
        Command::Dump(arguments) => dump::run(&arguments, output),
        Command::Info(reading) => with_limit(&reading, |arguments| info::run(arguments, output)),
        Command::View(reading) => with_limit(&reading, view::run),
        Command::Advise(reading) => with_limit(&reading, |arguments| advise::run(arguments, output)),
        Command::Diff(reading) => with_limit(&reading, |arguments| diff::run(arguments, output)),
        Command::Export(reading) => with_limit(&reading, export::run),
        #[cfg(feature = "collect")]
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, output),
    }
}

/// Runs a command that reads files within the memory that it may take.
fn with_limit<A: clap::Args>(
    reading: &Reading<A>,
    run: impl FnOnce(&A) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let _guard = reading.watch();
    run(&reading.command)
}
