//! `hotspan run`: a program under all collectors, its report, and its own exit code.
//!
//! The program is started as it would be without hotspan; a folder in PYTHONPATH makes every Python in it record itself
//! (see `python/hotspan/_inject`). Each process writes a file of its own, which survives its death; `run_folder` makes them one.

mod hooks;
mod progress_line;
mod spool;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use hotspan_analyze::{Model, RUN_KEY, TreeOptions};
use hotspan_collect::clock::UnixNanos;
use hotspan_collect::{clock, launch};
use hotspan_formats::export::flamegraph::Flamegraph;
use hotspan_formats::export::hotspan::Hotspan;
use hotspan_formats::save;
use hotspan_store::Trace;
use serde_json::{Value, json};

use crate::commands::report::{self, ReportFormat};
use crate::error::CommandError;
use crate::present::Style;
use crate::progress::say;
use crate::run_folder::merged;
use progress_line::ProgressLine;

const EXAMPLES: &str = "\
Examples:
  hotspan run train.py --epochs 3
  hotspan run -m mypackage.train
  hotspan run --shapes -o before.hotspan train.py
  hotspan run --steps 10:20 train.py          # ten optimizer steps, after ten to warm up
  hotspan run --lines model.py:forward train.py
  hotspan run --budget 1% --delay 60 --duration 300 serve.py
  hotspan run torchrun --nproc-per-node 2 train.py";

/// Run a program, record it as a whole, and say where its time went
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run a Python module as a script, as `python -m` does
    #[arg(short = 'm', value_name = "MODULE")]
    module: Option<OsString>,
    /// Where to write the recording [default: the program's name with .hotspan]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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
    /// Record less when recording costs more than this share of the program's time
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    budget: Option<f64>,
    /// The Python that runs scripts and modules
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    #[command(flatten)]
    format: ReportFormat,
    /// A Python script, or any command, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let mut command = command(arguments)?;
    let output = arguments.output.clone().unwrap_or_else(|| default_output(arguments));
    let spool = spool::make(&output)?;
    hooks::prepare(&mut command, arguments.python.as_deref());
    let started = clock::unix_now();
    inject(&mut command, arguments.python.as_deref(), &options(arguments, &spool, started))?;

    let mut line = ProgressLine::new(spool.clone());
    let mut process = 0;
    let status = launch::run(&mut command, Duration::from_millis(250), |pid| {
        if process == 0 {
            spool::describe(&spool, &facts(arguments, pid, started));
        }
        process = pid;
        line.draw();
    });
    line.clear();
    let status = status.map_err(|error| {
        let _ = fs::remove_dir(&spool);
        CommandError::Start { program: command.get_program().display().to_string(), source: error }
    })?;
    let ended = clock::unix_now();

    spool::wait_for_children(&spool);
    let mut trace = merged(&spool, process);
    if trace.tracks().is_empty() {
        say(
            "note: no Python process was recorded (is the program Python? isolated mode, `python -I`, is not seen)",
        );
    }
    let mut facts = facts(arguments, process, started);
    facts["end_unix_ns"] = ended.0.into();
    facts["written_unix_ns"] = spool::last_written(&spool, process).map(|written| written.0).into();
    facts["ended"] = describe(status).into();
    trace.set_metadata(RUN_KEY, &facts.to_string());
    let model = Model::new(trace);
    match save(&model, &Hotspan, &output) {
        Ok(()) => {
            let _ = fs::remove_dir_all(&spool);
        }
        // The program has run; its exit code is worth more than ours, and nothing is lost.
        Err(error) => say(&format!("error: {error}\nhint: the recording is still in {}", spool.display())),
    }
    let mut text = Vec::new();
    let style = Style::of(io::stderr().is_terminal());
    report::write(&model, arguments.format, style, &mut text)?;
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr).and_then(|()| stderr.write_all(&text));
    let _ = writeln!(stderr, "\nThe recording is {}", output.display());
    if let Some(picture) = flame_graph(&model, &output, words(arguments)) {
        let _ = writeln!(stderr, "The flame graph is {}", picture.display());
    }
    drop(stderr);
    match launch::end_like(status) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

/// A flame graph beside the recording; nothing where there is nothing to draw. The report does without it.
fn flame_graph(model: &Model, output: &Path, title: String) -> Option<PathBuf> {
    if model.profile().samples.is_empty() && model.spans().is_empty() {
        return None;
    }
    let path = output.with_extension("svg");
    let flamegraph = Flamegraph { options: TreeOptions::default(), title: Some(title) };
    match save(model, &flamegraph, &path) {
        Ok(()) => Some(path),
        Err(error) => {
            say(&format!("note: no flame graph: {error}"));
            None
        }
    }
}

