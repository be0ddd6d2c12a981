//! `hotspan dump`: where every thread of a Python program is right now.

mod as_json;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotspan_collect::sampler::{
    CoreFile, Frame, Function, Interpreter, ProcessNumber, ProcessReader, SamplerError, ThreadSample,
    WantedFrames, locals,
};
use hotspan_store::visible;

use crate::commands::process::process_number;
use crate::error::CommandError;
use crate::present;
use crate::progress::say;

const EXAMPLES: &str = "\
Examples:
  hotspan dump --pid 1234             # the stacks of all threads
  hotspan dump --pid 1234 --locals    # with the variables of each function; -ll shows more of them
  hotspan dump --pid 1234 --native    # with C and C++ frames: where it hangs inside torch or NCCL
  hotspan dump --core core.1234       # of a program that died, where it ran
  hotspan dump --pid 1234 --json | jq '.[] | {thread_name, active}'           # as py-spy prints it
  hotspan dump --pid 1234 --hotspan-json | jq '.threads[] | {name, state}'    # with what threads wait for";

/// Show where a running Python program is: the stack of every thread, without stopping it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to look at, in decimal or hexadecimal
    #[arg(short, long, value_name = "PID", value_parser = process_number, required_unless_present = "core")]
    pid: Option<u32>,
    /// Look at the core file of a program that died instead, where it ran
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["pid", "subprocesses"])]
    core: Option<PathBuf>,
    /// Show the local variables of each function; given twice, longer texts and more items
    #[arg(short, long, action = clap::ArgAction::Count)]
    locals: u8,
    /// Print JSON in the form of py-spy: a list of threads
    #[arg(short, long)]
    json: bool,
    /// Print JSON in hotspan's own form: the process, and its threads with their states
    #[arg(long, conflicts_with = "json")]
    hotspan_json: bool,
    /// Look at the children of the process too
    #[arg(short, long)]
    subprocesses: bool,
    /// Accepted: names of files are always whole
    #[arg(long)]
    full_filenames: bool,
    /// Show native frames too (C, C++, Rust: where a program hangs inside torch); a running thread is held meanwhile
    #[arg(short, long, conflicts_with = "core")]
    native: bool,
    /// Accepted: the program is not stopped, but for --native
    #[arg(long)]
    nonblocking: bool,
}

/// A program that changes all the time is looked at again before giving up.
const ATTEMPTS: usize = 20;

/// A process, and what was seen of it.
struct Seen {
    process: ProcessNumber,
    source: Source,
    threads: Vec<ThreadSample>,
}

/// Where the rest can be asked for.
enum Source {
    Process(ProcessReader),
    Core(CoreFile),
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let mut seen = match (&arguments.core, arguments.pid) {
        (Some(core), _) => vec![Seen::of_core(core)?],
        (None, Some(pid)) => vec![Seen::of(ProcessNumber(pid), arguments.native)?],
        (None, None) => return Err(CommandError::Usage("give --pid or --core".to_owned())),
    };
    if arguments.subprocesses {
        for child in seen[0].process.descendants() {
            match Seen::of(child, arguments.native) {
                Ok(child) => seen.push(child),
                // Shells and compilers are children too.
                Err(SamplerError::NotPython { .. } | SamplerError::NoProcess(_)) => {}
                Err(error) => say(&format!("note: {error}")),
            }
        }
    }
    if arguments.json {
        return Ok(present::write_json(&as_json::of_py_spy(&seen, arguments.locals), output)?);
    }
    if arguments.hotspan_json {
        return Ok(present::write_json(&as_json::of_hotspan(&seen, arguments.locals), output)?);
    }
    for (index, seen) in seen.iter().enumerate() {
        if index > 0 {
            writeln!(output)?;
        }
        seen.write(arguments.locals, output)?;
    }
    Ok(())
}

impl Seen {
    fn of(process: ProcessNumber, native: bool) -> Result<Self, SamplerError> {
        let mut reader = ProcessReader::attach(process)?;
        if native {
            reader = reader.with_native(WantedFrames { idle: true, gil_only: false });
        }
        let threads = look(&mut reader)?;
        Ok(Self { process, source: Source::Process(reader), threads })
    }

    fn of_core(path: &Path) -> Result<Self, SamplerError> {
        let core = CoreFile::open(path)?;
        let (process, threads) = (core.process(), core.threads().to_vec());
        Ok(Self { process, source: Source::Core(core), threads })
    }

    fn interpreter(&self) -> &Interpreter {
        match &self.source {
            Source::Process(reader) => reader.interpreter(),
            Source::Core(core) => core.interpreter(),
        }
    }

    fn function(&self, frame: &Frame) -> &Function {
        match &self.source {
            Source::Process(reader) => reader.function(frame.function),
            Source::Core(core) => core.function(frame.function),
        }
    }

    fn write(&self, locals: u8, output: &mut dyn Write) -> Result<(), CommandError> {
        let interpreter = self.interpreter();
        writeln!(output, "Process {}: {}", self.process, visible(&self.command_line()))?;
        writeln!(output, "Python {} ({})", interpreter.version, visible(&interpreter.file))?;
        for thread in &self.threads {
            let number =
                thread.number.map_or_else(|| format!("{:#x}", thread.ident), |number| number.to_string());
            let gil = if thread.gil { ", holds the GIL" } else { "" };
            let name = visible(&thread.name);
            writeln!(output, "\nThread {number} ({}{gil}): \"{name}\"", thread.state.word())?;
            for frame in &thread.frames {
                let function = self.function(frame);
                let line = if frame.line == 0 { String::new() } else { format!(":{}", frame.line) };
                let shown = format!("{} ({}{line})", function.name, function.file);
                writeln!(output, "    {}", visible(&shown))?;
                for variable in self.variables(frame, locals) {
                    writeln!(output, "        {} = {}", visible(&variable.name), visible(&variable.value))?;
                }
            }
        }
        Ok(())
    }

    fn variables(&self, frame: &Frame, locals: u8) -> Vec<locals::Variable> {
        // The function may have returned since.
        match (&self.source, locals) {
            (_, 0) => Vec::new(),
            (Source::Process(reader), detail) => locals::of_frame(reader, frame, detail).unwrap_or_default(),
            (Source::Core(core), detail) => core.variables(frame, detail).unwrap_or_default(),
        }
    }

    fn command_line(&self) -> String {
        if let Source::Core(core) = &self.source {
            return core.command().to_owned();
        }
        let line = std::fs::read(format!("/proc/{}/cmdline", self.process)).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
    }
}

fn look(reader: &mut ProcessReader) -> Result<Vec<ThreadSample>, SamplerError> {
    let mut threads = Vec::new();
    let mut last = reader.walk(&mut threads);
    for _ in 1..ATTEMPTS {
        let settled = match &last {
            Ok(0) => !threads.is_empty() && threads.iter().all(|thread| !thread.unsteady),
            Err(error) if error.is_end() => break,
            _ => false,
        };
        if settled {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        last = reader.walk(&mut threads);
    }
    last.map(|_| threads)
}
