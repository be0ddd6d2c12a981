//! `KeyAverages` and `Average`: torch's `key_averages()` as Python sees it, times in microseconds as torch gives them.

use std::sync::Arc;

use hotspan::torch_table::{TableOptions, TimeUnit, table};
use hotspan_analyze::averages::{Average, KeyAverages};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::from_sort;
use crate::getters::getters;

/// The rows of an operator table.
#[pyclass(frozen, name = "KeyAverages", module = "hotspan._core")]
pub(crate) struct PyKeyAverages {
    averages: Arc<KeyAverages>,
}

impl PyKeyAverages {
    pub(crate) fn new(averages: KeyAverages) -> Self {
        Self { averages: Arc::new(averages) }
    }
}

#[pymethods]
impl PyKeyAverages {
    /// All rows, in order of their first event.
    fn rows(&self) -> Vec<PyAverage> {
        self.averages.rows.iter().cloned().map(PyAverage).collect()
    }

    /// All rows added up.
    fn total_average(&self) -> PyAverage {
        PyAverage(self.averages.total_average())
    }

    /// Microseconds of CPU time, each moment of a thread once.
    #[getter]
    fn self_cpu_time_total(&self) -> f64 {
        self.averages.self_cpu_time_total().as_micros()
    }

    /// Microseconds of device time, each kernel once.
    #[getter]
    fn self_device_time_total(&self) -> f64 {
        self.averages.self_device_time_total().as_micros()
    }

    /// The table as text, as torch prints it.
    #[pyo3(signature = (sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, top_level_events_only, time_unit, extra_columns))]
    #[expect(clippy::too_many_arguments, reason = "torch's signature")]
    fn table(
        &self,
        py: Python<'_>,
        sort_by: Option<String>,
        row_limit: i64,
        max_src_column_width: Option<i64>,
        max_name_column_width: Option<i64>,
        max_shapes_column_width: Option<i64>,
        header: Option<String>,
        top_level_events_only: bool,
        time_unit: Option<&str>,
        extra_columns: Vec<String>,
    ) -> PyResult<String> {
        let mut options = TableOptions {
            sort_by,
            row_limit: usize::try_from(row_limit).ok(),
            max_src_column_width: width(max_src_column_width),
            max_name_column_width: width(max_name_column_width),
            max_shapes_column_width: width(max_shapes_column_width),
            header,
            top_level_events_only,
            time_unit: time_unit.map(parse_unit).transpose()?,
            ..TableOptions::default()
        };
        if let Some(unknown) = extra_columns.iter().find(|column| !options.add(column)) {
            return Err(PyValueError::new_err(format!(
                "unknown extra column {unknown:?}; valid ones: 'distribution', 'wall', 'flop_rate', \
                 and the columns that `hotspan stats --columns` shows with --wide"
            )));
        }
        py.detach(|| table(&self.averages, &options)).map_err(|error| from_sort(&error))
    }
}

/// As in torch, a negative width is no limit.
fn width(width: Option<i64>) -> Option<usize> {
    usize::try_from(width?).ok()
}

fn parse_unit(unit: &str) -> PyResult<TimeUnit> {
    match unit {
        "s" => Ok(TimeUnit::Seconds),
        "ms" => Ok(TimeUnit::Milliseconds),
        "us" => Ok(TimeUnit::Microseconds),
        other => {
            Err(PyValueError::new_err(format!("unknown time unit {other:?}; valid ones: 's', 'ms', 'us'")))
        }
    }
}

/// One row, with torch's attribute names.
#[pyclass(frozen, name = "Average", module = "hotspan._core")]
pub(crate) struct PyAverage(Average);

getters! {
    PyAverage {
        /// The name.
        key: String = |row| row.0.key.clone();
        /// How many events.
        count: u64 = |row| row.0.count;
        /// Microseconds on the CPU, children included.
        cpu_time_total: f64 = |row| row.0.cpu_time_total.as_micros();
        /// Microseconds on the CPU, children excluded.
        self_cpu_time_total: f64 = |row| row.0.self_cpu_time_total.as_micros();
        /// Microseconds on the device, children included.
        device_time_total: f64 = |row| row.0.device_time_total.as_micros();
        /// Microseconds on the device, children excluded.
        self_device_time_total: f64 = |row| row.0.self_device_time_total.as_micros();
        /// Microseconds on the CPU per call.
        cpu_time: f64 = |row| row.0.cpu_time();
        /// Microseconds on the device per call.
        device_time: f64 = |row| row.0.device_time();
        /// Bytes of the computer's memory, children included.
        cpu_memory_usage: i64 = |row| row.0.cpu_memory_usage.0;
        /// Bytes of the computer's memory, children excluded.
        self_cpu_memory_usage: i64 = |row| row.0.self_cpu_memory_usage.0;
        /// Bytes of device memory, children included.
        device_memory_usage: i64 = |row| row.0.device_memory_usage.0;
        /// Bytes of device memory, children excluded.
        self_device_memory_usage: i64 = |row| row.0.self_device_memory_usage.0;
        /// Floating point operations, from formulas.
        flops: u64 = |row| row.0.flops;
        /// Floating point operations per second; None without operations or time.
        flops_per_second: Option<f64> = |row| row.0.flops_per_second();
        /// The inputs' shapes, when grouped by them.
        input_shapes: Option<Vec<Vec<i64>>> = |row| row.0.input_shapes.clone();
        /// The innermost stack entries, when grouped by them.
        stack: Vec<String> = |row| row.0.stack.clone();
        /// The operator's overload, when grouped by it.
        overload_name: String = |row| row.0.overload_name.clone();
        /// The nn.Module, when grouped by it.
        module: Option<String> = |row| row.0.module.clone();
        /// The thread or stream, when grouped by it.
        thread: Option<String> = |row| row.0.thread.clone();
        /// The device's index, when grouped by it.
        device_index: Option<i64> = |row| row.0.device_index;
        /// Where the time is spent: "CPU", "CUDA", "XPU", …
        device_type: String = |row| row.0.device.title().to_owned();
        /// Whether a person marked it.
        is_user_annotation: bool = |row| row.0.is_user_annotation;
        /// Whether it began and ended on different threads.
        is_async: bool = |row| row.0.is_async;
        /// Microseconds of the shortest call.
        min_time: f64 = |row| row.0.calls.min.as_micros();
        /// Microseconds of the median call.
        p50_time: f64 = |row| row.0.calls.p50.as_micros();
        /// Microseconds of the 99th percentile.
        p99_time: f64 = |row| row.0.calls.p99.as_micros();
        /// Microseconds of the longest call.
        max_time: f64 = |row| row.0.calls.max.as_micros();
    }

    fn __repr__(&self) -> String {
        let row = &self.0;
        format!(
            "<Average key={:?} count={} self_cpu_time_total={:.3}us cpu_time_total={:.3}us self_device_time_total={:.3}us>",
            row.key, row.count, row.self_cpu_time_total.as_micros(), row.cpu_time_total.as_micros(),
            row.self_device_time_total.as_micros(),
        )
    }
}
