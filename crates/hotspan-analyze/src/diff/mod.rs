//! What got faster or slower from one trace to another: by operator, function, line, kernel, shape or module.
//!
//! Where both traces have steps, times are those of a middle step (the median), and the spread of the steps tells change
//! from noise ([`noise`]). [`measure`] says what a row's time is.

mod measure;
mod noise;
mod report;

use hashbrown::HashMap;
use hotspan_store::{Duration, Timestamp};

use crate::model::Model;

pub use measure::By;
pub use noise::Verdict;

use measure::Measured;

/// One side of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Time: of a middle step, or of all where there are no steps.
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

/// Two traces side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The rows, largest change first.
    pub rows: Vec<DiffRow>,
    /// The step, or the whole recording.
    pub total: DiffRow,
    /// How many steps stand behind each side; `None` where one has none, and sums are compared.
    pub steps: Option<(u64, u64)>,
    /// What the times are.
    pub measure: &'static str,
}

/// Compares two traces.
#[must_use]
pub fn diff(before: &Model, after: &Model, by: By) -> Diff {
    let (ranges_before, ranges_after) = (steady_steps(before), steady_steps(after));
    let has_steps = !ranges_before.is_empty() && !ranges_after.is_empty();
    let whole = |model: &Model| {
        let (begin, length) = model.window();
        vec![(begin, begin.plus(length))]
    };
    let (ranges_before, ranges_after) =
        if has_steps { (ranges_before, ranges_after) } else { (whole(before), whole(after)) };
    let measured_before = measure::measure(before, by);
    let measured_after = measure::measure(after, by);
    let measure = measured_before.what;
    let keys_before = by_step(measured_before, &ranges_before);
    let mut keys_after = by_step(measured_after, &ranges_after);

    let mut rows = Vec::new();
    let mut sorted: Vec<(String, Row)> = keys_before.into_iter().collect();
    sorted.sort_by(|left, right| left.0.cmp(&right.0));
    for (key, row) in sorted {
        let other = keys_after.remove(&key);
        rows.push(compare(key, Some(&row), other.as_ref(), has_steps));
    }
    let mut new: Vec<(String, Row)> = keys_after.into_iter().collect();
    new.sort_by(|left, right| left.0.cmp(&right.0));
    rows.extend(new.into_iter().map(|(key, row)| compare(key, None, Some(&row), has_steps)));
    rows.sort_by_key(|row| std::cmp::Reverse(row.change().0.saturating_abs()));

    let lengths = |ranges: &[(Timestamp, Timestamp)]| Row {
        times: ranges.iter().map(|(begin, end)| end.since(*begin).0).collect(),
        calls: ranges.len() as i64,
    };
    let name = if has_steps { "step" } else { "whole recording" };
    let total =
        compare(name.to_owned(), Some(&lengths(&ranges_before)), Some(&lengths(&ranges_after)), has_steps);
    let steps = has_steps.then_some((ranges_before.len() as u64, ranges_after.len() as u64));
    Diff { rows, total, steps, measure }
}

/// The steps of a trace without warm-up.
fn steady_steps(model: &Model) -> Vec<(Timestamp, Timestamp)> {
    model.steps().steady().iter().map(|step| (step.begin, step.begin.plus(step.duration))).collect()
}

/// The times of one key in each step, and how often it occurs in all of them.
struct Row {
    times: Vec<i64>,
    calls: i64,
}

fn by_step(measured: Measured, ranges: &[(Timestamp, Timestamp)]) -> HashMap<String, Row> {
    let mut rows: HashMap<String, Row> = HashMap::new();
    let mut by_key: Vec<Option<Row>> = measured.keys.iter().map(|_| None).collect();
    for fact in measured.facts {
        let after = ranges.partition_point(|&(begin, _)| begin <= fact.at);
        let Some(step) = after.checked_sub(1).filter(|&step| fact.at <= ranges[step].1) else { continue };
        let empty = || Row { times: vec![0; ranges.len()], calls: 0 };
        let row = by_key[fact.key].get_or_insert_with(empty);
        row.times[step] = row.times[step].saturating_add(fact.time.0);
        row.calls = row.calls.saturating_add(fact.calls);
    }
    for (key, row) in measured.keys.into_iter().zip(by_key) {
        if let Some(row) = row {
            rows.insert(key, row);
        }
    }
    rows
}

fn compare(key: String, before: Option<&Row>, after: Option<&Row>, has_steps: bool) -> DiffRow {
    let side = |row: &Row| Side {
        time: Duration(noise::median(&row.times)),
        calls: row.calls as f64 / row.times.len().max(1) as f64,
    };
    let verdict = match (before, after) {
        (Some(before), Some(after)) if has_steps => noise::verdict(&before.times, &after.times),
        (Some(_), Some(_)) => Verdict::Unknown,
        (None, _) => Verdict::New,
        (_, None) => Verdict::Gone,
    };
    DiffRow { key, before: before.map(side), after: after.map(side), verdict }
}
