//! `hotspan info`: what a file is, who wrote it and what is in it.

use std::io::Write;
use std::path::{Path, PathBuf};

use hotspan_analyze::Model;
use hotspan_analyze::summary::Summary;
use hotspan_store::{Bytes, visible};
use serde_json::{Map, Value, json};

use crate::error::CommandError;
use crate::{files, present};

const EXAMPLES: &str = "\
Examples:
  hotspan info trace.json.gz
  hotspan info runs/ --json        # every trace in a folder";

/// Show what a trace is: who wrote it, what is in it, what is missing
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let mut objects = Vec::new();
    let result = files::for_each(&arguments.files, |path, model, position| {
        let summary = model.summary();
        if arguments.json {
            objects.push(as_json(path, model, summary));
            return Ok(());
        }
        if !position.first {
            writeln!(output)?;
        }
        print(path, model, summary, output)
    });
    if arguments.json {
        present::write_json(&Value::Array(objects), output)?;
    }
    result
}

fn print(path: &Path, model: &Model, summary: &Summary, output: &mut dyn Write) -> Result<(), CommandError> {
    writeln!(output, "{}", files::heading(path, model))?;
    for (name, value) in describe(model) {
        writeln!(output, "  {name:<14} {}", visible(&value))?;
    }
    for table in summary.report() {
        writeln!(output)?;
        output.write_all(present::text(&table).as_bytes())?;
    }
    Ok(())
}

/// What the file is and where it comes from, in words.
fn describe(model: &Model) -> Vec<(&'static str, String)> {
    let source = model.source();
    let bytes = Bytes(i64::try_from(source.bytes).unwrap_or(i64::MAX));
    let mut facts = vec![(
        "Format",
        match &source.compression {
            Some(compression) => format!("{}, {compression}, {bytes} uncompressed", source.format),
            None => format!("{}, {bytes}", source.format),
        },
    )];
    let metadata = model.metadata();
    let text = |key: &str| match metadata.value(key)? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    let written = [
        ("Host", "host_name"),
        ("Trace id", "trace_id"),
        ("Trace name", "traceName"),
        ("CUDA runtime", "cuda_runtime_version"),
        ("CUDA driver", "cuda_driver_version"),
        ("CUPTI", "cupti_version"),
    ];
    facts.extend(written.iter().filter_map(|(name, key)| Some((*name, text(key)?))));
    if let Some(distributed) = model.distributed() {
        let part = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
        let parts = [
            part("rank", distributed.rank.map(|rank| rank.to_string())),
            part("of", distributed.world_size.map(|size| size.to_string())),
            part("over", distributed.backend),
        ];
        facts.push(("Distributed", parts.into_iter().flatten().collect::<Vec<_>>().join(" ")));
    }
    let flags = ["record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"];
    let on: Vec<&str> = flags
        .into_iter()
        .filter(|flag| metadata.get(flag).is_some_and(|value| value.trim() == "1"))
        .collect();
    if !on.is_empty() {
        facts.push(("Recorded with", on.join(", ")));
    }
    for device in model.devices() {
        let mut words = vec![format!("{}: {}", device.id, device.name)];
        words.extend(device.memory.map(|memory| Bytes(memory).to_string()));
        words.extend(device.capability.map(|(major, minor)| format!("compute capability {major}.{minor}")));
        words.extend(device.multiprocessors.map(|count| format!("{count} multiprocessors")));
        facts.push(("Device", words.join(", ")));
    }
    facts
}

fn as_json(path: &Path, model: &Model, summary: &Summary) -> Value {
    let source = model.source();
    let categories = summary
        .categories
        .iter()
        .map(|row| (row.name.clone(), json!({"spans": row.spans, "total_ns": row.total.0})));
    let losses = summary.losses.iter().map(|(loss, count)| (loss.name().to_owned(), json!(count)));
    let distributed = model.distributed().unwrap_or_default();
    let devices: Vec<Value> = model
        .devices()
        .into_iter()
        .map(|device| json!({"id": device.id, "name": device.name, "memory_bytes": device.memory}))
        .collect();
    json!({
        "file": path.display().to_string(),
        "format": source.format,
        "compression": source.compression,
        "bytes": source.bytes,
        "wall_time_ns": summary.wall_time.0,
        "spans": summary.spans,
        "instants": summary.instants,
        "counters": summary.counters,
        "flows": summary.flows,
        "processes": summary.processes,
        "threads": summary.threads,
        "devices": devices,
        "streams": summary.streams,
        "steps": summary.steps.iter().map(|step| json!({"step": step.number, "duration_ns": step.duration.0})).collect::<Vec<_>>(),
        "rank": distributed.rank,
        "world_size": distributed.world_size,
        "backend": distributed.backend,
        "categories": categories.collect::<Map<_, _>>(),
        "losses": losses.collect::<Map<_, _>>(),
        "memory_bytes": model.heap_bytes(),
    })
}
