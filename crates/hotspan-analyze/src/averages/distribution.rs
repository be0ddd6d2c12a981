//! How long single calls took: what an average hides.

use hotspan_store::Duration;

/// Shortest, median, 99th percentile and longest call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The shortest.
    pub min: Duration,
    /// Half of the calls took no longer.
    pub p50: Duration,
    /// 99 of 100 calls took no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Distribution {
    /// The distribution of these times (nearest rank), which are left in another order. All zero for none.
    pub fn of(times: &mut [i64]) -> Self {
        let (Some(&min), Some(&max)) = (times.iter().min(), times.iter().max()) else {
            return Self::default();
        };
        let mut rank = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            *times.select_nth_unstable(index).1
        };
        let (p50, p99) = (rank(50), rank(99));
        Self { min: Duration(min), p50: Duration(p50), p99: Duration(p99), max: Duration(max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_calls_that_happened() {
        let mut times: Vec<i64> = (1..=200).rev().collect();
        let calls = Distribution::of(&mut times);
        assert_eq!((calls.min.0, calls.p50.0, calls.p99.0, calls.max.0), (1, 100, 198, 200));
        let calls = Distribution::of(&mut [7]);
        assert_eq!((calls.min.0, calls.p50.0, calls.p99.0, calls.max.0), (7, 7, 7, 7));
        assert_eq!(Distribution::of(&mut []), Distribution::default());
    }
}
