//! What the collector has gathered and nobody has taken yet: frames, stacks, samples, spans, losses.

use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_store::{
    CategoryId, Duration, EventRow, FrameId, FrameKind, FrameRow, Ident, Loss, SampleRow, SampleState,
    SpanRow, StackId, Timestamp, TraceBuilder, TrackId,
};

use crate::clock::{Calibration, Ticks};

/// Times count from the start of a period of this many seconds, like those of the operator collector.
const BASE_SECONDS: i64 = 7_889_238;

/// The number that stands for threads nobody saw; no thread has it.
pub(crate) const ENDED_THREADS: i32 = 0;

/// A frame by its texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) name: Arc<str>,
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
    pub(crate) first_line: u32,
    pub(crate) is_python: bool,
}

/// The number of a frame here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameNumber(u32);

/// The number of a stack here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackNumber(u32);

/// A sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ticks: Ticks,
    pub(crate) thread: i32,
    pub(crate) stack: StackNumber,
    pub(crate) weight: i64,
    pub(crate) state: SampleState,
    pub(crate) gil: bool,
}

/// A span that was measured in the program, such as a pause of the garbage collector.
#[derive(Clone, Debug)]
pub(crate) struct AddedSpan {
    pub(crate) category: &'static str,
    pub(crate) name: &'static str,
    pub(crate) thread: i32,
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
}

/// Everything gathered.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    frames: Vec<Frame>,
    frame_numbers: HashMap<Frame, FrameNumber>,
    stacks: Vec<(Option<StackNumber>, FrameNumber)>,
    stack_numbers: HashMap<(Option<StackNumber>, FrameNumber), StackNumber>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) spans: Vec<AddedSpan>,
    names: HashMap<i32, String>,
    losses: Vec<(Loss, u64)>,
    /// Counts how often rows were taken: numbers of samples begin again each time.
    pub(crate) taken: u64,
}

impl Rows {
    pub(crate) fn frame(&mut self, frame: Frame) -> FrameNumber {
        if let Some(&number) = self.frame_numbers.get(&frame) {
            return number;
        }
        let number = FrameNumber(self.frames.len() as u32);
        self.frames.push(frame.clone());
        self.frame_numbers.insert(frame, number);
        number
    }

    /// The stack of these frames, innermost first.
    pub(crate) fn stack(&mut self, frames: &[FrameNumber]) -> Option<StackNumber> {
        let mut parent = None;
        for &frame in frames.iter().rev() {
            let key = (parent, frame);
            let stacks = &mut self.stacks;
            let number = *self.stack_numbers.entry(key).or_insert_with(|| {
                stacks.push(key);
                StackNumber(stacks.len() as u32 - 1)
            });
            parent = Some(number);
        }
        parent
    }

    pub(crate) fn name_thread(&mut self, thread: i32, name: String) {
        self.names.insert(thread, name);
    }

    pub(crate) fn lose(&mut self, loss: Loss, count: u64) {
        match self.losses.iter_mut().find(|(kind, _)| *kind == loss) {
            _ if count == 0 => {}
            Some((_, sum)) => *sum += count,
            None => self.losses.push((loss, count)),
        }
    }

    /// Moves samples, spans and losses into a trace.
    pub(crate) fn drain(&mut self, process: u32, calibration: &Calibration, builder: &mut TraceBuilder) {
        self.taken += 1;
        let base = *builder.clock.base_unix.get_or_insert_with(|| {
            let period = BASE_SECONDS * 1_000_000_000;
            calibration.unix(crate::clock::now()).0.div_euclid(period) * period
        });
        let time = |ticks: Ticks| Timestamp(calibration.unix(ticks).0 - base);
        let mut tracks = Tracks { process, names: &self.names, ids: HashMap::new() };
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_by_key(|sample| sample.ticks);
        let mut stacks = Stacks { rows: (&self.frames, &self.stacks), ids: HashMap::new() };
        for sample in samples {
            let row = SampleRow {
                time: time(sample.ticks),
                track: tracks.get(builder, sample.thread),
                stack: stacks.get(builder, sample.stack),
                weight: Duration(sample.weight),
                state: sample.state,
                gil: sample.gil,
            };
            builder.push_sample(row);
        }
        for span in self.spans.drain(..) {
            let category: CategoryId = builder.category(span.category);
            let (name, args) = (builder.intern(span.name), builder.no_args());
            let (track, start) = (tracks.get(builder, span.thread), time(span.start));
            let event = EventRow { time: start, name, category, track, args };
            builder.push_span(SpanRow { event, duration: time(span.end).since(start) });
        }
        for (loss, count) in self.losses.drain(..) {
            builder.losses.add_many(loss, count, None);
        }
    }
}

struct Tracks<'a> {
    process: u32,
    names: &'a HashMap<i32, String>,
    ids: HashMap<i32, TrackId>,
}

impl Tracks<'_> {
    fn get(&mut self, builder: &mut TraceBuilder, thread: i32) -> TrackId {
        if let Some(&track) = self.ids.get(&thread) {
            return track;
        }
        let track = builder.track(Ident::Int(i64::from(self.process)), Ident::Int(i64::from(thread)));
        let name = self.names.get(&thread).map_or("", String::as_str);
        let name = if thread == ENDED_THREADS {
            "threads that ended between samples".to_owned()
        } else {
            format!("thread {thread} ({name})")
        };
        let name = builder.intern(&name);
        let described = builder.track_mut(track);
        described.name.get_or_insert(name);
        described.sort_index.get_or_insert(i64::from(thread));
        self.ids.insert(thread, track);
        track
    }
}

struct Stacks<'a> {
    rows: (&'a [Frame], &'a [(Option<StackNumber>, FrameNumber)]),
    ids: HashMap<StackNumber, StackId>,
}

impl Stacks<'_> {
    fn get(&mut self, builder: &mut TraceBuilder, stack: StackNumber) -> StackId {
        let (frames, stacks) = self.rows;
        // From the innermost frame outwards to what has an id, and back.
        let mut path = Vec::new();
        let mut next = Some(stack);
        let mut id = StackId::NONE;
        while let Some(number) = next {
            if let Some(&found) = self.ids.get(&number) {
                id = found;
                break;
            }
            let Some(&(parent, frame)) = stacks.get(number.0 as usize) else { break };
            path.push((number, frame));
            next = parent;
        }
        for (number, frame) in path.into_iter().rev() {
            let Some(frame) = frames.get(frame.0 as usize) else { break };
            id = builder_stack(builder, id, frame);
            self.ids.insert(number, id);
        }
        id
    }
}

fn builder_stack(builder: &mut TraceBuilder, parent: StackId, frame: &Frame) -> StackId {
    let row = FrameRow {
        name: builder.intern(&frame.name),
        file: builder.intern(&frame.file),
        line: frame.line,
        first_line: frame.first_line,
        kind: if frame.is_python { FrameKind::Python } else { FrameKind::Native },
    };
    let frame: FrameId = builder.frame(row);
    builder.stack(parent, frame)
}
