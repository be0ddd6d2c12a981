//! `contiguous-copies`: tensors copied to lie in order.

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "contiguous-copies",
    title: "Tensors are copied to make them contiguous",
    finds: "`aten::contiguous` and `aten::reshape` that had to copy (`aten::clone` inside them).",
    costs: "The whole tensor is read in jumps and written again, and computes nothing. It follows a `transpose` or `permute`, or mixes \
        `channels_last` with the default order.",
    fix: "Put the transposition where it is free (into the product, or before the loop); keep one memory format throughout; \
        `.view` where the shape allows it.",
    measured: "Outermost `contiguous` and `reshape` calls that cloned; reported from 10 % of the time on, when it happens \
        again and again: in every second step, or three times where there are none. The gain is that time.",
    needs: &[Need::Operators],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let mut tally = Tally::default();
    let loading = context.inside("enumerate(Data");
    let reorders = |name: &str| matches!(name, "aten::contiguous" | "aten::reshape");
    for span in context.calls().filter(|&span| reorders(context.name(span)) && loading.of(span).is_none()) {
        let clones = context.children(span).iter().any(|&child| context.name(child) == "aten::clone");
        let counted = context.around(span).any(|outer| reorders(context.name(outer)));
        if clones && !counted {
            tally.add(context, context.name(span), span, context.time(span));
        }
    }
    let percent = context.percent(tally.time());
    if percent < 10.0 || !context.is_repeated(tally.count()) {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{percent:.0} % of {} goes to {count} copies that only reorder memory", context.basis()),
        fix: "avoid the `transpose`/`permute` before it, or do it once outside the loop; keep one memory format".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time of the copies"),
        // Some layouts have to change: only the author can tell.
        confidence: Confidence::Low,
    })
}
