//! A recording from start to stop: owns the collector thread and what it gathers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use hotspan_store::TraceBuilder;

use super::SampleError;
use super::collector::Collector;
use super::handler;
use super::memory;
use super::options::Options;
use super::python::Interpreter;
use super::rows::{AddedSpan, Rows};
use super::signal;
use super::slots;
use super::timer::monotonic;
use crate::agent::say;
use crate::clock::{ClockStart, Ticks};
use crate::own_threads;
use crate::spool::Spool;

/// What the recorder and its collector thread share.
pub(crate) struct Shared {
    rows: Mutex<Rows>,
    /// Apart from the rows, which the collector holds while it works: the program must not wait for that.
    spans: Mutex<Vec<AddedSpan>>,
    orders: Mutex<Orders>,
    ordered: Condvar,
    spool: Mutex<Option<(Spool, TraceBuilder)>>,
    clock: ClockStart,
    process: u32,
    spent: AtomicI64,
}

/// What the collector was told.
#[derive(Debug, Default)]
struct Orders {
    /// When it was told to stop.
    stop: Option<i64>,
    rest: bool,
    hurry: bool,
}

/// What the collector is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Another turn.
    Turn,
    /// Its thread ends for a while.
    Rest,
    /// All ends.
    Stop,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn, or something else to do.
    pub(crate) fn wait(&self, turn: Duration) -> Told {
        let waits = |orders: &mut Orders| orders.stop.is_none() && !orders.rest && !orders.hurry;
        let waited = self.ordered.wait_timeout_while(self.orders(), turn, waits);
        let (mut orders, _) = waited.unwrap_or_else(PoisonError::into_inner);
        orders.hurry = false;
        match (orders.stop, orders.rest) {
            (Some(_), _) => Told::Stop,
            (None, true) => Told::Rest,
            (None, false) => Told::Turn,
        }
    }

    /// When the recording ends or ended: what comes later is not part of it.
    pub(crate) fn end(&self) -> i64 {
        self.orders().stop.unwrap_or_else(monotonic)
    }

    /// How much processor time the collector thread used.
    pub(crate) fn spend(&self, nanos: i64) {
        self.spent.store(nanos, Ordering::Release);
    }

    fn drain(&self, rows: &mut Rows, builder: &mut TraceBuilder) {
        rows.spans.append(&mut self.spans.lock().unwrap_or_else(PoisonError::into_inner));
        rows.drain(self.process, &self.clock.finish(), builder);
    }

    /// Writes what was gathered to the spool, when there is one and it is time.
    pub(crate) fn spool(&self, mut rows: MutexGuard<'_, Rows>) {
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((spool, builder)) = spool.as_mut().filter(|(spool, builder)| spool.is_due(builder)) else {
            return;
        };
        self.drain(&mut rows, builder);
        drop(rows);
        // The program goes on without; the end tells.
        let _ = spool.append(builder);
    }
}

/// A running recording. There is at most one per process; dropping it ends it.
#[derive(Debug)]
pub struct Recorder {
    shared: Option<Arc<Shared>>,
    collector: Option<Collecting>,
    spool_path: Option<PathBuf>,
    options: Options,
}

/// The collector, on its thread or at rest.
enum Collecting {
    Runs(JoinHandle<(i32, Option<Box<Collector>>)>),
    Rests(Box<Collector>),
}

impl fmt::Debug for Collecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Runs(_)) { "Runs" } else { "Rests" })
    }
}

impl Collecting {
    fn start(collector: Box<Collector>) -> std::io::Result<Self> {
        Ok(Self::Runs(own_threads::spawn("hotspan-sampler", move || run(collector))?))
    }

    /// Waits for the end of the thread, which it was told to come to; what is left, when it rests.
    fn join(self) -> Option<Box<Collector>> {
        match self {
            Self::Runs(thread) => {
                let Ok((number, left)) = thread.join() else {
                    // What it gathered is still there.
                    say("sampling ended early, by a fault of hotspan's own");
                    return None;
                };
                own_threads::wait_until_gone(number);
                left
            }
            Self::Rests(collector) => Some(collector),
        }
    }
}

/// Records until the end, or until a rest; says on which thread, and what is left.
fn run(mut collector: Box<Collector>) -> (i32, Option<Box<Collector>>) {
    let is_left = collector.run() == Told::Rest;
    (own_threads::number(), is_left.then_some(collector))
}

/// The recording that runs, for those who are in a hurry.
static CURRENT: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

/// Lets the collector take its turn now. Never waits: a fork may have left the lock behind.
pub(crate) fn hurry() {
    if let Some(shared) = CURRENT.try_lock().ok().and_then(|current| current.upgrade())
        && let Ok(mut orders) = shared.orders.try_lock()
    {
        orders.hurry = true;
        shared.ordered.notify_all();
    }
}

/// Counts recordings; 0 is none.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The number of the recording that runs. The handler has its own copy, which ends before this one does.
static RUNNING: AtomicU64 = AtomicU64::new(0);

