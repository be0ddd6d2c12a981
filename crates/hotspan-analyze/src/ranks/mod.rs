//! Several ranks of one job together: who waits for whom in collectives.
//!
//! A collective ends on all ranks at once, so its kernel runs longest on the rank that came first. The shortest
//! run is the transfer; what the others took longer, they waited. This needs no common clock. Each trace
//! is summed up alone ([`RankSummary::of`]), so that traces need not be in memory together; [`compare`] does the rest.

mod collective;
mod report;
mod thing;
mod uneven;

use std::collections::BTreeMap;

use hotspan_store::{Duration, SampleRow, SampleState};

use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::device_work::DeviceWork;
use crate::model::steps::{Step, median};
use crate::overview::is_ours;
use crate::steps::{DeviceStep, Exposed};
use crate::verdict::{Bar, mean_device_step, mean_host_step};

pub use collective::{Collective, CollectiveKey};
pub use thing::{describe_among, is_of_ranks};
pub use uneven::{Uneven, uneven};

/// What is needed of one rank.
#[derive(Clone, Debug)]
pub struct RankSummary {
    /// The rank; `None` when the trace does not say.
    pub rank: Option<i64>,
    /// What is known of its process, where that was recorded as a whole.
    pub process: Option<RankProcess>,
    /// The time of its devices over the recording.
    pub devices: Vec<DeviceStep>,
    /// Its collectives.
    pub collectives: Vec<Collective>,
    /// Its steps without warm-up.
    pub steps: Vec<Interval>,
    /// When it was in a collective and did not compute.
    pub exposed: Intervals,
    /// What it does in a step, the mean without warm-up: on its devices where it has some, else on the host.
    pub step: Option<Bar>,
}

impl RankSummary {
    /// Sums up the trace of one rank.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let collectives = collective::collectives(model);
        let within = |device: &DeviceWork| Exposed::of(device).within(*model.recording(), None, device.id);
        Self {
            rank: model.distributed().and_then(|distributed| distributed.rank),
            process: None,
            devices: model.device_work().iter().map(within).collect(),
            steps: model.steps().steady().iter().map(Step::interval).collect(),
            exposed: collective::exposed(model, &collectives),
            collectives,
            step: mean_device_step(model).or_else(|| mean_host_step(model)),
        }
    }
}

/// The process of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankProcess {
    /// Its number.
    pub pid: i64,
    /// From its first moment to its last.
    pub wall: Duration,
    /// The time that its threads ran, and those of its children.
    pub running: Duration,
    /// Time in operators of torch, on all threads.
    pub operators: Duration,
    /// How many steps it made, and their median without warm-up.
    pub steps: Option<(u64, Duration)>,
}

impl RankProcess {
    fn of(model: &Model, pid: i64) -> Self {
        let is_counted = |row: &SampleRow| {
            let runs = matches!(row.state, SampleState::Running | SampleState::Unknown);
            runs && !is_ours(model, model.track(row.track).name)
        };
        let samples = model.profile().samples.rows().filter(is_counted);
        let operators = model.averages().rows.iter().filter(|row| !row.is_user_annotation);
        let steps = &model.steps().all;
        let median = median(model.steps().steady().iter().map(|step| step.duration));
        Self {
            pid,
            wall: model.wall(),
            running: samples.map(|row| row.weight).sum(),
            operators: operators.map(|row| row.self_cpu_time_total).sum(),
            steps: (!steps.is_empty()).then_some((steps.len() as u64, median)),
        }
    }
}

/// One rank among others.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// The rank; its position among the files when the trace does not say.
    pub rank: i64,
    /// What is known of its process, where that was recorded as a whole.
    pub process: Option<RankProcess>,
    /// Its devices' time, the first device for ranks that have several.
    pub time: Option<DeviceStep>,
    /// Collectives that other ranks have as well.
    pub matched: u64,
    /// Collectives that no other rank has.
    pub alone: u64,
    /// How long it waited for others in collectives.
    pub wait: Duration,
    /// How long collectives took without waiting.
    pub transfer: Duration,
    /// How often the others waited for it: it came last.
    pub last: u64,
    /// How long they did, added up.
    pub waited_for: Duration,
}

