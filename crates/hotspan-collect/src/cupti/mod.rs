//! Device work through CUPTI: kernels, copies, fills, the calls that launch them, and who waits for them.
//!
//! ```no_run
//! use hotspan_collect::cupti::{Library, Options, Session};
//!
//! # fn main() -> Result<(), hotspan_collect::cupti::CuptiError> {
//! let session = Session::start(&Library::load()?, Options::default())?;
//! // … the program runs, and waits for its device …
//! let recording = session.stop();
//! # Ok(())
//! # }
//! ```
//!
//! [`library`] finds the libcupti that torch loaded ([`abi`] is its C interface), [`session`] switches it on and off,
//! [`buffers`] lends it memory and reads what comes back into [`records`]. [`calls`] chooses the runtime functions worth a
//! record, [`watch`] sees them, [`timing`] moves CUPTI's clock onto ours, [`devices`] and [`nvml`] ask the driver, and [`convert`] adds it all to
//! the trace of the operators, as an export of torch.profiler has it ([`names`], [`demangle`], [`occupancy`]).

pub mod abi;
mod buffers;
mod calls;
pub(crate) mod convert;
mod demangle;
mod devices;
mod error;
mod library;
mod names;
mod nvml;
mod occupancy;
mod records;
mod session;
mod timing;
mod watch;

pub use error::CuptiError;
pub use library::Library;
pub use session::{Options, Recording, Session, Work};
