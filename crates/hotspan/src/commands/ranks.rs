//! `hotspan ranks`: the traces of a job's ranks together; who waits for whom.

use std::io::Write;
use std::path::{Path, PathBuf};

use hotspan_analyze::job;
use hotspan_analyze::ranks::compare;
use hotspan_formats::{one_of_each_worker, worker};

use crate::error::CommandError;
use crate::files;
use crate::present::{self, Format};
use crate::progress::say;

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
    let result = files::for_each(&ranks_of(&arguments.files)?, |_, model, _| {
        // One recording of a launcher holds all of its ranks.
        summaries.extend(job::ranks(model));
        Ok(())
    });
    present::tables(&compare(&summaries).report(), arguments.format, output)?;
    result
}

/// The traces of a folder that are ranks: the last recording of each worker.
fn ranks_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let files = files::expand(paths)?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<String> = files.iter().map(|path| name(path)).collect();
    let parts = files.iter().zip(&names).map(|(path, name)| {
        let (worker, cycle) = worker(name);
        ((path.parent(), worker), cycle)
    });
    let chosen = one_of_each_worker(&parts.collect::<Vec<_>>(), None);
    let left = files.len() - chosen.len();
    if left > 0 {
        say(&format!("note: of workers with several recordings the last is compared ({left} left out)"));
    }
    Ok(chosen.into_iter().map(|place| files[place].clone()).collect())
}
