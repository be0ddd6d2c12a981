//! `low-device-use`: the device stands idle half of the time.

use crate::advice::context::Context;
use crate::advice::device::{busy, device_count, idle};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "low-device-use",
    title: "The device stands idle most of the time",
    finds: "Steps in which no kernel, copy or collective runs for more than half of the time.",
    costs: "The most expensive part of the machine waits: for the host to launch work, for data, or for other ranks.",
    fix: "See which of the other rules explains it (`data-loading-bound`, `host-bound-launches`, `device-sync`, `scalar-read`). Otherwise a larger \
        batch gives the device more work per launch.",
    measured: "The time in which at least one stream works, beside the time of the steps; reported when it is under 50 %; of a whole program only where it has steps, for a server waits for requests. \
        The gain is the idle time beyond a tenth of the whole.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let use_percent = context.percent(busy(context, |_| true).length());
    let idle = idle(context);
    // A whole program without steps may be a server, or be read by a person: then the device waits for others.
    let may_rest = context.is_whole_program() && context.steps.is_empty();
    if use_percent >= 50.0 || device_count(context) == 0 || may_rest {
        return None;
    }
    let mut tally = Tally::default();
    for &gap in idle.parts() {
        let label = match gap.end.since(gap.begin).0 {
            0..10_000 => "idle for less than 10 µs",
            10_000..1_000_000 => "idle for 10 µs to 1 ms",
            _ => "idle for more than 1 ms",
        };
        tally.add_gap(label, gap);
    }
    let spare = crate::advice::context::part(context.whole, 0.1);
    Some(Finding {
        message: format!("the device works {use_percent:.0} % of {}", context.basis()),
        fix: "see the other findings for what it waits for; otherwise use a larger batch".to_owned(),
        gain: context.gain(idle.length() - spare, "the idle time beyond a tenth of the whole"),
        evidence: tally.evidence(context),
        confidence: Confidence::Medium,
    })
}
