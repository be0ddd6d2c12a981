//! Building the profile tables: rows go to growing columns, frames and stacks are interned.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{
    CallStatsBuilder, FrameRow, FramesBuilder, LineStatsBuilder, Profile, SamplesBuilder, StacksBuilder,
};
use crate::ids::{FrameId, StackId};
use crate::table::Growing;

/// Calls around each other that a stack may have: analyses walk each stack, and a file can share the outer calls of many, so that
/// the work would grow with the square of the file. Recursion of real programs is not that deep.
pub(crate) const DEEPEST: u16 = 4_096;

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
    /// How many frames each stack has.
    depths: Vec<u16>,
    /// Frames left out of stacks that are too deep, and not counted as a loss yet.
    left_out: u64,
    /// How many frames and stacks were handed out to be written.
    written: (usize, usize),
}

impl ProfileBuilder {
    pub(crate) fn frame(&mut self, row: FrameRow) -> FrameId {
        let (frames, hasher) = (&mut self.frames, &self.hasher);
        let cells = (row.name, row.file, row.line, row.first_line, row.kind);
        let hash = hasher.hash_one(cells);
        if let Some(&known) = self.frame_ids.find(hash, |&known| frames.row(known as usize) == cells) {
            return FrameId(known);
        }
        let id = frames.len() as u32;
        frames.push(cells);
        self.frame_ids.insert_unique(hash, id, |&known| hasher.hash_one(frames.row(known as usize)));
        FrameId(id)
    }

    pub(crate) fn stack(&mut self, parent: StackId, frame: FrameId) -> StackId {
        let depth = self.depth(parent);
        if depth == DEEPEST {
            self.left_out += 1;
            return parent;
        }
        let (stacks, hasher) = (&mut self.stacks, &self.hasher);
        let hash = hasher.hash_one((parent, frame));
        if let Some(&known) =
            self.stack_ids.find(hash, |&known| stacks.row(known as usize) == (parent, frame))
        {
            return StackId(known);
        }
        let id = stacks.len() as u32;
        stacks.push((parent, frame));
        self.depths.push(depth + 1);
        self.stack_ids.insert_unique(hash, id, |&known| hasher.hash_one(stacks.row(known as usize)));
        StackId(id)
    }

    /// Frames left out of stacks since this was last asked.
    pub(crate) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    fn depth(&self, stack: StackId) -> u16 {
        if stack == StackId::NONE { 0 } else { self.depths[stack.index()] }
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
        for index in first_stack..self.stacks.len() {
            let (parent, _) = self.stacks.row(index);
            let depth = self.depth(parent);
            if depth == DEEPEST {
                // Its id stays, and means the stack that is as deep as may be.
                self.left_out += 1;
                let (parent, frame) = self.stacks.row(parent.index());
                (self.stacks.parent[index], self.stacks.frame[index]) = (parent.0, frame.0);
            }
            self.depths.push(DEEPEST.min(depth + 1));
        }
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

    /// Hands all frames and stacks out again.
    pub(crate) fn write_again(&mut self) {
        self.written = (0, 0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StringId;
    use crate::profile::{FrameKind, Stacks};

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
    fn a_stack_has_an_end() {
        let mut builder = ProfileBuilder::default();
        let deep = (0..10_000).fold(StackId::NONE, |stack, frame| builder.stack(stack, FrameId(frame)));
        assert_eq!(builder.take_left_out(), 10_000 - u64::from(DEEPEST));
        assert_eq!(builder.take_left_out(), 0);
        assert_eq!(builder.finish().stacks.frames(deep).count(), usize::from(DEEPEST));
    }

    #[test]
    fn a_stack_of_a_file_has_an_end_and_its_id() {
        let mut written = StacksBuilder::default();
        let parents = std::iter::once(StackId::NONE).chain((0..).map(StackId));
        parents.take(10_000).zip(0..).for_each(|(parent, frame)| written.push((parent, FrameId(frame))));
        let columns = written.finish().slice_columns(0, 10_000);
        let rows = arrow_array::StructArray::new(Stacks::fields().into(), columns, None);
        let mut builder = ProfileBuilder::default();
        builder.extend_interned(None, Some(&rows)).expect("the rows are stacks");
        assert_eq!(builder.take_left_out(), 10_000 - u64::from(DEEPEST));
        let stacks = builder.finish().stacks;
        assert_eq!(stacks.len(), 10_000);
        for (stack, frames) in [(10, 11), (9_999, usize::from(DEEPEST))] {
            assert_eq!(stacks.frames(StackId(stack)).count(), frames);
        }
    }
}
