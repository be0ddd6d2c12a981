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

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        match self.0.unsigned_abs() {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.3} us", nanos / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} ms", nanos / 1e6),
            _ => write!(f, "{:.3} s", nanos / 1e9),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0.unsigned_abs() {
            0..1_024 => write!(f, "{} B", self.0),
            1_024..1_048_576 => write!(f, "{:.2} KB", bytes / 1024.0),
            1_048_576..1_073_741_824 => write!(f, "{:.2} MB", bytes / 1_048_576.0),
            _ => write!(f, "{:.2} GB", bytes / 1_073_741_824.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_their_unit() {
        assert_eq!(Duration(999).to_string(), "999 ns");
        assert_eq!(Duration(1_234_567).to_string(), "1.235 ms");
        assert_eq!(Bytes(-2048).to_string(), "-2.00 KB");
    }

    #[test]
    fn absurd_times_saturate() {
        assert_eq!(Timestamp(i64::MAX).plus(Duration(1)), Timestamp(i64::MAX));
        assert_eq!(Duration(i64::MIN) - Duration(1), Duration(i64::MIN));
    }
}
