//! Device records as a trace: the spans, flows, counters and metadata of an export of torch.profiler.
//!
//! A kernel is tied to its operator through the call that launched it: the call has the thread and the time, and
//! [`HostSpans`] knows who was running there and then.

mod counters;
mod tracks;
mod waits;
mod work;

use hashbrown::HashMap;
use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, ArgSchemaId, Args, CategoryId, Duration, EventRow, Ident, Loss, SpanRow, StringId,
    Timestamp, TraceBuilder, TrackId, keys,
};

use crate::clock::{Calibration, Ticks};
use crate::cupti::abi::DOMAIN_RUNTIME;
use crate::cupti::demangle::Demangler;
use crate::cupti::devices::Devices;
use crate::cupti::records::{Call, Records};
use crate::cupti::session::Recording;
use crate::cupti::timing::DeviceClock;
use crate::host_spans::{Around, HostSpans};

use counters::add_counters;

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
    arg_schemas: HashMap<u32, ArgSchemaId>,
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
    add_counters(builder, &samples, calibration, base);
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
        arg_schemas: HashMap::new(),
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
        if let Some(&layout) = self.arg_schemas.get(&given)
            && let Some(args) = self.builder.repeat_args(layout, &values[..count])
        {
            return args;
        }
        for (key, value) in entries {
            if let Some(value) = value {
                self.builder.push_arg(&mut self.pending, ArgOrigin::Args, key.as_bytes(), value);
            }
        }
        let args = self.builder.commit_args(&mut self.pending);
        self.pending.clear();
        self.arg_schemas.insert(given, args.schema);
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
                    (keys::EXTERNAL_ID, around.innermost.map(|span| Arg::Int(span.external))),
                    ("cbid", Some(Arg::Int(i64::from(call.function)))),
                    (keys::CORRELATION, Some(self.correlation(call.correlation))),
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
}
