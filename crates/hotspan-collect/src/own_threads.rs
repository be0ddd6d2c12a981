//! hotspan's own threads, which no sample shows. Without locks, so that a forked child finds none held.

use std::sync::atomic::{AtomicU64, Ordering};

/// A process and a thread each; 0: free.
static THREADS: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

fn word(thread: i32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(thread.unsigned_abs())
}

/// Takes the thread off the list when it ends.
#[derive(Debug)]
pub(crate) struct OwnThread(Option<usize>);

/// Puts the calling thread on the list. When the list is full, the thread is sampled like any other.
pub(crate) fn enter() -> OwnThread {
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
