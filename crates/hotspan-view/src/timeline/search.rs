//! Spans and sampled calls over the whole trace: by a text or a pattern in their name and args, or of the same name as another. How many there
//! are, and any one of them.
//!
//! Patterns take time in proportion to the text they are looked for in, and a search ends after [`PATIENCE`]: neither a hostile pattern nor a
//! hostile trace keeps the server busy.

use hotspan_analyze::Model;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotspan_store::{Arg, SpanId, StringId};
use regex_lite::{Regex, RegexBuilder};

use super::Timeline;
use super::lanes::{NO_SPAN, Piece};
use super::tile::LONGEST_NAME;
use crate::api::{Found, Hit};

/// How long a search may take; it then answers with what it has found, and says so.
const PATIENCE: Duration = Duration::from_secs(5);
/// Letters of a pattern, and bytes of what it is made into.
const LONGEST_PATTERN: usize = 1000;
const LARGEST_PATTERN: usize = 1 << 16;
/// Letters of a text that are looked at.
const LONGEST_TEXT: usize = 4000;
/// Names of matches that are told: what has another name is drawn pale.
const MOST_NAMES: usize = 2000;
/// Searches that are kept, since next and previous ask again and again.
const KEPT: usize = 3;
/// Rows between two looks at the clock.
const ROWS: usize = 1024;

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// What has this in its name, whatever the case.
    Text {
        /// The text or pattern.
        text: String,
        /// Whether it is a regular expression.
        is_pattern: bool,
        /// Whether to look into args, as `key: value`, too.
        in_args: bool,
    },
    /// What has exactly this name.
    Name(StringId),
}

/// Where a match is: its beginning, track, lane and row.
type Match = (i64, u32, u16, u32);

/// All matches of a query.
#[derive(Debug, Default)]
struct Matches {
    /// In order of time.
    rows: Vec<Match>,
    names: Vec<String>,
    is_complete: bool,
}

/// The last searches, the latest last.
#[derive(Debug, Default)]
pub(super) struct Searches {
    last: Mutex<Vec<(Query, Arc<Matches>)>>,
}

/// Which of the matches is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// The one with this number in order of time; beyond the last the first comes again.
    Number(i64),
    /// The first that begins at this moment or later; the first of all when there is none.
    After(i64),
    /// So many after the one at this beginning, track and lane.
    Beside(i64, u32, u16, i64),
}

/// A regular expression that somebody wrote, whatever the case of letters; in words what is wrong with it.
pub(crate) fn pattern_of(text: &str) -> Result<Regex, String> {
    if text.len() > LONGEST_PATTERN {
        return Err(format!("A pattern may have up to {LONGEST_PATTERN} letters."));
    }
    let built = RegexBuilder::new(text).case_insensitive(true).size_limit(LARGEST_PATTERN).build();
    built.map_err(|error| format!("This is no regular expression: {error}."))
}

/// As much of a text as is looked at.
pub(crate) fn beginning(text: &str) -> &str {
    text.char_indices().nth(LONGEST_TEXT).map_or(text, |(end, _)| &text[..end])
}

enum Matcher {
    Text(String),
    Pattern(Regex),
    Name(StringId),
}

impl Matcher {
    fn of(query: &Query) -> Result<Self, String> {
        match query {
            Query::Name(name) => Ok(Self::Name(*name)),
            Query::Text { text, is_pattern: false, .. } => Ok(Self::Text(text.to_lowercase())),
            Query::Text { text, .. } => pattern_of(text).map(Self::Pattern),
        }
    }

    fn finds(&self, name: Option<StringId>, text: &str) -> bool {
        let text = beginning(text);
        match self {
            Self::Text(wanted) => text.to_lowercase().contains(wanted.as_str()),
            Self::Pattern(pattern) => pattern.is_match(text),
            Self::Name(wanted) => name == Some(*wanted),
        }
    }
}

/// A search while it goes on. Each name, and each text of an arg, is looked at once, however often it occurs.
struct Search<'m> {
    model: &'m Model,
    matcher: Matcher,
    in_args: bool,
    names: Vec<Option<bool>>,
    texts: HashMap<(StringId, StringId), bool>,
    until: Instant,
}

impl Search<'_> {
    fn finds(&mut self, piece: &Piece) -> bool {
        let (model, matcher) = (self.model, &self.matcher);
        let known = &mut self.names[piece.name.index()];
        *known.get_or_insert_with(|| matcher.finds(Some(piece.name), model.str(piece.name)))
            || (self.in_args && piece.span != NO_SPAN && self.finds_in_args(SpanId(piece.span)))
    }

    fn finds_in_args(&mut self, span: SpanId) -> bool {
        let (model, matcher, texts) = (self.model, &self.matcher, &mut self.texts);
        model.args(model.spans().args(span)).any(|(key, arg)| {
            let name = model.str(key.name);
            match arg {
                Arg::Int(number) => matcher.finds(None, &format!("{name}: {number}")),
                Arg::Float(number) => matcher.finds(None, &format!("{name}: {number}")),
                Arg::Text(text) | Arg::Json(text) => *texts
                    .entry((key.name, text))
                    .or_insert_with(|| matcher.finds(None, &format!("{name}: {}", model.str(text)))),
            }
        })
    }
}

