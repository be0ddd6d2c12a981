//! `hotspan doctor`: asks Python, for only Python knows which torch a program would import.

use std::path::PathBuf;
use std::process::Command;

use crate::error::CommandError;

/// Say what was found for recording torch programs, what is missing and how to get it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  hotspan doctor --python .venv/bin/python")]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// The Python that runs the programs, with hotspan installed
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// Runs hotspan's own doctor; not one in the folder where the user happens to be.
const DOCTOR: &str = "\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from hotspan.doctor import main
sys.exit(main(sys.argv[1:]))";

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let python = &arguments.python;
    let flags = arguments.json.then_some("--json");
    let status = Command::new(python).args(["-c", DOCTOR]).args(flags).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(CommandError::Doctor("something is missing".to_owned())),
        Err(error) => Err(CommandError::Doctor(format!("{} does not run: {error}", python.display()))),
    }
}
