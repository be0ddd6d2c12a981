//! `for-loop-optimizer`: the optimizer updates parameter by parameter.

use hashbrown::HashSet;
use hotspan_store::SpanId;

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "for-loop-optimizer",
    title: "The optimizer updates one parameter at a time",
    finds: "`Optimizer.step` ranges with dozens of element-wise operators and no `aten::_foreach_…` or `aten::_fused_…` among them.",
    costs: "Several small operators (and on a GPU several launches) for each parameter tensor of the model, each a pass over memory of its own.",
    fix: "`torch.optim.AdamW(…, fused=True)`, or `foreach=True` where the optimizer has no fused version. torch chooses `foreach` by itself on \
        GPUs only.",
    measured: "Steps of optimizers with at least 24 operators, none of them grouped; reported from 3 % of the time on. The gain is \
        half of the time of these ranges.",
    needs: &[Need::Operators],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let optimizer = context.inside("Optimizer.step#");
    let (mut loops, mut grouped) = (Vec::<(SpanId, u64)>::new(), HashSet::new());
    for span in context.outermost_calls() {
        let Some(step) = optimizer.of(span) else { continue };
        let name = context.name(span);
        if name.starts_with("aten::_foreach") || name.starts_with("aten::_fused") {
            grouped.insert(step);
        }
        match loops.last_mut().filter(|(last, _)| *last == step) {
            Some((_, count)) => *count += 1,
            None => loops.push((step, 1)),
        }
    }
    let mut tally = Tally::default();
    let mut most = 0;
    for &(step, count) in loops.iter().filter(|(step, count)| *count >= 24 && !grouped.contains(step)) {
        tally.add(context, context.name(step), step, context.time(step));
        most = most.max(count);
    }
    let percent = context.percent(tally.time());
    if percent < 3.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("{percent:.0} % of {} is an optimizer that calls {most} operators, one parameter at a time", context.basis()),
        fix: "construct the optimizer with `fused=True`, or with `foreach=True`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.5), "half of the time of the optimizer's steps"),
        confidence: Confidence::Medium,
    })
}
