//! The agent: a thread inside the recorded program that takes what the collectors have and appends it to a file.
//!
//! What was appended survives the death of the program. The agent never holds the program up: when the disk is full or the
//! folder is gone it stops writing, says so once, and the program goes on.

mod budget;
mod device;
mod hand;
mod last_signal;
mod lifetime;
mod memory;
mod operators;
mod plan;
mod samples;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotspan_store::TraceBuilder;
use hotspan_store::file::FileError;

use crate::clock::{self, UnixNanos};
use crate::locks::lock;
use crate::segments::Segments;

pub use device::Device;
use hand::{Hand, Work};
use last_signal::LastSignal;
use lifetime::Lifetime;
pub use operators::Operators;
pub use plan::Plan;
pub use samples::Samples;

/// How often the agent looks.
const INTERVAL: Duration = Duration::from_millis(200);
/// How many rounds of looking make one of writing at the most: a chunk costs a few kilobytes beyond its rows.
const ROUNDS: u32 = 5;
/// So many rows are worth a chunk of their own, in every round: what a program does is on the disk soon, however it ends.
const MANY_ROWS: usize = 256;

/// The metadata key of the signal that ended the process, when all was written before.
const SIGNAL: &str = "hotspan.signal";

/// Something that records while the program runs. Times are Unix nanoseconds.
pub trait Source: Send {
    /// Adds what is new.
    fn drain(&mut self, builder: &mut TraceBuilder);

    /// Adds all that there is, at once: the program may be about to end.
    fn flush(&mut self, builder: &mut TraceBuilder) {
        self.drain(builder);
    }

    /// Ends, and adds the rest.
    fn finish(self: Box<Self>, builder: &mut TraceBuilder);

    /// Stops recording for a while, or goes on.
    fn record(&mut self, _turn: Turn, _builder: &mut TraceBuilder) {}

    /// Records less from now on; says what it does. `None`: it cannot.
    fn back_off(&mut self, _builder: &mut TraceBuilder) -> Option<String> {
        None
    }

    /// Takes back one step of recording less; says what it does. `None`: it records all there is.
    fn step_up(&mut self, _builder: &mut TraceBuilder) -> Option<String> {
        None
    }

    /// Ends threads that the source has for itself: the process is about to fork.
    fn pause(&mut self) {}

    /// Starts them again.
    fn resume(&mut self) {}

    /// Time of the program's own threads that recording took so far, as far as the source can tell.
    fn cost(&self) -> Duration {
        Duration::ZERO
    }

    /// Processor time of threads that the source has for itself.
    fn own_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// Whether to record now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// It is the time that was asked for.
    pub is_time: bool,
    /// The program is where it should be recorded. Sources that are told so at once, by others, need not wait for this.
    pub is_in_range: bool,
}

impl Turn {
    const ON: Self = Self { is_time: true, is_in_range: true };
}

/// The running agent of this process.
#[derive(Debug)]
pub struct Agent {
    shared: Arc<Shared>,
    hand: Mutex<Hand>,
    path: PathBuf,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Tells those who wait in [`Flusher::flush`].
    flushed: Condvar,
    last_signal: LastSignal,
}

/// A source, and what it was told last.
type Told = (Box<dyn Source>, Turn);

