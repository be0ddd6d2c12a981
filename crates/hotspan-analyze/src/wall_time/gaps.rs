//! Stretches of time that no sample stands for: the sampler was off, or could not look.
//!
//! A sample stands for its weight. The weights of a thread add up to its time, so what lies further from its neighbours than
//! they stand for was not recorded, and nobody may guess what the thread did there.

use hotspan_store::{SampleRow, SampleState, Timestamp};

use super::Interval;

/// Shorter stretches are the jitter of a sampler that runs.
const SHORTEST: i64 = 500_000_000;

/// The stretches between samples of one thread, which are in order of time, and between them and the limits of the program.
pub(super) fn between(samples: &[SampleRow], program: Option<Interval>) -> Vec<Interval> {
    // At a low rate a period is longer than jitter, and the first and last one are not complete.
    let running = samples.iter().filter(|row| row.state == SampleState::Running);
    let period = running.map(|row| row.weight.0).min().unwrap_or(0);
    let shortest = SHORTEST.max(period.saturating_mul(2));
    let mut gaps = Vec::new();
    let mut covered = program.map(|(begin, _)| begin);
    let mut add = |from: Option<Timestamp>, to: Timestamp| {
        gaps.extend(from.filter(|from| to.0.saturating_sub(from.0) > shortest).map(|from| (from, to)));
    };
    for sample in samples {
        let weight = sample.weight.0.max(0);
        add(covered, Timestamp(sample.time.0.saturating_sub(weight)));
        covered = covered.max(Some(Timestamp(sample.time.0.saturating_add(weight))));
    }
    if let (Some((_, end)), false) = (program, samples.is_empty()) {
        add(covered, end);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Duration, StackId, TrackId};

    use super::*;

    fn sample(time: i64, weight: i64, state: SampleState) -> SampleRow {
        SampleRow {
            time: Timestamp(time * 1_000_000),
            track: TrackId(0),
            stack: StackId::NONE,
            weight: Duration(weight * 1_000_000),
            state,
            gil: false,
        }
    }

    fn gaps(samples: &[SampleRow], program: Option<(i64, i64)>) -> Vec<(i64, i64)> {
        let at = |time: i64| Timestamp(time * 1_000_000);
        let found = between(samples, program.map(|(begin, end)| (at(begin), at(end))));
        found.into_iter().map(|(from, to)| (from.0 / 1_000_000, to.0 / 1_000_000)).collect()
    }

    #[test]
    fn what_no_sample_stands_for_is_a_gap() {
        use SampleState::{Running, Sleep};
        let early = [sample(10, 10, Running), sample(20, 10, Running)];
        assert_eq!(gaps(&early, Some((0, 3000))), [(30, 3000)], "the sampler ended");
        assert_eq!(gaps(&early, None), []);
        let slept = [sample(10, 10, Running), sample(20, 2980, Sleep)];
        assert_eq!(gaps(&slept, Some((0, 3000))), [], "one sample stands for all of a wait");
        let paused = [sample(10, 10, Running), sample(2000, 10, Running)];
        assert_eq!(gaps(&paused, Some((0, 2300))), [(20, 1990)]);
        let late = [sample(1000, 10, Running)];
        assert_eq!(gaps(&late, Some((0, 1200))), [(0, 990)]);
        let slow = [sample(900, 1000, Running), sample(1900, 1000, Running)];
        assert_eq!(gaps(&slow, Some((0, 3000))), [], "one sample a second");
        assert_eq!(gaps(&[], Some((0, 3000))), []);
    }
}
