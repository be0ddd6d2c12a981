//! `Agent`: what records a whole program from inside, as Python sees it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotspan_collect::agent::{self, Agent, Device, Operators, Plan, Samples, Source};
use hotspan_collect::calls::{self, Tracer};
use hotspan_collect::clock::{self, UnixNanos, WallOffset};
use hotspan_collect::native::{self, Rate};
use hotspan_collect::process_tree::ProcessNumber;
use hotspan_collect::segments::SegmentLimit;
use hotspan_collect::torch::{Options, Session, Shim, look_for_torch};
use hotspan_store::file::FileError;
use hotspan_store::{Trace, TraceBuilder};
use pyo3::prelude::*;

use crate::calls::from_calls;
use crate::error::{CollectError, from_collect, from_sample};
use crate::forks;
use crate::json::from_python;
use crate::native::GarbagePauses;
use crate::signals;
use crate::torch_watch::TorchWatch;
use crate::trace::PyTrace;

/// Memory for records that wait to be written: enough for seconds of any program, in case the disk is slow.
const MOST_BYTES: u64 = 256 << 20;
/// How long a program that is about to end may be held up for its last moments to be written.
const LONGEST_FLUSH: Duration = Duration::from_secs(2);
/// At most this many calls of a thread are kept: half a gigabyte.
const MOST_CALLS: usize = 20_000_000;

/// The agent of this process.
#[pyclass(frozen, name = "Agent", module = "hotspan._core")]
pub(crate) struct PyAgent {
    agent: Mutex<Option<Arc<Agent>>>,
    pauses: Mutex<Option<Py<GarbagePauses>>>,
    operators: Mutex<Option<TorchSource>>,
    device: Mutex<Option<Device>>,
    tracer: Mutex<Option<Arc<Tracer>>>,
    /// Whether Python knows of torch.
    torch_is_known: Arc<AtomicBool>,
}

/// How operators are recorded, to begin again after another profiler had them.
#[derive(Clone)]
struct TorchSource {
    source: Operators,
    root: PathBuf,
    options: Options,
}

impl TorchSource {
    fn session(
        root: &std::path::Path,
        options: Options,
    ) -> Result<Session, hotspan_collect::torch::CollectError> {
        Session::start(&Shim::load(root)?, options)
    }

    fn resume(&self) -> PyResult<()> {
        let session = Self::session(&self.root, self.options).map_err(|error| from_collect(&error))?;
        self.source.resume(session);
        Ok(())
    }
}

fn resume(device: &Device) -> PyResult<()> {
    device.resume().map_err(|error| CollectError::new_err(error.to_string()))
}

/// A trace that was recorded by other means, as a source that has only that.
struct Recorded(Option<Arc<Trace>>);

impl Source for Recorded {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        if let Some(trace) = self.0.take() {
            builder.append(&trace, trace.clock().unix_origin().unwrap_or(0));
        }
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.drain(builder);
    }
}

/// These locks are held for moments, by threads that hold the GIL or soon let go.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PyAgent {
    fn unwatch(&self, py: Python<'_>) {
        let pauses = lock(&self.pauses).take();
        if let Some(pauses) = pauses {
            // While the interpreter ends there may be no such list any more.
            let _ = GarbagePauses::unwatch(py, &pauses);
        }
    }

    fn add(&self, source: Box<dyn Source>) {
        if let Some(agent) = &*lock(&self.agent) {
            agent.add(source);
        }
    }

    fn end_calls(&self) -> Option<Arc<Tracer>> {
        let tracer = lock(&self.tracer).take()?;
        tracer.stop();
        Some(tracer)
    }
}

