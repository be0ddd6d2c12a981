//! `scalar-read`: single numbers read out of tensors, again and again.

use crate::advice::context::Context;
use crate::advice::device::without_kernels;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "scalar-read",
    title: "Scalars are read from tensors in the step",
    finds: "`aten::_local_scalar_dense`: what `.item()`, `float(tensor)`, `if tensor:`, `tensor.tolist()` and formatted printing come down to.",
    costs: "On a GPU each one waits until everything queued so far is done, and the device then stands idle until new work arrives. On a \
        CPU it is a trip from torch to Python for one number.",
    fix: "Keep the number a tensor (`total += loss.detach()`) and read it every hundredth step; compare with `torch.where` instead of `if`; \
        read many at once with `.tolist()`.",
    measured: "Outermost calls with such a read, without those of optimizers. With a device: reported from 1 % of the time on. Without: from 32 \
        reads a step (200 in all where there are no steps) and 1 % on. The gain is the time of the reads, and not more than the device is without work.",
    needs: &[Need::Operators],
    check,
};

/// Reads of a program without steps.
const FEWEST_IN_ALL: u64 = 200;

fn check(context: &Context<'_>) -> Option<Finding> {
    let optimizer = context.inside("Optimizer.");
    let mut tally = Tally::default();
    for span in context.calls().filter(|&span| context.name(span) == "aten::_local_scalar_dense") {
        if optimizer.of(span).is_some() {
            continue;
        }
        let outermost = context.around(span).filter(|&outer| context.is_call(outer)).last().unwrap_or(span);
        tally.add(context, context.name(outermost), outermost, context.time(outermost));
    }
    let (count, percent) = (tally.count(), context.percent(tally.time()));
    let has_device = Need::Device.is_met(context);
    let fewest = match (has_device, context.steps.is_empty()) {
        (true, _) => 1,
        (false, true) => FEWEST_IN_ALL,
        (false, false) => 32 * context.step_count(),
    };
    if count < fewest || percent < 1.0 {
        return None;
    }
    // While the device computes, waiting for it costs nothing.
    let time = if has_device { tally.time().min(without_kernels(context)) } else { tally.time() };
    let effect = if has_device { "each waits for the device" } else { "each is a trip to Python for one number" };
    Some(Finding {
        message: format!("{count} single numbers are read out of tensors{}; {effect}", context.per_step(count)),
        fix: "keep the value a tensor and read it rarely, or read many at once with `.tolist()`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time of the reads, waiting included"),
        confidence: if has_device { Confidence::High } else { Confidence::Medium },
    })
}
