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
//! | [`intervals`] | arithmetic on sets of time |
//! | [`device_work`] | what each device does when: compute, communicate, copy |
//! | [`launch_calls`], [`runtime_calls`] | which call gave a device its work, and what a call is for |
//! | [`host_activity`] | what the host does, as far as it matters to a device |
//! | [`tensor_cores`] | whether a kernel uses tensor cores |
//! | [`mod@steps`] | where the time of a step goes, on devices and on the host |
//! | [`mod@idle`] | why a device was idle |
//! | [`mod@copies`], [`mod@streams`] | device time by kind of copy, by stream |
//! | [`mod@launch_statistics`] | what launching costs |
//! | [`mod@utilisation`] | how well a device was used |
//! | [`mod@roofline`] | what operators would take at best |
//! | [`mod@gpu`] | all of these on a trace |
//! | [`mod@ranks`] | several traces of one job: who waits for whom |
//! | [`mod@summary`] | what is in the trace |

#![forbid(unsafe_code)]

pub mod averages;
pub mod copies;
pub mod device_work;
pub mod events;
pub mod flops;
pub mod gpu;
pub mod host_activity;
pub mod idle;
pub mod intervals;
pub mod kernels;
pub mod launch_calls;
pub mod launch_statistics;
pub mod launches;
pub mod memory;
pub mod memory_timeline;
pub mod nesting;
pub mod ranks;
pub mod report;
pub mod roofline;
pub mod runtime_calls;
pub mod steps;
pub mod streams;
pub mod summary;
pub mod table;
pub mod tensor_cores;
pub mod utilisation;

pub use averages::{Average, DeviceKind, Distribution, GroupBy, KeyAverages, RecordScope};
pub use kernels::{KernelRow, Kernels, kernels};
pub use memory_timeline::{DeviceTimeline, memory_timeline};
pub use report::{Align, Cell, Column, Table, Unit};
pub use summary::{Summary, summary};
pub use table::{TableError, TableOptions, TimeUnit, table};
