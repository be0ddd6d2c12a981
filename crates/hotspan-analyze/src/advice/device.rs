//! Sums of device time for rules: when devices worked, and what part of some work nothing else covers.

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, StringId};

use crate::advice::context::Context;
use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::device_work::{Work, WorkKind};

/// Device work in what rules look at.
pub(crate) fn device_spans<'a>(context: &'a Context<'_>) -> impl Iterator<Item = (SpanId, WorkKind)> + 'a {
    context.device_work().iter().map(|work| (work.span, work.kind))
}

/// A question about the names of kernels in lower case, asked once for each: they are long and repeat thousands of times.
pub(crate) struct NameTest<F> {
    test: F,
    known: HashMap<StringId, bool>,
}

impl<F: Fn(&str) -> bool> NameTest<F> {
    pub(crate) fn of(test: F) -> Self {
        Self { test, known: HashMap::new() }
    }

    pub(crate) fn holds(&mut self, model: &Model, span: SpanId) -> bool {
        let (name, test) = (model.spans().name(span), &self.test);
        *self.known.entry(name).or_insert_with(|| test(&model.str(name).to_ascii_lowercase()))
    }
}

/// When devices did work of these kinds. Several devices of one trace count as one.
pub(crate) fn busy(context: &Context<'_>, wanted: impl Fn(WorkKind) -> bool) -> Intervals {
    let work = context.device_work().iter().filter(|work| wanted(work.kind));
    work.map(|work| work.interval).collect()
}

/// When no device worked, within what rules look at.
pub(crate) fn idle(context: &Context<'_>) -> Intervals {
    let ranges: Intervals = context.ranges().iter().map(|&(begin, end)| Interval::new(begin, end)).collect();
    ranges.subtract(&busy(context, |_| true))
}

/// How long no kernel ran, within what rules look at: where the device computes all the time, a host that waits less gains nothing.
pub(crate) fn without_kernels(context: &Context<'_>) -> Duration {
    let ranges: Intervals = context.ranges().iter().map(|&(begin, end)| Interval::new(begin, end)).collect();
    ranges.subtract(&busy(context, |work| work != WorkKind::Copy)).length()
}

/// Calls into the device runtime in what rules look at.
pub(crate) fn runtime_calls<'a>(context: &'a Context<'_>) -> impl Iterator<Item = SpanId> + 'a {
    let (model, spans) = (context.model, context.model.spans());
    spans
        .ids()
        .filter(move |&span| model.span_category(span).is_launch() && context.is_in_range(spans.time(span)))
}

/// How many devices worked.
pub(crate) fn device_count(context: &Context<'_>) -> usize {
    let of = |work: &Work| context.model.track(work.stream).process;
    let mut devices: Vec<_> = context.device_work().iter().map(of).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.len()
}
