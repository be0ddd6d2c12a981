//! torch's `key_averages()`: every event of a trace, summed up by name and whatever else tells rows apart.
//!
//! `compute` walks the events, `key` decides what shares a row, `distribution` keeps what an average hides, `merge` adds up
//! several traces. How rows look is left to [`crate::reports::operators`].

mod compute;
mod distribution;
mod key;
mod merge;

use hotspan_store::{Bytes, Duration, SpanId};

use crate::model::Model;

pub use crate::model::{DeviceKind, RecordScope};
pub use distribution::Distribution;

/// What tells rows apart, beside the name, the kind of device and whether it is an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupBy {
    /// The shapes of the inputs.
    pub input_shapes: bool,
    /// This many of the innermost stack entries.
    pub stack_depth: usize,
    /// The operator's overload.
    pub overload_name: bool,
    /// The `nn.Module` in which it was called.
    pub module: bool,
    /// The thread or stream.
    pub thread: bool,
    /// The device's index.
    pub device: bool,
    /// Each event: a row for every single one.
    pub event: bool,
    /// Show Python functions as rows. They are part of the tree either way.
    pub python_functions: bool,
}

/// One row: all events that share a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Average {
    /// The name.
    pub key: String,
    /// The operator's overload, when grouped by it.
    pub overload_name: String,
    /// How many events.
    pub count: u64,
    /// Time on the CPU, children included.
    pub cpu_time_total: Duration,
    /// Time on the CPU, children excluded.
    pub self_cpu_time_total: Duration,
    /// Time on the device, children included.
    pub device_time_total: Duration,
    /// Time on the device, children excluded.
    pub self_device_time_total: Duration,
    /// Bytes of the computer's memory, children included.
    pub cpu_memory_usage: Bytes,
    /// Bytes of the computer's memory, children excluded.
    pub self_cpu_memory_usage: Bytes,
    /// Bytes of device memory, children included.
    pub device_memory_usage: Bytes,
    /// Bytes of device memory, children excluded.
    pub self_device_memory_usage: Bytes,
    /// Floating point operations, from formulas.
    pub flops: u64,
    /// The inputs' shapes, when grouped by them: the dimensions of each input, empty for what is no tensor.
    pub input_shapes: Option<Vec<Vec<i64>>>,
    /// The innermost stack entries, when grouped by them; innermost first.
    pub stack: Vec<String>,
    /// The `nn.Module`, when grouped by it.
    pub module: Option<String>,
    /// The thread or stream as the trace numbers it, when grouped by it.
    pub thread: Option<String>,
    /// The index of the device, when grouped by it.
    pub device_index: Option<i64>,
    /// Where the time is spent.
    pub device: DeviceKind,
    /// Where the first of the events comes from.
    pub scope: RecordScope,
    /// Whether a person marked it.
    pub is_user_annotation: bool,
    /// Whether it began and ended on different threads. Such events have a total but no self time and no children.
    pub is_async: bool,
    /// Whether the first of the events is not inside another.
    pub is_top_level: bool,
    /// How the time of single calls is distributed: CPU time of host rows, device time of device rows.
    pub calls: Distribution,
}

impl Average {
    /// CPU time per call.
    #[must_use]
    pub fn cpu_time(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.cpu_time_total.as_micros() / self.count as f64 }
    }

    /// Device time per call.
    #[must_use]
    pub fn device_time(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.device_time_total.as_micros() / self.count as f64 }
    }

    /// Floating point operations per second: by the device's time where a device did the work, else by the CPU's.
    #[must_use]
    pub fn flops_per_second(&self) -> Option<f64> {
        let time = if self.device_time_total.0 > 0 { self.device_time_total } else { self.cpu_time_total };
        (self.flops > 0 && time.0 > 0).then(|| self.flops as f64 * 1e9 / time.0 as f64)
    }

    /// The time of its calls: on the CPU for host rows, on the device for device rows.
    #[must_use]
    pub fn own_time_total(&self) -> Duration {
        if self.device == DeviceKind::Cpu { self.cpu_time_total } else { self.device_time_total }
    }

    /// Adds what can be added of another row.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.cpu_time_total += other.cpu_time_total;
        self.self_cpu_time_total += other.self_cpu_time_total;
        self.device_time_total += other.device_time_total;
        self.self_device_time_total += other.self_device_time_total;
        self.cpu_memory_usage += other.cpu_memory_usage;
        self.self_cpu_memory_usage += other.self_cpu_memory_usage;
        self.device_memory_usage += other.device_memory_usage;
        self.self_device_memory_usage += other.self_device_memory_usage;
        self.flops = self.flops.saturating_add(other.flops);
    }
}

/// The operator table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyAverages {
    /// The rows, in order of their first event.
    pub rows: Vec<Average>,
    /// The kind of device that was recorded beside the CPU.
    pub use_device: Option<DeviceKind>,
    /// Whether the recording was asked for memory, or has it.
    pub profile_memory: bool,
    /// Whether the recording was asked for FLOPs.
    pub with_flops: bool,
    /// From the first beginning to the last end of the trace.
    pub wall_time: Duration,
    /// Device spans that no operator could be found for.
    pub unattributed_device_spans: usize,
}

impl KeyAverages {
    /// Sums up a trace.
    #[must_use]
    pub fn compute(model: &Model, group_by: &GroupBy) -> Self {
        compute::compute(model, group_by)
    }

    /// Sums up a trace, and finds the calls of the first row that is wanted; `None` where no row is.
    #[must_use]
    pub fn compute_with_calls(
        model: &Model,
        group_by: &GroupBy,
        is_wanted: impl Fn(&Average) -> bool,
    ) -> Option<(Self, usize, Vec<SpanId>)> {
        let (averages, times) = compute::compute_keeping_times(model, group_by);
        let row = averages.rows.iter().position(is_wanted)?;
        let calls = times.spans_of_row(row);
        Some((averages, row, calls))
    }

    /// Sums up several traces as one.
    #[must_use]
    pub fn compute_all<'a>(models: impl IntoIterator<Item = &'a Model>, group_by: &GroupBy) -> Self {
        merge::merge(models.into_iter().map(|model| compute::compute_keeping_times(model, group_by)))
    }

    /// All rows added up.
    #[must_use]
    pub fn total_average(&self) -> Average {
        let mut total = Average { key: "Total".to_owned(), ..Average::default() };
        for row in &self.rows {
            total.add(row);
        }
        total
    }

    /// CPU time of all rows, each moment of a thread once: what percentages are of.
    #[must_use]
    pub fn self_cpu_time_total(&self) -> Duration {
        self.rows.iter().map(|row| row.self_cpu_time_total).sum()
    }

    /// Device time of all rows that are work, each kernel once.
    #[must_use]
    pub fn self_device_time_total(&self) -> Duration {
        let is_work = |row: &&Average| row.device != DeviceKind::Cpu && !row.is_user_annotation;
        self.rows.iter().filter(is_work).map(|row| row.self_device_time_total).sum()
    }
}
