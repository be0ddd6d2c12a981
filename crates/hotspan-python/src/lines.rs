//! `LineRecorder`: the line collector as Python sees it, and its text reports. Asks the interpreter to call the collector:
//! by `sys.monitoring` where there is one, by a trace function before.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use hotspan_analyze::lines::{LineReportOptions, line_functions, line_report, memory_report};
use hotspan_collect::lines::monitoring::Event;
use hotspan_collect::lines::{Function, LineRecorder, Measure, Object, check, resident_bytes, tracing};
use hotspan_formats::export::lprof::Lprof;
use hotspan_formats::save;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::{CollectError, from_export};
use crate::trace::PyTrace;

/// Tool ids of `sys.monitoring` in the order they are tried: those nobody has by name first.
const TOOL_IDS: [u8; 5] = [3, 4, 2, 1, 5];
const TOOL_NAME: &str = "hotspan.lines";

/// Which code objects the interpreter tells about, and for how many recorders.
#[derive(Default)]
struct Monitoring {
    tool: Option<u8>,
    codes: HashMap<usize, usize>,
}

static MONITORING: Mutex<Option<Monitoring>> = Mutex::new(None);

thread_local! {
    /// The trace function that was set when this thread began to be watched.
    static EARLIER_TRACE: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

fn has_monitoring(py: Python<'_>) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| py.version_info() >= (3, 12))
}

/// A collector, whose state is protected by the GIL.
struct Collector(LineRecorder);

// SAFETY: every use is in a method below, which has the GIL.
unsafe impl Send for Collector {}
// SAFETY: as above.
unsafe impl Sync for Collector {}

/// Whether and how often recording was asked for.
#[derive(Default)]
struct State {
    count: Cell<usize>,
    explicit: Cell<bool>,
    attached: Cell<bool>,
    /// The trace function for new threads that was set before ours.
    earlier_for_threads: RefCell<Option<Py<PyAny>>>,
    codes: RefCell<Vec<Py<PyAny>>>,
}

/// Records the lines of chosen functions.
#[pyclass(frozen, name = "LineRecorder", module = "hotspan._core")]
pub(crate) struct PyLineRecorder {
    collector: Collector,
    state: Mutex<State>,
}

impl PyLineRecorder {
    fn state<T>(&self, act: impl FnOnce(&State) -> T) -> T {
        act(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From here on the interpreter tells about the lines of all code objects added.
    fn attach(&self, py: Python<'_>) -> PyResult<()> {
        if !has_monitoring(py) || self.state(|state| state.attached.replace(true)) {
            return Ok(());
        }
        let codes = self.state(|state| state.codes.borrow().iter().map(|code| code.clone_ref(py)).collect());
        watch(py, codes)
    }

    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        if !self.state(|state| state.attached.replace(false)) {
            return Ok(());
        }
        let codes = self.state(|state| state.codes.borrow().iter().map(|code| code.clone_ref(py)).collect());
        // SAFETY: the GIL is held.
        unsafe { self.collector.0.forget_frames() };
        unwatch(py, codes)
    }
}

#[pymethods]
impl PyLineRecorder {
    #[new]
    fn new(memory: bool) -> PyResult<Self> {
        check().map_err(|error| CollectError::new_err(error.to_string()))?;
        let measure = if memory { Measure::Memory } else { Measure::Time };
        Ok(Self { collector: Collector(LineRecorder::new(measure)), state: Mutex::default() })
    }

    /// Watches a function: its code object, then others whose lines count as its own.
    #[expect(clippy::too_many_arguments, reason = "what a function is")]
    fn add(
        &self,
        py: Python<'_>,
        codes: Vec<Py<PyAny>>,
        name: String,
        file: String,
        first_line: u32,
        last_line: u32,
        statements: Vec<u32>,
    ) -> PyResult<()> {
        let function = Function { name, file, first_line, last_line, statements };
        let with_line = |code: &Py<PyAny>| -> PyResult<(*mut Object, u32)> {
            Ok((code.as_ptr().cast(), code.bind(py).getattr("co_firstlineno")?.extract()?))
        };
        let pointers: Vec<(*mut Object, u32)> = codes.iter().map(with_line).collect::<PyResult<_>>()?;
        // SAFETY: the GIL is held, and the caller passes code objects, which `codes` keeps alive.
        unsafe { self.collector.0.add(function, &pointers) };
        if self.state(|state| state.attached.get()) {
            watch(py, codes.iter().map(|code| code.clone_ref(py)).collect())?;
        }
        self.state(|state| state.codes.borrow_mut().extend(codes));
        Ok(())
    }

    /// Records on this thread (with `sys.monitoring`: on all) until `disable_by_count` was called as often.
    fn enable_by_count(&self, py: Python<'_>) -> PyResult<()> {
        self.attach(py)?;
        if self.state(|state| state.count.replace(state.count.get() + 1)) == 0 {
            self.collector.0.enable();
        }
        if has_monitoring(py) { Ok(()) } else { begin_tracing(py) }
    }

    fn disable_by_count(&self, py: Python<'_>) -> PyResult<()> {
        let before = self.state(|state| state.count.replace(state.count.get().saturating_sub(1)));
        if before == 0 {
            return Ok(());
        }
        if before == 1 {
            self.collector.0.disable();
        }
        if has_monitoring(py) { Ok(()) } else { end_tracing(py) }
    }

    /// Records on this thread and on those that begin later (with `sys.monitoring`: on all) until `disable`.
    fn enable(&self, py: Python<'_>) -> PyResult<()> {
        if self.state(|state| state.explicit.replace(true)) {
            return Ok(());
        }
        self.enable_by_count(py)?;
        if !has_monitoring(py) {
            let threading = py.import("threading")?;
            let earlier = threading.call_method0("gettrace")?.unbind();
            threading.call_method1("settrace", (marker(py)?,))?;
            self.state(|state| state.earlier_for_threads.replace(Some(earlier)));
        }
        Ok(())
    }

    fn disable(&self, py: Python<'_>) -> PyResult<()> {
        if self.state(|state| state.explicit.replace(false)) {
            if !has_monitoring(py) {
                let earlier = self.state(|state| state.earlier_for_threads.take());
                let earlier = earlier.unwrap_or_else(|| py.None());
                py.import("threading")?.call_method1("settrace", (earlier,))?;
            }
            self.disable_by_count(py)?;
        }
        self.rest(py)
    }

    /// Lets go of the interpreter when nothing is to be recorded, so that watched functions run at full speed.
    fn rest(&self, py: Python<'_>) -> PyResult<()> {
        if self.state(|state| state.count.get()) == 0 { self.detach(py) } else { Ok(()) }
    }

    #[getter]
    fn enable_count(&self) -> usize {
        self.state(|state| state.count.get())
    }

    #[getter]
    fn is_enabled(&self) -> bool {
        self.collector.0.is_enabled()
    }

    /// Forgets what was recorded.
    fn clear(&self) {
        self.collector.0.clear();
    }

    /// What was recorded so far.
    fn snapshot(&self) -> PyTrace {
        PyTrace::new(self.collector.0.to_builder().finish())
    }
}

impl Drop for PyLineRecorder {
    fn drop(&mut self) {
        let _ = Python::try_attach(|py| {
            // When the interpreter refuses, it is ending.
            let _ = self.disable(py);
            let _ = self.detach(py);
            // SAFETY: the GIL is held.
            for code in unsafe { self.collector.0.close() } {
                // SAFETY: the collector hands over the reference it held.
                drop(unsafe { Bound::from_owned_ptr(py, code.cast()) });
            }
        });
    }
}

fn monitoring<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import("sys")?.getattr("monitoring")
}

fn event_bits(monitoring: &Bound<'_, PyAny>, local: bool) -> PyResult<u32> {
    let events = monitoring.getattr("events")?;
    let wanted = Event::ALL.into_iter().filter(|event| event.is_local() == local);
    wanted
        .map(|event| events.getattr(event.name())?.extract::<u32>())
        .try_fold(0, |bits, bit| Ok(bits | bit?))
}

/// Takes a tool id and registers the callbacks, once.
fn tool(py: Python<'_>) -> PyResult<u8> {
    let with = |act: &dyn Fn(&mut Monitoring) -> Option<u8>| {
        let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
        act(guard.get_or_insert_with(Monitoring::default))
    };
    if let Some(tool) = with(&|monitoring| monitoring.tool) {
        return Ok(tool);
    }
    let monitoring = monitoring(py)?;
    for id in TOOL_IDS {
        if !monitoring.call_method1("get_tool", (id,))?.is_none() {
            continue;
        }
        monitoring.call_method1("use_tool_id", (id, TOOL_NAME))?;
        let events = monitoring.getattr("events")?;
        for event in Event::ALL {
            // SAFETY: the GIL is held; the function made is ours to own, null comes with an exception.
            let callback = unsafe { Bound::from_owned_ptr_or_err(py, event.callback().cast()) }?;
            monitoring.call_method1("register_callback", (id, events.getattr(event.name())?, callback))?;
        }
        monitoring.call_method1("set_events", (id, event_bits(&monitoring, false)?))?;
        with(&|monitoring| monitoring.tool.replace(id));
        return Ok(id);
    }
    Err(PyRuntimeError::new_err(
        "all tool ids of sys.monitoring are taken; stop another profiler, debugger or coverage tool first",
    ))
}

fn watch(py: Python<'_>, codes: Vec<Py<PyAny>>) -> PyResult<()> {
    let tool = tool(py)?;
    let monitoring = monitoring(py)?;
    let bits = event_bits(&monitoring, true)?;
    for code in codes {
        let count = {
            let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
            let known = guard.get_or_insert_with(Monitoring::default);
            let count = known.codes.entry(code.as_ptr() as usize).or_default();
            *count += 1;
            *count
        };
        if count == 1 {
            monitoring.call_method1("set_local_events", (tool, code, bits))?;
        }
    }
    Ok(())
}

fn unwatch(py: Python<'_>, codes: Vec<Py<PyAny>>) -> PyResult<()> {
    let monitoring = monitoring(py)?;
    for code in codes {
        let (tool, last) = {
            let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
            let known = guard.get_or_insert_with(Monitoring::default);
            let key = code.as_ptr() as usize;
            let left = known.codes.get(&key).copied().unwrap_or(0).saturating_sub(1);
            if left == 0 {
                known.codes.remove(&key);
            } else {
                known.codes.insert(key, left);
            }
            (known.tool, left == 0)
        };
        if let (Some(tool), true) = (tool, last) {
            monitoring.call_method1("set_local_events", (tool, code, 0))?;
        }
    }
    // The last one gives the tool id back, for others to use.
    let unused = {
        let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_mut().filter(|known| known.codes.is_empty()).and_then(|known| known.tool.take())
    };
    if let Some(tool) = unused {
        monitoring.call_method1("set_events", (tool, 0))?;
        let events = monitoring.getattr("events")?;
        for event in Event::ALL {
            monitoring.call_method1("register_callback", (tool, events.getattr(event.name())?, py.None()))?;
        }
        monitoring.call_method1("free_tool_id", (tool,))?;
    }
    Ok(())
}

fn marker(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the GIL is held; the function made is ours to own, null comes with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, tracing::marker().cast()) }
}

