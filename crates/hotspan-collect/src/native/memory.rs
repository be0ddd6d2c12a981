//! Reading the memory of this process where a pointer may be stale: a bad address is an error, never a crash.

use crate::cpython::{Address, Memory};

/// Copies up to `length` bytes from `address` to `into`; returns how many were there. Safe in a signal handler: one
/// system call, which may change `errno`.
///
/// # Safety
/// `into` has room for `length` bytes.
pub(crate) unsafe fn copy_from(address: usize, into: *mut u8, length: usize) -> usize {
    let local = libc::iovec { iov_base: into.cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: the kernel checks both sides; `into` has room as the caller promises.
    let read = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            libc::getpid(),
            &raw const local,
            1_usize,
            &raw const remote,
            1_usize,
            0_usize,
        )
    };
    usize::try_from(read).unwrap_or(0)
}

/// `length` bytes at an address, or nothing.
pub(crate) fn bytes(address: usize, length: usize) -> Option<Vec<u8>> {
    let mut copied = vec![0; length];
    // SAFETY: the vector has `length` bytes.
    let read = unsafe { copy_from(address, copied.as_mut_ptr(), length) };
    (read == length).then_some(copied)
}

/// Memory could not be read, or does not hold what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// The memory of this process as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnMemory;

impl Memory for OwnMemory {
    type Error = Unreadable;

    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), Unreadable> {
        // SAFETY: `into` has as many bytes.
        let read = unsafe { copy_from(address.0 as usize, into.as_mut_ptr(), into.len()) };
        if read == into.len() { Ok(()) } else { Err(Unreadable) }
    }

    fn malformed(&self, _what: &'static str) -> Unreadable {
        Unreadable
    }
}

/// Whether this process may not have as much address space as it likes (`ulimit -v`).
#[must_use]
pub fn address_space_is_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the system fills in the local.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    limit.rlim_cur != libc::RLIM_INFINITY
}

/// Whether the system lets a process read itself this way; some container profiles do not.
pub(crate) fn is_readable() -> bool {
    let expected = 0x5ca1_ab1e_u64;
    OwnMemory.word(Address(std::ptr::from_ref(&expected) as u64)) == Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_refuses_what_is_not() {
        let text = *b"some bytes";
        assert!(is_readable());
        assert_eq!(bytes(text.as_ptr() as usize, 4).as_deref(), Some(&b"some"[..]));
        assert_eq!(OwnMemory.word(Address(8)), Err(Unreadable));
        assert_eq!(bytes(usize::MAX - 100, 50), None);
    }
}
