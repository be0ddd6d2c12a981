//! Which thread an event is of, and what it keeps: found in a few instructions, made at its first event, handed over at its
//! end.
//!
//! Events come with the GIL held, one at a time, and most are of the thread that had the last one. So the state that was
//! used last is remembered for all threads together, and the register that tells threads apart says whether it is the right
//! one. States are never freed, only used again: whoever looks at one that its thread just gave up sees that it is nobody's.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::calls::thread::ThreadCalls;
use crate::calls::tracer::running;
use crate::clock;

/// The running session, 0 for none.
pub(crate) static ACTIVE: AtomicU64 = AtomicU64::new(0);
/// The state of every thread that has met an event.
pub(crate) static THREADS: Mutex<Vec<Known>> = Mutex::new(Vec::new());
/// The functions that threads were in when tracing began, until the thread meets its first event.
pub(crate) static PREPARED: Mutex<Vec<(u64, Box<ThreadCalls>)>> = Mutex::new(Vec::new());
/// States whose threads have ended.
static FREE: Mutex<Vec<Known>> = Mutex::new(Vec::new());
/// The state of the thread that had the last event.
static LAST: AtomicPtr<ThreadCalls> = AtomicPtr::new(null_mut());

/// Whether forked children trace nothing: what they did would only fill their memory. Sums go on, as in cProfile.
pub(crate) static ENDS_IN_CHILDREN: AtomicBool = AtomicBool::new(false);

pub(crate) extern "C" fn in_child() {
    if ENDS_IN_CHILDREN.load(Ordering::Acquire) {
        ACTIVE.store(0, Ordering::Release);
    }
}

pub(crate) struct Known(pub(crate) *mut ThreadCalls);
// SAFETY: what is behind it is used by its own thread, or with the GIL, which its thread then does not hold.
unsafe impl Send for Known {}

thread_local! {
    static CURRENT: Cell<*mut ThreadCalls> = const { Cell::new(null_mut()) };
    static ENDED: Cell<bool> = const { Cell::new(false) };
    static AT_END: AtEnd = const { AtEnd };
}

/// Locks without waiting for ever: a lock that cannot be had was held by another thread when this process was forked off.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..100_000 {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
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
        let mine = CURRENT.replace(null_mut());
        if mine.is_null() {
            return;
        }
        let Some(mut threads) = lock(&THREADS) else { return };
        threads.retain(|known| known.0 != mine);
        // SAFETY: made by `attach`, out of the list, and its thread is here: nobody else changes it.
        let state = unsafe { &mut *mine };
        // From here on it is nobody's; the next thread may have the same number.
        state.thread.store(0, Ordering::Release);
        if state.session != 0
            && state.session == ACTIVE.load(Ordering::Acquire)
            && let Some(tracer) = running()
        {
            let now = clock::now();
            if let Some(mut totals) = lock(&tracer.totals) {
                totals.take(state, now);
            }
        }
        state.renew(ThreadCalls::new(0, 0, 0));
        if let Some(mut free) = lock(&FREE) {
            free.push(Known(mine));
        }
    }
}

/// The state that was used last, if it is that of this thread in the running session; null otherwise.
#[inline(always)]
pub(crate) fn last_thread() -> *mut ThreadCalls {
    let session = ACTIVE.load(Ordering::Relaxed);
    let last = LAST.load(Ordering::Relaxed);
    // SAFETY: states are never freed, and one that has the number of this thread is this thread's.
    unsafe {
        let is_it = !last.is_null()
            && (*last).thread.load(Ordering::Relaxed) == thread_pointer()
            && (*last).session == session
            && session != 0;
        if is_it { last } else { null_mut() }
    }
}

/// The state of this thread in the running session; null when nothing is to be recorded.
pub(crate) fn this_thread() -> *mut ThreadCalls {
    let session = ACTIVE.load(Ordering::Relaxed);
    let mine = CURRENT.get();
    // SAFETY: the state is this thread's until it ends.
    if !mine.is_null() && unsafe { (*mine).session } == session && session != 0 {
        LAST.store(mine, Ordering::Relaxed);
        mine
    } else {
        attach(session)
    }
}

/// The state that this thread has, in whichever session.
pub(crate) fn own_state() -> *mut ThreadCalls {
    CURRENT.get()
}

#[cold]
fn attach(session: u64) -> *mut ThreadCalls {
    if session == 0 || ENDED.get() {
        return null_mut();
    }
    let Some(tracer) = running() else { return null_mut() };
    let Some(mut threads) = lock(&THREADS) else { return null_mut() };
    // SAFETY: cannot fail.
    let (os_thread, ident) = unsafe { (i64::from(libc::gettid()), libc::pthread_self() as u64) };
    let prepared = lock(&PREPARED).and_then(|mut prepared| {
        let index = prepared.iter().position(|(known, state)| *known == ident && state.session == session)?;
        Some(prepared.swap_remove(index).1)
    });
    let mut state = match prepared {
        Some(prepared) => *prepared,
        None => ThreadCalls::new(session, os_thread, tracer.room()),
    };
    state.os_thread = os_thread;
    state.wants(tracer.has_timer(), tracer.room() > 0, tracer.module_call());
    let mut mine = CURRENT.get();
    if mine.is_null() {
        let _ = AT_END.try_with(|_| ());
        let free = lock(&FREE).and_then(|mut free| free.pop());
        mine = free.map_or_else(|| Box::into_raw(Box::new(ThreadCalls::new(0, 0, 0))), |free| free.0);
        threads.push(Known(mine));
        CURRENT.set(mine);
    }
    // SAFETY: the state is this thread's: a new one, or that of an earlier session, which was collected.
    unsafe {
        (*mine).renew(state);
        (*mine).thread.store(thread_pointer(), Ordering::Release);
    }
    LAST.store(mine, Ordering::Relaxed);
    mine
}
