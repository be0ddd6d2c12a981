//! Starting a program and standing aside: it gets our terminal, our signals, and we take over its way of ending.
//!
//! A person who presses Ctrl-C reaches the program directly, since the terminal sends the signal to everyone in the
//! foreground; so does whoever signals a whole group. A signal that was sent to us alone (`kill`, a job scheduler) is
//! passed on. Everything that starts a program does it here.

mod signals;
mod witness;

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

pub use signals::{Received, Signals};
use witness::Witness;

/// Signals that are meant for the program, and the one that tells of its end.
const HELD: [libc::c_int; 8] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCHLD,
];
/// How often the program is asked for, should the signal of its end not come.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(1);

/// A program that runs. Signals are passed on while someone waits in [`Self::wait`].
#[derive(Debug)]
pub struct Program {
    child: Child,
    signals: Signals,
    witness: Option<Witness>,
    asked: Instant,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let signals = Signals::hold(&HELD);
        let witness = Witness::start(signals.set, command);
        let before = signals.before;
        let unblock = move || {
            // SAFETY: a plain system call on a copied set, allowed between fork and exec.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
            Ok(())
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        let child = unsafe { command.pre_exec(unblock) }.spawn()?;
        Ok(Self { child, signals, witness, asked: Instant::now(), ended: None })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits no longer than this; how it ended is the answer, once it has.
    ///
    /// # Errors
    /// When the system has lost sight of it.
    pub fn wait(&mut self, longest: Duration) -> io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        while self.ended.is_none() {
            let left = longest.saturating_sub(begun.elapsed());
            // Nothing may come although there is time left: a handler of someone else ran.
            match self.signals.wait(left.min(ASK_AGAIN)) {
                Some(Received { signal: libc::SIGCHLD, .. }) => self.ask()?,
                Some(received) if !self.has_it_already(received) => self.send(received.signal),
                Some(_) => {}
                None if self.asked.elapsed() >= ASK_AGAIN => self.ask()?,
                None => {}
            }
            if left.is_zero() {
                break;
            }
        }
        Ok(self.ended)
    }

    /// Ends it, first with a request, then by force: a program that cleans up may do so, one that does not listen ends too.
    ///
    /// # Errors
    /// When the system has lost sight of it.
    pub fn stop(&mut self) -> io::Result<()> {
        if self.wait(Duration::ZERO)?.is_none() {
            self.send(libc::SIGTERM);
            if self.wait(PATIENCE)?.is_none() {
                self.child.kill()?;
                self.ended = Some(self.child.wait()?);
            }
        }
        Ok(())
    }

    fn ask(&mut self) -> io::Result<()> {
        self.asked = Instant::now();
        self.ended = self.child.try_wait()?;
        Ok(())
    }

    /// Whether the signal went to the program as well as to us. One that left our group is reached through us.
    fn has_it_already(&mut self, received: Received) -> bool {
        // SAFETY: asks for numbers.
        let one_group = unsafe { libc::getpgid(self.child.id().cast_signed()) == libc::getpgrp() };
        let witness = self.witness.as_mut().filter(|_| one_group);
        received.from_terminal || witness.is_some_and(|witness| witness.also_got(received))
    }

    fn send(&self, signal: libc::c_int) {
        let Ok(pid) = libc::pid_t::try_from(self.child.id()) else { return };
        // SAFETY: the child was not waited for, so the number is still its own.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Runs a program to its end. `tick` is called now and then, with the process id, and once it has started.
///
/// # Errors
/// When the program cannot be started.
pub fn run(command: &mut Command, interval: Duration, mut tick: impl FnMut(u32)) -> io::Result<ExitStatus> {
    let mut program = Program::start(command)?;
    let mut due = Instant::now();
    loop {
        tick(program.id());
        // Ticks that are late are left out rather than made up for.
        due = (due + interval).max(Instant::now());
        if let Some(status) = program.wait(due.saturating_duration_since(Instant::now()))? {
            return Ok(status);
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

    #[test]
    fn waiting_ends_with_the_program_or_with_the_time() {
        let mut program = Program::start(Command::new("sleep").arg("0.2")).unwrap();
        assert_eq!(program.wait(Duration::ZERO).unwrap(), None);
        assert!(program.wait(Duration::from_secs(60)).unwrap().is_some_and(|status| status.success()));
        assert!(program.wait(Duration::from_secs(60)).unwrap().is_some(), "and stays ended");
    }

    #[test]
    fn a_program_is_stopped_whether_it_listens_or_not() {
        for (script, signal) in
            [("exec sleep 60", libc::SIGTERM), ("trap '' TERM; sleep 60 & wait; wait", libc::SIGKILL)]
        {
            let mut program = Program::start(Command::new("sh").args(["-c", script])).unwrap();
            // The shell sets its traps first.
            assert_eq!(program.wait(Duration::from_millis(300)).unwrap(), None);
            program.stop().unwrap();
            assert_eq!(program.wait(Duration::ZERO).unwrap().unwrap().signal(), Some(signal), "{script}");
            program.stop().unwrap();
        }
    }
}
