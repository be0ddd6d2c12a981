//! Samples of all threads as a source of the agent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotspan_store::TraceBuilder;

use crate::agent::Source;
use crate::native::Recorder;

/// What one signal costs the thread that gets it, about: copying registers, a piece of the stack and Python frames.
const COST_EACH: Duration = Duration::from_micros(10);

/// A running sampler, shared with whoever adds spans to it.
#[derive(Debug)]
pub struct Samples {
    recorder: Arc<Mutex<Option<Recorder>>>,
    taken: u32,
}

impl Samples {
    /// Lets the agent take what the sampler gathers.
    #[must_use]
    pub fn new(recorder: Arc<Mutex<Option<Recorder>>>) -> Self {
        Self { recorder, taken: 0 }
    }
}

impl Source for Samples {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &*recorder {
            let before = builder.event_count();
            recorder.drain(builder);
            let new = builder.event_count().saturating_sub(before);
            self.taken = self.taken.saturating_add(u32::try_from(new).unwrap_or(u32::MAX));
        }
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.drain(builder);
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Ok(stopped)) = recorder.map(Recorder::stop) {
            let trace = stopped.builder.finish();
            builder.append(&trace, trace.clock().unix_origin().unwrap_or(0));
        }
    }

    fn cost(&self) -> Duration {
        COST_EACH.saturating_mul(self.taken)
    }
}
