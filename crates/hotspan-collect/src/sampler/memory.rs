//! The memory of another process: many pieces in one system call, never stopping it.

use std::io;

use super::error::{SamplerError, not_permitted};
use crate::cpython::{Address, Memory};
use crate::process_tree::ProcessNumber;

/// One piece to be read: where it is, and where its bytes go in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) address: Address,
    pub(super) length: usize,
    /// Where in the buffer it begins.
    pub(super) at: usize,
    /// Whether its bytes came.
    pub(super) read: bool,
}

/// Reads the memory of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessMemory {
    pub(super) process: ProcessNumber,
}

/// The kernel takes no more pieces at once.
const MOST_PIECES: usize = 1024;

impl ProcessMemory {
    /// Reads all pieces into `buffer`, as many as possible in one call. A piece that cannot be read is marked, and those
    /// after it are read in another call.
    pub(super) fn read_pieces(&self, pieces: &mut [Piece], buffer: &mut [u8]) -> Result<(), SamplerError> {
        let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST_PIECES];
        let mut start = 0;
        while start < pieces.len() {
            let group = &mut pieces[start..];
            let count = group.len().min(MOST_PIECES);
            let group = &mut group[..count];
            let first = group[0].at;
            let mut length = 0;
            for (piece, slot) in group.iter().zip(&mut remote) {
                *slot = libc::iovec { iov_base: piece.address.0 as *mut libc::c_void, iov_len: piece.length };
                length += piece.length;
            }
            let Some(into) = buffer.get_mut(first..first + length) else {
                return Err(self.malformed("the buffer"));
            };
            let mut got = match self.read_vectors(&remote[..count], into) {
                Ok(got) => got,
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => 0,
                Err(error) => return Err(self.failed(error)),
            };
            let mut done = 0;
            for piece in group.iter_mut() {
                if piece.length > got {
                    break;
                }
                piece.read = true;
                got -= piece.length;
                done += 1;
            }
            // Past the piece that failed, or past the whole group.
            start += if done == count { count } else { done + 1 };
        }
        Ok(())
    }

    fn read_vectors(&self, remote: &[libc::iovec], into: &mut [u8]) -> io::Result<usize> {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let (process, count) = (self.process.0 as libc::pid_t, remote.len() as libc::c_ulong);
        // SAFETY: `local` describes `into`, which is ours alone and bounds what is written; the kernel checks the remote
        // addresses.
        let got = unsafe { libc::process_vm_readv(process, &raw const local, 1, remote.as_ptr(), count, 0) };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    fn failed(&self, error: io::Error) -> SamplerError {
        match error.raw_os_error() {
            Some(libc::ESRCH) => SamplerError::NoProcess(self.process),
            Some(libc::EPERM | libc::EACCES) => not_permitted(self.process),
            Some(libc::EFAULT | libc::EINVAL | libc::ENOMEM) => self.malformed("an address"),
            _ => SamplerError::System { process: self.process, source: error },
        }
    }
}

impl Memory for ProcessMemory {
    type Error = SamplerError;

    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), SamplerError> {
        if into.is_empty() {
            return Ok(());
        }
        let remote = libc::iovec { iov_base: address.0 as *mut libc::c_void, iov_len: into.len() };
        match self.read_vectors(&[remote], into) {
            Ok(length) if length == into.len() => Ok(()),
            Ok(_) => Err(self.malformed("a part of it")),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn malformed(&self, what: &'static str) -> SamplerError {
        SamplerError::Unreadable { process: self.process, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_and_bad_ones_marked() {
        let memory = ProcessMemory { process: ProcessNumber(std::process::id()) };
        let (first, second) = ([1_u8; 8], [2_u8; 8]);
        let address = |bytes: &[u8; 8]| Address(bytes.as_ptr() as u64);
        let piece = |address, at| Piece { address, length: 8, at, read: false };
        let mut pieces = [piece(address(&first), 0), piece(Address(16), 8), piece(address(&second), 16)];
        let mut buffer = [0; 24];
        memory.read_pieces(&mut pieces, &mut buffer).unwrap();
        assert_eq!(pieces.map(|piece| piece.read), [true, false, true]);
        assert_eq!((&buffer[..8], &buffer[16..]), (&first[..], &second[..]));
        assert!(memory.word(Address(16)).is_err());
    }
}
