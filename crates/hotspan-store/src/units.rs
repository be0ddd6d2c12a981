//! Units as types: points in time, lengths of time, amounts of memory.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A point in time: nanoseconds since the first event of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Timestamp(pub i64);

/// A length of time in nanoseconds. Negative only where a file said so (counted as a loss, never clamped silently).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Duration(pub i64);

/// An amount of memory in bytes; negative when memory was released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Bytes(pub i64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Microseconds, the unit of torch's tables and of Chrome traces.
    #[must_use]
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl Timestamp {
    /// The later of an event's end; saturates instead of overflowing on absurd input.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// How long after `earlier` this is.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! arithmetic {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl std::iter::Sum for $unit {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self(0), Add::add)
            }
        }
    )*};
}
arithmetic!(Duration, Bytes);

/// A number with three digits that count, and no more decimals than `most`.
#[must_use]
pub fn digits(value: f64, most: usize) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let (mut decimals, mut limit) = (0, 99.95);
    while decimals < most && size < limit {
        (decimals, limit) = (decimals + 1, limit / 10.0);
    }
    format!("{value:.decimals$}")
}

/// Writes a value with the largest unit of which it has one, rounded; `step` of a unit are the next.
fn scaled(f: &mut fmt::Formatter<'_>, value: i64, units: &[(f64, &str)], step: f64) -> fmt::Result {
    let (value, size) = (value as f64, value.unsigned_abs() as f64);
    let (factor, name) =
        units.iter().find(|(factor, _)| size >= factor * (1.0 - 0.5 / step)).unwrap_or(&(1.0, ""));
    let name = if name.is_empty() { units.last().map_or("", |unit| unit.1) } else { name };
    if *factor == 1.0 {
        write!(f, "{value} {name}")
    } else {
        write!(f, "{} {name}", digits(value / factor, 2))
    }
}

const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const SIZES: &[(f64, &str)] = &[
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1_024.0, "KiB"),
    (1.0, "B"),
];

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, TIMES, 1_000.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, SIZES, 1_024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_their_unit() {
        let times = [0, 999, 1_000, 1_234_567, 12_345_678, -176_345_678, 999_949_999, 4_000_000_000_000];
        let shown = ["0 ns", "999 ns", "1.00 µs", "1.23 ms", "12.3 ms", "-176 ms", "1.00 s", "4000 s"];
        assert_eq!(times.map(|time| Duration(time).to_string()), shown);
        let sizes = [1, 1_023, -2_048, 12_656_312, 1_073_741_823];
        let shown = ["1 B", "1023 B", "-2.00 KiB", "12.1 MiB", "1.00 GiB"];
        assert_eq!(sizes.map(|size| Bytes(size).to_string()), shown);
    }

    #[test]
    fn three_digits_count() {
        let values = [0.0, 0.007_575_757_575_757_576, 9.999, 99.96, 1_696.7, -25.83];
        assert_eq!(values.map(|value| digits(value, 6)), ["0", "0.00758", "10.0", "100", "1697", "-25.8"]);
        assert_eq!([0.007_575, 0.5, 33.333].map(|share| digits(share, 2)), ["0.01", "0.50", "33.3"]);
    }

    #[test]
    fn absurd_times_saturate() {
        assert_eq!(Timestamp(i64::MAX).plus(Duration(1)), Timestamp(i64::MAX));
        assert_eq!(Duration(i64::MIN) - Duration(1), Duration(i64::MIN));
    }
}
