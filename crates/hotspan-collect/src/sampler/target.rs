//! One process being recorded: its reader, and its threads and frames as rows of the trace.

use hashbrown::HashMap;
use hotspan_store::{FrameId, FrameRow, Ident, Loss, SampleRow, StackId, TraceBuilder, TrackId};

use super::ThreadSample;
use super::code::FunctionId;
use super::error::SamplerError;
use super::reader::{ProcessReader, WantedFrames};
use super::state::ThreadNumber;
use crate::process_tree::ProcessNumber;

/// When a sample was taken, and how much time it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) time: hotspan_store::Timestamp,
    pub(super) weight: hotspan_store::Duration,
}

/// What tells threads apart; Python's own numbers are used again.
type ThreadKey = (u64, Option<ThreadNumber>);

/// A thread whose samples are kept.
#[derive(Debug)]
struct ThreadRows {
    track: TrackId,
    stack: StackId,
    name: String,
}

/// One process being recorded.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) process: ProcessNumber,
    pub(super) reader: ProcessReader,
    /// How often in a row it could not be read.
    pub(super) failures: u32,
    frames: HashMap<(FunctionId, u32), FrameId>,
    threads: HashMap<ThreadKey, ThreadRows>,
}

impl Target {
    pub(super) fn attach(process: ProcessNumber, native: Option<WantedFrames>) -> Result<Self, SamplerError> {
        let mut reader = ProcessReader::attach(process)?;
        if let Some(wanted) = native {
            reader = reader.with_native(wanted);
            // Symbols of large libraries are read before the first moment is due. What fails here fails again there.
            let _ = reader.walk(&mut Vec::new());
        }
        Ok(Self { process, reader, failures: 0, frames: HashMap::new(), threads: HashMap::new() })
    }

    /// Forgets the rows of a trace that was taken away.
    pub(super) fn forget_rows(&mut self) {
        self.frames.clear();
        self.threads.clear();
    }

    /// Forgets the stack of a thread that is not kept this time; it is found again when it is.
    pub(super) fn skip(&mut self, sample: &ThreadSample) {
        if sample.changed {
            self.threads.remove(&(sample.ident, sample.number));
        }
    }

    /// Adds a sample of a thread to the trace.
    pub(super) fn keep(&mut self, sample: &ThreadSample, moment: Moment, builder: &mut TraceBuilder) {
        let key = (sample.ident, sample.number);
        let rows = self.threads.get(&key).map(|rows| (rows.track, rows.stack, rows.name == sample.name));
        let (track, stack) = match rows {
            Some((track, stack, true)) if !sample.changed => (track, stack),
            Some((track, _, true)) => (track, self.stack(sample, builder)),
            _ => (self.track(sample, builder), self.stack(sample, builder)),
        };
        match self.threads.get_mut(&key) {
            Some(rows) if rows.name == sample.name => rows.stack = stack,
            _ => {
                self.threads.insert(key, ThreadRows { track, stack, name: sample.name.clone() });
            }
        }
        if sample.unsteady {
            builder.losses.add(Loss::UnsteadySamples, None);
        }
        let Moment { time, weight } = moment;
        let (state, gil) = (sample.state.0, sample.gil);
        builder.push_sample(SampleRow { time, track, stack, weight, state, gil });
    }

    fn stack(&mut self, sample: &ThreadSample, builder: &mut TraceBuilder) -> StackId {
        let mut stack = StackId::NONE;
        for frame in sample.frames.iter().rev() {
            let key = (frame.function, frame.line);
            let id = match self.frames.get(&key) {
                Some(&id) => id,
                None => {
                    let function = self.reader.function(frame.function);
                    let row = FrameRow {
                        name: builder.intern(&function.name),
                        file: builder.intern(&function.file),
                        line: frame.line,
                        first_line: function.first_line,
                        kind: self.reader.kind(frame.function),
                    };
                    let id = builder.frame(row);
                    self.frames.insert(key, id);
                    id
                }
            };
            stack = builder.stack(stack, id);
        }
        stack
    }

    fn track(&self, sample: &ThreadSample, builder: &mut TraceBuilder) -> TrackId {
        let number = sample.number.map_or(sample.ident as i64, |number| i64::from(number.0));
        let process_ident = Ident::Int(i64::from(self.process.0));
        let track = builder.track(process_ident, Ident::Int(number));
        let name = builder.intern(&sample.name);
        builder.track_mut(track).name = Some(name);
        let process_id = builder.process(process_ident);
        if builder.process_mut(process_id).name.is_none() {
            let name = builder.intern(&command_line(self.process));
            builder.process_mut(process_id).name = Some(name);
        }
        track
    }
}

fn command_line(process: ProcessNumber) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.trim_end().to_owned()
}
