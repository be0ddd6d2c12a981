//! Device records as a trace: the spans, arrows, counters and metadata of an export of torch.profiler.
//!
//! A kernel is tied to its operator through the call that launched it: the call has the thread and the time, and
//! [`HostSpans`] knows who was running there and then.

use hashbrown::HashMap;
use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, Args, CategoryId, Duration, EventRow, FlowPhase, FlowRow, Ident, LayoutId, Loss, Place, SpanRow,
    StringId, Timestamp, TraceBuilder, TrackId,
};

use crate::clock::{Calibration, Ticks};
use crate::cupti::abi::{DOMAIN_RUNTIME, Overhead, Synchronization};
use crate::cupti::demangle::Demangler;
use crate::cupti::devices::Devices;
use crate::cupti::names;
use crate::cupti::nvml::{Reading, Samples};
use crate::cupti::occupancy::Needs;
use crate::cupti::records::{Call, Peers, Records, Work, WorkKind};
use crate::cupti::session::Recording;
use crate::cupti::timing::DeviceClock;
use crate::host_spans::{Around, HostSpans};

/// Kineto sorts devices after all processes of the host.
const DEVICE_SORT_INDEX: i64 = 5_000_000;
/// "No stream" and "no event" in records.
const NONE: u32 = u32::MAX;

/// A call, as device work refers to it.
#[derive(Clone, Copy)]
struct Launch {
    around: Around,
    track: TrackId,
    time: Timestamp,
    has_work: bool,
}

struct Converter<'a> {
    builder: &'a mut TraceBuilder,
    pending: PendingArgs,
    clock: DeviceClock,
    base: i64,
    process: Ident,
    first_correlation: i64,
    devices: Devices,
    launches: HashMap<u32, Launch>,
    /// First start and last end of the work of an annotation, by device, stream and annotation.
    annotated: HashMap<(u32, u32, i64), (StringId, i64, i64)>,
    /// JSON of grids and blocks.
    sides: HashMap<[i32; 3], StringId>,
    /// By the keys of an event: which of them were given.
    layouts: HashMap<u32, LayoutId>,
    /// Contexts and the devices they are on.
    contexts: HashMap<u32, u32>,
}

/// Where records go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    /// What the times of the trace count from.
    pub(crate) base: i64,
    pub(crate) process: Ident,
    /// What is added to correlations.
    pub(crate) first_correlation: i64,
}

/// Adds what was recorded on devices to a trace.
pub(crate) fn add(
    builder: &mut TraceBuilder,
    recording: Recording,
    calibration: &Calibration,
    to: Destination,
    host: &mut HostSpans,
) {
    let Destination { base, process, first_correlation } = to;
    let Recording { delivered, calls, devices, pairs, has_thread_ids, version, samples, .. } = recording;
    let Records { mut work, calls: mut made, syncs, events, overheads, contexts, names, .. } =
        delivered.records;
    for (loss, count) in [
        (
            Loss::DeviceRecordsDropped,
            delivered.dropped + u64::from(delivered.dropped == 0 && delivered.refused > 0),
        ),
        (Loss::BufferFull, delivered.records.beyond_limit),
        (Loss::UntimedDeviceWork, delivered.records.untimed),
        (Loss::DamagedDeviceBuffer, delivered.records.damaged),
        (Loss::DeviceBufferNotReturned, delivered.outstanding),
        (Loss::UnknownDeviceRecord, delivered.records.unknown),
    ] {
        if count > 0 {
            builder.losses.add_many(loss, count, None);
        }
    }
    if !has_thread_ids {
        let unknown = name_threads(&mut made, host);
        if unknown > 0 {
            builder.losses.add_many(Loss::UnknownLaunchThread, unknown, None);
        }
    }
    describe(builder, &devices, version);
    counters(builder, &samples, calibration, base);
    let Some([first, last]) = pairs else {
        // Without a common clock nothing can be placed.
        builder.losses.add_many(Loss::UntimedDeviceWork, (work.len() + made.len()) as u64, None);
        return;
    };
    let clock = DeviceClock::between(first, last, calibration);
    builder.metadata.set("device_clock_drift_ns", &clock.drift().to_string());
    if clock.has_jumped() {
        builder.losses.add(Loss::ClockJumped, None);
    }
    for call in made.iter_mut().filter(|call| call.in_ticks) {
        call.start = clock.cupti(Ticks(call.start), calibration);
        call.end = clock.cupti(Ticks(call.end), calibration);
    }
    let mut converter = Converter {
        builder,
        pending: PendingArgs::default(),
        clock,
        base,
        process,
        first_correlation,
        devices,
        launches: HashMap::with_capacity(made.len()),
        annotated: HashMap::new(),
        sides: HashMap::new(),
        layouts: HashMap::new(),
        contexts,
    };
    // Buffers come back in any order.
    work.sort_by_key(|work| work.start);
    let function = |domain, number| calls.name(domain, number);
    converter.calls(made, &function, host);
    let demangler = Demangler::new();
    let kernels: Vec<StringId> =
        names.iter().map(|name| converter.builder.intern(&demangler.demangle(name))).collect();
    for work in &work {
        converter.work(work, &kernels);
    }
    converter.annotations();
    let recorded =
        events.iter().map(|event| ((event.context, event.event), (event.stream, event.correlation)));
    converter.syncs(&syncs, &recorded.collect());
    converter.overheads(&overheads);
}

