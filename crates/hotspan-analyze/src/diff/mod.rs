//! What got faster or slower from one trace to another: by operator, function, line, kernel, shape or module.
//!
//! Where both sides have steps, times are those of the median step, and [`noise`] tells change from what runs of one program differ by.
//! A side may have several recordings. [`measure`] says what a row's time is.

mod measure;
mod noise;
mod report;
mod waterfall;

use hashbrown::HashMap;
use hotspan_store::{Duration, Timestamp};

use crate::model::Model;
use crate::model::steps::median;
use crate::wall_time::Queued;

pub use measure::By;
pub use noise::Verdict;
pub use waterfall::{CauseChange, StepDot, Waterfall, waterfall};

use measure::Measured;
use noise::{Queueing, Times};

/// No program that made progress ran for less of its time.
const LEAST_RAN: f64 = 0.01;

/// One side of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Time: of the median step, or of all where there are no steps; of several recordings the mean.
    pub time: Duration,
    /// Calls: on average in a step, or all of them.
    pub calls: f64,
}

/// One operator, function, line …
#[derive(Clone, Debug, PartialEq)]
pub struct DiffRow {
    /// What it is.
    pub key: String,
    /// In the first trace; `None` when it is new.
    pub before: Option<Side>,
    /// In the second trace; `None` when it is gone.
    pub after: Option<Side>,
    /// Whether the difference is more than noise.
    pub verdict: Verdict,
}

impl DiffRow {
    /// By how much the time changed.
    #[must_use]
    pub fn change(&self) -> Duration {
        let time = |side: Option<Side>| side.map_or(Duration::ZERO, |side| side.time);
        time(self.after) - time(self.before)
    }

    /// The change in percent of the time before; `None` where there was none.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let before = self.before.filter(|side| side.time.0 > 0)?;
        Some(self.change().0 as f64 * 100.0 / before.time.0 as f64)
    }
}

/// Two sides, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The rows, largest change first.
    pub rows: Vec<DiffRow>,
    /// The step, or the whole recording.
    pub total: DiffRow,
    /// How many steps stand behind each side; `None` where one has none, and sums are compared.
    pub steps: Option<(u64, u64)>,
    /// By how much all rows together became slower, in percent: taken for the machine, and not held against any of them.
    pub machine_percent: f64,
    /// What the times are.
    pub measure: &'static str,
}

/// Compares two traces.
#[must_use]
pub fn diff(before: &Model, after: &Model, by: By) -> Diff {
    diff_sides(&[before], &[after], by)
}

/// Compares several recordings of one program with several of another.
#[must_use]
pub fn diff_sides(before: &[&Model], after: &[&Model], by: By) -> Diff {
    let has_steps = before.iter().chain(after).all(|model| !model.steps().steady().is_empty());
    let (before, after) = (SideTimes::of(before, by, has_steps), SideTimes::of(after, by, has_steps));
    let mut keys: Vec<&String> =
        before.rows.keys().chain(after.rows.keys().filter(|key| !before.rows.contains_key(*key))).collect();
    keys.sort_unstable();
    let times =
        |key: &str| Some(Times { before: &before.rows.get(key)?.times, after: &after.rows.get(key)?.times });
    let judged_keys: Vec<&String> = keys.iter().copied().filter(|key| times(key).is_some()).collect();
    let judged_times: Vec<Times<'_>> = judged_keys.iter().filter_map(|key| times(key)).collect();
    let step = Times { before: &before.total.times, after: &after.total.times };
    let judged = noise::judge(&judged_times, step, Queueing::of(&before.queued, &after.queued));

    let verdicts: HashMap<&String, Verdict> = judged_keys.into_iter().zip(judged.verdicts).collect();
    let verdict = |key: &String| match verdicts.get(key) {
        Some(&verdict) => verdict,
        None if before.is_sampled && is_rare(before.rows.get(key).or(after.rows.get(key))) => Verdict::Noise,
        None if before.rows.contains_key(key) => Verdict::Gone,
        None => Verdict::New,
    };
    let mut rows: Vec<DiffRow> = keys
        .iter()
        .map(|&key| DiffRow {
            key: key.clone(),
            before: before.rows.get(key).map(Row::side),
            after: after.rows.get(key).map(Row::side),
            verdict: verdict(key),
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.change().0.saturating_abs()));
    let total = DiffRow {
        key: if has_steps { "step" } else { "whole recording" }.to_owned(),
        before: Some(before.total.side()),
        after: Some(after.total.side()),
        verdict: judged.total,
    };
    let count = |side: &SideTimes| side.total.times.iter().map(Vec::len).sum::<usize>() as u64;
    Diff {
        rows,
        total,
        steps: has_steps.then(|| (count(&before), count(&after))),
        machine_percent: (judged.machine - 1.0) * 100.0,
        measure: before.measure,
    }
}

