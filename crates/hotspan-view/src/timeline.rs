//! Spans as they are drawn. Each thread or stream is a stack of lanes whose spans do not overlap; a request for a stretch of time
//! gets at most about one rectangle per pixel and lane, found by binary search, so its cost does not grow with the trace.
//!
//! Where several spans share a pixel, one rectangle stands for them and says how many.

use std::collections::HashMap;

use hotspan_analyze::summary;
use hotspan_store::{Category, StringId, Trace, TrackId};

use crate::api::{Band, Spans, TimelineInfo, TrackInfo, TrackSpans};

/// Lanes below this are not kept: no screen shows them, and a hostile trace could nest each span in the one before.
const DEEPEST: usize = 400;
const RECORD: &str = "hotspan run train.py";
/// No span: a sample.
const NO_SPAN: u32 = u32::MAX;

/// Spans of one depth of a thread, in order of time, none overlapping another.
#[derive(Debug, Default)]
struct Lane {
    begin: Vec<i64>,
    end: Vec<i64>,
    name: Vec<u32>,
    category: Vec<u16>,
    span: Vec<u32>,
}

#[derive(Debug, Default)]
struct Lanes {
    lanes: Vec<Lane>,
    spans: u64,
    hidden: u64,
    device: bool,
}

/// All of a trace.
#[derive(Debug)]
pub(crate) struct Timeline {
    tracks: Vec<Lanes>,
    begin: i64,
    end: i64,
}

/// A span before it has its lane.
#[derive(Clone, Copy)]
struct Piece {
    begin: i64,
    end: i64,
    name: StringId,
    category: u16,
    span: u32,
}

impl Timeline {
    /// Sorts the spans of a trace into lanes.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); trace.tracks().len()];
        let spans = trace.spans();
        for span in spans.ids() {
            let category = spans.category(span);
            // The recording itself would cover everything.
            if trace.category(category) == Category::Recording {
                continue;
            }
            let (begin, end) = (spans.time(span).0, spans.end(span).0);
            let piece = Piece {
                begin,
                end: end.max(begin),
                name: spans.name(span),
                category: category.0,
                span: span.0,
            };
            pieces[spans.track(span).index()].push(piece);
        }
        let (begin, length) = trace.window();
        let mut tracks: Vec<Lanes> = pieces
            .into_iter()
            .map(|mut pieces| {
                pieces.sort_unstable_by_key(|piece| (piece.begin, std::cmp::Reverse(piece.end), piece.span));
                Lanes::of(trace, &pieces)
            })
            .collect();
        add_samples(trace, &mut tracks);
        Self { tracks, begin: begin.0, end: begin.plus(length).0 }
    }

    /// What there is to draw.
    pub(crate) fn info(&self, trace: &Trace) -> TimelineInfo {
        let mut order: Vec<usize> =
            (0..self.tracks.len()).filter(|&track| self.tracks[track].spans > 0).collect();
        order.sort_by_key(|&index| {
            let track = &trace.tracks()[index];
            let process = trace.process(track.process);
            (process.sort_index.unwrap_or(0), track.process, track.sort_index.unwrap_or(0), index)
        });
        let tracks = order.into_iter().map(|index| {
            let (process, name) = track_names(trace, TrackId::at(index));
            let lanes = &self.tracks[index];
            TrackInfo {
                id: index as u32,
                process,
                name,
                device: lanes.device,
                depth: lanes.lanes.len() as u32,
                spans: lanes.spans,
            }
        });
        let steps = summary(trace).steps.into_iter().map(|step| Band {
            name: step.number.to_string(),
            begin: step.begin.0,
            end: step.begin.plus(step.duration).0,
        });
        TimelineInfo {
            begin: self.begin,
            end: self.end,
            tracks: tracks.collect(),
            steps: steps.collect(),
            categories: trace
                .categories()
                .map(|(_, name, _)| name.to_owned())
                .chain(["sample".to_owned()])
                .collect(),
            hidden: self.tracks.iter().map(|track| track.hidden).sum(),
            record: RECORD.to_owned(),
        }
    }

    /// What is seen of `tracks` from `from` to `to` on `width` pixels.
    pub(crate) fn spans(&self, trace: &Trace, tracks: &[u32], from: i64, to: i64, width: u32) -> Spans {
        let pixel = (to.saturating_sub(from) / i64::from(width.max(1))).max(1);
        let mut names = Names { trace, texts: Vec::new(), places: HashMap::new() };
        let mut shown = Vec::new();
        for &id in tracks {
            let Some(lanes) = self.tracks.get(id as usize) else { continue };
            let mut out = TrackSpans {
                id,
                begin: Vec::new(),
                end: Vec::new(),
                depth: Vec::new(),
                name: Vec::new(),
                category: Vec::new(),
                span: Vec::new(),
                count: Vec::new(),
            };
            for (depth, lane) in lanes.lanes.iter().enumerate() {
                lane.within(from, to, pixel, |place, last| {
                    let several = last > place + 1;
                    out.begin.push(lane.begin[place]);
                    out.end.push(lane.end[last - 1]);
                    out.depth.push(depth as u32);
                    out.name.push(names.place(StringId(lane.name[place])));
                    out.category.push(lane.category[place].into());
                    let span = lane.span[place];
                    out.span.push(if several || span == NO_SPAN { -1 } else { span.into() });
                    out.count.push((last - place) as u32);
                });
            }
            shown.push(out);
        }
        Spans { names: names.texts, tracks: shown }
    }
}

