//! Building the profile tables: rows go to growing columns, frames and stacks are interned.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{
    CallStatsBuilder, FrameRow, FramesBuilder, LineStatsBuilder, Profile, SamplesBuilder, StacksBuilder,
};
use crate::ids::{FrameId, StackId};
use crate::table::Growing;

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
    use crate::profile::FrameKind;

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
}
