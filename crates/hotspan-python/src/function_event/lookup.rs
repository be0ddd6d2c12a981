//! What an event's attributes are read from: its span or its report of memory, in the trace.

use std::sync::Arc;

use hotspan_analyze::averages::DeviceKind;
use hotspan_analyze::model::events::Role;
use hotspan_analyze::model::memory_use::Use;
use hotspan_analyze::{FunctionEvent, FunctionEvents, Model};
use hotspan_store::{Args, Duration, SpanId, Timestamp, TrackId};

use super::PyFunctionEvent;
use super::flows::FlowEnd;

impl PyFunctionEvent {
    pub(super) fn model(&self) -> &Model {
        &self.all.model
    }

    pub(super) fn span(&self) -> Option<SpanId> {
        match self.event {
            FunctionEvent::Span(span) => Some(span),
            FunctionEvent::Memory { .. } => None,
        }
    }

    pub(super) fn of_span<T: Default>(&self, value: impl FnOnce(&FunctionEvents, SpanId) -> T) -> T {
        self.span().map(|span| value(&self.all.events, span)).unwrap_or_default()
    }

    pub(super) fn other(&self, span: SpanId) -> Self {
        Self { all: Arc::clone(&self.all), event: FunctionEvent::Span(span) }
    }

    pub(super) fn begin(&self) -> Timestamp {
        match self.event {
            FunctionEvent::Span(span) => self.model().spans().time(span),
            FunctionEvent::Memory { time, .. } => time,
        }
    }

    pub(super) fn track(&self) -> TrackId {
        match self.event {
            FunctionEvent::Span(span) => self.model().spans().track(span),
            FunctionEvent::Memory { track, .. } => track,
        }
    }

    pub(super) fn span_args(&self) -> Option<Args> {
        self.span().map(|span| self.model().spans().args(span))
    }

    pub(super) fn int(&self, key: &str) -> Option<i64> {
        self.model().arg(key).int(self.span_args()?)
    }

    pub(super) fn used(&self) -> Use {
        match self.event {
            FunctionEvent::Span(span) => self.all.events.memory(self.model(), span),
            FunctionEvent::Memory { used, .. } => used,
        }
    }

    pub(super) fn own_use(&self) -> Use {
        match self.event {
            FunctionEvent::Span(span) => self.all.events.self_memory(self.model(), span),
            FunctionEvent::Memory { used, .. } => used,
        }
    }

    pub(super) fn cpu(&self) -> Duration {
        self.of_span(|events, span| events.cpu_time(self.model(), span))
    }

    pub(super) fn self_cpu(&self) -> Duration {
        self.of_span(|events, span| events.self_cpu_time(self.model(), span))
    }

    pub(super) fn device(&self) -> Duration {
        self.of_span(|events, span| events.device_time(self.model(), span))
    }

    pub(super) fn self_device(&self) -> Duration {
        self.of_span(|events, span| events.self_device_time(self.model(), span))
    }

    pub(super) fn device_kind(&self) -> DeviceKind {
        self.of_span(|events, span| events.device(self.model(), span))
    }

    pub(super) fn flow(&self) -> Option<FlowEnd> {
        self.span().and_then(|_| self.all.flows().at(self.track(), self.begin()))
    }

    pub(super) fn role(&self) -> Option<Role> {
        self.span().map(|span| self.model().role(span))
    }
}