/// Collectives of one kind in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveRow {
    /// What they do.
    pub kind: String,
    /// The process group.
    pub group: String,
    /// How many.
    pub calls: u64,
    /// How many ranks took part in those that were recorded.
    pub ranks: u64,
    /// Waiting of all ranks.
    pub wait: Duration,
    /// Waiting of the rank that waited longest, added up over calls.
    pub longest_wait: Duration,
    /// Transfers, added up over calls.
    pub transfer: Duration,
    /// Bytes of the inputs of one rank, added up over calls; `None` when not all say.
    pub bytes: Option<u64>,
    /// GB/s of the algorithm: bytes over transfer.
    pub algorithm_rate: Option<f64>,
    /// GB/s of the wires, as nccl-tests counts them.
    pub bus_rate: Option<f64>,
    /// The rank that came last most often, and how often.
    pub last: Option<(i64, u64)>,
}

impl RankSummary {
    /// Sums up a process that says which rank it is, from a recording of it alone.
    #[must_use]
    pub fn of_rank(model: &Model, rank: i64, pid: i64) -> Self {
        Self { rank: Some(rank), process: Some(RankProcess::of(model, pid)), ..Self::of(model) }
    }
}

/// Ranks together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// Each rank.
    pub ranks: Vec<RankRow>,
    /// Collectives by kind and group, most waiting first.
    pub collectives: Vec<CollectiveRow>,
    /// Why the slowest rank is late, where that is certain.
    pub reason: Option<String>,
    /// The number of each rank, in the order of what was compared.
    positions: Vec<i64>,
}

/// How much more than the message the wires carry; nccl-tests' factors.
fn bus_factor(kind: &str, ranks: f64) -> f64 {
    match kind {
        "allreduce" => 2.0 * (ranks - 1.0) / ranks,
        _ if ["allgather", "reducescatter", "alltoall"].iter().any(|word| kind.contains(word)) => {
            (ranks - 1.0) / ranks
        }
        _ => 1.0,
    }
}

/// Compares ranks. A collective is matched by group, kind and number; one that only one rank has is counted as alone.
#[must_use]
pub fn compare(summaries: &[RankSummary]) -> Ranks {
    let mut rows: Vec<RankRow> = summaries
        .iter()
        .enumerate()
        .map(|(index, summary)| RankRow {
            rank: summary.rank.unwrap_or(index as i64),
            process: summary.process,
            time: summary.devices.first().copied(),
            matched: 0,
            alone: 0,
            wait: Duration::ZERO,
            transfer: Duration::ZERO,
            last: 0,
            waited_for: Duration::ZERO,
        })
        .collect();
    let mut kinds: BTreeMap<(&str, &str), Kind> = BTreeMap::new();
    for Together { key, members, last, shortest } in together(summaries) {
        if members.len() < 2 {
            rows[last].alone += 1;
            continue;
        }
        let transfer = shortest.time;
        rows[last].last += 1;
        let kind = kinds.entry((&key.group, &key.kind)).or_insert_with(|| Kind::new(summaries.len()));
        kind.calls += 1;
        kind.ranks = kind.ranks.max(members.len() as u64);
        kind.transfer += transfer;
        kind.last[last] += 1;
        let told = members.iter().find_map(|(_, member)| member.group_size);
        kind.group_size = kind.group_size.max(told.unwrap_or(members.len() as u64));
        kind.bytes = kind.bytes.zip(shortest.bytes).and_then(|(sum, bytes)| sum.checked_add(bytes));
        let mut longest = Duration::ZERO;
        for &(index, member) in &members {
            let wait = member.time - transfer;
            longest = longest.max(wait);
            kind.wait += wait;
            rows[last].waited_for += wait;
            let row = &mut rows[index];
            row.matched += 1;
            row.wait += wait;
            row.transfer += transfer;
        }
        kind.longest_wait += longest;
    }
    let mut collectives: Vec<CollectiveRow> =
        kinds.into_iter().map(|((group, kind), sums)| sums.row(group, kind, &rows)).collect();
    collectives.sort_by_key(|row| std::cmp::Reverse(row.wait));
    let positions: Vec<i64> = rows.iter().map(|row| row.rank).collect();
    rows.sort_by_key(|row| row.rank);
    let mut ranks = Ranks { ranks: rows, collectives, reason: None, positions };
    ranks.reason = reason(summaries, &ranks);
    ranks
}