/// Gives calls the operating system's numbers of their threads, where CUPTI knows only the C library's. Returns how many
/// are of threads that recorded nothing else.
fn name_threads(made: &mut [Call], host: &HostSpans) -> u64 {
    let mut unknown = 0;
    for call in made.iter_mut().filter(|call| !call.in_ticks) {
        match host.os_thread(call.thread) {
            Some(thread) => call.thread = thread as u32,
            None => unknown += 1,
        }
    }
    unknown
}

fn describe(builder: &mut TraceBuilder, devices: &Devices, version: u32) {
    let metadata = &mut builder.metadata;
    metadata.set("deviceProperties", &devices.json());
    metadata.set("cupti_version", &version.to_string());
    for (key, version) in
        [("cuda_runtime_version", devices.runtime_version), ("cuda_driver_version", devices.driver_version)]
    {
        if let Some(version) = version {
            metadata.set(key, &version.to_string());
        }
    }
}

/// NVML's readings, each figure a counter of its device.
fn counters(builder: &mut TraceBuilder, samples: &Samples, calibration: &Calibration, base: i64) {
    let category = builder.category("hardware_counters");
    let mut pending = PendingArgs::default();
    for &(ticks, device, reading) in samples {
        let time = Timestamp(calibration.unix(ticks).0 - base);
        let process = Ident::Text(builder.intern(&format!("GPU {device} Counters")));
        let track = builder.track(process, Ident::Int(0));
        let number = |value: Option<u32>| value.map(|value| Arg::Int(i64::from(value)));
        let Reading {
            utilisation,
            memory_utilisation,
            memory_used,
            power_milliwatts,
            sm_clock,
            memory_clock,
            temperature,
        } = reading;
        let power = power_milliwatts.map(|power| Arg::Float(f64::from(power) / 1000.0));
        let figures = [
            ("GPU utilization", "%", number(utilisation)),
            ("GPU memory utilization", "%", number(memory_utilisation)),
            ("GPU memory used", "bytes", memory_used.map(|bytes| Arg::Int(bytes as i64))),
            ("GPU power", "W", power),
            ("GPU SM clock", "MHz", number(sm_clock)),
            ("GPU memory clock", "MHz", number(memory_clock)),
            ("GPU temperature", "C", number(temperature)),
        ];
        for (name, unit, value) in figures {
            let Some(value) = value else { continue };
            builder.push_arg(&mut pending, Place::Args, unit.as_bytes(), value);
            let args = builder.commit_args(&mut pending);
            pending.clear();
            let name = builder.intern(name);
            builder.push_counter(EventRow { time, name, category, track, args });
        }
    }
}

