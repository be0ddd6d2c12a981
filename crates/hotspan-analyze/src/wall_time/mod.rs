//! Where the wall time of a program went: disjoint parts that add up to all of it.
//!
//! The program is what its main thread did from the first moment to the last. Samples say what the thread was doing at
//! moments in between: each moment takes the answer of the sample that stands for it (`coverage.rs`), unless none does
//! (`gaps.rs`). Spans are exact and count instead where there are any. Later rules win over earlier ones: samples, operators,
//! waits for the device, DataLoader, garbage collection, the profiler itself. While the main thread waits and another thread
//! runs operators, that is operators' time. A thread that runs the import system is importing, whatever that takes: reading
//! files, running modules, loading libraries.

mod coverage;
mod gaps;
mod libraries;
mod lifetime;
mod paint;

use hotspan_store::{
    Category, Duration, FrameKind, Ident, SampleRow, SampleState, SpanId, Timestamp, Trace, TrackId,
};
use serde_json::Value;

use crate::model::Model;
use crate::model::host_activity::HostKind;
use crate::model::runtime_calls::CallKind;
use crate::report::Table;
use crate::report::schema::{Schema, share};
use libraries::{Doing, doing};
pub(crate) use libraries::{
    is_importing, is_open_mp, is_recorder, is_system_or_interpreter, kernel_call_of_wait, package,
};
use lifetime::Lifetime;
pub(crate) use lifetime::Queued;
use paint::Timeline;

/// The metadata key under which a recording of a whole program says which thread and time it is about.
pub const RUN_KEY: &str = "hotspan.run";

/// The metadata key that tells about each process of a run: a list, in the order of their files.
pub const PROCESSES_KEY: &str = "hotspan.processes";

/// The metadata key under which a stretch of a recording says which one it is, in nanoseconds of the whole.
pub(crate) const RANGE_KEY: &str = "hotspan.range";

/// What the program was doing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Torch operators on the CPU.
    Operators,
    /// Waiting for a device to finish.
    DeviceWait,
    /// Fetching the next batch from a DataLoader.
    DataLoader,
    /// Python code.
    Python,
    /// Native code of a library outside torch's operators.
    Native(String),
    /// Reading and writing files, pipes and sockets.
    Io,
    /// Python's garbage collection.
    GarbageCollection,
    /// Importing modules.
    Importing,
    /// Waiting for another thread or process.
    Waiting,
    /// Waiting for an event, as event loops do: a timer, a message.
    WaitingForEvents,
    /// Sleeping because the program asked to.
    Sleeping,
    /// The profiler itself.
    Profiler,
    /// Starting the interpreter.
    Starting,
    /// Ending it: modules, libraries and memory are taken down.
    Exiting,
    /// Nothing is known: the program was killed, or is not Python, or this time was not to be recorded.
    NotRecorded,
}

impl Activity {
    /// What people call it.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Operators => "torch operators (CPU)".into(),
            Self::DeviceWait => "waiting for the GPU".into(),
            Self::DataLoader => "DataLoader".into(),
            Self::Python => "Python code".into(),
            Self::Native(library) => format!("native code: {library}"),
            Self::Io => "I/O".into(),
            Self::GarbageCollection => "garbage collection".into(),
            Self::Importing => "importing modules".into(),
            Self::Waiting => "waiting for threads or processes".into(),
            Self::WaitingForEvents => "waiting for events".into(),
            Self::Sleeping => "sleeping".into(),
            Self::Profiler => "hotspan itself".into(),
            Self::Starting => "starting Python".into(),
            Self::Exiting => "exit".into(),
            Self::NotRecorded => "not recorded".into(),
        }
    }
}

/// One part of the wall time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What the program was doing.
    pub activity: Activity,
    /// For how long.
    pub time: Duration,
}

