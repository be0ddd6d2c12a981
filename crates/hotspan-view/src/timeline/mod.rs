//! The trace as it is drawn: spans and sampled calls in lanes, counters as curves, at the detail that pixels have.
//!
//! | module | has |
//! |---|---|
//! | `lanes` | the rows of a thread or stream |
//! | `names` | what threads, streams and processes are called |
//! | `samples` | calls that samples saw |
//! | `pyramid` | less and less detail |
//! | `counters` | values over time |
//! | `idle` | why devices were idle |
//! | `beside` | what lies beside a span |
//! | `tile` | what is sent |
//! | `search` | spans by name |
//!
//! A track's number is that of the trace; its sampled calls, the counters and the idle time of devices are numbered after all tracks.

mod beside;
mod counters;
mod idle;
mod lanes;
mod names;
mod pyramid;
mod samples;
mod search;
mod tile;

use hotspan_analyze::Model;
use std::collections::HashSet;
use std::num::NonZero;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use hotspan_store::{Category, ProcessId, SpanId, StringId, TrackId};

pub(crate) use self::beside::Towards;
use self::counters::{Counter, counters};
use self::idle::IdleTracks;
pub(crate) use self::idle::idle_at;
pub(crate) use self::lanes::{Lanes, Piece};
use self::names::is_device;
pub(crate) use self::names::process_name;
pub(crate) use self::names::track_names;
use self::samples::sampled_lanes;
use self::search::Searches;
pub(crate) use self::search::{Query, Which, beginning, pattern_of};
pub(crate) use self::tile::{COARSEST, COLUMNS};
use crate::api::{Band, TimelineInfo, TrackInfo};

const RECORD: &str = "hotspan run train.py";

/// All of a trace, ready to be drawn.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// The spans of each track, then the sampled calls of each.
    lanes: Vec<Lanes>,
    counters: Vec<Counter>,
    hidden_counters: u64,
    /// Why devices were idle. To find out takes longer than all else, and the first picture does not wait for it.
    idle: OnceLock<IdleTracks>,
    devices: usize,
    searches: Searches,
    begin: i64,
    end: i64,
}

impl Timeline {
    /// Sorts the spans of a trace into lanes, while devices and steps are looked for.
    pub(crate) fn of(model: &Model) -> Self {
        let mut lanes = thread::scope(|scope| {
            // Where there is no thread for it, it is found when it is asked for.
            let _ = thread::Builder::new().spawn_scoped(scope, || (model.device_work(), model.steps()));
            lanes_of_tracks(model)
        });
        let sampled = model.categories().count() as u16;
        lanes.extend(sampled_lanes(model, sampled));
        let (counters, hidden_counters) = counters(model);
        let (begin, length) = model.window();
        Self {
            lanes,
            counters,
            hidden_counters,
            idle: OnceLock::new(),
            devices: model.device_work().len(),
            searches: Searches::default(),
            begin: begin.0,
            end: begin.plus(length).0,
        }
    }

    /// The lanes of a track or of its samples.
    pub(crate) fn lanes(&self, id: u32) -> Option<&Lanes> {
        self.lanes.get(id as usize)
    }

    /// The same, or those of the idle time of a device.
    pub(crate) fn any_lanes(&self, model: &Model, id: u32) -> Option<&Lanes> {
        let idle = || {
            let device = self.idle_device(id)?;
            let first = model.categories().count() as u16 + 1;
            self.idle.get_or_init(|| IdleTracks::of(model, first)).lanes.get(device)
        };
        self.lanes(id).or_else(idle)
    }

    /// The name of a piece.
    pub(crate) fn name<'a>(&'a self, model: &'a Model, name: StringId) -> &'a str {
        match name.index().checked_sub(model.strings().len()) {
            Some(own) => self.idle.get().and_then(|idle| idle.names.get(own)).map_or("", String::as_str),
            None => model.str(name),
        }
    }

    /// Which device has its idle time on this track.
    pub(crate) fn idle_device(&self, id: u32) -> Option<usize> {
        let device = (id as usize).checked_sub(self.lanes.len() + self.counters.len())?;
        (device < self.devices).then_some(device)
    }

    /// The pieces that lie over each other at a moment, the outermost first, with their depth.
    pub(crate) fn at(&self, track: u32, time: i64) -> Vec<(usize, Piece)> {
        let lanes = self.lanes(track).map_or(&[][..], |lanes| &lanes.lanes);
        let rows = lanes.iter().enumerate();
        rows.filter_map(|(depth, lane)| Some((depth, lane.at(time)?))).collect()
    }

    /// The number of the sampled calls of a track.
    pub(crate) fn sampled(&self, track: TrackId) -> u32 {
        (self.lanes.len() / 2) as u32 + track.0
    }

    /// The track whose samples have this number.
    pub(crate) fn sampled_track(&self, id: u32) -> Option<TrackId> {
        let tracks = (self.lanes.len() / 2) as u32;
        (id >= tracks && (id as usize) < self.lanes.len()).then(|| TrackId(id - tracks))
    }

    fn counter(&self, id: u32) -> Option<&Counter> {
        self.counters.get((id as usize).checked_sub(self.lanes.len())?)
    }

    fn tracks_with_lanes(&self) -> impl Iterator<Item = (u32, &Lanes)> {
        self.lanes.iter().enumerate().map(|(id, lanes)| (id as u32, lanes))
    }

    /// What is there and cannot be drawn.
    fn hidden(&self) -> u64 {
        self.lanes.iter().map(|track| track.hidden).sum::<u64>() + self.hidden_counters
    }

