//! hotspan's own threads, which no sample shows. Without locks, so that a forked child finds none held.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::native::cpu_time;

/// A process and a thread each; 0: free.
static THREADS: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

/// A process, and how many of its threads have begun but are not on the list yet.
static STARTING: AtomicU64 = AtomicU64::new(0);

/// Processor time of those that have ended.
static ENDED: AtomicI64 = AtomicI64::new(0);

/// How long to sleep while a thread ends.
const MOMENT: Duration = Duration::from_micros(20);

fn word(thread: i32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(thread.unsigned_abs())
}

/// Takes the thread off the list when it ends.
struct OwnThread(Option<usize>);

/// Puts the calling thread on the list. When the list is full, the thread is sampled like any other.
fn enter() -> OwnThread {
    let this = word(number());
    let process = u64::from(std::process::id());
    let index = THREADS.iter().position(|slot| {
        let word = slot.load(Ordering::Acquire);
        // What a forked child inherited is free.
        (word >> 32 != process || word == 0)
            && slot.compare_exchange(word, this, Ordering::AcqRel, Ordering::Acquire).is_ok()
    });
    OwnThread(index)
}

/// Counts the threads that begin. What a forked child inherited counts nothing.
fn count_starting(change: i64) {
    let process = u64::from(std::process::id()) << 32;
    let counted = |word: u64| {
        let before = if word & !u64::from(u32::MAX) == process { word as u32 } else { 0 };
        let after = i64::from(before).saturating_add(change).max(0);
        Some(process | after.unsigned_abs())
    };
    let _ = STARTING.fetch_update(Ordering::AcqRel, Ordering::Acquire, counted);
}

/// Whether a thread that is not on the list may be one of hotspan's all the same.
pub(crate) fn is_one_starting() -> bool {
    let word = STARTING.load(Ordering::Acquire);
    word >> 32 == u64::from(std::process::id()) && word as u32 > 0
}

/// Starts such a thread. It gets none of the program's signals: a thread inherits those that its maker blocks.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let thread = Builder::new().name(name.to_owned());
    // SAFETY: both sets are filled in before they are used, and the one that was in force is put back.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        count_starting(1);
        let started = thread.spawn(|| {
            let _own = enter();
            count_starting(-1);
            work()
        });
        if started.is_err() {
            count_starting(-1);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}

/// The number of the calling thread.
pub(crate) fn number() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// Processor time of all of them, also of those that have ended.
pub(crate) fn processor_time() -> i64 {
    let process = u64::from(std::process::id());
    let words = THREADS.iter().map(|slot| slot.load(Ordering::Acquire));
    let alive = words.filter(|word| word >> 32 == process).filter_map(|word| cpu_time(word as u32 as i32));
    ENDED.load(Ordering::Acquire) + alive.sum::<i64>()
}

/// Waits until a thread has done its work; `false` when that takes too long.
pub(crate) fn wait_until_finished<T>(thread: &JoinHandle<T>, patience: Duration) -> bool {
    let begun = Instant::now();
    while !thread.is_finished() {
        if begun.elapsed() > patience {
            return false;
        }
        std::thread::sleep(MOMENT);
    }
    true
}

/// Waits until the system does not count a thread any more that was joined: that is a moment later.
pub(crate) fn wait_until_gone(thread: i32) {
    for _ in 0..1000 {
        // SAFETY: sends nothing; asks whether there is such a thread.
        if unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) } != 0 {
            return;
        }
        std::thread::sleep(MOMENT);
    }
}

/// Whether a thread of this process is one of hotspan's.
pub(crate) fn contains(thread: i32) -> bool {
    let word = word(thread);
    THREADS.iter().any(|slot| slot.load(Ordering::Acquire) == word)
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(slot) = self.0.and_then(|index| THREADS.get(index)) {
            ENDED.fetch_add(cpu_time(number()).unwrap_or(0), Ordering::AcqRel);
            slot.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_while_it_is_there() {
        // SAFETY: takes nothing and cannot fail.
        let this = unsafe { libc::gettid() };
        assert!(!contains(this));
        let own = enter();
        assert!(contains(this));
        drop(own);
        assert!(!contains(this));
    }
}
