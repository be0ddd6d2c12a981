//! `device-sync`: the host waits for the device inside the step.

use hotspan_store::{Duration, SpanId};

use crate::advice::context::{Context, part};
use crate::advice::device::{device_spans, runtime_calls, without_kernels};
use crate::model::device_work::WorkKind;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "device-sync",
    title: "The host waits for the device in the step",
    finds: "Calls that wait (`cudaDeviceSynchronize`, `cudaStreamSynchronize`, `cudaEventSynchronize`, `cudaMemcpy`), by the operator that makes \
        them: `aten::nonzero`, indexing with masks, `aten::unique`, `.cpu()`; and copies to the CPU whose call takes much longer than the copy. Reads of single numbers are `scalar-read`'s.",
    costs: "While the host waits it launches nothing. When the device is done it stands idle until new work arrives.",
    fix: "Remove `torch.cuda.synchronize()`; `torch.where(mask, a, b)` instead of `a[mask]`; `non_blocking=True` copies; shapes that do not depend \
        on the data.",
    measured: "Time in such calls (of copies: beyond their own time, when that is 50 µs or more), without those inside `aten::_local_scalar_dense` and without the profiler's own after the last operator; \
        reported from 2 % of the time on. The gain is half of it: some of the waiting would move elsewhere; and not more than the time in which no kernel runs.",
    needs: &[Need::Device],
    check,
};

/// A copy to the CPU that takes this long beyond its own time has waited.
const PATIENCE: Duration = Duration(50_000);

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    let last_call = context.calls().map(|span| spans.time(span)).max();
    let mut tally = Tally::default();
    let mut note = |call: SpanId, what: &str, time: Duration| {
        let around: Vec<SpanId> = context.around(call).filter(|&outer| context.is_call(outer)).collect();
        if !around.iter().any(|&outer| context.name(outer) == "aten::_local_scalar_dense") {
            let label = around.last().map_or_else(|| what.to_owned(), |&outer| format!("{what} in {}", context.name(outer)));
            tally.add(context, &label, call, time);
        }
    };
    for call in runtime_calls(context).filter(|&call| Some(spans.time(call)) <= last_call) {
        let name = context.model.span_name(call);
        if name.contains("Synchronize") || matches!(name, "cudaMemcpy" | "hipMemcpy") {
            note(call, name, context.time(call));
        }
    }
    // A copy into pageable memory returns when it is done, whatever its call is named.
    let calls = context.model.launch_calls();
    for (copy, _) in device_spans(context).filter(|&(_, work)| work == WorkKind::Copy) {
        let Some(call) = calls.call(copy).filter(|_| context.model.span_name(copy).contains("DtoH")) else { continue };
        let waited = context.time(call) - context.time(copy);
        if context.model.span_name(call).ends_with("MemcpyAsync") && waited > PATIENCE {
            note(call, context.model.span_name(copy), waited);
        }
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
        gain: context.gain(part(time, 0.5).min(without_kernels(context)), "half of the time in calls that wait, and not more than the device is without work"),
        confidence: Confidence::Medium,
    })
}
