//! CUPTI's clock on ours.
//!
//! CUPTI reports nanoseconds of the system's clock, or of a clock that another tool gave it. Both are read together when
//! recording begins and ends; the distance between them, interpolated, moves every time onto the clock of the operators. How
//! much the distance changed is the drift, kept in the trace.

use crate::clock::{self, Calibration, Ticks};
use crate::cupti::abi::{CuptiResult, Functions};

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    ticks: Ticks,
    cupti: u64,
}

impl Pair {
    /// The tightest of several readings: whatever interrupts one makes it wider. `None`: CUPTI tells no time.
    pub(crate) fn measure(functions: &Functions) -> Option<Self> {
        let read = || {
            let before = clock::now();
            let mut cupti = 0;
            // SAFETY: a place for a number.
            let result = unsafe { (functions.get_timestamp)(&raw mut cupti) };
            let width = clock::now().0.wrapping_sub(before.0);
            let pair = Self { ticks: Ticks(before.0.wrapping_add(width / 2)), cupti };
            (result == CuptiResult::SUCCESS).then_some((width, pair))
        };
        let best = (0..16).filter_map(|_| read()).min_by_key(|&(width, _)| width);
        best.map(|(_, pair)| pair)
    }
}

/// How CUPTI's times become wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceClock {
    start: u64,
    /// Wall time less CUPTI's time, at the start.
    offset: i64,
    /// How much that changes per nanosecond.
    slope: f64,
    drift: i64,
}

impl DeviceClock {
    pub(crate) fn between(first: Pair, last: Pair, calibration: &Calibration) -> Self {
        let offset = |pair: Pair| calibration.unix(pair.ticks).0.wrapping_sub(pair.cupti as i64);
        let elapsed = last.cupti.wrapping_sub(first.cupti) as i64;
        let drift = offset(last).wrapping_sub(offset(first));
        let slope = if elapsed > 0 { drift as f64 / elapsed as f64 } else { 0.0 };
        Self { start: first.cupti, offset: offset(first), slope, drift }
    }

    /// Wall time in nanoseconds since 1970.
    pub(crate) fn unix(&self, cupti: u64) -> i64 {
        let since = cupti.wrapping_sub(self.start) as i64;
        (cupti as i64).wrapping_add(self.offset).wrapping_add((since as f64 * self.slope).round() as i64)
    }

    /// How far the clocks moved apart while recording, in nanoseconds.
    pub(crate) fn drift(&self) -> i64 {
        self.drift
    }

    /// Whether the two clocks ran so differently that one was set, not merely tuned.
    pub(crate) fn has_jumped(&self) -> bool {
        self.slope.abs() > 1e-3 && self.drift.abs() > 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockStart;

    #[test]
    fn times_between_two_readings_are_interpolated() {
        let clock = DeviceClock { start: 1_000, offset: 500, slope: 1e-3, drift: 100 };
        assert_eq!(clock.unix(1_000), 1_500);
        assert_eq!(clock.unix(101_000), 101_600);
        assert_eq!(clock.unix(0), 499, "what began before the recording is earlier, by the same rule");
    }

    #[test]
    fn a_clock_that_runs_like_ours_does_not_drift() {
        let start = ClockStart::measure();
        let pair = |cupti| Pair { ticks: clock::now(), cupti };
        let first = pair(5_000_000);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let last = pair(5_000_000);
        let calibration = start.finish();
        let elapsed = calibration.unix(last.ticks).0 - calibration.unix(first.ticks).0;
        let last = Pair { cupti: first.cupti + elapsed as u64, ..last };
        let same = DeviceClock::between(first, last, &calibration);
        assert_eq!(same.drift(), 0);
        assert_eq!(same.unix(first.cupti), calibration.unix(first.ticks).0);
        let set = Pair { cupti: last.cupti + 3_000_000_000, ..last };
        assert!(DeviceClock::between(first, set, &calibration).has_jumped());
    }
}
