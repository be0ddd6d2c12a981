//! What importers of stacks share: frames by name, file and line, and stacks built from them.

use hashbrown::HashMap;
use hotspan_store::{
    Duration, FrameId, FrameKind, FrameRow, SampleRow, SampleState, StackId, Timestamp, TraceBuilder, TrackId,
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

/// Frames met by their text.
pub(super) type FrameTexts = HashMap<String, FrameId>;
