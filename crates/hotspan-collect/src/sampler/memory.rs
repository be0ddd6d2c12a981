//! The memory of another process: many pieces in one system call, never stopping it.

use std::io;

use super::error::{SamplerError, not_permitted};
use crate::process_tree::ProcessNumber;

/// A place in the memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// A place some bytes further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Whether it points nowhere.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

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
pub(super) struct Memory {
    pub(super) process: ProcessNumber,
}

/// The kernel takes no more pieces at once.
const MOST_PIECES: usize = 1024;
/// No structure or string that we read is longer; what claims to be is not what we think it is.
pub(super) const LONGEST: usize = 1 << 20;

impl Memory {
    /// Fills `into` from one place.
    pub(super) fn read(&self, address: Address, into: &mut [u8]) -> Result<(), SamplerError> {
        if into.is_empty() {
            return Ok(());
        }
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address.0 as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: `local` describes `into`, which is ours alone; the kernel checks the remote address.
        let length = unsafe {
            libc::process_vm_readv(
                self.process.0 as libc::pid_t,
                &raw const local,
                1,
                &raw const remote,
                1,
                0,
            )
        };
        match usize::try_from(length) {
            Ok(length) if length == into.len() => Ok(()),
            Ok(_) => Err(self.unreadable("a part of it")),
            Err(_) => Err(self.failed(io::Error::last_os_error())),
        }
    }

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
                return Err(self.unreadable("the buffer"));
            };
            let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: length };
            // SAFETY: `local` describes `into`, which is ours alone and as long as all pieces together; `remote` has
            // `count` entries that were just written; the kernel checks the remote addresses.
            let got = unsafe {
                libc::process_vm_readv(
                    self.process.0 as libc::pid_t,
                    &raw const local,
                    1,
                    remote.as_ptr(),
                    count as libc::c_ulong,
                    0,
                )
            };
            let mut got = match usize::try_from(got) {
                Ok(got) => got,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.raw_os_error() != Some(libc::EFAULT) {
                        return Err(self.failed(error));
                    }
                    0
                }
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

    /// Fills a string of bytes.
    pub(super) fn bytes(&self, address: Address, length: usize) -> Result<Vec<u8>, SamplerError> {
        if length > LONGEST {
            return Err(self.unreadable("a length"));
        }
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// A number of eight bytes.
    pub(super) fn word(&self, address: Address) -> Result<u64, SamplerError> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A pointer.
    pub(super) fn pointer(&self, address: Address) -> Result<Address, SamplerError> {
        self.word(address).map(Address)
    }

    /// A text that ends with a zero, cut where it is too long.
    pub(super) fn text(&self, address: Address) -> Result<String, SamplerError> {
        const LONGEST_NAME: u64 = 256;
        // Not beyond the page, which might be the last.
        let to_page = 4096 - address.0 % 4096;
        let mut bytes = self.bytes(address, to_page.min(LONGEST_NAME) as usize)?;
        if !bytes.contains(&0) && to_page < LONGEST_NAME {
            bytes.extend(self.bytes(address.plus(to_page), (LONGEST_NAME - to_page) as usize)?);
        }
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    pub(super) fn unreadable(&self, what: &'static str) -> SamplerError {
        SamplerError::Unreadable { process: self.process, what }
    }

    fn failed(&self, error: io::Error) -> SamplerError {
        match error.raw_os_error() {
            Some(libc::ESRCH) => SamplerError::NoProcess(self.process),
            Some(libc::EPERM | libc::EACCES) => not_permitted(self.process),
            Some(libc::EFAULT | libc::EINVAL | libc::ENOMEM) => self.unreadable("an address"),
            _ => SamplerError::System { process: self.process, source: error },
        }
    }
}

/// A number of eight bytes in a structure that was read; 0 beyond its end.
pub(super) fn word_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// A number of four bytes in a structure that was read; 0 beyond its end.
pub(super) fn half_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_and_bad_ones_marked() {
        let memory = Memory { process: ProcessNumber(std::process::id()) };
        let (first, second) = ([1_u8; 8], [2_u8; 8]);
        let place = |bytes: &[u8; 8]| Address(bytes.as_ptr() as u64);
        let piece = |address, at| Piece { address, length: 8, at, read: false };
        let mut pieces = [piece(place(&first), 0), piece(Address(16), 8), piece(place(&second), 16)];
        let mut buffer = [0; 24];
        memory.read_pieces(&mut pieces, &mut buffer).unwrap();
        assert_eq!(pieces.map(|piece| piece.read), [true, false, true]);
        assert_eq!((&buffer[..8], &buffer[16..]), (&first[..], &second[..]));
        assert!(memory.word(Address(16)).is_err());
    }
}
