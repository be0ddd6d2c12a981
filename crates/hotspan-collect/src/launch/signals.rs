//! Signals held back from this thread, to be taken one by one: no handler runs, and none can come at a wrong moment.

use std::time::Duration;

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: libc::c_int,
    /// Whether the terminal sent it, and so to everyone in the foreground, rather than a process to us alone.
    pub from_terminal: bool,
    /// The process that sent it.
    pub(super) sender: libc::pid_t,
}

impl Received {
    /// Whether it tells of a new size of the terminal.
    #[must_use]
    pub fn is_resize(self) -> bool {
        self.signal == libc::SIGWINCH
    }
}

/// Signals that are held back while this lives, and let through again when it is dropped.
pub struct Signals {
    pub(super) set: libc::sigset_t,
    pub(super) before: libc::sigset_t,
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

impl Signals {
    /// Holds back what asks a recording to end, and what tells of a new size of the terminal.
    #[must_use]
    pub fn to_stop() -> Self {
        Self::hold(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGWINCH])
    }

    /// Holds some signals back. What is ignored, as SIGHUP is under nohup, stays so: held back it would come after all.
    pub(super) fn hold(signals: &[libc::c_int]) -> Self {
        // SAFETY: plain sets of numbers, filled before they are used; asking for an action changes nothing.
        unsafe {
            let mut set = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                let mut action = std::mem::zeroed::<libc::sigaction>();
                libc::sigaction(signal, std::ptr::null(), &raw mut action);
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&raw mut set, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            Self { set, before }
        }
    }

    /// Waits for one of the signals, no longer than this.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> Option<Received> {
        let longest = libc::timespec {
            tv_sec: libc::time_t::try_from(longest.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(longest.subsec_nanos() as i32),
        };
        // SAFETY: `hold` filled the set, and the two locals outlive the call; a zeroed `siginfo_t` is a valid one.
        unsafe {
            let mut info = std::mem::zeroed::<libc::siginfo_t>();
            let signal = libc::sigtimedwait(&raw const self.set, &raw mut info, &raw const longest);
            let from_terminal = info.si_code == libc::SI_KERNEL;
            (signal > 0).then(|| Received { signal, from_terminal, sender: info.si_pid() })
        }
    }

    /// Waits for someone to ask for the end, no longer than this; whether they did is the answer.
    #[must_use]
    pub fn asked_to_stop(&self, longest: Duration) -> bool {
        self.wait(longest).is_some_and(|received| !received.is_resize())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: puts back the mask that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_taken_once_and_an_ignored_one_never() {
        // SAFETY: asks for numbers, and signals this thread alone, with signals that are held back or ignored.
        let send = |signal| unsafe { libc::pthread_kill(libc::pthread_self(), signal) };
        // SAFETY: nothing else in these tests uses the signal.
        unsafe { libc::signal(libc::SIGURG, libc::SIG_IGN) };
        let signals = Signals::hold(&[libc::SIGWINCH, libc::SIGURG]);
        assert_eq!(signals.wait(Duration::ZERO), None);
        send(libc::SIGURG);
        send(libc::SIGWINCH);
        // SAFETY: asks for a number.
        let sender = unsafe { libc::getpid() };
        let expected = Received { signal: libc::SIGWINCH, from_terminal: false, sender };
        assert_eq!(signals.wait(Duration::from_secs(5)), Some(expected));
        assert_eq!(signals.wait(Duration::ZERO), None);
    }
}
