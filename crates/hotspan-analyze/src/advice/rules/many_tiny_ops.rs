//! `many-tiny-ops`: the time goes to calling operators, not to what they compute.

use hashbrown::HashMap;
use hotspan_store::{Duration, Timestamp, TrackId};

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "many-tiny-ops",
    title: "Very many very short operators",
    finds: "Hundreds of operators a step, most of them shorter than 20 microseconds, one right after the other.",
    costs: "Each operator costs some microseconds of Python, dispatch and allocation before it computes anything; and each writes its result to \
        memory for the next one to read.",
    fix: "`torch.compile(model)` fuses them; or work on larger tensors: batch what is in a loop, use fused functions (`torch.addcmul`, \
        `nn.functional` versions).",
    measured: "Calls that call no other: at least 300 a step (or 1,000 in all), 60 % of them under 20 µs, and 40 % of the time or more in those and in \
        the gaps after them, up to 50 µs each. Not for programs that were compiled, and not with a device: there `host-bound-launches` and `tiny-kernels` look. The gain is half of \
        that time.",
    needs: &[Need::Operators],
    check,
};

const SHORT: Duration = Duration(20_000);
/// What comes later than this after an operator has other reasons.
const LONGEST_GAP: Duration = Duration(50_000);

fn check(context: &Context<'_>) -> Option<Finding> {
    if Need::Device.is_met(context) {
        return None;
    }
    if context.model.strings().iter().any(|text| text.starts_with("Torch-Compiled Region") || text.contains("CompiledFxGraph")) {
        return None;
    }
    let loading = context.inside("enumerate(Data");
    let (mut tally, mut short, mut all) = (Tally::default(), 0_u64, 0_u64);
    let mut gaps = Duration::ZERO;
    // Where the last call of each thread ended, when it was a short one.
    let mut ended: HashMap<TrackId, Timestamp> = HashMap::new();
    let spans = context.model.spans();
    for span in context.calls().filter(|&span| context.is_leaf(span) && loading.of(span).is_none()) {
        let time = context.time(span);
        all += 1;
        let gap = ended.remove(&spans.track(span)).map(|end| spans.time(span).since(end));
        gaps += gap.filter(|&gap| gap > Duration::ZERO && gap <= LONGEST_GAP).unwrap_or(Duration::ZERO);
        if time < SHORT {
            short += 1;
            tally.add(context, context.name(span), span, time);
            ended.insert(spans.track(span), spans.end(span));
        }
    }
    let many = all >= 1000 || all / context.step_count().max(1) >= 300;
    let spent = tally.time() + gaps;
    if !many || short * 10 < all * 6 || context.percent(spent) < 40.0 {
        return None;
    }
    Some(Finding {
        message: format!("{short} of {all} operators take less than 20 µs: {:.0} % of {} passes in and around them", context.percent(spent), context.basis()),
        fix: "try `torch.compile`, or replace loops over small tensors by operators on large ones".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(spent, 0.5), "half of the time in short operators and in the gaps after them"),
        confidence: Confidence::Low,
    })
}
