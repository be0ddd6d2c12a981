//! hotspan's own threads, which no sample shows. Without locks, so that a forked child finds none held.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

/// A process and a thread each; 0: free.
static THREADS: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

fn word(thread: i32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(thread.unsigned_abs())
}

/// Takes the thread off the list when it ends.
struct OwnThread(Option<usize>);

/// Puts the calling thread on the list. When the list is full, the thread is sampled like any other.
fn enter() -> OwnThread {
    // SAFETY: takes nothing and cannot fail.
    let this = word(unsafe { libc::gettid() });
    let process = u64::from(std::process::id());
    let index = THREADS.iter().position(|slot| {
        let word = slot.load(Ordering::Acquire);
        // What a forked child inherited is free.
        (word >> 32 != process || word == 0)
            && slot.compare_exchange(word, this, Ordering::AcqRel, Ordering::Acquire).is_ok()
    });
    OwnThread(index)
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
        let started = thread.spawn(|| {
            let _own = enter();
            work()
        });
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
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
