//! Spans and sampled calls by a text in their name, over the whole trace: how many there are, and any one of them.

use hotspan_analyze::Model;
use std::sync::{Arc, Mutex, PoisonError};

use super::Timeline;
use super::lanes::NO_SPAN;
use crate::api::{Found, Hit};

/// Where a match is: its beginning, track, lane and row.
type Match = (i64, u32, u16, u32);

/// The matches of the last text, since next and previous ask again and again.
#[derive(Debug, Default)]
pub(super) struct Searches {
    last: Mutex<Option<(String, Arc<Vec<Match>>)>>,
}

/// Which of the matches is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// The one with this number in order of time; beyond the last the first comes again.
    Number(i64),
    /// The first that begins at this moment or later; the first of all when there is none.
    After(i64),
}

impl Timeline {
    /// How many spans have `text` in their name, whatever the case, and one of them.
    pub(crate) fn find(&self, model: &Model, text: &str, which: Which) -> Found {
        let matches = self.matches(model, text);
        let total = matches.len() as i64;
        let place = match which {
            _ if total == 0 => return Found { total: 0, place: 0, hit: None },
            Which::Number(number) => number.rem_euclid(total),
            Which::After(time) => matches.partition_point(|found| found.0 < time) as i64 % total,
        };
        let (_, track, depth, row) = matches[place as usize];
        let hit = self.lanes(track).and_then(|lanes| lanes.lanes.get(usize::from(depth))).map(|lane| {
            let piece = lane.piece(row as usize);
            let span = if piece.span == NO_SPAN { -1 } else { i64::from(piece.span) };
            let name = model.str(piece.name).to_owned();
            Hit { span, name, track, depth: depth.into(), begin: piece.begin, end: piece.end }
        });
        Found { total: total.unsigned_abs(), place: place.unsigned_abs(), hit }
    }

    fn matches(&self, model: &Model, text: &str) -> Arc<Vec<Match>> {
        let wanted = text.to_lowercase();
        let mut last = self.searches.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, matches)) = last.as_ref().filter(|(known, _)| *known == wanted) {
            return Arc::clone(matches);
        }
        *last = None;
        // Each name is looked at once, however often it occurs.
        let mut known: Vec<Option<bool>> = vec![None; model.strings().len()];
        let mut matches: Vec<Match> = Vec::new();
        for (track, lanes) in self.tracks_with_lanes() {
            for (depth, lane) in lanes.lanes.iter().enumerate() {
                for (row, &name) in lane.names().iter().enumerate() {
                    let matched = &mut known[name.index()];
                    if *matched.get_or_insert_with(|| model.str(name).to_lowercase().contains(&wanted)) {
                        matches.push((lane.piece(row).begin, track, depth as u16, row as u32));
                    }
                }
            }
        }
        matches.sort_unstable();
        let matches = Arc::new(matches);
        *last = Some((wanted, Arc::clone(&matches)));
        matches
    }
}
