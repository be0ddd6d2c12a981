//! The profile tables: what profilers of Python and native code know. Samples with their stacks, function calls and
//! lines added up. Frames and stacks are interned, so a stack is one number wherever it is met.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{FrameId, StackId, StringId, TrackId};
use crate::table::{Cell, table};
use crate::units::{Bytes, Duration, Timestamp};

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// Python code; `file` is its source.
    Python,
    /// C, C++ or Rust code; `file` is the library it is in.
    Native,
    /// A function of C called from Python, as cProfile names them: `{built-in method builtins.len}`.
    Builtin,
}

/// What a thread was doing when a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleState {
    /// The source did not say.
    Unknown,
    /// On a processor, or ready for one.
    Running,
    /// Blocked in a read, a write or another transfer.
    Io,
    /// Waiting for a lock or another thread.
    Lock,
    /// Sleeping because the program asked to.
    Sleep,
    /// Waiting for something else.
    Waiting,
}

macro_rules! codes {
    ($($name:ident { $($code:literal => $variant:ident,)* _ => $other:ident })*) => {$(
        impl Cell for $name {
            type Native = u8;
            type Arrow = arrow_array::types::UInt8Type;
            fn to_native(self) -> u8 {
                self as u8
            }
            fn from_native(native: u8) -> Self {
                match native {
                    $($code => Self::$variant,)*
                    _ => Self::$other,
                }
            }
        }
    )*};
}

codes! {
    FrameKind { 0 => Python, 1 => Native, _ => Builtin }
    SampleState { 1 => Running, 2 => Io, 3 => Lock, 4 => Sleep, 5 => Waiting, _ => Unknown }
}

impl FrameKind {
    /// The largest code in a file.
    pub(crate) const LAST: u8 = Self::Builtin as u8;
}

impl SampleState {
    /// The largest code in a file.
    pub(crate) const LAST: u8 = Self::Waiting as u8;
}

/// A function, and the line of it that was being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRow {
    /// The function, with its class where known.
    pub name: StringId,
    /// The source file, or the library of native code.
    pub file: StringId,
    /// The line being executed; 0 where that is not known or not meant.
    pub line: u32,
    /// The line the function begins at; 0 where unknown.
    pub first_line: u32,
    /// What kind of code it is.
    pub kind: FrameKind,
}

/// What a thread was doing at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRow {
    /// When.
    pub time: Timestamp,
    /// The thread.
    pub track: TrackId,
    /// Where it was.
    pub stack: StackId,
    /// How much time the sample stands for, from `time` on.
    pub weight: Duration,
    /// Whether it ran or what it waited for.
    pub state: SampleState,
    /// Whether it held the lock of the Python interpreter.
    pub gil: bool,
}

/// Calls of a function, added up as cProfile does: all of them, or those from one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// Where the calls came from; [`FrameId::NONE`] for the sum over all callers.
    pub caller: FrameId,
    /// The function that was called.
    pub callee: FrameId,
    /// How many calls.
    pub calls: i64,
    /// How many of them were not made from within the function itself.
    pub primitive_calls: i64,
    /// Time in the function itself: pstats' tottime.
    pub self_time: Duration,
    /// Time in the function and all it called: pstats' cumtime.
    pub total_time: Duration,
}

/// One line of a function, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The function the line belongs to.
    pub function: FrameId,
    /// The line in its file.
    pub line: u32,
    /// How often it was executed.
    pub hits: i64,
    /// Time spent on it.
    pub time: Duration,
    /// Memory of the process after it, the most that was seen; 0 where not measured.
    pub memory: Bytes,
    /// By how much the process grew on it, all times added up.
    pub increment: Bytes,
}

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
        let index = id.index();
        FrameRow {
            name: StringId(self.name[index]),
            file: StringId(self.file[index]),
            line: self.line[index],
            first_line: self.first_line[index],
            kind: FrameKind::from_native(self.kind[index]),
        }
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
        SampleRow {
            time: Timestamp(self.time[index]),
            track: TrackId(self.track[index]),
            stack: StackId(self.stack[index]),
            weight: Duration(self.weight[index]),
            state: SampleState::from_native(self.state[index]),
            gil: self.gil[index] != 0,
        }
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
        CallRow {
            caller: FrameId(self.caller[index]),
            callee: FrameId(self.callee[index]),
            calls: self.calls[index],
            primitive_calls: self.primitive_calls[index],
            self_time: Duration(self.self_time[index]),
            total_time: Duration(self.total_time[index]),
        }
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
        LineRow {
            function: FrameId(self.function[index]),
            line: self.line[index],
            hits: self.hits[index],
            time: Duration(self.time[index]),
            memory: Bytes(self.memory[index]),
            increment: Bytes(self.increment[index]),
        }
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

/// The profile tables while they grow. Frames and stacks stay when rows are taken out to be written, so that ids go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileBuilder {
    pub(crate) frames: FramesBuilder,
    pub(crate) stacks: StacksBuilder,
    pub(crate) samples: SamplesBuilder,
    pub(crate) calls: CallStatsBuilder,
    pub(crate) lines: LineStatsBuilder,
    frame_ids: HashTable<u32>,
    stack_ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// How many frames and stacks were handed out to be written.
    written: (usize, usize),
}

