//! How busy a device was over time: the share of each part of a window in which it did anything.

use hotspan_store::Timestamp;

use crate::intervals::{Interval, Intervals};

/// The beginning of each of `parts` equal parts of `window`, and the percentage of it that `busy` covers.
#[must_use]
pub fn busy_curve(busy: &Intervals, window: Interval, parts: usize) -> Vec<(Timestamp, f64)> {
    let length = window.length().0;
    let parts = i64::try_from(parts).unwrap_or(i64::MAX).clamp(1, length.max(1));
    let edge = |part: i64| {
        // Exact, whatever the length: the product of the two may be too large for 64 bits.
        let offset = i128::from(length) * i128::from(part) / i128::from(parts);
        window.begin.0.saturating_add(i64::try_from(offset).unwrap_or(length))
    };
    let mut pieces = busy.parts();
    let mut curve = Vec::new();
    for part in 0..parts {
        let (begin, end) = (edge(part), edge(part + 1));
        let mut covered = 0;
        while let Some(piece) = pieces.first() {
            covered += (piece.end.0.min(end) - piece.begin.0.max(begin)).max(0);
            if piece.end.0 > end {
                break;
            }
            pieces = &pieces[1..];
        }
        if end > begin {
            curve.push((Timestamp(begin), covered as f64 / (end - begin) as f64 * 100.0));
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin: i64, end: i64) -> Interval {
        Interval::new(Timestamp(begin), Timestamp(end))
    }

    #[test]
    fn a_piece_over_several_parts_counts_in_each() {
        let busy: Intervals = [interval(5, 25), interval(30, 32), interval(36, 38)].into_iter().collect();
        let curve: Vec<_> =
            busy_curve(&busy, interval(0, 40), 4).into_iter().map(|(at, share)| (at.0, share)).collect();
        assert_eq!(curve, [(0, 50.0), (10, 100.0), (20, 50.0), (30, 40.0)]);
    }

    #[test]
    fn a_window_of_nothing_has_no_curve() {
        assert!(busy_curve(&Intervals::default(), interval(3, 3), 10).is_empty());
    }
}
