//! Signals sent to us are meant for the command: they are handed on while it runs.
//!
//! Ctrl-C is not: the terminal sends it to the command as well, and a second one would be one too many.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

const HANDED_ON: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// What si_code is for signals that the kernel sends on its own, such as those of a terminal.
const FROM_KERNEL: c_int = 0x80;

/// The command; 0 while there is none.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the command was known.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Hands signals on until it is dropped; then the handlers before it are back.
pub(super) struct Forwarding {
    earlier: Vec<(c_int, libc::sigaction)>,
}

impl Forwarding {
    /// From here on signals are kept for the command. Handlers are not inherited by it.
    pub(super) fn begin() -> Self {
        COMMAND.store(0, Ordering::SeqCst);
        EARLY.store(0, Ordering::SeqCst);
        let mut earlier = Vec::new();
        for signal in HANDED_ON {
            // SAFETY: both structures are valid, all zero is a valid sigaction, and the handler is safe in a signal.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut before);
                // What is ignored, as under nohup, stays so for the command too.
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                action.sa_sigaction = hand_on as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, &raw const action, &raw mut before) == 0 {
                    earlier.push((signal, before));
                }
            }
        }
        Self { earlier }
    }

    /// Says who the command is.
    pub(super) fn to(&self, pid: u32) {
        let pid = i32::try_from(pid).unwrap_or(0);
        COMMAND.store(pid, Ordering::SeqCst);
        let early = EARLY.swap(0, Ordering::SeqCst);
        if early != 0 && pid > 0 {
            // SAFETY: sending a signal to our own child.
            unsafe { libc::kill(pid, early) };
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, before) in &self.earlier {
            // SAFETY: `before` is what the system gave us.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        COMMAND.store(0, Ordering::SeqCst);
    }
}

extern "C" fn hand_on(signal: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure.
    if !info.is_null() && unsafe { (*info).si_code } == FROM_KERNEL {
        return;
    }
    match COMMAND.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        // SAFETY: kill may be called in a signal handler.
        pid => drop(unsafe { libc::kill(pid, signal) }),
    }
}
