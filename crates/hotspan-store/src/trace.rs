//! The `Trace`: all tables together, frozen, cheap to share between threads.

use crate::args::{Arg, ArgKey, ArgReader, ArgSchema, Args};
use crate::category::Category;
use crate::events::{Counters, Flows, Instants, Spans};
use crate::ids::{CategoryId, Ident, ProcessId, SpanId, StringId, TrackId};
use crate::losses::Losses;
use crate::metadata::{Clock, Device, Distributed, Metadata, Source};
use crate::profile::Profile;
use crate::string_table::StringTable;
use crate::units::{Duration, Timestamp};

/// A process, or what the trace calls one: GPUs are processes in Kineto traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id in the trace.
    pub ident: Ident,
    /// Its name.
    pub name: Option<StringId>,
    /// Labels, such as "CPU" or "GPU 0".
    pub labels: Option<StringId>,
    /// Where viewers put it.
    pub sort_index: Option<i64>,
}

/// A thread of a process, or a stream of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// The process it belongs to.
    pub process: ProcessId,
    /// Its id in the trace.
    pub ident: Ident,
    /// Its name.
    pub name: Option<StringId>,
    /// Where viewers put it.
    pub sort_index: Option<i64>,
}

/// Everything a profiler recorded. Made by [`crate::TraceBuilder::finish`].
#[derive(Clone, Debug)]
pub struct Trace {
    pub(crate) strings: StringTable,
    pub(crate) categories: Vec<(StringId, Category)>,
    pub(crate) processes: Vec<Process>,
    pub(crate) tracks: Vec<Track>,
    pub(crate) spans: Spans,
    pub(crate) instants: Instants,
    pub(crate) counters: Counters,
    pub(crate) flows: Flows,
    pub(crate) profile: Profile,
    pub(crate) arg_schemas: Vec<ArgSchema>,
    pub(crate) verbatim: Vec<StringId>,
    pub(crate) metadata: Metadata,
    pub(crate) clock: Clock,
    pub(crate) losses: Losses,
    pub(crate) source: Source,
}

impl Trace {
    /// All interned strings.
    #[must_use]
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// The text of a string id.
    #[must_use]
    pub fn str(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// Complete events.
    #[must_use]
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Events without duration, memory events among them.
    #[must_use]
    pub fn instants(&self) -> &Instants {
        &self.instants
    }

    /// Values over time.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Ends of arrows.
    #[must_use]
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Samples, and calls and lines added up.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Events kept as JSON text because hotspan does not analyse their kind.
    pub fn verbatim(&self) -> impl Iterator<Item = &str> {
        self.verbatim.iter().map(|&id| self.str(id))
    }

    /// Processes, in order of appearance.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The process of an id.
    #[must_use]
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.processes[id.index()]
    }

    /// Threads and streams, in order of appearance.
    #[must_use]
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The thread or stream of an id.
    #[must_use]
    pub fn track(&self, id: TrackId) -> &Track {
        &self.tracks[id.index()]
    }

    /// Every category: as the file spells it, and what it means.
    pub fn categories(&self) -> impl Iterator<Item = (CategoryId, &str, Category)> {
        let named = |(index, &(name, category))| (CategoryId::at(index), self.str(name), category);
        self.categories.iter().enumerate().map(named)
    }

    /// What a category means.
    #[must_use]
    pub fn category(&self, id: CategoryId) -> Category {
        self.categories[id.index()].1
    }

    /// A category as the file spells it.
    #[must_use]
    pub fn category_name(&self, id: CategoryId) -> &str {
        self.str(self.categories[id.index()].0)
    }

    /// The kind of a span.
    #[must_use]
    pub fn span_category(&self, span: SpanId) -> Category {
        self.category(self.spans.category(span))
    }

    /// The name of a span.
    #[must_use]
    pub fn span_name(&self, span: SpanId) -> &str {
        self.str(self.spans.name(span))
    }

    /// Reads one argument of many events.
    #[must_use]
    pub fn arg<'a>(&'a self, key: &'a str) -> ArgReader<'a> {
        ArgReader::new(self, key)
    }

    /// All args of one event, in file order.
    pub fn args(&self, args: Args) -> impl Iterator<Item = (ArgKey, Arg)> + '_ {
        let layout = &self.arg_schemas[args.schema.index()];
        let pair = move |(position, key): (usize, &ArgKey)| Some((*key, layout.value(position, args.row)?));
        layout.keys().iter().enumerate().filter_map(pair)
    }

    /// The distinct lists of argument keys.
    #[must_use]
    pub fn arg_schemas(&self) -> &[ArgSchema] {
        &self.arg_schemas
    }

    /// Free metadata.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Adds to what the trace says about itself.
    pub fn set_metadata(&mut self, key: &str, json: &str) {
        self.metadata.set(key, json);
    }

    /// How trace time relates to the clocks outside.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The devices the trace describes.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        Device::from_metadata(&self.metadata)
    }

    /// The trace's position in a distributed job.
    #[must_use]
    pub fn distributed(&self) -> Option<Distributed> {
        Distributed::from_metadata(&self.metadata)
    }

    /// What is missing or was repaired.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Where the trace came from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// From the first beginning of a span or sample to the last end; zero for a trace without any.
    #[must_use]
    pub fn window(&self) -> (Timestamp, Duration) {
        let Self { spans, profile: Profile { samples, .. }, .. } = self;
        let begins = || spans.time.iter().chain(samples.time.iter());
        let lengths = spans.duration.iter().chain(samples.weight.iter());
        let first = begins().copied().min().unwrap_or(0);
        let end = |(&time, &duration): (&i64, &i64)| time.saturating_add(duration.max(0));
        let last = begins().zip(lengths).map(end).max().unwrap_or(first);
        (Timestamp(first), Duration(last.saturating_sub(first)))
    }

    /// Bytes of memory held by all tables.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.strings.heap_bytes()
            + self.spans.heap_bytes()
            + self.instants.heap_bytes()
            + self.counters.heap_bytes()
            + self.flows.heap_bytes()
            + self.profile.heap_bytes()
            + self.arg_schemas.iter().map(ArgSchema::heap_bytes).sum::<usize>()
            + self.tracks.capacity() * size_of::<Track>()
            + self.processes.capacity() * size_of::<Process>()
            + self.verbatim.capacity() * size_of::<StringId>()
    }
}
