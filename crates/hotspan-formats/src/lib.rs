//! The door in and out: files of other tools to a [`Trace`](hotspan_store::Trace) and back.
//!
//! [`open`] finds the format by content, never by name, and reads through gzip and zstd. An importer is one file in
//! [`import`] and one line in its list; an exporter likewise in [`export`].

#![forbid(unsafe_code)]

mod error;
pub mod export;
pub mod import;
mod input;
mod memory_limit;
mod output;
mod trace_name;

pub use error::{ExportError, ImportError, OpenError, TOO_MUCH_MEMORY};
pub use export::{EXPORTERS, Exporter, save, save_by};
pub use import::{IMPORTERS, Importer, Sniff, open, open_adding, open_with, read};
pub use input::{Input, Progress};
pub use memory_limit::{held_memory, memory_limit, most_events, parse_size, set_memory_limit};
pub use output::{check_place, unfinished_files, write_file};
pub use trace_name::{TRACE_ENDINGS, one_of_each_worker, trace_stem, uncompressed, worker};
