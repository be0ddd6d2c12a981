//! Where steps begin and end: for the host, and for devices, which run behind it.

use hotspan_store::{Side, SpanId, Timestamp, Trace};

use crate::device_work::DeviceWork;
use crate::intervals::Interval;
use crate::launch_calls::LaunchCalls;

/// A step as the host and as the devices see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepWindow {
    /// Its number; `None` for a recording without steps.
    pub number: Option<i64>,
    /// From the beginning to the end of the mark.
    pub host: Interval,
    /// From the beginning of the mark, or the end of the step before where that is later, to the end of the last work that
    /// the step launched, or of the mark where that is later.
    pub device: Interval,
}

/// The time that was recorded: from the first step, or device work where that is earlier, to the end of the last. Without
/// steps, from the first host or device span to the last.
#[must_use]
pub fn recording(trace: &Trace, devices: &[DeviceWork]) -> Interval {
    let marks = step_marks(trace);
    let worked = devices.iter().filter_map(|device| device.busy.hull());
    if marks.is_empty() {
        let spans = trace.spans();
        let counts: Vec<bool> =
            trace.categories().map(|(_, _, category)| category.side() != Side::Neither).collect();
        let counted = spans.ids().filter(|&span| counts.get(spans.category(span).index()) == Some(&true));
        return hull(counted.map(|span| Interval::new(spans.time(span), spans.end(span))));
    }
    hull(marks.into_iter().map(|(_, mark)| mark).chain(worked))
}

fn hull(intervals: impl Iterator<Item = Interval>) -> Interval {
    let join = |one: Interval, two: Interval| Interval::new(one.begin.min(two.begin), one.end.max(two.end));
    intervals.reduce(join).unwrap_or(Interval::new(Timestamp(0), Timestamp(0)))
}

/// The marks `ProfilerStep#` of the host, in order of time.
fn step_marks(trace: &Trace) -> Vec<(i64, Interval)> {
    let spans = trace.spans();
    let host: Vec<bool> = trace.categories().map(|(_, _, category)| category.side() == Side::Host).collect();
    let number = |span: SpanId| trace.span_name(span).strip_prefix("ProfilerStep#")?.parse::<i64>().ok();
    let among = spans.ids().filter(|&span| host.get(spans.category(span).index()) == Some(&true));
    let mark = |span| Some((number(span)?, Interval::new(spans.time(span), spans.end(span))));
    let mut marks: Vec<(i64, Interval)> =
        among.filter_map(mark).filter(|(_, mark)| !mark.is_empty()).collect();
    marks.sort_by_key(|&(number, mark)| (mark.begin, number));
    marks
}

/// The steps of a trace in order of time; the recording as one step when there are none, nothing for an empty trace.
#[must_use]
pub fn step_windows(trace: &Trace, devices: &[DeviceWork], calls: &LaunchCalls) -> Vec<StepWindow> {
    let marks = step_marks(trace);
    if marks.is_empty() {
        let whole = recording(trace, devices);
        let all = StepWindow { number: None, host: whole, device: whole };
        return if whole.is_empty() { Vec::new() } else { vec![all] };
    }
    // Marks of two threads, or of two processes in one file, may overlap: each moment belongs to the first.
    let mut windows: Vec<StepWindow> = Vec::with_capacity(marks.len());
    let mut free = marks[0].1.begin;
    for (number, mark) in marks {
        let host = Interval::new(mark.begin.max(free), mark.end.max(free));
        free = free.max(mark.end);
        windows.push(StepWindow { number: Some(number), host, device: host });
    }
    let mut ends: Vec<Timestamp> = windows.iter().map(|window| window.host.end).collect();
    for work in devices.iter().flat_map(|device| &device.work) {
        let Some(call) = calls.call(work.span) else { continue };
        let launched = trace.spans().time(call);
        let place = windows.partition_point(|window| window.host.begin <= launched);
        if let Some(place) = place.checked_sub(1)
            && launched < windows[place].host.end
        {
            ends[place] = ends[place].max(work.interval.end);
        }
    }
    let mut free = windows[0].host.begin;
    for (window, end) in windows.iter_mut().zip(ends) {
        window.device = Interval::new(window.host.begin.max(free), end.max(free));
        free = window.device.end;
    }
    windows
}
