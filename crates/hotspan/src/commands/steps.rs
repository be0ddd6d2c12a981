//! `hotspan steps`: where the time of each step goes, on devices and on the host.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::steps::steps;

use crate::error::CommandError;
use crate::present::{self, Format};

const EXAMPLES: &str = "\
Examples:
  hotspan steps trace.json.gz
  hotspan steps runs/ --csv
  hotspan steps trace.json.gz --json | jq '.[0].devices[] | {step, idle}'

On a device: compute + exposed communication + exposed copy + idle = time, exactly.
On the host the parts add up in the same way. A trace without steps is one step.";

/// Show where the time of each step goes, on devices and on the host
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    present::sections(&arguments.files, arguments.format, output, |_, model| Ok(steps(model).report()))
}
