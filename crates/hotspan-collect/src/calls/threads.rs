//! Which thread an event is of, and what it keeps: found in a few instructions, made at its first event, handed over at its
//! end.
//!
//! Events come with the GIL held, one at a time, and most are of the thread that had the last one. So the state that was
//! used last is remembered for all threads together, and the register that tells threads apart says whether it is the right
//! one. States are never freed, only used again, so that this look is safe at any time. Only a state of the running session
//! of which nothing but sums is wanted is remembered, so that nothing else needs to be looked at.
//!
//! Who may touch a state:
//! - `owner` is an atomic, which any thread reads through [`LAST`] at any time. Only the thread that has the state writes it. A
//!   thread that reads its own number there therefore has the state; it reads 0 or another number everywhere else. A number is
//!   given to a new thread only after the system has ended the old one, which has stored 0 before.
//! - `calls` is used by the thread that has the state, with the GIL; at the end of that thread, without the GIL but under the
//!   lock of [`THREADS`]; and by whoever has both the GIL and that lock. Any two of these exclude each other, and the lock or
//!   the GIL orders them.
//! - Without a GIL events come side by side. There each use of `calls` takes a [`Turn`], a lock of the state that is held for
//!   moments and never while Python code runs; after [`THREADS`], where both are held. The short way through [`LAST`] is for
//!   builds with a GIL alone.

