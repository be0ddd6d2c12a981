//! What to record when sampling from within.

use std::time::Duration;

use super::SampleError;

/// Samples a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u32);

impl Rate {
    /// A rate between 1 and 10,000 samples a second.
    ///
    /// # Errors
    /// When it is not.
    pub fn new(per_second: u32) -> Result<Self, SampleError> {
        if (1..=10_000).contains(&per_second) {
            Ok(Self(per_second))
        } else {
            Err(SampleError::Rate(per_second))
        }
    }

    /// Samples a second.
    #[must_use]
    pub fn per_second(self) -> u32 {
        self.0
    }

    /// The time between samples.
    #[must_use]
    pub fn period(self) -> Duration {
        Duration::from_secs(1) / self.0
    }
}

/// What to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How often.
    pub rate: Rate,
    /// Native frames too, not only Python's.
    pub native: bool,
    /// Threads that wait too, not only those that run.
    pub waiting: bool,
    /// Leave the names of functions in large libraries to [`super::FunctionNames`], after the program.
    pub names_later: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { rate: Rate(100), native: true, waiting: true, names_later: false }
    }
}
