//! memory_profiler's `mprof` files, for `mprof plot` and `mprof peak`.

use std::io::{self, Write};

use hotspan_analyze::{Model, RUN_KEY};
use hotspan_store::{Bytes, Timestamp};
use serde_json::Value;

use super::Exporter;

/// The exporter of `mprof` files.
pub struct Mprof;

impl Exporter for Mprof {
    fn name(&self) -> &'static str {
        "mprof"
    }

    fn help(&self) -> &'static str {
        "memory of processes over time, for mprof plot"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        // One line each: a command may contain line ends.
        writeln!(output, "CMDLINE {}", command(model).replace(['\n', '\r'], " "))?;
        let memory = model.process_memory();
        let origin = model.clock().unix_origin().unwrap_or(0);
        let seconds = |time: Timestamp| origin.saturating_add(time.0) as f64 / 1e9;
        let mebibytes = |bytes: Bytes| bytes.0 as f64 / f64::from(1 << 20);
        let mut lines: Vec<(Timestamp, usize, Bytes)> = Vec::new();
        for (index, process) in memory.processes.iter().enumerate() {
            lines.extend(process.points.iter().map(|&(time, bytes)| (time, index, bytes)));
        }
        lines.sort_unstable();
        for (time, index, bytes) in lines {
            let (amount, moment) = (mebibytes(bytes), seconds(time));
            match index {
                0 => writeln!(output, "MEM {amount:.6} {moment:.4}")?,
                _ => writeln!(output, "CHLD {} {amount:.6} {moment:.4}", memory.processes[index].pid)?,
            }
        }
        Ok(())
    }
}

/// The command that was recorded: an imported file has its text, `hotspan run` a list of words.
fn command(model: &Model) -> String {
    let metadata = model.metadata();
    let run = metadata.value(RUN_KEY).and_then(|run| run.get("command").cloned());
    match metadata.value("command").or(run) {
        Some(Value::String(text)) => text,
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => "unknown".to_owned(),
    }
}
