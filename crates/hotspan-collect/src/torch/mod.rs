//! Torch operators, autograd nodes, user ranges and allocations, recorded on every thread.
//!
//! ```no_run
//! use hotspan_collect::torch::{Options, Session, Shim};
//! use std::path::Path;
//!
//! # fn main() -> Result<(), hotspan_collect::torch::CollectError> {
//! let torch = Path::new("/usr/lib/python3/dist-packages/torch"); // dirname(torch.__file__)
//! let shim = Shim::load(torch)?; // came with hotspan, or is compiled on first use
//! let session = Session::start(&shim, Options { shapes: true, ..Options::default() })?;
//! // … the program runs …
//! let trace = session.stop().into_builder().finish();
//! # Ok(())
//! # }
//! ```
//!
//! [`install`] finds torch. [`hooks`] chooses the C++ shim for it: [`carried`] has those of the wheel, [`build`] compiles
//! against its headers into the [`cache`], which [`trust`] examines, [`handover`] tells a program what its launcher chose; [`shim`] loads it. [`session`] starts and
//! stops, [`Stream`] takes what there is while it runs, [`threads`] owns the buffers that the shim writes to (layout: [`abi`]), [`convert`] and [`inputs`] turn records
//! into the trace that importing an export of torch.profiler would give. [`marks`] adds what the program's tensors are.

mod abi;
mod build;
mod cache;
mod carried;
mod convert;
mod error;
mod fingerprint;
pub mod handover;
mod hooks;
mod inputs;
mod install;
mod marks;
mod session;
mod shim;
mod threads;
mod trust;

pub use convert::{InputTensor, Stream, TensorTable};
pub use error::CollectError;
pub use hooks::{Hooks, Origin};
pub use install::TorchInstall;
pub use marks::{Mark, MarkedBlock, push_mark};
pub use session::{Options, Recording, Session};
pub use shim::{Shim, look_for_torch};
