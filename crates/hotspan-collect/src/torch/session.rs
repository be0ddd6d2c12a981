//! A recording from start to stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hotspan_store::TraceBuilder;

use crate::buffer;
use crate::calls::SpanTable;
use crate::clock::{self, Calibration, ClockStart, Ticks};
use crate::cupti;
use crate::locks::lock;
use crate::torch::abi::{self, Functions};
use crate::torch::convert::{self, TensorTable};
use crate::torch::shim;
use crate::torch::threads::{self, ThreadRecording};
use crate::torch::{CollectError, Mark, Shim};

/// What to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Shapes, strides, types and scalar values of inputs (`record_shapes`).
    pub shapes: bool,
    /// Allocations and releases (`profile_memory`).
    pub memory: bool,
    /// Ranges that torch makes for profilers only: one around each kernel that Triton compiled.
    pub ranges: bool,
    /// Inputs that torch prepares for profilers only: of its own ranges, and of functions of the program's. Torch's RPC would
    /// take it for a profiler that other processes should start.
    pub prepared_inputs: bool,
    /// torch's numbers of operators, by which an execution trace names them too.
    pub ids: bool,
    /// Which tensors the inputs are, where shapes are recorded; [`Recording::into_builder_and_tensors`] gives them.
    pub tensors: bool,
    /// The modules of TorchScript that operators run in (`with_modules`).
    pub modules: bool,
    /// Operators by their full name, `aten::add.Tensor` (`capture_overload_names`).
    pub overload_names: bool,
    /// How many bytes of records to hold at most; beyond, records are lost and counted. `None`: no limit.
    pub max_bytes: Option<u64>,
}

/// A span that the caller measured, such as a step of the training loop.
#[derive(Clone, Debug)]
pub(crate) struct AddedSpan {
    pub(crate) name: String,
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) os_thread: i64,
    /// A call of a Python function, not a range that a person marked.
    pub(crate) is_call: bool,
}

/// A running recording. There is at most one per process.
#[derive(Debug)]
pub struct Session {
    shim: Functions,
    number: u64,
    process: u32,
    options: Options,
    clock: ClockStart,
    started: Ticks,
    added: Mutex<Vec<AddedSpan>>,
    memory_released: AtomicBool,
}

/// What a session recorded, not yet a trace.
#[derive(Debug)]
pub struct Recording {
    pub(crate) shim: Functions,
    pub(crate) options: Options,
    pub(crate) process: u32,
    pub(crate) threads: Vec<ThreadRecording>,
    pub(crate) added: Vec<AddedSpan>,
    /// What was said about tensors: when, on which thread, what.
    pub(crate) marks: Vec<(Ticks, i64, Mark)>,
    pub(crate) calls: SpanTable,
    /// Whether memory was not recorded to the end.
    pub(crate) memory_released: bool,
    pub(crate) calibration: Calibration,
    pub(crate) started: Ticks,
    pub(crate) stopped: Ticks,
    pub(crate) device: Option<cupti::Recording>,
}

/// The number of the running session, 0 for none.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// Stands in for the number while a session is being set up.
const STARTING: u64 = u64::MAX;

impl Session {
    /// Begins to record on all threads.
    ///
    /// # Errors
    /// When torch.profiler or another session is recording.
    pub fn start(shim: &Shim, options: Options) -> Result<Self, CollectError> {
        if RUNNING.compare_exchange(0, STARTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Err(CollectError::AlreadyRecording);
        }
        buffer::sweep_limbo();
        let shim = *shim.functions();
        let clock = ClockStart::measure();
        let number = threads::start(options.max_bytes.unwrap_or(u64::MAX));
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(options.shapes, abi::FLAG_INPUTS)
            | flag(options.memory, abi::FLAG_MEMORY)
            | flag(options.ranges, abi::FLAG_RANGES)
            | flag(options.ids, abi::FLAG_IDS)
            | flag(options.prepared_inputs, abi::FLAG_PREPARED)
            | flag(options.tensors && options.shapes, abi::FLAG_TENSORS)
            | flag(options.modules, abi::FLAG_MODULES)
            | flag(clock::counter_is_steady(), abi::FLAG_TICKS);
        let started = clock::now();
        if let Err(error) = begin(shim, number, flags) {
            threads::stop(number);
            RUNNING.store(0, Ordering::Release);
            return Err(error);
        }
        RUNNING.store(number, Ordering::Release);
        let process = std::process::id();
        let (added, memory_released) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Ok(Self { shim, number, process, options, clock, started, added, memory_released })
    }

    /// What is being recorded.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// Pauses (`false`) or resumes recording. Operators that run across a pause keep their true length.
    pub fn toggle(&self, record: bool) {
        if self.is_running() {
            // SAFETY: sets one number, which is that of the running session or 0.
            unsafe { (self.shim.gate)(if record { self.number } else { 0 }) };
        }
    }

    /// Stops recording memory and ranges for profilers, for good, and goes on with operators. torch.profiler refuses to
    /// start on a thread whose allocations are recorded here; whoever is about to start it calls this first.
    pub fn release_memory(&self) {
        if self.is_running() {
            // SAFETY: the function takes nothing, and may be called on any thread at any time; where it fails, memory
            // stays recorded.
            unsafe { (self.shim.release_memory)() };
            self.memory_released.store(self.options.memory, Ordering::Relaxed);
        }
    }

