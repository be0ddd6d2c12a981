//! Some processes of a trace as a trace of their own: any analysis or exporter can then answer for just these.
//!
//! Strings, args, frames and stacks are shared with the whole; only event rows are copied. Sums without a process (calls and lines added
//! up) stay as they are.

use crate::ids::{Ident, ProcessId, TrackId};
use crate::table::Frozen;
use crate::trace::Trace;

impl Trace {
    /// What happened in the processes that `keep` names. Times and ids stay those of the whole.
    #[must_use]
    pub fn of_processes(&self, keep: impl Fn(ProcessId) -> bool) -> Self {
        let kept: Vec<bool> = self.tracks().iter().map(|track| keep(track.process)).collect();
        // Nothing is left out: the columns are shared.
        if kept.iter().all(|&is_kept| is_kept) {
            return self.clone();
        }
        let rows = |count: usize, track: &dyn Fn(usize) -> TrackId| -> Vec<usize> {
            (0..count).filter(|&row| kept[track(row).index()]).collect()
        };
        let mut part = self.clone();
        let (spans, instants) = (&self.spans, &self.instants);
        part.spans = spans.gather(&rows(spans.len(), &|row| spans.event(row).track));
        part.instants = instants.gather(&rows(instants.len(), &|row| instants.row(row).event.track));
        let tracks: Vec<TrackId> = self.counters.events().map(|event| event.track).collect();
        part.counters = self.counters.gather(&rows(tracks.len(), &|row| tracks[row]));
        let flows = &self.flows;
        part.flows = flows.gather(&rows(flows.len(), &|row| flows.row(row).event.track));
        let tracks: Vec<TrackId> = self.profile.samples.rows().map(|row| row.track).collect();
        part.profile.samples = self.profile.samples.gather(&rows(tracks.len(), &|row| tracks[row]));
        part
    }

    /// The process with this number.
    #[must_use]
    pub fn process_numbered(&self, number: i64) -> Option<ProcessId> {
        self.processes().iter().position(|process| process.ident == Ident::Int(number)).map(ProcessId::at)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Duration, EventRow, Ident, SampleRow, SampleState, SpanRow, StackId, Timestamp, TraceBuilder,
    };

    #[test]
    fn events_of_others_are_left_out() {
        let mut builder = TraceBuilder::new();
        for process in [1, 2] {
            let track = builder.track(Ident::Int(process), Ident::Int(process));
            let (name, category) = (builder.intern(&format!("of {process}")), builder.category("cpu_op"));
            let args = builder.no_args();
            let event = EventRow { time: Timestamp(process), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(5) });
            builder.push_counter(event);
            let (time, weight, state) = (Timestamp(process), Duration(10), SampleState::Running);
            builder.push_sample(SampleRow { time, track, stack: StackId::NONE, weight, state, gil: false });
        }
        let whole = builder.finish();
        let second = whole.process_numbered(2).unwrap();
        let part = whole.of_processes(|process| process == second);
        let names: Vec<&str> = part.spans().ids().map(|span| part.span_name(span)).collect();
        assert_eq!(names, ["of 2"]);
        assert_eq!((part.counters().len(), part.profile().samples.len()), (1, 1));
        assert_eq!(part.spans().time(part.spans().ids().next().unwrap()), Timestamp(1), "times stay");
    }
}
