//! Time by process: how long each was there, how much of that it ran, on how many threads, and what it is.

use hashbrown::HashMap;
use hotspan_store::{Duration, Ident, ProcessId, SampleState, Timestamp, Trace, TrackId};

use crate::model::Model;
use crate::overview::hot::is_ours;
use crate::process_memory::ProcessSeries;
use crate::report::Table;
use crate::report::schema::{Schema, share};

#[derive(Default)]
struct Sums {
    first: Option<Timestamp>,
    last: Timestamp,
    running: Duration,
    threads: Vec<TrackId>,
    is_loader: bool,
}

/// `None` where there is but one process.
pub(super) fn processes(model: &Model, main: Option<TrackId>) -> Option<Table> {
    let trace: &Trace = model.trace();
    let profile = trace.profile();
    let mut sums: HashMap<ProcessId, Sums> = HashMap::new();
    let mut loader_stacks: HashMap<hotspan_store::StackId, bool> = HashMap::new();
    for sample in profile.samples.rows().filter(|row| !is_ours(trace, trace.track(row.track).name)) {
        let entry = sums.entry(trace.track(sample.track).process).or_default();
        let end = sample.time.plus(sample.weight);
        entry.first = Some(entry.first.map_or(sample.time, |first| first.min(sample.time)));
        entry.last = entry.last.max(end);
        if matches!(sample.state, SampleState::Running | SampleState::Unknown) {
            entry.running += sample.weight;
        }
        if !entry.threads.contains(&sample.track) {
            entry.threads.push(sample.track);
        }
        if !entry.is_loader {
            let in_loader = loader_stacks.entry(sample.stack).or_insert_with(|| {
                let mut frames = profile.stacks.frames(sample.stack).map(|frame| profile.frames.row(frame));
                frames.any(|frame| {
                    trace.str(frame.name) == "_worker_loop"
                        && trace.str(frame.file).contains("torch/utils/data")
                })
            });
            entry.is_loader = *in_loader;
        }
    }
    if sums.len() < 2 {
        return None;
    }
    let program = main.map(|main| trace.track(main).process);
    let peaks = &model.process_memory().processes;
    let mut rows: Vec<(ProcessId, Sums)> = sums.into_iter().collect();
    rows.sort_unstable_by_key(|(process, sums)| {
        (Some(*process) != program, std::cmp::Reverse(sums.running), *process)
    });
    let number = |process: ProcessId| trace.process(process).ident.display(trace.strings());
    let alive = |sums: &Sums| sums.last.since(sums.first.unwrap_or(sums.last));
    let table = Schema::<(ProcessId, Sums)>::new("processes", "Time by process")
        .text("process", "Process", move |row| number(row.0))
        .help("The number of the process.")
        .text("what", "What", move |row| match row {
            (process, _) if Some(*process) == program => "the program",
            (_, sums) if sums.is_loader => "DataLoader worker",
            _ => "child",
        })
        .help("The program itself, a worker of a DataLoader, or another child.")
        .duration("alive", "Alive", move |row| alive(&row.1))
        .help("From the first sample to the last.")
        .duration("running", "Running", |row| row.1.running)
        .help("The time that its threads ran, added up.")
        .percent("running_share", "Running %", move |row| share(row.1.running, alive(&row.1)))
        .help("Running as a share of Alive: 100 % is one core.")
        .count("threads", "Threads", |row| row.1.threads.len() as u64)
        .help("How many threads had samples.")
        .bytes("memory", "Peak memory", move |row| {
            let ident = trace.process(row.0).ident;
            peaks.iter().find(|peak| Ident::Int(peak.pid) == ident).map(ProcessSeries::peak)
        })
        .help("The most resident memory it had.")
        .table(&rows);
    Some(table)
}
