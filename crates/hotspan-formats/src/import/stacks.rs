//! What importers of stacks share: frames by name, file and line, and stacks built from them.

use hashbrown::HashMap;
use hotspan_store::{
    Duration, FrameId, FrameKind, FrameRow, Loss, SampleRow, SampleState, StackId, Timestamp, TraceBuilder,
    TrackId,
};

/// Frames of a file, added once.
pub(super) fn frame(builder: &mut TraceBuilder, name: &str, file: &str, line: u32) -> FrameId {
    let kind = if file.is_empty() || is_native(file) { FrameKind::Native } else { FrameKind::Python };
    let (name, file) = (builder.intern(name), builder.intern(file));
    builder.frame(FrameRow { name, file, line, first_line: 0, kind })
}

fn is_native(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.ends_with(".so") || name.contains(".so.") || name.ends_with(".c") || name.ends_with(".cpp")
}

/// Adds a sample.
pub(super) fn sample(builder: &mut TraceBuilder, track: TrackId, stack: StackId, time: i64, weight: i64) {
    if stack != StackId::NONE {
        let (time, weight) = (Timestamp(time), Duration(weight));
        let row = SampleRow { time, track, stack, weight, state: SampleState::Unknown, gil: false };
        builder.push_sample(row);
    }
}

/// Calls around each other that a stack may have. A file can share outer calls between samples, so that deeper stacks would make
/// the work of analyses, which walk each of them, grow with the square of the file.
const DEEPEST: usize = 1_000;

/// A stack that grows inwards; what lies too deep is counted and left out.
#[derive(Clone, Copy)]
pub(super) struct GrowingStack {
    pub(super) id: StackId,
    depth: usize,
}

impl GrowingStack {
    pub(super) const EMPTY: Self = Self { id: StackId::NONE, depth: 0 };

    /// The stack with a call inside.
    pub(super) fn with(self, builder: &mut TraceBuilder, frame: FrameId) -> Self {
        if self.depth == DEEPEST {
            builder.losses.add(Loss::DeepStack, None);
            return self;
        }
        Self { id: builder.stack(self.id, frame), depth: self.depth + 1 }
    }
}

/// Frames met by their text.
pub(super) type FrameTexts = HashMap<String, FrameId>;
