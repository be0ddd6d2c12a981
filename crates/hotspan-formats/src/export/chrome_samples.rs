//! Samples as calls: a frame that stays in the stack of a thread from one sample to the next is one call.

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameId, FrameRow, Timestamp, Trace, TrackId};

/// A call as samples show it.
pub(super) struct SampledSpan {
    pub(super) track: TrackId,
    pub(super) frame: FrameId,
    pub(super) time: Timestamp,
    pub(super) duration: Duration,
    /// How many calls are around it.
    depth: usize,
}

impl SampledSpan {
    /// Named as torch names Python functions.
    pub(super) fn name(&self, trace: &Trace) -> String {
        let row = trace.profile().frames.row(self.frame);
        let (name, file) = (trace.str(row.name), trace.str(row.file));
        let line = if row.first_line == 0 { row.line } else { row.first_line };
        if file.is_empty() { name.to_owned() } else { format!("{file}({line}): {name}") }
    }
}

/// A thread's open calls, outermost first, and until when its last sample stands.
#[derive(Default)]
struct Thread {
    open: Vec<(FrameId, Timestamp)>,
    until: Timestamp,
}

/// All calls by thread, outer ones first: readers take the order of equal times for the nesting.
pub(super) fn spans_of_samples(trace: &Trace) -> Vec<SampledSpan> {
    let profile = trace.profile();
    // Lines of one function are one call.
    let functions = profile.frames.firsts_by(|row| {
        let line = if row.first_line == 0 { row.line } else { 0 };
        FrameRow { line, ..row }
    });
    let mut threads: HashMap<TrackId, Thread> = HashMap::new();
    let mut spans = Vec::new();
    let mut stack: Vec<FrameId> = Vec::new();
    for sample in profile.samples.rows() {
        stack.clear();
        stack.extend(profile.stacks.frames(sample.stack).map(|frame| functions[frame.index()]));
        stack.reverse();
        let thread = threads.entry(sample.track).or_default();
        // Samples come late at times; only a longer gap means that the thread did something else, or nothing.
        let gap = sample.time.since(thread.until);
        let common = if gap.0 > sample.weight.0 {
            0
        } else {
            thread.open.iter().zip(&stack).take_while(|((open, _), frame)| open == *frame).count()
        };
        let end = if gap.0 > sample.weight.0 { thread.until } else { sample.time };
        close(&mut thread.open, common, sample.track, end, &mut spans);
        thread.open.extend(stack[common..].iter().map(|&frame| (frame, sample.time)));
        thread.until = thread.until.max(sample.time.plus(sample.weight));
    }
    let mut rest: Vec<_> = threads.into_iter().collect();
    rest.sort_unstable_by_key(|&(track, _)| track);
    for (track, mut thread) in rest {
        let until = thread.until;
        close(&mut thread.open, 0, track, until, &mut spans);
    }
    spans.sort_unstable_by_key(|span| (span.track, span.time, span.depth));
    spans
}

fn close(
    open: &mut Vec<(FrameId, Timestamp)>,
    keep: usize,
    track: TrackId,
    end: Timestamp,
    spans: &mut Vec<SampledSpan>,
) {
    while open.len() > keep
        && let Some((frame, time)) = open.pop()
    {
        let (depth, duration) = (open.len(), end.since(time).max(Duration::ZERO));
        spans.push(SampledSpan { track, frame, time, duration, depth });
    }
}
