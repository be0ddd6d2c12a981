//! The report of a whole program: where it ran, where its time went, what cost most, what the recording itself cost.
//!
//! Each section is another analysis; this file chooses and orders them, and leaves out those with nothing to say.

use hotspan_store::{Bytes, Duration, Trace};
use serde_json::Value;

use crate::averages::{GroupBy, KeyAverages};
use crate::kernels::kernels;
use crate::memory_timeline::memory_timeline;
use crate::report::{Cell, Column, Table};
use crate::summary::summary;
use crate::wall_time::{RUN_KEY, WallTime, wall_time};

/// Rows of each list of what cost most.
const TOP: usize = 10;

/// A whole program at a glance.
#[derive(Clone, Debug)]
pub struct Overview {
    /// What ran, where, for how long: names and values.
    pub facts: Vec<(String, String)>,
    /// Where the wall time went.
    pub wall_time: Option<WallTime>,
    /// What recording cost.
    pub cost: Option<Cost>,
    /// The sections that follow, in order.
    pub sections: Vec<Table>,
}

/// What recording cost the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Processor time of hotspan's own thread.
    pub agent: Duration,
    /// Time taken from the program's own threads, estimated.
    pub in_program: Duration,
}

/// Sums up a program.
#[must_use]
pub fn overview(trace: &Trace) -> Overview {
    let sections = [memory(trace), steps(trace), operators(trace), devices(trace)];
    Overview {
        facts: facts(trace),
        wall_time: wall_time(trace),
        cost: cost(trace),
        sections: sections.into_iter().flatten().collect(),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn facts(trace: &Trace) -> Vec<(String, String)> {
    let metadata = |key: &str| trace.metadata().value(key).unwrap_or(Value::Null);
    let (run, environment, torch) =
        (metadata(RUN_KEY), metadata("hotspan.environment"), metadata("hotspan.torch"));
    let named = [
        ("Command", &run["command"]),
        ("Ended", &run["ended"]),
        ("Python", &environment["python"]),
        ("torch", &torch["torch"]),
        ("CUDA", &torch["cuda"]),
        ("torch threads", &torch["threads"]),
        ("CPUs", &environment["cpus"]),
        ("System", &environment["platform"]),
    ];
    let mut facts: Vec<(String, String)> =
        named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), text(value)?))).collect();
    if let Some(variables) = environment["variables"].as_object().filter(|variables| !variables.is_empty()) {
        let pairs = variables.iter().filter_map(|(name, value)| Some(format!("{name}={}", text(value)?)));
        facts.push(("Variables".to_owned(), pairs.collect::<Vec<_>>().join(" ")));
    }
    for device in trace.devices() {
        facts.push((format!("Device {}", device.id), device.name));
    }
    let processes = trace
        .processes()
        .iter()
        .filter(|process| matches!(process.ident, hotspan_store::Ident::Int(number) if number > 64));
    let processes = processes.count();
    if processes > 1 {
        facts.push(("Processes".to_owned(), processes.to_string()));
    }
    facts
}

fn cost(trace: &Trace) -> Option<Cost> {
    let cost = trace.metadata().value("hotspan.cost")?;
    let time = |key: &str| cost.get(key).and_then(Value::as_i64).map(Duration);
    Some(Cost { agent: time("agent_ns")?, in_program: time("in_program_ns")? })
}

