//! Analyses: pure functions from a [`Model`] of a trace to a typed result.
//!
//! Nothing here reads a file, a clock or the environment, and nothing prints: an analysis returns numbers with their units. How they
//! look is declared once, column by column, in a [`report::schema::Schema`]; presenters turn its [`Table`] into text, JSON, CSV or
//! Markdown. [`mod@reports`] lists those that have a name.
//!
//! | module | answers |
//! |---|---|
//! | [`mod@model`] | what follows from a trace, computed once: nesting, launches, device work, steps, memory |
//! | [`mod@advice`] | what to change about the program |
//! | [`mod@diff`] | what got faster or slower from one trace to another |
//! | [`lines`] | hits, time and memory of Python lines |
//! | [`memory_category`] | what memory is used for, by torch's names |
//! | [`mod@memory_blocks`] | allocations with their releases, and what they were used for |
//! | [`memory_events`] | single allocations, and what operators allocated |
//! | [`mod@memory_timeline`] | memory over time, its peak, and who held it |
//! | [`mod@process_memory`] | memory of processes over time |
//! | [`flops`] | how many floating point operations an operator stands for |
//! | [`functions`] | calls and time by function: pstats' tables |
//! | [`module_tree`] | time by `nn.Module`, as a tree |
//! | [`mod@source_lines`] | processor, device and memory by line of source |
//! | [`averages`] | torch's `key_averages()` |
//! | [`function_events`] | torch's `events()` |
//! | [`mod@kernels`] | device time by kernel |
//! | [`mod@overview`] | the report of a whole program |
//! | [`intervals`] | arithmetic on sets of time |
//! | [`mod@busy_curve`] | how busy a device was over time |
//! | [`tensor_cores`] | whether a kernel uses tensor cores |
//! | [`mod@steps`] | where the time of a step goes, on devices and on the host |
//! | [`mod@idle`] | why a device was idle |
//! | [`mod@copies`], [`mod@streams`] | device time by kind of copy, by stream |
//! | [`mod@launch_statistics`] | what launching costs |
//! | [`mod@utilisation`] | how well a device was used |
//! | [`mod@roofline`] | what operators would take at best |
//! | [`mod@gpu`] | all of these on a trace |
//! | [`mod@ranks`] | several traces of one job: who waits for whom |
//! | [`mod@call_tree`] | which function called which, from samples or spans |
//! | [`sampled`] | functions, lines and calls by their samples |
//! | [`mod@summary`] | what is in the trace |
//! | [`mod@thing`] | one row of a table, with all that is known about it |
//! | [`mod@verdict`] | where the time goes, in one sentence, and what a typical step is made of |
//! | [`mod@within`] | what ran within a stretch of time |
//! | [`mod@wall_time`] | where the wall time of a program went, adding up to all of it |

#![forbid(unsafe_code)]

pub mod advice;
pub mod averages;
pub mod busy_curve;
pub mod call_tree;
pub mod copies;
pub mod diff;
pub mod flops;
pub mod function_events;
pub mod functions;
pub mod gpu;
pub mod idle;
pub mod intervals;
pub mod job;
pub mod kernels;
pub mod launch_statistics;
pub mod lines;
pub mod memory_blocks;
pub mod memory_category;
pub mod memory_events;
pub mod memory_timeline;
pub mod model;
pub mod module_tree;
pub mod overview;
pub mod process_memory;
pub mod ranks;
pub mod report;
pub mod reports;
pub mod roofline;
pub mod sampled;
pub mod source_lines;
pub mod steps;
pub mod streams;
pub mod summary;
pub mod tensor_cores;
pub mod thing;
pub mod utilisation;
pub mod verdict;
pub mod wall_time;
pub mod within;

pub use averages::{Average, DeviceKind, Distribution, GroupBy, KeyAverages, RecordScope};
pub use call_tree::{CallTree, ShowOptions, TreeOptions, TreeSource, call_tree};
pub use function_events::{FunctionEvent, FunctionEvents};
pub use functions::Functions;
pub use kernels::{KernelRow, Kernels, kernels};
pub use memory_category::MemoryCategory;
pub use memory_timeline::DeviceTimeline;
pub use model::Model;
pub use model::memory_events::MemoryDevice;
pub use overview::{Overview, overview};
pub use report::door::Door;
pub use report::schema::{ReportOptions, Schema, SortError};
pub use report::tree::{Tree, TreeRow};
pub use report::{Align, Cell, Column, Line, Series, Shown, Table, Unit};
pub use reports::{Report, reports};
pub use sampled::SampledTimes;
pub use summary::Summary;
pub use thing::{Thing, describe};
pub use verdict::{Verdict, verdict};
pub use wall_time::{Activity, PROCESSES_KEY, RUN_KEY, WallTime};