    /// Adds a span of the calling thread, measured with [`clock::now`], as a user annotation.
    pub fn add_span(&self, name: &str, start: Ticks, end: Ticks) {
        self.add(name, start, end, false);
    }

    /// Adds a call of a Python function on the calling thread, likewise.
    pub fn add_call(&self, name: &str, start: Ticks, end: Ticks) {
        self.add(name, start, end, true);
    }

    fn add(&self, name: &str, start: Ticks, end: Ticks, is_call: bool) {
        // SAFETY: takes nothing and cannot fail.
        let os_thread = i64::from(unsafe { libc::gettid() });
        let span = AddedSpan { name: name.to_owned(), start, end, os_thread, is_call };
        lock(&self.added).push(span);
    }

    /// Stops on all threads, from any thread. What still runs is closed at this moment.
    ///
    /// In a forked child this returns an empty recording: the session is the parent's.
    #[must_use]
    pub fn stop(self) -> Recording {
        let stopped = clock::now();
        let threads = self.end();
        let added = self.take_added();
        Recording {
            shim: self.shim,
            options: self.options,
            process: self.process,
            threads,
            added,
            marks: Vec::new(),
            calls: SpanTable::default(),
            memory_released: self.memory_released.load(Ordering::Relaxed),
            calibration: self.clock.finish(),
            started: self.started,
            stopped,
            device: None,
        }
    }

    /// What threads have recorded since the last time, as far as it is published; the last part of each may still grow.
    pub(crate) fn drain(&self) -> Vec<ThreadRecording> {
        if self.is_running() { threads::drain(self.number) } else { Vec::new() }
    }

    pub(crate) fn take_added(&self) -> Vec<AddedSpan> {
        std::mem::take(&mut *lock(&self.added))
    }

    pub(crate) fn calibrate(&self) -> Calibration {
        self.clock.finish()
    }

    pub(crate) fn shim(&self) -> Functions {
        self.shim
    }

    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// How many records there are so far, about.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        if self.is_running() { threads::recorded(self.number) } else { 0 }
    }

    fn is_running(&self) -> bool {
        RUNNING.load(Ordering::Acquire) == self.number && std::process::id() == self.process
    }

    fn end(&self) -> Vec<ThreadRecording> {
        if !self.is_running() {
            return Vec::new();
        }
        // SAFETY: the function takes nothing, and may be called on any thread. Where it fails, callbacks stay that record
        // nothing.
        unsafe { (self.shim.end)() };
        let threads = threads::stop(self.number);
        RUNNING.store(0, Ordering::Release);
        threads
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

impl Recording {
    /// Adds what was said about tensors while it ran: when, on which thread of the system, what.
    #[must_use]
    pub fn with_marks(mut self, marks: impl IntoIterator<Item = (Ticks, i64, Mark)>) -> Self {
        self.marks.extend(marks);
        self
    }

    /// Adds what was recorded on devices at the same time.
    pub fn add_device(&mut self, device: cupti::Recording) {
        self.device = Some(device);
    }

    /// The trace, as importing an export of torch.profiler would give it.
    #[must_use]
    pub fn into_builder(self) -> TraceBuilder {
        self.into_builder_and_tensors().0
    }

    /// The same, and which tensors the inputs of operators are.
    #[must_use]
    pub fn into_builder_and_tensors(self) -> (TraceBuilder, TensorTable) {
        convert::convert(self)
    }

    /// The same with the calls of Python functions that were traced meanwhile: `with_stack`.
    #[must_use]
    pub fn with_calls(self, calls: SpanTable) -> Self {
        Self { calls, ..self }
    }

    /// How many events were lost for want of memory.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.threads.iter().map(|thread| thread.dropped).sum()
    }

    /// How many operators are recorded without their inputs, because those were too large or could not be read.
    #[must_use]
    pub fn inputs_dropped(&self) -> u64 {
        self.threads.iter().map(|thread| thread.inputs_dropped).sum()
    }
}

fn begin(shim: Functions, session: u64, flags: u32) -> Result<(), CollectError> {
    // SAFETY: the sink is static, so that it outlives the process's last callback, and `threads::start` gives each number
    // once.
    let begin = || unsafe { (shim.begin)(&raw const threads::SINK, session, flags) };
    let mut result = begin();
    if result == abi::CHECK_FIRST {
        shim::check(shim)?;
        result = begin();
    }
    match result {
        abi::OK => Ok(()),
        abi::TORCH_PROFILER_ACTIVE => Err(CollectError::TorchProfilerActive),
        _ => Err(CollectError::Torch(shim.last_error())),
    }
}

/// Makes forked children forget the session: they record nothing and keep their hands off the parent's buffers.
pub(crate) fn forget_recording_after_fork() {
    extern "C" fn before() {
        if let Some(shim) = Shim::loaded() {
            // SAFETY: takes nothing, and may be called on any thread.
            unsafe { (shim.functions().before_fork)() };
        }
    }
    extern "C" fn in_child() {
        if let Some(shim) = Shim::loaded() {
            // SAFETY: made for a forked child: it stores to atomics and to this thread's own variables, and takes no lock.
            unsafe { (shim.functions().forked)() };
        }
        threads::forget_parent();
        RUNNING.store(0, Ordering::Release);
    }
    // SAFETY: the handlers are functions of this library, which is never unloaded. The one before takes a lock of torch's for a
    // moment, in a process that has all its threads; the one in the child takes none.
    unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) };
}
