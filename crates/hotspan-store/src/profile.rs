//! The profile tables: what profilers of Python and native code know. Samples with their stacks, function calls and
//! lines added up. Frames and stacks are interned, so a stack is one number wherever it is met.

mod build;
mod rows;

use hashbrown::HashMap;

use crate::ids::{FrameId, StackId, StringId, TrackId};
use crate::table::{Frozen, table};
use crate::units::{Bytes, Duration, Timestamp};

pub(crate) use build::ProfileBuilder;
pub use rows::{CallRow, FrameKind, FrameRow, LineRow, SampleRow, SampleState};

table! {
    /// Functions and lines that occur in stacks and sums.
    Frames, FramesBuilder { name: StringId, file: StringId, line: u32, first_line: u32, kind: FrameKind, }
}

table! {
    /// Stacks as a tree: each row adds the frame that was called to the stack that called it.
    Stacks, StacksBuilder { parent: StackId, frame: FrameId, }
}

table! {
    /// Samples of threads.
    Samples, SamplesBuilder {
        time: Timestamp,
        track: TrackId,
        stack: StackId,
        weight: Duration,
        state: SampleState,
        gil: u8,
    }
}

table! {
    /// Calls added up.
    CallStats, CallStatsBuilder {
        caller: FrameId,
        callee: FrameId,
        calls: i64,
        primitive_calls: i64,
        self_time: Duration,
        total_time: Duration,
    }
}

table! {
    /// Lines added up.
    LineStats, LineStatsBuilder {
        function: FrameId,
        line: u32,
        hits: i64,
        time: Duration,
        memory: Bytes,
        increment: Bytes,
    }
}

impl Frames {
    /// The frame of an id.
    #[must_use]
    pub fn row(&self, id: FrameId) -> FrameRow {
        let (name, file, line, first_line, kind) = self.cells(id.index());
        FrameRow { name, file, line, first_line, kind }
    }

    /// For each frame the first that is the same by `key`, which may leave out what tells frames apart.
    #[must_use]
    pub fn firsts_by(&self, key: impl Fn(FrameRow) -> FrameRow) -> Vec<FrameId> {
        let mut firsts: HashMap<FrameRow, FrameId> = HashMap::new();
        let rows = self.rows().enumerate();
        rows.map(|(index, row)| *firsts.entry(key(row)).or_insert(FrameId::at(index))).collect()
    }

    /// All frames, in id order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = FrameRow> + '_ {
        (0..self.len()).map(|index| self.row(FrameId::at(index)))
    }
}

impl Stacks {
    /// The innermost frame of a stack.
    #[must_use]
    pub fn frame(&self, id: StackId) -> FrameId {
        FrameId(self.frame[id.index()])
    }

    /// The stack that called the innermost frame; `None` at the root.
    #[must_use]
    pub fn parent(&self, id: StackId) -> Option<StackId> {
        Some(StackId(self.parent[id.index()])).filter(|&parent| parent != StackId::NONE)
    }

    /// The frames of a stack, innermost first. Parents come before their children, so this always ends.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let first = Some(id).filter(|&id| id != StackId::NONE);
        std::iter::successors(first, |&id| self.parent(id)).map(|id| self.frame(id))
    }
}

impl Samples {
    /// Row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> SampleRow {
        let (time, track, stack, weight, state, gil) = self.cells(index);
        SampleRow { time, track, stack, weight, state, gil: gil != 0 }
    }

    /// All samples, in the order they were taken.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = SampleRow> + '_ {
        (0..self.len()).map(|index| self.row(index))
    }
}

impl CallStats {
    /// Row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> CallRow {
        let (caller, callee, calls, primitive_calls, self_time, total_time) = self.cells(index);
        CallRow { caller, callee, calls, primitive_calls, self_time, total_time }
    }

    /// All rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = CallRow> + '_ {
        (0..self.len()).map(|index| self.row(index))
    }
}

impl LineStats {
    /// Row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> LineRow {
        let (function, line, hits, time, memory, increment) = self.cells(index);
        LineRow { function, line, hits, time, memory, increment }
    }

    /// All rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = LineRow> + '_ {
        (0..self.len()).map(|index| self.row(index))
    }
}

/// The profile tables of a frozen trace.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Functions and lines.
    pub frames: Frames,
    /// Stacks.
    pub stacks: Stacks,
    /// Samples.
    pub samples: Samples,
    /// Calls added up.
    pub calls: CallStats,
    /// Lines added up.
    pub lines: LineStats,
}

impl Profile {
    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.frames.heap_bytes()
            + self.stacks.heap_bytes()
            + self.samples.heap_bytes()
            + self.calls.heap_bytes()
            + self.lines.heap_bytes()
    }
}
