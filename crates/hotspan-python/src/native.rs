//! `NativeSampler`: the sampler of this process as Python sees it, and the watch on the garbage collector beside it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use hotspan_collect::clock::{self, Ticks};
use hotspan_collect::native::{Options, Rate, Recorder, SampleError};
use hotspan_store::{FrameKind, SampleRow, SampleState, TraceBuilder};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{CollectError, from_sample};
use crate::forks;
use crate::signals;
use crate::trace::PyTrace;

pub(crate) type Running = Arc<Mutex<Option<Recorder>>>;

/// A running sampler of all threads of this process. Dropping it ends it.
#[pyclass(frozen, name = "NativeSampler", module = "hotspan._core")]
pub(crate) struct PyNativeSampler {
    running: Running,
    pauses: Option<Py<GarbagePauses>>,
    /// How many threads of the program fork now.
    forks: Arc<AtomicUsize>,
    process: u32,
}

fn lock(running: &Running) -> MutexGuard<'_, Option<Recorder>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl PyNativeSampler {
    /// Begins to sample; into a file that grows as the program runs, when there is a path.
    #[staticmethod]
    #[pyo3(signature = (rate, native, waiting, gc, path))]
    fn start(
        py: Python<'_>,
        rate: u32,
        native: bool,
        waiting: bool,
        gc: bool,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        signals::guard(py)?;
        forks::guard(py)?;
        let started = py.detach(|| -> Result<Recorder, SampleError> {
            let options = Options { rate: Rate::new(rate)?, native, waiting, names_later: false };
            match &path {
                Some(path) => Recorder::start_to(options, path),
                None => Recorder::start(options),
            }
        });
        let running = Arc::new(Mutex::new(Some(started.map_err(|error| from_sample(&error))?)));
        let pauses = if gc { Some(GarbagePauses::watch(py, Arc::clone(&running))?) } else { None };
        Ok(Self { running, pauses, forks: Arc::default(), process: std::process::id() })
    }

    /// Ends the thread for the moment of a fork.
    fn pause(&self, py: Python<'_>) {
        py.detach(|| {
            let mut running = lock(&self.running);
            if self.forks.fetch_add(1, Ordering::Relaxed) == 0
                && let Some(recorder) = running.as_mut()
            {
                recorder.pause();
            }
        });
    }

    /// Starts it again, where no other thread forks.
    fn resume(&self, py: Python<'_>) {
        let (running, forks) = (Arc::clone(&self.running), Arc::clone(&self.forks));
        forks::resume(py, move || {
            let mut running = lock(&running);
            if forks.fetch_sub(1, Ordering::Relaxed) == 1
                && let Some(recorder) = running.as_mut()
            {
                recorder.resume();
            }
        });
    }

    /// Ends the recording: the trace, or nothing when a file has it.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<PyTrace>> {
        if let Some(pauses) = &self.pauses {
            GarbagePauses::unwatch(py, pauses)?;
        }
        if self.process != std::process::id() {
            // In a forked child another thread may have held the lock for good. The recording is the parent's.
            return Ok(Some(PyTrace::new(TraceBuilder::new().finish())));
        }
        let recorder = lock(&self.running).take();
        let recorder = recorder.ok_or_else(|| CollectError::new_err("this recording was stopped already"))?;
        let stopped = py.detach(|| recorder.stop().map(|left| (left.spool.is_none(), left.builder.finish())));
        let (is_here, trace) = stopped.map_err(|error| from_sample(&error))?;
        Ok(is_here.then(|| PyTrace::new(trace)))
    }
}

impl Drop for PyNativeSampler {
    /// The garbage collector's callback has a share of the recording, so that it would go on without us.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            Python::attach(|py| {
                if let Some(pauses) = &self.pauses {
                    // Without the list of callbacks nobody calls it.
                    let _ = GarbagePauses::unwatch(py, pauses);
                }
                py.detach(|| drop(lock(&self.running).take()));
            });
        }
    }
}

/// What `gc.callbacks` calls at the beginning and the end of each collection.
#[pyclass(frozen, module = "hotspan._core")]
pub(crate) struct GarbagePauses {
    running: Running,
    /// When the collection began; one runs at a time.
    began: AtomicU64,
}

impl GarbagePauses {
    pub(crate) fn watch(py: Python<'_>, running: Running) -> PyResult<Py<Self>> {
        let pauses = Py::new(py, Self { running, began: AtomicU64::new(0) })?;
        py.import("gc")?.getattr("callbacks")?.call_method1("append", (&pauses,))?;
        Ok(pauses)
    }

    pub(crate) fn unwatch(py: Python<'_>, pauses: &Py<Self>) -> PyResult<()> {
        let callbacks = py.import("gc")?.getattr("callbacks")?;
        if callbacks.contains(pauses)? {
            callbacks.call_method1("remove", (pauses,))?;
        }
        Ok(())
    }
}

#[pymethods]
impl GarbagePauses {
    fn __call__(&self, phase: &str, info: &Bound<'_, PyDict>) {
        if phase == "start" {
            self.began.store(clock::now().0, Ordering::Relaxed);
            return;
        }
        let (start, end) = (self.began.swap(0, Ordering::Relaxed), clock::now());
        let generation =
            info.get_item("generation").ok().flatten().and_then(|value| value.extract::<u8>().ok());
        let name = match generation {
            Some(0) => "gc gen 0",
            Some(1) => "gc gen 1",
            _ => "gc gen 2",
        };
        // Never waits: the lock may be that of a thread which a fork left behind.
        let running = match self.running.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if let Some(recorder) = running.as_ref().filter(|_| start != 0) {
            recorder.add_span("gc", name, Ticks(start), end);
        }
    }
}

/// A frame: name, file, line, kind.
type FrameTuple = (String, String, u32, &'static str);
/// A sample: time, weight, thread, state, whether it held the interpreter's lock, and frames from the innermost.
type SampleTuple = (i64, i64, String, &'static str, bool, Vec<FrameTuple>);

/// The samples of a trace, one by one.
#[pyfunction]
pub(crate) fn sample_stacks(py: Python<'_>, trace: &PyTrace) -> Vec<SampleTuple> {
    let trace = Arc::clone(trace.trace());
    py.detach(|| {
        let profile = trace.profile();
        let frame = |id| {
            let row = profile.frames.row(id);
            let kind = match row.kind {
                FrameKind::Python => "python",
                FrameKind::Native => "native",
                FrameKind::Builtin => "builtin",
            };
            (trace.str(row.name).to_owned(), trace.str(row.file).to_owned(), row.line, kind)
        };
        let sample = |row: SampleRow| {
            let state = match row.state {
                SampleState::Unknown => "unknown",
                SampleState::Running => "running",
                SampleState::Io => "io",
                SampleState::Lock => "lock",
                SampleState::Sleep => "sleep",
                SampleState::Waiting => "waiting",
            };
            let thread = trace.track(row.track).ident.display(trace.strings());
            let frames = profile.stacks.frames(row.stack).map(frame).collect();
            (row.time.0, row.weight.0, thread, state, row.gil, frames)
        };
        profile.samples.rows().map(sample).collect()
    })
}
