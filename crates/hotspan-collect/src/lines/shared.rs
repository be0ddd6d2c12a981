//! What all threads look at in every event, and seldom change: protected by the GIL, or where there is none by turns.
//!
//! A free-threaded Python runs events side by side. Each reader takes the turn of its thread, which hardly any other thread
//! shares, so that readers do not wait for each other; who changes something takes all turns. Nobody calls Python with a turn,
//! so that none is held for long.

use std::cell::{Cell, UnsafeCell};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// More turns than threads of most programs.
const TURNS: usize = 64;

/// A lock on a line of the processor's cache of its own.
#[repr(align(128))]
struct Turn(AtomicBool);

static TAKEN: [Turn; TURNS] = [const { Turn(AtomicBool::new(false)) }; TURNS];

thread_local! {
    static OWN: Cell<Option<&'static Turn>> = const { Cell::new(None) };
}

/// Gives its turn back.
struct Held(&'static Turn);

impl Turn {
    /// Waits for the turn; `None` when who has it was lost in a fork.
    fn take(&'static self) -> Option<Held> {
        for _ in 0..100_000 {
            if !self.0.swap(true, Ordering::Acquire) {
                return Some(Held(self));
            }
            std::thread::yield_now();
        }
        None
    }

    fn of_this_thread() -> &'static Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        OWN.get().unwrap_or_else(|| {
            let own = &TAKEN[NEXT.fetch_add(1, Ordering::Relaxed) % TURNS];
            OWN.set(Some(own));
            own
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// A value that all threads share.
pub(crate) struct Shared<T>(UnsafeCell<T>);

// SAFETY: `read` and `write` demand the GIL, which is a lock around all uses and orders them, or take turns: of any two uses at
// once, neither is a `write`.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Looks at the value.
    ///
    /// # Safety
    /// The GIL is held, or `is_parallel` says that there is none. `act` calls no Python and does not come back here.
    #[inline]
    pub(crate) unsafe fn read<R>(&self, is_parallel: bool, act: impl FnOnce(&T) -> R) -> Option<R> {
        let _turn = if is_parallel { Some(Turn::of_this_thread().take()?) } else { None };
        // SAFETY: the GIL or the turn excludes every `write`.
        Some(act(unsafe { &*self.0.get() }))
    }

    /// Changes the value.
    ///
    /// # Safety
    /// As for [`Self::read`].
    pub(crate) unsafe fn write<R>(&self, is_parallel: bool, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        static AT_FORK: Once = Once::new();
        AT_FORK.call_once(|| {
            // SAFETY: the handler only stores to atomics of this library, which is never unloaded.
            unsafe { libc::pthread_atfork(None, None, Some(give_all_back)) };
        });
        let turns = || TAKEN.iter().map(Turn::take).collect::<Option<Vec<_>>>();
        let _turns = if is_parallel { Some(turns()?) } else { None };
        // SAFETY: the GIL or all turns exclude every other use.
        Some(act(unsafe { &mut *self.0.get() }))
    }
}

/// In a forked child nobody is left who could; the thread that forked had none.
extern "C" fn give_all_back() {
    for turn in &TAKEN {
        turn.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_a_change_that_is_under_way() {
        static PAIR: Shared<(u64, u64)> = Shared::new((0, 0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        // SAFETY: there is no GIL here, and turns are taken.
                        let pair = unsafe { PAIR.read(true, |pair| *pair) };
                        assert!(pair.is_some_and(|(first, second)| first == second));
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..2_000 {
                    // SAFETY: as above.
                    let changed = unsafe {
                        PAIR.write(true, |(first, second)| {
                            *first += 1;
                            std::thread::yield_now();
                            *second += 1;
                        })
                    };
                    assert!(changed.is_some());
                }
            });
        });
        // SAFETY: as above.
        assert_eq!(unsafe { PAIR.read(true, |pair| *pair) }, Some((2_000, 2_000)));
    }
}
