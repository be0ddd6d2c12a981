//! Files as memory: libraries are too large to be copied for the few pages that are read of them.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use memmap2::{Mmap, MmapMut, MmapOptions};

/// Maps a file that is not empty; with an inode, only the file that has it.
pub(crate) fn map(path: impl AsRef<Path>, inode: Option<u64>) -> Option<Mmap> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    // Another file may have replaced the one that is loaded.
    if inode.is_some_and(|inode| inode != about.ino()) || about.len() == 0 || !about.is_file() {
        return None;
    }
    // SAFETY: a private read-only mapping. Libraries are replaced, not rewritten; whoever truncates one under a running
    // program ends the program with or without us.
    unsafe { MmapOptions::new().map_copy_read_only(&file) }.ok()
}

/// Bytes that belong to no file, in the form of one.
pub(crate) fn copied(bytes: &[u8]) -> Option<Mmap> {
    let mut copy = MmapMut::map_anon(bytes.len()).ok()?;
    copy.copy_from_slice(bytes);
    copy.make_read_only().ok()
}
