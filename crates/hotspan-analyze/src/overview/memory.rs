//! Memory at its peak: of each process, with what it was doing while it grew, and of tensors where they were recorded, with who
//! held most of it.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, Ident, SampleRow, Timestamp, Trace};

use crate::model::Model;
use crate::model::memory_events::MemoryDevice;
use crate::overview::hot::program_line;
use crate::overview::imports::imported;
use crate::process_memory::ProcessSeries;
use crate::report::Table;
use crate::report::schema::{Schema, unless_empty};

/// How many of those who hold memory are named.
const HOLDERS: usize = 3;
/// More processes than this have no rows of their own.
const MOST: usize = 8;

pub(super) fn memory(model: &Model) -> Option<Table> {
    let named = |holders: Vec<(&str, Bytes)>| {
        holders.iter().map(|(name, bytes)| format!("{name} ({bytes})")).collect::<Vec<_>>().join(", ")
    };
    let mut rows: Vec<(String, Bytes, Duration, String)> = Vec::new();
    let mut processes: Vec<&ProcessSeries> = model.process_memory().processes.iter().collect();
    let mut others = Vec::new();
    if processes.len() > MOST {
        // The program, and those that had most.
        processes[1..].sort_by_key(|process| std::cmp::Reverse(process.peak()));
        others = processes.split_off(MOST - 1);
    }
    for process in processes {
        let Some((time, bytes)) = process.peak_point() else { continue };
        let grown = growth(model, process, time);
        let grown = grown.iter().take(HOLDERS).map(|(what, bytes)| (what.as_str(), *bytes));
        rows.push((format!("process {}", process.pid), bytes, Duration(time.0), named(grown.collect())));
    }
    if let Some((time, bytes)) = others.first().and_then(|largest| largest.peak_point()) {
        let what = format!("each of {} others, at most", others.len());
        rows.push((what, bytes, Duration(time.0), String::new()));
    }
    for timeline in model.memory_timeline() {
        let MemoryDevice { kind, index, process } = timeline.device;
        let of_process = process.map_or_else(String::new, |process| format!(" (process {process})"));
        let device = match kind {
            0 => format!("CPU tensors{of_process}"),
            _ => format!("device {index}{of_process}"),
        };
        let holders = timeline.holders.iter().take(HOLDERS);
        let holders =
            holders.map(|holder| (unless_empty(&holder.operator).unwrap_or("no operator"), holder.bytes));
        rows.push((device, timeline.peak, Duration(timeline.peak_time.0), named(holders.collect())));
    }
    Schema::<(String, Bytes, Duration, String)>::new("memory", "Memory at its peak")
        .text("what", "What", |row| &row.0)
        .help("A process as the system counts it, or the tensors of a device.")
        .bytes("bytes", "Bytes", |row| row.1)
        .help("The most memory it had.")
        .duration("after", "After", |row| row.2)
        .help("When that was, from the start of the trace.")
        .text("holder", "Held by, or grown in", |row| unless_empty(&row.3))
        .help("The operators that held most of it; of a process, what the main thread ran while it grew.")
        .table(&rows)
        .filled()
}

/// By how much a process grew until its peak, by what most samples of its main thread between two readings say it was doing.
fn growth(trace: &Trace, process: &ProcessSeries, peak: Timestamp) -> Vec<(String, Bytes)> {
    let pid = Ident::Int(process.pid);
    let is_main = |row: &SampleRow| {
        let track = trace.track(row.track);
        track.ident == pid && trace.process(track.process).ident == pid
    };
    let mut samples: Vec<SampleRow> = trace.profile().samples.rows().filter(is_main).collect();
    samples.sort_unstable_by_key(|row| row.time);
    let mut grown: HashMap<String, i64> = HashMap::new();
    for pair in process.points.windows(2).take_while(|pair| pair[1].0 <= peak) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        if after <= before {
            continue;
        }
        let first = samples.partition_point(|row| row.time < from);
        let between = samples[first..].iter().take_while(|row| row.time < to);
        let mut weights: HashMap<String, i64> = HashMap::new();
        for row in between {
            if let Some(what) = doing_what(trace, row) {
                *weights.entry(what).or_default() += row.weight.0.max(1);
            }
        }
        if let Some((what, _)) =
            weights.into_iter().max_by(|left, right| (left.1, &left.0).cmp(&(right.1, &right.0)))
        {
            *grown.entry(what).or_default() += after.0 - before.0;
        }
    }
    let mut grown: Vec<(String, Bytes)> =
        grown.into_iter().map(|(what, bytes)| (what, Bytes(bytes))).collect();
    grown.sort_unstable_by(|left, right| (right.1, &left.0).cmp(&(left.1, &right.0)));
    grown
}

/// Which package is imported, or which line of the program runs.
fn doing_what(trace: &Trace, sample: &SampleRow) -> Option<String> {
    if let Some(imports) = imported(trace, sample.stack) {
        return imports.last().map(|import| format!("import {}", import.package));
    }
    let row = trace.profile().frames.row(program_line(trace, sample.stack)?);
    let file = trace.str(row.file);
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), row.line))
}
