//! Lines of the program's source with all that is known of each: time on the processor, time of device work it launched, memory it
//! allocated, and what a line profiler counted.
//!
//! Samples say which line a thread was at. Device work and allocations belong to the line that the thread was at when they were
//! launched or made. A sample of the same call of an operator tells it for certain; without one the nearest sample does, which is as exact
//! as samples are dense.

use std::collections::BTreeMap;

use hotspan_store::{
    Bytes, Category, Duration, FrameKind, FrameRow, SampleRow, SpanId, StackId, Timestamp, TrackId,
};

use crate::intervals::Interval;
use crate::model::Model;
use crate::model::memory_events::MemoryEventKind;
use crate::overview::{ProgramFolder, program_line};

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// Its file.
    pub file: String,
    /// Its number.
    pub line: u32,
    /// The function it belongs to.
    pub function: String,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCost {
    /// Samples while it was the innermost line of Python.
    pub own: Duration,
    /// Samples while it was anywhere in the stack.
    pub total: Duration,
    /// Samples while it was the innermost line of the program's own files: its own time and that of libraries it called.
    pub program: Duration,
    /// Device work launched from it.
    pub device: Duration,
    /// Bytes allocated from it, on all devices.
    pub allocated: Bytes,
    /// How often a line profiler saw it executed.
    pub hits: u64,
    /// The time a line profiler saw it take.
    pub time: Duration,
    /// By how much the process grew on it.
    pub increment: Bytes,
}

/// The cost of each line, by file and number.
pub type SourceLines = BTreeMap<SourceLine, LineCost>;

/// Whether a trace knows any lines, without their costs.
#[must_use]
pub fn has_source_lines(model: &Model) -> bool {
    let profile = model.profile();
    profile.frames.rows().any(|row| has_line(&row)) || profile.lines.rows().any(|row| row.hits > 0)
}

/// Whether a frame is at a line of a program.
fn has_line(frame: &FrameRow) -> bool {
    frame.kind == FrameKind::Python && frame.line > 0
}

/// The lines of a trace.
pub(crate) fn find(model: &Model) -> SourceLines {
    if !has_source_lines(model) {
        return SourceLines::new();
    }
    let mut lines = Lines {
        model,
        folder: ProgramFolder::of(model),
        lines: Vec::new(),
        costs: Vec::new(),
        of_frame: Vec::new(),
    };
    lines.of_frame = vec![None; model.profile().frames.len()];
    lines.add_samples();
    let samples = SamplesByThread::of(model);
    lines.add_device_work(&samples);
    lines.add_memory(&samples);
    lines.add_recorded();
    lines.lines.into_iter().zip(lines.costs).collect()
}

struct Lines<'a> {
    model: &'a Model,
    folder: ProgramFolder,
    lines: Vec<SourceLine>,
    costs: Vec<LineCost>,
    /// For each frame, its line.
    of_frame: Vec<Option<usize>>,
}

impl Lines<'_> {
    /// The index of a line, which may be new.
    fn index(&mut self, indices: &mut BTreeMap<SourceLine, usize>, line: SourceLine) -> usize {
        *indices.entry(line).or_insert_with_key(|line| {
            self.lines.push(line.clone());
            self.costs.push(LineCost::default());
            self.costs.len() - 1
        })
    }

    fn add_samples(&mut self) {
        let model = self.model;
        let profile = model.profile();
        let mut indices: BTreeMap<SourceLine, usize> = BTreeMap::new();
        for (index, row) in profile.frames.rows().enumerate() {
            if has_line(&row) {
                let file = self.folder.whole(model.str(row.file)).into_owned();
                let function = model.str(row.name).to_owned();
                let line = self.index(&mut indices, SourceLine { file, line: row.line, function });
                self.of_frame[index] = Some(line);
            }
        }
        let mut seen: Vec<usize> = Vec::new();
        for &(stack, weight) in model.counted_samples() {
            seen.clear();
            let lines = profile.stacks.frames(stack).filter_map(|frame| self.of_frame[frame.index()]);
            for line in lines {
                if seen.is_empty() {
                    self.costs[line].own += weight;
                }
                // A line that calls itself again is met once.
                if !seen.contains(&line) {
                    self.costs[line].total += weight;
                    seen.push(line);
                }
            }
            let program = program_line(model, stack).and_then(|frame| self.of_frame[frame.index()]);
            if let Some(line) = program {
                self.costs[line].program += weight;
            }
        }
    }

    /// The innermost line of Python on a stack.
    fn innermost(&self, stack: StackId) -> Option<usize> {
        self.model.profile().stacks.frames(stack).find_map(|frame| self.of_frame[frame.index()])
    }

    fn add_device_work(&mut self, samples: &SamplesByThread) {
        let (model, spans) = (self.model, self.model.spans());
        let calls = model.launch_calls();
        for span in spans.ids().filter(|&span| model.span_category(span).is_device()) {
            let Some(call) = calls.call(span) else { continue };
            let stack = samples.near(spans.track(call), spans.time(call));
            if let Some(line) = stack.and_then(|stack| self.innermost(stack)) {
                self.costs[line].device += spans.duration(span);
            }
        }
    }

    fn add_memory(&mut self, samples: &SamplesByThread) {
        let events = self.model.memory_events().iter();
        for event in events.filter(|event| event.kind == MemoryEventKind::Allocation) {
            let stack = samples.near(event.track, event.time);
            if let Some(line) = stack.and_then(|stack| self.innermost(stack)) {
                self.costs[line].allocated += event.bytes;
            }
        }
    }

    /// What a line profiler counted.
    fn add_recorded(&mut self) {
        let profile = self.model.profile();
        let mut indices: BTreeMap<SourceLine, usize> =
            self.lines.iter().cloned().enumerate().map(|(index, line)| (line, index)).collect();
        for row in profile.lines.rows().filter(|row| row.hits > 0) {
            let function = profile.frames.row(row.function);
            let line = SourceLine {
                file: self.folder.whole(self.model.str(function.file)).into_owned(),
                line: row.line,
                function: self.model.str(function.name).to_owned(),
            };
            let line = self.index(&mut indices, line);
            let cost = &mut self.costs[line];
            cost.hits += row.hits.unsigned_abs();
            cost.time += row.time;
            cost.increment += row.increment;
        }
    }
}

