//! `--max-memory`: how much memory a command that reads files may take.
//!
//! Importers look at it themselves while they read. What comes after, analyses and exports, is watched from a thread: when the
//! process holds more than it may, it says so and ends, before the system ends another one.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hotspan_formats::{
    TOO_MUCH_MEMORY, held_memory, memory_limit, parse_size, set_memory_limit, unfinished_files,
};
use hotspan_store::Bytes;

/// Short enough that little is taken in between, long enough to cost nothing: a look takes some microseconds.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// An importer that crosses the limit says so itself, with the name of the file: it has an eighth more time for that.
const SLACK: u64 = 8;

// A command that reads files, and how much memory it may take. (What a command says of itself in its help is its own doc comment.)
#[derive(Debug, clap::Args)]
pub(crate) struct Reading<A: clap::Args> {
    #[command(flatten)]
    pub(crate) command: A,
    /// Stop when more memory than this is needed, such as 8GB or 500MB; by default half of what the machine or container has
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
}

impl<A: clap::Args> Reading<A> {
    /// Sets the limit, and watches over it until what is returned is dropped.
    pub(crate) fn watch(&self) -> MemoryGuard {
        if let Some(bytes) = self.max_memory {
            set_memory_limit(bytes);
        }
        MemoryGuard::new(memory_limit())
    }
}

/// Ends the process when it holds more memory than it may.
pub(crate) struct MemoryGuard {
    /// Dropped, it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryGuard {
    fn new(limit: u64) -> Self {
        let (stop, stopped) = channel::<()>();
        let watch = move || {
            while stopped.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                if held_memory().is_some_and(|held| held > limit.saturating_add(limit / SLACK)) {
                    end(limit);
                }
            }
        };
        // Without the thread nothing is watched, and everything else works.
        let thread = thread::Builder::new().name("hotspan-memory".into()).spawn(watch).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[expect(
    clippy::exit,
    reason = "whoever takes the memory is in the middle of it, and cannot be asked to stop"
)]
fn end(limit: u64) -> ! {
    let limit = Bytes(i64::try_from(limit).unwrap_or(i64::MAX));
    let mut stderr = std::io::stderr().lock();
    let _ =
        writeln!(stderr, "error: this takes more than {limit}, which is as much memory as hotspan may use");
    let _ = writeln!(stderr, "hint: {TOO_MUCH_MEMORY}");
    // Output appears whole or not at all.
    let remove = |path: &PathBuf| std::fs::remove_file(path);
    unfinished_files().iter().map(remove).for_each(drop);
    std::process::exit(1)
}
