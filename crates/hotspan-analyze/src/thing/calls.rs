//! Single calls: how many took how long, and the slowest of them.

use std::cmp::Reverse;

use hotspan_store::{Duration, SpanId, Timestamp};

use super::places::source_of;
use super::trend::Steps;
use crate::intervals::Interval;
use crate::model::Model;

/// The slowest calls that are listed.
const SLOWEST: usize = 20;

/// Calls that took about as long as each other: `from` or longer, and less than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The shortest that are counted.
    pub from: Duration,
    /// Those that take so long are in the next one.
    pub to: Duration,
    /// How many.
    pub count: u64,
    /// Their time.
    pub time: Duration,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its span; `None` where a time has none.
    pub span: Option<SpanId>,
    /// When it began.
    pub begin: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// The step that it belongs to.
    pub step: Option<i64>,
    /// The line of the program behind it, as `file:line`.
    pub source: Option<String>,
}

/// All calls of something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many have a time of their own.
    pub count: u64,
    /// Their time.
    pub total: Duration,
    /// How long they took, from the bucket of the shortest to that of the longest.
    pub histogram: Vec<Bucket>,
    /// The slowest, longest first.
    pub slowest: Vec<Call>,
}

impl Calls {
    pub(super) fn of(model: &Model, calls: &[SpanId]) -> Self {
        let spans = model.spans();
        let durations = || calls.iter().map(|&span| spans.duration(span));
        let steps = Steps::of(model);
        Self {
            count: calls.len() as u64,
            total: durations().sum(),
            histogram: histogram(durations()),
            slowest: slowest(model, calls).into_iter().map(|span| call(model, &steps, span)).collect(),
        }
    }
}

impl Calls {
    /// Of times that are no spans of their own, each with a span that has to do with it.
    pub(super) fn of_times(model: &Model, times: &[(Interval, Option<SpanId>)]) -> Self {
        let durations = || times.iter().map(|(time, _)| time.length());
        let steps = Steps::of(model);
        let mut longest: Vec<&(Interval, Option<SpanId>)> = times.iter().collect();
        longest.sort_by_key(|(time, _)| (Reverse(time.length()), time.begin));
        longest.truncate(SLOWEST);
        let call = |&&(time, span): &&(Interval, Option<SpanId>)| Call {
            span,
            begin: time.begin,
            duration: time.length(),
            step: steps.number_at(time.begin),
            source: span.and_then(|span| source_of(model, span)),
        };
        Self {
            count: times.len() as u64,
            total: durations().sum(),
            histogram: histogram(durations()),
            slowest: longest.iter().map(call).collect(),
        }
    }
}

pub(super) fn call(model: &Model, steps: &Steps<'_>, span: SpanId) -> Call {
    Call {
        span: Some(span),
        begin: model.spans().time(span),
        duration: model.spans().duration(span),
        step: steps.number(span),
        source: source_of(model, span),
    }
}

fn slowest(model: &Model, calls: &[SpanId]) -> Vec<SpanId> {
    let spans = model.spans();
    let order = |span: &SpanId| (Reverse(spans.duration(*span)), spans.time(*span), *span);
    let mut calls = calls.to_vec();
    if calls.len() > SLOWEST {
        calls.select_nth_unstable_by_key(SLOWEST, order);
        calls.truncate(SLOWEST);
    }
    calls.sort_unstable_by_key(order);
    calls
}

/// 0, 1, 2, 5, 10, 20, 50 … nanoseconds: equally wide to the eye on a scale of powers.
fn edges() -> Vec<i64> {
    let decades = std::iter::successors(Some(1_i64), |decade| decade.checked_mul(10));
    let steps = decades.flat_map(|decade| [1, 2, 5].map(|step| decade.saturating_mul(step)));
    let mut edges: Vec<i64> = std::iter::once(0).chain(steps).collect();
    edges.dedup();
    edges
}

fn histogram(durations: impl Iterator<Item = Duration>) -> Vec<Bucket> {
    let edges = edges();
    let mut buckets: Vec<Bucket> = edges
        .iter()
        .enumerate()
        .map(|(index, &from)| Bucket {
            from: Duration(from),
            to: Duration(edges.get(index + 1).copied().unwrap_or(i64::MAX)),
            count: 0,
            time: Duration::ZERO,
        })
        .collect();
    for duration in durations {
        let index = edges.partition_point(|&edge| edge <= duration.0.max(0)).saturating_sub(1);
        buckets[index].count += 1;
        buckets[index].time += duration;
    }
    let is_used = |bucket: &Bucket| bucket.count > 0;
    let Some(first) = buckets.iter().position(is_used) else { return Vec::new() };
    let last = buckets.iter().rposition(is_used).unwrap_or(first);
    buckets[first..=last].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(durations: &[i64]) -> Vec<(i64, i64, u64)> {
        let buckets = histogram(durations.iter().map(|&duration| Duration(duration)));
        buckets.iter().map(|bucket| (bucket.from.0, bucket.to.0, bucket.count)).collect()
    }

    #[test]
    fn each_call_is_in_one_bucket() {
        assert_eq!(counts(&[]), []);
        assert_eq!(counts(&[0, 1, 1, 4, 5]), [(0, 1, 1), (1, 2, 2), (2, 5, 1), (5, 10, 1)]);
        assert_eq!(counts(&[1000, 4999]), [(1000, 2000, 1), (2000, 5000, 1)]);
    }

    #[test]
    fn absurd_durations_are_counted_too() {
        let all = counts(&[-5, i64::MAX, i64::MIN]);
        assert_eq!(all.iter().map(|bucket| bucket.2).sum::<u64>(), 3);
        assert!(all.len() <= edges().len());
        assert!(edges().is_sorted());
    }
}
