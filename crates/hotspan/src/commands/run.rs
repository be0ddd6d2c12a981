//! `hotspan run`: a program under all collectors, its report, and its own exit code.
//!
//! The program is started as it would be without hotspan; a folder in PYTHONPATH makes every Python in it record itself
//! (see `python/hotspan/_inject`). Each process writes a file of its own, which survives its death; `run_folder` makes them one.

mod hooks;
mod inject;
mod interpreter;
mod limits;
mod name;
mod output;
mod program;
mod rank;
mod spool;
mod unrecorded;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use hotspan_analyze::{Model, RUN_KEY, TreeOptions};
use hotspan_collect::clock::{UnixNanos, WallOffset};
use hotspan_collect::{clock, launch};
use hotspan_formats::export::flamegraph::Flamegraph;
use hotspan_formats::{ExportError, save};
use hotspan_store::Trace;
use serde_json::{Value, json};

use crate::commands::report::{self, ReportFormat};
use crate::destination;
use crate::error::CommandError;
use crate::files;
use crate::present::Outlet;
use crate::progress::say;
use crate::run_folder::{Recordings, merged};
use inject::{inject, options, tell_run};
use limits::Limits;
use output::Output;
use program::Program;
use rank::Rank;

/// Nobody asks for the program meanwhile: its end wakes us.
const LONG: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Examples:
  hotspan run train.py --epochs 3
  hotspan run -m mypackage.train
  hotspan run pytest tests                    # any command: scripts of this Python are found without activating it
  hotspan run torchrun --nproc-per-node 2 train.py
  hotspan run --shapes -o before.hotspan train.py
  hotspan run --steps 10:20 train.py          # ten optimizer steps, after ten to warm up
  hotspan run --lines model.py:forward train.py
  hotspan run --max-size 2GB --max-time 30min serve.py   # the latest stretch of a program that runs for days
  hotspan run --budget 1% --delay 60 --duration 300 serve.py

The recording is named after the program, in this folder: train.hotspan, then train-2.hotspan. None is overwritten but one named with -o.";

/// Run a program, record it as a whole, and say where its time went
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run a Python module as a script, as `python -m` does
    #[arg(short = 'm', value_name = "MODULE")]
    module: Option<OsString>,
    /// Run this text as a program, as `python -c` does
    #[arg(short = 'c', value_name = "CODE", conflicts_with = "module", allow_hyphen_values = true)]
    code: Option<OsString>,
    /// Where to write the recording; a file of that name is overwritten [default: a new one, named after the program]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw a flame graph too, into an SVG file
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
    /// Record the shapes of operators' inputs, for FLOPs and tables by shape
    #[arg(long)]
    shapes: bool,
    /// Record allocations of tensors
    #[arg(long)]
    memory: bool,
    /// Samples of each thread per second of its time; 0 for none
    #[arg(short, long, value_name = "HZ", default_value_t = 100)]
    rate: u32,
    /// Record the Python stacks of operators: every call of a function, so it costs more
    #[arg(long)]
    stack: bool,
    /// Count every call of every Python function, as cProfile does, on all threads
    #[arg(long)]
    functions: bool,
    /// Time the lines of a file, or of one of its functions; may be given several times
    #[arg(long, value_name = "FILE[:FUNCTION]")]
    lines: Vec<String>,
    /// With --lines: the memory that each line takes too
    #[arg(long, requires = "lines")]
    memory_lines: bool,
    /// Begin to record after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay: Option<Duration>,
    /// Record for so many seconds; the program runs to its end
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Record only these steps, counted from 0 by calls of an optimizer's step(); the last is not included
    #[arg(long, value_name = "FIRST:LAST", value_parser = steps)]
    steps: Option<(u64, u64)>,
    /// Record one of so many optimizer steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Keep the recording within this size while the program runs: the oldest stretch is dropped, the latest kept; `none` for no
    /// limit
    #[arg(long, value_name = "SIZE", default_value = "10GB", value_parser = limits::size)]
    max_size: MaxSize,
    /// Keep only so much of the latest time: 90s, 15min, 2h
    #[arg(long, value_name = "TIME", value_parser = limits::time)]
    max_time: Option<Duration>,
    /// Record less when recording costs more than this share of the program's time
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    budget: Option<f64>,
    /// The Python that runs scripts and modules
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    #[command(flatten)]
    format: ReportFormat,
    /// A Python script, a folder or archive with __main__.py, `-` for standard input, or any command; with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// `none` is a value of the option, not its absence.
