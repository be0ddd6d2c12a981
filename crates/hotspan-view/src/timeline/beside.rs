//! What lies beside a span: the one before and after in its lane, above and below it. So keys alone reach every span, however many there are.

use hotspan_analyze::Model;
use serde::Deserialize;

use super::Timeline;
use super::lanes::Lane;
use crate::api::Hit;

/// Where to look from a span.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Towards {
    /// The one before it in its lane.
    Left,
    /// The one after it in its lane.
    Right,
    /// The one around it.
    Up,
    /// The first within it.
    Down,
    /// The one at this moment, or the nearest.
    Near,
}

impl Lane {
    /// The row nearest to a moment.
    fn near(&self, time: i64) -> Option<usize> {
        let next = self.first_from(time);
        let away = |row: usize| {
            let piece = self.piece(row);
            piece.begin.saturating_sub(time).max(time.saturating_sub(piece.end))
        };
        let rows = [next.checked_sub(1), (next < self.names().len()).then_some(next)];
        rows.into_iter().flatten().min_by_key(|&row| away(row))
    }
}

impl Timeline {
    /// What lies beside the span that begins at `time` in a lane; `None` where there is nothing.
    pub(crate) fn beside(
        &self,
        model: &Model,
        track: u32,
        depth: u32,
        time: i64,
        to: Towards,
    ) -> Option<Hit> {
        let lanes = &self.any_lanes(model, track)?.lanes;
        let own = lanes.get(depth as usize)?;
        let hit =
            |depth: usize, row: usize| Some(self.hit(model, track, depth as u32, &lanes[depth].piece(row)));
        let depth = depth as usize;
        match to {
            Towards::Left => hit(depth, own.first_from(time).checked_sub(1)?),
            Towards::Right => {
                let next = own.first_from(time.saturating_add(1));
                if next < own.names().len() { hit(depth, next) } else { None }
            }
            Towards::Near => hit(depth, own.near(time)?),
            Towards::Up => {
                let around = lanes[..depth].iter().enumerate().rev();
                let mut found = around.filter_map(|(lane, known)| Some((lane, known.at(time)?)));
                found.next().map(|(lane, piece)| self.hit(model, track, lane as u32, &piece))
            }
            Towards::Down => {
                let end = own.at(time)?.end;
                let within = lanes.iter().enumerate().skip(depth + 1);
                let mut first = within.map(|(lane, known)| (lane, known.first_from(time)));
                let (lane, row) = first.find(|&(lane, row)| {
                    row < lanes[lane].names().len() && lanes[lane].piece(row).begin < end
                })?;
                hit(lane, row)
            }
        }
    }
}
