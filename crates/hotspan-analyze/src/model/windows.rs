//! Where steps begin and end: for the host, and for devices, which run behind it.

use hotspan_store::{Side, Timestamp};

use super::Model;
use super::steps::Step;
use crate::intervals::Interval;

/// A step as the host and as the devices see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepWindow {
    /// Its number; `None` for a recording without steps.
    pub number: Option<i64>,
    /// From the beginning to the end of the step.
    pub host: Interval,
    /// From the beginning of the step, or the end of the step before where that is later, to the end of the last work that
    /// the step launched, or of the step where that is later.
    pub device: Interval,
}

/// The time that was recorded: from the first marked step, or device work where that is earlier, to the end of the last.
/// Without marks, from the first host or device span to the last.
pub(super) fn recording(model: &Model) -> Interval {
    let marks = model.steps().marked();
    if marks.is_empty() {
        let spans = model.spans();
        let counts: Vec<bool> =
            model.categories().map(|(_, _, category)| category.side() != Side::Neither).collect();
        let counted = spans.ids().filter(|&span| counts.get(spans.category(span).index()) == Some(&true));
        return hull(counted.map(|span| Interval::new(spans.time(span), spans.end(span))));
    }
    let worked = model.device_work().iter().filter_map(|device| device.busy.hull());
    hull(marks.iter().map(Step::interval).chain(worked))
}

fn hull(intervals: impl Iterator<Item = Interval>) -> Interval {
    let join = |one: Interval, two: Interval| Interval::new(one.begin.min(two.begin), one.end.max(two.end));
    intervals.reduce(join).unwrap_or(Interval::new(Timestamp(0), Timestamp(0)))
}

/// The steps of a trace in order of time; the recording as one step when there are none, nothing for an empty trace.
pub(super) fn step_windows(model: &Model) -> Vec<StepWindow> {
    let steps = &model.steps().all;
    let Some(first) = steps.first() else {
        let whole = *model.recording();
        let all = StepWindow { number: None, host: whole, device: whole };
        return if whole.is_empty() { Vec::new() } else { vec![all] };
    };
    // Marks of two threads may overlap: each moment belongs to the first.
    let mut windows: Vec<StepWindow> = Vec::with_capacity(steps.len());
    let mut free = first.begin;
    for step in steps {
        let interval = step.interval();
        let host = Interval::new(interval.begin.max(free), interval.end.max(free));
        free = free.max(interval.end);
        windows.push(StepWindow { number: Some(step.number), host, device: host });
    }
    let mut ends: Vec<Timestamp> = windows.iter().map(|window| window.host.end).collect();
    for work in model.device_work().iter().flat_map(|device| &device.work) {
        let Some(call) = model.launch_calls().call(work.span) else { continue };
        let launched = model.spans().time(call);
        let after = windows.partition_point(|window| window.host.begin <= launched);
        if let Some(index) = after.checked_sub(1)
            && launched < windows[index].host.end
        {
            ends[index] = ends[index].max(work.interval.end);
        }
    }
    let mut free = windows[0].host.begin;
    for (window, end) in windows.iter_mut().zip(ends) {
        window.device = Interval::new(window.host.begin.max(free), end.max(free));
        free = window.device.end;
    }
    windows
}