#[pymethods]
impl PyAgent {
    /// Begins to record this process into a new file of a folder, between two moments (Unix nanoseconds), for at most a
    /// share of the program's time. All processes of a run have the same difference between wall and monotonic time. A file of
    /// `segment` bytes, or written for so many nanoseconds, is followed by another.
    #[staticmethod]
    #[pyo3(signature = (folder, since=None, until=None, budget=None, wall_offset=None, segment=None))]
    fn start(
        py: Python<'_>,
        folder: PathBuf,
        since: Option<i64>,
        until: Option<i64>,
        budget: Option<f64>,
        wall_offset: Option<i64>,
        segment: Option<(Option<u64>, Option<u64>)>,
    ) -> PyResult<Self> {
        if let Some(offset) = wall_offset {
            WallOffset(offset).agree();
        }
        look_for_torch();
        forks::guard(py)?;
        let (bytes, time) = segment.unwrap_or_default();
        let segment = SegmentLimit { bytes, time: time.map(Duration::from_nanos) };
        let plan = Plan { from: since.map(UnixNanos), until: until.map(UnixNanos), budget, segment };
        let agent = py
            .detach(|| Agent::start(&folder, plan))
            .map_err(|error| CollectError::new_err(format!("{}: {error}", folder.display())))?;
        Ok(Self {
            agent: Mutex::new(Some(Arc::new(agent))),
            pauses: Mutex::default(),
            operators: Mutex::default(),
            device: Mutex::default(),
            tracer: Mutex::default(),
            torch_is_known: Arc::default(),
        })
    }

    /// Says something about the recording: texts, numbers, lists and dictionaries of them.
    fn set_metadata(&self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let json = from_python(value)?.to_string();
        if let Some(agent) = &*lock(&self.agent) {
            agent.set_metadata(key, &json);
        }
        Ok(())
    }

    /// Says that the program gets its turn; the interpreter came to us at that moment (nanoseconds of the monotonic clock).
    fn is_ready(&self, began: i64) {
        if let Some(agent) = &*lock(&self.agent) {
            agent.is_ready(clock::unix_at(began));
        }
    }

    /// Says whether the program is where it should be recorded.
    fn record(&self, py: Python<'_>, on: bool) {
        let operators = lock(&self.operators).clone();
        if let Some(operators) = operators {
            // The agent may be busy with them; nobody else should wait for that.
            py.detach(|| operators.source.toggle(on));
        }
        // With the GIL held, so that no other thread can fork meanwhile and leave the child with a lock that is taken.
        if let Some(agent) = &*lock(&self.agent) {
            agent.record(on);
        }
    }

    /// Looks for torch in the address space until it is recorded, and calls `hotspan._agent.look_for_torch` when it is there.
    fn watch_for_torch(&self) {
        self.add(Box::new(TorchWatch::new(Arc::clone(&self.torch_is_known))));
    }

    /// Records the operators of the torch whose Python package is that folder.
    #[pyo3(signature = (torch_root, shapes, memory, on))]
    fn record_operators(
        &self,
        py: Python<'_>,
        torch_root: PathBuf,
        shapes: bool,
        memory: bool,
        on: bool,
    ) -> PyResult<()> {
        self.torch_is_known.store(true, Ordering::Release);
        let options =
            Options { shapes, memory, ranges: true, max_bytes: Some(MOST_BYTES), ..Options::default() };
        let started = py.detach(|| TorchSource::session(&torch_root, options));
        let source = Operators::new(started.map_err(|error| from_collect(&error))?);
        source.toggle(on);
        self.add(Box::new(source.clone()));
        *lock(&self.operators) = Some(TorchSource { source, root: torch_root, options });
        Ok(())
    }

    /// Records the work of CUDA devices.
    fn record_device(&self, py: Python<'_>) -> PyResult<()> {
        let device = py.detach(Device::start).map_err(|error| CollectError::new_err(error.to_string()))?;
        self.add(Box::new(device.clone()));
        *lock(&self.device) = Some(device);
        Ok(())
    }

    /// Traces calls of Python functions, for the stacks of operators. Calls of the code of `nn.Module.__call__` are named
    /// by the module.
    fn trace_calls(&self, module_call: &Bound<'_, PyAny>) -> PyResult<()> {
        let tracer = Arc::new(Tracer::new().map_err(|error| from_calls(&error))?);
        tracer.name_modules(module_call.as_ptr().cast());
        let options = calls::Options { builtins: true, spans: MOST_CALLS, running: true };
        tracer.start(options).map_err(|error| from_calls(&error))?;
        *lock(&self.tracer) = Some(tracer);
        Ok(())
    }

    /// Adds the calls that were traced; files are shown without these prefixes. Called once, before the end.
    fn add_calls(&self, py: Python<'_>, prefixes: Vec<String>) {
        let Some(tracer) = self.end_calls() else { return };
        let calls = tracer.take_spans(&prefixes);
        tracer.clear();
        let operators = lock(&self.operators).clone();
        if let Some(operators) = operators {
            py.detach(|| operators.source.add_calls(calls));
        }
    }