fn is_marker(function: &Bound<'_, PyAny>) -> bool {
    let name = function.getattr("__name__").and_then(|name| name.extract::<String>());
    name.is_ok_and(|name| name == "hotspan_trace")
}

fn begin_tracing(py: Python<'_>) -> PyResult<()> {
    if !tracing::begin() {
        return Ok(());
    }
    let earlier = py.import("sys")?.call_method0("gettrace")?;
    let earlier = (!earlier.is_none()).then(|| earlier.unbind());
    let marker = marker(py)?;
    EARLIER_TRACE.with_borrow_mut(|place| *place = earlier);
    // SAFETY: the GIL is held and the marker was made for this.
    unsafe { tracing::install(marker.as_ptr().cast()) };
    Ok(())
}

fn end_tracing(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the GIL is held.
    if !unsafe { tracing::end() } {
        return Ok(());
    }
    let sys = py.import("sys")?;
    let earlier = EARLIER_TRACE.with_borrow_mut(Option::take);
    // A thread that was traced before its first watched function goes on being so.
    if earlier.as_ref().is_some_and(|earlier| is_marker(earlier.bind(py))) {
        return Ok(());
    }
    // Someone may have set another trace function meanwhile: that one stays.
    if is_marker(&sys.call_method0("gettrace")?) {
        // SAFETY: the GIL is held.
        unsafe { tracing::remove() };
        if let Some(earlier) = earlier {
            sys.call_method1("settrace", (earlier,))?;
        }
    }
    Ok(())
}

