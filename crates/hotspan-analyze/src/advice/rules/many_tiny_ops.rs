//! `many-tiny-ops`: the time goes to calling operators, not to what they compute.

use hotspan_store::Duration;

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "many-tiny-ops",
    title: "Very many very short operators",
    finds: "Hundreds of operators a step, most of them shorter than 20 microseconds, and little time in longer ones.",
    costs: "Each operator costs some microseconds of Python, dispatch and allocation before it computes anything; and each writes its result to \
        memory for the next one to read.",
    fix: "`torch.compile(model)` fuses them; or work on larger tensors: batch what is in a loop, use fused functions (`torch.addcmul`, \
        `nn.functional` versions).",
    measured: "Calls that call no other: at least 300 a step (or 1,000 in all), 60 % of them under 20 us, and 40 % of the time or more outside of the longer \
        ones. Not for programs that were compiled, and not with a device: there `host-bound-launches` and `tiny-kernels` look. The gain is half of \
        the time outside of the longer ones.",
    needs: &[Need::Operators],
    check,
};

const SHORT: Duration = Duration(20_000);

fn check(context: &Context<'_>) -> Option<Finding> {
    if Need::Device.is_met(context) {
        return None;
    }
    if context.trace.strings().iter().any(|text| text.starts_with("Torch-Compiled Region") || text.contains("CompiledFxGraph")) {
        return None;
    }
    let loading = context.inside("enumerate(Data");
    let (mut tally, mut short, mut all) = (Tally::default(), 0_u64, 0_u64);
    let mut computing = Duration::ZERO;
    for span in context.calls().filter(|&span| context.is_leaf(span) && loading.of(span).is_none()) {
        let time = context.time(span);
        all += 1;
        if time < SHORT {
            short += 1;
            tally.add(context, context.name(span), span, time);
        } else {
            computing += time;
        }
    }
    let many = all >= 1000 || all / context.step_count().max(1) >= 300;
    let outside = context.whole - computing - loading_time(context);
    if !many || short * 10 < all * 6 || context.percent(outside) < 40.0 {
        return None;
    }
    Some(Finding {
        message: format!("{short} of {all} operators take less than 20 us: {:.0} % of {} passes in and around them", context.percent(outside), context.basis()),
        fix: "try `torch.compile`, or replace loops over small tensors by operators on large ones".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(outside, 0.5), "half of the time outside of longer operators"),
        confidence: Confidence::Low,
    })
}

fn loading_time(context: &Context<'_>) -> Duration {
    let loads = context.nesting.order().iter().filter(|&&span| {
        context.trace.span_name(span).starts_with("enumerate(Data") && context.is_in_range(context.trace.spans().time(span))
    });
    loads.map(|&span| context.time(span)).sum()
}