/// Where the wall time went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WallTime {
    /// From the first moment of the program to the last.
    pub total: Duration,
    /// What it was spent on, longest first; adds up to `total`.
    pub parts: Vec<Part>,
    /// How many samples of the main thread that rests on.
    pub samples: u64,
    /// One activity for each moment.
    timeline: Timeline,
}

/// Divides the wall time. `None`: the trace does not know of any.
pub(crate) fn find(model: &Model) -> Option<WallTime> {
    let trace: &Trace = model.trace();
    let run = run(trace);
    let (begin, end) = window(trace);
    let mut timeline = Timeline::new(begin, end, Activity::NotRecorded);
    let Some(main) = main_thread(trace, &run) else {
        // A program that ended before anything was recorded, or is not Python.
        return (end > begin).then(|| WallTime::new(timeline, 0));
    };
    let lifetime = Lifetime::of(trace, &run);
    let program = lifetime.as_ref().and_then(Lifetime::program);

    let mut samples = samples_of(trace, main);
    if let Some((first, last)) = program {
        // The others are about us, and say nothing about the program.
        samples.retain(|row| first <= row.time && row.time <= last);
        timeline.paint(&[(first, last)], |_| Some(Activity::Python));
    }
    paint_samples(trace, &samples, program, &mut timeline);
    timeline.paint(&gaps::between(&samples, program), |_| Some(Activity::NotRecorded));

    let spans = HostSpans::of(model, main);
    // Nothing is known of the time without samples but that it was not in an operator: that is Python.
    if let (true, Some((first, last))) = (samples.is_empty(), spans.extent()) {
        timeline.paint(&[(first, last)], |_| Some(Activity::Python));
    }
    timeline
        .paint(&spans.elsewhere, |before| matches!(before, Activity::Waiting).then_some(Activity::Operators));
    timeline.paint(&spans.operators, |_| Some(Activity::Operators));
    timeline.paint(&spans.device_waits, |_| Some(Activity::DeviceWait));
    timeline.paint(&spans.loaders, |_| Some(Activity::DataLoader));
    timeline.paint(&spans.collections, |_| Some(Activity::GarbageCollection));
    timeline.paint(&spans.profiler, |_| Some(Activity::Profiler));
    if let Some(lifetime) = &lifetime {
        for (interval, activity) in lifetime.around(begin, end) {
            timeline.paint(&[interval], |_| Some(activity.clone()));
        }
    }

    Some(WallTime::new(timeline, samples.len() as u64))
}

impl WallTime {
    fn new(timeline: Timeline, samples: u64) -> Self {
        let mut parts: Vec<Part> =
            timeline.totals().into_iter().map(|(activity, time)| Part { activity, time }).collect();
        parts.sort_by(|left, right| (right.time, &left.activity).cmp(&(left.time, &right.activity)));
        Self { total: timeline.length(), parts, samples, timeline }
    }

    /// What takes these times one after the other.
    #[cfg(test)]
    pub(crate) fn of_parts(parts: impl Iterator<Item = (Activity, Duration)>, samples: u64) -> Self {
        let parts: Vec<(Activity, Duration)> = parts.collect();
        let end = Timestamp(parts.iter().map(|(_, time)| time.0).sum());
        let mut timeline = Timeline::new(Timestamp(0), end, Activity::NotRecorded);
        let mut begin = Timestamp(0);
        for (activity, time) in parts {
            timeline.paint(&[(begin, begin.plus(time))], |_| Some(activity.clone()));
            begin = begin.plus(time);
        }
        Self::new(timeline, samples)
    }

    /// When the program was doing something, in order of time.
    #[must_use]
    pub fn when(&self, activity: &Activity) -> Vec<(Timestamp, Timestamp)> {
        self.timeline.when(activity)
    }
}

fn run(trace: &Trace) -> Value {
    trace.metadata().value(RUN_KEY).unwrap_or(Value::Null)
}