/// Why the slowest rank is late.
fn reason(summaries: &[RankSummary], ranks: &Ranks) -> Option<String> {
    let row = ranks.ranks.iter().find(|row| Some(row.rank) == ranks.slowest())?;
    let position = ranks.positions.iter().position(|&rank| rank == row.rank)?;
    let steps = summaries[position].steps.len().max(1);
    // One that is late as often as not is no straggler.
    let is_straggler = row.last * 2 > row.matched && row.waited_for.0 > 0;
    let waits = (summaries.len().saturating_sub(1).max(1) * steps) as i64;
    is_straggler.then(|| thing::reason(summaries, position, Duration(row.waited_for.0 / waits)))?
}

/// One collective on all ranks that have it.
struct Together<'a> {
    key: &'a CollectiveKey,
    /// With the positions of their ranks.
    members: Vec<(usize, &'a Collective)>,
    /// The rank that came last: it spent the least time in it, since all others waited for it.
    last: usize,
    shortest: &'a Collective,
}

fn together(summaries: &[RankSummary]) -> impl Iterator<Item = Together<'_>> {
    let mut found: BTreeMap<&CollectiveKey, Vec<(usize, &Collective)>> = BTreeMap::new();
    for (index, summary) in summaries.iter().enumerate() {
        for collective in &summary.collectives {
            found.entry(&collective.key).or_default().push((index, collective));
        }
    }
    found.into_iter().filter_map(|(key, members)| {
        let &(last, shortest) = members.iter().min_by_key(|(_, member)| member.time)?;
        Some(Together { key, members, last, shortest })
    })
}

/// Sums of one kind.
struct Kind {
    calls: u64,
    ranks: u64,
    group_size: u64,
    wait: Duration,
    longest_wait: Duration,
    transfer: Duration,
    bytes: Option<u64>,
    /// For each summary, how often it came last.
    last: Vec<u64>,
}

impl Kind {
    fn new(ranks: usize) -> Self {
        Self {
            calls: 0,
            ranks: 0,
            group_size: 0,
            wait: Duration::ZERO,
            longest_wait: Duration::ZERO,
            transfer: Duration::ZERO,
            bytes: Some(0),
            last: vec![0; ranks],
        }
    }

    fn row(self, group: &str, kind: &str, rows: &[RankRow]) -> CollectiveRow {
        let size = self.group_size.max(1) as f64;
        // An all-gather's message is what comes out of it.
        let message =
            self.bytes.map(|bytes| bytes as f64 * if kind.contains("allgather") { size } else { 1.0 });
        let rate = message.filter(|_| self.transfer.0 > 0).map(|bytes| bytes / self.transfer.0 as f64);
        let last =
            self.last.iter().enumerate().max_by_key(|&(index, &count)| (count, std::cmp::Reverse(index)));
        CollectiveRow {
            kind: kind.to_owned(),
            group: group.to_owned(),
            calls: self.calls,
            ranks: self.ranks,
            wait: self.wait,
            longest_wait: self.longest_wait,
            transfer: self.transfer,
            bytes: self.bytes,
            algorithm_rate: rate,
            bus_rate: rate.map(|rate| rate * bus_factor(kind, size)),
            last: last.map(|(index, &count)| (rows[index].rank, count)),
        }
    }
}
