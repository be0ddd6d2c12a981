//! Torch operators as a source of the agent.

use std::time::Duration;

use hotspan_store::TraceBuilder;

use crate::agent::Source;
use crate::torch::Session;

/// What one recorded operator costs the program, about: measured with `make bench` as overhead per operator.
const COST_EACH: Duration = Duration::from_nanos(150);

/// A running session, handed to the agent.
#[derive(Debug)]
pub struct Operators {
    session: Session,
}

impl Operators {
    /// Lets the agent take what the session records.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self { session }
    }
}

impl Source for Operators {
    fn drain(&mut self, _builder: &mut TraceBuilder) {}

    fn finish(self: Box<Self>, builder: &mut TraceBuilder) {
        let trace = self.session.stop().into_builder().finish();
        let shift = trace.clock().unix_origin().unwrap_or(0);
        builder.append(&trace, shift);
    }

    fn cost(&self) -> Duration {
        let recorded = u32::try_from(self.session.recorded()).unwrap_or(u32::MAX);
        COST_EACH.saturating_mul(recorded)
    }
}