fn samples_of(trace: &Trace, track: TrackId) -> Vec<SampleRow> {
    let mut samples: Vec<SampleRow> =
        trace.profile().samples.rows().filter(|row| row.track == track).collect();
    samples.sort_by_key(|row| row.time);
    samples
}

/// The thread that the wall time is about.
pub(crate) fn program_thread(trace: &Trace) -> Option<TrackId> {
    main_thread(trace, &run(trace))
}

/// The thread the report is about: the one the recording names, or the one with the most samples, marks of steps, or operators.
fn main_thread(trace: &Trace, run: &Value) -> Option<TrackId> {
    let named = run.get("pid").and_then(Value::as_i64).zip(run.get("tid").and_then(Value::as_i64));
    let named = named.and_then(|(process, thread)| {
        let is_main = |track: &hotspan_store::Track| {
            trace.process(track.process).ident == Ident::Int(process) && track.ident == Ident::Int(thread)
        };
        trace.tracks().iter().position(is_main).map(TrackId::at)
    });
    named.or_else(|| {
        let mut counts = vec![0_u64; trace.tracks().len()];
        trace.profile().samples.rows().for_each(|row| counts[row.track.index()] += 1);
        if counts.iter().all(|&count| count == 0) {
            // Who marks steps is the program; the backward pass has a thread of its own, with more operators.
            let spans = trace.spans();
            let marks: Vec<bool> =
                trace.strings().iter().map(|name| name.starts_with("ProfilerStep#")).collect();
            let is_mark = |span: SpanId| {
                let category = trace.span_category(span);
                marks[spans.name(span).index()]
                    && matches!(category, Category::UserAnnotation | Category::Operator)
            };
            spans.ids().filter(|&span| is_mark(span)).for_each(|span| counts[spans.track(span).index()] += 1);
            if counts.iter().all(|&count| count == 0) {
                let on_host = spans.ids().filter(|&span| trace.span_category(span) == Category::Operator);
                on_host.for_each(|span| counts[spans.track(span).index()] += 1);
            }
        }
        let most = counts.iter().copied().max().filter(|&most| most > 0)?;
        counts.iter().position(|&count| count == most).map(TrackId::at)
    })
}

/// The time that everything is a share of: from the first moment of the program to the last where the recording knows them,
/// else from the first event to the last; of a stretch of a recording only that.
pub(crate) fn window(trace: &Trace) -> (Timestamp, Timestamp) {
    let (run, origin) = (run(trace), trace.clock().unix_origin());
    let (first, length) = trace.window();
    let moment = |key: &str| Some(Timestamp(run.get(key)?.as_i64()?.saturating_sub(origin?)));
    let mut begin = moment("start_unix_ns").unwrap_or(first);
    let mut end = moment("end_unix_ns").unwrap_or_else(|| first.plus(length));
    let range = trace.metadata().value(RANGE_KEY);
    if let Some([from, to]) =
        range.as_ref().and_then(|range| serde_json::from_value::<[i64; 2]>(range.clone()).ok())
    {
        (begin, end) = (begin.max(Timestamp(from)), end.min(Timestamp(to)));
    }
    (begin, end.max(begin))
}

/// Each sample answers for the time it stands for (`coverage.rs`).
fn paint_samples(trace: &Trace, samples: &[SampleRow], program: Option<Interval>, timeline: &mut Timeline) {
    let mut by_stack = hashbrown::HashMap::new();
    let tells_native = tells_native_by_gil(trace, samples);
    for (sample, interval) in samples.iter().zip(coverage::of(samples, program)) {
        let doing = by_stack.entry(sample.stack).or_insert_with(|| doing(trace, sample.stack));
        let activity = match (sample.state, &*doing) {
            (_, Doing::Profiling) => Activity::Profiler,
            (_, Doing::Importing) => Activity::Importing,
            (SampleState::Io, _) => Activity::Io,
            (SampleState::Sleep, _) => Activity::Sleeping,
            (SampleState::Running, Doing::Code { library: None, .. }) if tells_native && !sample.gil => {
                Activity::Native(UNKNOWN_LIBRARY.to_owned())
            }
            (SampleState::Running | SampleState::Unknown, Doing::Code { library, .. })
            // The kernel finds memory for it: that is part of the work.
            | (SampleState::Waiting, Doing::Code { library, waits: false }) => {
                library.clone().map_or(Activity::Python, Activity::Native)
            }
            (_, Doing::WaitingForEvents) => Activity::WaitingForEvents,
            (SampleState::Lock | SampleState::Waiting, _) => Activity::Waiting,
        };
        timeline.paint(&[interval], |_| Some(activity.clone()));
    }
}

