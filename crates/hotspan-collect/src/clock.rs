//! The clock of the collectors: the processor's own counter while recording, wall time afterwards.
//!
//! Reading the counter costs a few nanoseconds where the operating system's clock costs twenty or more. A [`Calibration`]
//! pairs both clocks when recording begins and once more when it ends, and converts every time in between.

use std::sync::OnceLock;

/// A reading of the recording clock: processor ticks, or nanoseconds where the counter cannot be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ticks(pub u64);

/// Nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UnixNanos(pub i64);

/// Whether the processor's counter runs at one speed, in all states, on all cores.
#[must_use]
pub fn counter_is_steady() -> bool {
    static STEADY: OnceLock<bool> = OnceLock::new();
    *STEADY.get_or_init(|| {
        if cfg!(target_arch = "aarch64") {
            return true; // by definition of the architecture
        }
        // The kernel tests the counter at boot and leaves it when cores disagree.
        let source =
            std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        match source.as_deref().map(str::trim) {
            Ok("tsc") => true,
            // Virtual machines read the counter through a page of the hypervisor; it is steady where the flag says so.
            Ok("kvm-clock" | "hyperv_clocksource_tsc_page") => {
                let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
                flags.contains("constant_tsc") && flags.contains("nonstop_tsc")
            }
            _ => false,
        }
    })
}

