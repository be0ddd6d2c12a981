//! Samples of all threads as a source of the agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotspan_store::TraceBuilder;

use crate::agent::{Source, Turn};
use crate::locks::lock;
use crate::native::{Options, Rate, Recorder, SampleError};

/// What one signal costs the thread that gets it, about: copying registers, a piece of the stack and Python frames.
const COST_EACH: Duration = Duration::from_micros(10);
/// Fewer samples a second than this say nothing.
const SLOWEST: u32 = 10;

/// A sampler that runs or rests, shared with whoever adds spans to it.
#[derive(Debug)]
pub struct Samples {
    recorder: Arc<Mutex<Option<Recorder>>>,
    options: Options,
    /// The rate that was asked for.
    wanted: Rate,
    taken: u32,
    /// Processor time of samplers that have ended.
    spent: Duration,
}

impl Samples {
    /// Begins to sample.
    ///
    /// # Errors
    /// When the process cannot be sampled.
    pub fn start(options: Options) -> Result<Self, SampleError> {
        let recorder = Arc::new(Mutex::new(Some(Recorder::start(options)?)));
        Ok(Self { recorder, options, wanted: options.rate, taken: 0, spent: Duration::ZERO })
    }

    /// The sampler, for whoever adds spans to it.
    #[must_use]
    pub fn recorder(&self) -> Arc<Mutex<Option<Recorder>>> {
        Arc::clone(&self.recorder)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Option<Recorder>) -> T) -> T {
        act(&mut lock(&self.recorder))
    }

    fn change_rate(&mut self, rate: Rate, builder: &mut TraceBuilder) -> String {
        self.options.rate = rate;
        self.stop(builder);
        self.record(Turn::ON, builder);
        format!("{} samples a second", rate.per_second())
    }

    fn stop(&mut self, builder: &mut TraceBuilder) {
        self.drain(builder);
        let Some(recorder) = self.with(Option::take) else { return };
        self.spent += recorder.spent();
        if let Ok(stopped) = recorder.stop() {
            let trace = stopped.builder.finish();
            builder.append(&trace, trace.clock().unix_origin().unwrap_or(0));
        }
    }
}

impl Source for Samples {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let new = self.with(|recorder| {
            let before = builder.event_count();
            if let Some(recorder) = recorder {
                recorder.drain(builder);
            }
            builder.event_count().saturating_sub(before)
        });
        self.taken = self.taken.saturating_add(u32::try_from(new).unwrap_or(u32::MAX));
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.stop(builder);
    }

    fn record(&mut self, turn: Turn, builder: &mut TraceBuilder) {
        if !turn.is_time || !turn.is_in_range {
            self.stop(builder);
        } else if self.with(|recorder| recorder.is_none()) {
            // Another sampler may have begun meanwhile; then it has the threads.
            let started = Recorder::start(self.options).ok();
            self.with(|recorder| *recorder = started);
        }
    }

    fn back_off(&mut self, builder: &mut TraceBuilder) -> Option<String> {
        let slower = self.options.rate.per_second() / 2;
        if slower < SLOWEST || self.with(|recorder| recorder.is_none()) {
            return None;
        }
        Some(self.change_rate(Rate::new(slower).ok()?, builder))
    }

    fn step_up(&mut self, builder: &mut TraceBuilder) -> Option<String> {
        let faster = (self.options.rate.per_second() * 2).min(self.wanted.per_second());
        if self.options.rate == self.wanted || self.with(|recorder| recorder.is_none()) {
            return None;
        }
        Some(self.change_rate(Rate::new(faster).ok()?, builder))
    }

    fn pause(&mut self) {
        self.with(|recorder| recorder.as_mut().map(Recorder::pause));
    }

    fn resume(&mut self) {
        self.with(|recorder| recorder.as_mut().map(Recorder::resume));
    }

    fn cost(&self) -> Duration {
        COST_EACH.saturating_mul(self.taken)
    }

    fn own_time(&self) -> Duration {
        self.spent + self.with(|recorder| recorder.as_ref().map(Recorder::spent)).unwrap_or_default()
    }
}
