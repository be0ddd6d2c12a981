//! CUPTI's clock on ours.
//!
//! CUPTI reports nanoseconds of the system's clock, unless another tool gave it a clock: once torch.profiler has run in a
//! process, its times are ticks of the processor's counter, which is the clock of our operators too. Both clocks are read
//! together when recording begins and ends. Ticks are converted as those of operators are; nanoseconds are moved by the
//! distance between the clocks, interpolated. How much that distance changed is the drift, kept in the trace.

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
            // SAFETY: CUPTI fills the local.
            let result = unsafe { (functions.get_timestamp)(&raw mut cupti) };
            let width = clock::now().0.wrapping_sub(before.0);
            let pair = Self { ticks: Ticks(before.0.wrapping_add(width / 2)), cupti };
            (result == CuptiResult::SUCCESS).then_some((width, pair))
        };
        let best = (0..16).filter_map(|_| read()).min_by_key(|&(width, _)| width);
        best.map(|(_, pair)| pair)
    }

    /// Whether CUPTI read the very clock that we read: the same number, but for the time between two readings. The clock
    /// of the system is decades away from any counter.
    fn is_one_clock(self) -> bool {
        const MOMENT: u64 = 100_000_000;
        self.ticks.0.abs_diff(self.cupti) < MOMENT
    }
}

/// How CUPTI's times become wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeviceClock {
    /// They are ticks of our own clock.
    Ticks(Calibration),
    /// They are nanoseconds.
    Nanos {
        start: u64,
        /// Wall time less CUPTI's time, at the start.
        offset: i64,
        /// How much that changes per nanosecond.
        slope: f64,
        drift: i64,
    },
}

impl DeviceClock {
    pub(crate) fn between(first: Pair, last: Pair, calibration: &Calibration) -> Self {
        if first.is_one_clock() && last.is_one_clock() {
            return Self::Ticks(*calibration);
        }
        let offset = |pair: Pair| calibration.unix(pair.ticks).0.wrapping_sub(pair.cupti as i64);
        let elapsed = last.cupti.wrapping_sub(first.cupti) as i64;
        let drift = offset(last).wrapping_sub(offset(first));
        let slope = if elapsed > 0 { drift as f64 / elapsed as f64 } else { 0.0 };
        Self::Nanos { start: first.cupti, offset: offset(first), slope, drift }
    }

    /// Wall time in nanoseconds since 1970.
    pub(crate) fn unix(&self, cupti: u64) -> i64 {
        match *self {
            Self::Ticks(calibration) => calibration.unix(Ticks(cupti)).0,
            Self::Nanos { start, offset, slope, .. } => {
                let since = cupti.wrapping_sub(start) as i64;
                (cupti as i64).wrapping_add(offset).wrapping_add((since as f64 * slope).round() as i64)
            }
        }
    }

    /// The time that CUPTI would have told then.
    pub(crate) fn cupti(&self, ticks: Ticks, calibration: &Calibration) -> u64 {
        match *self {
            Self::Ticks(_) => ticks.0,
            Self::Nanos { start, offset, slope, .. } => {
                let since = calibration.unix(ticks).0.wrapping_sub(offset).wrapping_sub(start as i64);
                start.wrapping_add_signed((since as f64 / (1.0 + slope)).round() as i64)
            }
        }
    }

    /// Nanoseconds from one time to another, none when they are the wrong way round.
    pub(crate) fn nanos(&self, start: u64, end: u64) -> i64 {
        match self {
            Self::Ticks(_) => (self.unix(end) - self.unix(start)).max(0),
            // The drift of a clock is no part of what it measured.
            Self::Nanos { .. } => end.saturating_sub(start) as i64,
        }
    }

    /// How far the clocks moved apart while recording, in nanoseconds.
    pub(crate) fn drift(&self) -> i64 {
        match *self {
            Self::Ticks(_) => 0,
            Self::Nanos { drift, .. } => drift,
        }
    }

    /// Whether the two clocks ran so differently that one was set, not merely tuned.
    pub(crate) fn has_jumped(&self) -> bool {
        match *self {
            Self::Ticks(_) => false,
            Self::Nanos { slope, drift, .. } => slope.abs() > 1e-3 && drift.abs() > 1_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockStart;

    #[test]
    fn times_between_two_readings_are_interpolated() {
        let clock = DeviceClock::Nanos { start: 1_000, offset: 500, slope: 1e-3, drift: 100 };
        assert_eq!(clock.unix(1_000), 1_500);
        assert_eq!(clock.unix(101_000), 101_600);
        assert_eq!(clock.unix(0), 499, "what began before the recording is earlier, by the same rule");
        assert_eq!(clock.nanos(1_000, 101_000), 100_000, "durations stay as they were measured");
    }

    #[test]
    fn a_clock_that_runs_like_ours_does_not_drift() {
        let start = ClockStart::measure();
        let unix = 1_700_000_000_000_000_000;
        let first = Pair { ticks: clock::now(), cupti: unix };
        std::thread::sleep(std::time::Duration::from_millis(5));
        let ticks = clock::now();
        let calibration = start.finish();
        let elapsed = calibration.unix(ticks).0 - calibration.unix(first.ticks).0;
        let last = Pair { ticks, cupti: unix + elapsed as u64 };
        let same = DeviceClock::between(first, last, &calibration);
        assert_eq!(same.drift(), 0);
        assert!(!same.has_jumped());
        assert_eq!(same.unix(first.cupti), calibration.unix(first.ticks).0);
        let set = Pair { cupti: last.cupti + 3_000_000_000, ..last };
        assert!(DeviceClock::between(first, set, &calibration).has_jumped());
    }

    #[test]
    fn ticks_of_our_own_clock_are_converted_like_those_of_operators() {
        let start = ClockStart::measure();
        let pair = || {
            let ticks = clock::now();
            Pair { ticks, cupti: ticks.0 + 40 }
        };
        let first = pair();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let last = pair();
        let calibration = start.finish();
        let clock = DeviceClock::between(first, last, &calibration);
        assert!(matches!(clock, DeviceClock::Ticks(_)));
        assert_eq!(clock.unix(first.ticks.0), calibration.unix(first.ticks).0);
        let slept = clock.nanos(first.cupti, last.cupti);
        assert!((5_000_000..5_000_000_000).contains(&slept), "{slept} ns is not the length of the pause");
        assert_eq!(clock.drift(), 0);
    }
}