impl Timeline {
    /// How many spans match, and one of them. A pattern that is none, as while somebody writes it, finds nothing.
    pub(crate) fn find(&self, model: &Model, query: Query, which: Which) -> Found {
        let none = Found { total: 0, place: 0, hit: None, names: Vec::new(), complete: true, problem: None };
        let matches = match self.matches(model, query) {
            Ok(matches) => matches,
            Err(problem) => return Found { problem: Some(problem), ..none },
        };
        let (rows, names) = (&matches.rows, matches.names.clone());
        let total = rows.len() as i64;
        let found = Found { names, complete: matches.is_complete, ..none };
        let place = match which {
            _ if total == 0 => return found,
            Which::Number(number) => number.rem_euclid(total),
            Which::After(time) => rows.partition_point(|found| found.0 < time) as i64 % total,
            Which::Beside(begin, track, depth, steps) => {
                let own =
                    rows.partition_point(|&(known, on, lane, _)| (known, on, lane) < (begin, track, depth));
                (own as i64).saturating_add(steps).rem_euclid(total)
            }
        };
        let (_, track, depth, row) = rows[place as usize];
        let lane = self.lanes(track).and_then(|lanes| lanes.lanes.get(usize::from(depth)));
        let hit = lane.map(|lane| self.hit(model, track, depth.into(), &lane.piece(row as usize)));
        Found { total: total.unsigned_abs(), place: place.unsigned_abs(), hit, ..found }
    }

    /// A span, and where it is drawn.
    pub(super) fn hit(&self, model: &Model, track: u32, depth: u32, piece: &Piece) -> Hit {
        let span = if piece.span == NO_SPAN { -1 } else { i64::from(piece.span) };
        let name = self.name(model, piece.name).to_owned();
        Hit { span, name, track, depth, begin: piece.begin, end: piece.end }
    }

    fn matches(&self, model: &Model, query: Query) -> Result<Arc<Matches>, String> {
        let kept = || self.searches.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, matches)) = kept().iter().find(|(known, _)| *known == query) {
            return Ok(Arc::clone(matches));
        }
        let matches = Arc::new(self.search(model, &query, Instant::now() + PATIENCE)?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((query, Arc::clone(&matches)));
        Ok(matches)
    }

    fn search(&self, model: &Model, query: &Query, until: Instant) -> Result<Matches, String> {
        let mut search = Search {
            model,
            matcher: Matcher::of(query)?,
            in_args: matches!(query, Query::Text { in_args: true, .. }),
            names: vec![None; model.strings().len()],
            texts: HashMap::new(),
            until,
        };
        let mut rows: Vec<Match> = Vec::new();
        let mut is_complete = true;
        'tracks: for (track, lanes) in self.tracks_with_lanes() {
            for (depth, lane) in lanes.lanes.iter().enumerate() {
                for row in 0..lane.names().len() {
                    let (piece, looked_at) = (lane.piece(row), search.texts.len());
                    if search.finds(&piece) {
                        rows.push((piece.begin, track, depth as u16, row as u32));
                    }
                    let is_costly = search.texts.len() > looked_at || row % ROWS == 0;
                    if is_costly && Instant::now() > search.until {
                        is_complete = false;
                        break 'tracks;
                    }
                }
            }
        }
        rows.sort_unstable();
        let names = self.names_of(model, &rows);
        Ok(Matches { rows, names, is_complete })
    }

    /// The names of matches, as tiles have them.
    fn names_of(&self, model: &Model, rows: &[Match]) -> Vec<String> {
        let mut known = vec![false; model.strings().len()];
        let mut names = Vec::new();
        for &(_, track, depth, row) in rows {
            let lane = self.lanes(track).and_then(|lanes| lanes.lanes.get(usize::from(depth)));
            let Some(&name) = lane.and_then(|lane| lane.names().get(row as usize)) else { continue };
            if !std::mem::replace(&mut known[name.index()], true) && names.len() < MOST_NAMES {
                names.push(model.str(name).chars().take(LONGEST_NAME).collect());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<Matcher, String> {
        Matcher::of(&Query::Text { text: text.to_owned(), is_pattern: true, in_args: false })
    }

    #[test]
    fn patterns_are_found_whatever_the_case() {
        let matcher = pattern("^aten::(mm|bmm)$").unwrap_or_else(|error| panic!("{error}"));
        assert!(matcher.finds(None, "aten::BMM"));
        assert!(!matcher.finds(None, "aten::addmm"));
    }

    #[test]
    fn what_is_no_pattern_or_too_large_is_refused() {
        for text in ["(", "a{1000}{1000}{1000}", &"(".repeat(900), &"x".repeat(2000), r"\p{Greek}("] {
            assert!(pattern(text).is_err(), "{text}");
        }
    }
}
