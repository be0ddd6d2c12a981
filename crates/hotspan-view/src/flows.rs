//! Flows between spans, as the trace has them: from forward to backward operators, and whatever else a program marked.
//!
//! An end of a flow has a thread and a time; the span it belongs to is the one that begins there, or the innermost around it.

use hotspan_analyze::Model;
use hotspan_store::{FlowPhase, FlowRow, SpanId};

use crate::timeline::Timeline;

/// What the flows from launches to device work are called.
const LAUNCHES: [&str; 2] = ["ac2g", "async"];

/// Ends of flows by where they are and by what they belong to.
#[derive(Debug)]
pub(crate) struct FlowIndex {
    by_position: Vec<u32>,
    by_flow: Vec<u32>,
}

/// Another end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherEnd {
    pub(crate) span: SpanId,
    /// Whether the flow leads there.
    pub(crate) is_target: bool,
    /// Whether it is one between a forward operator and its backward one.
    pub(crate) is_backward: bool,
}

impl FlowIndex {
    pub(crate) fn of(model: &Model) -> Self {
        let flows = model.flows();
        // Those from a launch to its work are most of all, and known better by correlation.
        let launches: Vec<bool> = model
            .categories()
            .map(|(_, name, _)| LAUNCHES.iter().any(|launch| name.contains(launch)))
            .collect();
        let is_other = |row: &u32| {
            let category = flows.event(*row as usize).category;
            launches.get(category.index()) != Some(&true)
        };
        let mut by_position: Vec<u32> = (0..flows.len() as u32).filter(is_other).collect();
        let mut by_flow = by_position.clone();
        by_position.sort_unstable_by_key(|&row| {
            let event = flows.event(row as usize);
            (event.track, event.time, row)
        });
        by_flow.sort_unstable_by_key(|&row| (flow_key(&flows.row(row as usize)), row));
        Self { by_position, by_flow }
    }

    /// The other ends of the flows that begin or end at a span.
    pub(crate) fn of_span(&self, model: &Model, timeline: &Timeline, span: SpanId) -> Vec<OtherEnd> {
        let (flows, spans) = (model.flows(), model.spans());
        let position = |row: u32| {
            let event = flows.event(row as usize);
            (event.track, event.time)
        };
        let track = spans.track(span);
        let first = self.by_position.partition_point(|&row| position(row) < (track, spans.time(span)));
        let last = self.by_position.partition_point(|&row| position(row) <= (track, spans.end(span)));
        let mut found = Vec::new();
        for &row in &self.by_position[first..last.max(first)] {
            let flow = flows.row(row as usize);
            if bound(timeline, &flow) == Some(span) {
                found.extend(self.others(model, timeline, row, &flow));
            }
        }
        found
    }

    /// Before and after an end on its flow. An id that is used again and again makes many flows, one after another.
    fn others(&self, model: &Model, timeline: &Timeline, row: u32, flow: &FlowRow) -> Vec<OtherEnd> {
        let flows = model.flows();
        let key = |row: u32| (flow_key(&flows.row(row as usize)), row);
        let index = self.by_flow.partition_point(|&other| key(other) < (flow_key(flow), row));
        let neighbour = |index: Option<usize>, is_target: bool| {
            let other = flows.row(*self.by_flow.get(index?)? as usize);
            let same = (other.id, other.event.category, other.event.name)
                == (flow.id, flow.event.category, flow.event.name);
            let category = model.category_name(flow.event.category);
            let is_backward = category.contains("fwdbwd") || category.contains("forward_backward");
            let span = bound(timeline, &other).filter(|_| same)?;
            Some(OtherEnd { span, is_target, is_backward })
        };
        let after = if flow.phase == FlowPhase::End { None } else { neighbour(Some(index + 1), true) };
        let before =
            if flow.phase == FlowPhase::Start { None } else { neighbour(index.checked_sub(1), false) };
        before.into_iter().chain(after).collect()
    }
}

/// Which flow an end is of, and where on it.
fn flow_key(flow: &FlowRow) -> impl Ord + use<> {
    (flow.event.category, flow.event.name, flow.id, flow.event.time, flow.phase as u8)
}

/// The span that an end of a flow belongs to.
fn bound(timeline: &Timeline, flow: &FlowRow) -> Option<SpanId> {
    let pieces = timeline.at(flow.event.track.0, flow.event.time.0);
    let begins = pieces.iter().rev().find(|(_, piece)| piece.begin == flow.event.time.0);
    begins.or(pieces.last()).map(|(_, piece)| SpanId(piece.span))
}
