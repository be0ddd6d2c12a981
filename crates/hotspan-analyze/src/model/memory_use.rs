//! What threads allocated and released when, and which spans that falls into.
//!
//! A span owns the instants of its own thread between its beginning and its end, both included. (torch ignores the
//! thread, so that operators that run side by side are charged with each other's memory.)

use hotspan_store::{Bytes, SpanId, Timestamp, TrackId};

use super::Model;
use super::memory_events::MemoryEventKind;

/// Bytes by where they lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// In the computer's memory.
    pub cpu: Bytes,
    /// In a device's memory.
    pub device: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Timestamp,
    /// Sums up to and including this one. They wrap instead of saturating, so that differences are exact.
    cpu: i64,
    device: i64,
}

/// The memory instants of each thread.
#[derive(Clone, Debug, Default)]
pub struct MemoryUse {
    /// For each thread, in order of time.
    threads: Vec<Vec<Sample>>,
    /// Instants that no span covers, in order of time.
    uncovered: Vec<(Timestamp, TrackId, Use)>,
    recorded: bool,
}

impl Use {
    /// Bytes on a device of this number of torch's `DeviceType`.
    #[must_use]
    pub fn of_device_type(device_type: i64, bytes: Bytes) -> Self {
        match device_type {
            // CPU, MKLDNN, IDEEP: the computer's own memory.
            0 | 2 | 5 => Self { cpu: bytes, device: Bytes(0) },
            _ => Self { cpu: Bytes(0), device: bytes },
        }
    }
}

impl MemoryUse {
    pub(super) fn of(model: &Model) -> Self {
        let reported = model.memory_events().iter().filter(|event| event.kind != MemoryEventKind::Failure);
        let samples: Vec<(Timestamp, TrackId, Use)> =
            reported.map(|event| (event.time, event.track, event.used())).collect();
        if samples.is_empty() {
            return Self::default();
        }
        let mut threads: Vec<Vec<Sample>> = vec![Vec::new(); model.tracks().len()];
        for &(time, track, used) in &samples {
            let thread = &mut threads[track.index()];
            let last = thread.last().copied().unwrap_or(Sample { time, cpu: 0, device: 0 });
            let cpu = last.cpu.wrapping_add(used.cpu.0);
            let device = last.device.wrapping_add(used.device.0);
            thread.push(Sample { time, cpu, device });
        }
        Self { threads, uncovered: uncovered(model, &samples), recorded: true }
    }

    /// Whether the trace has memory instants at all.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// What a thread allocated minus what it released within a time, both ends included.
    #[must_use]
    pub fn within(&self, track: TrackId, from: Timestamp, to: Timestamp) -> Use {
        let Some(thread) = self.threads.get(track.index()).filter(|thread| !thread.is_empty()) else {
            return Use::default();
        };
        let first = thread.partition_point(|sample| sample.time < from);
        let end = thread.partition_point(|sample| sample.time <= to);
        if first >= end {
            return Use::default();
        }
        let sum_before = |count: usize| {
            count.checked_sub(1).map_or((0, 0), |last| (thread[last].cpu, thread[last].device))
        };
        let ((cpu_before, device_before), (cpu, device)) = (sum_before(first), sum_before(end));
        Use { cpu: Bytes(cpu.wrapping_sub(cpu_before)), device: Bytes(device.wrapping_sub(device_before)) }
    }

    /// What a span's thread allocated minus what it released while the span ran.
    #[must_use]
    pub fn of_span(&self, model: &Model, span: SpanId) -> Use {
        if !self.recorded {
            return Use::default();
        }
        let spans = model.spans();
        self.within(spans.track(span), spans.time(span), spans.end(span))
    }

    /// Instants outside of every span of their thread, in order of time.
    #[must_use]
    pub fn uncovered(&self) -> &[(Timestamp, TrackId, Use)] {
        &self.uncovered
    }
}

fn uncovered(model: &Model, samples: &[(Timestamp, TrackId, Use)]) -> Vec<(Timestamp, TrackId, Use)> {
    let (spans, events) = (model.spans(), model.events());
    let mut covered_until: Vec<Option<Timestamp>> = vec![None; model.tracks().len()];
    let covers = |&span: &SpanId| events.role(span).is_host() && !events.is_async(span);
    let mut order = model.nesting().order().iter().copied().filter(covers).peekable();
    let mut result = Vec::new();
    for &(time, track, used) in samples {
        while let Some(span) = order.next_if(|&span| spans.time(span) <= time) {
            let until = &mut covered_until[spans.track(span).index()];
            *until = (*until).max(Some(spans.end(span)));
        }
        if covered_until[track.index()] < Some(time) {
            result.push((time, track, used));
        }
    }
    result
}
