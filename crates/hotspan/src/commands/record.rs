//! `hotspan record`: samples of a Python program, running already or started here, as a report or a trace.
//!
//! Sampling itself is in `hotspan-collect`; [`output`] decides what is written, and an exporter writes it.

mod output;
mod relabel;
mod spool;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use hotspan_analyze::Model;
use hotspan_collect::launch::{self, Program, Signals};
use hotspan_collect::sampler::{ProcessNumber, Recording, SampleOptions, SamplerError};

use crate::commands::process::process_number;
use crate::commands::record_memory::{self, MemoryArguments};
use crate::commands::tree;
use crate::destination;
use crate::error::CommandError;
use crate::progress::say;
use output::{Format, format_of, output_path, refuse_early, write};
use spool::Spool;

const EXAMPLES: &str = "\
Examples:
  hotspan record -o profile.svg --pid 1234                 # until Ctrl-C: a flame graph
  hotspan record -o profile.svg -d 30 -r 200 --pid 1234    # 30 seconds, 200 samples a second
  hotspan record -d 30 -o profile.svg -- python serve.py   # the first 30 seconds; then the program is ended
  hotspan record -o run.hotspan -- python train.py         # a whole run, to be looked at later
  hotspan record -f tree -- python train.py                # the call tree, in the terminal
  hotspan record --native -o profile.svg -- python train.py # C and C++ frames too, or with --pid
  hotspan record --memory -o memory.svg -- python train.py # memory over time, a plot
  hotspan record -s -t -f speedscope -o p.json -- python train.py   # with children, threads apart";

/// Sample a Python program: where it spends its time, without changing or stopping it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to sample
    #[arg(short, long, value_name = "PID", value_parser = process_number, required_unless_present = "command", conflicts_with = "command")]
    pid: Option<u32>,
    /// The program to start and sample; `--` before it keeps its options from being taken for ours
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Samples a second
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Stop after so many seconds, and end the program where it was started here; otherwise when the program ends, or at Ctrl-C
    #[arg(short, long, value_name = "SECONDS", default_value = "unlimited", value_parser = limit)]
    duration: Limit,
    /// With --duration: let the program go on to its end
    #[arg(long, requires_all = ["duration", "command"], conflicts_with = "native")]
    keep_running: bool,
    /// Sample the children of the process too
    #[arg(short, long)]
    subprocesses: bool,
    /// Show threads apart
    #[arg(short, long)]
    threads: bool,
    /// Keep only samples of the thread that holds the GIL
    #[arg(short, long)]
    gil: bool,
    /// Keep samples of threads that wait, too
    #[arg(short, long)]
    idle: bool,
    /// Do not tell the lines of a function apart
    #[arg(short = 'F', long)]
    function: bool,
    /// Show no line numbers
    #[arg(long)]
    nolineno: bool,
    /// With -f raw: show whole names of files; all other formats always do
    #[arg(long)]
    full_filenames: bool,
    /// Show native frames too (C, C++, Rust: NumPy, torch). A program started here is sampled from within, children
    /// included. With --pid, a running thread is held for the moment of each sample (about 50 µs)
    #[arg(short, long)]
    native: bool,
    /// Accepted: the program is not stopped, but for --native with --pid
    #[arg(long)]
    nonblocking: bool,
    /// Accepted, as py-spy does
    #[arg(long, hide = true)]
    capture: bool,
    /// Accepted, as py-spy does
    #[arg(long, hide = true)]
    hideprogress: bool,
    /// What to write; by default what the name of the output ends in says, else a flame graph
    #[arg(short, long, value_enum, ignore_case = true)]
    format: Option<Format>,
    /// The file to write, `-` for standard output; `-f tree` without it prints
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    show: tree::Show,
    #[command(flatten)]
    memory: MemoryArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    if arguments.memory.memory {
        return record_memory::run(arguments.memory, arguments.output.as_deref(), &arguments.command);
    }
    let format = arguments.format.unwrap_or_else(|| format_of(arguments.output.as_deref()));
    let output = output_path(arguments, format)?;
    let options = SampleOptions {
        period: Duration::from_nanos(1_000_000_000 / u64::from(arguments.rate)),
        subprocesses: arguments.subprocesses,
        idle: arguments.idle,
        gil_only: arguments.gil,
        native: arguments.native,
    };
    let limit = arguments.duration.0;
    refuse_early(format, output.as_deref())?;
    if arguments.native && arguments.pid.is_none() {
        return sample_native(arguments, format, output.as_deref());
    }
    match arguments.pid {
        Some(pid) => {
            let signals = Signals::to_stop();
            let mut recording = Recording::attach(ProcessNumber(pid), options)?;
            let spool = Spool::beside(output.as_deref(), &mut recording)?;
            sample(&mut recording, limit, |longest| Ok(signals.asked_to_stop(longest)))?;
            drop(signals);
            spool.write(recording, arguments, format, output.as_deref())
        }
        None => launch(arguments, options, limit, format, output.as_deref()),
    }
}

