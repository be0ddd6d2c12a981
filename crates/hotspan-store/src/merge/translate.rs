//! The translation of one trace, whole or part by part, into the ids of a builder that has others already.

use crate::args::tables::ArgTables;
use crate::args::{Arg, ArgKey, ArgOrigin, ArgType, Args, PendingArgs};
use crate::builder::TraceBuilder;
use crate::content::Content;
use crate::events::{EventRow, FlowRow, InstantRow, SpanRow};
use crate::ids::{ArgSchemaId, CategoryId, FrameId, Ident, StackId, StringId, TrackId};
use crate::keys;
use crate::merge::Rename;
use crate::profile::{CallRow, FrameKind, FrameRow, LineRow, SampleRow};
use crate::trace::Track;
use crate::units::{Duration, Timestamp};

/// Args whose numbers are ids within one process.
const PROCESS_IDS: [&str; 5] =
    [keys::CORRELATION, keys::EXTERNAL_ID, keys::PYTHON_ID, keys::PYTHON_PARENT_ID, keys::PYTHON_MODULE_ID];

/// What the ids of one trace are in the builder that it goes to. Of a trace that comes in parts, ids go on from part to part.
#[derive(Debug)]
pub(super) struct Translation {
    /// What its times grow by.
    shift: i64,
    /// What its ids grow by.
    id_base: i64,
    /// The largest id so far.
    last_id: i64,
    /// For each of its processes, the id that replaces its own.
    devices: Vec<Option<Ident>>,
    strings: Vec<StringId>,
    categories: Vec<CategoryId>,
    tracks: Vec<TrackId>,
    arg_schemas: Vec<Option<ArgSchemaId>>,
    /// For each layout, which of its keys hold ids.
    id_keys: Vec<Vec<bool>>,
    frames: Vec<FrameId>,
    stacks: Vec<StackId>,
    values: Vec<Arg>,
    /// Events that ended before are left out.
    pub(super) since: Option<Timestamp>,
    /// How many were.
    pub(super) left_out: u64,
}

impl Translation {
    pub(super) fn new(shift: i64, id_base: i64, devices: Vec<Option<Ident>>) -> Self {
        Self {
            shift,
            id_base,
            last_id: id_base,
            devices,
            strings: Vec::new(),
            categories: Vec::new(),
            tracks: Vec::new(),
            arg_schemas: Vec::new(),
            id_keys: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            values: Vec::new(),
            since: None,
            left_out: 0,
        }
    }

    /// Whether something that ended at this moment of its own trace is left out; it is counted.
    #[inline]
    fn leaves_out(&mut self, end: Timestamp) -> bool {
        let is_older = self.since.is_some_and(|since| end.0.saturating_add(self.shift) <= since.0);
        self.left_out += u64::from(is_older);
        is_older
    }

    /// The largest number by which events find each other.
    pub(super) fn last_id(&self) -> i64 {
        self.last_id
    }

    /// Adds a part: names that are new in it, and all its rows.
    pub(super) fn add(
        &mut self,
        builder: &mut TraceBuilder,
        content: &Content<'_>,
        args: ArgTables<'_>,
        rename: &mut Rename<'_>,
    ) {
        self.names(builder, content, args);
        self.events(builder, content, args);
        self.profile(builder, content, rename);
    }

    fn names(&mut self, builder: &mut TraceBuilder, content: &Content<'_>, args: ArgTables<'_>) {
        let Self { strings, devices, .. } = self;
        strings.extend(content.strings.iter().skip(strings.len()).map(|text| builder.intern(text)));
        let category = |(name, _): &(StringId, _)| builder.category_of(strings[name.index()]);
        self.categories.extend(content.categories[self.categories.len()..].iter().map(category));
        let ident = |ident: Ident| match ident {
            Ident::Int(number) => Ident::Int(number),
            Ident::Text(text) => Ident::Text(strings[text.index()]),
        };
        let track = |track: &Track| {
            let process = devices.get(track.process.index()).copied().flatten();
            let own = || ident(content.processes[track.process.index()].ident);
            builder.track(process.unwrap_or_else(own), ident(track.ident))
        };
        self.tracks.extend(content.tracks[self.tracks.len()..].iter().map(track));
        let is_id =
            |key: &ArgKey| key.kind == ArgType::Int && PROCESS_IDS.contains(&content.strings.get(key.name));
        let id_keys =
            (self.id_keys.len()..args.len()).map(|table| args.keys(table).iter().map(is_id).collect());
        self.id_keys.extend(id_keys);
        self.arg_schemas.resize(args.len(), None);
    }

    /// What is said about processes and threads, once all parts were added.
    pub(super) fn describe(&self, builder: &mut TraceBuilder, content: &Content<'_>) {
        let text = |id: Option<StringId>| id.map(|id| self.strings[id.index()]);
        for (track, &id) in content.tracks.iter().zip(&self.tracks) {
            let process = content.processes[track.process.index()];
            let into = builder.tracks[id.index()].process;
            let into = builder.process_mut(into);
            into.name = into.name.or(text(process.name));
            into.labels = into.labels.or(text(process.labels));
            into.sort_index = into.sort_index.or(process.sort_index);
            let into = builder.track_mut(id);
            into.name = into.name.or(text(track.name));
            into.sort_index = into.sort_index.or(track.sort_index);
        }
    }