    /// Adds what was recorded by other means.
    fn add_trace(&self, trace: &PyTrace) {
        self.add(Box::new(Recorded(Some(Arc::clone(trace.trace())))));
    }

    /// Leaves to another profiler what only one can have: devices and hooks in torch's threads; `operators` too, where it
    /// records them itself.
    fn lend(&self, py: Python<'_>, operators: bool) {
        let (torch, device) = (lock(&self.operators).clone(), lock(&self.device).clone());
        py.detach(|| {
            match torch {
                Some(torch) if operators => torch.source.pause(),
                Some(torch) => torch.source.release_memory(),
                None => {}
            }
            if let Some(device) = device {
                device.pause();
            }
        });
    }

    /// Takes back what was lent.
    fn take_back(&self, py: Python<'_>) -> PyResult<()> {
        let (torch, device) = (lock(&self.operators).clone(), lock(&self.device).clone());
        py.detach(|| {
            // A session that goes on has lent its hooks in threads, and only a new one gets those back.
            if let Some(torch) = torch {
                torch.source.pause();
                torch.resume()?;
            }
            device.map_or(Ok(()), |device| resume(&device))
        })
    }

    /// Samples all threads, and watches the garbage collector.
    fn record_samples(&self, py: Python<'_>, rate: u32, native: bool) -> PyResult<()> {
        signals::guard(py)?;
        // Unwind tables of libraries take tens of megabytes of it.
        let is_limited = native::address_space_is_limited();
        if native && is_limited {
            agent::say("the program's address space is limited (ulimit -v): native frames are not recorded");
        }
        let native = native && !is_limited;
        let start = || {
            let rate = Rate::new(rate)?;
            Samples::start(native::Options { rate, native, waiting: true, names_later: true })
        };
        let samples = py.detach(start).map_err(|error| from_sample(&error))?;
        let pauses = GarbagePauses::watch(py, samples.recorder())?;
        *lock(&self.pauses) = Some(pauses);
        self.add(Box::new(samples));
        Ok(())
    }

    /// Writes all that there is: the program may be about to end. The recording goes on.
    fn flush(&self, py: Python<'_>) -> bool {
        let Some(flusher) = lock(&self.agent).as_ref().map(|agent| agent.flusher()) else { return false };
        py.detach(|| flusher.flush(LONGEST_FLUSH))
    }

    /// Ends the recording. What could not be written is said on stderr: the program has ended or goes on. `launcher` is the
    /// process that wants it.
    #[pyo3(signature = (launcher=None))]
    fn finish(&self, py: Python<'_>, launcher: Option<u32>) {
        self.unwatch(py);
        let Some(agent) = lock(&self.agent).take() else { return };
        match py.detach(|| agent.finish()) {
            Ok(()) => {}
            // The program has ended long before this process, and its recording has been put away.
            Err(FileError::Write { error })
                if error.kind() == io::ErrorKind::NotFound
                    && launcher.is_some_and(|launcher| !ProcessNumber(launcher).exists()) => {}
            Err(error) => agent::say(&format!("the recording is not complete: {error}")),
        }
    }

    /// Ends all threads for a while: the process is about to fork.
    fn pause(&self, py: Python<'_>) {
        let agent = lock(&self.agent).clone();
        // Its thread may want the GIL before it ends.
        py.detach(|| agent.iter().for_each(|agent| agent.pause()));
    }

    /// Starts them again.
    fn resume(&self, py: Python<'_>) {
        let agent = lock(&self.agent).clone();
        if let Some(agent) = agent {
            forks::resume(py, move || agent.resume());
        }
    }

    /// Forgets the agent in a forked child, where it does not run.
    fn forget(&self, py: Python<'_>) {
        self.unwatch(py);
        if let Some(agent) = lock(&self.agent).take() {
            agent.forget();
        }
        // Their locks may be held for ever, by threads that are not here.
        std::mem::forget((lock(&self.operators).take(), lock(&self.device).take()));
        if let Some(tracer) = self.end_calls() {
            tracer.clear();
        }
    }
}
