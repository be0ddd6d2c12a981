//! The file of the agent, opened for each write.
//!
//! A program may close every file it did not open (`os.closerange`, daemons do) and get the same numbers again for files of
//! its own. Whoever held one open would then write into those.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct AppendedFile {
    path: PathBuf,
}

impl AppendedFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::options().write(true).create_new(true).open(path)?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Write for AppendedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        File::options().append(true).open(&self.path)?.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
