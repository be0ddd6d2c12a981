//! When to take samples: once in each period, at a moment of it that chance decides.
//!
//! Moments at one distance from each other would run in step with a program that does something every 10 ms, and see
//! the same part of it each time. Periods lie on a fixed grid, so that being late once does not shift all that follow.

use std::time::{Duration, Instant};

/// A lost period counts for the sample after it, but no sample stands for more than this.
const LONGEST_WEIGHT: Duration = Duration::from_millis(100);

/// One moment in each period.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Instant,
    period: Duration,
    next: u64,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// How many periods passed without a sample before this one.
    pub missed: u64,
    /// By how much this one is late.
    pub late: Duration,
    /// How much time the sample stands for.
    pub weight: Duration,
}

impl Schedule {
    /// A schedule that begins now.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        Self { start: Instant::now(), period: period.max(Duration::from_micros(10)), next: 0 }
    }

    /// The length of a period.
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
        let mut latest = u64::try_from(passed).unwrap_or(u64::MAX).max(self.next);
        // The moment of the period that runs may still be to come.
        if latest > self.next && self.moment(latest) > now {
            latest -= 1;
        }
        let late = now.saturating_duration_since(self.moment(latest));
        let missed = latest - self.next;
        self.next = latest + 1;
        let periods = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
        let weight = self.period.saturating_mul(periods).min(LONGEST_WEIGHT.max(self.period));
        Tick { missed, late, weight }
    }

    fn moment(&self, index: u64) -> Instant {
        let period = self.period.as_nanos();
        // The fraction of the period, in parts of 2^32.
        let within = period.saturating_mul(u128::from(scatter(index) >> 32)) >> 32;
        let nanos = period.saturating_mul(u128::from(index)).saturating_add(within);
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
    }
}

/// A number that looks like chance and is the same for the same index (the finalizer of SplitMix64).
fn scatter(index: u64) -> u64 {
    let mut number = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(10);

    #[test]
    fn being_late_skips_periods_and_does_not_shift_them() {
        let mut schedule = Schedule::every(PERIOD);
        let first = schedule.moment(0);
        assert_eq!(schedule.tick(first), Tick { missed: 0, late: Duration::ZERO, weight: PERIOD });
        let late = schedule.moment(3) + Duration::from_micros(1);
        let tick = schedule.tick(late);
        assert_eq!(tick, Tick { missed: 2, late: Duration::from_micros(1), weight: PERIOD * 3 });
        let next = schedule.moment(4);
        assert_eq!(schedule.wait(late), next - late);
        assert_eq!(schedule.tick(next).missed, 0);
        let much_later = schedule.moment(4_000);
        assert_eq!(schedule.tick(much_later).weight, LONGEST_WEIGHT);
    }

    #[test]
    fn a_program_in_step_with_the_periods_is_seen_everywhere() {
        let schedule = Schedule::every(PERIOD);
        let mut tenths = [0; 10];
        for index in 0..10_000 {
            let within = schedule.moment(index) - schedule.start - PERIOD * index as u32;
            tenths[within.as_millis() as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }
}
