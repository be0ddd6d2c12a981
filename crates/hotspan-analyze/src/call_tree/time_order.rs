//! The calls of one thread in order of time, nothing added up: neighbouring samples with the same outer frames are one call.

use hotspan_store::{Duration, FrameKind, SampleRow, SpanId, StackId, Timestamp, Trace, TrackId};

use super::{Callee, python_callee, thread_name};
use crate::model::Model;
use crate::model::events::Role;

/// A thread that has calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedThread {
    /// Which.
    pub track: TrackId,
    /// As a person knows it.
    pub name: String,
    /// How many samples or spans it has.
    pub count: u64,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedCall {
    /// What it is.
    pub callee: Callee,
    /// The call around it.
    pub parent: Option<usize>,
    /// When it began.
    pub begin: Timestamp,
    /// How long it took.
    pub time: Duration,
}

/// The threads that have samples, or calls where no thread has samples; busiest first.
#[must_use]
pub fn timed_threads(trace: &Trace) -> Vec<TimedThread> {
    let mut counts = vec![0_u64; trace.tracks().len()];
    let samples = &trace.profile().samples;
    if samples.is_empty() {
        let spans = trace.spans();
        let host = spans.ids().filter(|&span| Role::of(trace.span_category(span)).is_host());
        host.for_each(|span| counts[spans.track(span).index()] += 1);
    } else {
        samples.rows().for_each(|sample| counts[sample.track.index()] += 1);
    }
    let filled = counts.into_iter().enumerate().filter(|&(_, count)| count > 0);
    let mut threads: Vec<TimedThread> = filled
        .map(|(index, count)| {
            let track = TrackId::at(index);
            TimedThread { track, name: thread_name(trace, track), count }
        })
        .collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.count), thread.track));
    threads
}

/// The calls of a thread, parents before their children, in order of time.
#[must_use]
pub fn time_order(model: &Model, track: TrackId) -> Vec<TimedCall> {
    if model.profile().samples.is_empty() { of_spans(model, track) } else { of_samples(model, track) }
}

fn of_spans(model: &Model, track: TrackId) -> Vec<TimedCall> {
    let (spans, events, nesting) = (model.spans(), model.events(), model.nesting());
    let mut calls: Vec<TimedCall> = Vec::new();
    let mut calls_of: Vec<Option<usize>> = vec![None; spans.len()];
    let wanted = |&&span: &&SpanId| {
        events.role(span).is_host() && spans.track(span) == track && spans.duration(span).0 >= 0
    };
    for &span in nesting.order().iter().filter(wanted) {
        let name = model.span_name(span);
        let callee = match events.role(span) {
            Role::Python => python_callee(name),
            _ => Callee { name: name.to_owned(), file: String::new(), line: 0, kind: FrameKind::Builtin },
        };
        let parent = nesting.parent(span).and_then(|outer| calls_of[outer.index()]);
        calls_of[span.index()] = Some(calls.len());
        calls.push(TimedCall { callee, parent, begin: spans.time(span), time: spans.duration(span) });
    }
    calls
}

fn of_samples(trace: &Trace, track: TrackId) -> Vec<TimedCall> {
    let profile = trace.profile();
    let mut samples: Vec<SampleRow> = profile.samples.rows().filter(|sample| sample.track == track).collect();
    samples.sort_by_key(|sample| sample.time);
    let mut calls: Vec<TimedCall> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut before = Timestamp(i64::MIN);
    for sample in samples {
        let begin = sample.time.max(before);
        let end = begin.plus(Duration(sample.weight.0.max(0)));
        let mut frames: Vec<_> = match sample.stack {
            StackId::NONE => Vec::new(),
            stack => profile.stacks.frames(stack).collect(),
        };
        frames.reverse();
        let callees = frames.into_iter().map(|frame| {
            let row = profile.frames.row(frame);
            let (name, file) = (trace.str(row.name).to_owned(), trace.str(row.file).to_owned());
            Callee { name, file, line: row.first_line, kind: row.kind }
        });
        // After a pause longer than the sample itself nothing is known to go on.
        let goes_on = begin.since(before) <= sample.weight;
        let mut same = goes_on;
        let mut depth = 0;
        for callee in callees {
            same = same && open.get(depth).is_some_and(|&call| calls[call].callee == callee);
            if !same {
                open.truncate(depth);
                let parent = open.last().copied();
                open.push(calls.len());
                calls.push(TimedCall { callee, parent, begin, time: Duration::ZERO });
            }
            depth += 1;
        }
        open.truncate(depth);
        for &call in &open {
            calls[call].time = end.since(calls[call].begin);
        }
        before = end;
    }
    calls
}

#[cfg(test)]
mod tests {
    use hotspan_store::{FrameRow, Ident, SampleState, TraceBuilder};

    use super::*;

    #[test]
    fn neighbours_with_the_same_outer_frames_are_one_call() {
        let mut builder = TraceBuilder::new();
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        let file = builder.intern("a.py");
        for (time, stack) in
            [(0, "main work"), (10, "main work"), (20, "main rest"), (30, "main work"), (90, "main")]
        {
            let mut id = StackId::NONE;
            for name in stack.split(' ') {
                let name = builder.intern(name);
                let row = FrameRow { name, file, line: 1, first_line: 1, kind: FrameKind::Python };
                let frame = builder.frame(row);
                id = builder.stack(id, frame);
            }
            let (time, weight, state) = (Timestamp(time), Duration(10), SampleState::Running);
            builder.push_sample(SampleRow { time, track, stack: id, weight, state, gil: true });
        }
        let model = Model::new(builder.finish());
        let track = timed_threads(&model)[0].track;
        let seen: Vec<_> = time_order(&model, track)
            .into_iter()
            .map(|call| (call.callee.name, call.parent, call.begin.0, call.time.0))
            .collect();
        let row = |name: &str, parent, begin, time| (name.to_owned(), parent, begin, time);
        assert_eq!(
            seen,
            [
                row("main", None, 0, 40),
                row("work", Some(0), 0, 20),
                row("rest", Some(0), 20, 10),
                row("work", Some(0), 30, 10),
                row("main", None, 90, 10),
            ]
        );
    }
}
