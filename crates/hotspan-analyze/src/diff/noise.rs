//! Noise or change: whether two lists of times differ by more than they differ within themselves.
//!
//! With five values or more on both sides a rank test (Mann and Whitney's U, at 2 %): it asks how often a value of one side
//! is below one of the other, so a single slow step does not matter. With three or four it takes values that do not
//! overlap, with a gap as wide as either side's range. Below that nobody can tell. A difference under 1 % is noise anyway.

/// What a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More than noise.
    Change,
    /// Not more than the steps differ among themselves.
    Noise,
    /// Too few steps to tell.
    Unknown,
    /// Only in the second trace.
    New,
    /// Only in the first trace.
    Gone,
}

impl Verdict {
    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Noise => "noise",
            Self::Unknown => "unknown",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// The middle value; 0 of none.
pub(super) fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    match sorted.len() {
        0 => 0,
        count if count % 2 == 1 => sorted[count / 2],
        count => {
            let (low, high) = (sorted[count / 2 - 1], sorted[count / 2]);
            low.saturating_add(high.saturating_sub(low) / 2)
        }
    }
}

/// Judges the difference of two lists.
pub(super) fn verdict(before: &[i64], after: &[i64]) -> Verdict {
    let fewest = before.len().min(after.len());
    if fewest < 3 {
        return Verdict::Unknown;
    }
    let (middle_before, middle_after) = (median(before), median(after));
    let difference = middle_after.saturating_sub(middle_before).saturating_abs();
    if difference.saturating_mul(100) < middle_before.max(middle_after) {
        return Verdict::Noise;
    }
    let differs = if fewest < 5 { is_apart(before, after) } else { score(before, after) >= TWO_PERCENT };
    if differs { Verdict::Change } else { Verdict::Noise }
}

/// Standard deviations beyond which 2 % of a normal distribution lie, both sides together.
const TWO_PERCENT: f64 = 2.326;

/// Whether the ranges leave a gap between them that is as wide as each of them.
fn is_apart(before: &[i64], after: &[i64]) -> bool {
    let range = |values: &[i64]| {
        let least = values.iter().min().copied().unwrap_or(0);
        (least, values.iter().max().copied().unwrap_or(0))
    };
    let (before, after) = (range(before), range(after));
    let (lower, upper) = if before.0 <= after.0 { (before, after) } else { (after, before) };
    let gap = upper.0.saturating_sub(lower.1);
    gap > 0 && gap >= lower.1.saturating_sub(lower.0).max(upper.1.saturating_sub(upper.0))
}

/// How many standard deviations the ranks are from what chance would give.
fn score(before: &[i64], after: &[i64]) -> f64 {
    let mut all: Vec<(i64, bool)> =
        before.iter().map(|&value| (value, true)).chain(after.iter().map(|&value| (value, false))).collect();
    all.sort_unstable();
    let (first, second) = (before.len() as f64, after.len() as f64);
    let count = first + second;
    let (mut ranks, mut ties, mut position) = (0.0, 0.0, 0);
    while position < all.len() {
        let equal = all[position..].iter().take_while(|(value, _)| *value == all[position].0).count();
        // Equal values share the middle of their ranks.
        let rank = position as f64 + (equal as f64 + 1.0) / 2.0;
        ranks +=
            rank * all[position..position + equal].iter().filter(|(_, is_first)| *is_first).count() as f64;
        let equal_count = equal as f64;
        ties += equal_count * equal_count * equal_count - equal_count;
        position += equal;
    }
    let statistic = ranks - first * (first + 1.0) / 2.0;
    let expected = first * second / 2.0;
    let variance = first * second / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
    if variance <= 0.0 { 0.0 } else { ((statistic - expected).abs() - 0.5).max(0.0) / variance.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_between() {
        assert_eq!((median(&[]), median(&[3, 1, 2]), median(&[1, 2, 4, 9])), (0, 2, 3));
    }

    #[test]
    fn values_that_overlap_are_noise() {
        assert_eq!(verdict(&[100, 110, 90, 105, 95], &[104, 92, 112, 99, 96]), Verdict::Noise);
        assert_eq!(verdict(&[100, 110, 90], &[108, 95, 111]), Verdict::Noise);
    }

    #[test]
    fn values_apart_are_a_change_though_one_step_was_slow() {
        assert_eq!(verdict(&[100, 104, 90, 105, 95, 99], &[130, 128, 135, 131, 129, 9000]), Verdict::Change);
        assert_eq!(verdict(&[100, 101, 102], &[150, 151, 152]), Verdict::Change);
    }

    #[test]
    fn too_few_steps_tell_nothing_and_equal_ones_are_equal() {
        assert_eq!(verdict(&[100, 100], &[500, 500]), Verdict::Unknown);
        assert_eq!(verdict(&[7; 6], &[7; 6]), Verdict::Noise);
        assert_eq!(verdict(&[0; 3], &[0; 3]), Verdict::Noise);
    }

    #[test]
    fn the_score_is_that_of_the_textbook() {
        // U = 0 of 5 against 5: (12.5 - 0.5) / sqrt(25 * 11 / 12).
        assert!((score(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]) - 12.0 / (275.0_f64 / 12.0).sqrt()).abs() < 1e-9);
    }
}
