//! Signals that ask a recording to end, or that are meant for the program being recorded.

use std::sync::atomic::{AtomicI32, Ordering};

use super::memory::ProcessNumber;

static ASKED: AtomicI32 = AtomicI32::new(0);
/// Set when the signal came from another process rather than from the keyboard, which tells the child as well.
static SENT: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    ASKED.store(signal, Ordering::Relaxed);
    // SAFETY: the kernel hands a valid siginfo to a handler installed with SA_SIGINFO.
    let from_a_process = unsafe { (*info).si_code } == libc::SI_USER;
    if from_a_process {
        SENT.store(signal, Ordering::Relaxed);
    }
}

/// Notes SIGINT, SIGTERM and SIGHUP from now on instead of dying of them.
pub fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: a zeroed sigaction is valid; the handler only stores to atomics, which is allowed in one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// A signal that came since the last time, and whether a process sent it to us alone.
#[must_use]
pub fn take() -> Option<(i32, bool)> {
    let signal = ASKED.swap(0, Ordering::Relaxed);
    let sent = SENT.swap(0, Ordering::Relaxed);
    (signal != 0).then_some((signal, sent == signal))
}

/// Hands a signal on to a process.
pub fn send(process: ProcessNumber, signal: i32) {
    // SAFETY: kill has no memory to misuse; a process that is gone is an error we do not mind.
    unsafe {
        libc::kill(process.0 as libc::pid_t, signal);
    }
}
