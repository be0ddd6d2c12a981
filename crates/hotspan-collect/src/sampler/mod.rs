//! Samples of running Python processes: where every thread is, read from outside without ever stopping it.
//!
//! [`Reader`] walks the interpreter's own structures in the memory of the process (CPython 3.8 to 3.14) and is the
//! [`Walker`] that everything else uses. [`Recording`] takes samples on a [`Schedule`] and turns them into rows of a
//! trace; [`locals`] shows the variables of a frame. Which functions cost the most is for
//! the analyses to say.

mod code;
mod error;
mod family;
mod interpreter;
mod layout;
mod lines;
pub mod locals;
mod maps;
mod memory;
mod names;
mod objects;
mod reader;
mod recording;
mod schedule;
mod spans;
mod state;
mod target;

pub use crate::process_tree::ProcessNumber;
pub use code::{Function, FunctionId};
pub use error::SamplerError;
pub use interpreter::{Interpreter, PythonVersion};
pub use memory::Address;
pub use reader::Reader;
pub use recording::{Recording, SampleOptions, Totals};
pub use schedule::Schedule;
pub use state::ThreadNumber;

use hotspan_store::SampleState;

/// Where a thread is in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// The line being executed; 0 where that is not known.
    pub line: u32,
    /// Where the frame itself is, for [`locals`].
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

/// How a look went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// How many threads could not be read, because their stacks changed too fast or were torn.
    pub failed: u32,
}

/// What walks a process: all threads with their stacks, now.
pub trait Walker {
    /// Takes one look. `threads` is filled anew; its memory is used again.
    ///
    /// # Errors
    /// When the process has ended, or its memory could not be read this time.
    fn walk(&mut self, threads: &mut Vec<ThreadSample>) -> Result<Look, SamplerError>;

    /// A function that was met.
    fn function(&self, id: FunctionId) -> &Function;
}