/// What to start: a script or module in Python, or the command as it stands.
fn command(arguments: &Arguments) -> Result<Command, CommandError> {
    let python = || {
        let chosen = arguments.python.clone().map(PathBuf::into_os_string);
        chosen.or_else(|| env::var_os("HOTSPAN_PYTHON")).unwrap_or_else(|| "python3".into())
    };
    if let Some(module) = &arguments.module {
        let mut command = Command::new(python());
        command.arg("-m").arg(module).args(&arguments.command);
        return Ok(command);
    }
    let Some((first, rest)) = arguments.command.split_first() else {
        return Err(CommandError::Usage(
            "nothing to run: give a script, a command, or -m and a module".to_owned(),
        ));
    };
    let path = Path::new(first);
    let mut command = if is_script(path) {
        if !path.exists() {
            return Err(CommandError::Usage(format!("{}: no such file", path.display())));
        }
        let mut command = Command::new(python());
        command.arg(first);
        command
    } else {
        Command::new(first)
    };
    command.args(rest);
    Ok(command)
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "py" || ending == "pyw")
}

fn default_output(arguments: &Arguments) -> PathBuf {
    let stem = match (&arguments.module, arguments.command.first()) {
        (Some(module), _) => module.clone(),
        (None, Some(first)) => Path::new(first).file_stem().unwrap_or(OsStr::new("program")).to_owned(),
        (None, None) => "program".into(),
    };
    let mut name = stem;
    name.push(".hotspan");
    PathBuf::from(name)
}

/// Runs a command and samples every Python in it from within, native frames included; nothing else is recorded.
pub(crate) fn sample_from_within(
    command: &mut Command,
    rate: u32,
    output: &Path,
) -> Result<(Trace, ExitStatus), CommandError> {
    let spool = spool::make(output)?;
    let options = json!({"spool": spool.display().to_string(), "rate": rate, "operators": false});
    inject(command, None, &options)?;
    let mut process = 0;
    let status = launch::run(command, Duration::from_millis(250), |pid| process = pid);
    let status = status.map_err(|error| {
        let _ = fs::remove_dir(&spool);
        CommandError::Start { program: command.get_program().display().to_string(), source: error }
    })?;
    spool::wait_for_children(&spool);
    let trace = merged(&spool, process);
    let _ = fs::remove_dir_all(&spool);
    Ok((trace, status))
}

/// Makes every Python of the program record itself.
fn inject(command: &mut Command, python: Option<&Path>, options: &Value) -> Result<(), CommandError> {
    let package = package(python)?;
    let mut paths = vec![package.join("_inject")];
    paths.extend(
        env::var_os("PYTHONPATH")
            .iter()
            .flat_map(env::split_paths)
            .filter(|path| !path.as_os_str().is_empty()),
    );
    let paths = env::join_paths(paths)
        .map_err(|error| CommandError::Usage(format!("PYTHONPATH cannot be extended: {error}")))?;
    command.env("PYTHONPATH", paths).env("HOTSPAN_RUN", options.to_string());
    command.env_remove("HOTSPAN_PYTHON").env_remove("HOTSPAN_PACKAGE");
    Ok(())
}

/// What the agent is told.
fn options(arguments: &Arguments, spool: &Path, started: UnixNanos) -> Value {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let since = started.0.saturating_add(arguments.delay.map_or(0, nanos));
    // The program may change its directory before it loads the file.
    let lines: Vec<String> = arguments.lines.iter().map(|target| absolute(target)).collect();
    json!({
        "spool": spool.display().to_string(),
        "rate": arguments.rate,
        "shapes": arguments.shapes,
        "memory": arguments.memory,
        "stack": arguments.stack,
        "functions": arguments.functions,
        "lines": lines,
        "memory_lines": arguments.memory_lines,
        "since": arguments.delay.map(|_| since),
        "until": arguments.duration.map(|duration| since.saturating_add(nanos(duration))),
        "steps": arguments.steps.map(|(first, last)| [first, last]),
        "every": arguments.every,
        "budget": arguments.budget,
        "status": io::stderr().is_terminal(),
    })
}

/// A file, and perhaps a function of it, by its whole path.
fn absolute(target: &str) -> String {
    let (file, function) = match target.rsplit_once(':') {
        Some((file, function)) if !function.contains('/') => (file, Some(function)),
        _ => (target, None),
    };
    let path = Path::new(file).canonicalize().unwrap_or_else(|_| PathBuf::from(file));
    function.map_or_else(|| path.display().to_string(), |name| format!("{}:{name}", path.display()))
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

/// The folder of the Python package: the wheel says where, otherwise Python is asked.
fn package(python: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(package) = env::var_os("HOTSPAN_PACKAGE") {
        return Ok(package.into());
    }
    let python = python.unwrap_or(Path::new("python3"));
    let asked = Command::new(python).args(["-c", "import hotspan; print(hotspan.__path__[0])"]).output();
    match asked {
        Ok(answer) if answer.status.success() => {
            Ok(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim().to_owned()))
        }
        _ => Err(CommandError::Usage(format!(
            "{} does not have hotspan: install it there with `pip install hotspan`",
            python.display()
        ))),
    }
}

/// What is known of the program once it has started.
fn facts(arguments: &Arguments, process: u32, started: UnixNanos) -> Value {
    json!({
        "pid": process,
        "tid": process,
        "start_unix_ns": started.0,
        "command": words(arguments),
        "folder": env::current_dir().ok().map(|folder| folder.display().to_string()),
    })
}

fn words(arguments: &Arguments) -> String {
    let module = arguments.module.iter().flat_map(|module| [OsString::from("-m"), module.clone()]);
    let words = module.chain(arguments.command.iter().cloned());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}
