//! Cuts gaps into pieces.

use hotspan_store::{Duration, Ident, SpanId, Timestamp};

use crate::idle::{Cause, DeviceIdle, Gap, Piece};
use crate::intervals::{Interval, Labelled, flatten};
use crate::model::Model;
use crate::model::device_work::DeviceWork;
use crate::model::host_activity::HostKind;
use crate::model::nesting::Innermost;
use crate::model::runtime_calls::CallKind;

/// What is around host spans.
pub(super) struct Around {
    pub(super) operator: Innermost,
    pub(super) python: Innermost,
    /// The innermost function that was called from the user's own code.
    pub(super) site: Innermost,
    pub(super) user_code: Innermost,
}

/// What the host did at a moment that explains a gap; the larger wins when several threads do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Doing {
    rank: u8,
    span: SpanId,
}

/// Causes by rank. Loading data explains all that happens inside it; a communication call its waits.
const RANKS: [Cause; 5] =
    [Cause::Copy, Cause::Synchronise, Cause::Allocator, Cause::Communication, Cause::DataLoader];

/// What the threads that drive devices did, of that which explains a gap; only those of one process, where a device is its own.
pub(super) fn timeline(model: &Model, process: Option<i64>) -> Vec<Labelled<Doing>> {
    let (spans, activity) = (model.spans(), model.host_activity());
    let is_host = |span: &SpanId| {
        let of_span = || model.process(model.track(spans.track(*span)).process).ident;
        process.is_none_or(|process| of_span() == Ident::Int(process))
    };
    let explaining = spans.ids().filter(is_host).filter_map(|span| {
        let cause = match activity.kind(span) {
            HostKind::DataLoader => Cause::DataLoader,
            HostKind::Communication => Cause::Communication,
            HostKind::Call(CallKind::Allocate) => Cause::Allocator,
            HostKind::Call(CallKind::Synchronise) => Cause::Synchronise,
            HostKind::Call(CallKind::Copy) => Cause::Copy,
            _ => return None,
        };
        let rank = RANKS.iter().position(|&ranked| ranked == cause)? as u8;
        let interval = Interval::new(spans.time(span), spans.end(span));
        activity.drives(spans.track(span)).then_some(Labelled { interval, label: Doing { rank, span } })
    });
    flatten(&explaining.collect::<Vec<_>>())
}

pub(super) struct Cutter<'a> {
    pub(super) model: &'a Model,
    pub(super) around: &'a Around,
    pub(super) timeline: &'a [Labelled<Doing>],
}

impl Cutter<'_> {
    pub(super) fn device(&self, device: &DeviceWork, window: Interval) -> DeviceIdle {
        let gaps = device.busy.gaps(window);
        let mut found = DeviceIdle {
            device: device.id,
            window,
            idle: gaps.length(),
            gaps: Vec::with_capacity(gaps.parts().len()),
            pieces: Vec::new(),
        };
        let mut work = device.work.as_slice();
        for &gap in gaps.parts() {
            while work.first().is_some_and(|work| work.interval.begin < gap.end || work.interval.is_empty()) {
                work = &work[1..];
            }
            let next = work.first().map(|work| work.span);
            self.gap(gap, next, &mut found);
        }
        found
    }

    fn gap(&self, gap: Interval, next: Option<SpanId>, found: &mut DeviceIdle) {
        let spans = self.model.spans();
        let first = found.pieces.len();
        let pieces = &mut found.pieces;
        let call = next.and_then(|next| self.model.launch_calls().call(next));
        let operator = call.and_then(|call| self.around.operator.of(call));
        let python = call.and_then(|call| self.around.user_code.of(call).or(self.around.python.of(call)));
        let site = call.and_then(|call| self.around.site.of(call)).filter(|&site| {
            python.is_some_and(|python| site != python && spans.time(python) <= spans.time(site))
        });
        let mut push = |begin: Timestamp, end: Timestamp, cause: Cause, culprit: Option<SpanId>| {
            let interval = Interval::new(begin, end);
            if !interval.is_empty() {
                pieces.push(Piece { interval, cause, culprit });
            }
        };
        // What is left of the host's time has this cause.
        let (late, culprit) = match (next, call) {
            (Some(_), None) => (Cause::Unknown, None),
            _ => (Cause::HostLate, operator.or(call)),
        };
        let launch = match call {
            Some(call) => Interval::new(spans.time(call), spans.end(call)).within(gap),
            None => Interval::new(gap.end, gap.end),
        };
        // `within` leaves a launch that is over before the gap empty and at the gap's beginning.
        let (called, returned) = (launch.begin.min(gap.end), launch.end.clamp(gap.begin, gap.end));
        self.host(Interval::new(gap.begin, called), late, culprit, &mut push);
        let activity = self.model.host_activity();
        let copies = call.is_some_and(|call| activity.kind(call) == HostKind::Call(CallKind::Copy));
        if copies {
            push(called, returned, Cause::Copy, call);
        } else {
            push(called, returned, late, culprit);
        }
        push(returned, gap.end, Cause::Dispatch, next);
        let pieces = first..found.pieces.len();
        found.gaps.push(Gap { interval: gap, next, operator, python, site, pieces });
    }

    /// The part of a gap in which the host had not launched yet.
    fn host(
        &self,
        time: Interval,
        late: Cause,
        culprit: Option<SpanId>,
        push: &mut dyn FnMut(Timestamp, Timestamp, Cause, Option<SpanId>),
    ) {
        let first = self.timeline.partition_point(|piece| piece.interval.end <= time.begin);
        // A call that waits as the gap opens has kept the host from launching ahead, for as long as it has waited.
        let opened = self.timeline.get(first).filter(|piece| piece.interval.begin <= time.begin);
        let blocked = opened.map(|piece| (RANKS[usize::from(piece.label.rank)], piece.label.span));
        let blocked = blocked.filter(|&(cause, _)| matches!(cause, Cause::Synchronise | Cause::Copy));
        let mut owed =
            blocked.map_or(Duration::ZERO, |(_, span)| time.begin.since(self.model.spans().time(span)));
        let mut rest = |begin: Timestamp, end: Timestamp, push: &mut dyn FnMut(_, _, _, _)| {
            let mut begin = begin;
            if let Some((cause, span)) = blocked.filter(|_| begin < end) {
                let until = begin.plus(owed).min(end);
                push(begin, until, cause, Some(span));
                owed -= until.since(begin);
                begin = until;
            }
            push(begin, end, late, culprit);
        };
        let mut now = time.begin;
        for piece in &self.timeline[first..] {
            let part = piece.interval.within(time);
            if piece.interval.begin >= time.end {
                break;
            }
            rest(now, part.begin, push);
            push(part.begin, part.end, RANKS[usize::from(piece.label.rank)], Some(piece.label.span));
            now = part.end;
        }
        rest(now, time.end, push);
    }
}
