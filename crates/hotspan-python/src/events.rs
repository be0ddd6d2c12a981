//! `Events` and `Event`: the spans one by one, made when asked for.

use std::ffi::CStr;
use std::sync::Arc;

use hotspan_store::{ArgOrigin, Args, SpanId, Trace};
use pyo3::exceptions::{PyDeprecationWarning, PyIndexError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::json::to_python;

/// All spans, in file order: a sequence that makes its items on demand.
#[pyclass(frozen, name = "Events", module = "hotspan._core", sequence)]
pub(crate) struct PyEvents {
    pub(crate) trace: Arc<Trace>,
}

#[pymethods]
impl PyEvents {
    fn __len__(&self) -> usize {
        self.trace.spans().len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyEvent> {
        let span = SpanId::at(position(index, self.trace.spans().len())?);
        Ok(PyEvent { trace: Arc::clone(&self.trace), span })
    }
}

/// One span.
#[pyclass(frozen, name = "Event", module = "hotspan._core")]
pub(crate) struct PyEvent {
    trace: Arc<Trace>,
    span: SpanId,
}

#[pymethods]
impl PyEvent {
    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        self.trace.span_name(self.span)
    }

    /// Its category as the file spells it.
    #[getter]
    fn category(&self) -> &str {
        self.trace.category_name(self.trace.spans().category(self.span))
    }

    /// Nanoseconds from the start of the trace to its beginning.
    #[getter]
    fn start_ns(&self) -> i64 {
        self.trace.spans().time(self.span).0
    }

    /// How many nanoseconds it took.
    #[getter]
    fn duration_ns(&self) -> i64 {
        self.trace.spans().duration(self.span).0
    }

    /// Microseconds from the start of the trace to its beginning; deprecated.
    #[getter]
    fn start_us(&self, py: Python<'_>) -> PyResult<f64> {
        microseconds(py, c"Event.start_us is deprecated: use Event.start_ns", self.start_ns())
    }

    /// How many microseconds it took; deprecated.
    #[getter]
    fn duration_us(&self, py: Python<'_>) -> PyResult<f64> {
        microseconds(py, c"Event.duration_us is deprecated: use Event.duration_ns", self.duration_ns())
    }

    /// Its process as the trace numbers it.
    #[getter]
    fn process(&self) -> String {
        let track = self.trace.track(self.trace.spans().track(self.span));
        self.trace.process(track.process).ident.display(self.trace.strings())
    }

    /// Its thread or stream as the trace numbers it.
    #[getter]
    fn thread(&self) -> String {
        self.trace.track(self.trace.spans().track(self.span)).ident.display(self.trace.strings())
    }

    /// Everything else it carries.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        all_args(py, &self.trace, self.trace.spans().args(self.span))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Event {:?} {} at {:.3}us for {:.3}us>",
            self.name(),
            self.category(),
            self.start_ns() as f64 / 1e3,
            self.duration_ns() as f64 / 1e3
        )
    }
}

/// Everything that an event carries besides times and names.
pub(crate) fn all_args<'py>(py: Python<'py>, trace: &Trace, args: Args) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (key, value) in trace.args(args) {
        let object = to_python(py, &value.resolve(trace.strings()).to_json())?;
        match key.origin {
            ArgOrigin::Args | ArgOrigin::Event => found.set_item(trace.str(key.name), object)?,
            ArgOrigin::Packed => {
                for part in ["event", "args"] {
                    found.update(object.bind(py).get_item(part)?.cast::<PyDict>()?.as_mapping())?;
                }
            }
        }
    }
    Ok(found)
}

/// The position that an index of Python means, which counts from the end when it is negative.
pub(crate) fn position(index: isize, length: usize) -> PyResult<usize> {
    let at = if index < 0 { index.checked_add_unsigned(length) } else { Some(index) };
    let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < length);
    at.ok_or_else(|| PyIndexError::new_err("event index out of range"))
}

fn microseconds(py: Python<'_>, warning: &CStr, nanoseconds: i64) -> PyResult<f64> {
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), warning, 1)?;
    Ok(nanoseconds as f64 / 1e3)
}
