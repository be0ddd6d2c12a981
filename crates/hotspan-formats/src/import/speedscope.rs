//! speedscope files, as py-spy, pyinstrument, austin and many others write them: sampled and evented profiles.
//!
//! The frames, samples and weights are held as numbers while the file is read, never as JSON.

use std::io::{BufReader, Read};

use hashbrown::HashMap;
use hotspan_store::{FrameId, Ident, Loss, TraceBuilder, TrackId};
use serde::Deserialize;

use super::stacks::{GrowingStack, frame, sample};
use super::{CountingReader, Importer, Sniff};
use crate::error::ImportError;
use crate::export::speedscope::SCHEMA;
use crate::input::Input;

/// The importer of speedscope files.
pub struct Speedscope;

/// No time of a profile lies further away: 146 years, as everywhere.
const FURTHEST: f64 = (i64::MAX / 2) as f64;

#[derive(Deserialize)]
struct File {
    shared: Shared,
    #[serde(default)]
    profiles: Vec<Profile>,
}

#[derive(Deserialize)]
struct Shared {
    #[serde(default)]
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    unit: Option<String>,
    #[serde(default)]
    start_value: f64,
    #[serde(default)]
    samples: Vec<Vec<u64>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    frame: u64,
    at: f64,
}

impl Importer for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope profile"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
        let object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let shape = has("\"shared\"") && has("\"frames\"") && !has("\"traceEvents\"");
        if object && (has(SCHEMA) || shape) { Sniff::Yes } else { Sniff::No }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let mut counted = CountingReader { reader: &mut *input, count: 0 };
        let parsed: Result<File, _> = serde_json::from_reader(BufReader::new(counted.by_ref()));
        let bytes = counted.count;
        if input.cancelled() {
            return Err(ImportError::Cancelled);
        }
        let file = parsed.map_err(|error| match error.io_error_kind() {
            Some(kind) => ImportError::Io(kind.into()),
            None => {
                ImportError::NotATrace { reason: format!("not a speedscope profile: {error}"), offset: bytes }
            }
        })?;
        let frames: Vec<FrameId> = file
            .shared
            .frames
            .iter()
            .map(|row| {
                let line = row.line.filter(|line| (0.0..=f64::from(u32::MAX)).contains(line)).unwrap_or(0.0);
                frame(builder, &row.name, row.file.as_deref().unwrap_or(""), line as u32)
            })
            .collect();
        for (index, profile) in file.profiles.iter().enumerate() {
            read_profile(profile, index, &frames, builder);
        }
        builder.source.bytes = bytes;
        Ok(())
    }
}

/// Nanoseconds of one unit.
fn scale(unit: Option<&str>) -> f64 {
    match unit {
        Some("nanoseconds") => 1.0,
        Some("microseconds") => 1e3,
        Some("milliseconds") => 1e6,
        Some("seconds") => 1e9,
        // Samples, or bytes: a number each, shown as if it were 10 ms.
        _ => 1e7,
    }
}

fn read_profile(profile: &Profile, index: usize, frames: &[FrameId], builder: &mut TraceBuilder) {
    let thread = Ident::Int(i64::try_from(index).unwrap_or(i64::MAX));
    let track = builder.track(Ident::Int(0), thread);
    if let Some(name) = &profile.name {
        let name = builder.intern(name);
        builder.track_mut(track).name = Some(name);
    }
    let scale = scale(profile.unit.as_deref());
    if scale == 1e7 && !(profile.samples.is_empty() && profile.events.is_empty()) {
        builder.losses.add(Loss::AssumedPeriod, None);
    }
    let mut reader = ProfileReader { frames, builder, track, scale };
    match profile.kind.as_str() {
        "evented" => reader.events(profile),
        _ => reader.samples(profile),
    }
}

struct ProfileReader<'a> {
    frames: &'a [FrameId],
    builder: &'a mut TraceBuilder,
    track: TrackId,
    scale: f64,
}

impl ProfileReader<'_> {
    /// A time in nanoseconds; one that no clock can show is counted.
    fn nanos(&mut self, value: f64) -> Option<i64> {
        let nanos = (value * self.scale).round();
        if nanos.is_finite() && nanos.abs() < FURTHEST {
            return Some(nanos as i64);
        }
        self.builder.losses.add(Loss::BadTimestamp, None);
        None
    }

    fn frame(&mut self, index: u64) -> Option<FrameId> {
        let frame = usize::try_from(index).ok().and_then(|index| self.frames.get(index)).copied();
        if frame.is_none() {
            self.builder.losses.add(Loss::BadEvent, None);
        }
        frame
    }

    fn samples(&mut self, profile: &Profile) {
        let mut time = profile.start_value;
        for (index, frames) in profile.samples.iter().enumerate() {
            let weight = profile.weights.get(index).copied().unwrap_or(1.0);
            let mut stack = GrowingStack::EMPTY;
            for &index in frames {
                if let Some(frame) = self.frame(index) {
                    stack = stack.with(self.builder, frame);
                }
            }
            if let (Some(at), Some(length)) = (self.nanos(time), self.nanos(weight)) {
                if length < 0 {
                    self.builder.losses.add(Loss::NegativeDuration, None);
                } else {
                    sample(self.builder, self.track, stack.id, at, length);
                }
            }
            time += weight;
        }
    }

    /// Frames that open and close: between two events the stack is as it is.
    fn events(&mut self, profile: &Profile) {
        let mut stacks: Vec<(FrameId, GrowingStack)> = Vec::new();
        // How often each frame is open, so that an end without a beginning is known without a search.
        let mut open: HashMap<FrameId, u64> = HashMap::new();
        let mut last = None;
        for event in &profile.events {
            let (Some(at), Some(frame)) = (self.nanos(event.at), self.frame(event.frame)) else { continue };
            let top = stacks.last().map_or(GrowingStack::EMPTY, |&(_, stack)| stack);
            if let Some(before) = last {
                match at - before {
                    length if length > 0 => sample(self.builder, self.track, top.id, before, length),
                    0 => {}
                    _ => {
                        self.builder.losses.add(Loss::NegativeDuration, None);
                        continue;
                    }
                }
            }
            last = Some(at);
            match event.kind.as_str() {
                "O" => {
                    stacks.push((frame, top.with(self.builder, frame)));
                    *open.entry(frame).or_default() += 1;
                }
                "C" if open.get(&frame).is_none_or(|&count| count == 0) => {
                    self.builder.losses.add(Loss::UnmatchedEnd, None);
                }
                // Frames left open inside one that closes end with it.
                "C" => {
                    while let Some((ended, _)) = stacks.pop() {
                        open.entry(ended).and_modify(|count| *count -= 1);
                        if ended == frame {
                            break;
                        }
                    }
                }
                _ => self.builder.losses.add(Loss::BadEvent, None),
            }
        }
        if !stacks.is_empty() {
            self.builder.losses.add_many(Loss::UnfinishedSpan, stacks.len() as u64, None);
        }
    }
}
