//! Analyses: pure functions from a [`hotspan_store::Trace`] to a typed result.
//!
//! Nothing here reads a file, a clock or the environment, and nothing prints: an analysis returns numbers with their
//! units, and `report()` says how they look as a [`Table`] that presenters turn into text, JSON, CSV or Markdown.
//!
//! | module | answers |
//! |---|---|
//! | [`events`] | which spans count as what: host call, device work, hidden |
//! | [`nesting`] | which call encloses which, per thread |
//! | [`launches`] | which operator launched which device work |
//! | [`memory`] | how many bytes a span allocated and released |
//! | [`mod@memory_timeline`] | memory over time, its peak, and who held it |
//! | [`flops`] | how many floating point operations an operator stands for |
//! | [`averages`] | torch's `key_averages()` |
//! | [`table()`] | torch's `.table()`, as text |
//! | [`mod@kernels`] | device time by kernel |
//! | [`mod@call_tree`] | which function called which, from samples or spans |
//! | [`sampled`] | functions, lines and calls by their samples |
//! | [`mod@summary`] | what is in the trace |

#![forbid(unsafe_code)]

pub mod averages;
pub mod call_tree;
pub mod events;
pub mod flops;
pub mod kernels;
pub mod launches;
pub mod memory;
pub mod memory_timeline;
pub mod nesting;
pub mod report;
pub mod sampled;
pub mod summary;
pub mod table;

pub use averages::{Average, DeviceKind, Distribution, GroupBy, KeyAverages, RecordScope};
pub use call_tree::{CallTree, ShowOptions, TreeOptions, TreeSource, call_tree};
pub use kernels::{KernelRow, Kernels, kernels};
pub use memory_timeline::{DeviceTimeline, memory_timeline};
pub use report::tree::{Tree, TreeRow};
pub use report::{Align, Cell, Column, Table, Unit};
pub use sampled::{SampledTimes, calls_of_samples};
pub use summary::{Summary, summary};
pub use table::{TableError, TableOptions, TimeUnit, table};
