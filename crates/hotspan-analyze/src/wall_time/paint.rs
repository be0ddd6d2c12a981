//! A line of time that is painted over: at every moment it has one colour, and the totals add up to its length.

use hotspan_store::{Duration, Timestamp};

use super::{Activity, Interval};

/// What a thread did, without gaps or overlaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    /// Where each stretch begins, in order; it ends where the next begins.
    stretches: Vec<(Timestamp, Activity)>,
    end: Timestamp,
}

impl Timeline {
    pub(super) fn new(begin: Timestamp, end: Timestamp, activity: Activity) -> Self {
        Self { stretches: vec![(begin, activity)], end }
    }

    /// From its beginning to its end.
    pub(super) fn length(&self) -> Duration {
        self.stretches.first().map_or(Duration::ZERO, |(begin, _)| self.end.since(*begin))
    }

    /// Repaints the intervals, which are in order and apart. `repaint` is asked about each stretch under them and may leave
    /// it as it is.
    pub(super) fn paint(&mut self, intervals: &[Interval], repaint: impl Fn(&Activity) -> Option<Activity>) {
        let Some(&(first, _)) = intervals.first() else { return };
        // Samples come one at a time and in order: what lies before them is left alone.
        let keep = self.stretches.partition_point(|(begin, _)| *begin <= first).saturating_sub(1);
        let rest: Vec<_> = self.stretches.drain(keep..).collect();
        let mut intervals = intervals.iter().copied().peekable();
        for (index, (begin, activity)) in rest.iter().enumerate() {
            let end = rest.get(index + 1).map_or(self.end, |(begin, _)| *begin);
            let mut at = *begin;
            while let Some(&(from, to)) = intervals.peek() {
                if from >= end {
                    break;
                }
                let (from, until) = (from.max(at), to.min(end));
                if until > from {
                    self.push(at, activity.clone(), from);
                    self.push(from, repaint(activity).unwrap_or_else(|| activity.clone()), until);
                    at = until;
                }
                if to > end {
                    break;
                }
                intervals.next();
            }
            self.push(at, activity.clone(), end);
        }
    }

    fn push(&mut self, begin: Timestamp, activity: Activity, end: Timestamp) {
        let goes_on = self.stretches.last().is_some_and(|(_, last)| *last == activity);
        if end > begin && !goes_on {
            self.stretches.push((begin, activity));
        }
    }

    /// The stretches of one activity, in order.
    pub(super) fn when(&self, wanted: &Activity) -> Vec<Interval> {
        let ends = self.stretches.iter().skip(1).map(|(begin, _)| *begin).chain([self.end]);
        let all = self.stretches.iter().zip(ends);
        all.filter(|((_, activity), _)| activity == wanted).map(|((begin, _), end)| (*begin, end)).collect()
    }

    /// How long each activity took.
    pub(super) fn totals(&self) -> Vec<(Activity, Duration)> {
        let mut totals: hashbrown::HashMap<&Activity, Duration> = hashbrown::HashMap::new();
        for (index, (begin, activity)) in self.stretches.iter().enumerate() {
            let end = self.stretches.get(index + 1).map_or(self.end, |(begin, _)| *begin);
            *totals.entry(activity).or_insert(Duration::ZERO) += end.since(*begin);
        }
        let mut totals: Vec<_> =
            totals.into_iter().map(|(activity, time)| (activity.clone(), time)).collect();
        totals.retain(|(_, time)| time.0 > 0);
        totals.sort();
        totals
    }
}

/// Sorts intervals and joins those that touch.
pub(super) fn unite(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(from: i64, to: i64) -> Interval {
        (Timestamp(from), Timestamp(to))
    }

    #[test]
    fn paint_covers_what_it_covers_and_no_more() {
        let mut timeline = Timeline::new(Timestamp(0), Timestamp(100), Activity::Python);
        timeline.paint(&[at(10, 30), at(50, 60)], |_| Some(Activity::Operators));
        timeline.paint(&[at(-5, 15), at(25, 55), at(90, 200)], |_| Some(Activity::Io));
        timeline.paint(&[at(0, 100)], |before| (*before == Activity::Python).then_some(Activity::Sleeping));
        let totals = timeline.totals();
        let of =
            |wanted: Activity| totals.iter().find(|(activity, _)| *activity == wanted).map(|found| found.1.0);
        assert_eq!(of(Activity::Operators), Some(10 + 5));
        assert_eq!(of(Activity::Io), Some(15 + 30 + 10));
        assert_eq!(of(Activity::Sleeping), Some(30));
        assert_eq!(totals.iter().map(|(_, time)| time.0).sum::<i64>(), 100);
    }

    #[test]
    fn intervals_that_touch_are_one() {
        let mut intervals = vec![at(5, 7), at(0, 3), at(2, 5), at(9, 10), at(9, 9)];
        unite(&mut intervals);
        assert_eq!(intervals, [at(0, 7), at(9, 10)]);
    }
}
