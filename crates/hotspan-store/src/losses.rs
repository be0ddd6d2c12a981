//! Losses: everything that was dropped, repaired or not understood, counted under a name.

use std::fmt;

/// How bad a loss is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; every number stands.
    Note,
    /// Something was repaired or guessed; numbers that rest on it may be off.
    Repair,
    /// Events are missing.
    Loss,
}

macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident: $key:literal, $severity:ident, $help:literal;)*) => {
        /// A named way in which a trace can be less than what happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Loss {
            $(#[doc = $help] $name,)*
        }

        impl Loss {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name it is counted under.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $key,)* }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub fn help(self) -> &'static str {
                match self { $(Self::$name => $help,)* }
            }
        }
    };
}

losses! {
    BadEvent: "bad_event", Loss, "events skipped because their JSON could not be read";
    NotAnEvent: "not_an_event", Loss, "entries of traceEvents that are not objects";
    MissingField: "missing_field", Loss, "events skipped because ph, name, ts or another needed field is missing";
    BadTimestamp: "bad_timestamp", Loss, "events skipped because their time is not a number that fits 64 bits of nanoseconds";
    OversizedEvent: "oversized_event", Loss, "events skipped because a single one is larger than 64 MB or nested deeper than 100 levels";
    OversizedMetadata: "oversized_metadata", Loss, "top-level values skipped because a single one is larger than 64 MB";
    TruncatedFile: "truncated_file", Loss, "the file ends before its end: the recording or the copy was cut off";
    DamagedChunk: "damaged_chunk", Loss, "parts of the file whose checksum or structure is wrong; what follows them is not read";
    UnknownLoss: "unknown_loss", Loss, "losses that a newer hotspan counted under names this version does not know";
    BufferFull: "buffer_full", Loss, "events not recorded because the memory limit of the recording was reached";
    DroppedEvents: "dropped_events", Loss, "events of the oldest stretch, dropped to keep the recording within its size or time";
    OlderEvents: "older_events", Loss, "events of the oldest stretch, which are recorded but were not read: all would take more memory than hotspan may use, and --max-memory or HOTSPAN_MAX_MEMORY allows more";
    InputsDropped: "inputs_dropped", Loss, "operators whose inputs were too large to record, or could not be read";
    MissedSample: "missed_sample", Loss, "samples not taken because the collector was behind";
    SignalTaken: "signal_taken", Repair, "times that the program took the sampler's signal (SIGURG) for itself: samples there have no native frames";
    DeafThread: "deaf_thread", Note, "threads that block the sampler's signal: their samples have no native frames";
    UnreadableFrame: "unreadable_frame", Repair, "Python frames left out of samples because their code was gone before it was read";
    DeviceRecordsDropped: "device_records_dropped", Loss, "device records that CUPTI dropped for want of buffers";
    UntimedDeviceWork: "untimed_device_work", Loss, "device work without times: it had not ended when recording stopped, or CUPTI tells no time";
    DamagedDeviceBuffer: "damaged_device_buffer", Loss, "buffers of device records that CUPTI itself could not read to their end";
    DeviceBufferNotReturned: "device_buffer_not_returned", Loss, "buffers of device records that CUPTI kept beyond the end of the recording";
    MemoryReleased: "memory_released", Loss, "memory not recorded to the end, because torch.profiler was started during the recording";
    UnmatchedEnd: "unmatched_end", Loss, "end events without a beginning";
    MissedSamples: "missed_samples", Loss, "moments at which no sample was taken because the sampler was busy or had no processor";
    FailedSamples: "failed_samples", Loss, "samples of threads that could not be read because the process changed meanwhile";
    UnseenProcesses: "unseen_processes", Loss, "child processes that ended before one look into them";
    UnfinishedSpan: "unfinished_span", Repair, "spans without an end, closed at the last moment of the trace";
    RepairedString: "repaired_string", Repair, "strings with unescaped quotes, backslashes or control characters, read as meant";
    InvalidUtf8: "invalid_utf8", Repair, "strings with bytes that are not UTF-8, shown as U+FFFD";
    NotANumber: "not_a_number", Repair, "NaN or infinite values, kept as null";
    NegativeDuration: "negative_duration", Repair, "spans that end before they begin";
    BrokenStack: "broken_stack", Note, "samples whose native stack could not be followed to its beginning; Python frames are whole";
    UnsteadySamples: "unsteady_samples", Repair, "samples of stacks that moved while they were read; their innermost frames may not belong together";
    DeepStack: "deep_stack", Repair, "frames left out of samples because more than 4096 calls are around them (1000 in files of other profilers)";
    AssumedPeriod: "assumed_period", Note, "counts of a file without times, each taken as a sample 10 ms long";
    LateSamples: "late_samples", Note, "samples taken more than half a period after their time";
    ClockJumped: "clock_jumped", Repair, "the system's clock was set while recording, so device work may lie beside the calls that launched it";
    UnknownLaunchThread: "unknown_launch_thread", Repair, "calls into the CUDA runtime whose thread this CUPTI does not tell";
    RoundedTime: "rounded_time", Note, "times finer than a nanosecond, rounded";
    ForgottenForward: "forgotten_forward", Note, "arrows left out because too many forward operators came between the two ends";
    MissingDuration: "missing_duration", Note, "complete events without a duration, taken as 0";
    KeptVerbatim: "kept_verbatim", Note, "events of a kind hotspan does not analyse (async, object, sample); kept and exported unchanged";
    UnknownDeviceRecord: "unknown_device_record", Note, "device records of a kind that was not asked for";
    PackedArgs: "packed_args", Note, "events with unusual keys, stored packed";
    TrailingData: "trailing_data", Note, "bytes after the end of the trace, ignored";
}

/// A loss that happened: how often, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossCount {
    /// What was lost.
    pub loss: Loss,
    /// How many times.
    pub count: u64,
    /// The byte offset in the (uncompressed) file where it was first seen.
    pub first_offset: Option<u64>,
}

/// All losses of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    counts: Vec<LossCount>,
}

impl Losses {
    /// Counts one loss.
    pub fn add(&mut self, loss: Loss, offset: Option<u64>) {
        self.add_many(loss, 1, offset);
    }

    /// Counts several losses of a kind.
    pub fn add_many(&mut self, loss: Loss, count: u64, offset: Option<u64>) {
        match self.counts.iter_mut().find(|known| known.loss == loss) {
            Some(known) => known.count = known.count.saturating_add(count),
            None => {
                self.counts.push(LossCount { loss, count, first_offset: offset });
                self.counts.sort_by_key(|known| (std::cmp::Reverse(known.loss.severity()), known.loss));
            }
        }
    }

    /// How often a loss happened.
    #[must_use]
    pub fn count(&self, loss: Loss) -> u64 {
        self.counts.iter().find(|known| known.loss == loss).map_or(0, |known| known.count)
    }

    /// All that happened, worst first.
    #[must_use]
    pub fn counts(&self) -> &[LossCount] {
        &self.counts
    }

    /// Whether nothing at all was lost, repaired or noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Those that make numbers wrong or incomplete.
    pub fn serious(&self) -> impl Iterator<Item = &LossCount> {
        self.counts.iter().filter(|known| known.loss.severity() > Severity::Note)
    }
}

impl fmt::Display for LossCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} ({}", self.count, self.loss.name(), self.loss.help())?;
        if let Some(offset) = self.first_offset {
            write!(f, "; first at byte {offset}")?;
        }
        write!(f, ")")
    }
}
