//! `pageable-copies`: copies between device and ordinary memory.

use crate::advice::context::Context;
use crate::advice::device::{device_spans, without_kernels};
use crate::model::device_work::WorkKind;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "pageable-copies",
    title: "Copies to or from the device use pageable memory",
    finds: "Transfers named `Memcpy HtoD (Pageable -> Device)` or the other way round, in the steps.",
    costs: "The driver first copies pageable memory into a buffer of its own, so the transfer is slower, and the host waits for it: it cannot \
        overlap with computing.",
    fix: "`DataLoader(…, pin_memory=True)` and `batch.to(device, non_blocking=True)`; `tensor.pin_memory()` for other tensors.",
    measured: "Such transfers of 64 KiB or more, with the time of the calls that started them; reported from 1 % of the time on, the transfer or the call, \
        whichever took longer. The gain is that time, and not more than the time in which no kernel runs.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let trace = context.model;
    let (calls, size) = (trace.launch_calls(), trace.copy_bytes());
    let mut tally = Tally::default();
    for (span, _) in device_spans(context).filter(|&(_, work)| work == WorkKind::Copy) {
        let name = trace.span_name(span);
        // A file that does not tell sizes is judged by time alone.
        let is_small = size.of(span).is_some_and(|bytes| bytes < 65_536);
        if name.contains("Pageable") && !is_small {
            let call = calls.call(span);
            let time = call.map_or(context.time(span), |call| context.time(call).max(context.time(span)));
            tally.add(context, name, call.unwrap_or(span), time);
        }
    }
    let percent = context.percent(tally.time());
    if percent < 1.0 {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{count} copies from or to pageable memory take {percent:.0} % of {}", context.basis()),
        fix: "`pin_memory=True` in the DataLoader, and `.to(device, non_blocking=True)`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time.min(without_kernels(context)), "the time of the copies or of the calls that wait for them, and not more than the device is without work"),
        confidence: Confidence::High,
    })
}
