//! `Recorder`: the collectors of operators and of device work as Python sees them. When to record is decided in Python.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hotspan_collect::clock::{self, Ticks};
use hotspan_collect::cupti;
use hotspan_collect::torch::{Options, Session, Shim, TorchInstall};
use pyo3::prelude::*;

use crate::error::{CollectError, from_collect};
use crate::trace::PyTrace;

fn load(torch_root: &Path) -> Result<Shim, hotspan_collect::torch::CollectError> {
    Shim::load(&TorchInstall::at(torch_root)?)
}

/// Loads the hooks of the torch whose Python package is that folder, compiling them on first use; returns their file.
#[pyfunction]
pub(crate) fn load_torch_hooks(py: Python<'_>, torch_root: PathBuf) -> PyResult<PathBuf> {
    let shim = py.detach(|| load(&torch_root)).map_err(|error| from_collect(&error))?;
    Ok(shim.path().to_owned())
}

/// The libcupti that device work would be recorded with: its file and version.
#[pyfunction]
pub(crate) fn cupti_library(py: Python<'_>) -> PyResult<(String, u32)> {
    let library =
        py.detach(cupti::Library::load).map_err(|error| CollectError::new_err(error.to_string()))?;
    Ok((library.path().to_owned(), library.version()))
}

/// Lets CUPTI set up what it needs, so that the first recording begins at once. What fails here fails again, with a reason,
/// when recording starts.
#[pyfunction]
pub(crate) fn warm_up_device(py: Python<'_>) {
    let options = cupti::Options { counters: false, ..cupti::Options::default() };
    py.detach(|| drop(cupti::Library::load().and_then(|library| cupti::Session::start(&library, options))));
}

/// The recording clock, for `Recorder.add_span`.
#[pyfunction]
pub(crate) fn clock_now() -> u64 {
    clock::now().0
}

/// A running recording of torch operators. Dropping it ends it.
#[pyclass(frozen, name = "Recorder", module = "hotspan._core")]
pub(crate) struct PyRecorder {
    session: Mutex<Option<Session>>,
    device: Mutex<Option<cupti::Session>>,
}

impl PyRecorder {
    fn take_device(&self) -> Option<cupti::Session> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn with<T>(&self, act: impl FnOnce(&Session) -> T) -> Option<T> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(act)
    }
}

#[pymethods]
impl PyRecorder {
    /// Begins to record on all threads.
    #[staticmethod]
    #[pyo3(signature = (torch_root, shapes, memory, overload_names))]
    fn start(
        py: Python<'_>,
        torch_root: PathBuf,
        shapes: bool,
        memory: bool,
        overload_names: bool,
    ) -> PyResult<Self> {
        let options = Options { shapes, memory, overload_names, ..Options::default() };
        let started = py.detach(|| Session::start(&load(&torch_root)?, options));
        let session = started.map_err(|error| from_collect(&error))?;
        Ok(Self { session: Mutex::new(Some(session)), device: Mutex::new(None) })
    }

    /// Begins to record device work too. What fails here leaves the recording of operators as it is.
    fn start_device(&self, py: Python<'_>) -> PyResult<()> {
        let start = || cupti::Session::start(&cupti::Library::load()?, cupti::Options::default());
        let device = py.detach(start).map_err(|error| CollectError::new_err(error.to_string()))?;
        *self.device.lock().unwrap_or_else(PoisonError::into_inner) = Some(device);
        Ok(())
    }

    /// Ends the recording; what was recorded, with this metadata (keys and JSON texts), is a trace.
    fn stop(&self, py: Python<'_>, metadata: Vec<(String, String)>) -> PyResult<PyTrace> {
        let stopped = py.detach(|| {
            let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            // Operators first: what it takes to stop the device is no part of the recording.
            let mut recording = session.stop();
            if let Some(device) = self.take_device().and_then(cupti::Session::stop) {
                recording.add_device(device);
            }
            let mut builder = recording.into_builder();
            for (key, json) in &metadata {
                builder.metadata.set(key, json);
            }
            Some(builder.finish())
        });
        stopped.map(PyTrace::new).ok_or_else(|| CollectError::new_err("this recording was stopped already"))
    }

    /// Ends the recording and forgets what it recorded.
    fn discard(&self, py: Python<'_>) {
        py.detach(|| {
            drop(self.take_device());
            drop(self.session.lock().unwrap_or_else(PoisonError::into_inner).take());
        });
    }

    /// Pauses or resumes.
    fn toggle(&self, record: bool) {
        self.with(|session| session.toggle(record));
    }

    /// Pauses or resumes the recording of device work.
    fn toggle_device(&self, py: Python<'_>, record: bool) {
        py.detach(|| {
            if let Some(device) = &mut *self.device.lock().unwrap_or_else(PoisonError::into_inner) {
                device.toggle(record);
            }
        });
    }

    /// Adds a range of the calling thread, between two readings of the recording clock.
    fn add_span(&self, name: &str, start: u64, end: u64) {
        self.with(|session| session.add_span(name, Ticks(start), Ticks(end)));
    }

    /// Adds a call of a Python function on the calling thread, likewise.
    fn add_call(&self, name: &str, start: u64, end: u64) {
        self.with(|session| session.add_call(name, Ticks(start), Ticks(end)));
    }
}
