//! What is in a trace: how many events of which kind, over which time, from which processes and devices.

use hotspan_store::{Category, Duration, Loss, Side, Timestamp, Trace};

use crate::model::Model;
use crate::model::steps::Step;
/// The spans of one category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryRow {
    /// The category as the file spells it; empty when it gives none.
    pub name: String,
    /// What it means.
    pub category: Category,
    /// How many spans.
    pub spans: u64,
    /// Their durations added up, nested ones counted each.
    pub total: Duration,
}

/// What is in a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Spans by category, most spans first.
    pub categories: Vec<CategoryRow>,
    /// How many spans.
    pub spans: u64,
    /// How many instants, memory events among them.
    pub instants: u64,
    /// How many samples of counters.
    pub counters: u64,
    /// How many ends of arrows.
    pub flows: u64,
    /// Processes that run on the computer.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// Devices that did work.
    pub devices: u64,
    /// Their streams.
    pub streams: u64,
    /// The steps of the program in order of time, as the computer saw them.
    pub steps: Vec<Step>,
    /// When the wall time begins.
    pub begin: Timestamp,
    /// That of the program where the recording knows it, else from the first beginning to the last end.
    pub wall_time: Duration,
    /// The rank in a distributed job.
    pub rank: Option<i64>,
    /// How many ranks there are.
    pub world_size: Option<i64>,
    /// What is missing or was repaired, and how often.
    pub losses: Vec<(Loss, u64)>,
}

/// Sums up a trace.
pub(crate) fn find(model: &Model) -> Summary {
    let trace: &Trace = model.trace();
    let spans = trace.spans();
    let mut categories: Vec<CategoryRow> = trace
        .categories()
        .map(|(_, name, category)| CategoryRow {
            name: name.to_owned(),
            category,
            spans: 0,
            total: Duration::ZERO,
        })
        .collect();
    // For each track, whether it has host or device spans.
    let mut host = vec![false; trace.tracks().len()];
    let mut device = vec![false; trace.tracks().len()];
    for span in spans.ids() {
        let row = &mut categories[spans.category(span).index()];
        row.spans += 1;
        row.total += spans.duration(span);
        match row.category.side() {
            Side::Host => host[spans.track(span).index()] = true,
            Side::Device => device[spans.track(span).index()] = true,
            Side::Neither => {}
        }
    }
    categories.retain(|row| row.spans > 0);
    categories.sort_by(|left, right| (right.spans, &left.name).cmp(&(left.spans, &right.name)));
    let (processes, threads) = count(trace, &host);
    let (devices, streams) = count(trace, &device);
    let distributed = trace.distributed().unwrap_or_default();
    Summary {
        categories,
        spans: spans.len() as u64,
        instants: trace.instants().len() as u64,
        counters: trace.counters().len() as u64,
        flows: trace.flows().len() as u64,
        processes,
        threads,
        devices,
        streams,
        steps: model.steps().all.clone(),
        begin: crate::wall_time::window(trace).0,
        wall_time: model.wall(),
        rank: distributed.rank,
        world_size: distributed.world_size,
        losses: trace.losses().counts().iter().map(|loss| (loss.loss, loss.count)).collect(),
    }
}

/// How many processes and tracks there are among those marked.
fn count(trace: &Trace, marked: &[bool]) -> (u64, u64) {
    let mut processes = vec![false; trace.processes().len()];
    let mut tracks = 0;
    for (track, _) in trace.tracks().iter().zip(marked).filter(|&(_, &marked)| marked) {
        processes[track.process.index()] = true;
        tracks += 1;
    }
    (processes.iter().filter(|&&used| used).count() as u64, tracks)
}
