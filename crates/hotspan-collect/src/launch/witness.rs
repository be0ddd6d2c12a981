//! Whether a signal was sent to us alone, or to the program as well, which then must not get it a second time.
//!
//! The kernel marks the Ctrl-C of a terminal as its own. A signal from a process carries no such mark: `timeout` and
//! process managers send it to a group, systemd and Slurm to each process of a job. So a second process of ours stands
//! beside the launcher, in the same group and the same job, and reports what reaches it. A signal that it got too was
//! sent to everybody. A signal that it did not get was for the launcher, which passes it on.

use std::fs::File;
use std::io::Read;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::process::Command;
use std::time::{Duration, Instant};

use super::signals::Received;

/// How long the sender may take from us to the witness. Twice a signal does less harm than never.
const PATIENCE: Duration = Duration::from_millis(50);
/// Reports older than this belong to a signal that the launcher did not see: two of a kind may have become one.
const STALE_NS: i64 = 1_000_000_000;
/// What `ps` shows before the program's own words.
const TITLE: &str = "signals of";

/// One signal that reached the witness, as it stands in the pipe.
#[repr(C)]
#[derive(Clone, Copy)]
struct Report {
    at: i64,
    signal: libc::c_int,
    sender: libc::pid_t,
}

/// The process, which ends with this value or with the launcher.
#[derive(Debug)]
pub(super) struct Witness {
    pid: libc::pid_t,
    reports: File,
}

impl Witness {
    /// Starts it for the signals of a set, which this thread holds back. None where the system has no process to spare.
    pub(super) fn start(signals: libc::sigset_t, program: &Command) -> Option<Self> {
        let title = title(program);
        let words = own_words();
        let mut ends = [0; 2];
        // SAFETY: the system writes two descriptors, which nobody else has.
        let (reports, write) = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
                return None;
            }
            (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
        };
        // SAFETY: the child stays in `stand`, which makes system calls only and never returns.
        unsafe {
            let launcher = libc::getpid();
            match libc::fork() {
                -1 => None,
                0 => stand(launcher, signals, write.as_raw_fd(), words, &title),
                pid => Some(Self { pid, reports }),
            }
        }
    }

    /// Whether it got the same signal from the same process.
    pub(super) fn also_got(&mut self, received: Received) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            while let Some(report) = self.next_report() {
                let same = (report.signal, report.sender) == (received.signal, received.sender);
                if same && now_ns() - report.at < STALE_NS {
                    return true;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let mut waiting = libc::pollfd { fd: self.reports.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let milliseconds = libc::c_int::try_from(left.as_millis() + 1).unwrap_or(libc::c_int::MAX);
            // SAFETY: one descriptor of ours, in a local.
            let ready = unsafe { libc::poll(&raw mut waiting, 1, milliseconds) };
            if ready > 0 && waiting.revents & libc::POLLIN == 0 {
                return false; // it has ended
            }
        }
    }

    fn next_report(&mut self) -> Option<Report> {
        let mut bytes = [0; size_of::<Report>()];
        // Whole reports are written at once, so that no part of one is read.
        (self.reports.read(&mut bytes).ok()? == bytes.len())
            // SAFETY: the bytes of a `Report`, of which every pattern is one.
            .then(|| unsafe { std::mem::transmute::<[u8; size_of::<Report>()], Report>(bytes) })
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: a child of ours that nobody else waits for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// The life of the witness: reports each signal until the launcher ends.
///
/// # Safety
/// Only in a process that was just forked: it takes the process over. `words` is where its command line lies.
unsafe fn stand(
    launcher: libc::pid_t,
    mut signals: libc::sigset_t,
    pipe: RawFd,
    words: Option<(usize, usize)>,
    title: &[u8],
) -> ! {
    // SAFETY: system calls that are allowed after a fork, on locals; the command line is this process's own copy.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != launcher {
            libc::_exit(0);
        }
        // `pkill -f` finds it where it finds the program, not where it finds the launcher alone.
        libc::prctl(libc::PR_SET_NAME, c"signals".as_ptr());
        if let Some((start, length)) = words {
            let words = std::slice::from_raw_parts_mut(start as *mut u8, length);
            for (index, byte) in words.iter_mut().enumerate() {
                *byte = if index + 1 < length { title.get(index).copied().unwrap_or(0) } else { 0 };
            }
        }
        // Whoever reads the program's output must not wait for us to close it.
        for range in [(0, pipe - 1), (pipe + 1, libc::c_int::MAX)] {
            libc::syscall(libc::SYS_close_range, range.0, range.1, 0);
        }
        libc::sigdelset(&raw mut signals, libc::SIGCHLD);
        loop {
            let mut info = std::mem::zeroed::<libc::siginfo_t>();
            let signal = libc::sigwaitinfo(&raw const signals, &raw mut info);
            if signal > 0 && info.si_code != libc::SI_KERNEL {
                let report = Report { at: now_ns(), signal, sender: info.si_pid() };
                libc::write(pipe, (&raw const report).cast(), size_of::<Report>());
            }
        }
    }
}

fn title(program: &Command) -> Vec<u8> {
    let mut title = TITLE.as_bytes().to_vec();
    for word in std::iter::once(program.get_program()).chain(program.get_args()) {
        title.push(b' ');
        title.extend_from_slice(word.as_encoded_bytes());
    }
    title
}

/// Where the command line of this process lies in its memory, and how long it is.
fn own_words() -> Option<(usize, usize)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may hold anything; the 48th and 49th fields are counted from its end, where the third begins.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(48 - 3);
    let start = fields.next()?.parse::<usize>().ok()?;
    let end = fields.next()?.parse::<usize>().ok()?;
    let length = end.checked_sub(start)?;
    (start != 0 && length > 0).then_some((start, length))
}

fn now_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
