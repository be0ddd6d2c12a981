//! torch's `events()`: every event of a trace on its own, with its parent and children and what is its own of time, memory
//! and device work. The numbers are those that [`crate::averages`] adds up.

use hotspan_store::{Duration, SpanId, Timestamp, TrackId};

use crate::model::memory_events::MemoryEventKind;
use crate::model::memory_use::Use;
use crate::model::{DeviceKind, Model, RecordScope};

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionEvent {
    /// A span.
    Span(SpanId),
    /// An allocation or release outside of every span, or an allocation that failed.
    Memory {
        /// When.
        time: Timestamp,
        /// On which thread.
        track: TrackId,
        /// How much.
        used: Use,
        /// Whether it failed.
        is_failure: bool,
    },
}

/// All events of a trace, in order of time.
#[derive(Debug)]
pub struct FunctionEvents {
    list: Vec<FunctionEvent>,
    /// Launcher and device work, in this order.
    kernels: Vec<(SpanId, SpanId)>,
    /// Device time of each span and all it called; empty without device work.
    device_totals: Vec<Duration>,
    device: DeviceKind,
}

impl FunctionEvents {
    /// Lists the events of a trace.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let (spans, nesting) = (model.spans(), model.merged_nesting());
        let uncovered =
            model.memory_use().uncovered().iter().map(|&(time, track, used)| (time, track, used, false));
        let failed = model.memory_events().iter().filter(|event| event.kind == MemoryEventKind::Failure);
        let failed = failed.map(|event| (event.time, event.track, event.used(), true));
        let mut loose: Vec<_> = uncovered.chain(failed).collect();
        loose.sort_by_key(|&(time, ..)| time);
        let memory_event =
            |(time, track, used, is_failure)| FunctionEvent::Memory { time, track, used, is_failure };
        let mut loose = loose.into_iter().peekable();
        let mut list = Vec::with_capacity(nesting.order().len());
        for &span in nesting.order() {
            while let Some(event) = loose.next_if(|(time, ..)| *time < spans.time(span)) {
                list.push(memory_event(event));
            }
            if !nesting.is_merged(span) {
                list.push(FunctionEvent::Span(span));
            }
        }
        list.extend(loose.map(memory_event));

        let owner = |owner| if nesting.is_merged(owner) { nesting.parent(owner) } else { Some(owner) };
        let owners = model.launches().owners().iter();
        let mut kernels: Vec<(SpanId, SpanId)> =
            owners.filter_map(|&(device, launcher)| Some((owner(launcher)?, device))).collect();
        kernels.sort_unstable();
        let device_totals = device_totals(model, &kernels);
        let device = DeviceKind::of(model).unwrap_or(DeviceKind::Cuda);
        Self { list, kernels, device_totals, device }
    }

    /// The events.
    #[must_use]
    pub fn list(&self) -> &[FunctionEvent] {
        &self.list
    }

    /// The name that tables show, and the operator's overload.
    #[must_use]
    pub fn name<'m>(&self, model: &'m Model, span: SpanId) -> (&'m str, &'m str) {
        let events = model.events();
        let name = events.name(model, span);
        (events.names.get(name.key), events.names.get(name.overload))
    }

    /// Device work that a span launched itself.
    pub fn kernels(&self, span: SpanId) -> impl Iterator<Item = SpanId> {
        let begin = self.kernels.partition_point(|&(owner, _)| owner < span);
        self.kernels[begin..].iter().take_while(move |&&(owner, _)| owner == span).map(|&(_, device)| device)
    }

    /// Memory that a span used, with all it called.
    #[must_use]
    pub fn memory(&self, model: &Model, span: SpanId) -> Use {
        if model.role(span).is_device() { Use::default() } else { model.memory_use().of_span(model, span) }
    }

    /// Memory that a span used itself.
    #[must_use]
    pub fn self_memory(&self, model: &Model, span: SpanId) -> Use {
        let mut own = self.memory(model, span);
        for &child in model.merged_children().of_span(span) {
            let used = self.memory(model, child);
            own.cpu -= used.cpu;
            own.device -= used.device;
        }
        own
    }

    /// Time on the CPU, with all it called.
    #[must_use]
    pub fn cpu_time(&self, model: &Model, span: SpanId) -> Duration {
        if model.role(span).is_device() { Duration::ZERO } else { model.spans().duration(span) }
    }

    /// Time on the CPU that was its own.
    #[must_use]
    pub fn self_cpu_time(&self, model: &Model, span: SpanId) -> Duration {
        if model.events().is_async(span) {
            return Duration::ZERO;
        }
        let children = model.merged_children().of_span(span).iter();
        self.cpu_time(model, span) - children.map(|&child| model.spans().duration(child)).sum()
    }

    /// Time on the device, with all it called.
    #[must_use]
    pub fn device_time(&self, model: &Model, span: SpanId) -> Duration {
        if model.role(span).is_device() {
            return model.spans().duration(span);
        }
        self.device_totals.get(span.index()).copied().unwrap_or_default()
    }

    /// Time on the device that was its own.
    #[must_use]
    pub fn self_device_time(&self, model: &Model, span: SpanId) -> Duration {
        let children = model.merged_children().of_span(span).iter();
        self.device_time(model, span) - children.map(|&child| self.device_time(model, child)).sum()
    }

    /// Where it comes from.
    #[must_use]
    pub fn scope(&self, model: &Model, span: SpanId) -> RecordScope {
        model.merged_scope(span)
    }

    /// Where it happened.
    #[must_use]
    pub fn device(&self, model: &Model, span: SpanId) -> DeviceKind {
        if model.role(span).is_device() { self.device } else { DeviceKind::Cpu }
    }

    /// Where in the Python program it was called, innermost first.
    #[must_use]
    pub fn stack<'m>(&self, model: &'m Model, span: SpanId) -> &'m [String] {
        let stacks = model.whole_stacks();
        stacks.entries(stacks.id(span))
    }
}

fn device_totals(model: &Model, kernels: &[(SpanId, SpanId)]) -> Vec<Duration> {
    if kernels.is_empty() {
        return Vec::new();
    }
    let (spans, nesting) = (model.spans(), model.merged_nesting());
    let mut totals = vec![Duration::ZERO; spans.len()];
    for &(owner, device) in kernels {
        totals[owner.index()] += spans.duration(device);
    }
    for &span in nesting.order().iter().rev().filter(|&&span| !nesting.is_merged(span)) {
        if let Some(parent) = nesting.parent(span) {
            let total = totals[span.index()];
            totals[parent.index()] += total;
        }
    }
    totals
}
