//! `hotspan record`: samples of a Python program, running already or started here, as a report or a trace.
//!
//! Sampling itself is in `hotspan-collect`; what is written is an exporter's business.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use hotspan_analyze::{ShowOptions, TreeOptions, call_tree};
use hotspan_collect::sampler::{ProcessNumber, Recording, SampleOptions, SamplerError, signals};
use hotspan_formats::export::collapsed::Collapsed;
use hotspan_formats::export::flamegraph::Flamegraph;
use hotspan_formats::{EXPORTERS, Exporter, save};
use hotspan_store::Trace;

use crate::commands::record_memory::{self, MemoryArguments};
use crate::commands::tree;
use crate::error::CommandError;
use crate::present;
use crate::progress::say;

const EXAMPLES: &str = "\
Examples:
  hotspan record -o profile.svg --pid 1234                 # until Ctrl-C: a flame graph
  hotspan record -o profile.svg -d 30 -r 200 --pid 1234    # 30 seconds, 200 samples a second
  hotspan record -o run.hotspan -- python train.py         # a whole run, to be looked at later
  hotspan record -f tree -- python train.py                # the call tree, in the terminal
  hotspan record --native -o profile.svg -- python train.py # C and C++ frames too
  hotspan record --memory -o memory.svg -- python train.py # memory over time, a plot
  hotspan record -s -t -f speedscope -o p.json -- python train.py   # with children, threads apart";

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// An interactive flame graph (SVG)
    Flamegraph,
    /// Stacks with counts, a line each: py-spy's raw format
    #[value(alias = "raw")]
    Collapsed,
    /// For https://www.speedscope.app
    Speedscope,
    /// A Chrome trace, for Perfetto
    #[value(alias = "chrometrace")]
    Chrome,
    /// For pstats, snakeviz and gprof2dot
    Pstats,
    /// hotspan's own file: nothing is lost, and all commands open it
    Hotspan,
    /// The call tree as text
    Tree,
}

/// Sample a Python program: where it spends its time, without changing or stopping it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to sample
    #[arg(short, long, value_name = "PID", required_unless_present = "command", conflicts_with = "command")]
    pid: Option<u32>,
    /// The program to start and sample, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Samples a second
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Stop after so many seconds; otherwise when the program ends, or at Ctrl-C
    #[arg(short, long, value_name = "SECONDS")]
    duration: Option<f64>,
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
    /// Show native frames too (C, C++, Rust: NumPy, torch), of programs started here; children are sampled as well
    #[arg(long, requires = "command", conflicts_with_all = ["gil", "duration"])]
    native: bool,
    /// What to write; by default what the name of the output ends in says, else a flame graph
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// The file to write; `-f tree` without it prints
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
    };
    let limit = match arguments.duration {
        Some(seconds) if seconds > 0.0 && seconds.is_finite() => {
            Some(Duration::from_secs_f64(seconds.min(1e9)))
        }
        Some(seconds) => {
            return Err(CommandError::Usage(format!("a duration of {seconds} s is not possible")));
        }
        None => None,
    };
    refuse_early(format, output.as_deref())?;
    if arguments.native {
        return sample_native(arguments, format, output.as_deref());
    }
    signals::listen();
    match arguments.pid {
        Some(pid) => {
            let recording = Recording::attach(ProcessNumber(pid), options)?;
            let trace = sample(recording, None, limit).finish();
            write(arguments, format, output.as_deref(), &trace)
        }
        None => launch(arguments, options, limit, format, output.as_deref()),
    }
}

/// Starts the program with the sampler inside it, which alone sees native frames, and ends as it ended.
fn sample_native(arguments: &Arguments, format: Format, output: Option<&Path>) -> Result<(), CommandError> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(CommandError::Usage("nothing to run after `--`".to_owned()));
    };
    let beside = output.unwrap_or(Path::new("hotspan"));
    let mut command = Command::new(program);
    let (trace, status) = super::run::sample_from_within(command.args(rest), arguments.rate, beside)?;
    write(arguments, format, output, &trace)?;
    match hotspan_collect::launch::end_like(status) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

