//! What is remembered of a thread from one look to the next.

use std::time::Instant;

use super::super::spans::Span;
use super::super::state::{StateFiles, ThreadNumber};
use super::super::{Frame, ThreadState};
use crate::cpython::{Address, RawFrame};

/// A thread met in the walk before.
#[derive(Debug, Default)]
pub(super) struct ThreadCache {
    pub(super) address: Address,
    pub(super) number: Option<ThreadNumber>,
    pub(super) ident: u64,
    /// The thread's number as Python has it; a new thread may get the memory of an old one.
    pub(super) python_number: u64,
    pub(super) name: String,
    /// Whether the name is that of `threading`, which may not be loaded yet when a thread is first met.
    pub(super) named: bool,
    pub(super) raw: Vec<RawFrame>,
    pub(super) frames: Vec<Frame>,
    pub(super) spans: Vec<Span>,
    pub(super) files: StateFiles,
    pub(super) state: ThreadState,
    pub(super) looked: Option<Instant>,
    /// Where its pieces begin in this walk, the thread's own state first, and how many there are.
    pub(super) pieces: (usize, usize),
}
