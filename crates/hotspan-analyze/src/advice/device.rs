//! Sums of device time for rules: when devices worked, and what part of some work nothing else covers.

use hashbrown::HashMap;
use hotspan_store::{ArgReader, Category, Duration, SpanId, Timestamp, Trace};

use crate::advice::context::Context;

/// Times in order that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// All times together, overlaps once.
    pub(crate) fn of(times: impl Iterator<Item = (Timestamp, Timestamp)>) -> Self {
        let mut times: Vec<(i64, i64)> =
            times.map(|(begin, end)| (begin.0, end.0)).filter(|(begin, end)| begin < end).collect();
        times.sort_unstable();
        let mut union: Vec<(i64, i64)> = Vec::with_capacity(times.len());
        for (begin, end) in times {
            match union.last_mut().filter(|last| begin <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => union.push((begin, end)),
            }
        }
        Self(union)
    }

    /// How long in all.
    pub(crate) fn length(&self) -> Duration {
        self.0.iter().map(|&(begin, end)| Duration(end.saturating_sub(begin))).sum()
    }

    /// What is left without the other times.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut next = 0;
        for &(mut begin, end) in &self.0 {
            while next < other.0.len() && other.0[next].1 <= begin {
                next += 1;
            }
            let mut place = next;
            while begin < end {
                match other.0.get(place).filter(|hole| hole.0 < end) {
                    Some(&(hole_begin, hole_end)) => {
                        if begin < hole_begin {
                            left.push((begin, hole_begin));
                        }
                        begin = begin.max(hole_end);
                        place += 1;
                    }
                    None => {
                        left.push((begin, end));
                        break;
                    }
                }
            }
        }
        Self(left)
    }

    /// The times, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        self.0.iter().map(|&(begin, end)| (Timestamp(begin), Timestamp(end)))
    }
}

/// What a device does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Compute,
    Copy,
    Communication,
}

/// Device spans and what kind of work each is, in file order.
pub(crate) fn device_work(trace: &Trace, is_in_range: impl Fn(Timestamp) -> bool) -> Vec<(SpanId, Work)> {
    let spans = trace.spans();
    // Names repeat: each is looked at once.
    let communicates: Vec<bool> = trace.strings().iter().map(is_communication).collect();
    let work = |span: SpanId| match trace.span_category(span) {
        Category::Collective => Some(Work::Communication),
        Category::Kernel if communicates[spans.name(span).index()] => Some(Work::Communication),
        Category::Kernel => Some(Work::Compute),
        Category::Memcpy | Category::Memset => Some(Work::Copy),
        _ => None,
    };
    let wanted = spans.ids().filter(|&span| is_in_range(spans.time(span)));
    wanted.filter_map(|span| Some((span, work(span)?))).collect()
}

fn is_communication(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("nccl") || lower.contains("rccl") || lower.contains("nccldevkernel")
}

/// Device spans in what rules look at.
pub(crate) fn device_spans<'a>(context: &'a Context<'_>) -> impl Iterator<Item = (SpanId, Work)> + 'a {
    context.device_work().iter().copied()
}

/// When devices did work of these kinds. Several devices of one trace count as one.
pub(crate) fn busy(context: &Context<'_>, wanted: impl Fn(Work) -> bool) -> Intervals {
    let spans = context.trace.spans();
    let times = device_spans(context).filter(|&(_, work)| wanted(work));
    Intervals::of(times.map(|(span, _)| (spans.time(span), spans.end(span))))
}

/// When no device worked, within what rules look at.
pub(crate) fn idle(context: &Context<'_>) -> Intervals {
    Intervals::of(context.ranges().iter().copied()).without(&busy(context, |_| true))
}

/// Calls into the device runtime by their correlation number.
pub(crate) struct RuntimeCalls<'a> {
    trace: &'a Trace,
    correlation: ArgReader<'a>,
    by_number: HashMap<i64, SpanId>,
}

impl<'a> RuntimeCalls<'a> {
    pub(crate) fn of(context: &Context<'a>) -> Self {
        let (trace, spans) = (context.trace, context.trace.spans());
        let correlation = trace.arg("correlation");
        let calls = spans.ids().filter(|&span| trace.span_category(span).is_launch());
        let numbered = calls.filter_map(|span| Some((correlation.int(spans.args(span))?, span)));
        let by_number = numbered.collect();
        Self { trace, correlation, by_number }
    }

    /// The call that started some device work.
    pub(crate) fn behind(&self, device: SpanId) -> Option<SpanId> {
        let number = self.correlation.int(self.trace.spans().args(device))?;
        self.by_number.get(&number).copied()
    }
}

/// Calls into the device runtime in what rules look at.
pub(crate) fn runtime_calls<'a>(context: &'a Context<'_>) -> impl Iterator<Item = SpanId> + 'a {
    let (trace, spans) = (context.trace, context.trace.spans());
    spans
        .ids()
        .filter(move |&span| trace.span_category(span).is_launch() && context.is_in_range(spans.time(span)))
}

/// How many devices worked.
pub(crate) fn device_count(context: &Context<'_>) -> usize {
    let mut devices: Vec<_> = device_spans(context)
        .map(|(span, _)| context.trace.track(context.trace.spans().track(span)).process)
        .collect();
    devices.sort_unstable();
    devices.dedup();
    devices.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(times: &[(i64, i64)]) -> Intervals {
        Intervals::of(times.iter().map(|&(begin, end)| (Timestamp(begin), Timestamp(end))))
    }

    #[test]
    fn overlaps_count_once_and_holes_are_cut_out() {
        let all = intervals(&[(5, 15), (0, 10), (20, 30)]);
        assert_eq!(all.0, [(0, 15), (20, 30)]);
        assert_eq!(all.length(), Duration(25));
        let holes = intervals(&[(2, 4), (10, 22), (25, 26)]);
        assert_eq!(all.without(&holes).0, [(0, 2), (4, 10), (22, 25), (26, 30)]);
        assert_eq!(all.without(&Intervals::default()), all);
    }
}
