//! When to take samples: a fixed grid of times, so that being late once does not shift all that follow.

use std::time::{Duration, Instant};

/// Moments at one distance from each other.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Instant,
    period: Duration,
    next: u64,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// How many moments passed unused before this one.
    pub missed: u64,
    /// By how much this one is late.
    pub late: Duration,
}

impl Schedule {
    /// A schedule that begins now.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        Self { start: Instant::now(), period: period.max(Duration::from_micros(10)), next: 0 }
    }

    /// The distance between two moments.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How long to sleep until the next moment; zero when it has come.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Duration {
        self.moment(self.next).saturating_duration_since(now)
    }

    /// Uses up all moments up to now. Call it when [`Self::wait`] is over.
    pub fn tick(&mut self, now: Instant) -> Tick {
        let passed = now.saturating_duration_since(self.start).as_nanos() / self.period.as_nanos().max(1);
        let latest = u64::try_from(passed).unwrap_or(u64::MAX).max(self.next);
        let late = now.saturating_duration_since(self.moment(latest));
        let missed = latest - self.next;
        self.next = latest + 1;
        Tick { missed, late }
    }

    fn moment(&self, index: u64) -> Instant {
        let nanos = self.period.as_nanos().saturating_mul(u128::from(index));
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn being_late_skips_moments_and_does_not_shift_them() {
        let mut schedule = Schedule::every(Duration::from_millis(10));
        let at = |millis| schedule_start(&schedule) + Duration::from_millis(millis);
        let (first, late, next) = (at(0), at(37), at(40));
        assert_eq!(schedule.tick(first), Tick { missed: 0, late: Duration::ZERO });
        assert_eq!(schedule.tick(late), Tick { missed: 2, late: Duration::from_millis(7) });
        assert_eq!(schedule.wait(late), Duration::from_millis(3));
        assert_eq!(schedule.tick(next), Tick { missed: 0, late: Duration::ZERO });
    }

    fn schedule_start(schedule: &Schedule) -> Instant {
        schedule.start
    }
}
