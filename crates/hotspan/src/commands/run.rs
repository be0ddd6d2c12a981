//! `hotspan run`: a program under all collectors, its report, and its own exit code.
//!
//! The program is started as it would be without hotspan; a folder in PYTHONPATH makes every Python in it record itself
//! (see `python/hotspan/_inject`). Each process writes a file of its own, which survives its death; they become one here.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use hotspan_analyze::TreeOptions;
use hotspan_collect::{clock, launch};
use hotspan_formats::export::flamegraph::Flamegraph;
use hotspan_formats::export::hotspan::Hotspan;
use hotspan_formats::save;
use hotspan_store::{Trace, merge};
use serde_json::json;

use crate::commands::report::{self, ReportFormat};
use crate::error::CommandError;
use crate::present::Style;
use crate::progress::say;

const EXAMPLES: &str = "\
Examples:
  hotspan run train.py --epochs 3
  hotspan run -m mypackage.train
  hotspan run --shapes -o before.hotspan train.py
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
    let spool = make_spool(&output)?;
    inject(&mut command, arguments, &spool)?;

    let started = clock::unix_now();
    let mut line = ProgressLine::new(spool.clone());
    let mut process = 0;
    let status = launch::run(&mut command, Duration::from_millis(250), |pid| {
        process = pid;
        line.draw();
    });
    line.clear();
    let status = status.map_err(|error| {
        let _ = fs::remove_dir(&spool);
        CommandError::Start { program: command.get_program().display().to_string(), source: error }
    })?;
    let ended = clock::unix_now();

    let mut trace = collect(&spool, process)?;
    let facts = json!({
        "pid": process,
        "tid": process,
        "start_unix_ns": started.0,
        "end_unix_ns": ended.0,
        "command": words(arguments),
        "ended": describe(status),
    });
    trace.set_metadata("hotspan.run", &facts.to_string());
    match save(&trace, &Hotspan, &output) {
        Ok(()) => {
            let _ = fs::remove_dir_all(&spool);
        }
        // The program has run; its exit code is worth more than ours, and nothing is lost.
        Err(error) => say(&format!("error: {error}\nhint: the recording is still in {}", spool.display())),
    }
    let mut text = Vec::new();
    let style = Style::of(io::stderr().is_terminal());
    report::write(&trace, arguments.format, style, &mut text)?;
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr).and_then(|()| stderr.write_all(&text));
    let _ = writeln!(stderr, "\nThe recording is {}", output.display());
    if let Some(picture) = flame_graph(&trace, &output, words(arguments)) {
        let _ = writeln!(stderr, "The flame graph is {}", picture.display());
    }
    drop(stderr);
    match launch::end_like(status) {
        0 => Ok(()),
        code => Err(CommandError::Ended(code)),
    }
}

/// A flame graph beside the recording; nothing where there is nothing to draw. The report does without it.
fn flame_graph(trace: &Trace, output: &Path, title: String) -> Option<PathBuf> {
    if trace.profile().samples.is_empty() && trace.spans().is_empty() {
        return None;
    }
    let path = output.with_extension("svg");
    let flamegraph = Flamegraph { options: TreeOptions::default(), title: Some(title) };
    match save(trace, &flamegraph, &path) {
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

/// A new folder beside the output.
fn make_spool(output: &Path) -> Result<PathBuf, CommandError> {
    for number in 1..1_000 {
        let mut name = output.as_os_str().to_owned();
        name.push(if number == 1 { ".spool".to_owned() } else { format!(".spool-{number}") });
        let spool = PathBuf::from(name);
        match fs::create_dir(&spool) {
            // The program may change its directory.
            Ok(()) => return Ok(spool.canonicalize().unwrap_or(spool)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let folder = spool.display();
                return Err(CommandError::Usage(format!("cannot write to {folder}: {error}")));
            }
        }
    }
    Err(CommandError::Usage(format!("too many folders like {}.spool: remove some", output.display())))
}

/// Makes every Python of the program record itself.
fn inject(command: &mut Command, arguments: &Arguments, spool: &Path) -> Result<(), CommandError> {
    let package = package(arguments)?;
    let mut paths = vec![package.join("_inject")];
    paths.extend(
        env::var_os("PYTHONPATH")
            .iter()
            .flat_map(env::split_paths)
            .filter(|path| !path.as_os_str().is_empty()),
    );
    let paths = env::join_paths(paths)
        .map_err(|error| CommandError::Usage(format!("PYTHONPATH cannot be extended: {error}")))?;
    let options = json!({
        "spool": spool.display().to_string(),
        "rate": arguments.rate,
        "shapes": arguments.shapes,
        "memory": arguments.memory,
    });
    command.env("PYTHONPATH", paths).env("HOTSPAN_RUN", options.to_string());
    command.env_remove("HOTSPAN_PYTHON").env_remove("HOTSPAN_PACKAGE");
    Ok(())
}

/// The folder of the Python package: the wheel says where, otherwise Python is asked.
fn package(arguments: &Arguments) -> Result<PathBuf, CommandError> {
    if let Some(package) = env::var_os("HOTSPAN_PACKAGE") {
        return Ok(package.into());
    }
    let python = arguments.python.clone().unwrap_or_else(|| "python3".into());
    let asked = Command::new(&python).args(["-c", "import hotspan; print(hotspan.__path__[0])"]).output();
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

/// All processes as one trace, the program itself first.
fn collect(spool: &Path, process: u32) -> Result<Trace, CommandError> {
    let mut files: Vec<PathBuf> = fs::read_dir(spool)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let main = format!("{process}-");
    files.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (!name.starts_with(&main), name)
    });
    let mut traces = Vec::new();
    for path in &files {
        match hotspan_formats::open(path) {
            Ok(trace) => traces.push(trace),
            Err(error) => say(&format!("note: {error}")),
        }
    }
    if traces.is_empty() {
        say(
            "note: no Python process was recorded (is the program Python? isolated mode, `python -I`, is not seen)",
        );
    }
    Ok(merge(&traces))
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

/// How it goes, on a terminal.
struct ProgressLine {
    spool: PathBuf,
    started: Instant,
    visible: bool,
    drawn: bool,
}

impl ProgressLine {
    fn new(spool: PathBuf) -> Self {
        Self { spool, started: Instant::now(), visible: io::stderr().is_terminal(), drawn: false }
    }

    fn draw(&mut self) {
        // The program's own lines come first: a short one is never disturbed.
        if !self.visible || self.started.elapsed() < Duration::from_secs(2) {
            return;
        }
        let files = fs::read_dir(&self.spool).into_iter().flatten().filter_map(Result::ok);
        let sizes: Vec<u64> = files.filter_map(|file| Some(file.metadata().ok()?.len())).collect();
        let (processes, bytes) = (sizes.len(), sizes.iter().sum::<u64>());
        let line = format!(
            "hotspan: {:.0} s, {processes} process{}, {:.1} MB recorded",
            self.started.elapsed().as_secs_f64(),
            if processes == 1 { "" } else { "es" },
            bytes as f64 / 1e6
        );
        let _ = write!(io::stderr().lock(), "\r\x1b[K{line}\r");
        self.drawn = true;
    }

    fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
