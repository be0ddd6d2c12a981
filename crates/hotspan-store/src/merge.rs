//! Several traces as one: the processes of a job, the parts of a recording.
//!
//! Every id is translated. Numbers that events find each other by (`correlation`, `External id`, ids of Python calls and of
//! flows) count per process, so each trace gets a range of its own. A process counts the devices that it sees from 0, so device 0
//! of one trace is another than device 0 of the next. Traces that know Unix time are put on one clock.

use std::borrow::Borrow;

use hashbrown::HashMap;

use crate::args::{Arg, ArgOrigin, ArgType, Args, PendingArgs};
use crate::builder::TraceBuilder;
use crate::events::{EventRow, FlowRow, InstantRow, SpanRow};
use crate::ids::{ArgSchemaId, CategoryId, FrameId, Ident, StackId, StringId, TrackId};
use crate::keys;
use crate::profile::{CallRow, FrameKind, FrameRow, LineRow, SampleRow};
use crate::trace::{Process, Trace};
use crate::units::Timestamp;

/// Args whose numbers are ids within one process.
const PROCESS_IDS: [&str; 5] =
    [keys::CORRELATION, keys::EXTERNAL_ID, keys::PYTHON_ID, keys::PYTHON_PARENT_ID, keys::PYTHON_MODULE_ID];

/// One trace with all that the given ones hold.
///
/// The first trace's metadata counts where several say something different. Losses are added up.
#[must_use]
pub fn merge(traces: &[impl Borrow<Trace>]) -> Trace {
    merge_with_names(traces, &mut |_, _| None)
}

/// The same, with other names for native frames: `name` is given the library and the name of each, and may have a better one.
pub fn merge_with_names(
    traces: &[impl Borrow<Trace>],
    name: &mut dyn FnMut(&str, &str) -> Option<String>,
) -> Trace {
    let traces: Vec<&Trace> = traces.iter().map(Borrow::borrow).collect();
    let mut builder = TraceBuilder::new();
    let on_one_clock = traces.iter().all(|trace| trace.clock().unix_origin().is_some());
    if on_one_clock {
        builder.clock.base_unix = Some(0);
    } else if let Some(first) = traces.first() {
        builder.clock = first.clock();
    }
    let mut owners = DeviceOwners::default();
    for trace in traces {
        let shift = if on_one_clock { trace.clock().unix_origin().unwrap_or(0) } else { 0 };
        let devices = owners.keep_apart(&mut builder, trace);
        builder.append_with_names(trace, shift, &devices, name);
    }
    builder.finish()
}

impl TraceBuilder {
    /// Adds all that a trace holds, its times later by `shift` nanoseconds.
    pub fn append(&mut self, trace: &Trace, shift: i64) {
        self.append_with_names(trace, shift, &[], &mut |_, _| None);
    }

    fn append_with_names(
        &mut self,
        trace: &Trace,
        shift: i64,
        devices: &[Option<Ident>],
        name: &mut dyn FnMut(&str, &str) -> Option<String>,
    ) {
        let id_base = self.last_appended_id;
        let mut addition = Addition::new(self, trace, shift, id_base, devices);
        addition.describe();
        addition.events();
        addition.profile(name);
        self.last_appended_id = addition.last_id;
    }

    /// The largest number by which events of traces that were appended find each other. Who numbers events of its own
    /// begins after it, and says with [`Self::reserve_ids`] how far it came.
    #[must_use]
    pub fn last_id(&self) -> i64 {
        self.last_appended_id
    }

    /// Keeps numbers up to this one from traces that will be appended.
    pub fn reserve_ids(&mut self, last: i64) {
        self.last_appended_id = self.last_appended_id.max(last);
    }
}

/// Whose devices have which ids, among traces that are merged.
#[derive(Default)]
struct DeviceOwners {
    owners: HashMap<String, String>,
}

