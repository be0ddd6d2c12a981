//! `KeyAverages` and `Average`: torch's `key_averages()` as Python sees it, times in microseconds as torch gives them.

use std::sync::Arc;

use hotspan::torch_table::{TableOptions, TimeUnit, microseconds_text, table, time_text};
use hotspan_analyze::averages::{Average, DeviceKind, KeyAverages};
use pyo3::exceptions::{PyAssertionError, PyValueError};
use pyo3::prelude::*;

use crate::error::from_sort;
use crate::function_event::{device_type, scope_number};
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

    fn row(&self, row: Average, torch_types: bool) -> PyAverage {
        PyAverage { row, use_device: self.averages.use_device, torch_types }
    }
}

#[pymethods]
impl PyKeyAverages {
    /// All rows, in order of their first event. Their devices are torch's `DeviceType` on request, where torch is loaded.
    fn rows(&self, torch_types: bool) -> Vec<PyAverage> {
        self.averages.rows.iter().cloned().map(|row| self.row(row, torch_types)).collect()
    }

    /// All rows added up.
    fn total_average(&self, torch_types: bool) -> PyAverage {
        self.row(self.averages.total_average(), torch_types)
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
#[pyclass(dict, name = "Average", module = "hotspan._core")]
pub(crate) struct PyAverage {
    row: Average,
    use_device: Option<DeviceKind>,
    torch_types: bool,
}

getters! {
    PyAverage {
        /// The name.
        key: String = |row| row.row.key.clone();
        /// How many events.
        count: u64 = |row| row.row.count;
        /// Microseconds on the CPU, children included.
        cpu_time_total: f64 = |row| row.row.cpu_time_total.as_micros();
        /// Microseconds on the CPU, children excluded.
        self_cpu_time_total: f64 = |row| row.row.self_cpu_time_total.as_micros();
        /// Microseconds on the device, children included.
        device_time_total: f64 = |row| row.row.device_time_total.as_micros();
        /// Microseconds on the device, children excluded.
        self_device_time_total: f64 = |row| row.row.self_device_time_total.as_micros();
        /// Microseconds on the CPU per call.
        cpu_time: f64 = |row| row.row.cpu_time();
        /// Microseconds on the device per call.
        device_time: f64 = |row| row.row.device_time();
        /// Bytes of the computer's memory, children included.
        cpu_memory_usage: i64 = |row| row.row.cpu_memory_usage.0;
        /// Bytes of the computer's memory, children excluded.
        self_cpu_memory_usage: i64 = |row| row.row.self_cpu_memory_usage.0;
        /// Bytes of device memory, children included.
        device_memory_usage: i64 = |row| row.row.device_memory_usage.0;
        /// Bytes of device memory, children excluded.
        self_device_memory_usage: i64 = |row| row.row.self_device_memory_usage.0;
        /// Floating point operations, from formulas.
        flops: u64 = |row| row.row.flops;
        /// Floating point operations per second; None without operations or time.
        flops_per_second: Option<f64> = |row| row.row.flops_per_second();
        /// The inputs' shapes, when grouped by them.
        input_shapes: Option<Vec<Vec<i64>>> = |row| row.row.input_shapes.clone();
        /// The innermost stack entries, when grouped by them.
        stack: Vec<String> = |row| row.row.stack.clone();
        /// The operator's overload, when grouped by it.
        overload_name: String = |row| row.row.overload_name.clone();
        /// The nn.Module, when grouped by it.
        module: Option<String> = |row| row.row.module.clone();
        /// The thread or stream, when grouped by it.
        thread: Option<String> = |row| row.row.thread.clone();
        /// The device's index, when grouped by it.
        device_index: Option<i64> = |row| row.row.device_index;
        /// Whether a person marked it.
        is_user_annotation: bool = |row| row.row.is_user_annotation;
        /// Whether it began and ended on different threads.
        is_async: bool = |row| row.row.is_async;
        cpu_time_str: String = |row| microseconds_text(row.row.cpu_time());
        device_time_str: String = |row| microseconds_text(row.row.device_time());
        cpu_time_total_str: String = |row| time_text(row.row.cpu_time_total);
        device_time_total_str: String = |row| time_text(row.row.device_time_total);
        self_cpu_time_total_str: String = |row| time_text(row.row.self_cpu_time_total);
        self_device_time_total_str: String = |row| time_text(row.row.self_device_time_total);
        cuda_time: f64 = |row| row.row.device_time();
        cuda_time_total: f64 = |row| row.row.device_time_total.as_micros();
        self_cuda_time_total: f64 = |row| row.row.self_device_time_total.as_micros();
        cuda_memory_usage: i64 = |row| row.row.device_memory_usage.0;
        self_cuda_memory_usage: i64 = |row| row.row.self_device_memory_usage.0;
        /// Where the first of the events comes from: 0 an operator, 1 a node of the backward pass, 7 a range of a person.
        scope: u8 = |row| scope_number(row.row.scope);
        /// The kind of device that was recorded beside the CPU, as torch spells it.
        use_device: Option<String> = |row| row.use_device.map(|kind| kind.title().to_lowercase());
        /// None: a row stands for events in many places.
        cpu_parent: Option<i64> = |_| None;
        /// None likewise.
        cpu_children: Vec<i64> = |_| Vec::new();
        /// None.
        node_id: i64 = |_| -1;
        /// Never: torch's older recorders are gone.
        is_legacy: bool = |_| false;
        /// Never.
        is_remote: bool = |_| false;
        /// Microseconds of the shortest call.
        min_time: f64 = |row| row.row.calls.min.as_micros();
        /// Microseconds of the median call.
        p50_time: f64 = |row| row.row.calls.p50.as_micros();
        /// Microseconds of the 99th percentile.
        p99_time: f64 = |row| row.row.calls.p99.as_micros();
        /// Microseconds of the longest call.
        max_time: f64 = |row| row.row.calls.max.as_micros();
    }

    /// Where the time is spent: "CPU", "CUDA", "XPU", …; torch's `DeviceType` in rows of `hotspan.profiler`.
    #[getter]
    fn device_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.torch_types {
            return device_type(py, self.row.device);
        }
        Ok(self.row.device.title().into_pyobject(py)?.into_any())
    }

    /// Adds another row of this name, or the total of any rows; returns this one.
    fn add<'py>(slf: Bound<'py, Self>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        // Apart, because a row may be added to itself.
        let other = other.borrow().row.clone();
        let mut row = slf.borrow_mut();
        if other.key != row.row.key && row.row.key != "Total" {
            return Err(PyAssertionError::new_err(format!(
                "rows of different names cannot be added: {} and {}",
                row.row.key, other.key
            )));
        }
        row.row.add(&other);
        drop(row);
        Ok(slf)
    }

    fn __iadd__(&mut self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let other = other.cast::<Self>()?.try_borrow()?.row.clone();
        self.row.add(&other);
        Ok(())
    }

    fn __repr__(&self) -> String {
        let row = &self.row;
        format!(
            "<Average key={:?} count={} self_cpu_time_total={:.3}us cpu_time_total={:.3}us self_device_time_total={:.3}us>",
            row.key, row.count, row.self_cpu_time_total.as_micros(), row.cpu_time_total.as_micros(),
            row.self_device_time_total.as_micros(),
        )
    }
}
