//! Tiles: a stretch of some tracks at one level of detail, as bytes that the page reads without parsing.
//!
//! A tile of level `n` is 1024 columns of `2^n` nanoseconds; its index counts tiles from the trace's zero, so the page asks for
//! the same ones again and again and keeps them. The bytes, all little-endian:
//!
//! | bytes | are |
//! |---|---|
//! | 4 | length of the head |
//! | 4 | zero |
//! | length | the head: [`TileHead`] as JSON, padded with spaces to a multiple of 8 |
//! | 8 each | where rectangles begin, `f64`: exact below 2^53 nanoseconds, 104 days |
//! | 8 each | where they end |
//! | 8 each | times of counter values |
//! | 8 each | counter values |
//! | 4 each | the span of a rectangle; 2^32 - 1 where it is a sampled call or several |
//! | 4 each | its look: a name and a kind |
//! | 4 each | how many it stands for |
//!
//! Rectangles are in the order of the head: track by track, lane by lane, by time.

use hotspan_analyze::Model;
use std::collections::HashMap;

use axum::body::Bytes;
use hotspan_store::StringId;

use super::Timeline;
use super::lanes::{Lanes, NO_SPAN};
use crate::api::{Look, TileCounter, TileHead, TileTrack};

/// Columns of a tile, as a power of two.
pub(crate) const COLUMNS: u32 = 10;
/// The coarsest level: one tile of it holds any trace.
pub(crate) const COARSEST: u32 = 52;
/// Longer names are cut in tiles; a span's details have all of it.
pub(super) const LONGEST_NAME: usize = 160;

/// What a tile is made of while it grows.
struct Tile<'a> {
    timeline: &'a Timeline,
    model: &'a Model,
    head: TileHead,
    looks: HashMap<(StringId, u16), u32>,
    begin: Vec<f64>,
    end: Vec<f64>,
    time: Vec<f64>,
    value: Vec<f64>,
    span: Vec<u32>,
    look: Vec<u32>,
    count: Vec<u32>,
}

impl Timeline {
    /// The tile of this level and index.
    pub(crate) fn tile(&self, model: &Model, tracks: &[u32], level: u32, index: i64) -> Bytes {
        let level = level.min(COARSEST);
        let width = level + COLUMNS;
        let from = index.checked_mul(1 << width).unwrap_or(i64::MAX);
        self.stretch(model, tracks, (from, from.saturating_add(1 << width)), level).bytes()
    }

    /// The whole in the form of a tile: the finest level that takes at most so many bytes, and whether every span is drawn by itself there.
    pub(crate) fn picture(&self, model: &Model, tracks: &[u32], most_bytes: usize) -> (u32, Bytes, bool) {
        let whole = (self.begin, self.end.saturating_add(1));
        let length = self.end.saturating_sub(self.begin).unsigned_abs();
        // As coarse as one screen; each finer level takes up to twice as much.
        let mut level = (u64::BITS - length.leading_zeros()).saturating_sub(COLUMNS).min(COARSEST);
        let mut drawn = self.stretch(model, tracks, whole, level);
        while level > 0 {
            let finer = self.stretch(model, tracks, whole, level - 1);
            if finer.size() > most_bytes {
                break;
            }
            (level, drawn) = (level - 1, finer);
        }
        let is_exact = drawn.count.iter().all(|&count| count == 1) && self.hidden() == 0;
        (level, drawn.bytes(), is_exact)
    }

    /// Any stretch of time, in the form of a tile.
    fn stretch<'a>(&'a self, model: &'a Model, tracks: &[u32], range: (i64, i64), level: u32) -> Tile<'a> {
        let mut tile = Tile {
            timeline: self,
            model,
            head: TileHead { looks: Vec::new(), tracks: Vec::new(), counters: Vec::new() },
            looks: HashMap::new(),
            begin: Vec::new(),
            end: Vec::new(),
            time: Vec::new(),
            value: Vec::new(),
            span: Vec::new(),
            look: Vec::new(),
            count: Vec::new(),
        };
        for &id in tracks {
            if let Some(lanes) = self.any_lanes(model, id) {
                tile.add_lanes(id, lanes, range, level);
            } else if let Some(counter) = self.counter(id) {
                let before = tile.time.len();
                counter.draw(range, level, |time, value| {
                    tile.time.push(time as f64);
                    tile.value.push(value);
                });
                tile.head.counters.push(TileCounter { id, count: (tile.time.len() - before) as u32 });
            }
        }
        tile
    }
}

impl Tile<'_> {
    fn add_lanes(&mut self, id: u32, lanes: &Lanes, range: (i64, i64), level: u32) {
        let mut counts = Vec::new();
        for lane in &lanes.lanes {
            let before = self.begin.len();
            lane.draw(range, level, |rectangle| {
                let piece = lane.piece(rectangle.row as usize);
                let look = self.look(piece.name, piece.category);
                self.begin.push(rectangle.begin as f64);
                self.end.push(rectangle.end as f64);
                self.span.push(if rectangle.count > 1 { NO_SPAN } else { piece.span });
                self.look.push(look);
                self.count.push(rectangle.count);
            });
            counts.push((self.begin.len() - before) as u32);
        }
        self.head.tracks.push(TileTrack { id, lanes: counts });
    }

    fn look(&mut self, name: StringId, category: u16) -> u32 {
        *self.looks.entry((name, category)).or_insert_with(|| {
            let text = self.timeline.name(self.model, name);
            let end = text.char_indices().nth(LONGEST_NAME).map_or(text.len(), |(end, _)| end);
            self.head.looks.push(Look { name: text[..end].to_owned(), category: category.into() });
            self.head.looks.len() as u32 - 1
        })
    }

    /// The bytes of its columns.
    fn size(&self) -> usize {
        self.begin.len() * 28 + self.time.len() * 16
    }

    fn bytes(self) -> Bytes {
        let mut head = serde_json::to_vec(&self.head).unwrap_or_default();
        head.resize(head.len().next_multiple_of(8), b' ');
        let wide = [&self.begin, &self.end, &self.time, &self.value];
        let narrow = [&self.span, &self.look, &self.count];
        let mut bytes = Vec::with_capacity(head.len() + 8 + self.size());
        bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&head);
        for column in wide {
            column.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }
        for column in narrow {
            column.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }
        bytes.into()
    }
}