/// Whether so few samples fell on a row that none could have as well.
fn is_rare(row: Option<&Row>) -> bool {
    row.is_none_or(|row| row.calls < 8)
}

/// The times of one key: for each recording those of its steps; and how often it occurs in all of them.
#[derive(Debug)]
struct Row {
    times: Vec<Vec<i64>>,
    calls: i64,
}

impl Row {
    fn side(&self) -> Side {
        let recordings = self.times.len().max(1) as i64;
        let steps = self.times.iter().map(Vec::len).sum::<usize>().max(1);
        let time = self
            .times
            .iter()
            .map(|times| median(times.iter().map(|&time| Duration(time))).0 / recordings)
            .sum();
        Side { time: Duration(time), calls: self.calls as f64 / steps as f64 }
    }
}

/// All recordings of one side.
struct SideTimes {
    rows: HashMap<String, Row>,
    total: Row,
    measure: &'static str,
    is_sampled: bool,
    /// The factor by which queueing for a processor made each recording slower, as a logarithm.
    queued: Vec<f64>,
}

impl SideTimes {
    fn of(models: &[&Model], by: By, has_steps: bool) -> Self {
        let mut side = Self {
            rows: HashMap::new(),
            total: Row { times: Vec::new(), calls: 0 },
            measure: "",
            is_sampled: false,
            queued: models.iter().map(|model| slower_by_queueing(model)).collect(),
        };
        let ranges: Vec<Vec<Range>> = models.iter().map(|model| ranges(model, has_steps)).collect();
        for (place, (model, of_model)) in models.iter().zip(&ranges).enumerate() {
            let measured = measure::measure(model, by);
            side.measure = measured.what;
            side.is_sampled |= measured.what.starts_with("sampled");
            side.total.times.push(of_model.iter().map(|(begin, end)| end.since(*begin).0).collect());
            side.total.calls += of_model.len() as i64;
            side.add(place, measured, &ranges);
        }
        side
    }

    fn add(&mut self, place: usize, measured: Measured, ranges: &[Vec<Range>]) {
        let mine = &ranges[place];
        for fact in measured.facts {
            let after = mine.partition_point(|&(begin, _)| begin <= fact.at);
            let Some(step) = after.checked_sub(1).filter(|&step| fact.at <= mine[step].1) else { continue };
            let empty = || Row { times: ranges.iter().map(|steps| vec![0; steps.len()]).collect(), calls: 0 };
            let row = self.rows.entry_ref(measured.keys[fact.key].as_str()).or_insert_with(empty);
            let time = &mut row.times[place][step];
            *time = time.saturating_add(fact.time.0);
            row.calls = row.calls.saturating_add(fact.calls);
        }
    }
}

/// The factor by which a program took longer because it queued for a processor, as a logarithm; 0 where that is unknown.
fn slower_by_queueing(model: &Model) -> f64 {
    let ran = Queued::of(model).map_or(1.0, |queued| 1.0 - queued.share());
    -ran.max(LEAST_RAN).ln()
}

type Range = (Timestamp, Timestamp);

/// The steps of a trace without warm-up, or all of it.
fn ranges(model: &Model, has_steps: bool) -> Vec<Range> {
    if has_steps {
        let steady = model.steps().steady().iter();
        return steady.map(|step| (step.begin, step.begin.plus(step.duration))).collect();
    }
    let (begin, length) = model.window();
    vec![(begin, begin.plus(length))]
}
