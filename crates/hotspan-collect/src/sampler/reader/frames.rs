//! The frames of one thread, innermost first, out of what was fetched or read now.

use super::super::error::SamplerError;
use super::super::layout::{FrameRoot, Layout};
use super::super::memory::{Address, Memory, half_at, word_at};
use super::super::spans::{Span, View, cover};

const DEEPEST: usize = 1 << 16;
/// Owners of frames from here on are the interpreter itself.
const FIRST_INNER_OWNER: u8 = 3;

/// A frame before its function is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawFrame {
    pub(super) address: Address,
    pub(super) code: Address,
    pub(super) instruction: u64,
}

/// Where the frames may lie next time. `root` is what the thread points to, which need not be a frame.
pub(super) fn guess(
    layout: &Layout,
    root: Address,
    raw: &[RawFrame],
    places: &mut Vec<Address>,
    spans: &mut Vec<Span>,
) {
    places.clear();
    places.extend(raw.iter().map(|frame| frame.address));
    cover(places, layout.frame_length(), layout.frame_owner.is_some(), spans);
    if let FrameRoot::Indirect(offset) = layout.frame_root
        && !root.is_null()
    {
        spans.push(Span { start: root, length: offset + 8 });
    }
}

/// The innermost Python frame of a thread, read now.
pub(super) fn innermost_frame(
    memory: &Memory,
    layout: &Layout,
    thread: Address,
) -> Result<Address, SamplerError> {
    let mut frame = memory.pointer(thread.plus(layout.thread_frame as u64))?;
    if let FrameRoot::Indirect(offset) = layout.frame_root {
        frame = memory.pointer(frame.plus(offset as u64))?;
    }
    // Frames of the interpreter itself are passed over, as everywhere.
    while let (Some(owner), false) = (layout.frame_owner, frame.is_null()) {
        let mut byte = [0];
        memory.read(frame.plus(owner as u64), &mut byte)?;
        if byte[0] < FIRST_INNER_OWNER {
            break;
        }
        frame = memory.pointer(frame.plus(layout.frame_previous as u64))?;
    }
    Ok(frame)
}

/// Follows the frames of a thread, innermost first. What the view does not hold is read; how often is the answer.
pub(super) fn read_frames(
    memory: &Memory,
    layout: &Layout,
    thread: Address,
    view: View<'_>,
    raw: &mut Vec<RawFrame>,
) -> Result<usize, SamplerError> {
    const LONGEST_FRAME: usize = 256;
    raw.clear();
    let mut misses = 0;
    let mut word = |place: Address| match view.get(place, 8) {
        Some(bytes) => Ok(Address(word_at(bytes, 0))),
        None => {
            misses += 1;
            memory.pointer(place)
        }
    };
    let mut frame = word(thread.plus(layout.thread_frame as u64))?;
    if let FrameRoot::Indirect(offset) = layout.frame_root
        && !frame.is_null()
    {
        frame = word(frame.plus(offset as u64))?;
    }
    let length = layout.frame_length().min(LONGEST_FRAME);
    let mut steps = 0;
    while !frame.is_null() {
        steps += 1;
        if steps > DEEPEST {
            return Err(memory.unreadable("a stack without end"));
        }
        let mut fresh = [0; LONGEST_FRAME];
        let bytes = match view.get(frame, length) {
            Some(bytes) => bytes,
            None => {
                misses += 1;
                memory.read(frame, &mut fresh[..length])?;
                &fresh[..length]
            }
        };
        let inner = layout.frame_owner.is_some_and(|owner| bytes[owner] >= FIRST_INNER_OWNER);
        // The lowest bits of a pointer hold marks from 3.14 on.
        let code = Address(word_at(bytes, layout.frame_code) & !7);
        if !inner && !code.is_null() {
            let instruction = match layout.frame_owner {
                Some(_) => word_at(bytes, layout.frame_instruction),
                None => u64::from(half_at(bytes, layout.frame_instruction)),
            };
            raw.push(RawFrame { address: frame, code, instruction });
        }
        frame = Address(word_at(bytes, layout.frame_previous));
    }
    Ok(misses)
}
