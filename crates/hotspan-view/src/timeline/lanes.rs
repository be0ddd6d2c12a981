//! Lanes: the spans of a thread or stream in rows whose spans do not overlap, so that time is found by binary search.

use hotspan_store::StringId;

use super::pyramid::{Pyramid, Rectangle};

/// Lanes below this are not kept: no screen shows them, and a hostile trace could nest each span in the one before.
pub(super) const DEEPEST: usize = 400;
/// No span: a sampled call.
pub(super) const NO_SPAN: u32 = u32::MAX;

/// A span, or a call that samples saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) name: StringId,
    pub(crate) category: u16,
    pub(crate) span: u32,
}

/// Pieces of one depth, in order of time, none overlapping another.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    begin: Vec<i64>,
    end: Vec<i64>,
    name: Vec<StringId>,
    category: Vec<u16>,
    span: Vec<u32>,
    pyramid: Pyramid,
}

impl Lane {
    /// The names, in order of time.
    pub(crate) fn names(&self) -> &[StringId] {
        &self.name
    }

    pub(crate) fn piece(&self, row: usize) -> Piece {
        Piece {
            begin: self.begin[row],
            end: self.end[row],
            name: self.name[row],
            category: self.category[row],
            span: self.span[row],
        }
    }

    /// The piece at a moment: one that has it inside, or begins there.
    pub(crate) fn at(&self, time: i64) -> Option<Piece> {
        let row = self.begin.partition_point(|&begin| begin <= time).checked_sub(1)?;
        (time < self.end[row] || time == self.begin[row]).then(|| self.piece(row))
    }

    /// Tells `show` what is drawn of a stretch of time when a column is `1 << shift` nanoseconds.
    pub(super) fn draw(&self, range: (i64, i64), shift: u32, show: impl FnMut(Rectangle)) {
        self.pyramid.draw((&self.begin, &self.end), range, shift, show);
    }

    fn push(&mut self, piece: &Piece) {
        self.begin.push(piece.begin);
        self.end.push(piece.end);
        self.name.push(piece.name);
        self.category.push(piece.category);
        self.span.push(piece.span);
    }
}

/// The lanes of a thread or stream.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) lanes: Vec<Lane>,
    pub(super) pieces: u64,
    /// Pieces too deep to be kept.
    pub(super) hidden: u64,
}

impl Lanes {
    /// Of pieces in order of their beginnings, outer ones first.
    ///
    /// A piece lies below all that enclose it. Those that merely overlap it (kernels on one stream) do not push it further down
    /// than the first free lane.
    pub(super) fn of(pieces: &[Piece]) -> Self {
        let mut result = Self::default();
        let mut ends: Vec<i64> = Vec::new();
        for piece in pieces {
            while ends.last().is_some_and(|&end| end <= piece.begin) {
                ends.pop();
            }
            let encloses = |&end: &i64| end > piece.begin && end >= piece.end;
            let least = ends.iter().rposition(encloses).map_or(0, |lane| lane + 1);
            let free = ends[least..].iter().position(|&end| end <= piece.begin);
            let depth = free.map_or(ends.len(), |lane| least + lane);
            if depth >= DEEPEST {
                result.pieces += 1;
                result.hidden += 1;
                continue;
            }
            match ends.get_mut(depth) {
                Some(end) => *end = piece.end,
                None => ends.push(piece.end),
            }
            result.add(depth, piece);
        }
        result.finish();
        result
    }

    pub(super) fn add(&mut self, depth: usize, piece: &Piece) {
        if self.lanes.len() <= depth {
            self.lanes.resize_with(depth + 1, Lane::default);
        }
        self.pieces += 1;
        self.lanes[depth].push(piece);
    }

    /// To be called when all pieces are in.
    pub(super) fn finish(&mut self) {
        for lane in &mut self.lanes {
            lane.pyramid = Pyramid::of(&lane.begin, &lane.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depths(pieces: &[(i64, i64)]) -> Vec<Vec<(i64, i64)>> {
        let piece = |&(begin, end)| Piece { begin, end, name: StringId(0), category: 0, span: 0 };
        let lanes = Lanes::of(&pieces.iter().map(piece).collect::<Vec<_>>());
        let rows = |lane: &Lane| lane.begin.iter().copied().zip(lane.end.iter().copied()).collect();
        lanes.lanes.iter().map(rows).collect()
    }

    #[test]
    fn what_is_enclosed_lies_below() {
        let lanes = depths(&[(0, 100), (10, 50), (20, 30), (60, 90), (100, 110)]);
        assert_eq!(lanes, [vec![(0, 100), (100, 110)], vec![(10, 50), (60, 90)], vec![(20, 30)]]);
    }

    #[test]
    fn what_overlaps_for_long_needs_two_lanes_only() {
        let chain: Vec<(i64, i64)> = (0..1000).map(|row| (row * 10, row * 10 + 15)).collect();
        assert_eq!(depths(&chain).len(), 2);
    }
}
