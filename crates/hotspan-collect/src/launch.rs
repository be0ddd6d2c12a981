//! Starting a program and standing aside: it gets our terminal, our signals, and we take over its way of ending.
//!
//! A person who presses Ctrl-C reaches the program directly, since the terminal sends the signal to everyone in the
//! foreground. A signal that was sent to us alone (`kill`, a job scheduler) is passed on.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Signals that are meant for the program.
const FORWARDED: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

/// Runs a program to its end. `tick` is called now and then, with the process id, and once it has started.
///
/// # Errors
/// When the program cannot be started.
pub fn run(command: &mut Command, interval: Duration, mut tick: impl FnMut(u32)) -> io::Result<ExitStatus> {
    let blocked = Blocked::new();
    let before = blocked.before;
    let unblock = move || {
        // SAFETY: a plain system call on a copied set, allowed between fork and exec.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    let mut child = unsafe { command.pre_exec(unblock) }.spawn()?;
    tick(child.id());
    let mut due = Instant::now() + interval;
    loop {
        let signal = blocked.wait(due.saturating_duration_since(Instant::now()));
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if let Some(Received { signal, from_terminal: false }) = signal
            && signal != libc::SIGCHLD
        {
            send(&child, signal);
        }
        if Instant::now() >= due {
            tick(child.id());
            due = Instant::now() + interval;
        }
    }
}

/// Ends this process the way the program ended, so that whoever started us sees no difference. Returns the exit code
/// when the program ended with one.
#[must_use]
pub fn end_like(status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal() {
        // SAFETY: restores the default action of one signal, lets it through and sends it to ourselves.
        unsafe {
            // The program has left the core dump, if anyone; ours would only be in its way.
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(signal, libc::SIG_DFL);
            let mut set = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
            libc::raise(signal);
        }
        // A signal whose default is to do nothing: what a shell would say.
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn send(child: &Child, signal: libc::c_int) {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: the child was not waited for, so the number is still its own.
    unsafe { libc::kill(pid, signal) };
}

struct Received {
    signal: libc::c_int,
    from_terminal: bool,
}

/// Signals held back from this thread while the program runs; they are let through again when dropped.
struct Blocked {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl Blocked {
    fn new() -> Self {
        // SAFETY: plain sets of numbers, filled before they are used.
        unsafe {
            let mut set = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut set);
            for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            Self { set, before }
        }
    }

    /// Waits for one of the signals, no longer than this.
    fn wait(&self, longest: Duration) -> Option<Received> {
        let longest = libc::timespec {
            tv_sec: libc::time_t::try_from(longest.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(longest.subsec_nanos() as i32),
        };
        // SAFETY: the set was filled, and both places are valid.
        unsafe {
            let mut info = std::mem::zeroed::<libc::siginfo_t>();
            let signal = libc::sigtimedwait(&raw const self.set, &raw mut info, &raw const longest);
            (signal > 0).then_some(Received { signal, from_terminal: info.si_code == libc::SI_KERNEL })
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: puts back the mask that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_keeps_its_exit_code_and_its_signals() {
        let shell = |script: &str| {
            let mut ticks = 0;
            let status =
                run(Command::new("sh").args(["-c", script]), Duration::from_millis(5), |_| ticks += 1);
            (status.unwrap(), ticks)
        };
        let (status, ticks) = shell("exit 42");
        assert_eq!((status.code(), ticks >= 1), (Some(42), true));
        assert_eq!(shell("kill -TERM $$").0.signal(), Some(libc::SIGTERM));
        let (status, ticks) = shell("sleep 0.1");
        assert!(status.success() && ticks > 2);
        assert!(run(&mut Command::new("/does/not/exist"), Duration::from_millis(5), |_| {}).is_err());
    }
}
