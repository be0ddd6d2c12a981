//! `Trace`: the Rust trace as Python sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotspan_analyze::averages::{GroupBy, KeyAverages};
use hotspan_analyze::kernels::kernels;
use hotspan_analyze::memory_timeline::memory_timeline;
use hotspan_analyze::summary::summary;
use hotspan_formats::export::{chrome, hotspan as native};
use hotspan_formats::{EXPORTERS, Exporter, open_with, save};
use hotspan_store::{Trace, spans_batch};
use pyo3::prelude::*;

use crate::averages::PyKeyAverages;
use crate::enter::Interruptible;
use crate::error::{HotspanError, from_export, from_open};
use crate::events::PyEvents;
use crate::spans::PySpans;

/// A trace: everything a profiler recorded.
#[pyclass(frozen, name = "Trace", module = "hotspan._core")]
pub(crate) struct PyTrace {
    trace: Arc<Trace>,
}

/// Opens a trace of any known format.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<PyTrace> {
    let (result, raised) = py.detach(|| {
        let mut progress = Interruptible::default();
        let result = open_with(&path, &mut progress);
        (result, progress.raised)
    });
    match (raised, result) {
        (Some(raised), _) => Err(raised),
        (None, Ok(trace)) => Ok(PyTrace::new(trace)),
        (None, Err(error)) => Err(from_open(&error)),
    }
}

impl PyTrace {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace: Arc::new(trace) }
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    fn write(&self, py: Python<'_>, exporter: &dyn Exporter, path: &Path) -> PyResult<()> {
        py.detach(|| save(&self.trace, exporter, path)).map_err(|error| from_export(&error))
    }
}

/// A kernel's name, calls, total, shortest and longest run, the times in microseconds.
type KernelRow = (String, u64, f64, f64, f64);

/// A device's kind and index; times and bytes held; the peak's bytes and time; who held it: name, bytes, blocks.
type MemoryRow = (i64, i64, Vec<(i64, i64)>, i64, i64, Vec<(String, i64, u64)>);

#[pymethods]
impl PyTrace {
    #[pyo3(signature = (input_shapes, stack_depth, overload_name, module, thread, device, python_functions))]
    #[expect(clippy::too_many_arguments, reason = "one argument per way of grouping")]
    fn key_averages(
        &self,
        py: Python<'_>,
        input_shapes: bool,
        stack_depth: usize,
        overload_name: bool,
        module: bool,
        thread: bool,
        device: bool,
        python_functions: bool,
    ) -> PyKeyAverages {
        let group_by =
            GroupBy { input_shapes, stack_depth, overload_name, module, thread, device, python_functions };
        PyKeyAverages::new(py.detach(|| KeyAverages::compute(&self.trace, &group_by)))
    }

    /// Device work by name, most time first.
    fn kernels(&self, py: Python<'_>) -> Vec<KernelRow> {
        let rows = py.detach(|| kernels(&self.trace)).rows;
        let row = |row: hotspan_analyze::kernels::KernelRow| {
            (row.name, row.calls, row.total.as_micros(), row.min.as_micros(), row.max.as_micros())
        };
        rows.into_iter().map(row).collect()
    }

    /// Memory over time, for each device.
    fn memory_timeline(&self, py: Python<'_>) -> Vec<MemoryRow> {
        let devices = py.detach(|| memory_timeline(&self.trace));
        let row = |timeline: hotspan_analyze::DeviceTimeline| {
            let held = timeline.held.into_iter().map(|(time, bytes)| (time.0, bytes.0)).collect();
            let holder = |holder: hotspan_analyze::memory_timeline::Holder| {
                (holder.operator, holder.bytes.0, holder.blocks)
            };
            let holders = timeline.holders.into_iter().map(holder).collect();
            (
                timeline.device.kind,
                timeline.device.index,
                held,
                timeline.peak.0,
                timeline.peak_time.0,
                holders,
            )
        };
        devices.into_iter().map(row).collect()
    }

