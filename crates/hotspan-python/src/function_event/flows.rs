//! Flows as torch tells them of single events: from a forward operator to its node, from a launch to device work.

use std::collections::HashMap;

use hotspan_analyze::Model;
use hotspan_store::{FlowPhase, Ident, Timestamp, TrackId, keys};

/// An end of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEnd {
    pub(crate) id: i64,
    /// Kineto's number of the kind: 1 from forward to backward, 2 from a launch to device work.
    pub(crate) kind: i64,
    pub(crate) is_start: bool,
}

/// The flows of a trace, by the events that they begin and end at.
#[derive(Debug, Default)]
pub(crate) struct EventFlows {
    ends: HashMap<(TrackId, Timestamp), FlowEnd>,
    /// The threads of the system by torch's numbers of them, as far as flows tell.
    threads: HashMap<i64, i64>,
}

const FORWARD_TO_BACKWARD: i64 = 1;

impl EventFlows {
    pub(crate) fn of(model: &Model) -> Self {
        let mut flows = Self::default();
        let mut starts: HashMap<i64, TrackId> = HashMap::new();
        let mut ends = Vec::new();
        let rows = model.flows();
        for row in (0..rows.len()).map(|index| rows.row(index)) {
            let kind = match model.category_name(row.event.category) {
                "fwdbwd" => FORWARD_TO_BACKWARD,
                "ac2g" => 2,
                _ => continue,
            };
            let is_start = row.phase == FlowPhase::Start;
            let place = (row.event.track, row.event.time);
            flows.ends.insert(place, FlowEnd { id: row.id, kind, is_start });
            match (kind, is_start) {
                (FORWARD_TO_BACKWARD, true) => drop(starts.insert(row.id, row.event.track)),
                (FORWARD_TO_BACKWARD, false) => ends.push((place, row.id)),
                _ => {}
            }
        }
        let nodes: HashMap<_, TrackId> =
            ends.into_iter().filter_map(|(place, id)| Some((place, *starts.get(&id)?))).collect();
        if nodes.is_empty() {
            return flows;
        }
        let (spans, number) = (model.spans(), model.arg(keys::FORWARD_THREAD));
        for span in spans.ids() {
            if let Some(&track) = nodes.get(&(spans.track(span), spans.time(span)))
                && let Some(number) = number.int(spans.args(span)).filter(|&number| number != 0)
                && let Ident::Int(thread) = model.track(track).ident
            {
                flows.threads.insert(number, thread);
            }
        }
        flows
    }

    pub(crate) fn at(&self, track: TrackId, time: Timestamp) -> Option<FlowEnd> {
        self.ends.get(&(track, time)).copied()
    }

    /// The thread of the system that torch gives this number; the number itself where no flow tells.
    pub(crate) fn thread(&self, number: i64) -> i64 {
        self.threads.get(&number).copied().unwrap_or(number)
    }
}
