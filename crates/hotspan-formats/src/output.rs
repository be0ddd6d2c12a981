//! Output files: compressed by suffix, written beside their final name and renamed when whole.
//!
//! All files that hotspan makes for its user are made here. The folder may be open to everybody, as `/tmp` is: an unfinished file
//! has a name that nobody can guess and is never one that was there before, so a link that somebody else put there is not followed.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::ExportError;

const BUFFER: usize = 256 << 10;
/// Names that are taken are met by chance only.
const ATTEMPTS: usize = 16;
/// A place with less room than this is full.
const LEAST_ROOM: usize = 16 << 10;

/// Writes a file that is in memory, compressed when the name ends in `.gz` or `.zst`. It appears whole or not at all.
///
/// # Errors
/// When the path cannot be written; a file that was there before is then untouched.
pub fn write_file(path: &Path, contents: &[u8]) -> Result<(), ExportError> {
    let write = || {
        let mut output = Output::create(path)?;
        output.write_all(contents)?;
        output.commit()
    };
    write().map_err(|error| ExportError { path: path.to_owned(), error })
}

/// Whether a file could be written there now: for those who will have it only after hours.
///
/// # Errors
/// When the path is a folder, nothing can be made beside it, or there is no room.
pub fn check_place(path: &Path) -> Result<(), ExportError> {
    let check = || {
        if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        if is_written_in_place(path) {
            return Ok(());
        }
        let (mut file, unfinished) = create_beside(path)?;
        let written = file.write_all(&vec![0; LEAST_ROOM]).and_then(|()| file.flush());
        let _ = fs::remove_file(unfinished);
        written
    };
    check().map_err(|error| ExportError { path: path.to_owned(), error })
}

/// A new file in the folder of another, with the permissions that the umask gives.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file"));
    }
    for _ in 0..ATTEMPTS {
        // The keys of hash tables come from the system's random numbers.
        let random = RandomState::new().hash_one(path);
        let unfinished = path.with_file_name(format!(".hotspan-{random:016x}.tmp"));
        // O_EXCL: a file or link of that name is an error.
        match File::create_new(&unfinished) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((created?, unfinished)),
        }
    }
    Err(io::Error::other("all names for an unfinished file are taken"))
}

/// Whether what has the name is no file, such as a pipe: that is written to, not replaced.
fn is_written_in_place(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) && !is_link_of_another(path)
}

/// Whether another user, who is not root, made the link: it may lead to a device.
#[cfg(unix)]
fn is_link_of_another(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    fs::symlink_metadata(path)
        .is_ok_and(|link| link.is_symlink() && link.uid() != 0 && own.is_ok_and(|own| own != link.uid()))
}

#[cfg(not(unix))]
fn is_link_of_another(_: &Path) -> bool {
    false
}

/// Files that are being written, for whoever ends the process in the middle of it.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The temporary files that are being written: what ends the process removes them.
#[must_use]
pub fn unfinished_files() -> Vec<PathBuf> {
    unfinished().clone()
}

/// A file that is being written.
pub(crate) struct Output {
    encoder: Option<Encoder>,
    /// None where the file is written in place.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

enum Encoder {
    Plain(BufWriter<File>),
    Gzip(BufWriter<flate2::write::GzEncoder<File>>),
    Zstd(BufWriter<zstd::Encoder<'static, File>>),
}

impl Output {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let (file, temporary) = if is_written_in_place(path) {
            (File::create(path)?, None)
        } else {
            let (file, temporary) = create_beside(path)?;
            (file, Some(temporary))
        };
        unfinished().extend(temporary.clone());
        let encoder = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => {
                let gzip = flate2::write::GzEncoder::new(file, flate2::Compression::new(5));
                Encoder::Gzip(BufWriter::with_capacity(BUFFER, gzip))
            }
            Some("zst") => Encoder::Zstd(BufWriter::with_capacity(BUFFER, zstd::Encoder::new(file, 3)?)),
            _ => Encoder::Plain(BufWriter::with_capacity(BUFFER, file)),
        };
        Ok(Self { encoder: Some(encoder), temporary, path: path.to_owned() })
    }

    /// Finishes the file and gives it its name.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        match self.encoder.take() {
            Some(Encoder::Plain(mut writer)) => writer.flush()?,
            Some(Encoder::Gzip(writer)) => drop(writer.into_inner().map_err(io::Error::from)?.finish()?),
            Some(Encoder::Zstd(writer)) => drop(writer.into_inner().map_err(io::Error::from)?.finish()?),
            None => {}
        }
        match &self.temporary {
            Some(temporary) => fs::rename(temporary, &self.path),
            None => Ok(()),
        }
    }

    fn writer(&mut self) -> io::Result<&mut dyn Write> {
        match &mut self.encoder {
            Some(Encoder::Plain(writer)) => Ok(writer),
            Some(Encoder::Gzip(writer)) => Ok(writer),
            Some(Encoder::Zstd(writer)) => Ok(writer),
            None => Err(io::Error::other("the file is already finished")),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
            unfinished().retain(|path| path != temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hotspan-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn unfinished_files_are_new_and_unforeseeable() {
        let folder = scratch("names");
        let (_, one) = create_beside(&folder.join("x.json")).expect("a file");
        let (_, other) = create_beside(&folder.join("x.json")).expect("a file");
        assert_ne!(one, other);
        assert_eq!(one.parent(), Some(folder.as_path()));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn files_appear_whole_and_places_are_checked() {
        let folder = scratch("places");
        let path = folder.join("x.html");
        check_place(&path).expect("room");
        write_file(&path, b"page").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"page");
        // Nothing is left of either.
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        let is_folder = check_place(&folder).expect_err("a folder").error.kind();
        assert_eq!(is_folder, io::ErrorKind::IsADirectory);
        assert!(check_place(&folder.join("missing/x.html")).is_err());
        fs::remove_dir_all(folder).expect("removed");
    }
}