struct State {
    sources: Vec<Told>,
    metadata: Vec<(String, String)>,
    lifetime: Option<Lifetime>,
    /// Whether the program is where it should be recorded.
    wanted: bool,
    /// Something is new: do not wait for the next round.
    hurry: bool,
    ending: bool,
    /// How many times everything was to be written at once, and up to which of them it was.
    flushes_wanted: u64,
    flushes_done: u64,
    /// Nothing will be written any more.
    is_over: bool,
    /// How many want the thread to end for a while.
    pauses: u32,
    /// Whether it does.
    rests: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            metadata: Vec::new(),
            lifetime: None,
            wanted: true,
            hurry: false,
            ending: false,
            flushes_wanted: 0,
            flushes_done: 0,
            is_over: false,
            pauses: 0,
            rests: false,
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl State {
    fn change_lifetime(&mut self, change: impl FnOnce(&mut Lifetime)) {
        if let Some(lifetime) = &mut self.lifetime {
            change(lifetime);
            self.metadata.push((lifetime::KEY.to_owned(), lifetime.json()));
        }
    }
}

impl Agent {
    /// Begins to record this process into a new file of the folder.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn start(folder: &Path, plan: Plan) -> io::Result<Self> {
        let process = std::process::id();
        // A process keeps its number over `exec`, and numbers are used again: the moment tells files apart.
        let path = folder.join(format!("{process}-{}.hotspan", clock::unix_now().0));
        let spool = Segments::create_new(&path, plan.segment).map_err(io::Error::other)?;
        let shared = Arc::new(Shared::default());
        let hand = Hand::start(&shared, Work::new(spool, plan))?;
        lock(&shared.state).lifetime = Some(Lifetime::new(plan.from.is_none() && plan.until.is_none()));
        last_signal::watch(&shared);
        let agent = Self { shared, hand: Mutex::new(hand), path };
        agent.add(Box::new(memory::Resident));
        Ok(agent)
    }

    /// The file that is being written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a source that records already. When nothing will be written any more, it ends.
    pub fn add(&self, source: Box<dyn Source>) {
        let mut state = lock(&self.shared.state);
        if state.is_over {
            drop(state);
            source.finish(&mut TraceBuilder::new());
            return;
        }
        state.sources.push((source, Turn::ON));
        state.hurry = true;
        self.shared.wake.notify_all();
    }

    /// Says that the program gets its turn; the interpreter came to us at that moment.
    pub fn is_ready(&self, began: UnixNanos) {
        let mut state = lock(&self.shared.state);
        state.change_lifetime(|lifetime| lifetime.is_ready(began));
        // A program that dies young has left its name.
        state.flushes_wanted += 1;
        state.hurry = true;
        self.shared.wake.notify_all();
    }

    /// Says whether the program is where it should be recorded.
    pub fn record(&self, on: bool) {
        let mut state = lock(&self.shared.state);
        if !on {
            state.change_lifetime(Lifetime::is_partial);
        }
        state.hurry |= state.wanted != on;
        state.wanted = on;
        self.shared.wake.notify_all();
    }

    /// Says something about the recording.
    pub fn set_metadata(&self, key: &str, json: &str) {
        lock(&self.shared.state).metadata.push((key.to_owned(), json.to_owned()));
    }

    /// For whoever has all written at once.
    #[must_use]
    pub fn flusher(&self) -> Flusher {
        Flusher { shared: Arc::clone(&self.shared) }
    }

    /// Ends all sources and the file.
    ///
    /// # Errors
    /// When not all could be written. The file holds what was written before.
    pub fn finish(&self) -> Result<(), FileError> {
        let mut state = lock(&self.shared.state);
        state.change_lifetime(Lifetime::finish);
        state.ending = true;
        drop(state);
        self.shared.wake.notify_all();
        lock(&self.hand).finish(&self.shared)
    }

    /// Forgets the agent in a forked child, which has no such thread and must not touch the parent's file.
    pub fn forget(self: Arc<Self>) {
        std::mem::forget(self);
    }
}

/// Has all written that there is; the agent may end meanwhile.
#[derive(Debug)]
pub struct Flusher {
    shared: Arc<Shared>,
}

