//! The tracer: starts and stops events on all threads, and adds up what the threads saw.
//!
//! All events come with the GIL held, which is what orders them against starting and stopping; without a GIL it is the turns
//! of `threads`. A thread that ends gives its sums over without the GIL, under a lock that nobody holds while running
//! Python code.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};

use hashbrown::HashMap;

use crate::calls::CallsError;
use crate::calls::events::WANTS_SITES;
use crate::calls::functions::{Functions, Kind};
use crate::calls::thread::{CallSpan, FunctionId, Key, Sums, ThreadCalls};
use crate::calls::threads::{
    ACTIVE, ENDS_IN_CHILDREN, IDLE, PHASE, PREPARED, RUNNING, STARTING, STOPPING, THREADS, forget_last,
    in_child, is_own, own_calls,
};
use crate::calls::{monitoring, set_profile};
use crate::clock::{self, Calibration, ClockStart, Ticks};
use crate::interpreter::{Interpreter, Object, Owned, Ptr};
use crate::locks::lock_unless_forked as lock;

/// What to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Functions of C too.
    pub builtins: bool,
    /// Keep every call as a span; at most this many a thread. 0: only sums are kept.
    pub spans: usize,
    /// Begin with the functions that run already, instead of with the next call.
    pub running: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { builtins: true, spans: 0, running: false }
    }
}

/// The spans of one thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSpans {
    pub(crate) os_thread: i64,
    pub(crate) spans: Vec<CallSpan>,
}

/// What all threads did, added up.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) functions: HashMap<FunctionId, Sums>,
    pub(crate) edges: HashMap<(FunctionId, FunctionId), Sums>,
    pub(crate) spans: Vec<ThreadSpans>,
    pub(crate) dropped: u64,
}

impl Totals {
    pub(crate) fn take(&mut self, thread: &mut ThreadCalls, now: Ticks) {
        thread.finish(now, |caller, callee, edge, function| {
            if edge.calls == 0 {
                return;
            }
            self.functions.entry(callee).or_default().add(function);
            if let Some(caller) = caller {
                self.edges.entry((caller, callee)).or_default().add(edge);
            }
        });
        let spans = std::mem::take(&mut thread.spans);
        if !spans.is_empty() {
            self.spans.push(ThreadSpans { os_thread: thread.os_thread, spans });
        }
        self.dropped += std::mem::take(&mut thread.dropped);
    }
}

/// A timer of the caller's, instead of the clock.
#[derive(Debug)]
pub(crate) struct Timer {
    /// Our reference; null once it was given back.
    function: AtomicPtr<Object>,
    /// Seconds of one unit; 0: the timer tells seconds.
    unit: f64,
}

/// Traces calls; sums go on from one start to the next.
#[derive(Debug)]
pub struct Tracer {
    pub(crate) python: &'static Interpreter,
    pub(crate) functions: Mutex<Functions>,
    pub(crate) totals: Mutex<Totals>,
    options: Mutex<Options>,
    timer: Option<Timer>,
    /// The code of `nn.Module.__call__`, whose calls are named by the module; 0: not wanted.
    module_call: AtomicUsize,
    clock: Mutex<Option<ClockStart>>,
    calibration: Mutex<Option<Calibration>>,
    process: AtomicU64,
    session: AtomicU64,
}

static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);
/// The tracer of the running session.
static TRACER: Mutex<Option<Arc<Tracer>>> = Mutex::new(None);