    /// The spans one by one.
    fn events(&self) -> PyEvents {
        PyEvents { trace: Arc::clone(&self.trace) }
    }

    /// The span table, with a column for each key of `args`.
    fn span_table(&self, py: Python<'_>, args: Vec<String>) -> PyResult<PySpans> {
        let batch = py.detach(|| spans_batch(&self.trace, &args));
        let batch = batch.map_err(|error| HotspanError::new_err(error.to_string()))?;
        Ok(PySpans { batch })
    }

    fn export_chrome_trace(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.write(py, &chrome::Chrome, &path)
    }

    /// Writes the trace in the format of this name.
    fn export(&self, py: Python<'_>, name: &str, path: PathBuf) -> PyResult<()> {
        let Some(exporter) = EXPORTERS.iter().find(|exporter| exporter.name() == name) else {
            return Err(HotspanError::new_err(format!("there is no format {name:?}")));
        };
        self.write(py, *exporter, &path)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.write(py, &native::Hotspan, &path)
    }

    /// A copy that says more about itself: keys and JSON texts.
    fn with_metadata(&self, py: Python<'_>, metadata: Vec<(String, String)>) -> Self {
        let changed = py.detach(|| {
            let mut trace = Trace::clone(&self.trace);
            for (key, json) in &metadata {
                trace.set_metadata(key, json);
            }
            trace
        });
        Self::new(changed)
    }

    /// How many spans there are.
    #[getter]
    fn span_count(&self) -> usize {
        self.trace.spans().len()
    }

    /// How many instants, counter samples and flow ends there are.
    #[getter]
    fn other_counts(&self) -> (usize, usize, usize) {
        (self.trace.instants().len(), self.trace.counters().len(), self.trace.flows().len())
    }

    /// Bytes of memory held.
    #[getter]
    fn nbytes(&self) -> usize {
        self.trace.heap_bytes()
    }

    /// Free metadata: keys and JSON texts.
    #[getter]
    fn metadata(&self) -> Vec<(String, String)> {
        self.trace.metadata().iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// What is missing or was repaired: name, count, meaning.
    #[getter]
    fn losses(&self) -> Vec<(&'static str, u64, &'static str)> {
        let counts = self.trace.losses().counts();
        counts.iter().map(|known| (known.loss.name(), known.count, known.loss.help())).collect()
    }

    /// Spans by category: name, count, nanoseconds.
    #[getter]
    fn categories(&self, py: Python<'_>) -> Vec<(String, u64, i64)> {
        let rows = py.detach(|| summary(&self.trace)).categories;
        rows.into_iter().map(|row| (row.name, row.spans, row.total.0)).collect()
    }

    /// Profiler steps: number, start and duration in nanoseconds.
    #[getter]
    fn steps(&self, py: Python<'_>) -> Vec<(i64, i64, i64)> {
        let steps = py.detach(|| summary(&self.trace)).steps;
        steps.into_iter().map(|step| (step.number, step.begin.0, step.duration.0)).collect()
    }

    /// Index and name of each device.
    #[getter]
    fn devices(&self) -> Vec<(i64, String)> {
        self.trace.devices().into_iter().map(|device| (device.id, device.name)).collect()
    }

    /// The rank in a distributed job.
    #[getter]
    fn rank(&self) -> Option<i64> {
        self.trace.distributed()?.rank
    }

    /// How many ranks there are.
    #[getter]
    fn world_size(&self) -> Option<i64> {
        self.trace.distributed()?.world_size
    }

    /// The format it was read from.
    #[getter]
    fn format(&self) -> String {
        self.trace.source().format.clone()
    }

    /// Nanoseconds from the first beginning to the last end of a span.
    #[getter]
    fn wall_time_ns(&self) -> i64 {
        self.trace.window().1.0
    }

    /// Unix time in nanoseconds at the start of the trace, where it is known.
    #[getter]
    fn unix_start_ns(&self) -> Option<i64> {
        self.trace.clock().unix_origin()
    }
}
