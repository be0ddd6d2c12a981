//! Which stretch of time each sample of a thread answers for.
//!
//! Each moment belongs to the nearest sample. That is not all: a sample stands for its weight, which is how long a wait
//! was, or how long code ran and queued for a processor. A thread that waits briefly and often is found waiting at one of
//! many moments, for all of them. So a sample that stands for more than the time around it gets the rest from neighbours
//! that have more than they stand for.

use hotspan_store::{SampleRow, Timestamp};

use super::Interval;

/// How much further away than its weight such a neighbour may be: a sampler saves up short waits for no longer before it
/// finds one.
const NEAR: i64 = 100_000_000;
/// How many samples on each side are asked at most, whatever a file says about times and weights.
const NEIGHBOURS: usize = 32;

/// The stretch of each sample, in the order of `samples`, which is that of time. The outermost reach as far as they stand
/// for, or to the limits of the program where these are known.
pub(super) fn of(samples: &[SampleRow], program: Option<Interval>) -> Vec<Interval> {
    let mut cursor = begin(samples, program);
    let mut lengths = lengths_by_moments(samples, program);
    for index in 0..samples.len() {
        take_from_neighbours(samples, &mut lengths, index);
    }
    let mut next = |length: &i64| {
        let from = cursor;
        cursor = cursor.saturating_add(*length);
        (Timestamp(from), Timestamp(cursor))
    };
    lengths.iter().map(&mut next).collect()
}

fn begin(samples: &[SampleRow], program: Option<Interval>) -> i64 {
    let first = samples.first().map_or(0, |sample| sample.time.0.saturating_sub(weight(sample) / 2));
    program.map_or(first, |(begin, _)| begin.0)
}

fn weight(sample: &SampleRow) -> i64 {
    sample.weight.0.max(0)
}

fn lengths_by_moments(samples: &[SampleRow], program: Option<Interval>) -> Vec<i64> {
    let mut cursor = begin(samples, program);
    let length = |(index, sample): (usize, &SampleRow)| {
        let next = samples.get(index + 1).map(|next| sample.time.0.midpoint(next.time.0));
        let end = next.or(program.map(|(_, end)| end.0));
        let end = end.unwrap_or(sample.time.0.saturating_add(weight(sample) / 2)).max(cursor);
        let length = end.saturating_sub(cursor);
        cursor = end;
        length
    };
    samples.iter().enumerate().map(length).collect()
}

fn take_from_neighbours(samples: &[SampleRow], lengths: &mut [i64], index: usize) {
    let (time, weight_here) = (samples[index].time.0, weight(&samples[index]));
    let mut missing = weight_here.saturating_sub(lengths[index]);
    let reach = NEAR.saturating_add(weight_here).unsigned_abs();
    for distance in 1..=NEIGHBOURS {
        for other in [index.checked_sub(distance), index.checked_add(distance)].into_iter().flatten() {
            let Some(neighbour) = samples.get(other) else { continue };
            if missing > 0 && neighbour.time.0.abs_diff(time) <= reach {
                let taken = lengths[other].saturating_sub(weight(neighbour)).clamp(0, missing);
                lengths[other] -= taken;
                lengths[index] += taken;
                missing -= taken;
            }
        }
        if missing <= 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Duration, SampleState, StackId, TrackId};

    use super::*;

    fn row(time: i64, weight: i64) -> SampleRow {
        let (time, weight) = (Timestamp(time), Duration(weight));
        SampleRow {
            time,
            weight,
            track: TrackId(0),
            stack: StackId::NONE,
            state: SampleState::Running,
            gil: false,
        }
    }

    fn covered(samples: &[(i64, i64)], program: Option<(i64, i64)>) -> Vec<(i64, i64)> {
        let ms = 1_000_000;
        let samples: Vec<SampleRow> =
            samples.iter().map(|&(time, weight)| row(time * ms, weight * ms)).collect();
        let found = of(&samples, program.map(|(begin, end)| (Timestamp(begin * ms), Timestamp(end * ms))));
        found.into_iter().map(|(from, to)| (from.0 / ms, to.0 / ms)).collect()
    }

    #[test]
    fn moments_belong_to_the_nearest_sample() {
        assert_eq!(covered(&[(100, 10), (110, 10)], None), [(95, 105), (105, 115)]);
        assert_eq!(covered(&[(10, 10), (1010, 10)], Some((0, 1100))), [(0, 510), (510, 1100)]);
        assert_eq!(covered(&[(500, 10)], Some((0, 600))), [(0, 600)]);
        assert_eq!(covered(&[], None), []);
    }

    #[test]
    fn a_sample_gets_what_it_stands_for() {
        // Code that ran for 10 ms and queued for 40 ms between waits, which are found every 10 ms.
        let found = covered(&[(10, 10), (20, 10), (25, 50), (30, 10), (80, 20)], Some((0, 100)));
        assert_eq!(found, [(0, 10), (10, 20), (20, 70), (70, 80), (80, 100)]);
        let found = covered(&[(10, 10), (20, 2980), (3010, 10)], Some((0, 3020)));
        assert_eq!(found, [(0, 10), (10, 2990), (2990, 3020)], "one sample is all of a wait");
        let found = covered(&[(10, 10), (20, 60), (300, 10)], Some((0, 320)));
        assert_eq!(found, [(0, 15), (15, 160), (160, 320)], "what nobody stands for is divided");
    }

    #[test]
    fn times_and_weights_of_a_file_may_be_anything() {
        let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
        let samples = extremes.map(|time| extremes.map(|weight| row(time, weight))).concat();
        for program in
            [None, Some((Timestamp(5), Timestamp(-5))), Some((Timestamp(i64::MIN), Timestamp(i64::MAX)))]
        {
            let found = of(&samples, program);
            assert_eq!(found.len(), samples.len());
            assert!(found.iter().all(|(from, to)| from <= to), "{found:?}");
        }
    }
}
