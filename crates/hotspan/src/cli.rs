//! The command line: what can be typed, and its help.

use clap::{Parser, Subcommand};

use crate::commands::{completions, doctor, export, info, stats, tree};
#[cfg(target_os = "linux")]
use crate::commands::{dump, record, top};

const EXIT_CODES: &str = "\
Exit codes: 0 fine, 1 failed, 2 wrong usage; `record -- command` ends with the code of the command.";

/// A profiler for PyTorch and Python programs.
#[derive(Debug, Parser)]
#[command(name = "hotspan", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stats(stats::Arguments),
    Tree(tree::Arguments),
    #[cfg(target_os = "linux")]
    Record(record::Arguments),
    #[cfg(target_os = "linux")]
    Top(top::Arguments),
    #[cfg(target_os = "linux")]
    Dump(dump::Arguments),
    Info(info::Arguments),
    Export(export::Arguments),
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