/// Reads the recording clock.
#[must_use]
#[inline]
pub fn now() -> Ticks {
    if counter_is_steady() {
        Ticks(read_counter())
    } else {
        Ticks(system_nanos(libc::CLOCK_MONOTONIC) as u64)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_counter() -> u64 {
    // SAFETY: reading the time stamp counter has no precondition on x86-64.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn read_counter() -> u64 {
    let value: u64;
    // SAFETY: the virtual counter may be read in user mode and reading it changes nothing.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
    value
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn read_counter() -> u64 {
    system_nanos(libc::CLOCK_MONOTONIC) as u64
}

fn system_nanos(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local that the call fills, and both clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Both are narrower on some 32-bit systems, none of which torch supports.
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Wall time less monotonic time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct WallOffset(pub i64);

/// What all processes of a run have agreed on. Wall time may be set while a program runs; monotonic time is the same in all
/// processes of a machine and never jumps.
static AGREED: OnceLock<WallOffset> = OnceLock::new();

impl WallOffset {
    /// The one that was agreed on, or that of this moment.
    #[must_use]
    pub fn now() -> Self {
        let measure = || Self(system_nanos(libc::CLOCK_REALTIME) - system_nanos(libc::CLOCK_MONOTONIC));
        AGREED.get().copied().unwrap_or_else(measure)
    }

    /// Makes it that of this process, for good; the first one counts.
    pub fn agree(self) {
        let _ = AGREED.set(self);
    }
}

/// Wall time now.
#[must_use]
pub fn unix_now() -> UnixNanos {
    unix_at(system_nanos(libc::CLOCK_MONOTONIC))
}

/// Wall time at a moment of the monotonic clock, in nanoseconds.
#[must_use]
pub fn unix_at(monotonic: i64) -> UnixNanos {
    UnixNanos(monotonic.saturating_add(WallOffset::now().0))
}

/// Processor time of the calling thread so far.
#[must_use]
pub fn thread_cpu_time() -> std::time::Duration {
    std::time::Duration::from_nanos(system_nanos(libc::CLOCK_THREAD_CPUTIME_ID).max(0) as u64)
}

/// The three clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: Ticks,
    monotonic: i64,
    /// Wall time less monotonic time.
    offset: i64,
}

impl Pair {
    /// The tightest of several readings: whatever interrupts one makes it wider.
    fn measure() -> Self {
        let read = || {
            let before = now();
            let monotonic = system_nanos(libc::CLOCK_MONOTONIC);
            let after = now();
            let offset = AGREED
                .get()
                .map_or_else(|| system_nanos(libc::CLOCK_REALTIME) - monotonic, |agreed| agreed.0);
            let width = after.0.wrapping_sub(before.0);
            (width, Self { ticks: Ticks(before.0.wrapping_add(width / 2)), monotonic, offset })
        };
        let mut best = read();
        let mut offset = best.1.offset;
        for _ in 0..32 {
            let next = read();
            // The offset contains the time between two readings, never less than none.
            offset = offset.min(next.1.offset);
            if next.0 < best.0 {
                best = next;
            }
        }
        Self { offset, ..best.1 }
    }
}

/// How ticks become wall time.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    ticks: Ticks,
    unix: UnixNanos,
    nanos_per_tick: f64,
}

impl Calibration {
    /// The wall time of a reading.
    #[must_use]
    #[inline]
    pub fn unix(&self, ticks: Ticks) -> UnixNanos {
        let elapsed = ticks.0.wrapping_sub(self.ticks.0) as i64;
        UnixNanos(self.unix.0 + (elapsed as f64 * self.nanos_per_tick).round() as i64)
    }

    /// The nanoseconds that so many ticks take.
    #[must_use]
    pub fn nanos(&self, ticks: u64) -> i64 {
        (ticks as i64 as f64 * self.nanos_per_tick).round() as i64
    }
}

/// How ticks become wall time while a recording goes on: what was converted once is converted the same way again, and time
/// has no steps where a better calibration takes over.
#[derive(Clone, Debug)]
pub struct TimeLine {
    /// Each begins where the one before it ends; the last goes on for ever.
    pieces: Vec<Calibration>,
}

impl TimeLine {
    /// How many pieces are kept. What began before the first is old enough to have been converted.
    const MOST_PIECES: usize = 64;

    /// One calibration for all times.
    #[must_use]
    pub fn fixed(calibration: Calibration) -> Self {
        Self { pieces: vec![calibration] }
    }

    /// The wall time of a reading.
    #[must_use]
    #[inline]
    pub fn unix(&self, ticks: Ticks) -> UnixNanos {
        let mut pieces = self.pieces.iter().rev();
        let last = pieces.next();
        let begun = last.into_iter().chain(pieces).find(|piece| piece.ticks <= ticks);
        begun.or(self.pieces.first()).map_or(UnixNanos(0), |piece| piece.unix(ticks))
    }

    /// From `begin` on (later than all that was converted before) time goes so that it agrees with a newer calibration at
    /// `end`.
    pub fn bend(&mut self, begin: Ticks, end: Ticks, newer: &Calibration) {
        if end <= begin || self.pieces.last().is_some_and(|last| last.ticks >= begin) {
            return;
        }
        let unix = self.unix(begin);
        let nanos = newer.unix(end).0 - unix.0;
        let nanos_per_tick = nanos.max(1) as f64 / (end.0 - begin.0) as f64;
        if self.pieces.len() == Self::MOST_PIECES {
            self.pieces.remove(0);
        }
        self.pieces.push(Calibration { ticks: begin, unix, nanos_per_tick });
    }
}

/// The beginning of a calibration.
#[derive(Clone, Copy, Debug)]
pub struct ClockStart {
    first: Pair,
    start: Pair,
}

impl ClockStart {
    /// Pairs the clocks now.
    #[must_use]
    pub fn measure() -> Self {
        // The first pair of the process gives short recordings a long base line for the speed of the counter.
        static FIRST: OnceLock<Pair> = OnceLock::new();
        let start = Pair::measure();
        Self { first: *FIRST.get_or_init(|| start), start }
    }

    /// Pairs the clocks again and converts everything in between.
    #[must_use]
    pub fn finish(&self) -> Calibration {
        self.until(Pair::measure())
    }

    fn until(&self, end: Pair) -> Calibration {
        let ticks = end.ticks.0.wrapping_sub(self.first.ticks.0);
        let nanos = end.monotonic - self.first.monotonic;
        let nanos_per_tick = if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 };
        // Wall time may be set while recording; a recording keeps the one it began with.
        let unix = UnixNanos(self.start.monotonic + self.start.offset);
        Calibration { ticks: self.start.ticks, unix, nanos_per_tick }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_between_two_pairs() {
        let pair = |ticks, monotonic| Pair { ticks: Ticks(ticks), monotonic, offset: 1_000_000_000_000 };
        let clock = ClockStart { first: pair(1_000, 50), start: pair(4_000, 1_050) };
        let calibration = clock.until(pair(10_000, 3_050));
        assert_eq!(calibration.unix(Ticks(4_000)), UnixNanos(1_000_000_001_050));
        assert_eq!(calibration.unix(Ticks(10_000)), UnixNanos(1_000_000_003_050));
        assert_eq!(
            calibration.unix(Ticks(1_000)),
            UnixNanos(1_000_000_000_050),
            "earlier than the start is fine too"
        );
    }

    #[test]
    fn a_better_calibration_makes_no_step() {
        let at = |ticks, unix, nanos_per_tick| Calibration {
            ticks: Ticks(ticks),
            unix: UnixNanos(unix),
            nanos_per_tick,
        };
        let mut line = TimeLine::fixed(at(1_000, 0, 1.0));
        assert_eq!(line.unix(Ticks(1_900)), UnixNanos(900));
        line.bend(Ticks(2_000), Ticks(3_000), &at(1_000, 0, 1.1));
        assert_eq!(line.unix(Ticks(1_900)), UnixNanos(900), "what was said stays");
        assert_eq!(line.unix(Ticks(2_000)), UnixNanos(1_000));
        assert_eq!(line.unix(Ticks(3_000)), UnixNanos(2_200));
        line.bend(Ticks(1_500), Ticks(4_000), &at(1_000, 0, 1.0));
        assert_eq!(line.unix(Ticks(3_000)), UnixNanos(2_200), "the past is not bent");
        for round in 0..1_000 {
            line.bend(Ticks(3_000 + round * 10), Ticks(3_010 + round * 10), &at(1_000, 0, 1.0));
        }
        assert!(line.unix(Ticks(20_000)).0 > line.unix(Ticks(12_000)).0);
    }

    #[test]
    fn wall_time_agrees_with_the_system() {
        let start = ClockStart::measure();
        let before = system_nanos(libc::CLOCK_REALTIME);
        let reading = now();
        let after = system_nanos(libc::CLOCK_REALTIME);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let unix = start.finish().unix(reading).0;
        let slack = 100_000; // an interrupted pair; far below anything a wrong unit or slope would give
        assert!(unix > before - slack && unix < after + slack, "{unix} is not within {before}..{after}");
    }

    #[test]
    fn time_does_not_run_backwards() {
        let readings: Vec<Ticks> = (0..1_000).map(|_| now()).collect();
        assert!(readings.is_sorted());
    }
}
