//! `zero-grad-fills`: gradients are filled with zeros instead of being dropped.

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "zero-grad-fills",
    title: "Gradients are filled with zeros instead of dropped",
    finds: "`aten::zero_` or `aten::_foreach_zero_` inside an `Optimizer.zero_grad` range.",
    costs: "A pass over all gradients to write zeros, and the next backward pass then adds to them instead of just writing. The memory stays \
        taken between the steps.",
    fix: "`optimizer.zero_grad()`: `set_to_none=True` is torch's default since 2.0.",
    measured: "Operators that write zeros in these ranges; reported from 1 % of the time on. The gain is their time; \
        the addition in the backward pass costs about the same again.",
    needs: &[Need::Operators],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let zero_grad = context.inside("Optimizer.zero_grad#");
    let mut tally = Tally::default();
    for span in context.outermost_calls() {
        if zero_grad.of(span).is_some() && matches!(context.name(span), "aten::zero_" | "aten::_foreach_zero_" | "aten::fill_") {
            tally.add(context, context.name(span), span, context.time(span));
        }
    }
    let percent = context.percent(tally.time());
    if percent < 1.0 {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("`zero_grad` fills gradients with zeros ({count} fills, {percent:.1} % of {})", context.basis()),
        fix: "call `optimizer.zero_grad(set_to_none=True)`, the default since torch 2.0".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time of the fills"),
        confidence: Confidence::High,
    })
}
