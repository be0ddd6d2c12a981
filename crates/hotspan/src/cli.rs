//! The command line: what can be typed, and its help.

use clap::{Parser, Subcommand};

use crate::commands::*;

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
    Report(report::Arguments),
    View(view::Arguments),
    Stats(stats::Arguments),
    Steps(steps::Arguments),
    Gpu(gpu::Arguments),
    Ranks(ranks::Arguments),
    Tree(tree::Arguments),
    #[cfg(feature = "collect")]
    Record(record::Arguments),
    #[cfg(feature = "collect")]
    Top(top::Arguments),
    #[cfg(feature = "collect")]
    Dump(dump::Arguments),
    Info(info::Arguments),
    Advise(advise::Arguments),
    Diff(diff::Arguments),
    Export(export::Arguments),
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
