//! The frames of one thread, innermost first.
//!
//! A thread may push or pop frames while they are read, so any pointer may be stale. This also runs in a signal handler:
//! it allocates nothing, takes no lock and does not panic.

use super::memory::{Address, Memory, half_at, word_at};
use super::offsets::{EntryRule, Offsets};

const DEEPEST: usize = 1 << 16;
/// No version has its fields further from the beginning of a frame.
const LONGEST_FRAME: usize = 128;
/// Owners of frames from here on are the interpreter itself.
const FIRST_INNER_OWNER: u8 = 3;

/// A frame before its code is read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawFrame {
    pub(crate) address: Address,
    /// The code object; null for the frame that the interpreter leaves where C called it.
    pub(crate) code: Address,
    /// The instruction: a pointer, or its number up to Python 3.10.
    pub(crate) instruction: u64,
    /// Whether C called the interpreter here: the outermost frame of one call of the evaluation loop.
    pub(crate) is_entry: bool,
}

impl RawFrame {
    fn decode(offsets: &Offsets, address: Address, bytes: &[u8]) -> Self {
        let byte = |offset: usize| bytes.get(offset).copied().unwrap_or(0);
        // The lowest bits of a pointer hold marks from 3.14 on.
        let code = Address(word_at(bytes, offsets.frame_code) & !7);
        let instruction = word_at(bytes, offsets.frame_instruction);
        match offsets.frame_entry {
            EntryRule::Always => {
                let instruction = u64::from(half_at(bytes, offsets.frame_instruction));
                Self { address, code, instruction, is_entry: true }
            }
            EntryRule::Flag(flag) => Self { address, code, instruction, is_entry: byte(flag) != 0 },
            EntryRule::Owner(owner) if byte(owner) >= FIRST_INNER_OWNER => {
                Self { address, code: Address(0), instruction, is_entry: true }
            }
            EntryRule::Owner(_) => Self { address, code, instruction, is_entry: false },
        }
    }
}

/// Shows the frames of a thread to `visit` until it has seen enough and answers `false`.
pub(crate) fn walk<M: Memory>(
    offsets: &Offsets,
    memory: &M,
    thread: Address,
    mut visit: impl FnMut(RawFrame) -> bool,
) -> Result<(), M::Error> {
    let mut frame = memory.pointer(thread.field(offsets.thread_frame))?;
    if let Some(offset) = offsets.c_frame
        && !frame.is_null()
    {
        frame = memory.pointer(frame.field(offset))?;
    }
    let mut bytes = [0; LONGEST_FRAME];
    let bytes = bytes.get_mut(..offsets.frame_length()).ok_or_else(|| memory.malformed("a frame"))?;
    for _ in 0..DEEPEST {
        if frame.is_null() {
            return Ok(());
        }
        if frame.0 <= 4096 || !frame.0.is_multiple_of(8) {
            return Err(memory.malformed("a pointer to a frame"));
        }
        memory.read(frame, bytes)?;
        let decoded = RawFrame::decode(offsets, frame, bytes);
        let previous = Address(word_at(bytes, offsets.frame_previous));
        let is_base = offsets.has_base_frame && previous.is_null() && decoded.code.is_null();
        if is_base || !visit(decoded) {
            return Ok(());
        }
        if previous == frame {
            break;
        }
        frame = previous;
    }
    Err(memory.malformed("a stack without end"))
}
