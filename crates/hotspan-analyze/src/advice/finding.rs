//! What a rule says: a message, its evidence, where in the source, what a change would gain, and how sure it is.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, SpanId, Timestamp};

use crate::advice::context::Context;
use crate::intervals::{Interval, Intervals};

/// How sure a rule is that its advice applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// A hint: the trace allows other readings.
    Low,
    /// Likely.
    Medium,
    /// The trace shows it.
    High,
}

impl Confidence {
    /// How often such advice is right, about: what a gain is multiplied by to put findings in order.
    fn weight(self) -> f64 {
        match self {
            Self::Low => 0.2,
            Self::Medium => 0.6,
            Self::High => 1.0,
        }
    }

    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What a change would save at best.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Time of the recording.
    pub time: Duration,
    /// The same as percent of the time the rule looked at.
    pub percent: f64,
    /// What that time is.
    pub of: &'static str,
    /// How it was computed.
    pub how: &'static str,
}

/// One row of proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What was seen.
    pub what: String,
    /// How often.
    pub count: u64,
    /// How long, all times together.
    pub time: Duration,
    /// How much memory, where that is the point.
    pub bytes: Option<Bytes>,
    /// When it was seen first, or where it took longest.
    pub at: Option<Timestamp>,
    /// The span there.
    pub span: Option<SpanId>,
    /// The time there in which a device had nothing to do.
    pub gap: Option<Interval>,
    /// The source line it came from.
    pub source: Option<String>,
}

/// What one rule found in one trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is wrong, with its numbers.
    pub message: String,
    /// What to do, in this case.
    pub fix: String,
    /// The rows that prove it, most time first.
    pub evidence: Vec<Evidence>,
    /// What it would gain; `None` where it is not about time.
    pub gain: Option<Gain>,
    /// How sure it is.
    pub confidence: Confidence,
}

impl Finding {
    /// What to expect of following it: findings are told in this order.
    pub(crate) fn worth(&self) -> f64 {
        self.gain.as_ref().map_or(-1.0, |gain| gain.time.0 as f64) * self.confidence.weight()
    }

    /// The source line of the weightiest row that has one.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.evidence.iter().find_map(|row| row.source.as_deref())
    }
}

/// Adds up spans under a label.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: Vec<Evidence>,
    longest: Vec<Duration>,
    indices: HashMap<String, usize>,
    /// When all of it happened, on whatever thread.
    moments: Vec<Interval>,
}

impl Tally {
    /// Counts a span that took this long for the rule's purpose.
    pub(crate) fn add(&mut self, context: &Context<'_>, label: &str, span: SpanId, time: Duration) {
        let index = self.index(label);
        let begin = context.model.spans().time(span);
        self.moments.push(Interval::new(begin, begin.plus(time)));
        let row = &mut self.rows[index];
        row.count += 1;
        row.time += time;
        if row.span.is_none() || time > self.longest[index] {
            row.span = Some(span);
            row.at = Some(begin);
            self.longest[index] = time;
        }
    }

    /// Counts something that is no span.
    pub(crate) fn add_time(&mut self, label: &str, at: Timestamp, time: Duration, source: Option<String>) {
        let index = self.index(label);
        self.moments.push(Interval::new(at, at.plus(time)));
        let row = &mut self.rows[index];
        row.count += 1;
        row.time += time;
        row.at.get_or_insert(at);
        if row.source.is_none() {
            row.source = source;
        }
    }

    /// Counts a time in which a device had nothing to do; the longest of a label stands for it.
    pub(crate) fn add_gap(&mut self, label: &str, gap: Interval) {
        let time = gap.end.since(gap.begin);
        self.add_time(label, gap.begin, time, None);
        let index = self.index(label);
        if self.rows[index].gap.is_none() || time > self.longest[index] {
            self.rows[index].gap = Some(gap);
            self.rows[index].at = Some(gap.begin);
            self.longest[index] = time;
        }
    }

    fn index(&mut self, label: &str) -> usize {
        if let Some(&index) = self.indices.get(label) {
            return index;
        }
        let index = self.rows.len();
        self.indices.insert(label.to_owned(), index);
        self.longest.push(Duration::ZERO);
        self.rows.push(Evidence {
            what: label.to_owned(),
            count: 0,
            time: Duration::ZERO,
            bytes: None,
            at: None,
            span: None,
            gap: None,
            source: None,
        });
        index
    }

    /// The time of all rows, each moment once: threads run side by side, and one call may enclose another.
    pub(crate) fn time(&self) -> Duration {
        self.moments.iter().copied().collect::<Intervals>().length()
    }

    /// The count of all rows.
    pub(crate) fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }

    /// The rows, most time first, with their source lines. The tail of a long list says nothing new.
    pub(crate) fn evidence(mut self, context: &Context<'_>) -> Vec<Evidence> {
        const MOST: usize = 6;
        self.rows.sort_by_key(|row| std::cmp::Reverse((row.time, row.count)));
        self.rows.truncate(MOST);
        for row in self.rows.iter_mut().filter(|row| row.source.is_none()) {
            row.source = row.span.and_then(|span| context.source(span));
        }
        self.rows
    }
}
