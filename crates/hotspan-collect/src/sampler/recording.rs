//! A recording: samples of a process, and of its children where asked for, as rows of a trace.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hashbrown::HashMap;
use hotspan_store::{
    Clock, FrameId, FrameKind, FrameRow, Ident, Loss, SampleRow, StackId, Timestamp, Trace, TraceBuilder,
    TrackId,
};

use super::code::FunctionId;
use super::error::SamplerError;
use super::memory::ProcessNumber;
use super::reader::Reader;
use super::schedule::Schedule;
use super::state::ThreadNumber;
use super::tree::ProcessTree;
use super::{ThreadSample, Walker};

/// How often children are looked for.
const CHILDREN_AGAIN: Duration = Duration::from_millis(250);
/// After so many failures in a row a process is looked at anew: it may have become another program.
const PATIENCE: u32 = 20;
/// How long a process that was just started may take to become Python.
const STARTUP: Duration = Duration::from_secs(5);

/// What to record.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// The time between two samples.
    pub period: Duration,
    /// Whether children are recorded too.
    pub subprocesses: bool,
    /// Whether threads that wait are recorded too.
    pub idle: bool,
    /// Whether only the thread that holds the interpreter's lock is recorded.
    pub gil_only: bool,
}

/// What has been recorded so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Looks at the process.
    pub looks: u64,
    /// Samples of threads that were kept.
    pub samples: u64,
    /// Threads at the last look, idle ones among them.
    pub threads: u64,
    /// Looks at which some thread held the interpreter's lock.
    pub gil_held: u64,
    /// Looks at which some thread was running.
    pub active: u64,
}

/// What tells threads apart; Python's own numbers are used again.
type ThreadKey = (u64, Option<ThreadNumber>);

/// A thread whose samples are kept.
#[derive(Debug)]
struct KnownThread {
    track: TrackId,
    stack: StackId,
    name: String,
}

/// One process being recorded.
#[derive(Debug)]
struct Target {
    process: ProcessNumber,
    reader: Reader,
    failures: u32,
    frames: HashMap<(FunctionId, u32), FrameId>,
    threads: HashMap<ThreadKey, KnownThread>,
}

impl Target {
    fn attach(process: ProcessNumber) -> Result<Self, SamplerError> {
        let reader = Reader::attach(process)?;
        Ok(Self { process, reader, failures: 0, frames: HashMap::new(), threads: HashMap::new() })
    }
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recording {
    options: SampleOptions,
    root: ProcessNumber,
    targets: Vec<Target>,
    /// Descendants that are not Python, or not ours to read, and when to look at them again.
    others: HashMap<ProcessNumber, Instant>,
    builder: TraceBuilder,
    schedule: Schedule,
    started: Instant,
    unix: i64,
    children_at: Instant,
    samples: Vec<ThreadSample>,
    totals: Totals,
}

impl Recording {
    /// Begins to record a process that runs.
    ///
    /// # Errors
    /// When it cannot be read. A process that is not Python is accepted where its children are recorded too.
    pub fn attach(process: ProcessNumber, options: SampleOptions) -> Result<Self, SamplerError> {
        let target = match Target::attach(process) {
            Ok(target) => Some(target),
            Err(SamplerError::NotPython { .. }) if options.subprocesses => None,
            Err(error) => return Err(error),
        };
        Ok(Self::new(process, target, options))
    }

