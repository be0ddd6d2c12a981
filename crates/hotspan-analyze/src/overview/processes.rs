//! Time by process: how long each was there, how much of that it ran, on how many threads, and what it is.

use hashbrown::HashMap;
use hotspan_store::{Duration, Ident, ProcessId, SampleState, Timestamp, Trace, TrackId};

use crate::model::Model;
use crate::overview::hot::is_ours;
use crate::report::{Cell, Column, Table};

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
    let mut table = Table::new("Time by process");
    table.columns = vec![
        Column::text("process", "Process"),
        Column::text("what", "What"),
        Column::duration("alive", "Alive"),
        Column::duration("running", "Running"),
        Column::percent("running_share", "Running %"),
        Column::count("threads", "Threads"),
        Column::bytes("memory", "Peak memory"),
    ];
    for (process, sums) in rows {
        let ident = trace.process(process).ident;
        let number = ident.display(trace.strings());
        let what = match ident {
            _ if Some(process) == program => "the program",
            _ if sums.is_loader => "DataLoader worker",
            Ident::Int(_) | Ident::Text(_) => "child",
        };
        let alive = sums.last.since(sums.first.unwrap_or(sums.last));
        let peak = peaks.iter().find(|peak| Ident::Int(peak.pid) == ident);
        table.add_row(vec![
            Cell::Text(number),
            Cell::text(what),
            Cell::Duration(alive),
            Cell::Duration(sums.running),
            Cell::share(sums.running, alive),
            Cell::Count(sums.threads.len() as u64),
            peak.map_or(Cell::Missing, |peak| Cell::Bytes(peak.peak())),
        ]);
    }
    Some(table)
}
