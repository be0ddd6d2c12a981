//! All that a trace holds, or a part of one on its way, borrowed: what is written to a file, and what is merged.

use crate::args::ArgSchema;
use crate::builder::{Rows, TraceBuilder};
use crate::category::Category;
use crate::events::{Counters, Flows, Instants, Spans};
use crate::ids::StringId;
use crate::losses::Losses;
use crate::metadata::{Clock, Metadata, Source};
use crate::profile::Profile;
use crate::string_table::StringTable;
use crate::trace::{Process, Trace, Track};

/// The tables of a trace, or those of a builder with the rows that were taken out of it.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) strings: &'a StringTable,
    pub(crate) categories: &'a [(StringId, Category)],
    pub(crate) processes: &'a [Process],
    pub(crate) tracks: &'a [Track],
    pub(crate) spans: &'a Spans,
    pub(crate) instants: &'a Instants,
    pub(crate) counters: &'a Counters,
    pub(crate) flows: &'a Flows,
    pub(crate) profile: &'a Profile,
    pub(crate) arg_schemas: &'a [ArgSchema],
    pub(crate) verbatim: &'a [StringId],
    pub(crate) metadata: &'a Metadata,
    pub(crate) clock: Clock,
    pub(crate) losses: &'a Losses,
    pub(crate) source: &'a Source,
}

impl<'a> Content<'a> {
    pub(crate) fn of_trace(trace: &'a Trace) -> Self {
        Self {
            strings: &trace.strings,
            categories: &trace.categories,
            processes: &trace.processes,
            tracks: &trace.tracks,
            spans: &trace.spans,
            instants: &trace.instants,
            counters: &trace.counters,
            flows: &trace.flows,
            profile: &trace.profile,
            arg_schemas: &trace.arg_schemas,
            verbatim: &trace.verbatim,
            metadata: &trace.metadata,
            clock: trace.clock,
            losses: &trace.losses,
            source: &trace.source,
        }
    }

    pub(crate) fn of_rows(builder: &'a TraceBuilder, rows: &'a Rows) -> Self {
        Self {
            strings: &builder.strings,
            categories: &builder.categories,
            processes: &builder.processes,
            tracks: &builder.tracks,
            spans: &rows.spans,
            instants: &rows.instants,
            counters: &rows.counters,
            flows: &rows.flows,
            profile: &rows.profile,
            arg_schemas: &rows.arg_schemas,
            verbatim: &rows.verbatim,
            metadata: &builder.metadata,
            clock: builder.clock,
            losses: &builder.losses,
            source: &builder.source,
        }
    }
}
