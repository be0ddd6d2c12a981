//! SIGTERM and SIGHUP with their default action: what was recorded is written before the process dies of them.
//!
//! `Process.terminate()`, job schedulers and containers end programs this way, and Python has no say in it. The action becomes a
//! handler only where it is the default, so that no handler of the program is replaced; whoever sets another later replaces
//! ours. Python keeps its own list, which still says `SIG_DFL`, and so does the exit status: the handler has the agent write,
//! waits a moment, puts the default back and sends the signal again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use super::Shared;

const SIGNALS: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];
/// The longest that a signal may wait for the agent: so many times five milliseconds.
const LOOKS: u32 = 100;
static LOOK: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// The agent of the process whose number follows. It is never freed: a handler may be about to use it.
static AGENT: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The signal that came, and whether what was recorded before is written.
#[derive(Debug, Default)]
pub(super) struct LastSignal {
    came: AtomicI32,
    written: AtomicI32,
}

impl LastSignal {
    /// The signal that came and waits for the agent; 0 for none.
    pub(super) fn waiting(&self) -> i32 {
        let came = self.came.load(Ordering::Acquire);
        if came == self.written.load(Ordering::Relaxed) { 0 } else { came }
    }

    pub(super) fn is_written(&self, signal: i32) {
        self.written.store(signal, Ordering::Release);
    }
}

/// Lets the agent hear of signals that end this process.
pub(super) fn watch(shared: &Arc<Shared>) {
    AGENT.store(Arc::into_raw(Arc::clone(shared)).cast_mut(), Ordering::Release);
    PROCESS.store(std::process::id(), Ordering::Release);
    for signal in SIGNALS {
        // SAFETY: both actions are whole, and the handler is a function of this library, which is never unloaded. Python's
        // own calls of `sigaction` need the GIL, which whoever starts an agent holds or has given up for no longer than this.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            if libc::sigaction(signal, std::ptr::null(), &raw mut action) != 0
                || action.sa_sigaction != libc::SIG_DFL
            {
                continue;
            }
            action.sa_sigaction = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Nothing is recorded any more: signals do at once what they did before.
pub(super) fn unwatch() {
    AGENT.store(std::ptr::null_mut(), Ordering::Release);
}

/// Runs on any thread, at any moment: it takes no lock and allocates nothing.
extern "C" fn handle(signal: libc::c_int) {
    // SAFETY: what is called here may be called in a handler: `getpid`, `nanosleep`, `sigaction`, `raise`. The agent was
    // made by `Arc::into_raw` and is never freed. To notify is an addition and a futex call.
    unsafe {
        let agent = AGENT.load(Ordering::Acquire);
        if !agent.is_null() && PROCESS.load(Ordering::Acquire) == libc::getpid().unsigned_abs() {
            let shared = &*agent;
            shared.last_signal.came.store(signal, Ordering::Release);
            shared.wake.notify_all();
            for _ in 0..LOOKS {
                if shared.last_signal.waiting() == 0 {
                    break;
                }
                libc::nanosleep(&raw const LOOK, std::ptr::null_mut());
            }
        }
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        // It is held back while this handler runs, and comes when that returns.
        libc::raise(signal);
    }
}
