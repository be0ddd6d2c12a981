//! The rows of the profile tables, one type for each.

use crate::ids::{FrameId, StackId, StringId, TrackId};
use crate::table::codes;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;

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