use std::cell::{Cell, UnsafeCell};
use std::ptr::{from_ref, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::calls::thread::ThreadCalls;
use crate::calls::tracer::running;
use crate::clock;
use crate::locks::lock_unless_forked as lock;

/// The running session, 0 for none.
pub(crate) static ACTIVE: AtomicU64 = AtomicU64::new(0);
/// The state of every thread that has met an event.
pub(crate) static THREADS: Mutex<Vec<&'static ThreadState>> = Mutex::new(Vec::new());
/// The functions that threads were in when tracing began, until the thread meets its first event.
pub(crate) static PREPARED: Mutex<Vec<(u64, Box<ThreadCalls>)>> = Mutex::new(Vec::new());
/// States whose threads have ended.
static FREE: Mutex<Vec<&'static ThreadState>> = Mutex::new(Vec::new());
/// The state of the thread that had the last event, when it is plain; otherwise what is nobody's.
static LAST: AtomicPtr<ThreadState> = AtomicPtr::new((&raw const NOBODY).cast_mut().cast());
/// What stands in [`LAST`] for no state: the first field of one, which is all that is read of it.
static NOBODY: AtomicUsize = AtomicUsize::new(0);

/// Whether forked children trace nothing: what they did would only fill their memory. Sums go on, as in cProfile.
pub(crate) static ENDS_IN_CHILDREN: AtomicBool = AtomicBool::new(false);

pub(crate) extern "C" fn in_child() {
    // A thread that was starting or stopping is not here to finish it.
    let is_between = !matches!(PHASE.load(Ordering::Acquire), IDLE | RUNNING);
    if is_between || ENDS_IN_CHILDREN.load(Ordering::Acquire) {
        ACTIVE.store(0, Ordering::Release);
        PHASE.store(IDLE, Ordering::Release);
        forget_last();
    }
    // Nor is one that was collecting.
    if let Ok(Some(mine)) = CURRENT.try_with(Cell::get) {
        mine.taken.store(false, Ordering::Release);
    }
}

/// How far the session is: only who moves it on from [`IDLE`] starts one, from [`RUNNING`] ends it.
pub(crate) static PHASE: AtomicU8 = AtomicU8::new(IDLE);
pub(crate) const IDLE: u8 = 0;
pub(crate) const STARTING: u8 = 1;
pub(crate) const RUNNING: u8 = 2;
pub(crate) const STOPPING: u8 = 3;

/// Has the next event look for its thread: the session ends, or the calls of a thread are not plain any more.
pub(crate) fn forget_last() {
    LAST.store((&raw const NOBODY).cast_mut().cast(), Ordering::Relaxed);
}

/// What a thread keeps, and whose it is.
#[repr(C)]
pub(crate) struct ThreadState {
    /// The number of the thread that has it; 0: none.
    owner: AtomicUsize,
    /// Whether somebody uses the calls, where threads run side by side.
    taken: AtomicBool,
    calls: UnsafeCell<ThreadCalls>,
}

// SAFETY: `owner` is an atomic. `calls` is reached through raw pointers only, by whoever may use it as the rules at the top of
// this file say; those exclude each other.
unsafe impl Sync for ThreadState {}

impl ThreadState {
    fn new() -> Self {
        let calls = UnsafeCell::new(ThreadCalls::new(0, 0, 0));
        Self { owner: AtomicUsize::new(0), taken: AtomicBool::new(false), calls }
    }

    pub(crate) fn calls(&self) -> *mut ThreadCalls {
        self.calls.get()
    }

    /// Waits until nobody uses the calls. `None`: who used them was lost in a fork.
    pub(crate) fn turn(&'static self) -> Option<Turn> {
        for _ in 0..100_000 {
            if !self.taken.swap(true, Ordering::Acquire) {
                return Some(Turn(self));
            }
            std::thread::yield_now();
        }
        None
    }
}

/// The right to use the calls of a thread, where threads run side by side.
pub(crate) struct Turn(&'static ThreadState);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// The state of this thread, whose calls nobody else uses as long as this is there.
pub(crate) struct Mine {
    state: &'static ThreadState,
    turn: Option<Turn>,
}

impl Mine {
    pub(crate) fn calls(&self) -> *mut ThreadCalls {
        self.state.calls()
    }

    /// Says whether events of this thread are not the program's; what was said before.
    pub(crate) fn set_busy(&self, busy: bool) -> bool {
        if busy {
            forget_last();
        }
        // SAFETY: this thread may use the calls as long as this is there, and nothing else borrows them meanwhile.
        unsafe { (*self.calls()).set_busy(busy) }
    }

    /// Remembers the state for the next event, where that may find it so.
    fn remember(&self) {
        // SAFETY: as above.
        if self.turn.is_none() && unsafe { (*self.calls()).is_plain() } {
            LAST.store(from_ref(self.state).cast_mut(), Ordering::Relaxed);
        }
    }
}

thread_local! {
    static CURRENT: Cell<Option<&'static ThreadState>> = const { Cell::new(None) };
    static ENDED: Cell<bool> = const { Cell::new(false) };
    static AT_END: AtEnd = const { AtEnd };
}

/// A number that no other running thread has, without a call. Never 0.
#[inline]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the ABI of threads on Linux keeps its own address in the first word of what fs points to.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: reading the register has no precondition.
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        // SAFETY: cannot fail.
        pointer = unsafe { libc::pthread_self() } as usize;
    }
    pointer
}

/// Hands over what a thread did when it ends.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        ENDED.set(true);
        let Some(mine) = CURRENT.take() else { return };
        let Some(mut threads) = lock(&THREADS) else { return };
        threads.retain(|thread| !std::ptr::eq(*thread, mine));
        // From here on it is nobody's; the next thread may have the same number.
        mine.owner.store(0, Ordering::Release);
        let Some(_turn) = mine.turn() else { return };
        // SAFETY: this is the thread that had the state, at its end, and the lock is held.
        let calls = unsafe { &mut *mine.calls() };
        if calls.session != 0
            && let Some(tracer) = running().filter(|tracer| tracer.is_session(calls.session))
        {
            let now = clock::now();
            if let Some(mut totals) = lock(&tracer.totals) {
                totals.take(calls, now);
            }
        }
        *calls = ThreadCalls::new(0, 0, 0);
        if let Some(mut free) = lock(&FREE) {
            free.push(mine);
        }
    }
}