/// The library of native code that was sampled without its frames.
const UNKNOWN_LIBRARY: &str = "library unknown";

/// Whether a thread that runs without the GIL is known to be in native code, as samples from outside tell: they have no native
/// frames, and say who held the GIL.
fn tells_native_by_gil(trace: &Trace, samples: &[SampleRow]) -> bool {
    let has_native = || trace.profile().frames.rows().any(|frame| frame.kind == FrameKind::Native);
    samples.iter().any(|sample| sample.gil) && !has_native()
}

type Interval = (Timestamp, Timestamp);

/// The spans that say more than samples do, by kind; each list in order of time.
#[derive(Debug, Default)]
struct HostSpans {
    operators: Vec<Interval>,
    /// Operators on other threads of the process.
    elsewhere: Vec<Interval>,
    device_waits: Vec<Interval>,
    loaders: Vec<Interval>,
    collections: Vec<Interval>,
    profiler: Vec<Interval>,
}

impl HostSpans {
    fn of(model: &Model, main: TrackId) -> Self {
        let process = model.track(main).process;
        let (spans, events, activity) = (model.spans(), model.events(), model.host_activity());
        let mut found = Self::default();
        // Nobody is in a range that goes on by itself.
        for span in spans.ids().filter(|&span| !events.is_async(span)) {
            let track = spans.track(span);
            let here = track == main;
            if !here && model.track(track).process != process {
                continue;
            }
            // The same kinds as in the steps of the host: old recorders wrote ranges as operators.
            let list = match activity.kind(span) {
                HostKind::DataLoader if here => &mut found.loaders,
                HostKind::Operator | HostKind::Communication if here => &mut found.operators,
                HostKind::Operator | HostKind::Communication => &mut found.elsewhere,
                HostKind::Call(CallKind::Synchronise) if here => &mut found.device_waits,
                HostKind::Other => match model.span_category(span) {
                    Category::GarbageCollection if here => &mut found.collections,
                    Category::Overhead if here => &mut found.profiler,
                    _ => continue,
                },
                _ => continue,
            };
            list.push((spans.time(span), spans.end(span)));
        }
        let Self { operators, elsewhere, device_waits, loaders, collections, profiler } = &mut found;
        for list in [operators, elsewhere, device_waits, loaders, collections, profiler] {
            paint::unite(list);
        }
        found
    }

    fn extent(&self) -> Option<Interval> {
        let lists = [&self.operators, &self.loaders, &self.device_waits];
        let first = lists.iter().filter_map(|list| list.first()).map(|interval| interval.0).min()?;
        let last = lists.iter().filter_map(|list| list.last()).map(|interval| interval.1).max()?;
        Some((first, last))
    }
}

impl WallTime {
    /// How it looks.
    #[must_use]
    pub fn report(&self) -> Table {
        Schema::<Part>::new("wall_time", "Where the time went")
            .text("activity", "Activity", |part| part.activity.title())
            .help("What the main thread did.")
            .duration("time", "Time", |part| part.time)
            .help("How long it did that; the parts add up to the wall time.")
            .percent("share", "Share", |part| share(part.time, self.total))
            .help("The same as a share of the wall time.")
            .table(&self.parts)
    }
}
