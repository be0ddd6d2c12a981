//! Memory at its peak: of each process, with what it was doing while it grew, and of tensors where they were recorded, with who
//! held most of it.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, Ident, SampleRow, Timestamp, Trace};

use crate::memory_timeline::memory_timeline;
use crate::overview::hot::program_line;
use crate::overview::imports::imported;
use crate::report::Table;
use crate::report::schema::{Schema, unless_empty};

/// How many of those who hold memory are named.
const HOLDERS: usize = 3;

pub(super) fn memory(trace: &Trace) -> Option<Table> {
    let named = |holders: Vec<(&str, Bytes)>| {
        holders.iter().map(|(name, bytes)| format!("{name} ({bytes})")).collect::<Vec<_>>().join(", ")
    };
    let mut rows: Vec<(String, Bytes, Duration, String)> = Vec::new();
    for peak in process_peaks(trace) {
        let grown = peak.grown.iter().take(HOLDERS).map(|(what, bytes)| (what.as_str(), *bytes));
        rows.push((format!("process {}", peak.process), peak.bytes, peak.after, named(grown.collect())));
    }
    for timeline in memory_timeline(trace) {
        let device = match timeline.device.kind {
            0 => "CPU tensors".to_owned(),
            _ => format!("device {}", timeline.device.index),
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

/// The most a process held.
pub(super) struct Peak {
    pub(super) process: String,
    pub(super) bytes: Bytes,
    pub(super) after: Duration,
    /// What its main thread was doing while it grew to that, and by how much; most first.
    grown: Vec<(String, Bytes)>,
}

pub(super) fn process_peaks(trace: &Trace) -> Vec<Peak> {
    let mut peaks = Vec::new();
    for (process, readings) in readings(trace) {
        let most = readings.iter().max_by_key(|&&(time, bytes)| (bytes, std::cmp::Reverse(time)));
        let Some(&(time, bytes)) = most else { continue };
        let grown = growth(trace, process, &readings, time);
        let process = process.display(trace.strings());
        peaks.push(Peak { process, bytes, after: Duration(time.0), grown });
    }
    peaks
}

/// The memory of each process, in order of time.
fn readings(trace: &Trace) -> Vec<(Ident, Vec<(Timestamp, Bytes)>)> {
    let resident = trace.arg("resident bytes");
    let mut processes: Vec<(Ident, Vec<(Timestamp, Bytes)>)> = Vec::new();
    for row in trace.counters().events() {
        let Some(bytes) = resident.int(row.args) else { continue };
        let process = trace.process(trace.track(row.track).process).ident;
        let reading = (row.time, Bytes(bytes));
        match processes.iter_mut().find(|(known, _)| *known == process) {
            Some((_, readings)) => readings.push(reading),
            None => processes.push((process, vec![reading])),
        }
    }
    processes.iter_mut().for_each(|(_, readings)| readings.sort_unstable());
    processes
}

/// By how much a process grew until its peak, by what most samples of its main thread between two readings say it was doing.
fn growth(
    trace: &Trace,
    process: Ident,
    readings: &[(Timestamp, Bytes)],
    peak: Timestamp,
) -> Vec<(String, Bytes)> {
    let is_main = |row: &SampleRow| {
        let track = trace.track(row.track);
        track.ident == process && trace.process(track.process).ident == process
    };
    let mut samples: Vec<SampleRow> = trace.profile().samples.rows().filter(is_main).collect();
    samples.sort_unstable_by_key(|row| row.time);
    let mut grown: HashMap<String, i64> = HashMap::new();
    for pair in readings.windows(2).take_while(|pair| pair[1].0 <= peak) {
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
    if let Some(packages) = imported(trace, sample.stack) {
        return packages.last().map(|package| format!("import {package}"));
    }
    let row = trace.profile().frames.row(program_line(trace, sample.stack)?);
    let file = trace.str(row.file);
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), row.line))
}
