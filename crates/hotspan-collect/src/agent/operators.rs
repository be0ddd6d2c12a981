//! Torch operators as a source of the agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotspan_store::TraceBuilder;

use crate::agent::{Source, Turn};
use crate::calls::SpanTable;
use crate::locks::lock;
use crate::torch::{Session, Stream};

/// What one recorded operator costs the program, about: measured with `make bench` as overhead per operator.
const COST_EACH: Duration = Duration::from_nanos(150);

/// A running session, handed to the agent. Its handle can give it up for another profiler and take it back.
#[derive(Clone, Debug)]
pub struct Operators {
    state: Arc<Mutex<State>>,
}

/// At the least, operators are recorded in one of so many rounds of the agent.
const LEAST_SHARE: u32 = 16;

#[derive(Debug)]
struct State {
    stream: Stream,
    /// Calls of Python functions, which come with the end.
    calls: SpanTable,
    is_in_range: bool,
    is_time: bool,
    /// Nobody takes what a session records any more.
    is_over: bool,
    /// Operators are recorded in one of so many rounds.
    every: u32,
    round: u32,
}

impl State {
    fn is_on(&self) -> bool {
        self.is_time && self.is_in_range && self.round.is_multiple_of(self.every)
    }

    fn in_words(&self) -> String {
        match self.every {
            1 => "all operators".to_owned(),
            every => format!("operators in one of {every} rounds of 200 ms"),
        }
    }

    fn toggle(&self) {
        if let Some(session) = self.stream.session() {
            session.toggle(self.is_on());
        }
    }
}

impl Operators {
    /// Lets the agent take what the session records.
    #[must_use]
    pub fn new(session: Session) -> Self {
        let state = State {
            stream: Stream::new(session),
            calls: SpanTable::default(),
            is_in_range: true,
            is_time: true,
            is_over: false,
            every: 1,
            round: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut lock(&self.state))
    }

    /// Ends the session, so that another one can record.
    pub fn pause(&self) {
        self.with(|state| state.stream.pause());
    }

    /// Goes on with a new session, unless the recording has ended.
    pub fn resume(&self, session: Session) {
        self.with(|state| {
            if state.is_over {
                return;
            }
            state.stream.resume(session);
            state.toggle();
        });
    }

    /// Whether a session runs.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.with(|state| state.stream.session().is_some())
    }

    /// Says whether the program is in the range to record; this holds at once.
    pub fn toggle(&self, record: bool) {
        self.with(|state| {
            state.is_in_range = record;
            state.toggle();
        });
    }

    /// Adds calls of Python functions, traced meanwhile, to the end of the recording.
    pub fn add_calls(&self, calls: SpanTable) {
        self.with(|state| state.calls = calls);
    }

    /// Stops recording memory, so that torch.profiler can start.
    pub fn release_memory(&self) {
        self.with(|state| {
            if let Some(session) = state.stream.session() {
                session.release_memory();
            }
        });
    }
}

impl Source for Operators {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        self.with(|state| {
            state.stream.drain(builder);
            if state.every > 1 {
                state.round = state.round.wrapping_add(1);
                state.toggle();
            }
        });
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.pause();
        self.drain(builder);
        self.with(|state| state.is_over = true);
        self.with(|state| state.stream.add_calls(std::mem::take(&mut state.calls), builder));
    }

    /// Only the time: [`Self::toggle`] says whether the program is in the range to record.
    fn record(&mut self, turn: Turn, _builder: &mut TraceBuilder) {
        self.with(|state| {
            state.is_time = turn.is_time;
            state.toggle();
        });
    }

    fn back_off(&mut self, _builder: &mut TraceBuilder) -> Option<String> {
        self.with(|state| {
            if state.every >= LEAST_SHARE || state.stream.session().is_none() {
                return None;
            }
            state.every *= 2;
            Some(state.in_words())
        })
    }

    fn step_up(&mut self, _builder: &mut TraceBuilder) -> Option<String> {
        self.with(|state| {
            if state.every == 1 {
                return None;
            }
            state.every /= 2;
            state.toggle();
            Some(state.in_words())
        })
    }

    fn cost(&self) -> Duration {
        COST_EACH.saturating_mul(u32::try_from(self.with(|state| state.stream.records())).unwrap_or(u32::MAX))
    }
}