impl Converter<'_> {
    fn correlation(&self, number: u32) -> Arg {
        Arg::Int(self.first_correlation + i64::from(number))
    }

    fn time(&self, cupti: u64) -> Timestamp {
        Timestamp(self.clock.unix(cupti) - self.base)
    }

    fn duration(&self, start: u64, end: u64) -> Duration {
        Duration(self.clock.nanos(start, end))
    }

    /// The args of an event: its values under these keys, without those that are `None`. Events of one kind have few
    /// combinations of keys, and each is looked up once.
    fn args<const N: usize>(&mut self, kind: u32, entries: [(&'static str, Option<Arg>); N]) -> Args {
        let mut given = kind << 24;
        let mut values = [Arg::Int(0); N];
        let mut count = 0;
        for (index, (_, value)) in entries.iter().enumerate() {
            if let Some(value) = value {
                given |= 1 << index;
                values[count] = *value;
                count += 1;
            }
        }
        if let Some(&layout) = self.layouts.get(&given)
            && let Some(args) = self.builder.repeat_args(layout, &values[..count])
        {
            return args;
        }
        for (key, value) in entries {
            if let Some(value) = value {
                self.builder.push_arg(&mut self.pending, Place::Args, key.as_bytes(), value);
            }
        }
        let args = self.builder.commit_args(&mut self.pending);
        self.pending.clear();
        self.layouts.insert(given, args.layout);
        args
    }

    fn span(
        &mut self,
        category: CategoryId,
        name: StringId,
        track: TrackId,
        span: (u64, u64),
        args: Args,
    ) -> Timestamp {
        let time = self.time(span.0);
        let event = EventRow { time, name, category, track, args };
        let duration = self.duration(span.0, span.1);
        self.builder.push_span(SpanRow { event, duration });
        time
    }

    fn calls(&mut self, mut made: Vec<Call>, function: &dyn Fn(u32, u32) -> String, host: &mut HostSpans) {
        made.sort_by_key(|call| (call.thread, call.start));
        let categories = [self.builder.category("cuda_driver"), self.builder.category("cuda_runtime")];
        let mut names: HashMap<(u32, u32), StringId> = HashMap::new();
        for of_thread in made.chunk_by(|one, other| one.thread == other.thread) {
            let track = self.thread(of_thread[0].thread);
            let times: Vec<i64> = of_thread.iter().map(|call| self.time(call.start).0).collect();
            let mut around = Vec::with_capacity(times.len());
            host.at_each(track, times.into_iter(), |found| around.push(found));
            for (call, around) in of_thread.iter().zip(around) {
                let name = *names
                    .entry((call.domain, call.function))
                    .or_insert_with(|| self.builder.intern(&function(call.domain, call.function)));
                let entries = [
                    ("External id", around.innermost.map(|span| Arg::Int(span.external))),
                    ("cbid", Some(Arg::Int(i64::from(call.function)))),
                    ("correlation", Some(self.correlation(call.correlation))),
                ];
                let args = self.args(1, entries);
                let category = categories[usize::from(call.domain == DOMAIN_RUNTIME)];
                let time = self.span(category, name, track, (call.start, call.end), args);
                // A runtime call may reach the driver under the same number; the outer one counts.
                self.launches.entry(call.correlation).or_insert(Launch {
                    around,
                    track,
                    time,
                    has_work: false,
                });
            }
        }
    }

    fn thread(&mut self, thread: u32) -> TrackId {
        let track = self.builder.track(self.process, Ident::Int(i64::from(thread)));
        if self.builder.track_mut(track).name.is_none() {
            let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
            let name = self.builder.intern(&format!("thread {thread} ({})", name.trim_end()));
            let described = self.builder.track_mut(track);
            described.name = Some(name);
            described.sort_index = Some(i64::from(thread));
        }
        track
    }

    fn stream(&mut self, device: u32, stream: u32) -> TrackId {
        let ident = Ident::Int(if stream == NONE { -1 } else { i64::from(stream) });
        let track = self.builder.track(Ident::Int(i64::from(device)), ident);
        if self.builder.track_mut(track).name.is_some() {
            return track;
        }
        let name = if stream == NONE { format!("Device {device}") } else { format!("stream {stream} ") };
        let name = self.builder.intern(&name);
        let described = self.builder.track_mut(track);
        described.name = Some(name);
        described.sort_index = Some(if stream == NONE { -1 } else { i64::from(stream) });
        let process = self.builder.process(Ident::Int(i64::from(device)));
        let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let program = self.builder.intern(program.trim_end());
        let labels = self.builder.intern(&format!("GPU {device}"));
        let described = self.builder.process_mut(process);
        described.name = Some(program);
        described.labels = Some(labels);
        described.sort_index = Some(DEVICE_SORT_INDEX + i64::from(device));
        track
    }

    fn side(&mut self, side: [i32; 3]) -> Arg {
        let builder = &mut *self.builder;
        let [x, y, z] = side;
        Arg::Json(*self.sides.entry(side).or_insert_with(|| builder.intern(&format!("[{x}, {y}, {z}]"))))
    }

    fn work(&mut self, work: &Work, kernels: &[StringId]) {
        let track = self.stream(work.device, work.stream);
        let launch = self.launches.get(&work.correlation).copied();
        let around = launch.map(|launch| launch.around).unwrap_or_default();
        let external = around.innermost.map(|span| Arg::Int(span.external));
        let (category, name, args) = match work.kind {
            WorkKind::Kernel { name, .. } => {
                let args = self.kernel_args(work, external);
                ("kernel", kernels.get(name as usize).copied().unwrap_or_default(), args)
            }
            WorkKind::Copy { kind, source, destination, bytes, peers } => {
                let args = self.copy_args(work, external, bytes, peers);
                ("gpu_memcpy", self.builder.intern(&names::copy(kind, source, destination)), args)
            }
            WorkKind::Fill { memory, bytes } => {
                let args = self.copy_args(work, external, bytes, None);
                ("gpu_memset", self.builder.intern(&names::fill(memory)), args)
            }
        };
        let category = self.builder.category(category);
        let time = self.span(category, name, track, (work.start, work.end), args);
        if let Some(annotation) = around.annotation {
            let end = time.0 + self.duration(work.start, work.end).0;
            let key = (work.device, work.stream, annotation.external);
            let range = self.annotated.entry(key).or_insert((annotation.name, time.0, end));
            range.1 = range.1.min(time.0);
            range.2 = range.2.max(end);
        }
        if let Some(launch) = launch {
            self.arrow(work.correlation, launch, track, time);
        }
    }

    /// From the call to its work; a call that launches a graph has one beginning and many ends.
    fn arrow(&mut self, correlation: u32, launch: Launch, track: TrackId, time: Timestamp) {
        let name = self.builder.intern("ac2g");
        let category = self.builder.category("ac2g");
        let args = self.builder.no_args();
        let id = self.first_correlation + i64::from(correlation);
        let mut push = |phase, time, track| {
            let event = EventRow { time, name, category, track, args };
            self.builder.push_flow(FlowRow { event, id, phase, binds_enclosing: phase == FlowPhase::End });
        };
        if !launch.has_work {
            push(FlowPhase::Start, launch.time, launch.track);
            self.launches.insert(correlation, Launch { has_work: true, ..launch });
        }
        push(FlowPhase::End, time, track);
    }

    fn kernel_args(&mut self, work: &Work, external: Option<Arg>) -> Args {
        let WorkKind::Kernel { grid, block, registers, static_shared, dynamic_shared, .. } = work.kind else {
            return self.builder.no_args();
        };
        let needs = Needs { grid, block, registers: u32::from(registers), static_shared, dynamic_shared };
        let fill = self.devices.get(work.device).and_then(|device| needs.on(device));
        let shared = i64::from(static_shared) + i64::from(dynamic_shared);
        let (grid, block) = (self.side(grid), self.side(block));
        let [graph, node] = graph_args(work);
        let int = |value: u32| Some(Arg::Int(i64::from(value)));
        self.args(
            2,
            [
                ("External id", external),
                ("queued", int(0)),
                ("device", int(work.device)),
                ("context", int(work.context)),
                ("stream", int(work.stream)),
                ("correlation", Some(self.correlation(work.correlation))),
                ("registers per thread", int(u32::from(registers))),
                ("shared memory", Some(Arg::Int(shared))),
                ("blocks per SM", fill.map(|fill| Arg::Float(fill.blocks_per_sm))),
                ("warps per SM", fill.map(|fill| Arg::Float(fill.warps_per_sm))),
                ("grid", Some(grid)),
                ("block", Some(block)),
                ("est. achieved occupancy %", fill.map(|fill| Arg::Int(fill.occupancy))),
                ("graph id", graph),
                ("graph node id", node),
            ],
        )
    }

    fn copy_args(&mut self, work: &Work, external: Option<Arg>, bytes: u64, peers: Option<Peers>) -> Args {
        let nanos = self.duration(work.start, work.end).0;
        let bandwidth = (nanos > 0).then(|| Arg::Float(bytes as f64 / nanos as f64));
        let [graph, node] = graph_args(work);
        let int = |value: u32| Some(Arg::Int(i64::from(value)));
        let of_peers = |pick: fn(Peers) -> u32| peers.map(|peers| Arg::Int(i64::from(pick(peers))));
        self.args(
            3,
            [
                ("External id", external),
                ("fromDevice", of_peers(|peers| peers.from[0])),
                ("inDevice", peers.and(int(work.device))),
                ("toDevice", of_peers(|peers| peers.to[0])),
                ("fromContext", of_peers(|peers| peers.from[1])),
                ("inContext", peers.and(int(work.context))),
                ("toContext", of_peers(|peers| peers.to[1])),
                ("device", int(work.device)),
                ("context", int(work.context)),
                ("stream", int(work.stream)),
                ("correlation", Some(self.correlation(work.correlation))),
                ("bytes", Some(Arg::Int(bytes as i64))),
                ("memory bandwidth (GB/s)", bandwidth),
                ("graph id", graph),
                ("graph node id", node),
            ],
        )
    }

    /// Annotations as the device saw them: from the first to the last of their work on each stream.
    fn annotations(&mut self) {
        let mut ranges: Vec<_> = std::mem::take(&mut self.annotated).into_iter().collect();
        ranges.sort_unstable_by_key(|&((device, stream, external), _)| (device, stream, external));
        let category = self.builder.category("gpu_user_annotation");
        for ((device, stream, external), (name, start, end)) in ranges {
            let track = self.stream(device, stream);
            let args = self.args(4, [("External id", Some(Arg::Int(external)))]);
            let event = EventRow { time: Timestamp(start), name, category, track, args };
            self.builder.push_span(SpanRow { event, duration: Duration(end - start) });
        }
    }

    fn syncs(&mut self, syncs: &[Synchronization], recorded: &HashMap<(u32, u32), (u32, u32)>) {
        let category = self.builder.category("cuda_sync");
        for sync in syncs {
            let device = self.contexts.get(&sync.context).copied().unwrap_or(0);
            // Only a stream that waits for an event has the wait on its own row: a program that waits for a stream would
            // lie across that stream's work.
            let row = if sync.sync == names::STREAM_WAIT_EVENT { sync.stream } else { NONE };
            let track = self.stream(device, row);
            let name = self.builder.intern(names::sync(sync.sync));
            let launch = self.launches.get(&sync.correlation).copied();
            let external = launch.and_then(|launch| launch.around.innermost);
            let has_event = sync.event != NONE;
            let source = recorded.get(&(sync.context, sync.event)).filter(|_| has_event);
            let or_none = |value: Option<u32>| Arg::Int(value.map_or(-1, i64::from));
            let args = self.args(
                5,
                [
                    ("External id", external.map(|span| Arg::Int(span.external))),
                    ("cuda_sync_kind", Some(Arg::Text(name))),
                    ("wait_on_stream", has_event.then(|| or_none(source.map(|source| source.0)))),
                    (
                        "wait_on_cuda_event_record_corr_id",
                        has_event.then(|| source.map_or(Arg::Int(-1), |source| self.correlation(source.1))),
                    ),
                    ("wait_on_cuda_event_id", has_event.then(|| Arg::Int(i64::from(sync.event)))),
                    ("stream", Some(or_none(Some(sync.stream).filter(|&stream| stream != NONE)))),
                    ("correlation", Some(self.correlation(sync.correlation))),
                    ("device", Some(Arg::Int(i64::from(device)))),
                    ("context", Some(Arg::Int(i64::from(sync.context)))),
                ],
            );
            self.span(category, name, track, (sync.start, sync.end), args);
        }
    }

    fn overheads(&mut self, overheads: &[Overhead]) {
        if overheads.is_empty() {
            return;
        }
        let category = self.builder.category("overhead");
        let track = self.builder.track(Ident::Int(-1), Ident::Int(0));
        let name = self.builder.intern("CUPTI Overhead");
        self.builder.track_mut(track).name = Some(name);
        let args = self.builder.no_args();
        for overhead in overheads {
            let name = self.builder.intern(names::overhead(overhead.overhead));
            self.span(category, name, track, (overhead.start, overhead.end), args);
        }
    }
}

/// The graph and its node, for work of a graph.
fn graph_args(work: &Work) -> [Option<Arg>; 2] {
    let is_of_graph = work.graph != 0;
    [
        is_of_graph.then(|| Arg::Int(i64::from(work.graph))),
        is_of_graph.then_some(Arg::Int(work.graph_node as i64)),
    ]
}
