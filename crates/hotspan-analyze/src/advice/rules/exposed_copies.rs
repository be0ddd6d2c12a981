//! `exposed-copies`: transfers that no kernel hides.

use crate::advice::context::Context;
use crate::advice::device::{busy, device_spans};
use crate::model::device_work::WorkKind;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "exposed-copies",
    title: "The device copies while nothing computes",
    finds: "Time in which a copy or fill runs and no kernel does.",
    costs: "Copies have engines of their own and could run beside kernels.",
    fix: "Copy the next batch on a side stream while this one is computed (`torch.cuda.Stream`, `non_blocking=True`, pinned memory); \
        copy less: keep data on the device, send uint8 and convert there.",
    measured: "The time of copies and fills minus that of kernels and collectives; reported from 3 % of the time on. The gain is that time.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let exposed = busy(context, |work| work == WorkKind::Copy).subtract(&busy(context, |work| work != WorkKind::Copy));
    let percent = context.percent(exposed.length());
    if percent < 3.0 {
        return None;
    }
    let mut tally = Tally::default();
    for (span, _) in device_spans(context).filter(|&(_, work)| work == WorkKind::Copy) {
        tally.add(context, context.model.span_name(span), context.model.launches().owner(span).unwrap_or(span), context.time(span));
    }
    Some(Finding {
        message: format!("the device only copies for {percent:.0} % of {}", context.basis()),
        fix: "copy on a side stream from pinned memory, or copy less".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(exposed.length(), "copies and fills while no kernel runs"),
        confidence: Confidence::High,
    })
}