/// Starts the program with the sampler inside it, which sees native frames without holding threads, and ends as it ended.
fn sample_native(arguments: &Arguments, format: Format, output: Option<&Path>) -> Result<(), CommandError> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(CommandError::Usage("nothing to run after `--`".to_owned()));
    };
    let beside = output.filter(|path| !destination::is_stdout(path)).unwrap_or(Path::new("hotspan"));
    let mut command = Command::new(program);
    let limit = arguments.duration.0.filter(|_| !arguments.keep_running);
    let (trace, status) = super::run::sample_from_within(command.args(rest), arguments.rate, limit, beside)?;
    write(arguments, format, output, &Model::new(trace))?;
    end(status)
}

/// Starts the program, samples it, and ends as it ended.
fn launch(
    arguments: &Arguments,
    options: SampleOptions,
    limit: Option<Duration>,
    format: Format,
    output: Option<&Path>,
) -> Result<(), CommandError> {
    // Longer than this nobody waits in one go.
    const LONG: Duration = Duration::from_secs(3600);
    let [command, rest @ ..] = &arguments.command[..] else {
        return Err(CommandError::Usage("nothing to run after `--`".to_owned()));
    };
    let start = |source| CommandError::Start { program: command.to_string_lossy().into_owned(), source };
    let mut program = Program::start(Command::new(command).args(rest)).map_err(start)?;
    let mut recording = attach(&mut program, options)?;
    let mut stopped = false;
    let spool = recording.as_mut().map(|recording| Spool::beside(output, recording)).transpose();
    // The program runs already: it goes on, and its end is waited for, whatever becomes of the recording.
    if let (Some(recording), Ok(_)) = (&mut recording, &spool) {
        let is_time_up = sample(recording, limit, |longest| Ok(program.wait(longest)?.is_some()))?;
        if is_time_up && !arguments.keep_running && program.wait(Duration::ZERO)?.is_none() {
            program.stop()?;
            // That was our doing, and is no failure.
            stopped = true;
        }
    }
    let status = loop {
        if let Some(status) = program.wait(LONG)? {
            break status;
        }
    };
    drop(program);
    match (recording, spool?) {
        (Some(recording), Some(spool)) => spool.write(recording, arguments, format, output)?,
        _ => say("note: nothing was recorded"),
    }
    end((!stopped).then_some(status))
}

/// Ends as the program did; one that we have stopped did nothing wrong.
fn end(status: Option<ExitStatus>) -> Result<(), CommandError> {
    match status.map_or(0, launch::end_like) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

/// For how long to sample.
#[derive(Clone, Copy, Debug)]
struct Limit(Option<Duration>);

fn limit(text: &str) -> Result<Limit, String> {
    if text == "unlimited" {
        return Ok(Limit(None));
    }
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => {
            Ok(Limit(Some(Duration::from_secs_f64(seconds.min(1e9)))))
        }
        _ => Err("not a number of seconds above 0, nor `unlimited`".to_owned()),
    }
}

/// Begins to record a program that was just started; what stands in the way is said, and the program goes on without.
fn attach(program: &mut Program, options: SampleOptions) -> Result<Option<Recording>, CommandError> {
    match Recording::attach_to_new(ProcessNumber(program.id()), options) {
        Ok(recording) => return Ok(Some(recording)),
        // It ended before it could be looked at; how it ended is what counts.
        Err(SamplerError::NoProcess(_)) => {}
        Err(error) if program.wait(Duration::ZERO)?.is_some() => {
            say(&format!("note: the program ended before it could be sampled ({error})"));
        }
        Err(error) => {
            say(&format!("note: not sampled: {error}"));
            if let Some(hint) = error.hint() {
                say(&format!("hint: {hint}"));
            }
        }
    }
    Ok(None)
}

/// Samples until the time is up, there is nothing left to sample, or `wait` says that it is over. Whether the time is up is
/// the answer.
fn sample(
    recording: &mut Recording,
    limit: Option<Duration>,
    mut wait: impl FnMut(Duration) -> io::Result<bool>,
) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(begun.elapsed()));
        if wait(recording.wait().min(left))? || left.is_zero() {
            return Ok(left.is_zero());
        }
        if recording.wait().is_zero() && !recording.sample() {
            return Ok(false);
        }
    }
}