    /// Begins to record a process that was just started, as soon as it is Python.
    ///
    /// # Errors
    /// When it does not become Python, or ends before.
    pub fn attach_to_new(process: ProcessNumber, options: SampleOptions) -> Result<Self, SamplerError> {
        let begun = Instant::now();
        loop {
            match Target::attach(process) {
                Ok(target) => return Ok(Self::new(process, Some(target), options)),
                Err(SamplerError::NotPython { .. }) if options.subprocesses => {
                    return Ok(Self::new(process, None, options));
                }
                Err(SamplerError::NotPython { .. } | SamplerError::Unreadable { .. })
                    if begun.elapsed() < STARTUP && is_alive(process) =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn new(root: ProcessNumber, target: Option<Target>, options: SampleOptions) -> Self {
        let now = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        let mut recording = Self {
            options,
            root,
            targets: Vec::new(),
            others: HashMap::new(),
            builder: TraceBuilder::new(),
            schedule: Schedule::every(options.period),
            started: now,
            unix,
            children_at: now,
            samples: Vec::new(),
            totals: Totals::default(),
        };
        recording.describe(target.as_ref());
        recording.targets.extend(target);
        recording
    }

    fn describe(&mut self, target: Option<&Target>) {
        let python = target.map(|target| target.reader.interpreter().version.to_string());
        let options = serde_json::json!({
            "period_ns": u64::try_from(self.options.period.as_nanos()).unwrap_or(u64::MAX),
            "idle": self.options.idle,
            "gil_only": self.options.gil_only,
            "subprocesses": self.options.subprocesses,
            "python": python,
        });
        self.builder.clock = Clock { origin: 0, base_unix: Some(self.unix) };
        self.builder.metadata.set("hotspan.sampling", &options.to_string());
        "sampling".clone_into(&mut self.builder.source.format);
    }

    /// What has been recorded so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The process being recorded, where it is Python.
    #[must_use]
    pub fn reader(&self) -> Option<&Reader> {
        self.targets.first().map(|target| &target.reader)
    }

    /// The threads of the last process looked at, idle ones among them.
    #[must_use]
    pub fn last_threads(&self) -> &[ThreadSample] {
        &self.samples
    }

    /// How long until the next sample is due.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.schedule.wait(Instant::now())
    }

    /// Takes the sample that is due. Whether there is still something to record is the answer.
    pub fn sample(&mut self) -> bool {
        let now = Instant::now();
        let tick = self.schedule.tick(now);
        if tick.missed > 0 {
            self.builder.losses.add_many(Loss::MissedSamples, tick.missed, None);
        }
        if tick.late * 2 > self.schedule.period() {
            self.builder.losses.add(Loss::LateSamples, None);
        }
        if self.options.subprocesses && now >= self.children_at {
            self.children_at = now + CHILDREN_AGAIN;
            self.find_children(now);
        }
        self.totals.looks += 1;
        self.totals.threads = 0;
        let (held, active) = (self.totals.gil_held, self.totals.active);
        let mut targets = std::mem::take(&mut self.targets);
        targets.retain_mut(|target| self.look(target, now));
        self.targets = targets;
        // Several processes count as one look.
        self.totals.gil_held = self.totals.gil_held.min(held + 1);
        self.totals.active = self.totals.active.min(active + 1);
        !self.targets.is_empty() || (self.options.subprocesses && is_alive(self.root))
    }

    /// Looks at one process. `false` when it is gone.
    fn look(&mut self, target: &mut Target, now: Instant) -> bool {
        let mut samples = std::mem::take(&mut self.samples);
        let outcome = target.reader.walk(&mut samples);
        let alive = match outcome {
            Ok(look) => {
                target.failures = 0;
                if look.failed > 0 {
                    self.builder.losses.add_many(Loss::FailedSamples, u64::from(look.failed), None);
                }
                self.totals.threads += samples.len() as u64;
                self.totals.gil_held += u64::from(samples.iter().any(|sample| sample.gil));
                self.totals.active += u64::from(samples.iter().any(|sample| !sample.state.is_idle()));
                for sample in &samples {
                    self.keep(target, sample, now);
                }
                true
            }
            Err(error) if error.is_end() => false,
            Err(_) => {
                self.builder.losses.add(Loss::FailedSamples, None);
                target.failures += 1;
                target.failures < PATIENCE || self.look_anew(target)
            }
        };
        self.samples = samples;
        alive
    }

    /// A process that cannot be read any more may have become another program.
    fn look_anew(&mut self, target: &mut Target) -> bool {
        match Target::attach(target.process) {
            Ok(fresh) => *target = fresh,
            Err(SamplerError::Unreadable { .. }) if is_alive(target.process) => target.failures = 0,
            Err(_) => return false,
        }
        true
    }

    fn keep(&mut self, target: &mut Target, sample: &ThreadSample, now: Instant) {
        let wanted = (self.options.idle || !sample.state.is_idle()) && (!self.options.gil_only || sample.gil);
        let key = (sample.ident, sample.number);
        let known =
            target.threads.get(&key).map(|known| (known.track, known.stack, known.name == sample.name));
        // The stack of a thread that was not kept for a while is found again when it is.
        if !wanted {
            if sample.changed && known.is_some() {
                target.threads.remove(&key);
            }
            return;
        }
        let (track, stack) = match known {
            Some((track, stack, true)) if !sample.changed => (track, stack),
            Some((track, _, true)) => (track, self.stack(target, sample)),
            _ => (self.track(target.process, sample), self.stack(target, sample)),
        };
        match target.threads.get_mut(&key) {
            Some(known) if known.name == sample.name => known.stack = stack,
            _ => {
                target.threads.insert(key, KnownThread { track, stack, name: sample.name.clone() });
            }
        }
        if sample.unsteady {
            self.builder.losses.add(Loss::UnsteadySamples, None);
        }
        self.totals.samples += 1;
        self.builder.push_sample(SampleRow {
            time: Timestamp(now.duration_since(self.started).as_nanos() as i64),
            track,
            stack,
            weight: hotspan_store::Duration(self.schedule.period().as_nanos() as i64),
            state: sample.state.0,
            gil: sample.gil,
        });
    }

    fn stack(&mut self, target: &mut Target, sample: &ThreadSample) -> StackId {
        let mut stack = StackId::NONE;
        for frame in sample.frames.iter().rev() {
            let key = (frame.function, frame.line);
            let id = match target.frames.get(&key) {
                Some(&id) => id,
                None => {
                    let function = target.reader.function(frame.function);
                    let row = FrameRow {
                        name: self.builder.intern(&function.name),
                        file: self.builder.intern(&function.file),
                        line: frame.line,
                        first_line: function.first_line,
                        kind: FrameKind::Python,
                    };
                    let id = self.builder.frame(row);
                    target.frames.insert(key, id);
                    id
                }
            };
            stack = self.builder.stack(stack, id);
        }
        stack
    }

    fn track(&mut self, process: ProcessNumber, sample: &ThreadSample) -> TrackId {
        let number = sample.number.map_or(sample.ident as i64, |number| i64::from(number.0));
        let process_ident = Ident::Int(i64::from(process.0));
        let track = self.builder.track(process_ident, Ident::Int(number));
        let name = self.builder.intern(&sample.name);
        self.builder.track_mut(track).name = Some(name);
        let process_id = self.builder.process(process_ident);
        if self.builder.process_mut(process_id).name.is_none() {
            let name = self.builder.intern(&command_line(process));
            self.builder.process_mut(process_id).name = Some(name);
        }
        track
    }

    fn find_children(&mut self, now: Instant) {
        const OTHERS_AGAIN: Duration = Duration::from_secs(2);
        let living = ProcessTree::below(self.root).descendants();
        self.others.retain(|process, _| living.contains(process));
        for process in living {
            let known = self.targets.iter().any(|target| target.process == process)
                || self.others.get(&process).is_some_and(|&again| now < again);
            if !known {
                match Target::attach(process) {
                    Ok(target) => self.targets.push(target),
                    // A child is another program, or not yet what it will be.
                    Err(_) => {
                        let first = !self.others.contains_key(&process);
                        let pause = if first { CHILDREN_AGAIN } else { OTHERS_AGAIN };
                        self.others.insert(process, now + pause);
                    }
                }
            }
        }
        if self.targets.iter().all(|target| target.process != self.root)
            && let Ok(target) = Target::attach(self.root)
        {
            self.targets.insert(0, target);
        }
    }

    /// What was recorded.
    #[must_use]
    pub fn finish(self) -> Trace {
        self.builder.finish()
    }

    /// What was recorded since the last time; the recording goes on.
    #[must_use]
    pub fn take(&mut self) -> Trace {
        let builder = std::mem::take(&mut self.builder);
        for target in &mut self.targets {
            target.frames.clear();
            target.threads.clear();
        }
        self.describe(None);
        builder.finish()
    }
}

/// Whether a process lives; one that waits to be collected by its parent does not.
fn is_alive(process: ProcessNumber) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
}

fn command_line(process: ProcessNumber) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.trim_end().to_owned()
}