impl DeviceOwners {
    /// For each process of a trace that is a device, and whose id is that of another process's device: an id of its own.
    fn keep_apart(&mut self, builder: &mut TraceBuilder, trace: &Trace) -> Vec<Option<Ident>> {
        let mut is_device = vec![false; trace.processes().len()];
        for span in trace.spans().ids().filter(|&span| trace.span_category(span).is_device()) {
            is_device[trace.track(trace.spans().track(span)).process.index()] = true;
        }
        let mut hosts = trace.processes().iter().zip(&is_device).filter(|(_, is_device)| !**is_device);
        let host = hosts.find_map(|(process, _)| process.ident.number());
        let host = host.map_or_else(String::new, |host| host.to_string());
        let mut ident = |(process, is_device): (&Process, bool)| {
            let device = is_device.then(|| process.ident.display(trace.strings()))?;
            let owner = self.owners.entry(device.clone()).or_insert_with(|| host.clone());
            (*owner != host).then(|| Ident::Text(builder.intern(&format!("{device} of process {host}"))))
        };
        trace.processes().iter().zip(is_device).map(&mut ident).collect()
    }
}

/// One trace on its way into a builder.
struct Addition<'a> {
    builder: &'a mut TraceBuilder,
    trace: &'a Trace,
    /// What its times grow by.
    shift: i64,
    /// What its ids grow by.
    id_base: i64,
    /// The largest id so far.
    last_id: i64,
    strings: Vec<StringId>,
    categories: Vec<CategoryId>,
    tracks: Vec<TrackId>,
    arg_schemas: Vec<Option<ArgSchemaId>>,
    /// For each layout, which of its keys hold ids.
    id_keys: Vec<Vec<bool>>,
    values: Vec<Arg>,
}

impl<'a> Addition<'a> {
    fn new(
        builder: &'a mut TraceBuilder,
        trace: &'a Trace,
        shift: i64,
        id_base: i64,
        devices: &[Option<Ident>],
    ) -> Self {
        let strings: Vec<StringId> = trace.strings().iter().map(|text| builder.intern(text)).collect();
        let category = |(name, _): &(StringId, _)| builder.category_of(strings[name.index()]);
        let categories = trace.categories.iter().map(category).collect();
        let ident = |ident: Ident| match ident {
            Ident::Int(number) => Ident::Int(number),
            Ident::Text(text) => Ident::Text(strings[text.index()]),
        };
        let mut track = |track: &crate::trace::Track| {
            let process = devices.get(track.process.index()).copied().flatten();
            builder.track(process.unwrap_or(ident(trace.process(track.process).ident)), ident(track.ident))
        };
        let tracks = trace.tracks().iter().map(&mut track).collect();
        let is_id = |key: &crate::args::ArgKey| {
            key.kind == ArgType::Int && PROCESS_IDS.contains(&trace.str(key.name))
        };
        let id_keys =
            trace.arg_schemas().iter().map(|layout| layout.keys().iter().map(is_id).collect()).collect();
        let arg_schemas = vec![None; trace.arg_schemas().len()];
        Self {
            builder,
            trace,
            shift,
            id_base,
            last_id: id_base,
            strings,
            categories,
            tracks,
            arg_schemas,
            id_keys,
            values: Vec::new(),
        }
    }

    /// What is said about processes, threads, the trace itself and its losses.
    fn describe(&mut self) {
        let Self { builder, trace, strings, tracks, .. } = self;
        let text = |id: Option<StringId>| id.map(|id| strings[id.index()]);
        for (track, &id) in trace.tracks().iter().zip(tracks.iter()) {
            let process = trace.process(track.process);
            let into = builder.tracks[id.index()].process;
            let into = builder.process_mut(into);
            into.name = into.name.or(text(process.name));
            into.labels = into.labels.or(text(process.labels));
            into.sort_index = into.sort_index.or(process.sort_index);
            let into = builder.track_mut(id);
            into.name = into.name.or(text(track.name));
            into.sort_index = into.sort_index.or(track.sort_index);
        }
        for (key, value) in trace.metadata().iter() {
            if builder.metadata.get(key).is_none() {
                builder.metadata.set(key, value);
            }
        }
        for known in trace.losses().counts() {
            builder.losses.add_many(known.loss, known.count, None);
        }
        if builder.source.format.is_empty() {
            builder.source = trace.source().clone();
        }
    }

