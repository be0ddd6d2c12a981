//! Samples of this process, from within: Python and native frames of every thread in one stack, and what waiting threads
//! wait for.
//!
//! ```no_run
//! use hotspan_collect::native::{Options, Recorder};
//!
//! # fn main() -> Result<(), hotspan_collect::native::SampleError> {
//! let recorder = Recorder::start(Options::default())?;
//! // … the program runs …
//! let trace = recorder.stop()?.builder.finish();
//! # Ok(())
//! # }
//! ```
//!
//! A timer on each thread's own processor time ([`timer`]) signals that thread ([`signal`]); the [`handler`] copies registers, stack and
//! Python frames into one of the [`slots`]. The [`collector`] thread follows the copies by the unwind tables of
//! libraries ([`unwind`], [`guess`], [`library`], [`symbols`], [`names`]), reads code objects ([`python`]), and merges both ([`merge`],
//! [`resolve`]). Threads that do not run are looked at from outside ([`threads`]);
//! those that came and went between two looks are accounted for by the clock of the process ([`unseen`]). [`recorder`] starts and
//! stops; [`rows`] holds what was gathered until it becomes a trace.

mod collector;
mod error;
#[cfg(target_arch = "x86_64")]
mod guess;
mod handler;
mod library;
mod memory;
mod merge;
mod names;
mod options;
mod python;
mod recorder;
mod resolve;
mod rows;
mod signal;
mod slots;
mod symbols;
mod threads;
mod timer;
mod unseen;
mod unwind;

pub use error::SampleError;
pub(crate) use memory::Subject;
pub use memory::address_space_is_limited;
pub(crate) use merge::{Role, merge};
pub use options::{Options, Rate};
pub use recorder::{Recorder, Stopped};
pub use signal::Lent;
pub(crate) use slots::{Registers, STACK_BYTES};
pub use symbols::FunctionNames;
pub(crate) use timer::cpu_time;
pub(crate) use unwind::{NativeFunction, Unwinder};
