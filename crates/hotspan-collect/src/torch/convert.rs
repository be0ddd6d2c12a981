//! Records as a trace: the spans, instants, flows, names and metadata of an export of torch.profiler.

mod blocks;
mod describe;
mod flows;
mod rows;
mod stream;
mod tensors;

use std::sync::atomic::{AtomicI64, Ordering};

use hotspan_store::args::PendingArgs;
use hotspan_store::{ArgSchemaId, CategoryId, Ident, Loss, StringId, Timestamp, TraceBuilder, TrackId};

use crate::calls::SpanTable;
use crate::clock::{Ticks, TimeLine};
use crate::cupti;
use crate::host_spans::HostSpans;
use crate::torch::abi::{self, Extra, Functions, Record};
use crate::torch::marks::push_mark;
use crate::torch::session::{AddedSpan, Options, Recording};
use crate::torch::threads::ThreadRecording;

use blocks::Blocks;
use flows::Flows;
pub use stream::Stream;
pub use tensors::{InputTensor, TensorTable};

/// Kineto counts time from the start of a period of this many seconds, so that microseconds keep their fractions in
/// readers that use floating point.
const BASE_SECONDS: i64 = 7_889_238;

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
    flows: Flows,
    /// For device work to find who launched it; `None` when there is none.
    host: Option<HostSpans>,
    /// Of the four combinations of an operator's keys, once they have been seen.
    arg_schemas: [Option<ArgSchemaId>; 8],
    /// Events so far; numbers them as Kineto does.
    index: i64,
    operators: i64,
    /// Of the operator that is added next.
    extra: Extra,
    tensors: TensorTable,
    unfinished: u64,
}

/// The last number that an operator of this process was given. Windows of one program go on counting, as torch's do.
static LAST_ID: AtomicI64 = AtomicI64::new(0);

/// Converts a recording; chunks give their memory back as they are read.
pub(crate) fn convert(recording: Recording) -> (TraceBuilder, TensorTable) {
    let started = recording.calibration.unix(recording.started).0;
    let period = BASE_SECONDS * 1_000_000_000;
    let base = started.div_euclid(period) * period;
    let clock = TimeLine::fixed(recording.calibration);
    let mut converter = Converter::new(TraceBuilder::new(), recording.shim, clock, recording.options);
    converter.base = base;
    converter.operators = LAST_ID.load(Ordering::Relaxed);
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
            host.name_thread(thread.identity.posix_thread, thread.identity.os_thread);
        }
        let (mine, others) = added.into_iter().partition(|span| span.os_thread == thread.identity.os_thread);
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
    // torch asks at this moment too.
    if recording.shim.wants_links() {
        converter.flows.settle(&mut converter.builder, i64::MAX);
    }
    converter.window(started, stopped);
    LAST_ID.fetch_max(converter.operators, Ordering::Relaxed);
    let Converter { mut builder, unfinished, host, tensors, .. } = converter;
    if let (Some(device), Some(mut host)) = (device, host) {
        let to = cupti::convert::Destination { base, process, first_correlation: 0 };
        cupti::convert::add(&mut builder, device, &calibration, to, &mut host);
    }
    if unfinished > 0 {
        builder.losses.add_many(Loss::UnfinishedSpan, unfinished, None);
    }
    (builder, tensors)
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
            flows: Flows::default(),
            host: None,
            arg_schemas: [None; 8],
            index: 0,
            operators: 0,
            extra: Extra::default(),
            tensors: TensorTable::default(),
            unfinished: 0,
        }
    }

    fn lose(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            self.builder.losses.add_many(loss, count, None);
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
        let track = self.track(process, thread.identity.os_thread, &thread.identity.name);
        let mut blocks = Blocks::default();
        for part in &thread.parts {
            self.read_blocks(part.blocks(), &mut blocks);
        }
        let mut added = added.into_iter().peekable();
        let (mut evaluation, mut extra): (Option<(abi::Operator, Extra)>, _) = (None, Extra::default());
        // Each part gives its memory back when it is read.
        for part in thread.parts {
            let mut slots = part.slots();
            // SAFETY: `part` shows the slots down to the last one published before recording stopped, and keeps their chunk.
            while let Some(record) = unsafe { Record::read(&mut slots) } {
                match record {
                    Record::Operator(operator) => {
                        let extra = std::mem::take(&mut extra);
                        if let Some((waiting, of_waiting)) = evaluation.take() {
                            self.extra = of_waiting;
                            self.operator(track, &waiting.of_node(&operator), None, &blocks);
                        }
                        while let Some(span) = added.next_if(|span| span.start.0 <= operator.start) {
                            self.added_span(track, &span);
                        }
                        if blocks.name(&operator).is_evaluation {
                            evaluation = Some((operator, extra));
                        } else {
                            self.link(track, thread.identity.torch_thread, &operator);
                            self.extra = extra;
                            self.operator(track, &operator, None, &blocks);
                        }
                    }
                    Record::Extra(of_next) => extra = of_next,
                    Record::Memory(memory, totals) => self.memory(track, &memory, &totals),
                }
            }
        }
        if let Some((waiting, of_waiting)) = evaluation {
            self.extra = of_waiting;
            self.operator(track, &waiting, None, &blocks);
        }
        self.added(track, added.collect());
    }

    fn added(&mut self, track: TrackId, spans: Vec<AddedSpan>) {
        for span in spans {
            self.added_span(track, &span);
        }
    }

    /// Adds calls of Python functions among the operators: `with_stack`.
    fn calls(&mut self, process: Ident, calls: SpanTable) {
        let (clock, base) = (&self.clock, self.base);
        calls.write(&mut self.builder, process, &mut self.index, |ticks| {
            Timestamp(clock.unix(ticks).0 - base)
        });
    }

    fn time(&self, ticks: u64) -> Timestamp {
        Timestamp(self.clock.unix(Ticks(ticks)).0 - self.base)
    }
}
