//! `Events` and `Event`: the spans one by one, made when asked for.

use std::ffi::CStr;
use std::sync::Arc;

use hotspan_store::{Place, SpanId, Trace};
use pyo3::exceptions::{PyDeprecationWarning, PyIndexError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
        let length = self.trace.spans().len();
        let at = if index < 0 { index.checked_add_unsigned(length) } else { Some(index) };
        match at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < length) {
            Some(at) => Ok(PyEvent { trace: Arc::clone(&self.trace), span: SpanId::at(at) }),
            None => Err(PyIndexError::new_err("event index out of range")),
        }
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
        let args = PyDict::new(py);
        let json = py.import("json")?;
        for (key, value) in self.trace.args(self.trace.spans().args(self.span)) {
            let resolved = value.resolve(self.trace.strings());
            let object = json.call_method1("loads", (resolved.to_json().to_string(),))?;
            match key.place {
                Place::Args | Place::Event => args.set_item(self.trace.str(key.name), object)?,
                Place::Packed => {
                    for part in ["event", "args"] {
                        args.update(object.get_item(part)?.cast::<PyDict>()?.as_mapping())?;
                    }
                }
            }
        }
        Ok(args)
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

fn microseconds(py: Python<'_>, warning: &CStr, nanoseconds: i64) -> PyResult<f64> {
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), warning, 1)?;
    Ok(nanoseconds as f64 / 1e3)
}
