//! The thread of the agent, which ends for the moment of a fork and goes on after it.
//!
//! Python counts the threads of the process when it forks, and warns about more than one (3.12): ours are not the program's.
//! Besides, a child finds no lock of ours held by a thread that it does not have.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hotspan_store::TraceBuilder;
use hotspan_store::file::FileError;

use super::budget::Budget;
use super::{Agent, Plan, Shared};
use crate::locks::lock;
use crate::own_threads;
use crate::segments::Segments;

/// A thread that cannot end within this time, because a disk hangs, is left alone: the fork goes on with it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread works with.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) spool: Segments,
    pub(super) plan: Plan,
    pub(super) builder: TraceBuilder,
    pub(super) budget: Budget,
    pub(super) due: Instant,
    pub(super) round: u32,
}

impl Work {
    pub(super) fn new(spool: Segments, plan: Plan) -> Self {
        let mut builder = TraceBuilder::new();
        builder.clock.base_unix = Some(0);
        "hotspan run".clone_into(&mut builder.source.format);
        Self { spool, plan, builder, budget: Budget::new(plan.budget), due: Instant::now(), round: 0 }
    }
}

/// How the thread ended: with work that is left, or with all written.
type Ended = Result<Option<Work>, FileError>;

/// The thread, or what it left.
#[derive(Debug)]
pub(super) enum Hand {
    /// It runs.
    Runs(JoinHandle<(i32, Ended)>),
    /// It rests.
    Rests(Box<Work>),
    /// It is done.
    Done(Result<(), FileError>),
}

impl Hand {
    /// Starts the thread.
    pub(super) fn start(shared: &Arc<Shared>, work: Work) -> std::io::Result<Self> {
        let shared = Arc::clone(shared);
        let thread =
            own_threads::spawn("hotspan", move || (own_threads::number(), shared.record_or_end(work)))?;
        Ok(Self::Runs(thread))
    }

    /// Waits for the end of the thread, which it was told to come to.
    fn join(thread: JoinHandle<(i32, Ended)>) -> Self {
        match thread.join() {
            Ok((number, ended)) => {
                own_threads::wait_until_gone(number);
                match ended {
                    Ok(Some(work)) => Self::Rests(Box::new(work)),
                    Ok(None) => Self::Done(Ok(())),
                    Err(error) => Self::Done(Err(error)),
                }
            }
            // It catches panics, so this is none of those.
            Err(_) => Self::Done(Err(std::io::Error::other("its thread ended").into())),
        }
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Done(Ok(())))
    }

    /// The rest of the work, done here.
    pub(super) fn finish(&mut self, shared: &Shared) -> Result<(), FileError> {
        let left = match self.take() {
            Self::Runs(thread) => Self::join(thread),
            other => other,
        };
        match left {
            Self::Rests(work) => shared.record_or_end(*work).map(drop),
            Self::Done(result) => result,
            Self::Runs(_) => Ok(()),
        }
    }
}

impl Shared {
    /// Records until the end or a pause. However it ends, nobody waits for what will not come.
    fn record_or_end(&self, work: Work) -> Ended {
        // What a panic leaves half-done is not used again: sources end with it, and the file is what was written before.
        let ended = catch_unwind(AssertUnwindSafe(|| self.record(work))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(std::io::Error::other(format!("a fault of hotspan's own ({text})")).into())
        });
        if !matches!(ended, Ok(Some(_))) {
            self.is_over();
        }
        ended
    }
}

impl Agent {
    /// Ends all threads of the agent for a while: the process is about to fork. Each call is undone by one of
    /// [`Self::resume`].
    pub fn pause(&self) {
        lock(&self.shared.state).pauses += 1;
        self.shared.wake.notify_all();
        let mut hand = lock(&self.hand);
        if let Hand::Runs(thread) = &*hand
            && own_threads::wait_until_finished(thread, PATIENCE)
            && let Hand::Runs(thread) = hand.take()
        {
            *hand = Hand::join(thread);
        }
        if matches!(*hand, Hand::Rests(_)) {
            lock(&self.shared.state).sources.iter_mut().for_each(|(source, _)| source.pause());
        }
    }

    /// Starts the threads again, where nobody else wants them to rest.
    pub fn resume(&self) {
        let mut hand = lock(&self.hand);
        let mut state = lock(&self.shared.state);
        state.pauses = state.pauses.saturating_sub(1);
        if state.pauses > 0 {
            return;
        }
        state.sources.iter_mut().for_each(|(source, _)| source.resume());
        let is_late = std::mem::take(&mut state.rests);
        drop(state);
        *hand = match hand.take() {
            // It came to its rest after we had given up waiting.
            Hand::Runs(thread) if is_late => Hand::join(thread),
            other => other,
        };
        *hand = match hand.take() {
            Hand::Rests(work) => Hand::start(&self.shared, *work).unwrap_or_else(|error| {
                // Without a thread, the file ends here, and all sources do.
                self.shared.is_over();
                lock(&self.shared.state).sources.clear();
                Hand::Done(Err(error.into()))
            }),
            other => other,
        };
    }
}