    fn events(&mut self) {
        let trace = self.trace;
        for span in trace.spans().ids() {
            let event = self.event(trace.spans().event(span.index()));
            self.builder.push_span(SpanRow { event, duration: trace.spans().duration(span) });
        }
        for index in 0..trace.instants().len() {
            let row = trace.instants().row(index);
            let event = self.event(row.event);
            self.builder.push_instant(InstantRow { event, scope: row.scope });
        }
        for row in trace.counters().events() {
            let event = self.event(row);
            self.builder.push_counter(event);
        }
        for index in 0..trace.flows().len() {
            let row = trace.flows().row(index);
            let event = self.event(row.event);
            let id = self.id(row.id);
            self.builder.push_flow(FlowRow { event, id, ..row });
        }
        for &json in &trace.verbatim {
            self.builder.push_verbatim(self.strings[json.index()]);
        }
    }

    fn profile(&mut self, rename: &mut dyn FnMut(&str, &str) -> Option<String>) {
        let Self { builder, trace, strings, tracks, shift, .. } = self;
        let profile = trace.profile();
        let frame = |row: FrameRow| {
            let (name, file) = (strings[row.name.index()], strings[row.file.index()]);
            let is_native = row.kind == FrameKind::Native;
            let better = is_native.then(|| rename(trace.str(row.file), trace.str(row.name))).flatten();
            let name = better.map_or(name, |better| builder.intern(&better));
            builder.frame(FrameRow { name, file, ..row })
        };
        let frames: Vec<FrameId> = profile.frames.rows().map(frame).collect();
        let mut stacks: Vec<StackId> = Vec::with_capacity(profile.stacks.len());
        for index in 0..profile.stacks.len() {
            let id = StackId::at(index);
            // A parent comes before its children.
            let parent = profile.stacks.parent(id).map_or(StackId::NONE, |parent| stacks[parent.index()]);
            stacks.push(builder.stack(parent, frames[profile.stacks.frame(id).index()]));
        }
        for row in profile.samples.rows() {
            let time = Timestamp(row.time.0.saturating_add(*shift));
            let (track, stack) = (tracks[row.track.index()], stacks[row.stack.index()]);
            builder.push_sample(SampleRow { time, track, stack, ..row });
        }
        for row in profile.calls.rows() {
            let caller = frames.get(row.caller.index()).copied().unwrap_or(FrameId::NONE);
            builder.push_calls(CallRow { caller, callee: frames[row.callee.index()], ..row });
        }
        for row in profile.lines.rows() {
            builder.push_line(LineRow { function: frames[row.function.index()], ..row });
        }
    }

    fn event(&mut self, row: EventRow) -> EventRow {
        EventRow {
            time: Timestamp(row.time.0.saturating_add(self.shift)),
            name: self.strings[row.name.index()],
            category: self.categories[row.category.index()],
            track: self.tracks[row.track.index()],
            args: self.args(row.args),
        }
    }

    fn args(&mut self, args: Args) -> Args {
        let layout = &self.trace.arg_schemas()[args.schema.index()];
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        for position in 0..layout.keys().len() {
            let value = layout.value(position, args.row).unwrap_or(Arg::Int(0));
            values.push(match value {
                Arg::Int(number) if self.id_keys[args.schema.index()][position] => Arg::Int(self.id(number)),
                Arg::Text(text) => Arg::Text(self.strings[text.index()]),
                Arg::Json(text) => Arg::Json(self.strings[text.index()]),
                plain => plain,
            });
        }
        let known = self.arg_schemas[args.schema.index()];
        let stored = match known.and_then(|known| self.builder.repeat_args(known, &values)) {
            Some(stored) => stored,
            None => {
                let mut pending = PendingArgs::default();
                for (key, &value) in layout.keys().iter().zip(&values) {
                    // Packed args are JSON text whose own ids stay as they are.
                    let name = if key.origin == ArgOrigin::Packed { "" } else { self.trace.str(key.name) };
                    self.builder.push_arg(&mut pending, key.origin, name.as_bytes(), value);
                }
                let stored = self.builder.commit_args(&mut pending);
                self.arg_schemas[args.schema.index()] = Some(stored.schema);
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
