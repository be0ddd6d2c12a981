//! The `.hotspan` file: a trace as an Arrow IPC stream that can grow while a program runs and survives its death.
//!
//! Each record batch is a *chunk* of one row: every column is a list that holds what the chunk adds to one table. A
//! chunk refers only to itself and to chunks before it and carries a checksum, so whatever was written before a crash,
//! a full disk or a flipped bit can be read. `docs/format.md` describes every column for those who read the file
//! with other tools; this module is the only code that knows them.
//!
//! ```
//! use hotspan_store::{TraceBuilder, file};
//!
//! let trace = TraceBuilder::new().finish();
//! let mut bytes = Vec::new();
//! file::write_trace(&trace, &mut bytes)?;
//! assert!(file::is_hotspan(&bytes));
//! let again = file::read(bytes.as_slice(), &mut |_| true)?;
//! assert_eq!(hotspan_store::first_difference(&trace, &again), None);
//! # Ok::<(), file::FileError>(())
//! ```

mod accept;
mod check;
mod checksum;
mod chunk;
mod columns;
mod error;
mod message;
mod packed;
mod read;
mod schema;
mod write;

pub use error::FileError;
pub(crate) use read::Chunks;
pub use read::{is_hotspan, read, read_builder};
pub use write::{Writer, write_trace};
