//! A file that is held open inside somebody else's program.
//!
//! Programs close files they know nothing of (`os.closerange`) and get the same numbers again for their own. Reading from
//! such a file is harmless, closing it is not: it is closed only while it is still ours.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// An open file and what it is.
#[derive(Debug)]
pub(crate) struct OwnFile {
    file: ManuallyDrop<File>,
    identity: Option<(u64, u64)>,
}

impl OwnFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let identity = identity(&file);
        Ok(Self { file: ManuallyDrop::new(file), identity })
    }

    /// Reads from the beginning.
    pub(crate) fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(bytes, 0)
    }
}

fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|about| (about.dev(), about.ino()))
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.file) == self.identity {
            // SAFETY: dropped once, here, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_number_that_another_file_has_now_is_not_closed() {
        let own = OwnFile::open(Path::new("/proc/self/statm")).unwrap();
        let other = File::open("/proc/self/status").unwrap();
        let number = own.file.as_raw_fd();
        // SAFETY: both are open files of this test.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
        drop(own);
        // SAFETY: asks about a number, and closes what was opened above.
        unsafe {
            assert!(libc::fcntl(number, libc::F_GETFD) >= 0, "still open");
            libc::close(number);
        }
    }

    #[test]
    fn an_own_file_is_closed() {
        let own = OwnFile::open(Path::new("/proc/self/statm")).unwrap();
        let number = own.file.as_raw_fd();
        let link = format!("/proc/self/fd/{number}");
        assert!(std::fs::read_link(&link).unwrap().ends_with("statm"));
        drop(own);
        assert!(!std::fs::read_link(&link).is_ok_and(|path| path.ends_with("statm")));
    }
}