type MaxSize = Option<u64>;

impl Arguments {
    fn limits(&self) -> Limits {
        Limits { size: self.max_size, time: self.max_time }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let program = Program {
        module: arguments.module.as_ref(),
        code: arguments.code.as_ref(),
        words: &arguments.command,
        python: arguments.python.as_deref(),
    };
    // That is the program's.
    destination::refuse_stdout(arguments.output.as_deref(), "a recording")?;
    destination::refuse_stdout(arguments.flamegraph.as_deref(), "the flame graph of a run")?;
    let mut command = program.command()?;
    let rank = Rank::own();
    let own_file = |path: &PathBuf| rank.map_or_else(|| path.clone(), |rank| rank.file(path));
    let picture = arguments.flamegraph.as_ref().map(own_file);
    picture.as_deref().map_or(Ok(()), files::check_place)?;
    let mut output = match arguments.output.as_ref().map(own_file) {
        Some(path) => Output::asked_for(&path)?,
        None => {
            let name = name::of(&program);
            Output::named(&rank.map_or_else(|| name.clone(), |rank| rank.name(&name)))?
        }
    };
    hooks::prepare(&mut command, arguments.python.as_deref());
    WallOffset::now().agree();
    let started = clock::unix_now();
    let options = options(arguments, &output.spool, started);
    inject(&mut command, arguments.python.as_deref(), &options).inspect_err(|_| output.abandon())?;

    let mut process = 0;
    let mut descendants = unrecorded::Descendants::default();
    let mut keeper = limits::Keeper::new(arguments.limits());
    let status = launch::run(&mut command, unrecorded::INTERVAL, |pid| {
        descendants.look(pid);
        keeper.look(&output.spool);
        if process == 0 {
            spool::describe(&output.spool, &facts(&program, pid, started));
        }
        process = pid;
    });
    let status = status.map_err(|error| {
        output.abandon();
        CommandError::Start { program: command.get_program().display().to_string(), source: error }
    })?;
    let ended = clock::unix_now();

    spool::wait_for_children(&output.spool);
    let recordings = Recordings::survey(&output.spool, process);
    if !recordings.has_tracks() {
        say(
            "note: no Python process was recorded (is the program Python? isolated mode, `python -I`, is not seen)",
        );
    }
    let mut facts = facts(&program, process, started);
    facts["end_unix_ns"] = ended.0.into();
    // Files have wall time, which may have been set meanwhile.
    let written = spool::last_written(&output.spool, process).map(|written| written.clamp(started, ended).0);
    facts["written_unix_ns"] = written.into();
    facts["ended"] = describe(status).into();
    facts["unrecorded"] = descendants.unrecorded(&output.spool);
    facts["kept_since_unix_ns"] = recordings.kept_since().into();
    let saved = output.save(&recordings, &facts);
    let model = match &saved {
        Ok(()) => match hotspan_formats::open(&output.path) {
            Ok(trace) => {
                output.remove_spool();
                Model::new(trace)
            }
            Err(error) => {
                // The program has run; its exit code is worth more than ours.
                say(&format!("note: there is no report: {error}"));
                say(&saved_where(&output, rank));
                return end_like(status);
            }
        },
        Err(_) => {
            // For whoever opens the folder: all that is known now.
            spool::describe(&output.spool, &facts);
            let mut trace = recordings.in_memory();
            trace.set_metadata(RUN_KEY, &facts.to_string());
            Model::new(trace)
        }
    };
    // All ranks share a terminal or a log: one report there is enough.
    if rank.is_none_or(|rank| rank.number == 0) {
        show_report(&model, arguments.format);
    }
    match saved {
        Ok(()) => say(&saved_where(&output, rank)),
        // The program has run; its exit code is worth more than ours, and nothing is lost.
        Err(error) => say_not_saved(&error, &output),
    }
    if let Some(picture) = &picture {
        draw_flame_graph(&model, picture, program.in_words());
    }
    end_like(status)
}

/// Ends as the program did.
fn end_like(status: ExitStatus) -> Result<(), CommandError> {
    match launch::end_like(status) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

fn saved_where(output: &Output, rank: Option<Rank>) -> String {
    let path = output.path.display();
    match rank {
        None => format!("The recording is {path}"),
        Some(Rank { number: 0, count }) => {
            format!("The recording of rank 0 is {path}; `hotspan ranks` compares those of all {count} ranks")
        }
        Some(rank) => format!("The recording of rank {} is {path}", rank.number),
    }
}

/// Shows the report, or says why there is none: the program has run, and its exit code is worth more than ours.
fn show_report(model: &Model, format: ReportFormat) {
    let (mut text, mut stderr) = (Vec::new(), Outlet::stderr());
    match report::write(model, format, stderr.style(), &mut text) {
        // Whoever closed standard error does not want it.
        Ok(()) => {
            let _ = writeln!(stderr).and_then(|()| stderr.write_all(&text)).and_then(|()| writeln!(stderr));
        }
        Err(error) => say(&format!("note: there is no report: {error}")),
    }
}

/// Says what to do about a recording that could not be saved.
fn say_not_saved(error: &ExportError, output: &Output) {
    let spool = output.spool.display();
    say(&format!("error: the recording was not saved: {error}"));
    say(&format!("hint: all of it is still in {spool}: `hotspan report {spool}` reads it"));
}

fn draw_flame_graph(model: &Model, path: &Path, title: String) {
    let flamegraph = Flamegraph { options: TreeOptions::default(), title: Some(title) };
    match save(model, &flamegraph, path) {
        Ok(()) => say(&format!("The flame graph is {}", path.display())),
        Err(error) => say(&format!("note: no flame graph: {error}")),
    }
}

/// Runs a command and samples every Python in it from within, native frames included; nothing else is recorded.
pub(crate) fn sample_from_within(
    command: &mut Command,
    rate: u32,
    limit: Option<Duration>,
    output: &Path,
) -> Result<(Trace, Option<ExitStatus>), CommandError> {
    let spool = spool::make(output)?;
    WallOffset::now().agree();
    let mut options = json!({"rate": rate, "operators": false});
    tell_run(&mut options, &spool);
    inject(command, None, &options)?;
    let mut launched = launch::Program::start(command).map_err(|error| {
        let _ = fs::remove_dir(&spool);
        CommandError::Start { program: command.get_program().display().to_string(), source: error }
    })?;
    let process = launched.id();
    let status = match limit {
        Some(limit) => launched.wait(limit)?,
        None => loop {
            if let Some(status) = launched.wait(LONG)? {
                break Some(status);
            }
        },
    };
    launched.stop()?;
    drop(launched);
    spool::wait_for_children(&spool);
    let trace = merged(&spool, process);
    let _ = fs::remove_dir_all(&spool);
    Ok((trace, status))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.trim_end_matches('s').parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

fn steps(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("'{text}' is not two numbers, such as 10:20");
    let (first, last) = text.split_once(':').ok_or_else(wrong)?;
    let first = if first.is_empty() { 0 } else { first.parse().map_err(|_| wrong())? };
    let last = if last.is_empty() { u64::MAX } else { last.parse().map_err(|_| wrong())? };
    if first < last { Ok((first, last)) } else { Err(format!("there is no step from {first} to {last}")) }
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| "not a percentage".to_owned())?;
    if number > 0.0 && number <= 100.0 {
        Ok(number / 100.0)
    } else {
        Err("not between 0 and 100 %".to_owned())
    }
}

/// What is known of the program once it has started.
fn facts(program: &Program<'_>, process: u32, started: UnixNanos) -> Value {
    json!({
        "pid": process,
        "tid": process,
        "start_unix_ns": started.0,
        "command": program.in_words(),
        "rank": Rank::own().map(|rank| rank.number),
        "inherited": rank::inherited(),
        "folder": env::current_dir().ok().map(|folder| folder.display().to_string()),
    })
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}
