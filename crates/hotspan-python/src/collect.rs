//! `Recorder`: the collectors of operators and of device work as Python sees them. When to record is decided in Python.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hotspan_collect::calls::{self, Tracer};
use hotspan_collect::clock::{self, Ticks};
use hotspan_collect::cupti;
use hotspan_collect::torch::{Mark, MarkedBlock, Options, Session, Shim, TensorTable};
use pyo3::prelude::*;

use crate::calls::from_calls;
use crate::error::{CollectError, from_collect};
use crate::trace::PyTrace;

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

/// A time, a thread of the system, a role of tensors (or `forward_begin`, `forward_end`), and the tensors' memory: device
/// type, device index, address, bytes.
pub(crate) type PyMark = (u64, i64, String, Vec<(i64, i64, u64, u64)>);

pub(crate) fn mark(what: String, blocks: Vec<(i64, i64, u64, u64)>) -> Mark {
    match what.as_str() {
        "forward_begin" | "forward_end" => Mark::Forward { begins: what == "forward_begin" },
        _ => Mark::Tensors {
            role: what,
            blocks: blocks
                .into_iter()
                .map(|(device_type, device_index, address, bytes)| MarkedBlock {
                    device_type,
                    device_index,
                    address,
                    bytes,
                })
                .collect(),
        },
    }
}

/// Which tensors the inputs of recorded operators are.
#[pyclass(frozen, name = "InputTensors", module = "hotspan._core")]
pub(crate) struct PyInputTensors(TensorTable);

/// The addresses of a `TensorImpl` and of its data, then the numbers of dtype, layout, device type and device.
type PyInputTensor = (u64, u64, u8, u8, u8, i32);

#[pymethods]
impl PyInputTensors {
    /// Those of the operator with this `External id` that have a shape, in order, with those of lists.
    fn of(&self, external_id: i64) -> Vec<PyInputTensor> {
        let tensors = self.0.of(external_id).iter();
        tensors
            .map(|one| {
                (one.implementation, one.data, one.dtype, one.layout, one.device_type, one.device_index)
            })
            .collect()
    }
}

/// A running recording of torch operators. Dropping it ends it.
#[pyclass(frozen, name = "Recorder", module = "hotspan._core")]
pub(crate) struct PyRecorder {
    session: Mutex<Option<Session>>,
    /// Traces calls meanwhile: `with_stack`.
    tracer: Mutex<Option<Arc<Tracer>>>,
    device: Mutex<Option<cupti::Session>>,
}

/// At most this many calls of a thread are kept: half a gigabyte.
const MOST_CALLS: usize = 20_000_000;

impl PyRecorder {
    fn take_device(&self) -> Option<cupti::Session> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn with<T>(&self, act: impl FnOnce(&Session) -> T) -> Option<T> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(act)
    }
}

impl PyRecorder {
    fn end_calls(&self) -> Option<Arc<Tracer>> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        tracer.stop();
        Some(tracer)
    }
}

impl Drop for PyRecorder {
    fn drop(&mut self) {
        // Python drops its objects with the GIL held, which this needs.
        if let Some(tracer) = self.end_calls() {
            tracer.clear();
        }
    }
}

#[pymethods]
impl PyRecorder {
    /// Begins to record on all threads, with what is named: `shapes`, `memory`, `prepared_inputs`, `ids`, `tensors`,
    /// `modules`, `overload_names`.
    #[staticmethod]
    #[pyo3(signature = (torch_root, what))]
    fn start(py: Python<'_>, torch_root: PathBuf, what: HashSet<String>) -> PyResult<Self> {
        let options = Options {
            shapes: what.contains("shapes"),
            memory: what.contains("memory"),
            prepared_inputs: what.contains("prepared_inputs"),
            ids: what.contains("ids"),
            tensors: what.contains("tensors"),
            modules: what.contains("modules"),
            overload_names: what.contains("overload_names"),
            ranges: true,
            ..Options::default()
        };
        let started = py.detach(|| Session::start(&Shim::load(&torch_root)?, options));
        let session = started.map_err(|error| from_collect(&error))?;
        Ok(Self { session: Mutex::new(Some(session)), device: Mutex::new(None), tracer: Mutex::new(None) })
    }