impl Flusher {
    /// Writes all that there is, for the program may be about to end; waits for that no longer than `longest`. Whether it was
    /// written is the answer. The recording goes on.
    #[must_use]
    pub fn flush(&self, longest: Duration) -> bool {
        let mut state = lock(&self.shared.state);
        state.flushes_wanted += 1;
        state.hurry = true;
        let wanted = state.flushes_wanted;
        self.shared.wake.notify_all();
        let waits = |state: &mut State| state.flushes_done < wanted && !state.is_over;
        let waited = self.shared.flushed.wait_timeout_while(state, longest, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.flushes_done >= wanted
    }
}

impl Shared {
    /// Records until the end, or until a pause: then there is work left.
    fn record(&self, work: Work) -> Result<Option<Work>, FileError> {
        let Work { mut spool, plan, mut builder, mut budget, mut due, mut round } = work;
        loop {
            let mut state = lock(&self.state);
            while !state.ending
                && !state.hurry
                && state.pauses == 0
                && self.last_signal.waiting() == 0
                && Instant::now() < due
            {
                let left = due.saturating_duration_since(Instant::now());
                state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            // What is to be written at once comes first.
            let is_urgent =
                state.ending || state.flushes_wanted > state.flushes_done || self.last_signal.waiting() != 0;
            if state.pauses > 0 && !is_urgent {
                state.rests = true;
                return Ok(Some(Work { spool, plan, builder, budget, due, round }));
            }
            // What hurries is seen at once, but does not make the rounds of writing shorter.
            let is_round = Instant::now() >= due;
            if is_round {
                due = Instant::now() + INTERVAL;
            }
            state.hurry = false;
            for (key, json) in state.metadata.drain(..) {
                builder.metadata.set(&key, &json);
            }
            let ending = state.ending;
            let (flushes, signal) = (state.flushes_wanted, self.last_signal.waiting());
            let flush = flushes > state.flushes_done || signal != 0;
            if signal != 0 {
                builder.metadata.set(SIGNAL, &signal.to_string());
            }
            let turn = Turn { is_time: plan.is_time(clock::unix_now()), is_in_range: state.wanted };
            // Sources may wait for Python's lock: nobody may wait for ours meanwhile.
            let mut sources = std::mem::take(&mut state.sources);
            drop(state);
            if ending {
                budget.look(&sources);
                sources.into_iter().for_each(|(source, _)| source.finish(&mut builder));
                budget.describe(&mut builder);
                return spool.finish(&mut builder).map(|()| None);
            }
            for (source, told) in &mut sources {
                if *told != turn {
                    *told = turn;
                    source.record(turn, &mut builder);
                }
                if flush {
                    source.flush(&mut builder);
                } else {
                    source.drain(&mut builder);
                }
            }
            let is_turn = is_round && round.is_multiple_of(ROUNDS);
            let writes = is_turn || flush || (is_round && builder.event_count() >= MANY_ROWS);
            round = round.wrapping_add(u32::from(is_round));
            if is_turn {
                budget.look(&sources);
                budget.keep(&mut sources, &mut builder);
                budget.describe(&mut builder);
            }
            // Those that were added meanwhile come after.
            let mut state = lock(&self.state);
            sources.append(&mut state.sources);
            state.sources = sources;
            drop(state);
            if writes && let Err(error) = spool.append(&mut builder) {
                self.give_up(&mut builder);
                return Err(error);
            }
            if flush {
                self.last_signal.is_written(signal);
                lock(&self.state).flushes_done = flushes;
                self.flushed.notify_all();
            }
        }
    }

    /// Nothing will be written any more: nobody need wait for it.
    fn is_over(&self) {
        last_signal::unwatch();
        lock(&self.state).is_over = true;
        self.flushed.notify_all();
    }

    /// Nothing can be written any more: collectors end, so that they cost the program nothing. They have numbers of rows and
    /// texts of their builder.
    fn give_up(&self, builder: &mut TraceBuilder) {
        self.is_over();
        let sources = std::mem::take(&mut lock(&self.state).sources);
        sources.into_iter().for_each(|(source, _)| source.finish(builder));
    }
}

/// Says something on stderr, for the program has no other way to say it.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "hotspan: {text}");
}
