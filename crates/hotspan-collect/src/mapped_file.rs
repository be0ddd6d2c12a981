//! Files as memory: libraries are too large to be copied for the few pages that are read of them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use memmap2::{Mmap, MmapMut, MmapOptions};
use object::ReadRef;

use crate::locks::lock;

const PAGE: u64 = 4096;
/// Text of unknown length is looked for in so many bytes.
const LONGEST_TEXT: u64 = 64 << 10;

/// Maps a file that is not empty.
pub(crate) fn map(path: impl AsRef<Path>) -> Option<Mmap> {
    let (file, about) = open(path.as_ref(), None)?;
    map_range(&file, 0..about)
}

/// Opens a file that is not empty, and tells its length; with an inode, only the file that has it.
fn open(path: &Path, inode: Option<u64>) -> Option<(File, u64)> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    // Another file may have replaced the one that is loaded.
    let is_same = inode.is_none_or(|inode| inode == about.ino());
    (is_same && about.is_file() && about.len() > 0).then_some((file, about.len()))
}

fn map_range(file: &File, range: Range<u64>) -> Option<Mmap> {
    let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    // SAFETY: a private read-only mapping. Libraries are replaced, not rewritten; whoever truncates one under a running
    // program ends the program with or without us.
    unsafe { MmapOptions::new().offset(range.start).len(length).map_copy_read_only(file) }.ok()
}

/// A file of which only those pieces are mapped that somebody has asked for: inside a program, address space is the
/// program's. No file stays open.
#[derive(Debug)]
pub(crate) struct Pieces {
    path: PathBuf,
    inode: Option<u64>,
    length: u64,
    /// Where each begins. None is ever taken out.
    mapped: Mutex<Vec<(u64, Arc<Mmap>)>>,
}

impl Pieces {
    /// Looks at a file, which must have this inode if there is one.
    pub(crate) fn of(path: &Path, inode: Option<u64>) -> Option<Self> {
        let (_, length) = open(path, inode)?;
        Some(Self { path: path.to_owned(), inode, length, mapped: Mutex::default() })
    }

    /// Bytes that belong to no file, in the form of one.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut copy = MmapMut::map_anon(bytes.len()).ok()?;
        copy.copy_from_slice(bytes);
        let mapped = Mutex::new(vec![(0, Arc::new(copy.make_read_only().ok()?))]);
        Some(Self { path: PathBuf::new(), inode: None, length: bytes.len() as u64, mapped })
    }

    /// The mapping that has these bytes of the file, and where they are in it.
    pub(crate) fn piece(&self, wanted: Range<u64>) -> Option<(Arc<Mmap>, Range<usize>)> {
        let mut mapped = lock(&self.mapped);
        let within = |(start, piece): &(u64, Arc<Mmap>)| {
            let first = usize::try_from(wanted.start.checked_sub(*start)?).ok()?;
            let range =
                first..first.checked_add(usize::try_from(wanted.end.checked_sub(wanted.start)?).ok()?)?;
            piece.get(range.clone())?;
            Some((Arc::clone(piece), range))
        };
        if let Some(found) = mapped.iter().find_map(within) {
            return Some(found);
        }
        let start = wanted.start & !(PAGE - 1);
        let end = wanted.end.checked_next_multiple_of(PAGE)?.min(self.length);
        let (file, length) = open(&self.path, self.inode)?;
        if length != self.length || wanted.end > end {
            return None;
        }
        let new = (start, Arc::new(map_range(&file, start..end)?));
        let found = within(&new);
        mapped.push(new);
        found
    }
}

impl<'a> ReadRef<'a> for &'a Pieces {
    fn len(self) -> Result<u64, ()> {
        Ok(self.length)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size == 0 {
            return Ok(&[]);
        }
        let (piece, range) = self.piece(offset..offset.checked_add(size).ok_or(())?).ok_or(())?;
        let bytes = piece.get(range).ok_or(())?;
        // SAFETY: the mapping stays where it is as long as `self` lives, which keeps all of them and changes none.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) })
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(self.length).min(range.start.saturating_add(LONGEST_TEXT));
        let bytes = self.read_bytes_at(range.start, end.checked_sub(range.start).ok_or(())?)?;
        let length = bytes.iter().position(|&byte| byte == delimiter).ok_or(())?;
        bytes.get(..length).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_mapped() {
        let path = std::env::current_exe().unwrap();
        let content = std::fs::read(&path).unwrap();
        let pieces = Pieces::of(&path, None).unwrap();
        for (offset, size) in [(0, 64), (10_000, 5_000), (10_100, 100), (content.len() as u64 - 9, 9)] {
            let expected = &content[offset as usize..][..size as usize];
            assert_eq!(pieces.read_bytes_at(offset, size), Ok(expected));
        }
        assert_eq!(lock(&pieces.mapped).len(), 3, "one of them was there");
        assert!(lock(&pieces.mapped).iter().map(|(_, piece)| piece.len()).sum::<usize>() <= 5 * 4096);
        assert!(pieces.read_bytes_at(content.len() as u64 - 9, 10).is_err());
        assert!(pieces.read_bytes_at(u64::MAX, 10).is_err());
        assert!(Pieces::of(&path, Some(1)).is_none(), "another file");
    }
}
