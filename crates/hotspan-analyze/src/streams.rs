//! What each stream did, and how much work was queued on it.

use hotspan_store::{Duration, Timestamp, TrackId};

use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::device_work::{DeviceId, WorkKind};

/// More than this and a launch blocks; CUDA does not document it, measured by HTA and others.
const FULL_QUEUE: i64 = 1_022;

/// A stream of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamRow {
    /// Which device.
    pub device: DeviceId,
    /// The stream as the trace calls it.
    pub stream: String,
    /// How many kernels compute or communicate.
    pub kernels: u64,
    /// How many copies and fills.
    pub copies: u64,
    /// When it worked.
    pub busy: Duration,
    /// When it computed, communicated, and copied; these do not overlap on a stream.
    pub by_kind: [Duration; 3],
    /// Queued work, the mean over the recording; `None` when launches are not known.
    pub mean_queue: Option<f64>,
    /// The most work that was queued.
    pub max_queue: u64,
    /// How long the queue was full, which blocks the host.
    pub full: Duration,
}

/// The streams of a trace, by device and most time first.
#[must_use]
pub fn streams(model: &Model) -> Vec<StreamRow> {
    let (calls, window) = (model.launch_calls(), *model.recording());
    let mut rows = Vec::new();
    for device in model.device_work() {
        let mut streams: Vec<TrackId> = device.work.iter().map(|work| work.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        // Work is dealt out to its streams in one walk.
        let mut of_stream = vec![Vec::new(); streams.len()];
        for work in &device.work {
            if let Ok(index) = streams.binary_search(&work.stream) {
                of_stream[index].push(*work);
            }
        }
        let first = rows.len();
        for (stream, work) in streams.into_iter().zip(of_stream) {
            let total = |kind: WorkKind| -> Duration {
                let of_kind = work.iter().filter(|work| work.kind == kind);
                of_kind.map(|work| work.interval).collect::<Intervals>().length()
            };
            let copies = work.iter().filter(|work| work.kind == WorkKind::Copy).count() as u64;
            let launched = work
                .iter()
                .filter_map(|work| Some((model.spans().time(calls.call(work.span)?), work.interval.begin)));
            let queue = Queue::of(launched, window);
            rows.push(StreamRow {
                device: device.id,
                stream: model.track(stream).ident.display(model.strings()),
                kernels: work.len() as u64 - copies,
                copies,
                busy: work.iter().map(|work| work.interval).collect::<Intervals>().length(),
                by_kind: [WorkKind::Compute, WorkKind::Communication, WorkKind::Copy].map(total),
                mean_queue: queue.mean,
                max_queue: queue.max,
                full: queue.full,
            });
        }
        rows[first..].sort_by_key(|row| std::cmp::Reverse(row.busy));
    }
    rows
}

/// How much work waits, over time: more by one when it is launched, less by one when it begins.
#[derive(Clone, Debug, Default, PartialEq)]
struct Queue {
    mean: Option<f64>,
    max: u64,
    full: Duration,
}

impl Queue {
    fn of(launched: impl Iterator<Item = (Timestamp, Timestamp)>, window: Interval) -> Self {
        let mut changes: Vec<(Timestamp, i64)> = Vec::new();
        for (launch, begin) in launched {
            // Clocks of host and device differ a little: nothing begins before it is launched.
            changes.extend([(launch, 1), (begin.max(launch), -1)]);
        }
        if changes.is_empty() {
            return Self::default();
        }
        changes.sort_unstable();
        let (mut depth, mut max, mut full, mut area) = (0_i64, 0_i64, Duration::ZERO, 0.0);
        for (index, &(time, change)) in changes.iter().enumerate() {
            depth += change;
            let until = changes.get(index + 1).map_or(time, |&(next, _)| next);
            let lasts = until.since(time);
            if lasts > Duration::ZERO {
                max = max.max(depth);
                area += depth as f64 * lasts.0 as f64;
            }
            if depth >= FULL_QUEUE {
                full += lasts;
            }
        }
        let length = window.length().0;
        let mean = (length > 0).then(|| area / length as f64);
        Self { mean, max: u64::try_from(max).unwrap_or(0), full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_grows_with_launches_and_shrinks_as_work_begins() {
        let at = Timestamp;
        let window = Interval::new(at(0), at(100));
        // 0..10: one waits; 10..20: two; 20..50: one.
        let queue = Queue::of([(at(0), at(20)), (at(10), at(50))].into_iter(), window);
        assert_eq!(queue, Queue { mean: Some(0.6), max: 2, full: Duration(0) });
        assert_eq!(Queue::of(std::iter::empty(), window), Queue::default());
        let skewed = Queue::of(std::iter::once((at(5), at(3))), window);
        assert_eq!((skewed.max, skewed.mean), (0, Some(0.0)));
    }
}
