//! Samples of running Python processes: where every thread is, read from outside without stopping it.
//!
//! [`ProcessReader`] reads the interpreter's own structures (CPython 3.8 to 3.14, see `cpython`) in the memory of
//! the process. [`Recording`] takes samples on a [`Schedule`] and turns them into rows of a trace; [`locals`] shows the
//! variables of a frame; [`CoreFile`] has the threads of a program that died. Native
//! frames (`native`) are the exception: a thread that runs is held for the moment of the copy. Which functions cost the most is for the analyses to say.

mod code;
mod core_file;
mod error;
mod family;
mod interpreter;
pub mod locals;
mod maps;
mod memory;
mod native;
mod reader;
mod recording;
mod schedule;
mod spans;
mod state;
mod stopped;
mod target;

pub use crate::cpython::{Address, Function};
pub use crate::process_tree::ProcessNumber;
pub use code::FunctionId;
pub use core_file::CoreFile;
pub use error::SamplerError;
pub use interpreter::{Interpreter, PythonVersion};
pub use reader::{ProcessReader, WantedFrames};
pub use recording::{Recording, SampleOptions, Totals};
pub use schedule::Schedule;
pub use state::ThreadNumber;

use hotspan_store::SampleState;

/// Where a thread is in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// The line being executed; the first line of the function where none is told, 0 in native code.
    pub line: u32,
    /// Where the frame itself is, for [`locals`]; null in native code.
    pub address: Address,
}

/// A thread at one moment.
#[derive(Clone, Debug, Default)]
pub struct ThreadSample {
    /// The thread's number in the operating system; `None` where it could not be found.
    pub number: Option<ThreadNumber>,
    /// Python's own number of the thread: `threading.get_ident()`.
    pub ident: u64,
    /// The name `threading` gave it, or the operating system's.
    pub name: String,
    /// Whether it runs, or what it waits for.
    pub state: ThreadState,
    /// Whether it holds the lock of the interpreter.
    pub gil: bool,
    /// Whether the stack was changing while it was read, so that its innermost frames may not belong together.
    pub unsteady: bool,
    /// Whether the stack differs from that of the sample before.
    pub changed: bool,
    /// The stack, innermost frame first.
    pub frames: Vec<Frame>,
}

/// What a thread does. A new type because the store's has no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState(pub SampleState);

impl Default for ThreadState {
    fn default() -> Self {
        Self(SampleState::Unknown)
    }
}

impl ThreadState {
    /// Whether the thread waits rather than works.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self.0, SampleState::Lock | SampleState::Sleep | SampleState::Waiting | SampleState::Io)
    }

    /// A word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self.0 {
            SampleState::Unknown => "unknown",
            SampleState::Running => "running",
            SampleState::Io => "i/o",
            SampleState::Lock => "lock",
            SampleState::Sleep => "sleep",
            SampleState::Waiting => "waiting",
        }
    }
}
