//! `tiny-kernels`: kernels shorter than the calls that launch them.

use hotspan_store::{Category, Duration};

use crate::advice::context::{Context, part};
use crate::advice::device::{device_spans, without_kernels};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "tiny-kernels",
    title: "Most kernels are very short",
    finds: "Half of the kernels or more shorter than 10 microseconds, launched by calls that together take more than half as long as all kernels.",
    costs: "Launching costs more than computing, on the host and in the gaps between kernels.",
    fix: "`torch.compile` fuses element-wise operators; fused optimizers; larger batches; operators on whole tensors instead of loops.",
    measured: "Kernels in the steps, 200 at least, and the calls that launched them. The gain is half of the time of the launching calls, and not more than the time in which no kernel runs.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let calls = context.model.launch_calls();
    let (mut all, mut short) = (0_u64, 0_u64);
    let (mut computing, mut launching) = (Duration::ZERO, Duration::ZERO);
    let mut tally = Tally::default();
    for (span, _) in device_spans(context).filter(|&(span, _)| context.model.span_category(span) == Category::Kernel) {
        all += 1;
        computing += context.time(span);
        let call = calls.call(span);
        let cost = call.map_or(Duration::ZERO, |call| context.time(call));
        launching += cost;
        if context.time(span) < Duration(10_000) {
            short += 1;
            let owner = context.model.launches().owner(span);
            let label = owner.map_or_else(|| context.model.span_name(span), |owner| context.name(owner));
            tally.add(context, &format!("short kernels of {label}"), owner.unwrap_or(span), context.time(span));
        }
    }
    if all < 200 || short * 2 < all || launching + launching <= computing || context.percent(launching) < 2.0 {
        return None;
    }
    Some(Finding {
        message: format!("{short} of {all} kernels take less than 10 µs; launching takes {launching}, computing {computing}"),
        fix: "fuse them: `torch.compile`, fused optimizers, larger batches".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(launching, 0.5).min(without_kernels(context)), "half of the time of the launching calls, and not more than the device is without work"),
        confidence: Confidence::Medium,
    })
}