    /// What there is to draw.
    pub(crate) fn info(&self, model: &Model) -> TimelineInfo {
        let steps = model.steps().all.iter().map(|step| Band {
            name: step.number.to_string(),
            begin: step.begin.0,
            end: step.begin.plus(step.duration).0,
        });
        let sampled = "sample".to_owned();
        TimelineInfo {
            begin: self.begin,
            end: self.end,
            columns: COLUMNS,
            tracks: self.tracks(model),
            steps: steps.collect(),
            categories: model
                .categories()
                .map(|(_, name, _)| name.to_owned())
                .chain([sampled])
                .chain(idle::categories())
                .collect(),
            hidden: self.hidden(),
            record: RECORD.to_owned(),
        }
    }

    /// Tracks in the order they are shown: by process, in each its counters first, samples below the spans of their thread. Devices come
    /// before the programs that use them, whose stacks are deep. Processes that have counters alone come last.
    fn tracks(&self, model: &Model) -> Vec<TrackInfo> {
        let mut shown = Vec::new();
        let tracks = (0..model.tracks().len()).map(TrackId::at);
        let drawn = |id: &TrackId| {
            [id.0, self.sampled(*id)].iter().any(|&id| self.lanes(id).is_some_and(|lanes| lanes.pieces > 0))
        };
        let working: HashSet<ProcessId> = tracks.filter(drawn).map(|id| model.track(id).process).collect();
        for (index, counter) in self.counters.iter().enumerate().filter(|(_, counter)| counter.len() > 0) {
            let process = counter.process.map_or("Memory".to_owned(), |id| process_name(model, id));
            let info = TrackInfo {
                id: (self.lanes.len() + index) as u32,
                kind: "counter".to_owned(),
                process,
                name: counter.name.clone(),
                device: false,
                depth: 1,
                spans: counter.len() as u64,
                unit: counter.unit.to_owned(),
                least: counter.least(),
                most: counter.most(),
            };
            let process_order = counter.process.map(|id| order_of(model, id));
            let alone = counter.process.is_some_and(|id| !working.contains(&id));
            shown.push(((alone, process_order, 0, 0, index, 0), info));
        }
        for (device, work) in model.device_work().iter().enumerate() {
            let id = (self.lanes.len() + self.counters.len() + device) as u32;
            let info = TrackInfo {
                id,
                kind: "idle".to_owned(),
                process: process_name(model, work.process),
                name: "Idle, by cause".to_owned(),
                device: true,
                depth: 1,
                spans: 0,
                unit: String::new(),
                least: 0.0,
                most: 0.0,
            };
            shown.push(((false, Some(order_of(model, work.process)), 0, 1, device, id), info));
        }
        for index in 0..model.tracks().len() {
            let id = TrackId::at(index);
            let track = model.track(id);
            let (process_name, name) = track_names(model, id);
            for (kind, number) in [("spans", id.0), ("samples", self.sampled(id))] {
                let Some(lanes) = self.lanes(number).filter(|lanes| lanes.pieces > 0) else { continue };
                let info = TrackInfo {
                    id: number,
                    kind: kind.to_owned(),
                    process: process_name.clone(),
                    name: if kind == "samples" { format!("{name} (samples)") } else { name.clone() },
                    device: kind == "spans" && is_device(model, track.process),
                    depth: lanes.lanes.len() as u32,
                    spans: lanes.pieces,
                    unit: String::new(),
                    least: 0.0,
                    most: 0.0,
                };
                let process_order = Some(order_of(model, track.process));
                shown.push(((false, process_order, 1, track.sort_index.unwrap_or(0), index, number), info));
            }
        }
        shown.sort_by_key(|(order, _)| *order);
        shown.into_iter().map(|(_, info)| info).collect()
    }
}

/// The spans of each track that are drawn, in order of their beginnings, outer ones first.
fn spans_of_tracks(model: &Model) -> Vec<Vec<SpanId>> {
    let spans = model.spans();
    // The recording itself would cover everything.
    let is_drawn: Vec<bool> =
        model.categories().map(|(_, _, category)| category != Category::Recording).collect();
    let mut tracks: Vec<Vec<SpanId>> = vec![Vec::new(); model.tracks().len()];
    for &span in model.time_order() {
        if is_drawn.get(spans.category(span).index()) != Some(&false) {
            tracks[spans.track(span).index()].push(span);
        }
    }
    tracks
}

/// The lanes of a track.
fn lanes_of(model: &Model, drawn: &[SpanId]) -> Lanes {
    let spans = model.spans();
    Lanes::of(drawn.len(), |row| {
        let span = drawn[row];
        let begin = spans.time(span).0;
        Piece {
            begin,
            end: spans.end(span).0.max(begin),
            name: spans.name(span),
            category: spans.category(span).0,
            span: span.0,
        }
    })
}

/// The lanes of each track. Tracks share nothing, so as many threads as there are processors take one after the other.
fn lanes_of_tracks(model: &Model) -> Vec<Lanes> {
    let tracks = spans_of_tracks(model);
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(tracks.len());
    let lanes: Vec<OnceLock<Lanes>> = tracks.iter().map(|_| OnceLock::new()).collect();
    let rest = Mutex::new(tracks.into_iter().zip(&lanes));
    let work = || {
        loop {
            let next = rest.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((drawn, lanes)) = next else { return };
            lanes.get_or_init(|| lanes_of(model, &drawn));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // One thread does all of it where there is no other.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    drop(rest);
    lanes.into_iter().map(|lanes| lanes.into_inner().unwrap_or_default()).collect()
}

/// Devices before programs, then as the trace wants it.
fn order_of(model: &Model, process: ProcessId) -> (bool, i64, ProcessId) {
    (!is_device(model, process), model.process(process).sort_index.unwrap_or(0), process)
}
