//! `hotspan ranks`: the traces of a job's ranks together; who waits for whom.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::job;
use hotspan_analyze::ranks::compare;

use crate::error::CommandError;
use crate::files;
use crate::present::{self, Format};

const EXAMPLES: &str = "\
Examples:
  hotspan ranks runs/job7/
  hotspan ranks rank0.json.gz rank1.json.gz --json
  hotspan ranks train.hotspan             # of `hotspan run torchrun ... train.py`

Transfer is the shortest run of a collective's kernel among the ranks; what others took longer, they waited.";

/// Compare the ranks of a job: who waits for whom in collectives
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The traces of the ranks, a folder of them, or one recording of all
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let mut summaries = Vec::new();
    let result = files::for_each(&arguments.files, |_, model, _| {
        // One recording of a launcher holds all of its ranks.
        summaries.extend(job::ranks(model));
        Ok(())
    });
    present::tables(&compare(&summaries).report(), arguments.format, output)?;
    result
}
