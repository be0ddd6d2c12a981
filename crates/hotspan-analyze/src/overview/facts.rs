//! What ran, where, for how long; and what recording it cost.

use hotspan_store::{Duration, Trace};
use serde_json::Value;

use crate::report::Table;
use crate::report::schema::{Schema, share};
use crate::wall_time::{Queued, RUN_KEY};

/// Programs that queue for a processor for less of their time than this have the machine to themselves.
const WORTH_A_WORD: f64 = 0.1;

/// What recording cost the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Processor time of hotspan's own thread.
    pub agent: Duration,
    /// Time taken from the program's own threads, estimated.
    pub in_program: Duration,
}

/// What recording cost, where the recorder said so.
#[must_use]
pub fn cost(trace: &Trace) -> Option<Cost> {
    let cost = trace.metadata().value("hotspan.cost")?;
    let time = |key: &str| cost.get(key).and_then(Value::as_i64).map(Duration);
    Some(Cost { agent: time("agent_ns")?, in_program: time("in_program_ns")? })
}

/// Whether more was to be run than there are processors, by this program or by others: all times are longer for it.
pub(super) fn queued(trace: &Trace) -> Option<String> {
    let queued = Queued::of(trace).filter(|queued| queued.share() >= WORTH_A_WORD)?;
    let (time, percent) = (queued.time, queued.share() * 100.0);
    Some(format!("The main thread was ready to run but waited for a processor for {time} ({percent:.0} %)."))
}

impl Cost {
    /// How it looks: the time of each and its share of the wall time.
    #[must_use]
    pub fn report(&self, whole: Duration) -> Table {
        let rows = [("The program's own threads", self.in_program), ("hotspan's thread", self.agent)];
        Schema::<(&str, Duration)>::new("cost", "Cost of recording")
            .text("where", "Where", |row| row.0)
            .help("Whose time recording took.")
            .duration("time", "Time", |row| row.1)
            .help("How much: estimated in the program's threads, measured in hotspan's.")
            .percent("share", "Of the wall time", move |row| share(row.1, whole))
            .help("The same as a share of the wall time.")
            .table(&rows)
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

pub(super) fn facts(trace: &Trace) -> Vec<(String, String)> {
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
    facts
}