    fn events(&mut self, builder: &mut TraceBuilder, content: &Content<'_>, args: ArgTables<'_>) {
        for index in 0..content.spans.len() {
            let (row, duration) = (content.spans.event(index), Duration(content.spans.duration[index]));
            if self.leaves_out(row.time.plus(duration)) {
                continue;
            }
            let event = self.event(builder, content, args, row);
            builder.push_span(SpanRow { event, duration });
        }
        for index in 0..content.instants.len() {
            let row = content.instants.row(index);
            if self.leaves_out(row.event.time) {
                continue;
            }
            let event = self.event(builder, content, args, row.event);
            builder.push_instant(InstantRow { event, scope: row.scope });
        }
        for row in content.counters.events() {
            if self.leaves_out(row.time) {
                continue;
            }
            let event = self.event(builder, content, args, row);
            builder.push_counter(event);
        }
        for index in 0..content.flows.len() {
            let row = content.flows.row(index);
            if self.leaves_out(row.event.time) {
                continue;
            }
            let event = self.event(builder, content, args, row.event);
            let id = self.id(row.id);
            builder.push_flow(FlowRow { event, id, ..row });
        }
        for &json in content.verbatim {
            builder.push_verbatim(self.strings[json.index()]);
        }
    }

    fn profile(&mut self, builder: &mut TraceBuilder, content: &Content<'_>, rename: &mut Rename<'_>) {
        let Self { strings, frames, stacks, .. } = self;
        let profile = content.profile;
        let frame = |row: FrameRow| {
            let (name, file) = (strings[row.name.index()], strings[row.file.index()]);
            let is_native = row.kind == FrameKind::Native;
            let text = |id| content.strings.get(id);
            let better = is_native.then(|| rename(text(row.file), text(row.name))).flatten();
            let name = better.map_or(name, |better| builder.intern(&better));
            builder.frame(FrameRow { name, file, ..row })
        };
        frames.extend(profile.frames.rows().map(frame));
        for index in 0..profile.stacks.len() {
            let id = StackId::at(index);
            // A parent comes before its children.
            let parent = profile.stacks.parent(id).map_or(StackId::NONE, |parent| stacks[parent.index()]);
            stacks.push(builder.stack(parent, frames[profile.stacks.frame(id).index()]));
        }
        for row in profile.samples.rows() {
            if self.leaves_out(row.time) {
                continue;
            }
            let time = Timestamp(row.time.0.saturating_add(self.shift));
            let (track, stack) = (self.tracks[row.track.index()], self.stacks[row.stack.index()]);
            builder.push_sample(SampleRow { time, track, stack, ..row });
        }
        let frames = &self.frames;
        for row in profile.calls.rows() {
            let caller = frames.get(row.caller.index()).copied().unwrap_or(FrameId::NONE);
            builder.push_calls(CallRow { caller, callee: frames[row.callee.index()], ..row });
        }
        for row in profile.lines.rows() {
            builder.push_line(LineRow { function: frames[row.function.index()], ..row });
        }
    }

    #[inline]
    fn event(
        &mut self,
        builder: &mut TraceBuilder,
        content: &Content<'_>,
        args: ArgTables<'_>,
        row: EventRow,
    ) -> EventRow {
        EventRow {
            time: Timestamp(row.time.0.saturating_add(self.shift)),
            name: self.strings[row.name.index()],
            category: self.categories[row.category.index()],
            track: self.tracks[row.track.index()],
            args: self.args(builder, content, args, row.args),
        }
    }

    fn args(
        &mut self,
        builder: &mut TraceBuilder,
        content: &Content<'_>,
        tables: ArgTables<'_>,
        args: Args,
    ) -> Args {
        let table = args.schema.index();
        let keys = tables.keys(table);
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        for position in 0..keys.len() {
            let value = tables.value(table, position, args.row).unwrap_or(Arg::Int(0));
            values.push(match value {
                Arg::Int(number) if self.id_keys[table][position] => Arg::Int(self.id(number)),
                Arg::Text(text) => Arg::Text(self.strings[text.index()]),
                Arg::Json(text) => Arg::Json(self.strings[text.index()]),
                plain => plain,
            });
        }
        let known = self.arg_schemas[table];
        let stored = match known.and_then(|known| builder.repeat_args(known, &values)) {
            Some(stored) => stored,
            None => {
                let mut pending = PendingArgs::default();
                for (key, &value) in keys.iter().zip(&values) {
                    // Packed args are JSON text whose own ids stay as they are.
                    let name =
                        if key.origin == ArgOrigin::Packed { "" } else { content.strings.get(key.name) };
                    builder.push_arg(&mut pending, key.origin, name.as_bytes(), value);
                }
                let stored = builder.commit_args(&mut pending);
                self.arg_schemas[table] = Some(stored.schema);
                stored
            }
        };
        self.values = values;
        stored
    }

    /// An id of this trace among all. Zero and negative numbers mean "none".
    fn id(&mut self, number: i64) -> i64 {
        if number <= 0 {
            return number;
        }
        let id = number.saturating_add(self.id_base);
        self.last_id = self.last_id.max(id);
        id
    }
}