impl Recorder {
    /// Begins to sample every thread of this process, now and as they come.
    ///
    /// # Errors
    /// When another recording runs, or the system or the interpreter cannot be sampled.
    pub fn start(options: Options) -> Result<Self, SampleError> {
        Self::start_with(options, None)
    }

    /// Begins to sample and writes to a file that grows every second, so that a crash leaves what there was.
    ///
    /// # Errors
    /// As [`Self::start`], and when the file cannot be written.
    pub fn start_to(options: Options, path: &Path) -> Result<Self, SampleError> {
        Self::start_with(options, Some(path))
    }

    fn start_with(options: Options, path: Option<&Path>) -> Result<Self, SampleError> {
        let generation = NEXT.fetch_add(1, Ordering::Relaxed);
        if RUNNING.compare_exchange(0, generation, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Err(SampleError::AlreadySampling);
        }
        let started = Self::begin(options, path, generation);
        if started.is_err() {
            handler::GENERATION.store(0, Ordering::Release);
            RUNNING.store(0, Ordering::Release);
        }
        started
    }

    fn begin(options: Options, path: Option<&Path>, generation: u64) -> Result<Self, SampleError> {
        if !memory::is_readable() {
            return Err(SampleError::NoMemoryAccess);
        }
        find_interpreter()?;
        if !slots::reserve() {
            return Err(std::io::Error::last_os_error().into());
        }
        stop_after_fork();
        let spool = match path {
            Some(path) => {
                let mut builder = TraceBuilder::new();
                describe(&mut builder, options);
                Some((Spool::create(path)?, builder))
            }
            None => None,
        };
        let clock = ClockStart::measure();
        let shared = Arc::new(Shared {
            rows: Mutex::default(),
            spans: Mutex::default(),
            orders: Mutex::default(),
            ordered: Condvar::new(),
            spool: Mutex::new(spool),
            clock,
            process: std::process::id(),
            spent: AtomicI64::new(0),
        });
        handler::COPY_STACKS.store(options.native, Ordering::Relaxed);
        handler::GENERATION.store(generation, Ordering::Release);
        if let Ok(mut current) = CURRENT.try_lock() {
            *current = Arc::downgrade(&shared);
        }
        let ready = Arc::new(std::sync::Barrier::new(2));
        let theirs = (Arc::clone(&shared), Arc::clone(&ready));
        let collector = own_threads::spawn("hotspan-sampler", move || {
            let (shared, ready) = theirs;
            let mut collector = Box::new(Collector::new(shared, options, generation));
            collector.begin();
            ready.wait();
            run(collector)
        })?;
        ready.wait();
        let collector = Collecting::Runs(collector);
        let spool_path = path.map(Path::to_owned);
        Ok(Self { shared: Some(shared), collector: Some(collector), spool_path, options })
    }

    /// Ends the collector thread for a while: the process is about to fork.
    pub fn pause(&mut self) {
        let Some(shared) = &self.shared else { return };
        shared.orders().rest = true;
        shared.ordered.notify_all();
        self.collector = self.collector.take().and_then(Collecting::join).map(Collecting::Rests);
    }

    /// Starts it again. Without a thread, sampling ends.
    pub fn resume(&mut self) {
        let Some(shared) = &self.shared else { return };
        shared.orders().rest = false;
        self.collector = match self.collector.take() {
            Some(Collecting::Rests(collector)) => Collecting::start(collector).ok(),
            other => other,
        };
    }

    /// Processor time of the collector thread so far.
    #[must_use]
    pub fn spent(&self) -> Duration {
        let spent = self.shared.as_ref().map_or(0, |shared| shared.spent.load(Ordering::Acquire));
        Duration::from_nanos(spent.unsigned_abs())
    }

