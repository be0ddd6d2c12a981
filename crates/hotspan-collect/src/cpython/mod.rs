//! CPython's structures in memory, for the sampler of other processes and for the one within a process.
//!
//! Everything is read through [`Memory`], so that one piece of code serves both. [`Offsets`] says where fields are in each
//! version: [`offsets`] has a table for each one before 3.13, [`debug_offsets`] reads what newer ones say about themselves.
//! [`frames`] follows the frames of a thread, [`code`] keeps the code objects that were met, [`lines`] decodes their line
//! tables; [`objects`] and [`dicts`] read Python objects.
//!
//! A new version of Python needs a table in `debug_offsets` and a test there.

mod code;
mod debug_offsets;
mod dicts;
mod frames;
mod lines;
mod memory;
mod objects;
mod offsets;
mod thread_names;

pub use code::Function;
pub(crate) use code::{CodeCache, MOST_COPIES};
pub(crate) use frames::{RawFrame, walk};
pub use memory::Address;
pub(crate) use memory::{Memory, half_at, word_at};
pub(crate) use objects::{Integer, Objects};
pub(crate) use offsets::{Gil, Offsets, PYTHON_3_10, PYTHON_3_11};
pub(crate) use thread_names::thread_names;
