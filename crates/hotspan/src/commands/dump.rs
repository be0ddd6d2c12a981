//! `hotspan dump`: where every thread of a running Python program is, once.

use std::io::Write;
use std::time::Duration;

use hotspan_collect::sampler::{Frame, ProcessNumber, ProcessReader, SamplerError, ThreadSample, locals};
use hotspan_store::visible;
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::present;

const EXAMPLES: &str = "\
Examples:
  hotspan dump --pid 1234             # the stacks of all threads
  hotspan dump --pid 1234 --locals    # with the variables of each function
  hotspan dump --pid 1234 --json | jq '.threads[] | {name, state}'";

/// Show where a running Python program is: the stack of every thread, without stopping it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to look at
    #[arg(short, long, value_name = "PID")]
    pid: u32,
    /// Show the local variables of each function
    #[arg(short, long)]
    locals: bool,
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// A program that changes all the time is looked at again before giving up.
const ATTEMPTS: usize = 20;

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let mut reader = ProcessReader::attach(ProcessNumber(arguments.pid))?;
    let threads = look(&mut reader)?;
    if arguments.json {
        return Ok(present::write_json(&as_json(arguments, &reader, &threads), output)?);
    }
    let interpreter = reader.interpreter();
    writeln!(output, "Process {}: {}", arguments.pid, visible(&command_line(arguments.pid)))?;
    writeln!(output, "Python {} ({})", interpreter.version, visible(&interpreter.file))?;
    for thread in &threads {
        let number =
            thread.number.map_or_else(|| format!("{:#x}", thread.ident), |number| number.to_string());
        let gil = if thread.gil { ", holds the GIL" } else { "" };
        let name = visible(&thread.name);
        writeln!(output, "\nThread {number} ({}{gil}): \"{name}\"", thread.state.word())?;
        for frame in &thread.frames {
            let function = reader.function(frame.function);
            let place = format!("{} ({}:{})", function.name, function.file, frame.line);
            writeln!(output, "    {}", visible(&place))?;
            for (name, value) in variables(arguments, &reader, frame) {
                writeln!(output, "        {} = {}", visible(&name), visible(&value))?;
            }
        }
    }
    Ok(())
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

fn variables(arguments: &Arguments, reader: &ProcessReader, frame: &Frame) -> Vec<(String, String)> {
    // The function may have returned since.
    if arguments.locals { locals::of_frame(reader, frame).unwrap_or_default() } else { Vec::new() }
}

fn command_line(process: u32) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
}

fn as_json(arguments: &Arguments, reader: &ProcessReader, threads: &[ThreadSample]) -> Value {
    let frame = |frame: &Frame| {
        let function = reader.function(frame.function);
        let mut value = json!({
            "name": function.name, "file": function.file, "line": frame.line, "first_line": function.first_line,
        });
        if arguments.locals {
            let variables = variables(arguments, reader, frame);
            let variables: Vec<Value> =
                variables.iter().map(|(name, text)| json!({"name": name, "value": text})).collect();
            value["locals"] = Value::Array(variables);
        }
        value
    };
    let thread = |thread: &ThreadSample| {
        json!({
            "id": thread.number.map(|number| number.0),
            "ident": thread.ident,
            "name": thread.name,
            "state": thread.state.word(),
            "gil": thread.gil,
            "frames": thread.frames.iter().map(frame).collect::<Vec<_>>(),
        })
    };
    json!({
        "pid": arguments.pid,
        "command": command_line(arguments.pid),
        "python": reader.interpreter().version.to_string(),
        "threads": threads.iter().map(thread).collect::<Vec<_>>(),
    })
}
