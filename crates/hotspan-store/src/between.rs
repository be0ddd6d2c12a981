//! A stretch of a trace as a trace of its own: any analysis or exporter can then answer for just that time.
//!
//! Strings, args, frames and stacks are shared with the whole; only event rows are copied. Spans and samples are cut where they reach
//! beyond the stretch. Sums without times (calls and lines added up) cannot be cut and are left out.

use crate::events::Spans;
use crate::ids::{SpanId, TrackId};
use crate::profile::{CallStats, LineStats, Samples};
use crate::table::Frozen;
use crate::trace::Trace;
use crate::units::Timestamp;

/// Rows of spans or samples that touch a stretch.
fn touching(times: &[i64], lengths: &[i64], from: Timestamp, to: Timestamp) -> Vec<usize> {
    let rows = times.iter().zip(lengths).enumerate();
    let kept = rows.filter(|&(_, (&begin, &length))| {
        let end = begin.saturating_add(length.max(0));
        begin < to.0 && (end > from.0 || begin >= from.0)
    });
    kept.map(|(row, _)| row).collect()
}

impl Trace {
    /// The spans that [`Self::between`] keeps: the first of them is span 0 there, and so on.
    #[must_use]
    pub fn spans_between(&self, from: Timestamp, to: Timestamp) -> Vec<SpanId> {
        touching(&self.spans.time, &self.spans.duration, from, to).into_iter().map(SpanId::at).collect()
    }

    /// What happened from `from` to `to`. Times stay those of the whole.
    #[must_use]
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Self {
        let mut part = self.clone();
        let touching = |times: &[i64], lengths: &[i64]| touching(times, lengths, from, to);
        let cut = |times: &mut [i64], lengths: &mut [i64]| {
            for (time, length) in times.iter_mut().zip(lengths) {
                let end = time.saturating_add((*length).max(0)).min(to.0);
                *time = (*time).max(from.0);
                *length = end.saturating_sub(*time).max(0);
            }
        };
        let inside = |times: &[i64]| -> Vec<usize> {
            let rows = times.iter().enumerate();
            rows.filter(|&(_, &time)| (from.0..to.0).contains(&time)).map(|(row, _)| row).collect()
        };
        let spans = self.spans.gather(&touching(&self.spans.time, &self.spans.duration));
        let (mut times, mut lengths) = (spans.time.to_vec(), spans.duration.to_vec());
        cut(&mut times, &mut lengths);
        part.spans = Spans { time: times.into(), duration: lengths.into(), ..spans };
        part.instants = self.instants.gather(&inside(&self.instants.time));
        part.counters = self.counters.gather(&inside(&self.counters.time));
        part.flows = self.flows.gather(&inside(&self.flows.time));
        let samples = &self.profile.samples;
        let samples = samples.gather(&touching(&samples.time, &samples.weight));
        let (mut times, mut lengths) = (samples.time.to_vec(), samples.weight.to_vec());
        cut(&mut times, &mut lengths);
        part.profile.samples = Samples { time: times.into(), weight: lengths.into(), ..samples };
        part.profile.calls = CallStats::default();
        part.profile.lines = LineStats::default();
        part
    }

    /// What happened on some tracks: the spans and marks of those that `events` wants, the samples of those that `samples` wants.
    #[must_use]
    pub fn of_tracks(&self, events: impl Fn(TrackId) -> bool, samples: impl Fn(TrackId) -> bool) -> Self {
        fn rows(tracks: &[u32], wanted: impl Fn(TrackId) -> bool) -> Vec<usize> {
            let rows = tracks.iter().enumerate();
            rows.filter(|&(_, &track)| wanted(TrackId(track))).map(|(row, _)| row).collect()
        }
        let mut part = self.clone();
        part.spans = self.spans.gather(&rows(&self.spans.track, &events));
        part.instants = self.instants.gather(&rows(&self.instants.track, &events));
        part.counters = self.counters.gather(&rows(&self.counters.track, &events));
        part.flows = self.flows.gather(&rows(&self.flows.track, &events));
        let all = &self.profile.samples;
        part.profile.samples = all.gather(&rows(&all.track, samples));
        part.profile.calls = CallStats::default();
        part.profile.lines = LineStats::default();
        part
    }
}

#[cfg(test)]
mod tests {
    use crate::{Duration, EventRow, Ident, SpanRow, Timestamp, TraceBuilder};

    #[test]
    fn spans_are_cut_and_others_left_out() {
        let mut builder = TraceBuilder::new();
        for (name, time, duration) in
            [("over", 0, 100), ("inside", 20, 5), ("ends there", 0, 10), ("later", 30, 5)]
        {
            let track = builder.track(Ident::Int(1), Ident::Int(1));
            let (name, category) = (builder.intern(name), builder.category("cpu_op"));
            let args = builder.no_args();
            let event = EventRow { time: Timestamp(time), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
        let whole = builder.finish();
        let part = whole.between(Timestamp(10), Timestamp(30));
        let spans = part.spans();
        let rows: Vec<_> = spans
            .ids()
            .map(|span| (part.span_name(span), spans.time(span).0, spans.duration(span).0))
            .collect();
        assert_eq!(rows, [("over", 10, 20), ("inside", 20, 5)]);
        let none = part.of_tracks(|_| false, |_| true);
        assert_eq!((none.spans().len(), part.of_tracks(|_| true, |_| true).spans().len()), (0, 2));
        let kept = whole.spans_between(Timestamp(10), Timestamp(30));
        let names: Vec<_> = kept.iter().map(|&span| whole.span_name(span)).collect();
        assert_eq!(names, ["over", "inside"]);
    }
}
