//! Calls of Python functions and of functions of C, every one of them, on every thread.
//!
//! [`tracer`] starts and stops, [`monitoring`] (Python 3.12 and newer) and [`set_profile`] (before) bring the events, [`events`]
//! says what to do at one, [`threads`] finds what the thread keeps, [`thread`] is that, with its [`edges`], [`functions`]
//! names what was called, [`rows`] and [`spans`] make tables and traces of it. The interpreter is in `crate::interpreter`.

mod edges;
mod events;
mod functions;
mod monitoring;
mod rows;
mod set_profile;
mod spans;
mod thread;
mod threads;
mod tracer;

pub use crate::interpreter::{Object, Owned, Ptr};
pub use rows::{CallSums, CallTable, CalledFunction, SpanTable};
pub use tracer::{Options, Tracer};

/// Why calls cannot be traced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallsError {
    /// There is no Python in this process.
    #[error("there is no Python interpreter in this process")]
    NoInterpreter,
    /// Somebody traces already.
    #[error(
        "calls are traced already in this process. hint: one hotspan profile of calls can run at a time; stop the other one first"
    )]
    AlreadyTracing,
    /// All tool ids are taken.
    #[error(
        "all tool ids of sys.monitoring are in use. hint: stop another profiler, debugger or coverage tool first"
    )]
    NoToolId,
    /// The interpreter does not do what it should.
    #[error("this Python does not report calls")]
    NoEvents,
}
