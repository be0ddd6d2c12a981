//! Which of the first steps are warm-up: slow in a way the others are not.

use super::steps::Step;

/// A step is warm-up when it takes this many times as long as the middle one of those after it.
const WARM_UP: i64 = 2;

/// How many of the first steps are slow in a way the others are not. At most one, and only where three or more tell
/// what is normal.
pub(super) fn warm_up(steps: &[Step]) -> usize {
    let Some((first, rest)) = steps.split_first().filter(|(_, rest)| rest.len() >= 2) else { return 0 };
    let mut times: Vec<i64> = rest.iter().map(|step| step.duration.0).collect();
    times.sort_unstable();
    let (middle, longest) = (times[times.len() / 2], times[times.len() - 1]);
    // Where steps differ anyway, one that differs says little.
    let mut distances: Vec<i64> =
        times.iter().map(|time| time.saturating_sub(middle).saturating_abs()).collect();
    distances.sort_unstable();
    let spread = distances[distances.len() / 2].saturating_mul(5);
    let limit = middle
        .saturating_mul(WARM_UP)
        .max(longest.saturating_add(longest / 5))
        .max(middle.saturating_add(spread));
    usize::from(first.duration.0 > limit)
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Duration, Timestamp};

    use super::*;

    fn steps(durations: &[i64]) -> Vec<Step> {
        let step = |(number, &duration): (usize, &i64)| Step {
            number: number as i64,
            begin: Timestamp(number as i64 * 1000),
            duration: Duration(duration),
        };
        durations.iter().enumerate().map(step).collect()
    }

    #[test]
    fn a_first_step_unlike_the_others_is_warm_up() {
        assert_eq!(warm_up(&steps(&[500, 100, 110, 90])), 1);
        assert_eq!(warm_up(&steps(&[150, 100, 110, 90])), 0);
        // One of the others is as slow: the machine is noisy, not cold.
        assert_eq!(warm_up(&steps(&[500, 100, 480, 90])), 0);
        assert_eq!(warm_up(&steps(&[260, 100, 40, 160, 120])), 0);
        assert_eq!(warm_up(&steps(&[500, 100])), 0);
    }
}
