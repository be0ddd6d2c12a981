//! `hotspan attach`: samples of a program that runs already. `hotspan record --pid` by another name.

use std::ffi::OsString;

use clap::{Args, FromArgMatches};

use crate::commands::record;
use crate::error::CommandError;

const EXAMPLES: &str = "\
Examples:
  hotspan attach 1234                            # until Ctrl-C: a flame graph
  hotspan attach 1234 -d 30 -o serve.hotspan     # 30 seconds, to be looked at with hotspan report";

/// Sample a Python program that runs already, without stopping it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to sample
    pid: u32,
    /// Options of `hotspan record`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let words = ["attach".into(), "--pid".into(), arguments.pid.to_string().into()];
    let words = words.into_iter().chain(arguments.options.iter().cloned());
    let parsed = record::Arguments::augment_args(clap::Command::new("hotspan attach"))
        .try_get_matches_from(words)
        .and_then(|matches| record::Arguments::from_arg_matches(&matches));
    match parsed {
        Ok(parsed) => record::run(&parsed),
        Err(error) => match crate::tell(&error) {
            0 => Ok(()),
            code => Err(CommandError::Ended(code)),
        },
    }
}
