//! The `Trace`: everything a profiler recorded, in columns.
//!
//! A [`TraceBuilder`] takes events one at a time (from an importer or a live collector) and [`TraceBuilder::finish`]
//! freezes them into a [`Trace`], which analyses read and exporters write. Strings are interned once, events are
//! rows of typed columns, and whatever an event carries beyond the fixed columns (its *args*) is stored in columns
//! too, one small table per distinct list of keys: see [`args`].
//!
//! ```
//! use hotspan_store::{Duration, EventRow, Ident, SpanRow, Timestamp, TraceBuilder};
//!
//! let mut builder = TraceBuilder::new();
//! let track = builder.track(Ident::Int(1), Ident::Int(1));
//! let name = builder.intern("aten::add");
//! let category = builder.category("cpu_op");
//! let event = EventRow { time: Timestamp(5_000), name, category, track, args: builder.no_args() };
//! builder.push_span(SpanRow { event, duration: Duration(1_500) });
//!
//! let trace = builder.finish();
//! assert_eq!(trace.str(trace.spans().name(0.into())), "aten::add");
//! assert_eq!(trace.spans().time(0.into()), Timestamp(0)); // times are relative to the first event
//! ```
//!
//! This crate does no I/O beyond its own file format ([`file`]) and has no unsafe code.

#![forbid(unsafe_code)]

pub mod args;
mod arrow;
mod between;
mod builder;
mod category;
mod content;
mod equal;
mod events;
pub mod file;
mod ids;
pub mod keys;
mod losses;
mod merge;
mod metadata;
mod of_processes;
mod profile;
mod string_table;
mod table;
mod trace;
mod units;
mod visible;

pub use args::{Arg, ArgKey, ArgOrigin, ArgReader, ArgSchema, ArgValue, Args};
pub use arrow::{ArrowColumn, SPAN_COLUMNS, spans_batch, write_spans};
pub use builder::TraceBuilder;
pub use category::{Category, Side};
pub use equal::first_difference;
pub use events::{
    Counters, EventRow, FlowPhase, FlowRow, Flows, InstantRow, InstantScope, Instants, SpanRow, Spans,
};
pub use ids::{ArgSchemaId, CategoryId, FrameId, Ident, ProcessId, SpanId, StackId, StringId, TrackId};
pub use losses::{Loss, LossCount, Losses, Severity};
pub use merge::{FileMerge, Survey, merge, merge_with_names};
pub use metadata::{Clock, Device, Distributed, Metadata, Source};
pub use profile::{
    CallRow, CallStats, FrameKind, FrameRow, Frames, LineRow, LineStats, Profile, SampleRow, SampleState,
    Samples, Stacks,
};
pub use string_table::StringTable;
pub use trace::{Process, Trace, Track};
pub use units::{Bytes, Duration, Timestamp, digits};
pub use visible::{is_unsafe_to_show, visible, visible_lines};
