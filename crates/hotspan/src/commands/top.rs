//! `hotspan top`: what a running Python program spends its time on, live.
//!
//! Here are the arguments and the table that `--once` prints; [`screen`] draws the live screen, [`program`] starts a program to look at.

mod program;
mod screen;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use hotspan_analyze::{Cell, SampledTimes, Table};
use hotspan_collect::launch::Signals;
use hotspan_collect::sampler::{ProcessNumber, Recording, SampleOptions};
use serde_json::json;

use crate::commands::process::process_number;
use crate::error::CommandError;
use crate::present;
use program::Started;
use screen::{Screen, View};

const EXAMPLES: &str = "\
Examples:
  hotspan top --pid 1234
  hotspan top --pid 1234 -r 500 -s          # finer, with its children
  hotspan top -- python train.py            # starts the program, and ends it when you leave
  hotspan top --pid 1234 --once -d 5 --json # no screen: five seconds, as data

Keys: o own time, t total time, l lines or functions, h threads, i idle threads, g GIL only, c clear, q quit";

/// Show live which functions of a running Python program take the time
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to look at, in decimal or hexadecimal
    #[arg(short, long, value_name = "PID", value_parser = process_number, required_unless_present = "command", conflicts_with = "command")]
    pid: Option<u32>,
    /// The program to start and look at; what it prints is shown only when it fails
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Samples a second
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Look at the children of the process too
    #[arg(short, long)]
    subprocesses: bool,
    /// Count only the thread that holds the GIL
    #[arg(short, long)]
    gil: bool,
    /// Count threads that wait, too
    #[arg(short, long)]
    idle: bool,
    /// Tell lines of a function apart
    #[arg(short, long)]
    lines: bool,
    /// Seconds between two screens
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    delay: f64,
    /// Stop after so many seconds
    #[arg(short, long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Print one table at the end instead of a live screen
    #[arg(long)]
    once: bool,
    /// With --once: print JSON, times in nanoseconds
    #[arg(long, requires = "once")]
    json: bool,
    /// Accepted: names of files are always whole
    #[arg(long)]
    full_filenames: bool,
    /// Show native frames too (C, C++, Rust); a running thread is held for the moment of each sample
    #[arg(short, long)]
    native: bool,
    /// Accepted: the program is not stopped, but for --native
    #[arg(long)]
    nonblocking: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    if !arguments.once && !io::stdout().is_terminal() {
        return Err(CommandError::Usage(
            "top draws on a terminal; with --once it prints a table (and JSON with --json)".to_owned(),
        ));
    }
    let started = Started::from_command(&arguments.command)?;
    let process = match (&started, arguments.pid) {
        (Some(started), _) => started.process(),
        (None, Some(pid)) => ProcessNumber(pid),
        (None, None) => return Err(CommandError::Usage("give --pid or a command".to_owned())),
    };
    let shown = show(arguments, process, started.is_some(), output);
    let ended = started.map_or(Ok(()), Started::end);
    shown.and(ended)
}

fn show(
    arguments: &Arguments,
    process: ProcessNumber,
    is_new: bool,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let view = View::new(arguments.lines, arguments.idle, arguments.gil);
    let options = options(arguments, &view);
    let recording = match is_new {
        true => Recording::attach_to_new(process, options)?,
        false => Recording::attach(process, options)?,
    };
    let delay = Duration::from_secs_f64(arguments.delay.clamp(0.05, 3600.0));
    let limit = arguments
        .duration
        .filter(|seconds| *seconds > 0.0)
        .map(|seconds| Duration::from_secs_f64(seconds.min(1e9)));
    let signals = Signals::to_stop();
    if arguments.once {
        let limit = limit.unwrap_or(delay);
        return once(arguments, process, recording, limit, &signals, output);
    }
    let mut stdout = io::stdout().lock();
    let screen = Screen::open(arguments, process, view, recording, &mut stdout)?;
    if screen.show(&signals, delay, limit)? {
        writeln!(output, "process {process} has ended")?;
    }
    Ok(())
}

fn options(arguments: &Arguments, view: &View) -> SampleOptions {
    SampleOptions {
        period: Duration::from_nanos(1_000_000_000 / u64::from(arguments.rate)),
        subprocesses: arguments.subprocesses,
        idle: view.idle,
        gil_only: view.gil,
        native: arguments.native,
    }
}

/// A table of what was seen in a while.
fn once(
    arguments: &Arguments,
    process: ProcessNumber,
    mut recording: Recording,
    limit: Duration,
    signals: &Signals,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let begun = Instant::now();
    while begun.elapsed() < limit
        && !signals.asked_to_stop(recording.wait().min(limit.saturating_sub(begun.elapsed())))
    {
        if recording.wait().is_zero() && !recording.sample() {
            break;
        }
    }
    let totals = recording.totals();
    let trace = recording.finish();
    let mut times = SampledTimes::default();
    times.add(&trace, arguments.lines);
    let mut table: Table = times.report();
    if arguments.json {
        let share =
            |part: u64| if totals.looks == 0 { 0.0 } else { part as f64 * 100.0 / totals.looks as f64 };
        let object = json!({
            "pid": process.0,
            "samples": totals.samples,
            "threads": totals.threads,
            "gil_percent": share(totals.gil_held),
            "active_percent": share(totals.active),
            "rows": present::json_rows(&table),
        });
        return Ok(present::write_json(&object, output)?);
    }
    table.title = format!("{} samples of process {process}", totals.samples);
    table.rows.truncate(40);
    debug_assert!(table.rows.iter().all(|row| !matches!(row[4], Cell::Missing)));
    output.write_all(present::text(&table).as_bytes())?;
    Ok(())
}
