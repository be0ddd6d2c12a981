//! Python frames read without the interpreter's help: from a signal handler on the thread itself, or from the collector
//! while a thread waits.
//!
//! This is the seam to another reader: [`Interpreter`] finds threads and where they keep their frames, [`walk`] copies a
//! chain of frames, [`CodeNames`] turns code objects into names and lines.

mod code;
mod early;
mod interpreter;
mod layout;
mod lines;
mod walk;

pub(crate) use code::CodeNames;
pub(crate) use early::Pieces;
pub(crate) use interpreter::Interpreter;
pub(crate) use walk::{MemoryWindow, walk};
