//! Python frames of this process, read without the interpreter's help: from a signal handler on the thread itself, or from
//! the collector while a thread waits.
//!
//! [`Interpreter`] finds threads, [`MemoryWindow`] copies their frames, [`Codes`] turns code objects into names and lines;
//! [`CodeCopies`] has those that may be gone by then. Where things are in memory is for [`crate::cpython`] to say.

mod code;
mod early;
mod interpreter;
mod window;

pub(crate) use code::Codes;
pub(crate) use early::CodeCopies;
pub(crate) use interpreter::Interpreter;
pub(crate) use window::MemoryWindow;
