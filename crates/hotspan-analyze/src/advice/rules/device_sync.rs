//! `device-sync`: the host waits for the device inside the step.

use crate::advice::context::Context;
use crate::advice::device::runtime_calls;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "device-sync",
    title: "The host waits for the device in the step",
    finds: "Calls that wait (`cudaDeviceSynchronize`, `cudaStreamSynchronize`, `cudaEventSynchronize`, `cudaMemcpy`), by the operator that makes \
        them: `aten::nonzero`, indexing with masks, `aten::unique`, `.cpu()`. Reads of single numbers are `scalar-read`'s.",
    costs: "While the host waits it launches nothing. When the device is done it stands idle until new work arrives.",
    fix: "Remove `torch.cuda.synchronize()`; `torch.where(mask, a, b)` instead of `a[mask]`; `non_blocking=True` copies; shapes that do not depend \
        on the data.",
    measured: "Time in such calls, without those inside `aten::_local_scalar_dense` and without the profiler's own after the last operator; \
        reported from 2 % of the time on. The gain is half of it: some of the waiting would move elsewhere.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.trace.spans();
    let last_call = context.calls().map(|span| spans.time(span)).max();
    let mut tally = Tally::default();
    for call in runtime_calls(context) {
        let name = context.trace.span_name(call);
        let waits = name.contains("Synchronize") || matches!(name, "cudaMemcpy" | "hipMemcpy");
        if !waits || Some(spans.time(call)) > last_call {
            continue;
        }
        let around: Vec<_> = context.around(call).filter(|&outer| context.is_call(outer)).collect();
        if around.iter().any(|&outer| context.name(outer) == "aten::_local_scalar_dense") {
            continue;
        }
        let label = around.last().map_or_else(|| name.to_owned(), |&outer| format!("{name} in {}", context.name(outer)));
        tally.add(context, &label, call, context.time(call));
    }
    let percent = context.percent(tally.time());
    if percent < 2.0 {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("the host waits for the device {count} times, {percent:.0} % of {}", context.basis()),
        fix: "remove explicit synchronisation, and operators whose result size depends on the data".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(crate::advice::context::part(time, 0.5), "half of the time in calls that wait"),
        confidence: Confidence::Medium,
    })
}
