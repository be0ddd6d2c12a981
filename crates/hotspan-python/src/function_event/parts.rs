//! What an event consists of: its time and its kernels.

use pyo3::prelude::*;

/// From one moment to another, in microseconds.
#[pyclass(frozen, get_all, name = "Interval", module = "hotspan._core")]
pub(crate) struct PyInterval {
    pub(super) start: f64,
    pub(super) end: f64,
}

#[pymethods]
impl PyInterval {
    /// How long it is.
    fn elapsed_us(&self) -> f64 {
        self.end - self.start
    }

    fn __repr__(&self) -> String {
        format!("Interval(start={:.3}, end={:.3})", self.start, self.end)
    }
}

/// Device work that an event launched.
#[pyclass(frozen, get_all, name = "EventKernel", module = "hotspan._core")]
pub(crate) struct PyEventKernel {
    pub(super) name: String,
    pub(super) device: i64,
    pub(super) duration: f64,
}

#[pymethods]
impl PyEventKernel {
    fn __repr__(&self) -> String {
        let Self { name, device, duration } = self;
        format!("EventKernel(name={name:?}, device={device}, duration={duration:.3})")
    }
}
