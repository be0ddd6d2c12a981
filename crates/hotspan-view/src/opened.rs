//! Traces in memory: opened when first asked for, opened anew when the file changed, the least used let go.

use hotspan_analyze::Model;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use hotspan_analyze::CallTree;
use hotspan_store::{Timestamp, TrackId};
use serde::Serialize;

use crate::api::ProgressData;
use crate::catalogue::{Catalogue, stamp};
use crate::details::Drawn;
use crate::error::Refusal;
use crate::flame;
use crate::flows::FlowIndex;
use crate::timeline::Timeline;
use crate::waiting::{Computing, Reading};

/// How many traces are kept in memory.
const KEPT: usize = 4;

/// An answer, ready to send.
pub(crate) type Answer = Result<Bytes, Refusal>;

/// A trace and what was computed of it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) model: Model,
    stamp: (u64, Duration),
    timeline: OnceLock<Timeline>,
    tree: OnceLock<CallTree>,
    flows: OnceLock<FlowIndex>,
    /// What is being computed, for those who wait.
    computing: Computing,
    /// The stretch of it that was last asked for.
    part: Mutex<Option<Part>>,
    /// Answers by name: a view that is looked at again costs nothing.
    answers: Mutex<HashMap<String, Arc<OnceLock<Answer>>>>,
}

/// A part of a trace: from when to when, and which tracks of the timeline where it is not all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) tracks: Option<Vec<u32>>,
}

/// Which part, and what is there.
type Part = (Area, Arc<Opened>);

impl Opened {
    fn new(model: Model, stamp: (u64, Duration)) -> Self {
        Self {
            model,
            stamp,
            timeline: OnceLock::new(),
            tree: OnceLock::new(),
            flows: OnceLock::new(),
            computing: Computing::default(),
            part: Mutex::default(),
            answers: Mutex::default(),
        }
    }

    /// A part of it, as a trace of its own.
    pub(crate) fn part(&self, area: &Area) -> Arc<Self> {
        let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = part.as_ref().filter(|(known, _)| known == area) {
            return Arc::clone(known);
        }
        let mut model = self.model.between(Timestamp(area.from), Timestamp(area.to));
        if let Some(tracks) = &area.tracks {
            let timeline = self.timeline();
            let sampled = |track: TrackId| tracks.contains(&timeline.sampled(track));
            model = model.of_tracks(|track| tracks.contains(&track.0), sampled);
        }
        let fresh = Arc::new(Self::new(model, self.stamp));
        *part = Some((area.clone(), Arc::clone(&fresh)));
        fresh
    }

    /// Flows between spans.
    pub(crate) fn flows(&self) -> &FlowIndex {
        self.flows.get_or_init(|| FlowIndex::of(&self.model))
    }

    /// How the spans are drawn.
    pub(crate) fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| Timeline::of(&self.model))
    }

    /// What the details of a span are found with.
    pub(crate) fn drawn(&self) -> Drawn<'_> {
        Drawn { model: &self.model, timeline: self.timeline(), flows: self.flows() }
    }

    /// Which function called which.
    pub(crate) fn tree(&self) -> &CallTree {
        self.tree.get_or_init(|| flame::tree(&self.model))
    }

    /// The answer of this name, made once however many ask at the same time.
    pub(crate) fn answer(&self, name: &str, make: impl FnOnce() -> Answer) -> Answer {
        let slot = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(name.to_owned()).or_default())
        };
        let make = || {
            let _busy = self.computing.begin(name);
            make()
        };
        slot.get_or_init(make).clone()
    }

    /// What is being computed of it, or of the part that was last asked for.
    fn computing(&self) -> Vec<String> {
        let mut names = self.computing.names();
        // Who makes a part holds the lock.
        match self.part.try_lock() {
            Ok(part) => names.extend(part.iter().flat_map(|(_, part)| part.computing.names())),
            Err(_) => names.push("the selected range".to_owned()),
        }
        names
    }

    fn events(&self) -> u64 {
        let model = &self.model;
        (model.spans().len() + model.instants().len() + model.profile().samples.len()) as u64
    }
}

/// An answer as JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// The traces in memory.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// The last used is the last.
    traces: Mutex<Vec<(u32, Arc<Slot>)>>,
}

#[derive(Debug, Default)]
struct Slot {
    opened: Mutex<Option<Arc<Opened>>>,
    reading: Reading,
}

impl Shelf {
    /// The trace of a number. Those who ask for one that is being opened wait for it; others do not.
    pub(crate) fn get(&self, catalogue: &Catalogue, id: u32) -> Result<Arc<Opened>, Refusal> {
        let Some(path) = catalogue.path(id) else {
            return Err(Refusal::not_found(format!("There is no trace number {id}.")));
        };
        let slot = self.slot(id);
        let mut opened = slot.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&path).map_err(|error| gone(&path, &error))?;
        if let Some(known) = opened.as_ref().filter(|known| known.stamp == now) {
            return Ok(Arc::clone(known));
        }
        *opened = None;
        let trace = hotspan_formats::open_with(&path, &mut &slot.reading).map_err(|error| Refusal {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            message: catalogue.with_names(error.to_string(), &path),
            hint: error.hint().map(str::to_owned),
        })?;
        let fresh = Arc::new(Opened::new(Model::new(trace), now));
        *opened = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// How far a trace is. Who asks waits for nothing, and makes nobody begin.
    pub(crate) fn progress(&self, id: u32) -> ProgressData {
        let traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = traces.iter().find(|(known, _)| *known == id).map(|(_, slot)| Arc::clone(slot));
        drop(traces);
        let (bytes, total) = slot.as_ref().map(|slot| slot.reading.bytes()).unwrap_or_default();
        // While it is being read, it is locked.
        let opened = slot.as_ref().and_then(|slot| slot.opened.try_lock().ok()?.clone());
        let (events, computing) = match opened {
            Some(opened) => (Some(opened.events()), opened.computing()),
            None => (None, Vec::new()),
        };
        ProgressData { bytes, total, events, computing }
    }

    fn slot(&self, id: u32) -> Arc<Slot> {
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match traces.iter().position(|(known, _)| *known == id) {
            Some(index) => traces.remove(index).1,
            None => Arc::default(),
        };
        traces.push((id, Arc::clone(&slot)));
        if traces.len() > KEPT {
            traces.remove(0);
        }
        slot
    }
}

fn gone(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal {
        status: StatusCode::GONE,
        message: format!("cannot open {}: {error}", path.display()),
        hint: Some(
            "The file was there when it was listed; it may have been moved or deleted since.".to_owned(),
        ),
    }
}
