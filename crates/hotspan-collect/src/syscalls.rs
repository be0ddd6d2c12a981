//! What a thread waits for, from the system call it is in: for samples from within and from outside.

use hotspan_store::SampleState::{self, Io, Lock, Sleep, Waiting};

/// A thread inside the kernel, as `/proc/*/task/*/syscall` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    /// The system call; `None` when something else stopped it, such as a page being read.
    pub(crate) call: Option<i64>,
    arguments: [u64; 6],
    pub(crate) stack: u64,
    pub(crate) instruction: u64,
}

impl Blocked {
    /// Reads the line; `None` when the thread runs.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let call: i64 = fields.next()?.parse().ok()?;
        let numbers: Vec<u64> =
            fields.map_while(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok()).collect();
        let (&[stack, instruction], arguments) = match numbers.len() {
            2 => (numbers.as_slice().first_chunk()?, [0; 6]),
            8 => (numbers.last_chunk()?, *numbers.first_chunk()?),
            _ => return None,
        };
        Some(Self { call: (call >= 0).then_some(call), arguments, stack, instruction })
    }

    /// What it waits for, and the name of the system call.
    pub(crate) fn reason(&self) -> (SampleState, Option<&'static str>) {
        let Some(call) = self.call else { return (Waiting, None) };
        let known = CALLS.iter().find(|&&(number, ..)| number == call);
        match known {
            // Without files to watch these only pass the time; Python before 3.11 sleeps so.
            Some(&(_, "select" | "pselect6", _)) if self.arguments[0] == 0 => (Sleep, Some("select")),
            Some(&(_, name @ ("poll" | "ppoll"), _)) if self.arguments[1] == 0 => (Sleep, Some(name)),
            Some(&(_, name, state)) => (state, Some(name)),
            None => (Waiting, Some("system call")),
        }
    }
}

macro_rules! calls {
    ($($(#[$when:meta])? $number:ident $name:literal $state:ident;)*) => {
        &[$($(#[$when])? (libc::$number, $name, $state),)*]
    };
}

const CALLS: &[(i64, &str, SampleState)] = calls! {
    SYS_read "read" Io;
    SYS_write "write" Io;
    SYS_readv "readv" Io;
    SYS_writev "writev" Io;
    SYS_pread64 "pread64" Io;
    SYS_pwrite64 "pwrite64" Io;
    SYS_preadv "preadv" Io;
    SYS_pwritev "pwritev" Io;
    SYS_recvfrom "recvfrom" Io;
    SYS_recvmsg "recvmsg" Io;
    SYS_recvmmsg "recvmmsg" Io;
    SYS_sendto "sendto" Io;
    SYS_sendmsg "sendmsg" Io;
    SYS_sendfile "sendfile" Io;
    SYS_splice "splice" Io;
    SYS_copy_file_range "copy_file_range" Io;
    SYS_accept "accept" Io;
    SYS_accept4 "accept4" Io;
    SYS_connect "connect" Io;
    SYS_openat "openat" Io;
    SYS_close "close" Io;
    SYS_fsync "fsync" Io;
    SYS_fdatasync "fdatasync" Io;
    SYS_sync "sync" Io;
    SYS_msync "msync" Io;
    SYS_getdents64 "getdents64" Io;
    SYS_ioctl "ioctl" Io;
    SYS_io_getevents "io_getevents" Io;
    SYS_io_uring_enter "io_uring_enter" Io;
    SYS_fcntl "fcntl" Lock;
    SYS_flock "flock" Lock;
    SYS_futex "futex" Lock;
    SYS_semtimedop "semtimedop" Lock;
    SYS_nanosleep "nanosleep" Sleep;
    SYS_clock_nanosleep "clock_nanosleep" Sleep;
    SYS_ppoll "ppoll" Io;
    SYS_pselect6 "pselect6" Io;
    SYS_epoll_pwait "epoll_pwait" Waiting;
    SYS_wait4 "wait4" Waiting;
    SYS_waitid "waitid" Waiting;
    SYS_rt_sigtimedwait "rt_sigtimedwait" Waiting;
    SYS_rt_sigsuspend "rt_sigsuspend" Waiting;
    SYS_restart_syscall "restart_syscall" Waiting;
    SYS_mmap "mmap" Waiting;
    SYS_munmap "munmap" Waiting;
    SYS_madvise "madvise" Waiting;
    SYS_mprotect "mprotect" Waiting;
    SYS_sched_yield "sched_yield" Waiting;
    #[cfg(target_arch = "x86_64")] SYS_open "open" Io;
    #[cfg(target_arch = "x86_64")] SYS_poll "poll" Io;
    #[cfg(target_arch = "x86_64")] SYS_select "select" Io;
    #[cfg(target_arch = "x86_64")] SYS_epoll_wait "epoll_wait" Waiting;
    #[cfg(target_arch = "x86_64")] SYS_pause "pause" Waiting;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(Blocked::parse("running\n"), None);
        let page_fault = Blocked::parse("-1 0x7ffd0000 0x401000\n").unwrap();
        assert_eq!(
            (page_fault.call, page_fault.stack, page_fault.instruction),
            (None, 0x7ffd_0000, 0x40_1000)
        );
        let line = format!("{} 0x3 0x1000 0x10 0x0 0x0 0x0 0x7ffd0000 0x401000", libc::SYS_read);
        assert_eq!(Blocked::parse(&line).unwrap().reason(), (Io, Some("read")));
        let sleep = format!("{} 0x0 0x0 0x0 0x0 0x7f 0x0 0x7ffd0000 0x401000", libc::SYS_pselect6);
        assert_eq!(Blocked::parse(&sleep).unwrap().reason(), (Sleep, Some("select")));
        assert_eq!(Blocked::parse("99999 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2").unwrap().reason().0, Waiting);
        assert_eq!(Blocked::parse("1 2 3"), None);
    }
}