/// Process and name of a thread or stream, as people read them.
pub(crate) fn track_names(trace: &Trace, id: TrackId) -> (String, String) {
    let track = trace.track(id);
    let process = trace.process(track.process);
    let texts = [process.name, process.labels].into_iter().flatten().map(|name| trace.str(name));
    let words: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    let ident = process.ident.display(trace.strings());
    let process = if words.is_empty() { ident } else { format!("{} {ident}", words.join(" ")) };
    let name = track.name.map(|name| trace.str(name).to_owned());
    (process, name.unwrap_or_else(|| track.ident.display(trace.strings())))
}

impl Lanes {
    /// Of pieces in order of their beginnings, outer ones first.
    fn of(trace: &Trace, pieces: &[Piece]) -> Self {
        let mut result = Self::default();
        let mut ends: Vec<i64> = Vec::new();
        for piece in pieces {
            while ends.last().is_some_and(|&end| end <= piece.begin) {
                ends.pop();
            }
            let depth = ends.len();
            result.spans += 1;
            result.device |= trace.category(piece.category.into()).is_device();
            if depth >= DEEPEST {
                result.hidden += 1;
                continue;
            }
            ends.push(piece.end);
            result.add(depth, piece);
        }
        result
    }

    fn add(&mut self, depth: usize, piece: &Piece) {
        while self.lanes.len() <= depth {
            self.lanes.push(Lane::default());
        }
        let lane = &mut self.lanes[depth];
        lane.begin.push(piece.begin);
        lane.end.push(piece.end);
        lane.name.push(piece.name.0);
        lane.category.push(piece.category);
        lane.span.push(piece.span);
    }
}

impl Lane {
    /// Tells `show` the rows to draw as one: those that share a pixel, or a single one that is wider.
    fn within(&self, from: i64, to: i64, pixel: i64, mut show: impl FnMut(usize, usize)) {
        let mut place = self.end.partition_point(|&end| end < from);
        let last = self.begin.partition_point(|&begin| begin <= to);
        while place < last {
            let wide = |row: usize| self.end[row] - self.begin[row] >= pixel;
            if wide(place) {
                show(place, place + 1);
                place += 1;
                continue;
            }
            let edge = self.begin[place].saturating_add(pixel);
            let mut next = place + self.begin[place..last].partition_point(|&begin| begin < edge);
            // Only the last one of them can reach far beyond the pixel.
            if next > place + 1 && wide(next - 1) {
                next -= 1;
            }
            let next = next.max(place + 1);
            show(place, next);
            place = next;
        }
    }
}

/// The names of an answer, each once.
struct Names<'a> {
    trace: &'a Trace,
    texts: Vec<String>,
    places: HashMap<StringId, u32>,
}

impl Names<'_> {
    fn place(&mut self, id: StringId) -> u32 {
        *self.places.entry(id).or_insert_with(|| {
            self.texts.push(self.trace.str(id).to_owned());
            self.texts.len() as u32 - 1
        })
    }
}

/// Draws samples of threads that have no spans: neighbours with the same outer frames are one call.
fn add_samples(trace: &Trace, tracks: &mut [Lanes]) {
    let profile = trace.profile();
    let category = trace.categories().count() as u16;
    let mut by_track: Vec<Vec<usize>> = vec![Vec::new(); tracks.len()];
    for (row, sample) in profile.samples.rows().enumerate() {
        by_track[sample.track.index()].push(row);
    }
    for (lanes, mut rows) in tracks.iter_mut().zip(by_track) {
        if lanes.spans > 0 || rows.is_empty() {
            continue;
        }
        rows.sort_by_key(|&row| profile.samples.row(row).time);
        let mut open: Vec<Piece> = Vec::new();
        let close = |open: &mut Vec<Piece>, keep: usize, lanes: &mut Lanes| {
            while open.len() > keep {
                if let Some(piece) = open.pop() {
                    lanes.spans += 1;
                    lanes.add(open.len(), &piece);
                }
            }
        };
        let mut before = i64::MIN;
        for row in rows {
            let sample = profile.samples.row(row);
            let begin = sample.time.0.max(before);
            let end = begin.saturating_add(sample.weight.0.max(0));
            let mut frames: Vec<_> = profile.stacks.frames(sample.stack).collect();
            frames.reverse();
            lanes.hidden += frames.len().saturating_sub(DEEPEST) as u64;
            frames.truncate(DEEPEST);
            let name = |frame| profile.frames.row(frame).name;
            // After a pause longer than the sample itself nothing is known to go on.
            let goes_on = begin.saturating_sub(before) <= sample.weight.0;
            let same = if goes_on {
                open.iter().zip(&frames).take_while(|(piece, frame)| piece.name == name(**frame)).count()
            } else {
                0
            };
            close(&mut open, same, lanes);
            for piece in &mut open {
                piece.end = end;
            }
            for frame in &frames[same..] {
                open.push(Piece { begin, end, name: name(*frame), category, span: NO_SPAN });
            }
            before = end;
        }
        close(&mut open, 0, lanes);
    }
}
