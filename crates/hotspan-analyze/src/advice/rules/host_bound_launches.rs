//! `host-bound-launches`: the device waits for the host to launch work.

use hotspan_store::{Duration, SpanId, Timestamp};

use crate::advice::context::Context;
use crate::advice::device::{device_spans, idle};
use crate::intervals::{Interval, Intervals};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "host-bound-launches",
    title: "The device waits for the host to launch work",
    finds: "Idle time of the device that ends with work which the host launched only after the device had run dry, outside of data loading.",
    costs: "Python and torch need several microseconds for each kernel; when kernels are shorter than that, the device waits for each.",
    fix: "`torch.compile(model, mode=\"reduce-overhead\")` or CUDA graphs; a larger batch; fewer hooks and less Python in the step.",
    measured: "Gaps of at most 5 ms in which no device works, whose next work was launched after the gap began, without the time in DataLoaders; \
        reported when all gaps make 15 % of the time, and 50 or more of this kind make 10 % of it and 70 % of what data loading does not explain. \
        The gain is their time.",
    needs: &[Need::Operators, Need::Device],
    check,
};

/// Longer gaps have other reasons than the cost of a launch.
const LONGEST: Duration = Duration(5_000_000);
const FEWEST: u64 = 50;

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    let idle = idle(context);
    if context.percent(idle.length()) < 15.0 {
        return None;
    }
    let loading: Intervals = context.model.nesting().order().iter().copied().filter_map(|span| {
        let loads = context.model.span_name(span).starts_with("enumerate(Data") && context.model.role(span).is_host();
        loads.then(|| Interval::new(spans.time(span), spans.end(span)))
    }).collect();
    let calls = context.model.launch_calls();
    let mut work: Vec<(Timestamp, SpanId)> = device_spans(context).map(|(span, _)| (spans.time(span), span)).collect();
    work.sort_unstable();
    let mut tally = Tally::default();
    let unexplained = idle.subtract(&loading);
    for &Interval { begin, end } in unexplained.parts() {
        let next = work.get(work.partition_point(|&(time, _)| time < end));
        let Some(call) = next.and_then(|&(_, span)| calls.call(span)) else { continue };
        if spans.time(call) > begin && end.since(begin) <= LONGEST {
            let owner = context.around(call).filter(|&outer| context.is_call(outer)).last();
            let label = owner.map_or("launches outside of operators", |owner| context.name(owner));
            tally.add(context, &format!("before {label}"), owner.unwrap_or(call), end.since(begin));
        }
    }
    let (time, count) = (tally.time(), tally.count());
    if count < FEWEST || time.0 as f64 <= unexplained.length().0 as f64 * 0.7 || context.percent(time) < 10.0 {
        return None;
    }
    Some(Finding {
        message: format!("the device waits for launches {count} times, {:.0} % of {}", context.percent(time), context.basis()),
        fix: "`torch.compile(mode=\"reduce-overhead\")`, CUDA graphs, or a larger batch".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "idle time of the device that ends with a late launch"),
        confidence: Confidence::Medium,
    })
}
