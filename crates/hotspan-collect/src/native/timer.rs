//! A timer that counts the processor time of one thread and signals that thread, and the clocks beside it.

use std::time::Duration;

use super::signal::{self, SIGNAL};

/// A timer of the kernel. It counts only while its thread is on a processor, so a waiting thread is never disturbed.
#[derive(Debug)]
pub(crate) struct ThreadTimer {
    id: i32,
    process: u32,
}

/// The clock of a thread's processor time, as the kernel numbers it.
fn cpu_clock(thread: i32) -> libc::clockid_t {
    (!thread << 3) | 6
}

/// Processor time of a thread of this process; `None` when it is gone.
pub(crate) fn cpu_time(thread: i32) -> Option<i64> {
    nanos(cpu_clock(thread))
}

/// Processor time of all threads of this process, also of those that have ended.
pub(crate) fn process_time() -> i64 {
    nanos(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// Time that always goes forward.
pub(crate) fn monotonic() -> i64 {
    nanos(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

fn nanos(clock: libc::clockid_t) -> Option<i64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the result; an unknown clock is an error.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then_some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

impl ThreadTimer {
    /// Signals a thread each time it has used so much processor time; the first time after `first`, so that threads do
    /// not run in step.
    pub(crate) fn start(thread: i32, period: Duration, first: Duration) -> Option<Self> {
        // SAFETY: zeros are a valid event, filled in below.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_value = libc::sigval { sival_ptr: signal::mark() };
        event.sigev_notify_thread_id = thread;
        let mut id = 0_i32;
        // SAFETY: valid pointers; the kernel refuses threads that are not ours.
        let result =
            unsafe { libc::syscall(libc::SYS_timer_create, cpu_clock(thread), &raw mut event, &raw mut id) };
        if result != 0 {
            return None;
        }
        let timer = Self { id, process: std::process::id() };
        let time = |duration: Duration| libc::timespec {
            tv_sec: duration.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(duration.subsec_nanos()),
        };
        let first = first.max(Duration::from_nanos(1));
        let setting = libc::itimerspec { it_interval: time(period), it_value: time(first) };
        // SAFETY: the timer was just made, and the setting is valid.
        let result = unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                timer.id,
                0,
                &raw const setting,
                std::ptr::null_mut::<u8>(),
            )
        };
        (result == 0).then_some(timer)
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // A forked child has no timers; another one of its own may have this number.
        if std::process::id() == self.process {
            // SAFETY: the timer is ours and deleted once.
            unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_time_of_threads() {
        // SAFETY: takes nothing.
        let this = unsafe { libc::gettid() };
        let before = cpu_time(this).unwrap();
        assert!((0..200_000).fold(0_u64, |sum, number| sum.wrapping_mul(31).wrapping_add(number)) > 0);
        assert!(cpu_time(this).unwrap() > before);
        assert_eq!(cpu_time(i32::MAX - 1), None);
    }
}
