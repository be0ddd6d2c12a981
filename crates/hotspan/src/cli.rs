//! The command line: what can be typed, and its help.

use clap::{Parser, Subcommand};

use crate::commands::*;
use crate::max_memory::Reading;

const EXIT_CODES: &str = "\
Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 `advise --fail-on` found something;
`run` and `record` end as the program did.";

/// A profiler for PyTorch and Python programs.
#[derive(Debug, Parser)]
#[command(name = "hotspan", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "collect")]
    Run(run::Arguments),
    #[cfg(feature = "collect")]
    Attach(attach::Arguments),
    Report(Reading<report::Arguments>),
    View(Reading<view::Arguments>),
    Stats(Reading<stats::Arguments>),
    Steps(Reading<steps::Arguments>),
    Gpu(Reading<gpu::Arguments>),
    Ranks(Reading<ranks::Arguments>),
    Tree(Reading<tree::Arguments>),
    #[cfg(feature = "collect")]
    Record(record::Arguments),
    #[cfg(feature = "collect")]
    Top(top::Arguments),
    #[cfg(feature = "collect")]
    Dump(dump::Arguments),
    Info(Reading<info::Arguments>),
    Advise(Reading<advise::Arguments>),
    Diff(Reading<diff::Arguments>),
    Export(Reading<export::Arguments>),
    #[cfg(feature = "collect")]
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