/// The most memory each process held, and when.
fn memory(trace: &Trace) -> Option<Table> {
    let resident = trace.arg("resident bytes");
    let mut peaks: Vec<(String, Bytes, Duration)> = Vec::new();
    for row in trace.counters().events() {
        let Some(bytes) = resident.int(row.args) else { continue };
        let process = trace.process(trace.track(row.track).process).ident.display(trace.strings());
        let time = Duration(row.time.0);
        match peaks.iter_mut().find(|(known, ..)| *known == process) {
            Some(known) if known.1.0 >= bytes => {}
            Some(known) => (known.1, known.2) = (Bytes(bytes), time),
            None => peaks.push((process, Bytes(bytes), time)),
        }
    }
    let timelines = memory_timeline(trace);
    if peaks.is_empty() && timelines.is_empty() {
        return None;
    }
    let mut table = Table::new("Memory at its peak");
    table.columns = vec![
        Column::text("what", "What"),
        Column::bytes("bytes", "Bytes"),
        Column::duration("after", "After"),
        Column::text("holder", "Most of it held by"),
    ];
    for (process, bytes, after) in peaks {
        let what = Cell::Text(format!("process {process}"));
        table.add_row(vec![what, Cell::Bytes(bytes), Cell::Duration(after), Cell::Missing]);
    }
    for timeline in timelines {
        let holder = timeline.holders.first();
        let holder = holder
            .map_or(Cell::Missing, |holder| Cell::Text(format!("{} ({})", holder.operator, holder.bytes)));
        let device = if timeline.device.kind == 0 {
            "CPU tensors".to_owned()
        } else {
            format!("device {}", timeline.device.index)
        };
        table.add_row(vec![
            Cell::Text(device),
            Cell::Bytes(timeline.peak),
            Cell::Duration(Duration(timeline.peak_time.0)),
            holder,
        ]);
    }
    Some(table)
}

/// The first step is told apart: it warms caches up and compiles.
fn steps(trace: &Trace) -> Option<Table> {
    let steps = summary(trace).steps;
    let (first, rest) = steps.split_first()?;
    let mut table = Table::new("Steps");
    table.columns = vec![
        Column::text("steps", "Steps"),
        Column::count("count", "Count"),
        Column::duration("median", "Median"),
        Column::duration("shortest", "Shortest"),
        Column::duration("longest", "Longest"),
    ];
    let mut add = |name: &str, durations: &mut Vec<Duration>| {
        durations.sort_unstable();
        if let (Some(&shortest), Some(&longest)) = (durations.first(), durations.last()) {
            let median = Cell::Duration(durations[durations.len() / 2]);
            let count = Cell::Count(durations.len() as u64);
            let ends = [Cell::Duration(shortest), Cell::Duration(longest)];
            table.add_row([Cell::text(name), count, median].into_iter().chain(ends).collect());
        }
    };
    add("first (warm-up)", &mut vec![first.duration]);
    add("the others", &mut rest.iter().map(|step| step.duration).collect());
    Some(table)
}

fn operators(trace: &Trace) -> Option<Table> {
    let averages = KeyAverages::compute(trace, &GroupBy::default());
    let mut table = averages.report();
    let mut rows: Vec<_> = averages.rows.iter().zip(std::mem::take(&mut table.rows)).collect();
    rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.self_cpu_time_total.max(row.self_device_time_total)));
    table.rows = rows.into_iter().map(|(_, cells)| cells).take(TOP).collect();
    "Operators that cost most".clone_into(&mut table.title);
    (!table.rows.is_empty()).then_some(table)
}

fn devices(trace: &Trace) -> Option<Table> {
    let mut table = kernels(trace).report();
    table.rows.truncate(TOP);
    "Kernels that cost most".clone_into(&mut table.title);
    (!table.rows.is_empty()).then_some(table)
}

impl Overview {
    /// How it looks: facts, where the time went, and the sections.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        let mut facts = Table::new("Program");
        facts.columns = vec![Column::text("fact", "Fact"), Column::text("value", "Value")];
        for (name, value) in &self.facts {
            facts.add_row(vec![Cell::text(name), Cell::text(value)]);
        }
        if let Some(wall_time) = &self.wall_time {
            facts.add_row(vec![Cell::text("Wall time"), Cell::Text(wall_time.total.to_string())]);
            if let Some(cost) = &self.cost {
                let share = |time: Duration| time.0 as f64 * 100.0 / wall_time.total.0.max(1) as f64;
                let value = format!(
                    "{} in the program's threads ({:.2} %), {} in hotspan's own ({:.2} %)",
                    cost.in_program,
                    share(cost.in_program),
                    cost.agent,
                    share(cost.agent)
                );
                facts.add_row(vec![Cell::text("Cost of recording"), Cell::Text(value)]);
            }
        }
        let wall_time = self.wall_time.iter().map(WallTime::report);
        let tables = std::iter::once(facts).chain(wall_time).chain(self.sections.iter().cloned());
        tables.filter(|table| !table.rows.is_empty()).collect()
    }
}
