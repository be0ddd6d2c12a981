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

    /// The first row that begins at a moment or later; the number of rows where none does.
    pub(super) fn first_from(&self, time: i64) -> usize {
        self.begin.partition_point(|&begin| begin < time)
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

    /// Whether nothing is there from `begin` to `end`; what has no length takes a place all the same.
    fn is_free(&self, begin: i64, end: i64) -> bool {
        let first = self.end.partition_point(|&known| known <= begin);
        self.begin.get(first).is_none_or(|&known| known >= end && known > begin)
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

/// A piece lies above the shorter ones that it crosses when it is this many times as long.
const LONGER: i64 = 2;

/// Which pieces are crossed by one that begins within them, ends after them and is much longer: as an annotation that a short call
/// opened. What lies within such a piece goes with it.
fn crossed(count: usize, piece: impl Fn(usize) -> Piece) -> Vec<bool> {
    let mut crossed = vec![false; count];
    let mut open: Vec<(usize, Piece)> = Vec::new();
    for row in 0..count {
        let piece = piece(row);
        while open.last().is_some_and(|(_, other)| other.end <= piece.begin) {
            open.pop();
        }
        let length = |piece: &Piece| piece.end.saturating_sub(piece.begin);
        for (other_row, other) in open.iter().rev().take_while(|(_, other)| other.end < piece.end) {
            let is_shorter = length(other).saturating_mul(LONGER) <= length(&piece);
            let overlaps = other.end > piece.begin && other.begin < piece.begin;
            crossed[*other_row] |= overlaps && is_shorter;
        }
        // So many at once are no calls of a thread, and to compare all of them would take long.
        if open.len() < DEEPEST {
            open.push((row, piece));
        }
    }
    if !crossed.contains(&true) {
        return crossed;
    }
    let mut until = i64::MIN;
    for (row, crossed) in crossed.iter_mut().enumerate() {
        let piece = piece(row);
        if *crossed {
            until = until.max(piece.end);
        } else if piece.begin < until && piece.end <= until {
            *crossed = true;
        }
    }
    crossed
}

/// Lanes while pieces are put into them in order of time: when each is free again.
#[derive(Default)]
struct Ends(Vec<i64>);

impl Ends {
    /// The lane below all that enclose a piece; those that are free again at the end are forgotten.
    fn below(&mut self, piece: &Piece) -> usize {
        while self.0.last().is_some_and(|&end| end <= piece.begin) {
            self.0.pop();
        }
        let encloses = |&end: &i64| end > piece.begin && end >= piece.end;
        self.0.iter().rposition(encloses).map_or(0, |lane| lane + 1)
    }

    fn is_free(&self, lane: usize, time: i64) -> bool {
        self.0.get(lane).is_none_or(|&end| end <= time)
    }

    fn take(&mut self, lane: usize, end: i64) {
        if self.0.len() <= lane {
            self.0.resize(lane + 1, i64::MIN);
        }
        self.0[lane] = end;
    }
}

impl Lanes {
    /// Of so many pieces in order of their beginnings, outer ones first.
    ///
    /// A piece lies below all that enclose it. Those that merely overlap it (kernels on one stream) do not push it further down
    /// than the first free lane. Short ones that a long one crosses lie below it, so that no lane stays empty above the long one.
    pub(super) fn of(count: usize, piece: impl Fn(usize) -> Piece) -> Self {
        let crossed = crossed(count, &piece);
        let mut result = Self::default();
        let mut ends = Ends::default();
        let mut below: Vec<(Piece, usize)> = Vec::new();
        for (row, crossed) in crossed.into_iter().enumerate() {
            let piece = piece(row);
            let least = ends.below(&piece);
            if crossed {
                below.push((piece, least));
                continue;
            }
            let lane = (least..).find(|&lane| ends.is_free(lane, piece.begin)).unwrap_or(least);
            if result.place(lane, &piece) {
                ends.take(lane, piece.end);
            }
        }
        result.add_crossed(&below);
        result.finish();
        result
    }

    /// Adds pieces that others cross, each with the lane below what encloses it: where neither those others nor they themselves are.
    fn add_crossed(&mut self, below: &[(Piece, usize)]) {
        let mut ends = Ends::default();
        let mut added: Vec<Vec<Piece>> = Vec::new();
        for &(ref piece, least) in below {
            let least = least.max(ends.below(piece));
            let is_free = |&lane: &usize| {
                ends.is_free(lane, piece.begin)
                    && self.lanes.get(lane).is_none_or(|known| known.is_free(piece.begin, piece.end))
            };
            let lane = (least..).find(is_free).unwrap_or(least);
            if lane >= DEEPEST {
                self.pieces += 1;
                self.hidden += 1;
                continue;
            }
            ends.take(lane, piece.end);
            if added.len() <= lane {
                added.resize_with(lane + 1, Vec::new);
            }
            added[lane].push(*piece);
        }
        for (lane, pieces) in added.iter().enumerate().filter(|(_, pieces)| !pieces.is_empty()) {
            let known = self.lanes.get_mut(lane).map(std::mem::take).unwrap_or_default();
            let mut all: Vec<Piece> = (0..known.begin.len()).map(|row| known.piece(row)).collect();
            self.pieces -= all.len() as u64;
            all.extend(pieces);
            all.sort_by_key(|piece| (piece.begin, piece.end));
            all.iter().for_each(|piece| self.add(lane, piece));
        }
    }

    /// Adds a piece, or counts it where it would lie too deep; says whether it was added.
    fn place(&mut self, lane: usize, piece: &Piece) -> bool {
        if lane >= DEEPEST {
            self.pieces += 1;
            self.hidden += 1;
            return false;
        }
        self.add(lane, piece);
        true
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
        let lanes = Lanes::of(pieces.len(), |row| piece(&pieces[row]));
        let rows = |lane: &Lane| lane.begin.iter().copied().zip(lane.end.iter().copied()).collect();
        lanes.lanes.iter().map(rows).collect()
    }

    #[test]
    fn what_is_enclosed_lies_below() {
        let lanes = depths(&[(0, 100), (10, 50), (20, 30), (60, 90), (100, 110)]);
        assert_eq!(lanes, [vec![(0, 100), (100, 110)], vec![(10, 50), (60, 90)], vec![(20, 30)]]);
    }

    #[test]
    fn what_a_long_one_crosses_lies_below_it() {
        // A step, in which a call that calls another opens an annotation; a call within that; a call that closes it.
        let step = (0, 1000);
        let lanes = depths(&[step, (10, 30), (12, 28), (13, 15), (20, 900), (40, 700), (880, 910)]);
        assert_eq!(
            lanes,
            [
                vec![step],
                vec![(20, 900)],
                vec![(10, 30), (40, 700), (880, 910)],
                vec![(12, 28)],
                vec![(13, 15)]
            ]
        );
    }

    #[test]
    fn whatever_crosses_all_are_seen_and_none_over_another() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as i64
        };
        for _ in 0..300 {
            let mut pieces: Vec<(i64, i64)> = (0..60)
                .map(|_| {
                    let begin = next(200);
                    (begin, begin + next(1 << (1 + begin % 7)))
                })
                .collect();
            pieces.sort_by_key(|&(begin, end)| (begin, std::cmp::Reverse(end)));
            let lanes = depths(&pieces);
            assert!(lanes.iter().all(|lane| !lane.is_empty()), "{lanes:?}");
            assert!(lanes.iter().all(|lane| lane.windows(2).all(|pair| pair[0].1 <= pair[1].0)), "{lanes:?}");
            let mut drawn = lanes.concat();
            drawn.sort_by_key(|&(begin, end)| (begin, std::cmp::Reverse(end)));
            assert_eq!(drawn, pieces);
        }
    }

    #[test]
    fn what_overlaps_for_long_needs_two_lanes_only() {
        let chain: Vec<(i64, i64)> = (0..1000).map(|row| (row * 10, row * 10 + 15)).collect();
        assert_eq!(depths(&chain).len(), 2);
    }
}
