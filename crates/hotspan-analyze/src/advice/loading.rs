//! What rules ask about DataLoaders: how long the program waited for each batch, when worker processes were started, and
//! whether the workers were busy.

use hashbrown::HashMap;
use hotspan_store::{
    Category, Duration, FrameRow, SampleRow, SampleState, SpanId, StackId, Timestamp, TrackId,
};

use crate::advice::context::Context;

const WORKERS_FILE: &str = "torch/utils/data/_utils/worker.py";
const LOADER_FILE: &str = "torch/utils/data/dataloader.py";

/// The waits of the program for its DataLoaders, in order of time.
pub(crate) fn waits(context: &Context<'_>) -> Vec<SpanId> {
    let (model, spans) = (context.model, context.model.spans());
    let is_wait = |span: SpanId| {
        let is_programs =
            context.process().is_none_or(|process| model.track(spans.track(span)).process == process);
        is_programs
            && model.span_name(span).starts_with("enumerate(Data")
            && model.role(span).is_host()
            && context.is_in_range(spans.time(span))
    };
    let mut waits: Vec<SpanId> =
        model.nesting().order().iter().copied().filter(|&span| is_wait(span)).collect();
    waits.sort_by_key(|&span| spans.time(span));
    waits
}

/// Waits with the time that each took for loading: a garbage collection may fall into one, and belongs to no batch.
pub(crate) fn loading_times(context: &Context<'_>, waits: &[SpanId]) -> Vec<(SpanId, Duration)> {
    let spans = context.model.spans();
    let collections = Collections::of(context);
    let time = |span: SpanId| {
        let within = |at| collections.until(spans.track(span), at);
        context.time(span) - (within(spans.end(span)) - within(spans.time(span)))
    };
    waits.iter().map(|&span| (span, time(span))).collect()
}

/// The garbage collections of each thread in order of time: when each began and ended, and the time of all until then.
struct Collections(HashMap<TrackId, Vec<(Timestamp, Timestamp, Duration)>>);

impl Collections {
    fn of(context: &Context<'_>) -> Self {
        let (model, spans) = (context.model, context.model.spans());
        let mut threads: HashMap<TrackId, Vec<(Timestamp, Timestamp, Duration)>> = HashMap::new();
        for span in spans.ids().filter(|&span| model.span_category(span) == Category::GarbageCollection) {
            let collection = (spans.time(span), spans.end(span), Duration::ZERO);
            threads.entry(spans.track(span)).or_default().push(collection);
        }
        for collections in threads.values_mut() {
            collections.sort_unstable();
            let mut sum = Duration::ZERO;
            for (begin, end, until) in collections {
                sum += end.since(*begin);
                *until = sum;
            }
        }
        Self(threads)
    }

    /// How long a thread collected garbage until a moment.
    fn until(&self, thread: TrackId, at: Timestamp) -> Duration {
        let collections = self.0.get(&thread).map_or(&[][..], Vec::as_slice);
        let begun = collections.partition_point(|&(begin, ..)| begin < at);
        let last = begun.checked_sub(1).map(|last| collections[last]);
        last.map_or(Duration::ZERO, |(_, end, until)| if end > at { until - end.since(at) } else { until })
    }
}

/// One start of worker processes, with the samples of the program in starting them and ending those before.
#[derive(Debug)]
pub(crate) struct Start {
    /// When it was first seen.
    pub(crate) at: Timestamp,
    /// How long the program was starting and ending processes.
    pub(crate) time: Duration,
    /// The wait for the first batch that followed.
    pub(crate) first_wait: Option<SpanId>,
    /// A sample of it.
    pub(crate) sample: usize,
    /// Whether processes were started, or only ended.
    is_start: bool,
}

/// Starts of workers that samples of the program saw. Batches lie between two of them.
pub(crate) fn starts(context: &Context<'_>, waits: &[SpanId]) -> Vec<Start> {
    let (model, spans) = (context.model, context.model.spans());
    let process = context.process();
    let mut starts: Vec<Start> = Vec::new();
    let mut known = HashMap::new();
    let mut rows: Vec<(usize, SampleRow)> = model.profile().samples.rows().enumerate().collect();
    rows.retain(|(_, row)| Some(model.track(row.track).process) == process && context.is_in_range(row.time));
    rows.sort_by_key(|(_, row)| row.time);
    for (sample, row) in rows {
        let Some(is_start) = *known.entry(row.stack).or_insert_with(|| start_or_end(context, row.stack))
        else {
            continue;
        };
        let next = waits.partition_point(|&wait| spans.time(wait) < row.time);
        let next = waits.get(next).copied();
        match starts.last_mut().filter(|start| start.first_wait == next) {
            Some(start) => {
                start.time += row.weight;
                start.is_start |= is_start;
            }
            None => starts.push(Start { at: row.time, time: row.weight, first_wait: next, sample, is_start }),
        }
    }
    starts.retain(|start| start.is_start);
    starts
}

/// Whether a stack is in the DataLoader's starting of processes (true), or in its waiting for their end (false).
fn start_or_end(context: &Context<'_>, stack: StackId) -> Option<bool> {
    let (model, profile) = (context.model, context.model.profile());
    let mut is_process = false;
    for frame in profile.stacks.frames(stack).map(|frame| profile.frames.row(frame)) {
        let (name, file) = (model.str(frame.name), model.str(frame.file));
        is_process |= file.contains("multiprocessing/");
        if file.ends_with(LOADER_FILE) && name.ends_with("_shutdown_workers") {
            return Some(false);
        }
        if file.ends_with(LOADER_FILE) && is_process && name.ends_with("__init__") {
            return Some(true);
        }
    }
    None
}

/// How much of the time of the workers was spent on samples of the data, from 0 to 1; `None` where none was seen.
pub(crate) fn busy_share_of_workers(context: &Context<'_>) -> Option<f64> {
    let (model, profile) = (context.model, context.model.profile());
    let (mut busy, mut all) = (0_i64, 0_i64);
    let mut known = HashMap::new();
    for row in profile.samples.rows().filter(|row| context.is_in_range(row.time)) {
        let place = *known.entry(row.stack).or_insert_with(|| {
            let rows = || profile.stacks.frames(row.stack).map(|frame| profile.frames.row(frame));
            let file = |frame: &FrameRow| model.str(frame.file).to_owned();
            let is_worker = rows().any(|frame| file(&frame).ends_with(WORKERS_FILE));
            // A worker without work waits at its queue.
            let waits = rows()
                .take_while(|frame| !file(frame).ends_with(WORKERS_FILE))
                .any(|frame| file(&frame).contains("multiprocessing/"));
            is_worker.then_some(waits)
        });
        let Some(waits) = place else { continue };
        all = all.saturating_add(row.weight.0);
        if !waits || row.state == SampleState::Running {
            busy = busy.saturating_add(row.weight.0);
        }
    }
    (all > 0).then(|| busy as f64 / all as f64)
}
