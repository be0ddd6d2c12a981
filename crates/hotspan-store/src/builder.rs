//! The `TraceBuilder`: takes events one at a time and freezes them into a [`Trace`].

use hashbrown::HashMap;

use crate::args::build::ArgsBuilder;
use crate::args::growing::GrowingArgSchema;
use crate::args::{Arg, ArgOrigin, ArgSchema, Args, PendingArgs};
use crate::category::Category;
use crate::events::{
    Counters, CountersBuilder, EventRow, FlowRow, Flows, FlowsBuilder, InstantRow, Instants, InstantsBuilder,
    SpanRow, Spans, SpansBuilder,
};
use crate::ids::{ArgSchemaId, CategoryId, FrameId, Ident, ProcessId, StackId, StringId, TrackId};
use crate::losses::{Loss, Losses};
use crate::metadata::{Clock, Metadata, Source};
use crate::profile::{CallRow, FrameRow, LineRow, Profile, ProfileBuilder, SampleRow};
use crate::string_table::StringTable;
use crate::table::Growing;
use crate::trace::{Process, Trace, Track};
use crate::units::{Duration, Timestamp};

/// More distinct categories than this are counted together under an empty name.
pub(crate) const MAX_CATEGORIES: usize = u16::MAX as usize;

/// Builds a [`Trace`]. Times are on the file's own clock; [`Self::finish`] makes them relative to the first event.
#[derive(Clone, Debug, Default)]
pub struct TraceBuilder {
    pub(crate) strings: StringTable,
    pub(crate) categories: Vec<(StringId, Category)>,
    category_ids: HashMap<StringId, CategoryId>,
    pub(crate) processes: Vec<Process>,
    process_ids: HashMap<Ident, ProcessId>,
    pub(crate) tracks: Vec<Track>,
    track_ids: HashMap<(Ident, Ident), TrackId>,
    last_track: Option<((Ident, Ident), TrackId)>,
    pub(crate) spans: SpansBuilder,
    pub(crate) instants: InstantsBuilder,
    pub(crate) counters: CountersBuilder,
    pub(crate) flows: FlowsBuilder,
    pub(crate) profile: ProfileBuilder,
    pub(crate) args: ArgsBuilder,
    pub(crate) verbatim: Vec<StringId>,
    /// The largest number by which events of appended traces find each other.
    pub(crate) last_appended_id: i64,
    /// Free metadata.
    pub metadata: Metadata,
    /// The clock that times are on.
    pub clock: Clock,
    /// What is missing or was repaired.
    pub losses: Losses,
    /// Where the events come from.
    pub source: Source,
}

/// The rows of a builder, moved out of it to be written to a file.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) spans: Spans,
    pub(crate) instants: Instants,
    pub(crate) counters: Counters,
    pub(crate) flows: Flows,
    pub(crate) profile: Profile,
    pub(crate) arg_schemas: Vec<ArgSchema>,
    pub(crate) verbatim: Vec<StringId>,
}

