//! Functions and lines by the samples they were met in: own and total time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Duration, FrameId, Ident, StackId, Trace, TrackId};

use crate::report::Table;
use crate::report::schema::{Schema, share};

/// A function, or a line of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sampled {
    /// The function.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The line being executed, or that the function begins at.
    pub line: u32,
}

impl Sampled {
    /// Its file and line, as people write them. Native code has no line.
    #[must_use]
    pub fn location(&self) -> String {
        if self.line == 0 { self.file.to_string() } else { format!("{}:{}", self.file, self.line) }
    }
}

/// How long a function or line was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledTime {
    /// While it was innermost.
    pub own: Duration,
    /// While it was anywhere in the stack.
    pub total: Duration,
}

/// Times by function or line. Can be added up over traces.
#[derive(Clone, Debug, Default)]
pub struct SampledTimes {
    times: HashMap<Sampled, SampledTime>,
    /// The weight of all samples.
    pub total: Duration,
}

impl SampledTimes {
    /// Adds the samples of a trace.
    pub fn add(&mut self, trace: &Trace, lines: bool) {
        let profile = trace.profile();
        let key = |frame: FrameId| {
            let row = profile.frames.row(frame);
            let line = if lines { row.line } else { row.first_line };
            Sampled { name: trace.str(row.name).to_owned(), file: trace.str(row.file).to_owned(), line }
        };
        let mut seen = HashSet::new();
        for (stack, weight) in by_stack(trace) {
            self.total += weight;
            seen.clear();
            for (depth, frame) in profile.stacks.frames(stack).enumerate() {
                let key = key(frame);
                let time = self.times.entry(key.clone()).or_default();
                if depth == 0 {
                    time.own += weight;
                }
                // A function that calls itself is met once.
                if seen.insert(key) {
                    time.total += weight;
                }
            }
        }
    }

    /// All rows, most own time first.
    #[must_use]
    pub fn rows(&self) -> Vec<(&Sampled, SampledTime)> {
        let mut rows: Vec<_> = self.times.iter().map(|(key, &time)| (key, time)).collect();
        rows.sort_unstable_by(|left, right| {
            (right.1.own, right.1.total).cmp(&(left.1.own, left.1.total)).then_with(|| left.0.cmp(right.0))
        });
        rows
    }

    /// How it looks.
    #[must_use]
    pub fn report(&self) -> Table {
        let rows = self.rows();
        Schema::<(&Sampled, SampledTime)>::new("functions", "")
            .percent("own_share", "Own %", |row| share(row.1.own, self.total))
            .help("Time in the function itself, as a share of all samples.")
            .percent("total_share", "Total %", |row| share(row.1.total, self.total))
            .help("Time in the function and all it called, as a share of all samples.")
            .duration("own", "Own", |row| row.1.own)
            .help("Time in the function itself.")
            .duration("total", "Total", |row| row.1.total)
            .help("Time in the function and all it called.")
            .text("function", "Function", |row| &row.0.name)
            .help("The function.")
            .text("place", "Place", |row| row.0.location())
            .help("Its file, and the line that it begins at or that was executed.")
            .table(&rows)
    }
}

/// How busy a thread was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread's name and number.
    pub name: String,
    /// The weight of its samples.
    pub busy: Duration,
    /// The weight of those while it held the interpreter's lock.
    pub gil: Duration,
}

/// The threads that have samples, the busiest first.
#[must_use]
pub fn thread_times(trace: &Trace) -> Vec<ThreadTime> {
    let mut times: BTreeMap<TrackId, (Duration, Duration)> = BTreeMap::new();
    for sample in trace.profile().samples.rows() {
        let (busy, gil) = times.entry(sample.track).or_default();
        *busy += sample.weight;
        if sample.gil {
            *gil += sample.weight;
        }
    }
    let name = |track: TrackId| {
        let track = trace.track(track);
        let name = track.name.map_or("", |name| trace.str(name));
        match track.ident {
            Ident::Int(number) => format!("{name} ({number})"),
            Ident::Text(text) => format!("{name} ({})", trace.str(text)),
        }
    };
    let mut rows: Vec<_> =
        times.into_iter().map(|(track, (busy, gil))| ThreadTime { name: name(track), busy, gil }).collect();
    rows.sort_by_key(|thread| Reverse(thread.busy));
    rows
}

/// The weight of the samples of each stack, in the order of stacks.
fn by_stack(trace: &Trace) -> Vec<(StackId, Duration)> {
    let mut weights: HashMap<StackId, Duration> = HashMap::new();
    for sample in trace.profile().samples.rows().filter(|sample| sample.stack != StackId::NONE) {
        *weights.entry(sample.stack).or_default() += sample.weight;
    }
    let mut rows: Vec<_> = weights.into_iter().collect();
    rows.sort_unstable_by_key(|&(stack, _)| stack);
    rows
}

#[cfg(test)]
mod tests {
    use hotspan_store::{FrameKind, FrameRow, SampleRow, SampleState, Timestamp, TraceBuilder};

    use super::*;

    fn trace(stacks: &[&[(&str, u32)]]) -> Trace {
        let mut builder = TraceBuilder::new();
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        for names in stacks {
            let mut stack = StackId::NONE;
            for &(name, line) in *names {
                let (name, file) = (builder.intern(name), builder.intern("a.py"));
                let frame =
                    builder.frame(FrameRow { name, file, line, first_line: 1, kind: FrameKind::Python });
                stack = builder.stack(stack, frame);
            }
            let (time, weight, state) = (Timestamp(0), Duration(10), SampleState::Running);
            builder.push_sample(SampleRow { time, track, stack, weight, state, gil: false });
        }
        builder.finish()
    }

    #[test]
    fn functions_and_lines_add_up() {
        let trace = trace(&[&[("main", 1), ("work", 5)], &[("main", 1), ("work", 6)], &[("main", 2)]]);
        let mut times = SampledTimes::default();
        times.add(&trace, false);
        let rows: Vec<_> =
            times.rows().iter().map(|(key, time)| (key.name.clone(), time.own.0, time.total.0)).collect();
        assert_eq!(rows, [("work".to_owned(), 20, 20), ("main".to_owned(), 10, 30)]);
        let mut lines = SampledTimes::default();
        lines.add(&trace, true);
        assert_eq!(lines.rows().len(), 4);
        assert_eq!(lines.report().rows.len(), 4);
    }

    #[test]
    fn threads_are_as_busy_as_their_samples() {
        let mut builder = TraceBuilder::new();
        let name = builder.intern("worker");
        for (thread, gil) in [(7, true), (8, false), (7, false)] {
            let track = builder.track(Ident::Int(1), Ident::Int(thread));
            builder.track_mut(track).name = Some(name);
            let (time, weight, state) = (Timestamp(0), Duration(10), SampleState::Running);
            builder.push_sample(SampleRow { time, track, stack: StackId::NONE, weight, state, gil });
        }
        let row = |name: &str, busy, gil| ThreadTime {
            name: name.to_owned(),
            busy: Duration(busy),
            gil: Duration(gil),
        };
        let expected = [row("worker (7)", 20, 10), row("worker (8)", 10, 0)];
        assert_eq!(thread_times(&builder.finish()), expected);
    }
}
