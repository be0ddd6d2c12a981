//! What threads are doing, from `/proc/<pid>/task/<tid>`: running, or what they wait for.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

use hotspan_store::SampleState;

use crate::process_tree::ProcessNumber;
use crate::syscalls::Blocked;

/// A thread of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadNumber(pub u32);

impl fmt::Display for ThreadNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Files of one thread, kept open: reading again costs half of opening again.
#[derive(Debug, Default)]
pub(super) struct StateFiles {
    stat: Option<File>,
    syscall: Option<File>,
}

fn open(process: ProcessNumber, thread: ThreadNumber, name: &str) -> Option<File> {
    File::open(format!("/proc/{process}/task/{thread}/{name}")).ok()
}

impl StateFiles {
    /// Looks the thread's state up. `keep` says whether the files may stay open.
    pub(super) fn look(&mut self, process: ProcessNumber, thread: ThreadNumber, keep: bool) -> SampleState {
        let mut buffer = [0; 512];
        if self.stat.is_none() {
            self.stat = open(process, thread, "stat");
        }
        let length = self.stat.as_ref().and_then(|file| file.read_at(&mut buffer, 0).ok()).unwrap_or(0);
        let mut state = state_of_stat(&buffer[..length]);
        if state == SampleState::Waiting {
            if self.syscall.is_none() {
                self.syscall = open(process, thread, "syscall");
            }
            let length =
                self.syscall.as_ref().and_then(|file| file.read_at(&mut buffer, 0).ok()).unwrap_or(0);
            state = state_of_syscall(&buffer[..length]);
        }
        if !keep {
            *self = Self::default();
        }
        state
    }
}

/// `123 (a name) S …`: the letter after the last bracket, since a name may hold anything.
fn state_of_stat(stat: &[u8]) -> SampleState {
    let letter = stat.iter().rposition(|&byte| byte == b')').and_then(|end| stat.get(end + 2));
    match letter {
        Some(b'R') => SampleState::Running,
        Some(b'D') => SampleState::Io,
        Some(_) => SampleState::Waiting,
        None => SampleState::Unknown,
    }
}

/// `202 0x7f… 0x89 …`: the number of the call the thread waits in, and its arguments.
fn state_of_syscall(text: &[u8]) -> SampleState {
    let text = std::str::from_utf8(text).unwrap_or_default();
    match Blocked::parse(text) {
        Some(blocked) => blocked.reason().0,
        None if text.trim_end() == "running" => SampleState::Running,
        None => SampleState::Waiting,
    }
}

/// The number of a thread as we see it. A process in a container counts its threads in its own way.
pub(super) fn thread_seen_from_here(process: ProcessNumber, number: ThreadNumber) -> Option<ThreadNumber> {
    if number.0 == 0 {
        return None;
    }
    let folder = format!("/proc/{process}/task");
    if std::path::Path::new(&format!("{folder}/{number}")).exists() {
        return Some(number);
    }
    let threads = std::fs::read_dir(&folder).ok()?;
    threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).map(ThreadNumber).find(
        |here| {
            let status = std::fs::read_to_string(format!("{folder}/{here}/status")).unwrap_or_default();
            let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            inner.and_then(|numbers| numbers.split_ascii_whitespace().last())
                == Some(number.0.to_string().as_str())
        },
    )
}

/// The name the operating system gives a thread.
pub(super) fn system_name(process: ProcessNumber, thread: ThreadNumber) -> Option<String> {
    let name = std::fs::read(format!("/proc/{process}/task/{thread}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_told_apart() {
        assert_eq!(state_of_stat(b"12 (a) R) b) S 1 2"), SampleState::Waiting);
        assert_eq!(state_of_stat(b"12 (python) R 1 2"), SampleState::Running);
        assert_eq!(state_of_stat(b""), SampleState::Unknown);
        let call = |number: i64, first: &str| {
            state_of_syscall(format!("{number} {first} 0x1 0x0 0x0 0x0 0x0 0x7f 0x7f").as_bytes())
        };
        assert_eq!(call(libc::SYS_futex, "0x7f"), SampleState::Lock);
        assert_eq!(call(libc::SYS_pselect6, "0x0"), SampleState::Sleep);
        assert_eq!(call(libc::SYS_pselect6, "0x5"), SampleState::Io);
        assert_eq!(call(libc::SYS_ppoll, "0x7f"), SampleState::Io, "as samples from within say");
        assert_eq!(state_of_syscall(b"running\n"), SampleState::Running);
        assert_eq!(state_of_syscall(b"-1 0x7f 0x7f"), SampleState::Waiting);
    }

    #[test]
    fn a_thread_that_looks_at_itself_runs() {
        let own = ProcessNumber(std::process::id());
        // SAFETY: gettid has no precondition.
        let thread = ThreadNumber(unsafe { libc::gettid() } as u32);
        assert_eq!(StateFiles::default().look(own, thread, false), SampleState::Running);
        assert!(system_name(own, thread).is_some());
    }
}