impl TraceBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of a string.
    pub fn intern(&mut self, text: &str) -> StringId {
        self.strings.intern(text)
    }

    /// The id of bytes that should be a string. Bytes that are not UTF-8 are replaced and counted.
    #[inline]
    pub fn intern_bytes(&mut self, text: &[u8], offset: u64) -> StringId {
        match self.strings.find_bytes(text) {
            Some(id) => id,
            None => self.intern_new(text, offset),
        }
    }

    #[cold]
    fn intern_new(&mut self, text: &[u8], offset: u64) -> StringId {
        match std::str::from_utf8(text) {
            Ok(text) => self.strings.intern(text),
            Err(_) => {
                self.losses.add(Loss::InvalidUtf8, Some(offset));
                self.strings.intern(&String::from_utf8_lossy(text))
            }
        }
    }

    /// The text of a string interned here.
    #[must_use]
    pub fn str(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// The id of a category.
    pub fn category(&mut self, name: &str) -> CategoryId {
        let name = self.strings.intern(name);
        self.category_of(name)
    }

    /// The id of a category whose name is interned.
    pub fn category_of(&mut self, name: StringId) -> CategoryId {
        if let Some(&id) = self.category_ids.get(&name) {
            return id;
        }
        if self.categories.len() >= MAX_CATEGORIES {
            return CategoryId(0);
        }
        let id = CategoryId::at(self.categories.len());
        self.categories.push((name, Category::of(self.strings.get(name))));
        self.category_ids.insert(name, id);
        id
    }

    /// The id of a process.
    pub fn process(&mut self, ident: Ident) -> ProcessId {
        *self.process_ids.entry(ident).or_insert_with(|| {
            self.processes.push(Process { ident, name: None, labels: None, sort_index: None });
            ProcessId::at(self.processes.len() - 1)
        })
    }

    /// A process to be described further.
    pub fn process_mut(&mut self, id: ProcessId) -> &mut Process {
        &mut self.processes[id.index()]
    }

    /// The id of a thread or stream.
    #[inline]
    pub fn track(&mut self, process: Ident, thread: Ident) -> TrackId {
        match self.last_track {
            Some((key, id)) if key == (process, thread) => id,
            _ => self.find_track(process, thread),
        }
    }

    fn find_track(&mut self, process: Ident, thread: Ident) -> TrackId {
        let key = (process, thread);
        let id = match self.track_ids.get(&key) {
            Some(&id) => id,
            None => {
                let process = self.process(process);
                let id = TrackId::at(self.tracks.len());
                self.tracks.push(Track { process, ident: thread, name: None, sort_index: None });
                self.track_ids.insert(key, id);
                id
            }
        };
        self.last_track = Some((key, id));
        id
    }

    /// A thread or stream to be described further.
    pub fn track_mut(&mut self, id: TrackId) -> &mut Track {
        &mut self.tracks[id.index()]
    }

    /// The args of an event that has none.
    pub fn no_args(&mut self) -> Args {
        self.args.commit(&mut self.strings, &mut PendingArgs::default())
    }

    /// Adds a key and value to the args of the event being built.
    #[inline]
    pub fn push_arg(&mut self, pending: &mut PendingArgs, origin: ArgOrigin, key: &[u8], value: Arg) {
        self.args.push(&mut self.strings, pending, origin, key, value);
    }

    /// Stores the args of the event being built.
    #[inline]
    pub fn commit_args(&mut self, pending: &mut PendingArgs) -> Args {
        self.args.commit(&mut self.strings, pending)
    }

    /// Adds the args of a second event, such as the end of a span, to those of the first.
    pub fn append_args(&mut self, pending: &mut PendingArgs, more: &PendingArgs) {
        for (origin, key, value) in self.args.entries(more) {
            let key = self.strings.get(key).to_owned();
            self.args.push(&mut self.strings, pending, origin, key.as_bytes(), value);
        }
    }

    /// Stores the args of an event that has the keys of an earlier one, by the layout that one got. `None`: the values
    /// are not of those types, and the event needs [`Self::push_arg`].
    #[inline]
    pub fn repeat_args(&mut self, layout: ArgSchemaId, values: &[Arg]) -> Option<Args> {
        self.args.append_row(layout, values)
    }

    /// Adds a span.
    #[inline]
    pub fn push_span(&mut self, row: SpanRow) {
        let EventRow { time, name, category, track, args } = row.event;
        self.spans.push((time, row.duration, name, category, track, args.schema, args.row));
    }

    /// Adds an instant.
    pub fn push_instant(&mut self, row: InstantRow) {
        let EventRow { time, name, category, track, args } = row.event;
        self.instants.push((time, name, category, track, args.schema, args.row, row.scope));
    }

    /// Adds a sample of a counter.
    pub fn push_counter(&mut self, event: EventRow) {
        let EventRow { time, name, category, track, args } = event;
        self.counters.push((time, name, category, track, args.schema, args.row));
    }

    /// Adds one end of an arrow.
    #[inline]
    pub fn push_flow(&mut self, row: FlowRow) {
        let EventRow { time, name, category, track, args } = row.event;
        let binds = u8::from(row.binds_enclosing);
        self.flows.push((time, name, category, track, args.schema, args.row, row.id, row.phase, binds));
    }

    /// The id of a function and line.
    pub fn frame(&mut self, row: FrameRow) -> FrameId {
        self.profile.frame(row)
    }

    /// The id of the stack in which `parent` called `frame`; the parent of an outermost frame is [`StackId::NONE`]. A frame inside a
    /// stack that is too deep is counted and left out.
    pub fn stack(&mut self, parent: StackId, frame: FrameId) -> StackId {
        let stack = self.profile.stack(parent, frame);
        if stack == parent {
            self.count_left_out();
        }
        stack
    }

    /// Counts the frames that were left out of stacks.
    pub(crate) fn count_left_out(&mut self) {
        let frames = self.profile.take_left_out();
        if frames > 0 {
            self.losses.add_many(Loss::DeepStack, frames, None);
        }
    }

    /// Adds a sample of a thread. Its stack is not [`StackId::NONE`].
    pub fn push_sample(&mut self, row: SampleRow) {
        let SampleRow { time, track, stack, weight, state, gil } = row;
        self.profile.samples.push((time, track, stack, weight, state, u8::from(gil)));
    }

    /// Adds a sum of calls.
    pub fn push_calls(&mut self, row: CallRow) {
        let CallRow { caller, callee, calls, primitive_calls, self_time, total_time } = row;
        self.profile.calls.push((caller, callee, calls, primitive_calls, self_time, total_time));
    }

    /// Adds a sum of one line.
    pub fn push_line(&mut self, row: LineRow) {
        let LineRow { function, line, hits, time, memory, increment } = row;
        self.profile.lines.push((function, line, hits, time, memory, increment));
    }

    /// Keeps an event as JSON text, to be exported unchanged.
    pub fn push_verbatim(&mut self, json: StringId) {
        self.verbatim.push(json);
    }

    /// How many spans there are so far.
    #[must_use]
    pub fn span_count(&self) -> usize {
        self.spans.len()
    }

    /// How many events of all kinds there are so far.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.spans.len()
            + self.instants.len()
            + self.counters.len()
            + self.flows.len()
            + self.profile.samples.len()
            + self.verbatim.len()
    }

    /// The last end of a span or time of an event so far.
    #[must_use]
    pub fn last_time(&self) -> Timestamp {
        let ends = self.spans.time.iter().zip(&self.spans.duration);
        let ends = ends.map(|(&time, &duration)| Timestamp(time).plus(Duration(duration)).0);
        let others = self.instants.time.iter().chain(&self.profile.samples.time).copied();
        Timestamp(ends.chain(others).max().unwrap_or(0))
    }

    /// Moves all rows of events and args out; strings, threads, categories and layouts stay and keep their ids.
    pub(crate) fn take_rows(&mut self) -> Rows {
        Rows { arg_schemas: self.args.take_rows(), ..self.take_events() }
    }

    /// Moves all rows of events out; args stay too, for events that come later may refer to them.
    pub(crate) fn take_events(&mut self) -> Rows {
        Rows {
            spans: self.spans.take(),
            instants: self.instants.take(),
            counters: self.counters.take(),
            flows: self.flows.take(),
            profile: self.profile.take_rows(),
            arg_schemas: Vec::new(),
            verbatim: std::mem::take(&mut self.verbatim),
        }
    }

    /// Begins another file, once all rows were written to the one before: names, frames and layouts go to it again, and args are
    /// counted anew. Ids stay valid.
    pub fn begin_file(&mut self) {
        self.args.arg_schemas.iter_mut().for_each(GrowingArgSchema::count_anew);
        self.profile.write_again();
    }

    /// Adds a category read from a file. The caller has checked that it is new and that there is room.
    pub(crate) fn add_category(&mut self, name: StringId) {
        self.category_of(name);
    }

    /// Whether there is a category of this name.
    pub(crate) fn has_category(&self, name: StringId) -> bool {
        self.category_ids.contains_key(&name)
    }

    /// Sets the process at `index`, or adds it when `index` is the next one.
    pub(crate) fn set_process(&mut self, index: usize, process: Process) {
        match self.processes.get_mut(index) {
            Some(known) => *known = process,
            None => {
                self.process_ids.insert(process.ident, ProcessId::at(self.processes.len()));
                self.processes.push(process);
            }
        }
    }

    /// Sets the thread or stream at `index`, or adds it when `index` is the next one.
    pub(crate) fn set_track(&mut self, index: usize, track: Track) {
        match self.tracks.get_mut(index) {
            Some(known) => *known = track,
            None => {
                let process = self.processes[track.process.index()].ident;
                self.track_ids.insert((process, track.ident), TrackId::at(self.tracks.len()));
                self.tracks.push(track);
            }
        }
    }

    /// Freezes the trace; the columns move, they are not copied.
    #[must_use]
    pub fn finish(mut self) -> Trace {
        let tables = [
            &mut self.spans.time,
            &mut self.instants.time,
            &mut self.counters.time,
            &mut self.flows.time,
            &mut self.profile.samples.time,
        ];
        let first = tables.iter().flat_map(|times| times.iter().copied()).min().unwrap_or(0);
        // The times of a file of ours begin at 0 already.
        for time in tables.into_iter().filter(|_| first != 0).flatten() {
            *time = time.saturating_sub(first);
        }
        // A file that was read says so already.
        let packed = self.args.packed_rows();
        if packed > 0 && self.losses.count(Loss::PackedArgs) == 0 {
            self.losses.add_many(Loss::PackedArgs, packed, None);
        }
        self.clock.origin = self.clock.origin.saturating_add(first);
        self.strings.shrink_to_fit();
        Trace {
            strings: self.strings,
            categories: self.categories,
            processes: self.processes,
            tracks: self.tracks,
            spans: self.spans.finish(),
            instants: self.instants.finish(),
            counters: self.counters.finish(),
            flows: self.flows.finish(),
            profile: self.profile.finish(),
            arg_schemas: self.args.finish(),
            verbatim: self.verbatim,
            metadata: self.metadata,
            clock: self.clock,
            losses: self.losses,
            source: self.source,
        }
    }
}
