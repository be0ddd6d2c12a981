//! Memory of processes over time: a series each, their sum, and the peak of it.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, Ident, Timestamp, Trace, TrackId};

use crate::report::Table;
use crate::report::schema::Schema;

/// The memory of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSeries {
    /// Its number.
    pub pid: i64,
    /// Its name.
    pub name: String,
    /// Resident memory, in order of time.
    pub points: Vec<(Timestamp, Bytes)>,
}

impl ProcessSeries {
    /// The most it had.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.points.iter().map(|&(_, bytes)| bytes).max().unwrap_or(Bytes(0))
    }
}

/// The memory of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Each process, the first seen first: that is the command itself.
    pub processes: Vec<ProcessSeries>,
    /// All processes together.
    pub total: Vec<(Timestamp, Bytes)>,
    /// The most that all had together, and when.
    pub peak: Option<(Timestamp, Bytes)>,
}

/// What the counters of a trace say about the memory of processes; `rss` is the arg they have it in.
#[must_use]
pub fn process_memory(trace: &Trace) -> ProcessMemory {
    let mut places: HashMap<TrackId, usize> = HashMap::new();
    let mut processes: Vec<ProcessSeries> = Vec::new();
    let mut total: BTreeMap<Timestamp, i64> = BTreeMap::new();
    let resident_bytes = trace.arg("rss");
    for event in trace.counters().events() {
        if trace.category_name(event.category) != "process_memory" {
            continue;
        }
        let Some(resident) = resident_bytes.int(event.args) else { continue };
        let place = *places.entry(event.track).or_insert_with(|| {
            let process = trace.process(trace.track(event.track).process);
            let pid = if let Ident::Int(pid) = process.ident { pid } else { 0 };
            let name = process.name.map_or("", |name| trace.str(name)).to_owned();
            processes.push(ProcessSeries { pid, name, points: Vec::new() });
            processes.len() - 1
        });
        processes[place].points.push((event.time, Bytes(resident)));
        let sum = total.entry(event.time).or_default();
        *sum = sum.saturating_add(resident);
    }
    let total: Vec<_> = total.into_iter().map(|(time, bytes)| (time, Bytes(bytes))).collect();
    // The first of equal ones.
    let peak = total.iter().copied().rev().max_by_key(|&(_, bytes)| bytes);
    ProcessMemory { processes, total, peak }
}

impl ProcessMemory {
    /// How the processes look.
    #[must_use]
    pub fn report(&self) -> Table {
        let time = |point: Option<&(Timestamp, Bytes)>| Duration(point.map_or(0, |&(time, _)| time.0));
        Schema::<ProcessSeries>::new("processes", "Memory of processes")
            .count("pid", "PID", |row| row.pid.unsigned_abs())
            .help("The number of the process.")
            .text("name", "Name", |row| &row.name)
            .help("The name of the process.")
            .bytes("peak", "Peak", ProcessSeries::peak)
            .help("The most resident memory it had.")
            .duration("first", "First seen", move |row| time(row.points.first()))
            .help("When its memory was read first, from the start of the trace.")
            .duration("last", "Last seen", move |row| time(row.points.last()))
            .help("When its memory was read last, from the start of the trace.")
            .count("samples", "Samples", |row| row.points.len() as u64)
            .help("How often its memory was read.")
            .table(&self.processes)
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::args::PendingArgs;
    use hotspan_store::{Arg, EventRow, Place, TraceBuilder};

    use super::*;

    #[test]
    fn adds_up_what_was_seen_at_the_same_time() {
        let mut builder = TraceBuilder::new();
        for (time, pid, resident) in [(10, 7, 100), (20, 7, 150), (20, 8, 60), (30, 7, 120), (30, 8, 20)] {
            let mut pending = PendingArgs::default();
            builder.push_arg(&mut pending, Place::Args, b"rss", Arg::Int(resident));
            let args = builder.commit_args(&mut pending);
            let track = builder.track(Ident::Int(pid), Ident::Int(pid));
            let (name, category) = (builder.intern("Memory"), builder.category("process_memory"));
            builder.push_counter(EventRow { time: Timestamp(time), name, category, track, args });
        }
        let memory = process_memory(&builder.finish());
        let total: Vec<_> = memory.total.iter().map(|(time, bytes)| (time.0, bytes.0)).collect();
        assert_eq!(total, [(0, 100), (10, 210), (20, 140)]);
        assert_eq!(memory.peak, Some((Timestamp(10), Bytes(210))));
        assert_eq!(
            memory.processes.iter().map(|series| (series.pid, series.peak().0)).collect::<Vec<_>>(),
            [(7, 150), (8, 60)]
        );
    }
}
