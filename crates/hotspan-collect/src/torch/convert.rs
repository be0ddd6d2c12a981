//! Records as a trace: the spans, instants, arrows, names and metadata of an export of torch.profiler.

mod arrows;
mod calls;
mod stream;

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, Args, CategoryId, Duration, EventRow, Ident, InstantRow, InstantScope, LayoutId, Loss, Place,
    SpanRow, StringId, Timestamp, TraceBuilder, TrackId,
};

use crate::clock::{Ticks, TimeLine};
use crate::cupti;
use crate::host_spans::{HostSpan, HostSpans};
use crate::torch::abi::{self, Block, Functions, Record};
use crate::torch::inputs::{self, Keyword};
use crate::torch::marks::push_mark;
use crate::torch::session::{AddedSpan, Options, Recording};
use crate::torch::threads::ThreadRecording;

use arrows::{Arrows, Link};
pub use stream::Stream;

/// Kineto counts time from the start of a period of this many seconds, so that microseconds keep their fractions in
/// readers that use floating point.
const BASE_SECONDS: i64 = 7_889_238;

/// Keys and order as Kineto writes them.
mod key {
    pub(super) const EXTERNAL_ID: &[u8] = b"External id";
    pub(super) const RECORD_FUNCTION: &[u8] = b"Record function id";
    pub(super) const SEQUENCE: &[u8] = b"Sequence number";
    pub(super) const FORWARD_THREAD: &[u8] = b"Fwd thread id";
    pub(super) const CONCRETE: &[u8] = b"Concrete Inputs";
    pub(super) const TYPES: &[u8] = b"Input type";
    pub(super) const STRIDES: &[u8] = b"Input Strides";
    pub(super) const DIMS: &[u8] = b"Input Dims";
    pub(super) const INDEX: &[u8] = b"Ev Idx";
    /// Not Kineto's: marks ranges that ended on another thread or by a future.
    pub(super) const ASYNC: &[u8] = b"Async";
}

/// Texts of one list of inputs, interned.
struct InternedInputs {
    /// Concrete inputs, types, strides, dims; `None` when there are only keyword inputs.
    positional: Option<[StringId; 4]>,
    keywords: Vec<(String, Arg)>,
}

#[derive(Clone, Copy, Default)]
struct Name {
    id: StringId,
    is_evaluation: bool,
}

/// What the autograd engine calls its work on a node. The node itself, recorded next, has the sequence number.
const EVALUATION: &[u8] = b"autograd::engine::evaluate_function: ";

/// The blocks of one thread, interned, in the order that records count them by.
#[derive(Default)]
struct Blocks {
    names: Vec<Name>,
    inputs: Vec<InternedInputs>,
}

