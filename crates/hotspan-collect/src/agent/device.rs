//! Device work as a source of the agent; its handle can leave the device to another profiler and take it back.

use std::sync::{Arc, Mutex};

use hotspan_store::TraceBuilder;

use crate::agent::{Source, Turn};
use crate::cupti::{self, CuptiError, Recording};
use crate::locks::lock;

/// Memory for device records that wait to be written: some million kernels.
const MOST_BYTES: usize = 256 << 20;
/// CUPTI is asked for what it has in one of so many rounds of the agent.
const ROUNDS: u32 = 5;

/// A running session of CUPTI, handed to the agent.
#[derive(Clone, Debug)]
pub struct Device {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    session: Option<cupti::Session>,
    /// What sessions that ended have left.
    left: Vec<Recording>,
    round: u32,
}

impl Device {
    /// Begins to record.
    ///
    /// # Errors
    /// When there is no CUPTI, or it refuses.
    pub fn start() -> Result<Self, CuptiError> {
        let device = Self { state: Arc::default() };
        device.resume()?;
        Ok(device)
    }

    /// Leaves the device to another profiler.
    pub fn pause(&self) {
        let mut state = lock(&self.state);
        let recording = state.session.take().and_then(cupti::Session::stop);
        state.left.extend(recording);
    }

    /// Takes it back, unless it is recorded already.
    ///
    /// # Errors
    /// When CUPTI refuses.
    pub fn resume(&self) -> Result<(), CuptiError> {
        let mut state = lock(&self.state);
        if state.session.is_none() {
            let options = cupti::Options { max_bytes: Some(MOST_BYTES), ..cupti::Options::default() };
            state.session = Some(cupti::Session::start(&cupti::Library::load()?, options)?);
        }
        Ok(())
    }
}

impl Source for Device {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let mut state = lock(&self.state);
        state.round = state.round.wrapping_add(1);
        let is_time = state.round.is_multiple_of(ROUNDS);
        let part = state.session.as_mut().filter(|_| is_time).and_then(cupti::Session::take);
        let left = std::mem::take(&mut state.left);
        // Whoever pauses need not wait for the rest.
        drop(state);
        left.into_iter().chain(part).for_each(|recording| recording.add_to(builder));
    }

    fn flush(&mut self, builder: &mut TraceBuilder) {
        lock(&self.state).round = ROUNDS - 1;
        self.drain(builder);
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.pause();
        self.drain(builder);
    }

    fn record(&mut self, turn: Turn, _builder: &mut TraceBuilder) {
        if let Some(session) = &mut lock(&self.state).session {
            session.toggle(turn.is_time && turn.is_in_range);
        }
    }
}