/// Where each thread was when, and the outermost operators it ran.
struct SamplesByThread {
    threads: Vec<Vec<SampleRow>>,
    operators: Vec<Vec<Interval>>,
}

impl SamplesByThread {
    fn of(model: &Model) -> Self {
        let mut threads: Vec<Vec<SampleRow>> = vec![Vec::new(); model.tracks().len()];
        for sample in model.profile().samples.rows().filter(|sample| sample.stack != StackId::NONE) {
            threads[sample.track.index()].push(sample);
        }
        for samples in &mut threads {
            samples.sort_by_key(|sample| sample.time);
        }
        let spans = model.spans();
        let is_operator = |span: &SpanId| model.span_category(*span) == Category::Operator;
        let calls = model.time_order().iter().copied().filter(is_operator);
        let mut operators: Vec<Vec<Interval>> = vec![Vec::new(); model.tracks().len()];
        for span in calls {
            let outermost = &mut operators[spans.track(span).index()];
            // What begins before the last one ends is inside it.
            if outermost.last().is_none_or(|last| last.end <= spans.time(span)) {
                outermost.push(Interval::new(spans.time(span), spans.end(span)));
            }
        }
        Self { threads, operators }
    }

    /// The stack of a sample of the same call of an operator, or else of the nearest one.
    fn near(&self, track: TrackId, time: Timestamp) -> Option<StackId> {
        let samples = &self.threads[track.index()];
        let calls = &self.operators[track.index()];
        let call = calls.partition_point(|call| call.begin <= time).checked_sub(1).map(|index| calls[index]);
        if let Some(call) = call.filter(|call| time <= call.end) {
            let first = samples.get(samples.partition_point(|sample| sample.time < call.begin));
            if let Some(sample) = first.filter(|sample| sample.time <= call.end) {
                return Some(sample.stack);
            }
        }
        let next = samples.partition_point(|sample| sample.time <= time);
        let near =
            [next.checked_sub(1), Some(next)].into_iter().flatten().filter_map(|index| samples.get(index));
        let distance = |sample: &&SampleRow| sample.time.since(time).0.saturating_abs();
        let nearest = near.min_by_key(distance)?;
        // Farther away than it stands for, it tells nothing.
        (distance(&nearest) <= nearest.weight.0.max(0)).then_some(nearest.stack)
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Ident, SampleState, TraceBuilder};

    use super::*;

    #[test]
    fn samples_count_for_the_innermost_line_and_for_those_around_it() {
        let mut builder = TraceBuilder::new();
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        let file = builder.intern("a.py");
        for (time, lines) in [(0, &[3_u32, 8][..]), (10, &[3, 9]), (20, &[4])] {
            let mut stack = StackId::NONE;
            for (depth, &line) in lines.iter().enumerate() {
                let name = builder.intern(["main", "work"][depth]);
                let frame =
                    builder.frame(FrameRow { name, file, line, first_line: 1, kind: FrameKind::Python });
                stack = builder.stack(stack, frame);
            }
            let (time, weight, state) = (Timestamp(time), Duration(10), SampleState::Running);
            builder.push_sample(SampleRow { time, track, stack, weight, state, gil: true });
        }
        let model = Model::new(builder.finish());
        let lines = model.source_lines();
        let seen: Vec<_> = lines.iter().map(|(line, cost)| (line.line, cost.own.0, cost.total.0)).collect();
        assert_eq!(seen, [(3, 0, 20), (4, 10, 10), (8, 10, 10), (9, 10, 10)]);
        assert_eq!(crate::reports::source::source_line_table(lines).columns.len(), 6);
    }
}