// Both are counted from 1. What is not there can only be a mistake of the shim; it must not become a panic.
impl Blocks {
    fn name(&self, operator: &abi::Operator) -> Name {
        self.names.get((operator.name as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    fn inputs(&self, operator: &abi::Operator) -> Option<&InternedInputs> {
        self.inputs.get((operator.inputs as usize).wrapping_sub(1))
    }
}

struct Converter {
    builder: TraceBuilder,
    pending: PendingArgs,
    shim: Functions,
    clock: TimeLine,
    base: i64,
    stopped: Ticks,
    overload_names: bool,
    operator: CategoryId,
    annotation: CategoryId,
    instant: CategoryId,
    memory: StringId,
    out_of_memory: StringId,
    arrows: Arrows,
    /// For device work to find who launched it; `None` when there is none.
    host: Option<HostSpans>,
    /// Of the four combinations of an operator's keys, once they have been seen.
    layouts: [Option<LayoutId>; 4],
    /// Events so far; numbers them as Kineto does.
    index: i64,
    operators: i64,
    unfinished: u64,
}

/// Converts a recording; chunks give their memory back as they are read.
pub(crate) fn convert(recording: Recording) -> TraceBuilder {
    let started = recording.calibration.unix(recording.started).0;
    let period = BASE_SECONDS * 1_000_000_000;
    let base = started.div_euclid(period) * period;
    let clock = TimeLine::fixed(recording.calibration);
    let mut converter = Converter::new(TraceBuilder::new(), recording.shim, clock, recording.options);
    converter.base = base;
    converter.stopped = recording.stopped;
    converter.host = recording.device.is_some().then(HostSpans::default);
    converter.describe(recording.options, recording.process);
    converter.builder.clock.base_unix = Some(base);
    converter.builder.source.format = "hotspan recording".to_owned();
    converter.lose(Loss::BufferFull, recording.dropped());
    converter.lose(Loss::InputsDropped, recording.inputs_dropped());
    converter.lose(Loss::MemoryReleased, u64::from(recording.memory_released && recording.options.memory));
    let process = Ident::Int(i64::from(recording.process));
    let Recording {
        threads,
        mut added,
        marks,
        calls,
        started,
        stopped,
        process: number,
        device,
        calibration,
        ..
    } = recording;
    added.sort_by_key(|span| span.start);
    for thread in threads {
        if let Some(host) = &mut converter.host {
            host.name_thread(thread.posix_thread, thread.os_thread);
        }
        let (mine, others) = added.into_iter().partition(|span| span.os_thread == thread.os_thread);
        added = others;
        converter.thread(process, thread, mine);
    }
    // Spans of threads that ran no operator.
    while let Some(os_thread) = added.first().map(|span| span.os_thread) {
        let (mine, others) = added.into_iter().partition(|span| span.os_thread == os_thread);
        added = others;
        let track = converter.track(process, os_thread, "");
        converter.added(track, mine);
    }
    for (ticks, os_thread, mark) in marks {
        let time = converter.time(ticks.0);
        push_mark(&mut converter.builder, number, os_thread, time, &mark);
    }
    converter.calls(process, calls);
    converter.arrows.settle(&mut converter.builder, i64::MAX);
    converter.window(started, stopped);
    let Converter { mut builder, unfinished, host, .. } = converter;
    if let (Some(device), Some(mut host)) = (device, host) {
        let to = cupti::convert::Destination { base, process, first_correlation: 0 };
        cupti::convert::add(&mut builder, device, &calibration, to, &mut host);
    }
    if unfinished > 0 {
        builder.losses.add_many(Loss::UnfinishedSpan, unfinished, None);
    }
    builder
}

impl Converter {
    fn new(mut builder: TraceBuilder, shim: Functions, clock: TimeLine, options: Options) -> Self {
        Self {
            operator: builder.category("cpu_op"),
            annotation: builder.category("user_annotation"),
            instant: builder.category("cpu_instant_event"),
            memory: builder.intern("[memory]"),
            out_of_memory: builder.intern("[OutOfMemory]"),
            builder,
            pending: PendingArgs::default(),
            shim,
            clock,
            base: 0,
            stopped: Ticks(0),
            overload_names: options.overload_names,
            arrows: Arrows::default(),
            host: None,
            layouts: [None; 4],
            index: 0,
            operators: 0,
            unfinished: 0,
        }
    }

    /// Metadata and the process, as an importer would set them.
    fn describe(&mut self, options: Options, number: u32) {
        let metadata = &mut self.builder.metadata;
        metadata.set("schemaVersion", "1");
        metadata.set("deviceProperties", "[]");
        for (key, set) in [("profile_memory", options.memory), ("record_shapes", options.shapes)] {
            if set {
                metadata.set(key, "1");
            }
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        metadata.set("host_name", &serde_json::Value::from(host.trim()).to_string());
        metadata.set("displayTimeUnit", "\"ms\"");

        let process = self.builder.process(Ident::Int(i64::from(number)));
        let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let name = self.builder.intern(name.trim_end());
        let labels = self.builder.intern("CPU");
        let described = self.builder.process_mut(process);
        described.name = Some(name);
        described.labels = Some(labels);
        described.sort_index = Some(i64::from(number));
    }

    fn lose(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            self.builder.losses.add_many(loss, count, None);
        }
    }

    fn read_blocks(&mut self, mut words: &[u64], blocks: &mut Blocks) {
        while let Some((block, rest)) = Block::read(words) {
            words = rest;
            match block {
                Block::Name(name, overload) => blocks.names.push(self.name(name, overload)),
                Block::Inputs(count, items) => blocks.inputs.push(self.inputs(count, items)),
            }
        }
    }

    fn track(&mut self, process: Ident, os_thread: i64, name: &str) -> TrackId {
        let track = self.builder.track(process, Ident::Int(os_thread));
        let name = self.builder.intern(&format!("thread {os_thread} ({name})"));
        let described = self.builder.track_mut(track);
        described.name = Some(name);
        described.sort_index = Some(os_thread);
        track
    }

    fn thread(&mut self, process: Ident, thread: ThreadRecording, added: Vec<AddedSpan>) {
        let track = self.track(process, thread.os_thread, &thread.name);
        let mut blocks = Blocks::default();
        for part in &thread.parts {
            self.read_blocks(part.blocks(), &mut blocks);
        }
        let mut added = added.into_iter().peekable();
        let mut evaluation: Option<abi::Operator> = None;
        // Each part gives its memory back when it is read.
        for part in thread.parts {
            let mut slots = part.slots();
            // SAFETY: these are the slots that were published before recording stopped.
            while let Some(record) = unsafe { Record::read(&mut slots) } {
                match record {
                    Record::Operator(operator) => {
                        if let Some(waiting) = evaluation.take() {
                            self.operator(track, &waiting.of_node(&operator), None, &blocks);
                        }
                        while let Some(span) = added.next_if(|span| span.start.0 <= operator.start) {
                            self.added_span(track, &span);
                        }
                        if blocks.name(&operator).is_evaluation {
                            evaluation = Some(operator);
                        } else {
                            self.link(track, thread.torch_thread, &operator);
                            self.operator(track, &operator, None, &blocks);
                        }
                    }
                    Record::Memory(memory, totals) => self.memory(track, &memory, &totals),
                }
            }
        }
        if let Some(waiting) = evaluation {
            self.operator(track, &waiting, None, &blocks);
        }
        self.added(track, added.collect());
    }

    fn added(&mut self, track: TrackId, spans: Vec<AddedSpan>) {
        for span in spans {
            self.added_span(track, &span);
        }
    }

    fn time(&self, ticks: u64) -> Timestamp {
        Timestamp(self.clock.unix(Ticks(ticks)).0 - self.base)
    }

    fn arg(&mut self, key: &[u8], value: Arg) {
        self.builder.push_arg(&mut self.pending, Place::Args, key, value);
    }

    fn commit(&mut self) -> Args {
        self.builder.push_arg(&mut self.pending, Place::Args, key::INDEX, Arg::Int(self.index));
        self.index += 1;
        let args = self.builder.commit_args(&mut self.pending);
        self.pending.clear();
        args
    }

    /// Notes an operator that may be an end of an arrow. The arrow ends at the node, not at the engine's evaluation around
    /// it, which has the same number.
    fn link(&mut self, track: TrackId, torch_thread: u64, operator: &abi::Operator) {
        let forward_thread = operator.forward_thread;
        if let Some(sequence) = operator.sequence()
            && forward_thread != abi::UNKNOWN_THREAD
        {
            let time = self.time(operator.start);
            self.arrows.push(Link { time: time.0, track, torch_thread, forward_thread, sequence });
        }
    }

    /// Adds an operator; `start` where its beginning was converted before.
    fn operator(
        &mut self,
        track: TrackId,
        operator: &abi::Operator,
        start: Option<Timestamp>,
        blocks: &Blocks,
    ) {
        let name = blocks.name(operator).id;
        let inputs = blocks.inputs(operator);
        let time = start.unwrap_or_else(|| self.time(operator.start));
        let end = if operator.end == 0 {
            self.unfinished += 1;
            self.time(self.stopped.0.max(operator.start))
        } else {
            self.time(operator.end)
        };
        self.operators += 1;
        let sequence = operator.sequence();
        let sequence = sequence.map(|sequence| [sequence, i64::from(operator.forward_thread)]);
        let args = self.operator_args(sequence, inputs, operator.kind & abi::KIND_ASYNC != 0);
        let is_range = operator.kind & !abi::KIND_ASYNC == abi::KIND_USER_SCOPE;
        let category = if is_range { self.annotation } else { self.operator };
        let event = EventRow { time, name, category, track, args };
        self.builder.push_span(SpanRow { event, duration: end.since(time) });
        if let Some(host) = &mut self.host {
            let (start, end, external) = (time.0, end.0, self.operators);
            host.push(track, HostSpan { start, end, external, name, is_annotation: is_range });
        }
    }

    /// Kineto's keys come in four combinations; each is looked up once and its rows are appended after that.
    fn operator_args(
        &mut self,
        sequence: Option<[i64; 2]>,
        inputs: Option<&InternedInputs>,
        is_async: bool,
    ) -> Args {
        let positional = inputs.and_then(|inputs| inputs.positional);
        let keywords = inputs.map_or(&[][..], |inputs| &inputs.keywords);
        let mut row = [(&[][..], Arg::Int(0)); 9];
        let mut length = 0;
        let mut put = |key: &'static [u8], value: Arg| {
            row[length] = (key, value);
            length += 1;
        };
        put(key::EXTERNAL_ID, Arg::Int(self.operators));
        if positional.is_none() {
            put(key::RECORD_FUNCTION, Arg::Int(0));
        }
        if let Some([sequence, forward_thread]) = sequence {
            put(key::SEQUENCE, Arg::Int(sequence));
            put(key::FORWARD_THREAD, Arg::Int(forward_thread));
        }
        if let Some([concrete, types, strides, dims]) = positional {
            put(key::RECORD_FUNCTION, Arg::Int(0));
            put(key::CONCRETE, Arg::Json(concrete));
            put(key::TYPES, Arg::Json(types));
            put(key::STRIDES, Arg::Json(strides));
            put(key::DIMS, Arg::Json(dims));
        }
        let plain = keywords.is_empty() && !is_async;
        let combination = usize::from(positional.is_some()) * 2 + usize::from(sequence.is_some());
        if let (true, Some(layout)) = (plain, self.layouts[combination]) {
            let mut values = row.map(|(_, value)| value);
            let mut all = [Arg::Int(0); 10];
            all[..9].swap_with_slice(&mut values);
            all[length] = Arg::Int(self.index);
            if let Some(args) = self.builder.repeat_args(layout, &all[..=length]) {
                self.index += 1;
                return args;
            }
        }
        for &(key, value) in &row[..length] {
            self.arg(key, value);
        }
        for (key, value) in keywords {
            self.arg(key.as_bytes(), *value);
        }
        if is_async {
            self.arg(key::ASYNC, Arg::Int(1));
        }
        let args = self.commit();
        if plain {
            self.layouts[combination] = Some(args.layout);
        }
        args
    }

    fn added_span(&mut self, track: TrackId, span: &AddedSpan) {
        self.operators += 1;
        self.arg(key::EXTERNAL_ID, Arg::Int(self.operators));
        self.arg(key::RECORD_FUNCTION, Arg::Int(0));
        let args = self.commit();
        let name = self.builder.intern(&span.name);
        let time = self.time(span.start.0);
        let category = if span.is_call { self.builder.category("python_function") } else { self.annotation };
        let event = EventRow { time, name, category, track, args };
        let end = self.time(span.end.0);
        self.builder.push_span(SpanRow { event, duration: end.since(time) });
        if let (Some(host), false) = (&mut self.host, span.is_call) {
            let (start, end, external) = (time.0, end.0, self.operators);
            host.push(track, HostSpan { start, end, external, name, is_annotation: true });
        }
    }

    fn memory(&mut self, track: TrackId, memory: &abi::Memory, totals: &abi::MemoryTotals) {
        self.arg(b"Total Reserved", Arg::Int(totals.reserved as i64));
        self.arg(b"Total Allocated", Arg::Int(totals.allocated as i64));
        self.arg(b"Bytes", Arg::Int(memory.bytes));
        self.arg(b"Device Id", Arg::Int(i64::from(memory.device_index)));
        self.arg(b"Device Type", Arg::Int(i64::from(memory.device_type)));
        let out = memory.kind == abi::KIND_OUT_OF_MEMORY;
        if !out {
            self.arg(b"Addr", Arg::Int(memory.address as i64));
        }
        let args = self.commit();
        let name = if out { self.out_of_memory } else { self.memory };
        let event = EventRow { time: self.time(memory.time), name, category: self.instant, track, args };
        self.builder.push_instant(InstantRow { event, scope: InstantScope::Thread });
    }

    fn name(&mut self, name: &[u8], overload: &[u8]) -> Name {
        let id = if self.overload_names && !overload.is_empty() {
            self.builder.intern_bytes(&[name, b".", overload].concat(), 0)
        } else {
            self.builder.intern_bytes(name, 0)
        };
        Name { id, is_evaluation: name.starts_with(EVALUATION) }
    }

    fn inputs(&mut self, count: usize, items: &[u64]) -> InternedInputs {
        let texts = inputs::decode(items, count, |dtype| self.shim.dtype_name(dtype));
        let builder = &mut self.builder;
        let positional = (count > 0).then(|| {
            [&texts.concrete, &texts.types, &texts.strides, &texts.dims].map(|text| builder.intern(text))
        });
        let mut value = |value: Keyword| match value {
            Keyword::Int(number) => Arg::Int(number),
            Keyword::Text(text) => Arg::Text(builder.intern(&text)),
            Keyword::Json(text) => Arg::Json(builder.intern(&text)),
        };
        let keywords = texts.keywords.into_iter().map(|(key, keyword)| (key, value(keyword))).collect();
        InternedInputs { positional, keywords }
    }

    /// The span of the recording itself, and marks at its ends.
    fn window(&mut self, started: Ticks, stopped: Ticks) {
        let (start, end) = (self.time(started.0), self.time(stopped.0));
        let word = |builder: &mut TraceBuilder, text: &str| Ident::Text(builder.intern(text));
        let spans = word(&mut self.builder, "Spans");
        let profiler = word(&mut self.builder, "PyTorch Profiler");
        let track = self.builder.track(spans, profiler);
        let process = self.builder.process(spans);
        self.builder.process_mut(process).sort_index = Some(536_870_912);
        self.builder.push_arg(&mut self.pending, Place::Args, b"Op count", Arg::Int(0));
        let args = self.builder.commit_args(&mut self.pending);
        self.pending.clear();
        let name = self.builder.intern("PyTorch Profiler (0)");
        let category = self.builder.category("Trace");
        let event = EventRow { time: start, name, category, track, args };
        self.builder.push_span(SpanRow { event, duration: Duration(end.since(start).0.max(0)) });

        let no_category = self.builder.category("");
        let args = self.builder.no_args();
        let traces = (word(&mut self.builder, "Traces"), word(&mut self.builder, "Trace PyTorch Profiler"));
        let nowhere = (word(&mut self.builder, ""), word(&mut self.builder, ""));
        let marks =
            [("Iteration Start: PyTorch Profiler", start, traces), ("Record Window End", end, nowhere)];
        for (name, time, (process, thread)) in marks {
            let track = self.builder.track(process, thread);
            let name = self.builder.intern(name);
            let event = EventRow { time, name, category: no_category, track, args };
            self.builder.push_instant(InstantRow { event, scope: InstantScope::Global });
        }
    }
}
