//! The agent: a thread inside the recorded program that takes what the collectors have and appends it to a file.
//!
//! What was appended survives the death of the program. The agent never holds the program up: when the disk is full or the
//! folder is gone it stops writing, says so once, and the program goes on.

mod memory;
mod operators;
mod samples;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hotspan_store::TraceBuilder;
use hotspan_store::file::{FileError, Writer};

use crate::clock;

pub use operators::Operators;
pub use samples::Samples;

/// How often the agent looks.
const INTERVAL: Duration = Duration::from_millis(200);
/// How many rounds of looking make one of writing: a chunk costs a few kilobytes beyond its rows.
const ROUNDS: u32 = 5;

/// Something that records while the program runs. Times are Unix nanoseconds.
pub trait Source: Send {
    /// Adds what is new.
    fn drain(&mut self, builder: &mut TraceBuilder);

    /// Ends, and adds the rest.
    fn finish(self: Box<Self>, builder: &mut TraceBuilder);

    /// Time of the program's own threads that recording took so far, as far as the source can tell.
    fn cost(&self) -> Duration {
        Duration::ZERO
    }
}

/// The running agent of this process.
#[derive(Debug)]
pub struct Agent {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), FileError>>>,
    path: PathBuf,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Processor time of the agent's own thread, in nanoseconds.
    own_cost: AtomicU64,
}

#[derive(Default)]
struct State {
    sources: Vec<Box<dyn Source>>,
    metadata: Vec<(String, String)>,
    ending: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("own_cost", &self.own_cost).finish_non_exhaustive()
    }
}

impl Agent {
    /// Begins to record this process into a new file of the folder.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let process = std::process::id();
        // A process keeps its number over `exec`, and numbers are used again: the moment tells files apart.
        let path = folder.join(format!("{process}-{}.hotspan", clock::unix_now().0));
        let file = File::options().write(true).create_new(true).open(&path)?;
        let shared = Arc::new(Shared::default());
        let worker = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("hotspan".to_owned()).spawn(move || {
            block_signals();
            worker.record(file)
        })?;
        let agent = Self { shared, thread: Some(thread), path };
        agent.add(Box::new(memory::Resident::new()));
        Ok(agent)
    }

    /// The file that is being written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a source.
    pub fn add(&self, source: Box<dyn Source>) {
        self.shared.lock().sources.push(source);
    }

    /// Says something about the recording.
    pub fn set_metadata(&self, key: &str, json: &str) {
        self.shared.lock().metadata.push((key.to_owned(), json.to_owned()));
    }

    /// Ends all sources and the file.
    ///
    /// # Errors
    /// When not all could be written. The file holds what was written before.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.shared.lock().ending = true;
        self.shared.wake.notify_all();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // The thread is gone without a word: a forked child, where it never was, or a panic in a source.
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Forgets the agent in a forked child, which has no such thread and must not touch the parent's file.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, file: File) -> Result<(), FileError> {
        let mut builder = TraceBuilder::new();
        builder.clock.base_unix = Some(0);
        "hotspan run".clone_into(&mut builder.source.format);
        let mut writer = Writer::create(file)?;
        let mut round = 0_u32;
        loop {
            let mut state = self.lock();
            if round > 0 && !state.ending {
                let waited = self.wake.wait_timeout(state, INTERVAL).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
            }
            for (key, json) in state.metadata.drain(..) {
                builder.metadata.set(&key, &json);
            }
            let ending = state.ending;
            if ending {
                // Sources may wait for Python's lock while they end: nobody may wait for ours meanwhile.
                let sources = std::mem::take(&mut state.sources);
                drop(state);
                let in_program = sources.iter().map(|source| source.cost()).sum();
                sources.into_iter().for_each(|source| source.finish(&mut builder));
                self.say_cost(&mut builder, in_program);
                return writer.finish(&mut builder).map(drop);
            }
            let mut sources = std::mem::take(&mut state.sources);
            drop(state);
            sources.iter_mut().for_each(|source| source.drain(&mut builder));
            let in_program = sources.iter().map(|source| source.cost()).sum();
            // Those that were added meanwhile come after.
            let mut state = self.lock();
            sources.append(&mut state.sources);
            state.sources = sources;
            drop(state);
            // At once for the first time, so that a program that dies young has left its name.
            if round % ROUNDS == 0 {
                self.say_cost(&mut builder, in_program);
                writer.append(&mut builder)?;
            }
            round += 1;
        }
    }

    fn say_cost(&self, builder: &mut TraceBuilder, in_program: Duration) {
        let own = clock::thread_cpu_time();
        self.own_cost.store(u64::try_from(own.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let json = serde_json::json!({
            "agent_ns": own.as_nanos() as u64,
            "in_program_ns": in_program.as_nanos() as u64,
        });
        builder.metadata.set("hotspan.cost", &json.to_string());
    }
}

/// The program's signals are the program's.
fn block_signals() {
    // SAFETY: fills a set and hands it to the operating system.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Says something on stderr, for the program has no other place for it.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "hotspan: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotspan_store::{Duration as Span, EventRow, Ident, SpanRow, Timestamp};

    struct Ticker(i64);

    impl Source for Ticker {
        fn drain(&mut self, builder: &mut TraceBuilder) {
            self.0 += 1;
            let track = builder.track(Ident::Int(1), Ident::Int(1));
            let (name, category, args) = (builder.intern("tick"), builder.category("gc"), builder.no_args());
            let event = EventRow { time: Timestamp(self.0), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Span(1) });
        }

        fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
            self.drain(builder);
        }
    }

    #[test]
    fn what_sources_have_is_in_the_file() {
        let folder = std::env::temp_dir().join(format!("hotspan-agent-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let agent = Agent::start(&folder).unwrap();
        let path = agent.path().to_owned();
        agent.add(Box::new(Ticker(0)));
        agent.set_metadata("hotspan.test", "1");
        std::thread::sleep(INTERVAL * 3);
        agent.finish().unwrap();
        let trace = hotspan_store::file::read(File::open(&path).unwrap(), &mut |_| true).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(trace.losses().is_empty());
        assert!(trace.spans().len() >= 2 && trace.counters().len() >= 2);
        assert_eq!(trace.metadata().get("hotspan.test"), Some("1"));
        assert!(trace.metadata().value("hotspan.cost").unwrap()["agent_ns"].as_u64() > Some(0));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(Agent::start(Path::new("/does/not/exist")).is_err());
    }
}
