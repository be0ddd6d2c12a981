//! How calls spread over the steps of a program, and how much of each step they take.

use hotspan_store::{Duration, SpanId, Timestamp};

use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::windows::StepWindow;
use crate::report::schema::share;

/// With more steps, neighbours are put together.
const MOST_PARTS: usize = 200;

/// The calls of one step, or of several that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPart {
    /// The number of the first step.
    pub first: i64,
    /// The number of the last.
    pub last: i64,
    /// When the first began.
    pub begin: Timestamp,
    /// When the last was over.
    pub end: Timestamp,
    /// How many calls belong to them.
    pub calls: u64,
    /// The time of these calls.
    pub time: Duration,
    /// The time of the steps in which one of them ran: what runs side by side counts once.
    pub covered: Duration,
    /// The time of the steps.
    pub window: Duration,
}

impl StepPart {
    /// The part of the steps' time in which a call ran, in percent.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        share(self.covered, self.window)
    }
}

/// Calls by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trend {
    /// The steps, in order of time.
    pub parts: Vec<StepPart>,
    /// The part of all steps' time in which a call ran, in percent.
    pub share: Option<f64>,
}

/// Finds the steps that calls belong to.
pub(super) struct Steps<'m> {
    model: &'m Model,
    windows: &'m [StepWindow],
}

impl<'m> Steps<'m> {
    pub(super) fn of(model: &'m Model) -> Self {
        let windows = model.step_windows();
        // A program without steps counts as one elsewhere; here it has none.
        let has_steps = windows.iter().any(|window| window.number.is_some());
        Self { model, windows: if has_steps { windows } else { &[] } }
    }

    /// The number of the step that a call belongs to.
    pub(super) fn number(&self, span: SpanId) -> Option<i64> {
        self.windows.get(self.index(span)?)?.number
    }

    /// The number of the step that a moment of a device is in.
    pub(super) fn number_at(&self, time: Timestamp) -> Option<i64> {
        self.windows.get(self.at(time, |window| window.device)?)?.number
    }

    /// Work of a device belongs to the step that launched it.
    fn index(&self, span: SpanId) -> Option<usize> {
        let spans = self.model.spans();
        let call = self.model.launch_calls().call(span);
        if self.is_device(span) && call.is_none() {
            return self.at(spans.time(span), |window| window.device);
        }
        self.at(spans.time(call.unwrap_or(span)), |window| window.host)
    }

    fn at(&self, time: Timestamp, side: fn(&StepWindow) -> Interval) -> Option<usize> {
        let index = self.windows.partition_point(|window| side(window).begin <= time).checked_sub(1)?;
        (time < side(&self.windows[index]).end).then_some(index)
    }

    fn is_device(&self, span: SpanId) -> bool {
        self.model.role(span).is_device()
    }

    /// How calls of one kind spread over the steps.
    pub(super) fn trend(&self, calls: &[SpanId]) -> Option<Trend> {
        let (spans, windows) = (self.model.spans(), self.windows);
        let on_device = self.is_device(*calls.first()?);
        let side = |window: &StepWindow| if on_device { window.device } else { window.host };
        let mut of_step: Vec<Vec<SpanId>> = vec![Vec::new(); windows.len()];
        for &span in calls {
            if let Some(index) = self.index(span) {
                of_step[index].push(span);
            }
        }
        let together = windows.len().div_ceil(MOST_PARTS).max(1);
        let part = |(windows, calls): (&[StepWindow], &[Vec<SpanId>])| {
            let (first, last) = (windows.first()?, windows.last()?);
            let covered = windows.iter().zip(calls).map(|(window, calls)| {
                let ran = calls.iter().map(|&span| Interval::new(spans.time(span), spans.end(span)));
                ran.collect::<Intervals>().length_within(side(window))
            });
            Some(StepPart {
                first: first.number?,
                last: last.number?,
                begin: side(first).begin,
                end: side(last).end,
                calls: calls.iter().map(|calls| calls.len() as u64).sum(),
                time: calls.iter().flatten().map(|&span| spans.duration(span)).sum(),
                covered: covered.sum(),
                window: windows.iter().map(|window| side(window).length()).sum(),
            })
        };
        let parts: Vec<StepPart> =
            windows.chunks(together).zip(of_step.chunks(together)).filter_map(part).collect();
        let sum = |time: fn(&StepPart) -> Duration| parts.iter().map(time).sum();
        let share = share(sum(|part| part.covered), sum(|part| part.window));
        (!parts.is_empty()).then_some(Trend { parts, share })
    }
}
