//! Arithmetic on sets of time: union, difference, intersection, length. Everything that must add up is built on it.
//!
//! A set is kept as intervals that are sorted, not empty, and neither overlap nor touch, so that each operation is one
//! walk over both sets. Making a set costs one sort. Lengths are whole nanoseconds: what is split adds up exactly.

use hotspan_store::{Duration, Timestamp};

/// From `begin` to just before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// When it begins.
    pub begin: Timestamp,
    /// When it is over.
    pub end: Timestamp,
}

impl Interval {
    /// The time between two points; empty when `end` is not later.
    #[must_use]
    pub fn new(begin: Timestamp, end: Timestamp) -> Self {
        Self { begin, end: end.max(begin) }
    }

    /// How long it is.
    #[must_use]
    pub fn length(self) -> Duration {
        self.end.since(self.begin)
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.begin >= self.end
    }

    /// The part inside another.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self::new(self.begin.max(other.begin), self.end.min(other.end))
    }
}

/// A set of moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    parts: Vec<Interval>,
}

impl From<Interval> for Intervals {
    fn from(interval: Interval) -> Self {
        Self { parts: if interval.is_empty() { Vec::new() } else { vec![interval] } }
    }
}

impl FromIterator<Interval> for Intervals {
    /// The union of intervals in any order, overlapping or not.
    fn from_iter<I: IntoIterator<Item = Interval>>(intervals: I) -> Self {
        let mut parts: Vec<Interval> =
            intervals.into_iter().filter(|interval| !interval.is_empty()).collect();
        // Files are nearly in order of time, which this sort makes use of.
        parts.sort_by_key(|interval| interval.begin);
        parts.dedup_by(|next, last| {
            let joins = next.begin <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        Self { parts }
    }
}

impl Intervals {
    /// The intervals, in order of time, apart from each other.
    #[must_use]
    pub fn parts(&self) -> &[Interval] {
        &self.parts
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How much time it is.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.parts.iter().map(|interval| interval.length()).sum()
    }

    /// From its first moment to its last; `None` when there is nothing in it.
    #[must_use]
    pub fn hull(&self) -> Option<Interval> {
        Some(Interval::new(self.parts.first()?.begin, self.parts.last()?.end))
    }

    /// What is in one of the two.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.parts.iter().chain(&other.parts).copied().collect()
    }

    /// What is in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.parts.as_slice(), other.parts.as_slice());
        let mut parts = Vec::new();
        while let (Some(&one), Some(&two)) = (left.first(), right.first()) {
            let both = one.within(two);
            if !both.is_empty() {
                parts.push(both);
            }
            if one.end <= two.end {
                left = &left[1..];
            } else {
                right = &right[1..];
            }
        }
        Self { parts }
    }

    /// What is in this one only.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let mut taken = other.parts.as_slice();
        let mut parts = Vec::new();
        for &interval in &self.parts {
            let mut rest = interval;
            while let Some(&hole) = taken.first() {
                if hole.begin >= rest.end {
                    break;
                }
                if hole.begin > rest.begin {
                    parts.push(Interval::new(rest.begin, hole.begin));
                }
                rest = Interval::new(hole.end.clamp(rest.begin, rest.end), rest.end);
                if hole.end > interval.end {
                    // The hole reaches into the next interval.
                    break;
                }
                taken = &taken[1..];
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
        }
        Self { parts }
    }

    /// The part inside one interval. Two binary searches and a copy: asking for many windows costs what they hold.
    #[must_use]
    pub fn clip(&self, window: Interval) -> Self {
        let parts = self.touching(window).iter().map(|interval| interval.within(window));
        Self { parts: parts.filter(|interval| !interval.is_empty()).collect() }
    }

    /// How much time of it is inside one interval.
    #[must_use]
    pub fn length_within(&self, window: Interval) -> Duration {
        self.touching(window).iter().map(|interval| interval.within(window).length()).sum()
    }

    /// The time of `window` that is not in this set: the gaps.
    #[must_use]
    pub fn gaps(&self, window: Interval) -> Self {
        Self::from(window).subtract(&self.clip(window))
    }

    fn touching(&self, window: Interval) -> &[Interval] {
        let first = self.parts.partition_point(|interval| interval.end <= window.begin);
        let last = self.parts.partition_point(|interval| interval.begin < window.end);
        &self.parts[first..last.max(first)]
    }
}

/// A piece of time with what it is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled<T> {
    /// When.
    pub interval: Interval,
    /// What.
    pub label: T,
}

