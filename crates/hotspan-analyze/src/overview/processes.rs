//! Time by process: how long each was there, how much of that it ran, on how many threads, and what it is. Many are shown by their
//! commands.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, Ident, ProcessId, SampleState, StackId, Timestamp, Trace, TrackId};

use crate::job::Processes;
use crate::model::Model;
use crate::overview::hot::is_ours;
use crate::process_memory::ProcessSeries;
use crate::report::Table;
use crate::report::schema::{Schema, share};

/// More than so many have no rows of their own.
const MOST: usize = 8;
const TITLE: &str = "Time by process";

/// One process.
struct Row {
    process: ProcessId,
    what: String,
    alive: Duration,
    running: Duration,
    threads: u64,
    memory: Option<Bytes>,
}

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
    let rows = rows(model, main);
    match rows.len() {
        0 | 1 => None,
        2..=MOST => Some(table(model, &rows)),
        _ => Some(grouped(&rows)),
    }
}

/// The program first, then by the time that they ran.
fn rows(model: &Model, main: Option<TrackId>) -> Vec<Row> {
    let described = Processes::of(model);
    // A launcher that is not Python (`mpirun`, a shell) was not recorded; none of its children is the program.
    let is_started = |process: ProcessId| {
        let started = described.as_ref().and_then(|described| described.main);
        started.is_none() || model.process(process).ident.number() == started
    };
    let program = main.map(|main| model.track(main).process).filter(|process| is_started(*process));
    let peaks = &model.process_memory().processes;
    let row = |(process, sums): (ProcessId, Sums)| {
        let ident = model.process(process).ident;
        let recorded = described.as_ref().zip(ident.number());
        let recorded = recorded.and_then(|(all, pid)| all.get(pid).map(|one| (all, one)));
        let what = match recorded {
            _ if Some(process) == program => "the program".to_owned(),
            _ if sums.is_loader => "DataLoader worker".to_owned(),
            Some((all, one)) if !one.is_helper_of(all.get(one.parent)) => one.name(),
            _ => "child".to_owned(),
        };
        Row {
            process,
            what,
            alive: sums.last.since(sums.first.unwrap_or(sums.last)),
            running: sums.running,
            threads: sums.threads.len() as u64,
            memory: peaks.iter().find(|peak| Ident::Int(peak.pid) == ident).map(ProcessSeries::peak),
        }
    };
    let mut rows: Vec<Row> = sums(model).into_iter().map(row).collect();
    rows.sort_unstable_by_key(|row| {
        (Some(row.process) != program, std::cmp::Reverse(row.running), row.process)
    });
    rows
}

fn sums(trace: &Trace) -> HashMap<ProcessId, Sums> {
    let profile = trace.profile();
    let mut sums: HashMap<ProcessId, Sums> = HashMap::new();
    let mut loader_stacks: HashMap<StackId, bool> = HashMap::new();
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
    sums
}

fn table(trace: &Trace, rows: &[Row]) -> Table {
    let number = |process: ProcessId| trace.process(process).ident.display(trace.strings());
    Schema::<Row>::new("processes", TITLE)
        .text("process", "Process", move |row| number(row.process))
        .help("The number of the process.")
        .text("what", "What", |row| &row.what)
        .help("The program itself, a worker of a DataLoader, a part of the program, or another command.")
        .duration("alive", "Alive", |row| row.alive)
        .help("From the first sample to the last.")
        .duration("running", "Running", |row| row.running)
        .help("The time that its threads ran, added up.")
        .percent("running_share", "Running %", |row| share(row.running, row.alive))
        .help("Running as a share of Alive: 100 % is one core.")
        .count("threads", "Threads", |row| row.threads)
        .help("How many threads had samples.")
        .bytes("memory", "Peak memory", |row| row.memory)
        .help("The most resident memory it had.")
        .table(rows)
}

/// Processes of one command.
struct Group {
    what: String,
    /// How long each ran, shortest first.
    running: Vec<Duration>,
    memory: Option<Bytes>,
}

/// Processes by their commands; by their programs, where the arguments differ in too many.
fn grouped(rows: &[Row]) -> Table {
    let first_word = |what: &str| match what {
        "the program" | "DataLoader worker" => what.to_owned(),
        _ => what.split(' ').next().unwrap_or(what).to_owned(),
    };
    let mut groups = groups(rows, &str::to_owned);
    if groups.len() > MOST {
        groups = self::groups(rows, &first_word);
    }
    if groups.len() > MOST {
        let rest = groups.split_off(MOST - 1);
        let what = format!("{} other commands", rest.len());
        let memory = rest.iter().filter_map(|group| group.memory).max();
        let mut running: Vec<Duration> = rest.into_iter().flat_map(|group| group.running).collect();
        running.sort_unstable();
        groups.push(Group { what, running, memory });
    }
    Schema::<Group>::new("processes", TITLE)
        .count("count", "Processes", |group| group.running.len() as u64)
        .help("How many there were.")
        .text("what", "What", |group| &group.what)
        .help("The program itself, workers of a DataLoader, parts of the program, or another command.")
        .duration("running", "Running", |group| group.running.iter().copied().sum::<Duration>())
        .help("The time that their threads ran, added up.")
        .duration("shortest", "Shortest", |group| group.running.first().copied())
        .help("The least that one of them ran.")
        .duration("median", "Median", |group| group.running[group.running.len() / 2])
        .help("What the middle one ran.")
        .duration("longest", "Longest", |group| group.running.last().copied())
        .help("The most that one of them ran.")
        .bytes("memory", "Peak memory", |group| group.memory)
        .help("The most resident memory that one of them had.")
        .table(&groups)
}

/// In order of the first of each; the program stays first.
fn groups(rows: &[Row], key: &dyn Fn(&str) -> String) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let what = key(&row.what);
        let index = groups.iter().position(|group| group.what == what).unwrap_or_else(|| {
            groups.push(Group { what, running: Vec::new(), memory: None });
            groups.len() - 1
        });
        groups[index].running.push(row.running);
        groups[index].memory = groups[index].memory.max(row.memory);
    }
    for group in &mut groups {
        group.running.sort_unstable();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, running: i64) -> Row {
        let (alive, running) = (Duration(running), Duration(running));
        Row { process: ProcessId::at(0), what: what.to_owned(), alive, running, threads: 1, memory: None }
    }

    #[test]
    fn many_processes_are_shown_by_command() {
        let mut rows = vec![row("the program", 5)];
        rows.extend((0..100).map(|number| row("work.py", number)));
        let table = grouped(&rows);
        assert_eq!(table.rows.len(), 2);
        // Commands that differ in their arguments, too.
        rows.extend((0..100).map(|number| row(&format!("other.py {number}"), 3)));
        assert_eq!(grouped(&rows).rows.len(), 3);
        // And too many commands are cut.
        rows.extend((0..100).map(|number| row(&format!("program{number}.py"), 1)));
        let table = grouped(&rows);
        assert_eq!(table.rows.len(), MOST);
    }
}
