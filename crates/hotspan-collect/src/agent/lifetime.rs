//! When the recording of a process began and ended, so that reports can tell the program's own start and exit from ours.

use serde_json::json;

use crate::clock::{self, UnixNanos};

/// The metadata key of it.
pub(super) const KEY: &str = "hotspan.process";

/// The moments of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    /// When the interpreter came to us; before that it started.
    began: UnixNanos,
    /// When the program got its turn.
    ready: Option<UnixNanos>,
    /// When the program was done; after that we write the rest.
    finished: Option<UnixNanos>,
    /// How long the main thread was ready to run until then, and waited for a processor.
    queued_ns: Option<u64>,
    /// Whether all in between was to be recorded.
    is_whole: bool,
}

impl Lifetime {
    pub(super) fn new(is_whole: bool) -> Self {
        Self { began: clock::unix_now(), ready: None, finished: None, queued_ns: None, is_whole }
    }

    /// The program gets its turn; it came to us at `began`.
    pub(super) fn is_ready(&mut self, began: UnixNanos) {
        (self.began, self.ready) = (began, Some(clock::unix_now()));
    }

    pub(super) fn finish(&mut self) {
        self.finished = Some(clock::unix_now());
        self.queued_ns = queued_ns();
    }

    /// Not all is recorded from here on.
    pub(super) fn is_partial(&mut self) {
        self.is_whole = false;
    }

    pub(super) fn json(&self) -> String {
        let moment = |moment: Option<UnixNanos>| moment.map(|moment| moment.0);
        json!({
            "process": std::process::id(),
            "began_unix_ns": self.began.0,
            "ready_unix_ns": moment(self.ready),
            "finished_unix_ns": moment(self.finished),
            "queued_ns": self.queued_ns,
            "is_whole": self.is_whole,
        })
        .to_string()
    }
}

/// Linux counts it for each thread: the file of a process is that of its main thread.
fn queued_ns() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    counts.split_ascii_whitespace().nth(1)?.parse().ok()
}
