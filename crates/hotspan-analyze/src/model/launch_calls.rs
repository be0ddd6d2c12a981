//! Which runtime or driver call gave a device its work: one call, and for a graph one call for many kernels.

use hotspan_store::{SpanId, TrackId};

use super::Model;
use super::launches::ByNumber;

const NONE: u32 = u32::MAX;

/// The call behind each device span.
#[derive(Clone, Debug)]
pub struct LaunchCalls {
    call: Vec<u32>,
    threads: Vec<TrackId>,
}

impl LaunchCalls {
    /// Ties device spans to calls by `correlation`; 0 means none.
    pub(super) fn of(model: &Model) -> Self {
        let (spans, correlation) = (model.spans(), model.correlation());
        let correlation = |span: SpanId| correlation.of(span).filter(|&id| id != 0);
        let is_call: Vec<bool> = model.categories().map(|(_, _, category)| category.is_launch()).collect();
        let is_work: Vec<bool> = model.categories().map(|(_, _, category)| category.is_device()).collect();
        let among = |marks: &[bool], span: SpanId| marks.get(spans.category(span).index()) == Some(&true);
        let calls = spans.ids().filter(|&span| among(&is_call, span));
        let calls = ByNumber::of(calls.filter_map(|span| Some((correlation(span)?, span))));
        let mut call = vec![NONE; spans.len()];
        let mut launches_from = vec![false; model.tracks().len()];
        for span in spans.ids().filter(|&span| among(&is_work, span)) {
            if let Some(found) = correlation(span).and_then(|number| calls.first(number)) {
                call[span.index()] = found.0;
                launches_from[spans.track(found).index()] = true;
            }
        }
        let threads = launches_from.iter().enumerate().filter(|&(_, &launches)| launches);
        Self { call, threads: threads.map(|(index, _)| TrackId::at(index)).collect() }
    }

    /// The call that a device span comes from.
    #[must_use]
    pub fn call(&self, device: SpanId) -> Option<SpanId> {
        self.call.get(device.index()).copied().filter(|&call| call != NONE).map(SpanId)
    }

    /// The threads that gave a device work.
    #[must_use]
    pub fn threads(&self) -> &[TrackId] {
        &self.threads
    }
}
