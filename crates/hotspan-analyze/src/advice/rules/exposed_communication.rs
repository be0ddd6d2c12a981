//! `exposed-communication`: collectives that no computation hides.

use crate::advice::context::Context;
use crate::advice::device::{busy, device_spans};
use crate::model::device_work::WorkKind;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "exposed-communication",
    title: "The device communicates while nothing computes",
    finds: "Time in which a collective (NCCL, RCCL) runs and no other kernel does.",
    costs: "The device waits for the network, or for ranks that come late: a collective ends when the last rank has joined.",
    fix: "Overlap: `DistributedDataParallel` with fitting `bucket_cap_mb`, FSDP's prefetch; communicate less: gradient accumulation with \
        `no_sync()`, compression. Where one rank is always last, balance its work.",
    measured: "The time of collectives minus that of other kernels; reported from 10 % of the time on. The gain is that time: how much of it is \
        waiting for other ranks, one rank's trace cannot tell.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let exposed = busy(context, |work| work == WorkKind::Communication).subtract(&busy(context, |work| work == WorkKind::Compute));
    let percent = context.percent(exposed.length());
    if percent < 10.0 {
        return None;
    }
    let mut tally = Tally::default();
    for (span, _) in device_spans(context).filter(|&(_, work)| work == WorkKind::Communication) {
        tally.add(context, context.model.span_name(span), context.model.launches().owner(span).unwrap_or(span), context.time(span));
    }
    Some(Finding {
        message: format!("the device only communicates for {percent:.0} % of {}", context.basis()),
        fix: "overlap communication with computing, or communicate less; compare ranks to see who comes late".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(exposed.length(), "collectives while no other kernel runs"),
        confidence: Confidence::Medium,
    })
}
