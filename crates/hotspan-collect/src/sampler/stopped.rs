//! A running thread of another process held still for a moment: its registers can be read only then.
//!
//! The kernel lets the thread go on when this process ends, however it ends. A signal that comes in that moment is
//! handed on. Threads that wait in the kernel are not stopped, so that no call of theirs is interrupted. One that goes
//! to wait in the last moment may be, and then makes the call again.

use std::time::{Duration, Instant};

use super::state::ThreadNumber;
use crate::native::Registers;

/// How long a thread may take to stop: on a busy machine it stops when it gets a processor. One that entered the kernel
/// meanwhile and waits for a disk may take longer.
const PATIENCE: Duration = Duration::from_millis(250);
/// A thread on a processor stops at once. After so many looks it is waited for without taking the processor it needs.
const QUICK_LOOKS: u32 = 30;
const PAUSE: Duration = Duration::from_micros(30);
/// The kind of stop that was asked for, or that of a whole process (`PTRACE_EVENT_STOP`).
const EVENT_STOP: libc::c_int = 128;

/// A thread that does not run until this is dropped.
pub(super) struct Stopped {
    thread: libc::pid_t,
    /// A signal that was about to be delivered.
    signal: libc::c_int,
}

/// Threads that were asked to stop and have not yet done so.
#[derive(Debug, Default)]
pub(super) struct Late(Vec<libc::pid_t>);

impl Stopped {
    /// Stops a thread of another process. None where that is not allowed, another tracer has it, or it does not stop in time.
    pub(super) fn stop(thread: ThreadNumber, late: &mut Late) -> Option<Self> {
        let thread = thread.0.cast_signed();
        if late.0.contains(&thread) || !request(libc::PTRACE_SEIZE, thread, 0) {
            return None;
        }
        request(libc::PTRACE_INTERRUPT, thread, 0);
        let begun = Instant::now();
        for look in 0.. {
            match has_stopped(thread) {
                Ok(Some(signal)) => return Some(Self { thread, signal }),
                Ok(None) if look < QUICK_LOOKS => std::hint::spin_loop(),
                Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Ok(None) => {
                    late.0.push(thread);
                    break;
                }
                Err(HasEnded) => break,
            }
        }
        None
    }

    /// Its registers.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn registers(&self) -> Option<Registers> {
        let user = self.user_registers()?;
        Some(Registers { instruction: user.rip, stack: user.rsp, frame: user.rbp, link: 0 })
    }

    /// Has a system call made again that our stop has interrupted, as the kernel does for most of them.
    #[cfg(target_arch = "x86_64")]
    fn repeat_call(&self) {
        const SYSCALL_BYTES: u64 = 2;
        let Some(mut user) = self.user_registers() else { return };
        let is_interrupted =
            user.orig_rax.cast_signed() >= 0 && user.rax.cast_signed() == i64::from(-libc::EINTR);
        // A signal of the program is another reason.
        if is_interrupted && self.signal == 0 && !has_pending_signal(self.thread) {
            user.rax = user.orig_rax;
            user.rip -= SYSCALL_BYTES;
            // SAFETY: the kernel reads the local.
            unsafe {
                let none = std::ptr::null_mut::<libc::c_void>();
                libc::ptrace(libc::PTRACE_SETREGS, self.thread, none, (&raw mut user).cast::<libc::c_void>());
            }
        }
    }

    /// Its registers.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn registers(&self) -> Option<Registers> {
        let user = self.user_registers()?;
        Some(Registers { instruction: user.pc, stack: user.sp, frame: user.regs[29], link: user.regs[30] })
    }

    fn user_registers(&self) -> Option<libc::user_regs_struct> {
        // SAFETY: plain numbers, all zero; the kernel writes as many bytes as the vector says, which are the local's.
        unsafe {
            let mut user = std::mem::zeroed::<libc::user_regs_struct>();
            let mut vector = libc::iovec {
                iov_base: (&raw mut user).cast(),
                iov_len: size_of::<libc::user_regs_struct>(),
            };
            let got = libc::ptrace(
                libc::PTRACE_GETREGSET,
                self.thread,
                libc::NT_PRSTATUS as usize as *mut libc::c_void,
                (&raw mut vector).cast::<libc::c_void>(),
            );
            (got == 0).then_some(user)
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        self.repeat_call();
        request(libc::PTRACE_DETACH, self.thread, self.signal);
    }
}

impl Late {
    /// Lets those go on that have stopped since.
    pub(super) fn let_go(&mut self) {
        self.0.retain(|&thread| match has_stopped(thread) {
            Ok(Some(signal)) => {
                request(libc::PTRACE_DETACH, thread, signal);
                false
            }
            Ok(None) => true,
            Err(HasEnded) => false,
        });
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        let begun = Instant::now();
        // One that is left is let go by the kernel when this process ends.
        while !self.0.is_empty() && begun.elapsed() < PATIENCE {
            self.let_go();
            std::thread::sleep(PAUSE);
        }
    }
}

struct HasEnded;

/// Whether a traced thread has stopped, and the signal that must be handed on when it is let go.
fn has_stopped(thread: libc::pid_t) -> Result<Option<libc::c_int>, HasEnded> {
    let mut status = 0;
    // SAFETY: the kernel writes to the local; the thread is a tracee of this one, or the call fails.
    match unsafe { libc::waitpid(thread, &raw mut status, libc::WNOHANG | libc::__WALL) } {
        0 => Ok(None),
        -1 => Err(HasEnded),
        _ if !libc::WIFSTOPPED(status) => Err(HasEnded),
        _ if status >> 16 == EVENT_STOP => Ok(Some(0)),
        _ => Ok(Some(libc::WSTOPSIG(status))),
    }
}

/// Whether a signal waits for a thread that does not hold it back.
#[cfg(target_arch = "x86_64")]
fn has_pending_signal(thread: libc::pid_t) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let set = |name: &str| {
        let set = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        u64::from_str_radix(set.trim(), 16).ok()
    };
    let pending = || Some((set("SigPnd")? | set("ShdPnd")?) & !set("SigBlk")?);
    pending() != Some(0)
}

/// A request without an answer; whether it was granted.
fn request(what: libc::c_uint, thread: libc::pid_t, number: libc::c_int) -> bool {
    let (nothing, number) = (std::ptr::null_mut::<libc::c_void>(), number as usize as *mut libc::c_void);
    // SAFETY: numbers only; the kernel refuses what is no tracee of this thread.
    unsafe { libc::ptrace(what, thread, nothing, number) == 0 }
}
