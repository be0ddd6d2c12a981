//! `CallProfiler`: the tracer of calls as Python sees it, and the tables of functions. `hotspan.cprofile` is the API around it.

use std::sync::{Arc, Mutex, PoisonError};

use hotspan_analyze::Functions;
use hotspan_analyze::functions::Restriction;
use hotspan_collect::calls::{CallSums, CallsError, Options, Tracer};
use hotspan_store::{Duration, TraceBuilder};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::{CollectError, from_sort};
use crate::trace::PyTrace;

pub(crate) fn from_calls(error: &CallsError) -> PyErr {
    match error {
        // What cProfile raises when another profiler is active.
        CallsError::AlreadyTracing | CallsError::NoToolId => PyValueError::new_err(error.to_string()),
        _ => CollectError::new_err(error.to_string()),
    }
}

#[derive(Clone, Copy)]
struct Flags {
    subcalls: bool,
    builtins: bool,
    /// How many calls of a thread are kept as spans.
    spans: usize,
}

impl Flags {
    fn options(self) -> Options {
        Options { builtins: self.builtins, spans: self.spans, ..Options::default() }
    }
}

/// Traces calls and adds them up. Dropping it ends it; before Python 3.12 its thread holds it while it is on, as cProfile's.
#[pyclass(frozen, subclass, name = "CallProfiler", module = "hotspan._core")]
pub(crate) struct PyCallProfiler {
    tracer: Arc<Tracer>,
    flags: Mutex<Flags>,
}

impl PyCallProfiler {
    fn flags(&self) -> Flags {
        *self.flags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PyCallProfiler {
    fn drop(&mut self) {
        // SAFETY: a plain question. When Python ends, modules are gone that ending a tracer would ask for; the events that still
        // come find the tracer, which nobody frees any more.
        if unsafe { pyo3::ffi::Py_IsInitialized() } == 0 {
            return;
        }
        // Python drops its objects with the GIL held, which this needs.
        self.tracer.close();
    }
}

fn seconds(time: Duration) -> f64 {
    time.0 as f64 / 1e9
}

#[pymethods]
impl PyCallProfiler {
    #[new]
    #[pyo3(signature = (timer=None, timeunit=None, subcalls=true, builtins=true, *, spans=0))]
    fn new(
        timer: Option<&Bound<'_, PyAny>>,
        timeunit: Option<f64>,
        subcalls: bool,
        builtins: bool,
        spans: usize,
    ) -> PyResult<Self> {
        let mut tracer = Tracer::new().map_err(|error| from_calls(&error))?;
        if let Some(timer) = timer {
            if !timer.is_callable() {
                return Err(PyTypeError::new_err("the timer must be a function that returns a number"));
            }
            // SAFETY: the GIL is held and the timer is a live object.
            tracer = unsafe { tracer.with_timer(timer.as_ptr().cast(), timeunit.unwrap_or(0.0)) };
        }
        Ok(Self { tracer: Arc::new(tracer), flags: Mutex::new(Flags { subcalls, builtins, spans }) })
    }

    /// Begin to trace, on all threads.
    #[pyo3(signature = (subcalls=None, builtins=None))]
    fn enable(slf: &Bound<'_, Self>, subcalls: Option<bool>, builtins: Option<bool>) -> PyResult<()> {
        let profiler = slf.get();
        if profiler.tracer.is_running() {
            return Ok(());
        }
        let before = profiler.flags();
        let flags = Flags {
            subcalls: subcalls.unwrap_or(before.subcalls),
            builtins: builtins.unwrap_or(before.builtins),
            ..before
        };
        *profiler.flags.lock().unwrap_or_else(PoisonError::into_inner) = flags;
        profiler.tracer.start(flags.options()).map_err(|error| from_calls(&error))?;
        // SAFETY: the GIL is held, and the object is this one.
        unsafe { profiler.tracer.show_as(slf.as_ptr().cast()) };
        Ok(())
    }

    /// Stop tracing. What was added up stays.
    fn disable(&self) {
        self.tracer.stop();
    }

    /// Forget what was added up.
    fn clear(slf: &Bound<'_, Self>) {
        let profiler = slf.get();
        let was_running = profiler.tracer.is_running();
        profiler.tracer.stop();
        profiler.tracer.clear();
        if was_running && profiler.tracer.start(profiler.flags().options()).is_ok() {
            // SAFETY: the GIL is held, and the object is this one.
            unsafe { profiler.tracer.show_as(slf.as_ptr().cast()) };
        }
    }

    /// Functions as cProfile's `getstats` lists them: plain tuples.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let table = self.tracer.table();
        let code = |index: usize| -> PyResult<Bound<'py, PyAny>> {
            let function = &table.functions[index];
            match &function.code {
                // SAFETY: the table keeps the code object alive.
                Some(code) => Ok(unsafe { Bound::from_borrowed_ptr(py, code.as_ptr().cast()) }),
                None => Ok(function.name.as_str().into_pyobject(py)?.into_any()),
            }
        };
        let numbers = |sums: &CallSums| (sums.calls, sums.recursive, seconds(sums.total), seconds(sums.own));
        let mut callees: Vec<Vec<Bound<'py, PyTuple>>> = vec![Vec::new(); table.functions.len()];
        if self.flags().subcalls {
            for (caller, callee, sums) in &table.edges {
                let (calls, recursive, total, own) = numbers(sums);
                callees[*caller].push((code(*callee)?, calls, recursive, total, own).into_pyobject(py)?);
            }
        }
        let list = PyList::empty(py);
        for (index, (function, callees)) in table.functions.iter().zip(callees).enumerate() {
            let (calls, recursive, total, own) = numbers(&function.sums);
            let callees = if callees.is_empty() { None } else { Some(callees) };
            list.append((code(index)?, calls, recursive, total, own, callees))?;
        }
        Ok(list)
    }

