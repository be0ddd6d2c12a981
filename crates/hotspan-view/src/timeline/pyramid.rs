//! Less and less detail: what of a lane is drawn when a column of pixels is so many nanoseconds.
//!
//! Pieces that are narrower than a column and begin in the same one become one rectangle. Columns are powers of two of nanoseconds
//! and begin at multiples of themselves, so neighbouring tiles agree. Where that makes a lane much shorter the result is kept:
//! the whole of five million spans is then read from a few thousand rectangles.

/// A level is kept when it is this much shorter than the one below.
const SHORTER: usize = 8;
/// So few need no further level.
const FEW: usize = 1024;

/// What is drawn: one piece, or several that share a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub(super) begin: i64,
    pub(super) end: i64,
    /// The row of its longest piece.
    pub(super) row: u32,
    /// How long that is.
    pub(super) longest: i64,
    /// How many pieces it stands for.
    pub(super) count: u32,
}

#[derive(Debug)]
struct Level {
    shift: u32,
    rectangles: Vec<Rectangle>,
}

/// The levels of a lane, the finest first.
#[derive(Debug, Default)]
pub(super) struct Pyramid {
    levels: Vec<Level>,
}

/// Puts together what shares a column, in order of time.
struct Merger<F> {
    shift: u32,
    open: Option<Rectangle>,
    show: F,
}

impl<F: FnMut(Rectangle)> Merger<F> {
    fn new(shift: u32, show: F) -> Self {
        Self { shift, open: None, show }
    }

    fn push(&mut self, next: Rectangle) {
        let narrow = next.end.saturating_sub(next.begin) >> self.shift == 0;
        if let Some(open) = &mut self.open {
            if narrow && open.begin >> self.shift == next.begin >> self.shift {
                open.end = next.end;
                open.count = open.count.saturating_add(next.count);
                if next.longest > open.longest {
                    (open.longest, open.row) = (next.longest, next.row);
                }
                return;
            }
            (self.show)(*open);
        }
        self.open = Some(next);
        if !narrow {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            (self.show)(open);
        }
    }
}

/// Row `row` of a lane as a rectangle.
fn single(begin: &[i64], end: &[i64], row: usize) -> Rectangle {
    let (begin, end) = (begin[row], end[row]);
    Rectangle { begin, end, row: row as u32, longest: end.saturating_sub(begin), count: 1 }
}

impl Pyramid {
    /// Of pieces in order of time, none overlapping another.
    pub(super) fn of(begin: &[i64], end: &[i64]) -> Self {
        // How many begin less than so many bits after the one before: at most as many disappear.
        let mut close = [0_usize; 64];
        for pair in begin.windows(2) {
            let gap = pair[1].saturating_sub(pair[0]).max(0).unsigned_abs();
            close[(u64::BITS - gap.leading_zeros()).min(63) as usize] += 1;
        }
        let mut levels: Vec<Level> = Vec::new();
        let mut rows = begin.len();
        let mut gone = 0;
        for (shift, &here) in (0_u32..).zip(&close) {
            gone += here;
            if rows <= FEW {
                break;
            }
            if begin.len() - gone > rows / SHORTER {
                continue;
            }
            let mut rectangles = Vec::new();
            let mut merger = Merger::new(shift, |rectangle| rectangles.push(rectangle));
            match levels.last() {
                Some(finer) => finer.rectangles.iter().for_each(|&next| merger.push(next)),
                None => (0..begin.len()).for_each(|row| merger.push(single(begin, end, row))),
            }
            merger.finish();
            if rectangles.len() <= rows / SHORTER {
                rows = rectangles.len();
                rectangles.shrink_to_fit();
                levels.push(Level { shift, rectangles });
            }
        }
        Self { levels }
    }

    /// Tells `show` what is drawn from `from` to `to` when a column is `1 << shift` nanoseconds.
    pub(super) fn draw(
        &self,
        (begin, end): (&[i64], &[i64]),
        (from, to): (i64, i64),
        shift: u32,
        show: impl FnMut(Rectangle),
    ) {
        let mut merger = Merger::new(shift, show);
        match self.levels.iter().rev().find(|level| level.shift <= shift) {
            Some(Level { rectangles, .. }) => {
                let first = rectangles.partition_point(|known| known.end < from);
                let inside = rectangles[first..].iter().take_while(|known| known.begin < to);
                inside.for_each(|&next| merger.push(next));
            }
            None => {
                let first = end.partition_point(|&end| end < from);
                let last = begin.partition_point(|&begin| begin < to);
                (first..last).for_each(|row| merger.push(single(begin, end, row)));
            }
        }
        merger.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of short pieces and a long one now and then, as in real traces.
    fn pieces(count: i64) -> (Vec<i64>, Vec<i64>) {
        let mut time = 0;
        let rows = (0..count).map(|row| {
            let begin = time + row * 7919 % 300 + if row % 1000 == 0 { 200_000 } else { 0 };
            let length = if row % 97 == 0 { 9_000 } else { 3 + row * 31 % 120 };
            time = begin + length;
            (begin, time)
        });
        rows.unzip()
    }

    fn drawn(pyramid: &Pyramid, begin: &[i64], end: &[i64], range: (i64, i64), shift: u32) -> Vec<Rectangle> {
        let mut found = Vec::new();
        pyramid.draw((begin, end), range, shift, |rectangle| found.push(rectangle));
        found
    }

    #[test]
    fn every_piece_is_drawn_or_counted_at_every_detail() {
        let (begin, end) = pieces(60_000);
        let pyramid = Pyramid::of(&begin, &end);
        assert!(pyramid.levels.len() >= 2, "{} levels", pyramid.levels.len());
        let whole = (0, i64::MAX);
        for shift in 0..40 {
            let found = drawn(&pyramid, &begin, &end, whole, shift);
            assert_eq!(found.iter().map(|one| one.count as usize).sum::<usize>(), begin.len(), "{shift}");
            assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].begin), "{shift}");
            // At most a narrow one and a wide one in each column.
            let columns = (end[end.len() - 1] >> shift) as usize + 1;
            assert!(found.len() <= 2 * columns, "{} in {columns} columns", found.len());
        }
    }

    #[test]
    fn without_levels_the_same_is_drawn() {
        let (begin, end) = pieces(60_000);
        let (pyramid, plain) = (Pyramid::of(&begin, &end), Pyramid::default());
        for shift in [10, 14, 20, 30] {
            let total = |found: &[Rectangle]| found.iter().map(|one| u64::from(one.count)).sum::<u64>();
            let range = (5_000 << 4, 1 << 22);
            let (with, without) =
                (drawn(&pyramid, &begin, &end, range, shift), drawn(&plain, &begin, &end, range, shift));
            // At the edges a level may show what shares a column with the first and the last.
            assert!(total(&with) >= total(&without));
            assert!(with.len().abs_diff(without.len()) <= without.len() / 3 + 2, "{shift}");
        }
    }
}
