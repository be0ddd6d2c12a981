//! Memory of processes over time: a series each, their sum, and the peak of it.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Bytes, Duration, ProcessId, Timestamp};

use crate::model::Model;
use crate::report::Table;
use crate::report::schema::Schema;

/// Categories of counters that tell the memory of processes; the second is that of early recordings.
const CATEGORIES: [&str; 2] = ["process_memory", "memory"];

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
        self.peak_point().map_or(Bytes(0), |(_, bytes)| bytes)
    }

    /// When it first had the most, and how much that was.
    #[must_use]
    pub fn peak_point(&self) -> Option<(Timestamp, Bytes)> {
        self.points.iter().copied().max_by_key(|&(time, bytes)| (bytes, std::cmp::Reverse(time)))
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

/// What the counters of a trace say about the memory of processes.
pub(crate) fn find(model: &Model) -> ProcessMemory {
    let mut indices: HashMap<ProcessId, usize> = HashMap::new();
    let mut processes: Vec<ProcessSeries> = Vec::new();
    let resident_bytes = model.resident_bytes();
    for event in model.counters().events() {
        if !CATEGORIES.contains(&model.category_name(event.category)) {
            continue;
        }
        let Some(resident) = resident_bytes.at(event.args) else { continue };
        let id = model.track(event.track).process;
        let index = *indices.entry(id).or_insert_with(|| {
            let process = model.process(id);
            let name = process.name.map_or("", |name| model.str(name)).to_owned();
            processes.push(ProcessSeries {
                pid: process.ident.number().unwrap_or(0),
                name,
                points: Vec::new(),
            });
            processes.len() - 1
        });
        processes[index].points.push((event.time, Bytes(resident)));
    }
    for process in &mut processes {
        process.points.sort_unstable();
    }
    let total = total(&processes);
    // The first of equal ones.
    let peak = total.iter().copied().rev().max_by_key(|&(_, bytes)| bytes);
    ProcessMemory { processes, total, peak }
}

/// The sum over time. A process holds what was last read of it, up to its last reading.
fn total(processes: &[ProcessSeries]) -> Vec<(Timestamp, Bytes)> {
    let mut changes: BTreeMap<Timestamp, i64> = BTreeMap::new();
    let mut change = |time: Timestamp, bytes: i64| {
        let sum = changes.entry(time).or_default();
        *sum = sum.saturating_add(bytes);
    };
    for process in processes {
        let mut held = 0;
        for &(time, bytes) in &process.points {
            change(time, bytes.0.saturating_sub(held));
            held = bytes.0;
        }
        if let Some(&(last, _)) = process.points.last() {
            // At its last reading it is still there.
            change(Timestamp(last.0.saturating_add(1)), held.saturating_neg());
        }
    }
    let read: HashSet<Timestamp> =
        processes.iter().flat_map(|process| &process.points).map(|point| point.0).collect();
    let sums = changes.into_iter().scan(0_i64, |sum, (time, change)| {
        *sum = sum.saturating_add(change);
        Some((time, Bytes(*sum)))
    });
    sums.filter(|(time, _)| read.contains(time)).collect()
}

impl ProcessMemory {
    /// How the processes look.
    #[must_use]
    pub fn report(&self) -> Table {
        let time = |point: Option<&(Timestamp, Bytes)>| Duration(point.map_or(0, |&(time, _)| time.0));
        Schema::<ProcessSeries>::new("processes", "Memory of processes")
            .ordinal("pid", "PID", |row| row.pid.unsigned_abs())
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
    use hotspan_store::{Arg, ArgOrigin, EventRow, Ident, TraceBuilder, keys};

    use super::*;

    fn memory(readings: &[(i64, i64, i64)]) -> ProcessMemory {
        let mut builder = TraceBuilder::new();
        for &(time, pid, resident) in readings {
            let mut pending = PendingArgs::default();
            builder.push_arg(
                &mut pending,
                ArgOrigin::Args,
                keys::RESIDENT_BYTES.as_bytes(),
                Arg::Int(resident),
            );
            let args = builder.commit_args(&mut pending);
            let track = builder.track(Ident::Int(pid), Ident::Int(pid));
            let (name, category) = (builder.intern("Memory"), builder.category("process_memory"));
            builder.push_counter(EventRow { time: Timestamp(time), name, category, track, args });
        }
        Model::new(builder.finish()).process_memory().clone()
    }

    #[test]
    fn adds_up_what_was_seen_at_the_same_time() {
        let memory = memory(&[(10, 7, 100), (20, 7, 150), (20, 8, 60), (30, 7, 120), (30, 8, 20)]);
        let total: Vec<_> = memory.total.iter().map(|(time, bytes)| (time.0, bytes.0)).collect();
        assert_eq!(total, [(0, 100), (10, 210), (20, 140)]);
        assert_eq!(memory.peak, Some((Timestamp(10), Bytes(210))));
        assert_eq!(
            memory.processes.iter().map(|series| (series.pid, series.peak().0)).collect::<Vec<_>>(),
            [(7, 150), (8, 60)]
        );
    }

    /// Processes under `hotspan run` read their own memory, each at its own moments.
    #[test]
    fn a_process_holds_what_it_had_between_its_readings() {
        let memory = memory(&[(10, 7, 100), (15, 8, 60), (20, 7, 150), (25, 8, 70), (30, 7, 120)]);
        let total: Vec<_> = memory.total.iter().map(|(time, bytes)| (time.0, bytes.0)).collect();
        assert_eq!(total, [(0, 100), (5, 160), (10, 210), (15, 220), (20, 120)]);
    }
}
