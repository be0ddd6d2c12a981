//! `Trace`: the Rust trace as Python sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotspan_analyze::averages::{GroupBy, KeyAverages};
use hotspan_analyze::kernels::kernels;
use hotspan_analyze::memory_timeline::Holder;
use hotspan_analyze::{FunctionEvents, MemoryCategory, MemoryDevice, Model};
use hotspan_collect::torch::push_mark;
use hotspan_formats::export::{chrome, hotspan as native, memory};
use hotspan_formats::{EXPORTERS, Exporter, open_adding, open_with, save};
use hotspan_store::{Timestamp, Trace, spans_batch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::advice::{AdviceRows, ask};
use crate::averages::PyKeyAverages;
use crate::collect::{PyMark, mark};
use crate::diff::{DiffRows, compare};
use crate::enter::Interruptible;
use crate::error::{HotspanError, from_export, from_open};
use crate::events::PyEvents;
use crate::function_events::{AllEvents, PyFunctionEvents};
use crate::spans::PySpans;

/// A trace: everything a profiler recorded.
#[pyclass(frozen, name = "Trace", module = "hotspan._core")]
pub(crate) struct PyTrace {
    pub(crate) model: Arc<Model>,
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

/// Opens a trace that this process recorded, and adds marks of its tensors, by Unix time in nanoseconds.
#[pyfunction]
pub(crate) fn open_recording(py: Python<'_>, path: PathBuf, marks: Vec<PyMark>) -> PyResult<PyTrace> {
    let opened = py.detach(|| {
        open_adding(&path, &mut (), |builder| {
            let base = builder.clock.base_unix.unwrap_or(0);
            for (time, thread, what, blocks) in marks {
                let time = Timestamp((time as i64).saturating_sub(base));
                push_mark(builder, std::process::id(), thread, time, &mark(what, blocks));
            }
        })
    });
    opened.map(PyTrace::new).map_err(|error| from_open(&error))
}

impl PyTrace {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { model: Arc::new(Model::new(trace)) }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn trace(&self) -> &Arc<Trace> {
        self.model.trace()
    }

    pub(crate) fn shared(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    fn write(&self, py: Python<'_>, exporter: &dyn Exporter, path: &Path) -> PyResult<()> {
        py.detach(|| save(&self.model, exporter, path)).map_err(|error| from_export(&error))
    }
}

/// A kernel's name, calls, total, shortest and longest run in nanoseconds; blocks per multiprocessor, occupancy in percent,
/// and whether it uses tensor cores.
type KernelRow = (String, u64, i64, i64, i64, Option<f64>, Option<f64>, bool);

/// Who held memory: name, bytes, blocks, category, stack.
type HolderRow = (String, i64, u64, &'static str, Vec<String>);

/// A device's kind and index; times and bytes held; the peak's bytes and time; who held it; the peak's bytes by category; the
/// process, where several have memory of such a device.
type MemoryRow = (i64, i64, Vec<(i64, i64)>, i64, i64, Vec<HolderRow>, Vec<(&'static str, i64)>, Option<i64>);

/// Times, and for each category its bytes at these times.
type CategoryRow = (Vec<i64>, Vec<(String, Vec<i64>)>);

#[pymethods]
impl PyTrace {
    #[pyo3(signature = (input_shapes, stack_depth, overload_name, module, thread, device, python_functions, event, earlier))]
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
        event: bool,
        earlier: Vec<PyRef<'_, Self>>,
    ) -> PyKeyAverages {
        let group_by = GroupBy {
            input_shapes,
            stack_depth,
            overload_name,
            module,
            thread,
            device,
            event,
            python_functions,
        };
        let earlier: Vec<Arc<Model>> = earlier.iter().map(|trace| trace.shared()).collect();
        PyKeyAverages::new(py.detach(|| match earlier.as_slice() {
            [] => KeyAverages::compute(&self.model, &group_by),
            earlier => {
                let all = std::iter::once(&*self.model).chain(earlier.iter().map(|model| &**model));
                KeyAverages::compute_all(all, &group_by)
            }
        }))
    }

    /// What to change about the program.
    fn advise(&self, py: Python<'_>, only: Vec<String>, ignore: Vec<String>) -> PyResult<AdviceRows> {
        ask(py, &self.model, only, ignore)
    }

    /// What got faster or slower from this trace, and more recordings of it, to others.
    fn diff(
        &self,
        py: Python<'_>,
        more: Vec<PyRef<'_, Self>>,
        after: Vec<PyRef<'_, Self>>,
        by: &str,
    ) -> PyResult<DiffRows> {
        let before: Vec<&Model> = std::iter::once(self)
            .chain(more.iter().map(|trace| &**trace))
            .map(|trace| &*trace.model)
            .collect();
        let after: Vec<&Model> = after.iter().map(|trace| &*trace.model).collect();
        compare(py, &before, &after, by)
    }

    /// Device work by name, most time first.
    fn kernels(&self, py: Python<'_>) -> Vec<KernelRow> {
        let rows = py.detach(|| kernels(&self.model)).rows;
        let row = |row: hotspan_analyze::kernels::KernelRow| {
            let (total, min, max) = (row.total.0, row.min.0, row.max.0);
            (row.name, row.calls, total, min, max, row.blocks_per_sm, row.occupancy, row.tensor_cores)
        };
        rows.into_iter().map(row).collect()
    }

    /// Memory over time, for each device.
    fn memory_timeline(&self, py: Python<'_>) -> Vec<MemoryRow> {
        let devices = py.detach(|| self.model.memory_timeline());
        let row = |timeline: &hotspan_analyze::DeviceTimeline| {
            let held = timeline.held().map(|(time, bytes)| (time.0, bytes.0)).collect();
            let holder = |holder: Holder| {
                let Holder { operator, bytes, blocks, category, stack } = holder;
                (operator, bytes.0, blocks, category.key(), stack)
            };
            let used = |category: MemoryCategory| (category.key(), timeline.peak_use[category.index()].0);
            let peak_use = MemoryCategory::ALL.into_iter().map(used).filter(|used| used.1 != 0).collect();
            let holders = timeline.holders.iter().cloned().map(holder).collect();
            (
                timeline.device.kind,
                timeline.device.index,
                held,
                timeline.peak.0,
                timeline.peak_time.0,
                holders,
                peak_use,
                timeline.device.process,
            )
        };
        devices.iter().map(row).collect()
    }

    /// Bytes by category over time, for each device in the same order; at most `points` moments.
    fn memory_by_category(&self, py: Python<'_>, points: usize) -> Vec<CategoryRow> {
        let series: Vec<_> = py
            .detach(|| self.model.memory_timeline().iter().map(|timeline| timeline.series(points)).collect());
        let row = |series: hotspan_analyze::Series| {
            let lines = series.lines.into_iter().map(|line| (line.key, line.values)).collect();
            (series.times.into_iter().map(|time| time.0).collect(), lines)
        };
        series.into_iter().map(row).collect()
    }

    /// The spans one by one.
    fn events(&self) -> PyEvents {
        PyEvents { trace: Arc::clone(self.trace()) }
    }

    /// The events in torch's sense, one by one.
    fn function_events(&self, py: Python<'_>) -> PyFunctionEvents {
        let events = py.detach(|| FunctionEvents::of(&self.model));
        PyFunctionEvents { all: Arc::new(AllEvents::new(Arc::clone(&self.model), events)) }
    }

    /// The span table, with a column for each key of `args`.
    fn span_table(&self, py: Python<'_>, args: Vec<String>) -> PyResult<PySpans> {
        let batch = py.detach(|| spans_batch(&self.model, &args));
        let batch = batch.map_err(|error| HotspanError::new_err(error.to_string()))?;
        Ok(PySpans { batch })
    }

    fn export_chrome_trace(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.write(py, &chrome::Chrome, &path)
    }

    /// Memory over time as a file: a page, or one of torch's two JSON layouts, by the end of its name. A device is a type
    /// and an index.
    #[pyo3(signature = (path, device))]
    fn export_memory_timeline(
        &self,
        py: Python<'_>,
        path: PathBuf,
        device: Option<(i64, i64)>,
    ) -> PyResult<()> {
        let device = device.map(|(kind, index)| MemoryDevice { kind, index, process: None });
        let name = path.to_string_lossy().into_owned();
        let exporter: Box<dyn Exporter> = match name.trim_end_matches(".gz") {
            name if name.ends_with(".html") => Box::new(memory::MemoryHtml(device)),
            name if name.ends_with(".raw.json") => Box::new(memory::MemoryRaw(device)),
            name if name.ends_with(".json") => Box::new(memory::MemoryJson(device)),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "{name}: the end of the name says what to write; known ones: .html, .json, .json.gz, .raw.json.gz"
                )));
            }
        };
        py.detach(|| save(&self.model, &*exporter, &path)).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::InvalidInput => PyValueError::new_err(error.error.to_string()),
            _ => from_export(&error),
        })
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
            let mut trace = Trace::clone(self.trace());
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
        self.model.spans().len()
    }

    /// How many instants, counter samples and flow ends there are.
    #[getter]
    fn other_counts(&self) -> (usize, usize, usize) {
        (self.model.instants().len(), self.model.counters().len(), self.model.flows().len())
    }

    /// Bytes of memory held.
    #[getter]
    fn nbytes(&self) -> usize {
        self.model.heap_bytes()
    }

    /// Free metadata: keys and JSON texts.
    #[getter]
    fn metadata(&self) -> Vec<(String, String)> {
        self.model.metadata().iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// What is missing or was repaired: name, count, meaning.
    #[getter]
    fn losses(&self) -> Vec<(&'static str, u64, &'static str)> {
        let counts = self.model.losses().counts();
        counts.iter().map(|row| (row.loss.name(), row.count, row.loss.help())).collect()
    }

    /// Spans by category: name, count, nanoseconds.
    #[getter]
    fn categories(&self, py: Python<'_>) -> Vec<(String, u64, i64)> {
        let rows = &py.detach(|| self.model.summary()).categories;
        rows.iter().map(|row| (row.name.clone(), row.spans, row.total.0)).collect()
    }

    /// The steps of the program: number, start and duration in nanoseconds.
    #[getter]
    fn steps(&self, py: Python<'_>) -> Vec<(i64, i64, i64)> {
        let steps = &py.detach(|| self.model.steps()).all;
        steps.iter().map(|step| (step.number, step.begin.0, step.duration.0)).collect()
    }

    /// Index and name of each device.
    #[getter]
    fn devices(&self) -> Vec<(i64, String)> {
        self.model.devices().into_iter().map(|device| (device.id, device.name)).collect()
    }

    /// The rank in a distributed job.
    #[getter]
    fn rank(&self) -> Option<i64> {
        self.model.distributed()?.rank
    }

    /// How many ranks there are.
    #[getter]
    fn world_size(&self) -> Option<i64> {
        self.model.distributed()?.world_size
    }

    /// The format it was read from.
    #[getter]
    fn format(&self) -> String {
        self.model.source().format.clone()
    }

    /// The wall time in nanoseconds: of the program where the recording knows it, else from the first event to the last.
    #[getter]
    fn wall_time_ns(&self) -> i64 {
        self.model.wall().0
    }

    /// Unix time in nanoseconds at the start of the trace, where it is known.
    #[getter]
    fn unix_start_ns(&self) -> Option<i64> {
        self.model.clock().unix_origin()
    }
}
