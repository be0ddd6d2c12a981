//! A recording that goes to a `.hotspan` file while it runs, so that memory does not grow and a crash leaves what there was.
//!
//! The file is opened for each write. A program may close every file it did not open (`os.closerange`, daemons do) and get
//! the same numbers again for files of its own. Whoever held one open would then write into those.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotspan_store::TraceBuilder;
use hotspan_store::file::{FileError, Writer};

/// How often rows go to the file, and how many may wait for it.
const EVERY: Duration = Duration::from_secs(1);
const MOST_ROWS: usize = 1 << 16;

/// The file of a recording. It belongs to one builder.
#[derive(Debug)]
pub(crate) struct Spool {
    writer: Writer<AppendedFile>,
    last: Instant,
}

impl Spool {
    /// Begins a file, which must not be there yet.
    pub(crate) fn create_new(path: &Path) -> Result<Self, FileError> {
        Self::begin(File::create_new(path), path)
    }

    /// Begins a file; one that is there is written anew.
    pub(crate) fn create(path: &Path) -> Result<Self, FileError> {
        Self::begin(File::create(path), path)
    }

    fn begin(created: io::Result<File>, path: &Path) -> Result<Self, FileError> {
        created?;
        // The program may change its directory.
        let file = AppendedFile { path: std::path::absolute(path)? };
        Ok(Self { writer: Writer::create(file)?, last: Instant::now() })
    }

    /// Whether it is time to write.
    pub(crate) fn is_due(&self, builder: &TraceBuilder) -> bool {
        self.last.elapsed() >= EVERY || builder.event_count() >= MOST_ROWS
    }

    /// Moves the rows of the builder to the file. A full disk ends the file where it is: the writer gives up, and says so again
    /// at the end.
    pub(crate) fn append(&mut self, builder: &mut TraceBuilder) -> Result<(), FileError> {
        self.last = Instant::now();
        self.writer.append(builder)
    }

    /// Writes the rest and marks the file as complete.
    pub(crate) fn finish(self, builder: &mut TraceBuilder) -> Result<(), FileError> {
        self.writer.finish(builder).map(drop)
    }
}

#[derive(Debug)]
struct AppendedFile {
    path: PathBuf,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_stays_open() {
        let path = std::env::temp_dir().join(format!("hotspan-spool-{}.hotspan", std::process::id()));
        let mut spool = Spool::create(&path).unwrap();
        assert!(Spool::create_new(&path).is_err());
        let mut builder = TraceBuilder::new();
        spool.append(&mut builder).unwrap();
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        assert!(!open.into_iter().any(|file| file == path));
        spool.finish(&mut builder).unwrap();
        let written = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!written.is_empty());
    }
}
