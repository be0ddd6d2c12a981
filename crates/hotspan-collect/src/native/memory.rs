//! Reading memory where a pointer may be stale: a bad address is an error, never a crash.

use std::path::PathBuf;

use crate::cpython::{Address, Memory};
use crate::memory_map::{MappedRange, memory_map, own_memory_map};
use crate::process_tree::ProcessNumber;

/// Whose memory and libraries are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// This process, and after a fork the child that asks.
    Own,
    /// Another one.
    Other(ProcessNumber),
}

impl Subject {
    /// Copies what is at an address; returns how many bytes were there.
    pub(crate) fn copy(self, address: u64, into: &mut [u8]) -> usize {
        // SAFETY: asks for a number; `into` has as many bytes.
        unsafe {
            let process = match self {
                Self::Own => libc::getpid(),
                Self::Other(process) => process.0.cast_signed(),
            };
            copy_of(process, address as usize, into.as_mut_ptr(), into.len())
        }
    }

    /// `length` bytes at an address, or nothing.
    pub(crate) fn bytes(self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut copied = vec![0; length];
        (self.copy(address, &mut copied) == length).then_some(copied)
    }

    /// What is mapped where.
    pub(crate) fn memory_map(self) -> Vec<MappedRange> {
        match self {
            Self::Own => own_memory_map(),
            Self::Other(process) => memory_map(&process),
        }
    }

    /// Where a file that is mapped there can be opened from here: the other process may be in a container.
    pub(crate) fn file(self, path: &str) -> PathBuf {
        match self {
            Self::Own => PathBuf::from(path),
            Self::Other(process) => PathBuf::from(format!("/proc/{process}/root{path}")),
        }
    }
}

/// Copies up to `length` bytes from `address` to `into`; returns how many were there. Safe in a signal handler: one
/// system call, which may change `errno`.
///
/// # Safety
/// `into` has room for `length` bytes.
pub(crate) unsafe fn copy_from(address: usize, into: *mut u8, length: usize) -> usize {
    // SAFETY: asks for a number; the rest is the caller's promise.
    unsafe { copy_of(libc::getpid(), address, into, length) }
}

/// The same of any process.
///
/// # Safety
/// `into` has room for `length` bytes.
unsafe fn copy_of(process: libc::pid_t, address: usize, into: *mut u8, length: usize) -> usize {
    let local = libc::iovec { iov_base: into.cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: the kernel checks both sides; `into` has room as the caller promises.
    let read = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            process,
            &raw const local,
            1_usize,
            &raw const remote,
            1_usize,
            0_usize,
        )
    };
    usize::try_from(read).unwrap_or(0)
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
        if Subject::Own.copy(address.0, into) == into.len() { Ok(()) } else { Err(Unreadable) }
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
        assert_eq!(Subject::Own.bytes(text.as_ptr() as u64, 4).as_deref(), Some(&b"some"[..]));
        assert_eq!(OwnMemory.word(Address(8)), Err(Unreadable));
        assert_eq!(Subject::Own.bytes(u64::MAX - 100, 50), None);
        let from_outside = Subject::Other(ProcessNumber::own());
        assert_eq!(from_outside.bytes(text.as_ptr() as u64, 4).as_deref(), Some(&b"some"[..]));
        assert!(from_outside.memory_map().len() > 3 && from_outside.file("/proc/self").exists());
    }
}
