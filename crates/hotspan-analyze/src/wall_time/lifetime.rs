//! What a recording says about the life of the program's own process: when the interpreter had started, when the program got its
//! turn and was done, when we were.

use hotspan_store::{Duration, Timestamp, Trace};
use serde_json::Value;

use super::{Activity, Interval};

/// How long the main thread was ready to run and waited for a processor, of how much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) time: Duration,
    pub(crate) whole: Duration,
}

impl Queued {
    /// `None` where nobody counted, or the process was cut off.
    pub(crate) fn of(trace: &Trace) -> Option<Self> {
        let process = trace.metadata().value("hotspan.process")?;
        let number = |key: &str| process.get(key).and_then(Value::as_i64);
        let whole = number("finished_unix_ns")?.saturating_sub(number("began_unix_ns")?).max(1);
        Some(Self { time: Duration(number("queued_ns")?.clamp(0, whole)), whole: Duration(whole) })
    }

    /// The part of its time.
    pub(crate) fn share(self) -> f64 {
        self.time.0 as f64 / self.whole.0 as f64
    }
}

/// The moments that the agent noted.
#[derive(Debug)]
pub(super) struct Lifetime {
    began: Timestamp,
    ready: Timestamp,
    finished: Option<Timestamp>,
    /// When the last of the recording was written.
    written: Option<Timestamp>,
    is_whole: bool,
}

impl Lifetime {
    pub(super) fn of(trace: &Trace, run: &Value) -> Option<Self> {
        let process = trace.metadata().value("hotspan.process")?;
        if process.get("process").and_then(Value::as_i64) != run.get("pid").and_then(Value::as_i64) {
            // The program itself is not Python; this is a child.
            return None;
        }
        let origin = trace.clock().unix_origin()?;
        let moment = |of: &Value, key: &str| Some(Timestamp(of.get(key)?.as_i64()?.saturating_sub(origin)));
        let finished = moment(&process, "finished_unix_ns");
        Some(Self {
            began: moment(&process, "began_unix_ns")?,
            ready: moment(&process, "ready_unix_ns")?,
            finished,
            // The clock of files goes in steps of some milliseconds, backwards.
            written: moment(run, "written_unix_ns").zip(finished).map(|(written, done)| written.max(done)),
            is_whole: process.get("is_whole") == Some(&Value::Bool(true)),
        })
    }

    /// From the program's first moment to its last, where all of that was recorded.
    pub(super) fn program(&self) -> Option<Interval> {
        let finished = self.finished.filter(|_| self.is_whole)?;
        (self.ready <= finished).then_some((self.ready, finished))
    }

    /// What was before the program and after it.
    pub(super) fn around(&self, begin: Timestamp, end: Timestamp) -> Vec<(Interval, Activity)> {
        let mut parts =
            vec![((begin, self.began), Activity::Starting), ((self.began, self.ready), Activity::Profiler)];
        if let Some((finished, written)) = self.finished.zip(self.written) {
            parts.push(((finished, written), Activity::Profiler));
            parts.push(((written, end), Activity::Exiting));
        }
        parts
    }
}
