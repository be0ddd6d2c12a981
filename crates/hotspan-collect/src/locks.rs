//! Locks as the collectors take them: neither a panic nor a fork elsewhere takes one away.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Waits for a lock, also after a panic of whoever held it: the data is consistent after every statement that changes it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a lock that is held for moments only. `None`: another thread held it when this process was forked off, so that
/// nobody will release it, and what is behind it belongs to the parent.
pub(crate) fn lock_unless_forked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..100_000 {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