    /// Traces calls of Python functions too, beginning with those that run. Calls of the code of `nn.Module.__call__` are
    /// named by the module.
    fn trace_calls(&self, module_call: &Bound<'_, PyAny>) -> PyResult<()> {
        let tracer = Arc::new(Tracer::new().map_err(|error| from_calls(&error))?);
        tracer.name_modules(module_call.as_ptr().cast());
        let options = calls::Options { builtins: true, spans: MOST_CALLS, running: true };
        tracer.start(options).map_err(|error| CollectError::new_err(error.to_string()))?;
        *self.tracer.lock().unwrap_or_else(PoisonError::into_inner) = Some(tracer);
        Ok(())
    }

    /// Begins to record device work too. What fails here leaves the recording of operators as it is.
    /// `kinds` are those of Kineto's that are wanted; None is all.
    #[pyo3(signature = (waits, kinds))]
    fn start_device(&self, py: Python<'_>, waits: bool, kinds: Option<Vec<String>>) -> PyResult<()> {
        let has = |kind: &str| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|one| one == kind));
        let work = cupti::Work {
            kernels: has("CONCURRENT_KERNEL"),
            copies: has("GPU_MEMCPY"),
            fills: has("GPU_MEMSET"),
        };
        let waits = waits || (kinds.is_some() && has("CUDA_SYNC"));
        let options = cupti::Options { waits, work, ..cupti::Options::default() };
        let start = || cupti::Session::start(&cupti::Library::load()?, options);
        let device = py.detach(start).map_err(|error| CollectError::new_err(error.to_string()))?;
        *self.device.lock().unwrap_or_else(PoisonError::into_inner) = Some(device);
        Ok(())
    }

    /// Ends the recording; what was recorded, with this metadata (keys and JSON texts), is a trace. Which tensors the
    /// inputs are comes beside it.
    /// Marks say what tensors are, by readings of the recording clock. Files of Python functions are shown without these
    /// prefixes.
    fn stop(
        &self,
        py: Python<'_>,
        metadata: Vec<(String, String)>,
        marks: Vec<PyMark>,
        prefixes: Vec<String>,
    ) -> PyResult<(PyTrace, PyInputTensors)> {
        let calls = self.end_calls().map(|tracer| {
            let calls = tracer.take_spans(&prefixes);
            tracer.clear();
            calls
        });
        let stopped = py.detach(|| {
            let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            let marks = marks
                .into_iter()
                .map(|(time, thread, what, blocks)| (Ticks(time), thread, mark(what, blocks)));
            // Operators first: what it takes to stop the device is no part of the recording.
            let mut recording = session.stop().with_marks(marks).with_calls(calls.unwrap_or_default());
            if let Some(device) = self.take_device().and_then(cupti::Session::stop) {
                recording.add_device(device);
            }
            let (mut builder, tensors) = recording.into_builder_and_tensors();
            for (key, json) in &metadata {
                builder.metadata.set(key, json);
            }
            Some((builder.finish(), tensors))
        });
        let stopped = stopped.map(|(trace, tensors)| (PyTrace::new(trace), PyInputTensors(tensors)));
        stopped.ok_or_else(|| CollectError::new_err("this recording was stopped already"))
    }

    /// Ends the recording and forgets what it recorded.
    fn discard(&self, py: Python<'_>) {
        if let Some(tracer) = self.end_calls() {
            tracer.clear();
        }
        py.detach(|| {
            drop(self.take_device());
            drop(self.session.lock().unwrap_or_else(PoisonError::into_inner).take());
        });
    }

    /// Pauses or resumes.
    fn toggle(&self, record: bool) {
        self.with(|session| session.toggle(record));
    }

    /// Stops recording memory, for good, so that torch.profiler can start.
    fn release_memory(&self) {
        self.with(Session::release_memory);
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
