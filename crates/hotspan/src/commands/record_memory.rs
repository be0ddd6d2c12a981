//! `hotspan record --memory -- command`: the memory of a command and its children over time.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use hotspan_analyze::Model;
use hotspan_collect::launch;
use hotspan_collect::process_memory::{self, Options};
use hotspan_formats::export::{chrome, hotspan, memory_plot, mprof};
use hotspan_formats::{Exporter, save, uncompressed};

use crate::destination;
use crate::error::CommandError;
use crate::files;
use crate::present::{self, Outlet};
use crate::progress::say;

/// The file that is written when nobody says.
const DEFAULT_OUTPUT: &str = "memory.hotspan";
const SHORTEST_INTERVAL: f64 = 0.001;

/// How memory is recorded.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct MemoryArguments {
    /// Record memory over time instead: of the program and its children; -o .svg is a plot, .dat is mprof's, .json a Chrome
    /// trace, anything else a .hotspan trace
    #[arg(long, requires = "command", conflicts_with_all = ["format", "rate", "threads", "gil", "idle"])]
    pub(crate) memory: bool,
    /// With --memory: seconds between two readings
    #[arg(short = 'T', long, value_name = "SECONDS", default_value_t = 0.1, requires = "memory")]
    interval: f64,
    /// With --memory: leave children out
    #[arg(long, requires = "memory")]
    no_children: bool,
    /// With --memory: read the proportional share (PSS) of each process too; slow for large ones
    #[arg(long, requires = "memory")]
    pss: bool,
}

/// Runs the command to its end and writes what it took. The command's exit code becomes ours.
pub(crate) fn run(
    arguments: MemoryArguments,
    output: Option<&Path>,
    command: &[OsString],
) -> Result<(), CommandError> {
    destination::refuse_stdout(output, "a recording of memory")?;
    let output = output.unwrap_or(Path::new(DEFAULT_OUTPUT));
    let Some((program, rest)) = command.split_first() else {
        return Err(CommandError::Usage("there is no command to run".to_owned()));
    };
    if !arguments.interval.is_finite() || arguments.interval < SHORTEST_INTERVAL {
        let message = format!("the interval must be at least {SHORTEST_INTERVAL} s");
        return Err(CommandError::Usage(message));
    }
    let options = Options {
        interval: Duration::try_from_secs_f64(arguments.interval).unwrap_or(Duration::MAX),
        children: !arguments.no_children,
        proportional: arguments.pss,
    };
    let exporter = exporter(output)?;
    files::check_place(output)?;
    let started = |source| CommandError::Start { program: program.to_string_lossy().into_owned(), source };
    let recording = process_memory::run(program, rest, options).map_err(started)?;
    let status = recording.status;
    let rounds = recording.rounds;
    let model = Model::new(recording.builder.finish());
    save(&model, exporter, output)?;
    let memory = model.process_memory();
    let _ = Outlet::stderr().write_all(present::text(&memory.report()).as_bytes());
    let peak = memory
        .peak
        .map_or_else(String::new, |(time, bytes)| format!("; peak {bytes} at {:.2} s", time.0 as f64 / 1e9));
    say(&format!("wrote {} ({rounds} samples{peak})", output.display()));
    match launch::end_like(status) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

/// The format that a name stands for; what comes after the last dot but a compression.
fn exporter(path: &Path) -> Result<&'static dyn Exporter, CommandError> {
    let name = path.to_string_lossy();
    Ok(match uncompressed(&name).rsplit('.').next() {
        Some("svg") => &memory_plot::MemorySvg,
        Some("png") => {
            let message =
                "plots are written as SVG, which browsers and editors open: let the name end in .svg";
            return Err(CommandError::Usage(message.to_owned()));
        }
        Some("dat") => &mprof::Mprof,
        Some("json") => &chrome::Chrome,
        _ => &hotspan::Hotspan,
    })
}