impl ProfileBuilder {
    pub(crate) fn frame(&mut self, row: FrameRow) -> FrameId {
        let (frames, hasher) = (&mut self.frames, &self.hasher);
        let hash = hasher.hash_one(row);
        if let Some(&known) = self.frame_ids.find(hash, |&known| frames.row(known as usize) == row) {
            return FrameId(known);
        }
        let id = frames.len() as u32;
        frames.push((row.name, row.file, row.line, row.first_line, row.kind));
        self.frame_ids.insert_unique(hash, id, |&known| hasher.hash_one(frames.row(known as usize)));
        FrameId(id)
    }

    pub(crate) fn stack(&mut self, parent: StackId, frame: FrameId) -> StackId {
        let (stacks, hasher) = (&mut self.stacks, &self.hasher);
        let hash = hasher.hash_one((parent, frame));
        if let Some(&known) =
            self.stack_ids.find(hash, |&known| stacks.row(known as usize) == (parent, frame))
        {
            return StackId(known);
        }
        let id = stacks.len() as u32;
        stacks.push((parent, frame));
        self.stack_ids.insert_unique(hash, id, |&known| hasher.hash_one(stacks.row(known as usize)));
        StackId(id)
    }

    /// Adds frames and stacks read from a file, so that what is interned later finds them. The caller has checked them.
    pub(crate) fn extend_interned(
        &mut self,
        frames: Option<&arrow_array::StructArray>,
        stacks: Option<&arrow_array::StructArray>,
    ) -> Option<()> {
        let (first_frame, first_stack) = (self.frames.len(), self.stacks.len());
        frames.map_or(Some(()), |rows| self.frames.extend_from_arrow(rows))?;
        stacks.map_or(Some(()), |rows| self.stacks.extend_from_arrow(rows))?;
        let (frames, stacks, hasher) = (&self.frames, &self.stacks, &self.hasher);
        for index in first_frame..frames.len() {
            let hash = |&known: &u32| hasher.hash_one(frames.row(known as usize));
            self.frame_ids.insert_unique(hash(&(index as u32)), index as u32, hash);
        }
        for index in first_stack..stacks.len() {
            let hash = |&known: &u32| hasher.hash_one(stacks.row(known as usize));
            self.stack_ids.insert_unique(hash(&(index as u32)), index as u32, hash);
        }
        Some(())
    }

    /// What is new since the last time. Frames and stacks are copied and stay, the rest moves out.
    pub(crate) fn take_rows(&mut self) -> Profile {
        let (frames, stacks) = self.written;
        self.written = (self.frames.len(), self.stacks.len());
        Profile {
            frames: self.frames.copy_from(frames),
            stacks: self.stacks.copy_from(stacks),
            samples: self.samples.take(),
            calls: self.calls.take(),
            lines: self.lines.take(),
        }
    }

    pub(crate) fn finish(self) -> Profile {
        Profile {
            frames: self.frames.finish(),
            stacks: self.stacks.finish(),
            samples: self.samples.finish(),
            calls: self.calls.finish(),
            lines: self.lines.finish(),
        }
    }
}

impl FramesBuilder {
    fn row(&self, index: usize) -> FrameRow {
        FrameRow {
            name: StringId(self.name[index]),
            file: StringId(self.file[index]),
            line: self.line[index],
            first_line: self.first_line[index],
            kind: FrameKind::from_native(self.kind[index]),
        }
    }
}

impl StacksBuilder {
    fn row(&self, index: usize) -> (StackId, FrameId) {
        (StackId(self.parent[index]), FrameId(self.frame[index]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_frames_and_stacks_share_an_id() {
        let mut builder = ProfileBuilder::default();
        let frame = |line| FrameRow {
            name: StringId(1),
            file: StringId(2),
            line,
            first_line: 1,
            kind: FrameKind::Python,
        };
        let (outer, inner) = (builder.frame(frame(3)), builder.frame(frame(4)));
        assert_ne!(outer, inner);
        assert_eq!(builder.frame(frame(3)), outer);
        let root = builder.stack(StackId::NONE, outer);
        let leaf = builder.stack(root, inner);
        assert_eq!(builder.stack(root, inner), leaf);
        assert_ne!(builder.stack(StackId::NONE, inner), leaf);
        let profile = builder.finish();
        assert_eq!(profile.stacks.frames(leaf).collect::<Vec<_>>(), [inner, outer]);
        assert_eq!(profile.stacks.frames(StackId::NONE).count(), 0);
    }

    #[test]
    fn codes_survive() {
        for kind in [FrameKind::Python, FrameKind::Native, FrameKind::Builtin] {
            assert_eq!(FrameKind::from_native(kind.to_native()), kind);
        }
        use SampleState::{Io, Lock, Running, Sleep, Unknown, Waiting};
        for state in [Unknown, Running, Io, Lock, Sleep, Waiting] {
            assert_eq!(SampleState::from_native(state.to_native()), state);
        }
    }
}
