//! When the agent records, and how much it may cost.

use crate::clock::UnixNanos;
use crate::segments::SegmentLimit;

/// What `hotspan run` was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Not before this moment.
    pub from: Option<UnixNanos>,
    /// Not after this moment.
    pub until: Option<UnixNanos>,
    /// The share of the program's time that recording may cost.
    pub budget: Option<f64>,
    /// When a file is full and the next one begins.
    pub segment: SegmentLimit,
}

impl Plan {
    pub(super) fn is_time(&self, now: UnixNanos) -> bool {
        self.from.is_none_or(|from| now >= from) && self.until.is_none_or(|until| now < until)
    }
}
