//! Lines of Python: how often each was executed, how long it took, how the process grew on it.
//!
//! Only chosen functions are watched. On Python 3.12 and newer the interpreter calls [`monitoring`] for their lines alone
//! (PEP 669); before, [`tracing`] is called for every line of a thread while it is inside a chosen function, and returns at
//! once from all others. Both tell [`active`], which keeps the frames each thread is in and adds up in the
//! [`tables`]. [`recorder`] is what the rest of hotspan sees.
//!
//! Python's own types are handled as opaque pointers through functions that [`python`] finds at run time, so that one build
//! runs on every version and this crate links without Python. Asking the interpreter to call us is left to the Python
//! module. Everything here happens with the GIL held, or in a free-threaded build attached to the interpreter:
//! [`shared`] keeps what all threads look at, and tables are added to so that nothing is lost when threads run side by side.

mod active;
pub mod monitoring;
mod quiet;
mod recorder;
mod resident;
mod shared;
mod tables;
pub mod tracing;

pub use crate::interpreter::Object;
pub use recorder::{Function, LineRecorder, Measure};
pub(crate) use resident::page_size;
pub use resident::resident_bytes;

/// Lines cannot be recorded in this process.
#[derive(Clone, Debug, thiserror::Error)]
#[error("this process has no Python that recording lines knows; use CPython 3.10 or newer")]
pub struct PythonApiError;

/// Finds Python's functions; callbacks do nothing before this has succeeded once. The GIL is held.
///
/// # Errors
/// When this process is not a CPython that hotspan knows.
pub fn check() -> Result<(), PythonApiError> {
    crate::interpreter::Interpreter::get().map(|_| ()).ok_or(PythonApiError)
}
