//! `for-loop-optimizer`: the optimizer updates parameter by parameter.

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Duration, SpanId, Timestamp};

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "for-loop-optimizer",
    title: "The optimizer updates one parameter at a time",
    finds: "`Optimizer.step` ranges with dozens of element-wise operators of several kinds and no `aten::_foreach_…` or `aten::_fused_…` among them.",
    costs: "Several small operators (and on a GPU several launches) for each parameter tensor of the model, each a pass over memory of its own.",
    fix: "`fused=True` for Adam, AdamW, SGD and Adagrad: one pass over each parameter. On a GPU `foreach=True` for the others; on a CPU \
        `foreach=True` makes the same passes, with more memory, and is often slower than the loop.",
    measured: "Steps of optimizers with at least 24 operators of two kinds or more, none of them grouped; reported from 3 % of the time on. On a CPU only \
        optimizers that have a fused version. What a closure computes (`optimizer.step(closure)`: everything up to the end of its last backward pass) does not count. The gain is \
        half of the rest of these ranges on a GPU, and a quarter on a CPU.",
    needs: &[Need::Operators],
    check,
};

/// Optimizers with a fused version for CPUs.
const FUSED: [&str; 4] = ["Adam.step", "AdamW.step", "SGD.step", "Adagrad.step"];

/// One step of an optimizer, without its closure.
#[derive(Default)]
struct Update<'a> {
    begin: Option<Timestamp>,
    count: u64,
    kinds: HashSet<&'a str>,
    is_grouped: bool,
}

fn check(context: &Context<'_>) -> Option<Finding> {
    let (model, spans) = (context.model, context.model.spans());
    let optimizer = context.inside("Optimizer.step#");
    // A closure ends with its backward pass; gradients are also forgotten in it.
    let mut closures: HashMap<SpanId, Timestamp> = HashMap::new();
    for &span in model.nesting().order() {
        let name = model.span_name(span);
        if (name.starts_with("autograd::engine::") || name.starts_with("Optimizer.zero_grad#") || name.contains("AccumulateGrad"))
            && let Some(step) = optimizer.of(span)
        {
            let end = closures.entry(step).or_insert(spans.time(step));
            *end = (*end).max(spans.end(span));
        }
    }
    let mut updates: HashMap<SpanId, Update<'_>> = HashMap::new();
    for span in context.outermost_calls() {
        let Some(step) = optimizer.of(span).filter(|step| closures.get(step).is_none_or(|&end| spans.time(span) >= end)) else { continue };
        let name = context.name(span);
        let update = updates.entry(step).or_default();
        update.begin.get_or_insert_with(|| closures.get(&step).copied().unwrap_or(spans.time(step)));
        update.is_grouped |= name.starts_with("aten::_foreach") || name.starts_with("aten::_fused");
        update.count += 1;
        update.kinds.insert(name);
    }
    let has_device = context.has_device();
    let has_fused = |step: SpanId| FUSED.iter().any(|name| model.span_name(step).ends_with(&format!("#{name}")));
    let mut steps: Vec<(SpanId, Update<'_>)> = updates.into_iter().collect();
    steps.retain(|(step, update)| {
        update.count >= 24 && update.kinds.len() >= 2 && !update.is_grouped && (has_device || has_fused(*step))
    });
    steps.sort_unstable_by_key(|&(step, _)| step);
    let mut tally = Tally::default();
    for (step, update) in &steps {
        let begin = update.begin.unwrap_or(spans.time(*step));
        let first = spans.end(*step).since(begin).max(Duration::ZERO);
        tally.add(context, context.name(*step), *step, first);
    }
    let percent = context.percent(tally.time());
    if percent < 3.0 {
        return None;
    }
    let most = steps.iter().map(|(_, update)| update.count).max().unwrap_or(0);
    let time = tally.time();
    let all_fused = steps.iter().all(|&(step, _)| has_fused(step));
    let (share, how) = if has_device {
        (0.5, "half of the time of the optimizer's updates")
    } else {
        (0.25, "a quarter of the time of the optimizer's updates")
    };
    Some(Finding {
        message: format!("{percent:.0} % of {} is an optimizer that calls {most} operators, one parameter at a time", context.basis()),
        fix: if all_fused { "construct the optimizer with `fused=True`" } else { "construct the optimizer with `fused=True` where it has that, else with `foreach=True`" }.to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, share), how),
        confidence: Confidence::Medium,
    })
}