/// Whether this thread is the one that takes the session from one phase to another.
fn move_on(from: u8, to: u8) -> bool {
    PHASE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// The tracer of the running session.
pub(crate) fn running() -> Option<Arc<Tracer>> {
    lock(&TRACER)?.clone()
}

impl Tracer {
    /// A tracer that has seen nothing. The GIL is held.
    ///
    /// # Errors
    /// When there is no interpreter, or one of an unknown version.
    pub fn new() -> Result<Self, CallsError> {
        let python = Interpreter::get().ok_or(CallsError::NoInterpreter)?;
        Ok(Self {
            python,
            functions: Mutex::default(),
            totals: Mutex::default(),
            options: Mutex::default(),
            timer: None,
            module_call: AtomicUsize::new(0),
            clock: Mutex::new(None),
            calibration: Mutex::new(None),
            process: AtomicU64::new(0),
            session: AtomicU64::new(0),
        })
    }

    /// Uses a timer of the caller's: a function that returns a number, in units of so many seconds (0: in seconds).
    ///
    /// # Safety
    /// The GIL is held and `function` is a live object.
    #[must_use]
    pub unsafe fn with_timer(mut self, function: Ptr, unit: f64) -> Self {
        // SAFETY: the caller holds the GIL and promises that the object is live; the new reference is given back by `close`.
        let function = unsafe { self.python.new_reference(function) };
        self.timer = Some(Timer { function: AtomicPtr::new(function), unit });
        self
    }

    /// Names calls of this code, which is that of `nn.Module.__call__`, by the module that is called.
    pub fn name_modules(&self, code: Ptr) {
        self.module_call.store(code as usize, Ordering::Relaxed);
    }

    pub(crate) fn module_call(&self) -> Key {
        self.module_call.load(Ordering::Relaxed)
    }

    /// How many calls of a thread may be kept as spans.
    pub(crate) fn room(&self) -> usize {
        lock(&self.options).map_or(0, |options| options.spans)
    }

    /// Whether this tracer is the one that traces.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let session = self.session.load(Ordering::Acquire);
        session != 0 && session == ACTIVE.load(Ordering::Acquire)
    }

    /// Whether this is the session that this tracer traces.
    pub(crate) fn is_session(&self, session: u64) -> bool {
        self.session.load(Ordering::Acquire) == session
    }

    /// Begins on all threads. The GIL is held.
    ///
    /// # Errors
    /// When calls are traced already, by this or another tool, or the interpreter refuses.
    pub fn start(self: &Arc<Self>, options: Options) -> Result<(), CallsError> {
        if !move_on(IDLE, STARTING) {
            return Err(CallsError::AlreadyTracing);
        }
        let started = self.start_session(options);
        PHASE.store(if started.is_ok() { RUNNING } else { IDLE }, Ordering::Release);
        started
    }

    /// Lets `sys.getprofile()` return an object while this tracer runs, where Python has profile functions (before 3.12).
    ///
    /// # Safety
    /// The GIL is held, and `object` is alive.
    pub unsafe fn show_as(&self, object: Ptr) {
        if self.is_running() && self.python.minor_version() < 12 {
            // SAFETY: the caller holds the GIL and has the object; events are on while the tracer runs.
            unsafe { set_profile::show_as(self.python, object) };
        }
    }

    fn start_session(self: &Arc<Self>, options: Options) -> Result<(), CallsError> {
        let session = NEXT_SESSION.fetch_add(1, Ordering::Relaxed);
        if let Some(mut kept) = lock(&self.options) {
            *kept = options;
        }
        if let Some(mut clock) = lock(&self.clock) {
            *clock = Some(ClockStart::measure());
        }
        self.process.store(u64::from(std::process::id()), Ordering::Relaxed);
        self.session.store(session, Ordering::Release);
        match lock(&TRACER) {
            Some(mut tracer) => *tracer = Some(Arc::clone(self)),
            None => return Err(CallsError::AlreadyTracing),
        }
        if options.running {
            // SAFETY: the GIL is held, which `start` demands of its caller.
            unsafe { self.prepare(session, options) };
        }
        ENDS_IN_CHILDREN.store(options.spans > 0, Ordering::Release);
        WANTS_SITES.store(options.spans > 0, Ordering::Release);
        static AT_FORK: Once = Once::new();
        AT_FORK.call_once(|| {
            // SAFETY: the handler is a function of this library, which is never unloaded, and takes no lock.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        ACTIVE.store(session, Ordering::Release);
        // SAFETY: the GIL is held, which `start` demands of its caller.
        let started = unsafe {
            if self.python.minor_version() >= 12 {
                monitoring::start(self.python, options.builtins)
            } else {
                set_profile::start(self.python, options.builtins)
            }
        };
        if started.is_err() {
            ACTIVE.store(0, Ordering::Release);
            forget_last();
            self.forget();
        }
        started
    }

    /// Ends on all threads; functions that still run end now. Does nothing when it does not run. The GIL is held.
    pub fn stop(&self) {
        if !self.is_running() || !move_on(RUNNING, STOPPING) {
            return;
        }
        let now = self.now();
        // SAFETY: the GIL is held, which `stop` demands of its caller.
        unsafe {
            if self.python.minor_version() >= 12 {
                monitoring::stop(self.python);
            } else {
                set_profile::stop(self.python);
            }
        }
        // No event begins from here on; those that are under way end before their thread is collected.
        ACTIVE.store(0, Ordering::Release);
        forget_last();
        self.collect(now);
        if let (Some(clock), Some(mut calibration)) = (lock(&self.clock), lock(&self.calibration)) {
            *calibration = clock.as_ref().map(ClockStart::finish);
        }
        self.forget();
        PHASE.store(IDLE, Ordering::Release);
    }

    fn collect(&self, now: Ticks) {
        let session = self.session.load(Ordering::Acquire);
        // In a forked child the other threads are gone, and what they did is the parent's.
        let forked = self.process.load(Ordering::Relaxed) != u64::from(std::process::id());
        let (Some(threads), Some(mut totals)) = (lock(&THREADS), lock(&self.totals)) else { return };
        for thread in threads.iter().filter(|thread| !forked || is_own(thread)) {
            let Some(_turn) = thread.turn() else { continue };
            // SAFETY: the GIL and the lock are both held: the thread uses its calls with the GIL only, or where there is none
            // in its turns, and leaves the list under the lock before it ends.
            let calls = unsafe { &mut *thread.calls() };
            if calls.session == session {
                totals.take(calls, now);
                *calls = ThreadCalls::new(0, calls.os_thread, 0);
            }
        }
    }

    fn forget(&self) {
        self.session.store(0, Ordering::Release);
        if let Some(mut prepared) = lock(&PREPARED) {
            prepared.clear();
        }
        let mine = lock(&TRACER).and_then(|mut tracer| tracer.take());
        drop(mine);
    }

    /// How ticks relate to time. With a timer of the caller's, ticks are nanoseconds.
    pub(crate) fn calibration(&self) -> Option<Calibration> {
        *lock(&self.calibration)?
    }

    pub(crate) fn has_timer(&self) -> bool {
        self.timer.is_some()
    }

    #[inline]
    pub(crate) fn now(&self) -> Ticks {
        match &self.timer {
            None => clock::now(),
            // SAFETY: the time is read by events, which come with the GIL held, and by `stop`, which demands it.
            Some(timer) => unsafe { self.ask(timer) },
        }
    }

    #[cold]
    unsafe fn ask(&self, timer: &Timer) -> Ticks {
        // SAFETY: the caller holds the GIL, and our reference keeps the function alive. It runs Python code, whose events
        // find the calls of this thread busy and leave them alone; no reference to them is held meanwhile.
        unsafe {
            self.python.aside(|| {
                let function = timer.function.load(Ordering::Acquire);
                if function.is_null() {
                    return Ticks(0);
                }
                let set_busy =
                    |busy| own_calls(self.python.is_parallel).is_some_and(|mine| mine.set_busy(busy));
                let was_busy = set_busy(true);
                let value = Owned::new(self.python, (self.python.call_object)(function, null_mut()));
                let number = value.map_or(0.0, |value| (self.python.as_double)(value.0));
                (self.python.clear_error)();
                set_busy(was_busy);
                let seconds = if timer.unit > 0.0 { number * timer.unit } else { number };
                Ticks((seconds * 1e9) as i64 as u64)
            })
        }
    }

    /// Forgets everything that was seen. The GIL is held.
    pub fn clear(&self) {
        if self.is_running() {
            return;
        }
        if let Some(mut totals) = lock(&self.totals) {
            *totals = Totals::default();
        }
        let objects = lock(&self.functions).map(|mut functions| functions.take_objects());
        for object in objects.unwrap_or_default() {
            // SAFETY: the GIL is held, which `clear` demands of its caller; the registry had one reference to each.
            unsafe { (self.python.dec_ref)(object) };
        }
    }

    /// Notes the functions that every thread is in.
    unsafe fn prepare(&self, session: u64, options: Options) {
        let python = self.python;
        // SAFETY: `start` holds the GIL throughout; new references are owned, and borrowed ones come from
        // `frames`, which is one of them.
        unsafe {
            let Some(sys) = Owned::new(python, (python.import)(c"sys".as_ptr())) else { return };
            let Some(frames) = sys.attribute(c"_current_frames").and_then(|all| python.call(all.0, &[]))
            else {
                return;
            };
            let (mut position, mut ident, mut frame) = (0, null_mut(), null_mut());
            while (python.next_pair)(frames.0, &raw mut position, &raw mut ident, &raw mut frame) != 0 {
                let ident = (python.as_long)(ident) as u64;
                // Frames of threads that run meanwhile cannot be followed: those threads begin with their next call.
                if python.is_parallel && ident != libc::pthread_self() as u64 {
                    continue;
                }
                let mut chain = Vec::new();
                let mut next = Owned::new(python, python.new_reference(frame));
                while let Some(here) = next {
                    if here.0 == python.none || chain.len() >= 1_000 {
                        break;
                    }
                    let code = (python.frame_code)(here.0);
                    let line = u32::try_from((python.frame_line)(here.0)).unwrap_or(0);
                    chain.push((here.0 as Key | 1, code, line));
                    next = here.attribute(c"f_back");
                }
                let mut state = Box::new(ThreadCalls::new(session, 0, options.spans));
                for &(key, code, line) in chain.iter().rev() {
                    let Some(mut functions) = lock(&self.functions) else { break };
                    let id = functions.add(key, Kind::Running { line }, code);
                    let edge = state.new_edge(key, id);
                    state.enter(edge, code as Key, true, clock::now);
                }
                if let Some(mut prepared) = lock(&PREPARED) {
                    prepared.push((ident, state));
                }
            }
        }
    }
}

impl Tracer {
    /// Ends, forgets everything and gives the timer back: the tracer is not used any more. Threads that end may still hold it,
    /// and let it go without the GIL. The GIL is held.
    pub fn close(&self) {
        self.stop();
        self.clear();
        let timer = self.timer.as_ref().map(|timer| timer.function.swap(null_mut(), Ordering::AcqRel));
        if let Some(function) = timer.filter(|function| !function.is_null()) {
            // SAFETY: the GIL is held, which `close` demands of its caller, and the reference was ours.
            unsafe { (self.python.dec_ref)(function) };
        }
    }
}