/// Bytes of memory this process has in use; 0 where the system does not say.
#[pyfunction]
pub(crate) fn resident_memory() -> i64 {
    resident_bytes().unwrap_or(0)
}

/// A function's file, first line and name, and its lines: number, hits, nanoseconds, memory, increment in bytes.
type FunctionRow = (String, u32, String, Vec<(u32, i64, i64, i64, i64)>);

/// The lines of a trace, by function.
#[pyfunction]
pub(crate) fn line_rows(py: Python<'_>, trace: &PyTrace) -> Vec<FunctionRow> {
    let functions = py.detach(|| line_functions(&trace.trace));
    let row = |function: hotspan_analyze::lines::LineFunction| {
        let lines = function.lines.iter();
        let lines =
            lines.map(|row| (row.line, row.hits, row.time.0, row.memory.0, row.increment.0)).collect();
        (function.file, function.first_line, function.name, lines)
    };
    functions.into_iter().map(row).collect()
}

/// The text of source files: those given, or as they lie on the disk.
fn source(given: &HashMap<String, String>, file: &str) -> Option<String> {
    given.get(file).cloned().or_else(|| hotspan::read_source(file))
}

/// line_profiler's report of a trace.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "line_profiler's options")]
pub(crate) fn line_text(
    py: Python<'_>,
    trace: &PyTrace,
    unit: f64,
    skip_zero: bool,
    sort: bool,
    details: bool,
    summarize: bool,
    sources: HashMap<String, String>,
) -> String {
    let options = LineReportOptions { unit, skip_zero, sort, details, summarize };
    py.detach(|| line_report(&trace.trace, &options, &|file| source(&sources, file)))
}

/// memory_profiler's report of a trace.
#[pyfunction]
pub(crate) fn memory_text(
    py: Python<'_>,
    trace: &PyTrace,
    precision: usize,
    sources: HashMap<String, String>,
) -> String {
    py.detach(|| memory_report(&trace.trace, precision, &|file| source(&sources, file)))
}

/// Writes line_profiler's file.
#[pyfunction]
pub(crate) fn write_lprof(py: Python<'_>, trace: &PyTrace, path: std::path::PathBuf) -> PyResult<()> {
    py.detach(|| save(&trace.trace, &Lprof, &path)).map_err(|error| from_export(&error))
}