    /// Moves what was gathered so far into a trace.
    pub fn drain(&self, builder: &mut TraceBuilder) {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.process == std::process::id()) {
            shared.drain(&mut shared.rows(), builder);
        }
    }

    /// Adds a span that was measured with [`crate::clock::now`] on the calling thread.
    pub fn add_span(&self, category: &'static str, name: &'static str, start: Ticks, end: Ticks) {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.process == std::process::id()) {
            // SAFETY: takes nothing.
            let thread = unsafe { libc::gettid() };
            let span = AddedSpan { category, name, thread, start, end };
            shared.spans.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        }
    }

    /// Stops. What was recorded, or what is in the spool then, is in the trace. In a forked child it is empty: the
    /// recording is the parent's.
    ///
    /// # Errors
    /// When the spool cannot be completed.
    pub fn stop(mut self) -> Result<Stopped, SampleError> {
        let mut builder = TraceBuilder::new();
        let Some(shared) = self.end() else { return Ok(Stopped { builder, spool: None }) };
        let spent = Duration::from_nanos(shared.spent.load(Ordering::Acquire).unsigned_abs());
        let spool = shared.spool.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((spool, mut grown)) = spool {
            shared.drain(&mut shared.rows(), &mut grown);
            cost(&mut grown, spent);
            spool.finish(&mut grown)?;
            return Ok(Stopped { builder, spool: self.spool_path.take() });
        }
        shared.drain(&mut shared.rows(), &mut builder);
        describe(&mut builder, self.options);
        cost(&mut builder, spent);
        Ok(Stopped { builder, spool: None })
    }

    /// Ends the collector thread; `None` in a forked child, or when it has ended before.
    fn end(&mut self) -> Option<Arc<Shared>> {
        let (shared, collector) = (self.shared.take()?, self.collector.take()?);
        if shared.process != std::process::id() {
            // The thread is the parent's, and a lock may be held by it for good.
            std::mem::forget((shared, collector));
            return None;
        }
        shared.orders().stop = Some(monotonic());
        shared.ordered.notify_all();
        if let Some(mut left) = collector.join() {
            left.finish();
        }
        slots::release();
        RUNNING.store(0, Ordering::Release);
        Some(shared)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a recording left.
#[derive(Debug)]
pub struct Stopped {
    /// The samples; none when they went to a spool.
    pub builder: TraceBuilder,
    /// The file that has them.
    pub spool: Option<PathBuf>,
}

fn describe(builder: &mut TraceBuilder, options: Options) {
    builder.source.format = "hotspan recording".to_owned();
    let process = builder.process(hotspan_store::Ident::Int(i64::from(std::process::id())));
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let name = builder.intern(name.trim_end());
    builder.process_mut(process).name = Some(name);
    builder.metadata.set("sampler_rate", &options.rate.per_second().to_string());
}

/// The collector's own processor time, so that reports can tell what sampling cost.
fn cost(builder: &mut TraceBuilder, spent: Duration) {
    builder.metadata.set("sampler_cpu_ns", &spent.as_nanos().to_string());
}

/// Finds the interpreter once; there is nothing to find in a program without Python.
fn find_interpreter() -> Result<(), SampleError> {
    if handler::INTERPRETER.load(Ordering::Acquire).is_null()
        && let Some(found) = Interpreter::find().map_err(SampleError::UnknownPython)?
    {
        let leaked = Box::into_raw(Box::new(found));
        let interpreter: &AtomicPtr<Interpreter> = &handler::INTERPRETER;
        if interpreter.compare_exchange(ptr::null_mut(), leaked, Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            // SAFETY: another thread was faster, and nobody has seen this one.
            drop(unsafe { Box::from_raw(leaked) });
        }
    }
    Ok(())
}

/// A forked child has neither the collector thread nor timers; it must know that nothing records.
fn stop_after_fork() {
    extern "C" fn in_child() {
        handler::GENERATION.store(0, Ordering::Release);
        RUNNING.store(0, Ordering::Release);
        slots::forget_parent();
        signal::forget_parent();
    }
    static REGISTERED: Once = Once::new();
    // SAFETY: the handler is a function of this library, which is never unloaded, and takes no lock.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use hotspan_store::{SampleState, Trace};

    use super::super::options::Rate;
    use super::*;

    #[inline(never)]
    fn burn_for_the_test(until: Instant) -> u64 {
        let mut sum = 0_u64;
        while Instant::now() < until {
            sum = (0..1000)
                .fold(sum, |sum, number| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number)));
        }
        sum
    }

    fn stacks(trace: &Trace, state: SampleState) -> Vec<Vec<String>> {
        let profile = trace.profile();
        let name = |frame| trace.str(profile.frames.row(frame).name).to_owned();
        let of_state = profile.samples.rows().filter(|row| row.state == state);
        of_state.map(|row| profile.stacks.frames(row.stack).map(name).collect()).collect()
    }

    /// One test, since there is one recorder per process.
    #[test]
    fn samples_a_program_without_python() {
        let options = Options { rate: Rate::new(500).unwrap(), ..Options::default() };
        let recorder = Recorder::start(options).unwrap();
        assert!(matches!(Recorder::start(options), Err(SampleError::AlreadySampling)));
        let sleeper = thread::spawn(|| thread::sleep(Duration::from_millis(300)));
        let until = Instant::now() + Duration::from_millis(400);
        let workers: Vec<_> = (0..2).map(|_| thread::spawn(move || burn_for_the_test(until))).collect();
        sleeper.join().unwrap();
        let mut early = TraceBuilder::new();
        recorder.drain(&mut early);
        for worker in workers {
            worker.join().unwrap();
        }
        let start = crate::clock::now();
        recorder.add_span("gc", "gc gen 0", start, crate::clock::now());
        let late = recorder.stop().unwrap().builder.finish();
        let early = early.finish();

        let burning = |stack: &Vec<String>| stack.iter().any(|name| name.contains("burn_for_the_test"));
        let running = stacks(&early, SampleState::Running);
        assert!(running.iter().filter(|stack| burning(stack)).count() > 5, "{running:?}");
        let sleeping = stacks(&early, SampleState::Sleep);
        assert!(sleeping.iter().any(|stack| stack[0].ends_with("nanosleep")), "{sleeping:?}");
        assert_eq!(late.spans().len(), 1);
        assert!(late.clock().unix_origin().is_some());

        let again = Recorder::start(options).unwrap().stop().unwrap();
        assert!(again.spool.is_none());
        assert!(Rate::new(0).is_err() && Rate::new(20_000).is_err());
    }
}
