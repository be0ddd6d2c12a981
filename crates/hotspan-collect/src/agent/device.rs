//! Device work as a source of the agent. It comes with the end of the recording, or when another profiler takes the device.

use std::sync::{Arc, Mutex, PoisonError};

use hotspan_store::{Trace, TraceBuilder};

use crate::agent::{Source, Turn};
use crate::cupti::{self, CuptiError};

/// Memory for device records: some ten million kernels.
const MOST_BYTES: usize = 1 << 30;

/// A running session of CUPTI, handed to the agent; its handle can give the device up and take it back.
#[derive(Clone, Debug)]
pub struct Device {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    session: Option<cupti::Session>,
    recorded: Vec<Trace>,
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

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the device to another profiler.
    pub fn pause(&self) {
        let mut state = self.lock();
        let recording = state.session.take().and_then(cupti::Session::stop);
        state.recorded.extend(recording.map(|recording| recording.into_builder().finish()));
    }

    /// Takes it back.
    ///
    /// # Errors
    /// When CUPTI refuses.
    pub fn resume(&self) -> Result<(), CuptiError> {
        let options = cupti::Options { max_bytes: Some(MOST_BYTES), ..cupti::Options::default() };
        let session = cupti::Session::start(&cupti::Library::load()?, options)?;
        self.lock().session = Some(session);
        Ok(())
    }
}

impl Source for Device {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        for trace in std::mem::take(&mut self.lock().recorded) {
            builder.append(&trace, trace.clock().unix_origin().unwrap_or(0));
        }
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.pause();
        self.drain(builder);
    }

    fn record(&mut self, turn: Turn, _builder: &mut TraceBuilder) {
        if let Some(session) = &mut self.lock().session {
            session.toggle(turn.is_time && turn.is_place);
        }
    }
}
