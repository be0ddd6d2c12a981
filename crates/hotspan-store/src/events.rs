//! The event tables: spans, instants, counters and flows, one row per event of the trace.

use crate::ids::{ArgSchemaId, CategoryId, SpanId, StringId, TrackId};
use crate::table::{Cell, codes, table};
use crate::units::{Duration, Timestamp};

use crate::args::Args;

/// What every event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// When it happened or began.
    pub time: Timestamp,
    /// What it is called.
    pub name: StringId,
    /// Its category as the file spells it.
    pub category: CategoryId,
    /// The thread or stream it happened on.
    pub track: TrackId,
    /// Everything else it carries.
    pub args: Args,
}

/// A complete event: something with a beginning and an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRow {
    /// The common part; `time` is the beginning.
    pub event: EventRow,
    /// How long it took.
    pub duration: Duration,
}

/// How far an instant reaches, as in the Chrome trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstantScope {
    /// The file did not say.
    Unspecified,
    /// One thread.
    Thread,
    /// One process.
    Process,
    /// The whole trace.
    Global,
}

/// An event without duration: a memory allocation, an iteration mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantRow {
    /// The common part.
    pub event: EventRow,
    /// How far it reaches.
    pub scope: InstantScope,
}

/// Where on an arrow a flow event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPhase {
    /// The arrow begins (`s`).
    Start,
    /// The arrow passes through (`t`).
    Step,
    /// The arrow ends (`f`).
    End,
}

/// One end of an arrow between two spans, such as from a launch to its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// The common part.
    pub event: EventRow,
    /// Which arrow this is an end of.
    pub id: i64,
    /// Which end.
    pub phase: FlowPhase,
    /// Whether it binds to the enclosing span (`"bp": "e"`) rather than to the next one.
    pub binds_enclosing: bool,
}

codes! {
    InstantScope { 1 => Thread, 2 => Process, 3 => Global, _ => Unspecified }
    FlowPhase { 0 => Start, 1 => Step, _ => End }
}

table! {
    /// Complete events: operators, annotations, kernels, copies, runtime calls, Python functions.
    Spans, SpansBuilder {
        time: Timestamp,
        duration: Duration,
        name: StringId,
        category: CategoryId,
        track: TrackId,
        layout: ArgSchemaId,
        arg_row: u32,
    }
}

table! {
    /// Events without duration.
    Instants, InstantsBuilder {
        time: Timestamp,
        name: StringId,
        category: CategoryId,
        track: TrackId,
        layout: ArgSchemaId,
        arg_row: u32,
        scope: InstantScope,
    }
}

table! {
    /// Values over time; the values of a sample are its args.
    Counters, CountersBuilder {
        time: Timestamp,
        name: StringId,
        category: CategoryId,
        track: TrackId,
        layout: ArgSchemaId,
        arg_row: u32,
    }
}

table! {
    /// Ends of arrows.
    Flows, FlowsBuilder {
        time: Timestamp,
        name: StringId,
        category: CategoryId,
        track: TrackId,
        layout: ArgSchemaId,
        arg_row: u32,
        id: i64,
        phase: FlowPhase,
        binds_enclosing: u8,
    }
}

macro_rules! event_access {
    ($($table:ident),*) => {$(
        impl $table {
            /// The common part of row `index`.
            #[must_use]
            pub fn event(&self, index: usize) -> EventRow {
                EventRow {
                    time: Timestamp(self.time[index]),
                    name: StringId(self.name[index]),
                    category: CategoryId(self.category[index]),
                    track: TrackId(self.track[index]),
                    args: Args { schema: ArgSchemaId(self.layout[index]), row: self.arg_row[index] },
                }
            }

            /// The common part of every row.
            pub fn events(&self) -> impl ExactSizeIterator<Item = EventRow> + '_ {
                (0..self.len()).map(|index| self.event(index))
            }
        }
    )*};
}
event_access!(Spans, Instants, Counters, Flows);

impl Spans {
    /// When a span began.
    #[must_use]
    pub fn time(&self, span: SpanId) -> Timestamp {
        Timestamp(self.time[span.index()])
    }

    /// How long a span took.
    #[must_use]
    pub fn duration(&self, span: SpanId) -> Duration {
        Duration(self.duration[span.index()])
    }

    /// When a span ended.
    #[must_use]
    pub fn end(&self, span: SpanId) -> Timestamp {
        self.time(span).plus(self.duration(span))
    }

    /// What a span is called.
    #[must_use]
    pub fn name(&self, span: SpanId) -> StringId {
        StringId(self.name[span.index()])
    }

    /// A span's category.
    #[must_use]
    pub fn category(&self, span: SpanId) -> CategoryId {
        CategoryId(self.category[span.index()])
    }

    /// The thread or stream of a span.
    #[must_use]
    pub fn track(&self, span: SpanId) -> TrackId {
        TrackId(self.track[span.index()])
    }

    /// Where a span's args are.
    #[must_use]
    pub fn args(&self, span: SpanId) -> Args {
        Args { schema: ArgSchemaId(self.layout[span.index()]), row: self.arg_row[span.index()] }
    }

    /// All ids, in file order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = SpanId> + use<> {
        (0..self.len() as u32).map(SpanId)
    }
}

impl Instants {
    /// Row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> InstantRow {
        InstantRow { event: self.event(index), scope: InstantScope::from_native(self.scope[index]) }
    }
}

impl Flows {
    /// Row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> FlowRow {
        FlowRow {
            event: self.event(index),
            id: self.id[index],
            phase: FlowPhase::from_native(self.phase[index]),
            binds_enclosing: self.binds_enclosing[index] != 0,
        }
    }
}