    /// What was added up, and the calls that were kept, as a trace.
    fn trace(&self) -> PyTrace {
        let mut table = self.tracer.table();
        if !self.flags().subcalls {
            table.edges.clear();
        }
        let mut builder = TraceBuilder::new();
        builder.source.format = "hotspan recording".to_owned();
        table.write(&mut builder);
        self.tracer.write_spans(&mut builder);
        PyTrace::new(builder.finish())
    }
}

/// The functions of a trace as pstats keeps them: `{(file, line, name): (primitive calls, calls, own, total, callers)}`.
#[pyfunction]
pub(crate) fn function_stats<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<Bound<'py, PyDict>> {
    let functions = py.detach(|| Functions::of(trace.trace()));
    let stats = PyDict::new(py);
    for row in functions.rows() {
        let callers = PyDict::new(py);
        for (caller, sums) in &row.callers {
            let key = (&caller.file, caller.line, &caller.name);
            callers.set_item(key, (sums.calls, sums.primitive, seconds(sums.own), seconds(sums.total)))?;
        }
        let (function, sums) = (&row.function, &row.sums);
        let value = (sums.primitive, sums.calls, seconds(sums.own), seconds(sums.total), callers);
        stats.set_item((&function.file, function.line, &function.name), value)?;
    }
    Ok(stats)
}

/// The functions of a trace as pstats prints them, sorted by these keys; folders of files are left out on request.
#[pyfunction]
pub(crate) fn function_text(
    py: Python<'_>,
    trace: &PyTrace,
    sort: &str,
    without_folders: bool,
    restrictions: Vec<String>,
) -> PyResult<String> {
    py.detach(|| {
        let mut functions = Functions::of(trace.trace());
        if without_folders {
            functions = functions.without_folders();
        }
        functions.sort(sort)?;
        let restrictions: Vec<_> = restrictions.iter().map(|text| Restriction::parse(text)).collect();
        Ok(hotspan::stats_text(&functions, &[], &restrictions))
    })
    .map_err(|error| from_sort(&error))
}
