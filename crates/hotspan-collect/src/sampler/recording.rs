//! A recording: samples of a process, and of its children where asked for, as rows of a trace.
//!
//! With a spool the rows go to a file as they come, so that memory does not grow and a crash leaves what there was.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hotspan_store::file::FileError;
use hotspan_store::{Clock, Loss, Losses, Timestamp, Trace, TraceBuilder};

use super::ThreadSample;
use super::error::SamplerError;
use super::family::Family;
use super::reader::{ProcessReader, WantedFrames};
use super::schedule::Schedule;
use super::target::{Moment, Target};
use crate::process_tree::ProcessNumber;
use crate::spool::Spool;

/// After so many failures in a row a process is looked at anew: it may have become another program.
const PATIENCE: u32 = 20;
/// Children become another program all the time, right after they are made.
const PATIENCE_WITH_CHILDREN: u32 = 3;
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
    /// Whether native frames are recorded too. Threads that run are held while they are copied.
    pub native: bool,
}

impl SampleOptions {
    fn native_frames(&self) -> Option<WantedFrames> {
        let Self { idle, gil_only, native, .. } = *self;
        native.then_some(WantedFrames { idle, gil_only })
    }
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

/// A recording in progress.
pub struct Recording {
    options: SampleOptions,
    targets: Vec<Target>,
    /// The process and its descendants, where they are recorded too.
    family: Option<Family>,
    builder: TraceBuilder,
    spool: Option<Spool>,
    schedule: Schedule,
    started: Instant,
    unix: i64,
    samples: Vec<ThreadSample>,
    totals: Totals,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Recording {
    /// Begins to record a process that runs.
    ///
    /// # Errors
    /// When it cannot be read. A process that is not Python is accepted where its children are recorded too.
    pub fn attach(process: ProcessNumber, options: SampleOptions) -> Result<Self, SamplerError> {
        let target = match Target::attach(process, options.native_frames()) {
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
            match Target::attach(process, options.native_frames()) {
                Ok(target) => return Ok(Self::new(process, Some(target), options)),
                Err(SamplerError::NotPython { .. }) if options.subprocesses => {
                    return Ok(Self::new(process, None, options));
                }
                Err(SamplerError::NotPython { .. } | SamplerError::Unreadable { .. })
                    if begun.elapsed() < STARTUP && process.is_alive() =>
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
            targets: Vec::new(),
            family: options.subprocesses.then(|| Family::of(root)),
            builder: TraceBuilder::new(),
            spool: None,
            schedule: Schedule::every(options.period),
            started: now,
            unix,
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
            "native": self.options.native,
            "python": python,
        });
        self.builder.clock = Clock { origin: 0, base_unix: Some(self.unix) };
        self.builder.metadata.set("hotspan.sampling", &options.to_string());
        "sampling".clone_into(&mut self.builder.source.format);
    }

    /// Writes rows to a new file as they come from now on, instead of keeping them. [`Self::finish_spool`] completes it.
    ///
    /// # Errors
    /// When the file exists already or cannot be written.
    pub fn spool_to(&mut self, path: &Path) -> Result<(), FileError> {
        self.spool = Some(Spool::create_new(path)?);
        Ok(())
    }

    /// What has been recorded so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The process being recorded, where it is Python.
    #[must_use]
    pub fn reader(&self) -> Option<&ProcessReader> {
        self.targets.first().map(|target| &target.reader)
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
        self.find_children(now);
        let moment = Moment {
            time: Timestamp(now.duration_since(self.started).as_nanos() as i64),
            weight: hotspan_store::Duration(tick.weight.as_nanos() as i64),
        };
        self.totals.looks += 1;
        self.totals.threads = 0;
        let (held, active) = (self.totals.gil_held, self.totals.active);
        let mut targets = std::mem::take(&mut self.targets);
        targets.retain_mut(|target| self.look(target, moment));
        self.targets = targets;
        // Several processes count as one look.
        self.totals.gil_held = self.totals.gil_held.min(held + 1);
        self.totals.active = self.totals.active.min(active + 1);
        if let Some(spool) = self.spool.as_mut().filter(|spool| spool.is_due(&self.builder)) {
            // The program goes on without; the end tells.
            let _ = spool.append(&mut self.builder);
        }
        !self.targets.is_empty() || self.family.as_ref().is_some_and(Family::is_alive)
    }

    /// Looks at one process. `false` when it is gone.
    fn look(&mut self, target: &mut Target, moment: Moment) -> bool {
        let mut samples = std::mem::take(&mut self.samples);
        let outcome = target.reader.walk(&mut samples);
        let alive = match outcome {
            Ok(failed) => {
                target.failures = 0;
                if failed > 0 {
                    self.builder.losses.add_many(Loss::FailedSamples, u64::from(failed), None);
                }
                self.totals.threads += samples.len() as u64;
                self.totals.gil_held += u64::from(samples.iter().any(|sample| sample.gil));
                self.totals.active += u64::from(samples.iter().any(|sample| !sample.state.is_idle()));
                for sample in &samples {
                    self.keep(target, sample, moment);
                }
                true
            }
            Err(error) if error.is_end() => false,
            Err(_) => {
                self.builder.losses.add(Loss::FailedSamples, None);
                target.failures += 1;
                target.failures < self.patience() || self.look_anew(target)
            }
        };
        self.samples = samples;
        alive
    }

    fn patience(&self) -> u32 {
        if self.family.is_some() { PATIENCE_WITH_CHILDREN } else { PATIENCE }
    }

    /// A process that cannot be read any more may have become another program.
    fn look_anew(&mut self, target: &mut Target) -> bool {
        match Target::attach(target.process, self.options.native_frames()) {
            Ok(fresh) => *target = fresh,
            Err(SamplerError::Unreadable { .. }) if target.process.is_alive() => target.failures = 0,
            Err(_) => return false,
        }
        true
    }

    fn keep(&mut self, target: &mut Target, sample: &ThreadSample, moment: Moment) {
        let wanted = (self.options.idle || !sample.state.is_idle()) && (!self.options.gil_only || sample.gil);
        if wanted {
            target.keep(sample, moment, &mut self.builder);
            self.totals.samples += 1;
        } else {
            target.skip(sample);
        }
    }

    /// Begins to sample processes that have come.
    fn find_children(&mut self, now: Instant) {
        let Some(family) = &mut self.family else { return };
        let targets = &self.targets;
        let is_sampled = |process| targets.iter().any(|target| target.process == process);
        for process in family.candidates(now, is_sampled) {
            match Target::attach(process, self.options.native_frames()) {
                Ok(target) => {
                    family.forget(process);
                    self.targets.push(target);
                }
                Err(error) => family.refuse(process, now, &error),
            }
        }
        let unseen = family.take_unseen();
        if unseen > 0 {
            self.builder.losses.add_many(Loss::UnseenProcesses, unseen, None);
        }
    }

    /// Completes the spool; what was lost is the answer, and `None` where there is no spool.
    ///
    /// # Errors
    /// When it could not be written to its end. What is in it can be read.
    pub fn finish_spool(mut self) -> Result<Option<Losses>, FileError> {
        let Some(spool) = self.spool.take() else { return Ok(None) };
        let losses = self.builder.losses.clone();
        spool.finish(&mut self.builder)?;
        Ok(Some(losses))
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
            target.forget_rows();
        }
        self.describe(None);
        builder.finish()
    }
}