/// The calls of the thread that had the last event, if that is this thread, they are of the running session and nothing but sums
/// is wanted of them; null otherwise, and always where there is no GIL. The GIL is held.
#[inline(always)]
pub(crate) fn last_thread() -> *mut ThreadCalls {
    let last = LAST.load(Ordering::Relaxed);
    // SAFETY: a state made by `attach` and never freed, which the GIL, with which it was stored, orders before this; or the
    // number that stands for none, which is all that a state has at its beginning.
    let owner = unsafe { (*last).owner.load(Ordering::Relaxed) };
    if owner != thread_pointer() {
        return null_mut();
    }
    // SAFETY: no thread has the number 0, so that this is a state. It is only pointed at.
    UnsafeCell::raw_get(unsafe { &raw const (*last).calls })
}

/// The calls of this thread in the running session; `None` when nothing is to be recorded. The GIL is held, or
/// `is_parallel` says that there is none.
pub(crate) fn this_thread(is_parallel: bool) -> Option<Mine> {
    if ACTIVE.load(Ordering::Acquire) == 0 {
        return None;
    }
    if let Some(mine) = own_state(is_parallel) {
        // Who ends the session takes it away first, then every turn: it is still running if it is now.
        let session = ACTIVE.load(Ordering::Acquire);
        // SAFETY: this thread has the state, and holds the GIL or its turn.
        if session != 0 && unsafe { (*mine.calls()).session } == session {
            mine.remember();
            return Some(mine);
        }
    }
    attach(is_parallel)
}

/// The state of this thread, in whichever session; `None` when it has met no event.
fn own_state(is_parallel: bool) -> Option<Mine> {
    let state = CURRENT.get()?;
    let turn = if is_parallel { Some(state.turn()?) } else { None };
    Some(Mine { state, turn })
}

/// The calls of this thread, in whichever session; `None` when it has met no event.
pub(crate) fn own_calls(is_parallel: bool) -> Option<Mine> {
    own_state(is_parallel)
}

/// Whether a state is that of this thread.
pub(crate) fn is_own(state: &ThreadState) -> bool {
    CURRENT.get().is_some_and(|own| std::ptr::eq(own, state))
}

#[cold]
fn attach(is_parallel: bool) -> Option<Mine> {
    if ENDED.get() {
        return None;
    }
    let tracer = running()?;
    let mut threads = lock(&THREADS)?;
    // Who ends the session takes it away first and collects under the lock then: what is attached now will be collected.
    let session = ACTIVE.load(Ordering::Acquire);
    if session == 0 || !tracer.is_session(session) {
        return None;
    }
    // SAFETY: both take nothing and cannot fail.
    let (os_thread, ident) = unsafe { (i64::from(libc::gettid()), libc::pthread_self() as u64) };
    let prepared = lock(&PREPARED).and_then(|mut prepared| {
        let index = prepared.iter().position(|(of, calls)| *of == ident && calls.session == session)?;
        Some(prepared.swap_remove(index).1)
    });
    let mut calls = match prepared {
        Some(prepared) => *prepared,
        None => ThreadCalls::new(session, os_thread, tracer.room()),
    };
    calls.os_thread = os_thread;
    calls.wants(tracer.has_timer(), tracer.room() > 0, tracer.module_call());
    CURRENT.get().unwrap_or_else(|| {
        let _ = AT_END.try_with(|_| ());
        let free = lock(&FREE).and_then(|mut free| free.pop());
        let mine = free.unwrap_or_else(|| Box::leak(Box::new(ThreadState::new())));
        mine.owner.store(thread_pointer(), Ordering::Release);
        threads.push(mine);
        CURRENT.set(Some(mine));
        mine
    });
    let mine = own_state(is_parallel)?;
    // SAFETY: this thread has the state, and holds the GIL or its turn. What was in it is of an earlier session, which was
    // collected.
    unsafe { *mine.calls() = calls };
    mine.remember();
    Some(mine)
}
