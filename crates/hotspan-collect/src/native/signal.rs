//! The signal that timers send, and whose it is.
//!
//! It is `SIGURG`, because nothing happens when nobody handles it: the default action is to ignore it. A program that resets
//! all signals, an `exec`, a library that calls `sigaction`: none of them can make a late signal of ours end the process. A
//! real-time signal ends it. What the program does to the disposition is looked at every turn: a reset is undone, a handler
//! of the program stays, and threads are read from outside as long as it does.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{handler, recorder};

/// The signal.
pub(crate) const SIGNAL: i32 = libc::SIGURG;

/// Its address tells our timers from those of the program.
static MARK: AtomicU8 = AtomicU8::new(0);

/// What nobody's handler was before ours: the default, or to ignore it.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// What became of the signal since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Our handler was in place.
    Kept,
    /// It was not, and no other was; it is now.
    Taken,
    /// The program has a handler of its own.
    Theirs,
    /// The program is about to change something: nothing is sent meanwhile.
    Lent,
}

/// How many are about to change something.
static LENT: AtomicU32 = AtomicU32::new(0);
/// Whether timers may send the signal.
static SENDS: AtomicBool = AtomicBool::new(false);
/// A collector that does not answer within this time is not waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// While it lives, no timer of ours sends the signal. For who is about to install a handler of the program, or to block
/// the signal: the program shall get none that it did not send.
#[derive(Debug)]
pub struct Lent(());

impl Lent {
    /// The signal that the sampler uses.
    pub const SIGNAL: i32 = SIGNAL;
    /// The change of a mask that blocks nothing.
    pub const UNBLOCKS: i32 = libc::SIG_UNBLOCK;

    /// Whether the calling thread blocks the signal.
    #[must_use]
    pub fn is_blocked() -> bool {
        // SAFETY: only asks; the set is filled in before it is read.
        unsafe {
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut blocked) == 0
                && libc::sigismember(&raw const blocked, SIGNAL) == 1
        }
    }

    /// Waits until all timers are gone.
    #[must_use]
    pub fn new() -> Self {
        LENT.fetch_add(1, Ordering::AcqRel);
        let begun = Instant::now();
        // In a forked child nothing records, and nobody answers.
        while SENDS.load(Ordering::Acquire)
            && handler::GENERATION.load(Ordering::Acquire) != 0
            && begun.elapsed() < PATIENCE
        {
            recorder::hurry();
            std::thread::sleep(Duration::from_micros(50));
        }
        Self(())
    }
}

impl Default for Lent {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = LENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |lent| lent.checked_sub(1));
    }
}

/// A forked child has no timers, and not the thread that something was lent to.
pub(crate) fn forget_parent() {
    LENT.store(0, Ordering::Release);
    SENDS.store(false, Ordering::Release);
}

/// Whether timers may be armed from here on; told before the first is, and after the last is gone.
pub(crate) fn set_sends(sends: bool) {
    SENDS.store(sends, Ordering::Release);
}

/// A handler of signals with a record.
pub(crate) type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// What our timers carry.
pub(crate) fn mark() -> *mut libc::c_void {
    ptr::from_ref(&MARK).cast_mut().cast()
}

/// Puts the handler in place, unless the program has one.
pub(crate) fn hold(handler: Handler) -> Hold {
    if LENT.load(Ordering::Acquire) > 0 {
        return Hold::Lent;
    }
    let ours = handler as *const () as usize;
    match change(None) {
        Some(found) if found.sa_sigaction == ours => return Hold::Kept,
        Some(found) if is_free(&found) => {}
        _ => return Hold::Theirs,
    }
    // SAFETY: zeros are a valid action, filled in below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ours;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    match change(Some(&action)) {
        Some(found) if is_free(&found) => {
            BEFORE.store(found.sa_sigaction, Ordering::Release);
            Hold::Taken
        }
        Some(found) if found.sa_sigaction == ours => Hold::Kept,
        // The program was faster than the look before.
        Some(found) => {
            change(Some(&found));
            Hold::Theirs
        }
        None => Hold::Theirs,
    }
}

/// Puts back what was there before, when the handler is still in place.
pub(crate) fn release(handler: Handler) {
    if change(None).is_some_and(|found| found.sa_sigaction == handler as *const () as usize) {
        // SAFETY: zeros are a valid action: the default one.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = BEFORE.load(Ordering::Acquire);
        change(Some(&action));
    }
}

fn is_free(action: &libc::sigaction) -> bool {
    matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

/// Sets the action, or only asks; returns what it was.
fn change(action: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    // SAFETY: zeros are a valid action, and the call fills it in.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a valid signal and place. Actions are the default one, what was there before, or a handler of this library,
    // which is never unloaded.
    let result =
        unsafe { libc::sigaction(SIGNAL, action.map_or(ptr::null(), ptr::from_ref), &raw mut before) };
    (result == 0).then_some(before)
}