/// Cuts overlapping intervals into pieces that do not overlap: at each moment the largest label wins. Pieces come in
/// order of time.
#[must_use]
pub fn flatten<T: Copy + Ord>(intervals: &[Labelled<T>]) -> Vec<Labelled<T>> {
    let mut ordered: Vec<Labelled<T>> =
        intervals.iter().copied().filter(|piece| !piece.interval.is_empty()).collect();
    ordered.sort_by_key(|piece| piece.interval.begin);
    // Those that have begun, the largest label on top; what has ended is taken out when it comes to the top.
    let mut open = std::collections::BinaryHeap::<(T, Timestamp)>::new();
    let mut pieces: Vec<Labelled<T>> = Vec::new();
    let mut now = ordered.first().map_or(Timestamp(0), |piece| piece.interval.begin);
    let mut coming = ordered.into_iter().peekable();
    loop {
        while open.peek().is_some_and(|&(_, end)| end <= now) {
            open.pop();
        }
        while let Some(next) = coming.next_if(|next| next.interval.begin <= now) {
            open.push((next.label, next.interval.end));
        }
        let next_begin = coming.peek().map(|next| next.interval.begin);
        match (open.peek().copied(), next_begin) {
            (Some((label, end)), next_begin) => {
                let until = next_begin.map_or(end, |begin| begin.min(end));
                let piece = Labelled { interval: Interval::new(now, until), label };
                match pieces.last_mut() {
                    Some(last) if last.label == label && last.interval.end == now => {
                        last.interval.end = until;
                    }
                    _ => pieces.push(piece),
                }
                now = until;
            }
            (None, Some(begin)) => now = begin,
            (None, None) => return pieces,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin: i64, end: i64) -> Interval {
        Interval::new(Timestamp(begin), Timestamp(end))
    }

    fn set(parts: &[(i64, i64)]) -> Intervals {
        parts.iter().map(|&(begin, end)| interval(begin, end)).collect()
    }

    #[test]
    fn a_set_is_sorted_and_joined() {
        assert_eq!(set(&[(5, 7), (0, 2), (1, 3), (3, 4), (9, 9), (8, 6)]), set(&[(0, 4), (5, 7)]));
        assert_eq!(set(&[(0, 10), (2, 3)]).parts(), [interval(0, 10)]);
        assert_eq!(set(&[(0, 2), (5, 9)]).length(), Duration(6));
        assert_eq!(set(&[(0, 2), (5, 9)]).hull(), Some(interval(0, 9)));
        assert_eq!(set(&[]).hull(), None);
    }

    #[test]
    fn differences() {
        let day = set(&[(0, 10), (20, 30)]);
        assert_eq!(day.subtract(&set(&[(2, 4), (6, 7)])), set(&[(0, 2), (4, 6), (7, 10), (20, 30)]));
        assert_eq!(day.subtract(&set(&[(5, 25)])), set(&[(0, 5), (25, 30)]));
        assert_eq!(day.subtract(&set(&[(-5, 40)])), set(&[]));
        assert_eq!(day.subtract(&set(&[(10, 20)])), day);
        assert_eq!(day.gaps(interval(-5, 25)), set(&[(-5, 0), (10, 20)]));
    }

    #[test]
    fn intersections() {
        let day = set(&[(0, 10), (20, 30)]);
        assert_eq!(day.intersect(&set(&[(5, 25), (29, 50)])), set(&[(5, 10), (20, 25), (29, 30)]));
        assert_eq!(day.clip(interval(9, 21)), set(&[(9, 10), (20, 21)]));
        assert_eq!(day.length_within(interval(9, 21)), Duration(2));
        assert_eq!(day.length_within(interval(11, 19)), Duration(0));
    }

    /// Against sets of single moments, on every pair of small sets that a linear generator makes.
    #[test]
    fn agrees_with_sets_of_moments() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as i64
        };
        let moments = |set: &Intervals| -> Vec<i64> {
            set.parts().iter().flat_map(|part| part.begin.0..part.end.0).collect()
        };
        for _ in 0..2_000 {
            let mut random = || -> Intervals {
                let count = next(6);
                (0..count)
                    .map(|_| {
                        let begin = next(40);
                        interval(begin, begin + next(9))
                    })
                    .collect()
            };
            let (left, right) = (random(), random());
            let (in_left, in_right) = (moments(&left), moments(&right));
            let both: Vec<i64> = in_left.iter().copied().filter(|moment| in_right.contains(moment)).collect();
            let only: Vec<i64> =
                in_left.iter().copied().filter(|moment| !in_right.contains(moment)).collect();
            assert_eq!(moments(&left.intersect(&right)), both);
            assert_eq!(moments(&left.subtract(&right)), only);
            assert_eq!(left.union(&right).length().0 as usize, in_right.len() + only.len());
        }
    }

    #[test]
    fn the_largest_label_wins_each_moment() {
        let labelled = |begin, end, label| Labelled { interval: interval(begin, end), label };
        let pieces =
            flatten(&[labelled(0, 10, 1), labelled(2, 4, 3), labelled(3, 6, 2), labelled(20, 21, 1)]);
        let expected = [
            labelled(0, 2, 1),
            labelled(2, 4, 3),
            labelled(4, 6, 2),
            labelled(6, 10, 1),
            labelled(20, 21, 1),
        ];
        assert_eq!(pieces, expected);
        assert_eq!(flatten::<u8>(&[]), []);
        assert_eq!(flatten(&[labelled(0, 5, 1), labelled(5, 5, 9), labelled(5, 8, 1)]), [labelled(0, 8, 1)]);
    }
}
