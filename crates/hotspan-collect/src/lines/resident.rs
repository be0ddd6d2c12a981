//! The resident memory of this process, as cheaply as the kernel tells it: one `pread` of a file that stays open.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

const CLOSED: i32 = -1;
static STATM: AtomicI32 = AtomicI32::new(CLOSED);
/// What was read last; 0: nothing yet.
static LAST: AtomicI64 = AtomicI64::new(0);

/// Bytes of memory this process has in use (RSS); `None` where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<i64> {
    let mut file = STATM.load(Ordering::Relaxed);
    if file == CLOSED {
        file = open()?;
    }
    let mut text = [0_u8; 128];
    // SAFETY: `text` has room for what is read; a file that was closed by others gives an error.
    let length = unsafe { libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0) };
    let text = text.get(..usize::try_from(length).ok()?)?;
    // Programs that close all files, as daemons do, close ours too; the next reading opens it again.
    let Some(pages) = second_number(text) else {
        STATM.store(CLOSED, Ordering::Relaxed);
        return None;
    };
    let bytes = pages.saturating_mul(page_size());
    LAST.store(bytes, Ordering::Relaxed);
    Some(bytes)
}

/// What [`resident_bytes`] said last, read now when it has not been asked yet.
pub(crate) fn last_resident_bytes() -> Option<i64> {
    Some(LAST.load(Ordering::Relaxed)).filter(|&bytes| bytes > 0).or_else(resident_bytes)
}

fn second_number(text: &[u8]) -> Option<i64> {
    let field = text.split(|&byte| byte == b' ').nth(1)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Bytes of a page of memory.
pub(crate) fn page_size() -> i64 {
    static SIZE: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    // SAFETY: asking for a constant of the system has no precondition.
    *SIZE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1))
}

fn open() -> Option<i32> {
    static FORK: Once = Once::new();
    // The open file is that of the process which opened it: a child must open its own.
    FORK.call_once(|| {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
    // SAFETY: the path ends in a zero byte.
    let file = unsafe { libc::open(c"/proc/self/statm".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    STATM.store(file, Ordering::Relaxed);
    Some(file)
}

extern "C" fn forget() {
    STATM.store(CLOSED, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_with_memory_that_is_used() {
        let before = resident_bytes().unwrap();
        let mut memory = vec![1_u8; 32 << 20];
        memory[5] = 2;
        let after = resident_bytes().unwrap();
        assert!(after - before > 30 << 20, "{before} {after} {}", memory[5]);
    }

    #[test]
    fn reads_the_second_field() {
        assert_eq!(second_number(b"5017 1234 800 1 0 600 0\n"), Some(1234));
        assert_eq!(second_number(b""), None);
    }
}