/// What cannot be written is better said before hours of recording than after.
fn refuse_early(format: Format, output: Option<&Path>) -> Result<(), CommandError> {
    if format == Format::Pstats && listed("prof").is_none() {
        return Err(CommandError::Usage("this hotspan cannot write pstats files of samples".to_owned()));
    }
    let folder = output.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    match (output, folder.map(std::fs::metadata)) {
        (Some(path), Some(Err(error))) => {
            Err(hotspan_formats::ExportError { path: path.to_owned(), error }.into())
        }
        _ => Ok(()),
    }
}

/// An exporter by its name.
fn listed(name: &str) -> Option<&'static dyn Exporter> {
    EXPORTERS.iter().find(|exporter| exporter.name() == name).copied()
}

/// Starts the program, samples it, and ends as it ended.
fn launch(
    arguments: &Arguments,
    options: SampleOptions,
    limit: Option<Duration>,
    format: Format,
    output: Option<&Path>,
) -> Result<(), CommandError> {
    let [program, rest @ ..] = &arguments.command[..] else {
        return Err(CommandError::Usage("nothing to run after `--`".to_owned()));
    };
    let start = |source| CommandError::Start { program: program.to_string_lossy().into_owned(), source };
    let mut child = Command::new(program).args(rest).spawn().map_err(start)?;
    let recording = match Recording::attach_to_new(ProcessNumber(child.id()), options) {
        Ok(recording) => Some(recording),
        // It ended before it could be looked at; how it ended is what counts.
        Err(SamplerError::NoProcess(_)) => None,
        Err(error) if matches!(child.try_wait(), Ok(Some(_))) => {
            say(&format!("note: the program ended before it could be sampled ({error})"));
            None
        }
        Err(error) => {
            say(&format!("note: not sampled: {error}"));
            if let Some(hint) = error.hint() {
                say(&format!("hint: {hint}"));
            }
            None
        }
    };
    let trace = recording.map(|recording| sample(recording, Some(&mut child), limit).finish());
    // After the time is up the program goes on without us, and its signals still reach it.
    let status = wait(&mut child)?;
    match trace {
        Some(trace) => write(arguments, format, output, &trace)?,
        None => say("note: nothing was recorded"),
    }
    match exit_code(status) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

fn wait(child: &mut Child) -> Result<ExitStatus, CommandError> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        pass_on(child);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A signal sent to us alone is meant for the program; one from the keyboard it has got itself.
fn pass_on(child: &Child) {
    if let Some((signal, true)) = signals::take() {
        signals::send(ProcessNumber(child.id()), signal);
    }
}

/// As a shell tells it: 128 and the signal for one that was killed.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Samples until the program ends, the time is up or someone asks to stop.
fn sample(mut recording: Recording, mut child: Option<&mut Child>, limit: Option<Duration>) -> Recording {
    // Signals must be noticed soon even when samples are rare.
    const LONGEST_SLEEP: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    loop {
        let mut wait = recording.wait();
        while !wait.is_zero() {
            std::thread::sleep(wait.min(LONGEST_SLEEP));
            if over(&mut child, begun, limit) {
                return recording;
            }
            wait = recording.wait();
        }
        if over(&mut child, begun, limit) || !recording.sample() {
            return recording;
        }
    }
}

fn over(child: &mut Option<&mut Child>, begun: Instant, limit: Option<Duration>) -> bool {
    let stop = match child {
        Some(child) => {
            pass_on(child);
            matches!(child.try_wait(), Ok(Some(_)))
        }
        None => signals::take().is_some(),
    };
    stop || limit.is_some_and(|limit| begun.elapsed() >= limit)
}

fn format_of(output: Option<&Path>) -> Format {
    let name = output.map(|path| path.display().to_string()).unwrap_or_default();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match name.rsplit('.').next() {
        Some("hotspan") => Format::Hotspan,
        Some("txt" | "folded" | "collapsed" | "raw") => Format::Collapsed,
        Some("prof" | "pstats") => Format::Pstats,
        Some("json") if name.ends_with(".speedscope.json") => Format::Speedscope,
        Some("json") => Format::Chrome,
        _ => Format::Flamegraph,
    }
}

fn output_path(arguments: &Arguments, format: Format) -> Result<Option<PathBuf>, CommandError> {
    match (&arguments.output, format) {
        (Some(output), _) => Ok(Some(output.clone())),
        (None, Format::Tree) => Ok(None),
        (None, _) => {
            let ending = match format {
                Format::Collapsed => "txt",
                Format::Speedscope => "speedscope.json",
                Format::Chrome => "json",
                Format::Pstats => "prof",
                Format::Hotspan => "hotspan",
                Format::Flamegraph | Format::Tree => "svg",
            };
            let what = match (arguments.pid, arguments.command.first()) {
                (Some(pid), _) => pid.to_string(),
                (None, Some(program)) => {
                    Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned()
                }
                (None, None) => {
                    return Err(CommandError::Usage("give --pid or a command after `--`".to_owned()));
                }
            };
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(Some(PathBuf::from(format!("{what}-{}.{ending}", now.as_secs()))))
        }
    }
}

fn write(
    arguments: &Arguments,
    format: Format,
    output: Option<&Path>,
    trace: &Trace,
) -> Result<(), CommandError> {
    for loss in trace.losses().serious() {
        say(&format!("note: {loss}"));
    }
    let samples = trace.profile().samples.len();
    if samples == 0 {
        say(
            "note: no samples: the program was idle or ended at once (-i keeps samples of threads that wait)",
        );
    }
    let options = TreeOptions {
        lines: !arguments.function,
        threads: arguments.threads,
        busy_only: busy_only(arguments),
    };
    let (collapsed, flamegraph);
    let exporter: Option<&dyn Exporter> = match format {
        Format::Flamegraph => {
            flamegraph = Flamegraph { options, title: Some(title(arguments)) };
            Some(&flamegraph)
        }
        Format::Collapsed => {
            collapsed = Collapsed { options };
            Some(&collapsed)
        }
        Format::Speedscope => listed("speedscope"),
        Format::Chrome => listed("chrome"),
        Format::Hotspan => listed("hotspan"),
        Format::Pstats => listed("prof"),
        Format::Tree => return write_tree(arguments, output, trace),
    };
    let Some(exporter) = exporter else {
        return Err(CommandError::Usage("this hotspan cannot write that format".to_owned()));
    };
    let Some(output) = output else { return Ok(()) };
    save(trace, exporter, output)?;
    say(&format!("wrote {} ({samples} samples)", output.display()));
    Ok(())
}

/// From outside, threads that wait are left out while sampling; from within they are always seen.
fn busy_only(arguments: &Arguments) -> bool {
    arguments.native && !arguments.idle
}

fn title(arguments: &Arguments) -> String {
    match arguments.pid {
        Some(pid) => format!("process {pid}"),
        None => {
            let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        }
    }
}

fn write_tree(arguments: &Arguments, output: Option<&Path>, trace: &Trace) -> Result<(), CommandError> {
    let options = TreeOptions { lines: false, threads: arguments.threads, busy_only: busy_only(arguments) };
    let show: ShowOptions = arguments.show.into();
    let report = call_tree(trace, &options).report(&show);
    match output {
        Some(path) => {
            let text = present::tree(&report, false);
            std::fs::write(path, text).map_err(|error| {
                CommandError::from(hotspan_formats::ExportError { path: path.to_owned(), error })
            })?;
            say(&format!("wrote {}", path.display()));
        }
        None => std::io::stdout().write_all(present::tree(&report, tree::colored()).as_bytes())?,
    }
    Ok(())
}
