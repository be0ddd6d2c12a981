//! `warm-up-in-window`: the first step is not like the others.

use hotspan_store::Duration;

use crate::advice::context::Context;
use crate::model::steps::StepSource;
use crate::advice::{Confidence, Evidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "warm-up-in-window",
    title: "The recording contains the warm-up",
    finds: "A first step that takes more than twice as long as the middle one of the others, and longer than any of them by more than they differ among themselves.",
    costs: "Nothing, but averages are wrong: the first step loads libraries and kernels, tunes convolutions, compiles, fills allocator \
        caches and creates optimizer state, once. hotspan's other rules leave such a step out.",
    fix: "Record later: `schedule=schedule(wait=1, warmup=1, active=3)` and `prof.step()` after each step.",
    measured: "The first step beside the median of the rest, with three steps or more; reported when it is longer by 2 ms at least. It has no gain in \
        time: the program is as fast as it was, the numbers about it are better.",
    needs: &[Need::Steps],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let first = context.steps.first().filter(|_| context.warm_up > 0 && context.step_source == StepSource::Marks)?;
    let mut rest: Vec<Duration> = context.steps[1..].iter().map(|step| step.duration).collect();
    rest.sort_unstable();
    let middle = rest[rest.len() / 2];
    let row = |what: String, step: &crate::model::steps::Step| Evidence {
        what,
        count: 1,
        time: step.duration,
        bytes: None,
        at: Some(step.begin),
        span: None,
        gap: None,
        source: None,
    };
    if first.duration - middle < Duration(2_000_000) {
        return None;
    }
    let ratio = first.duration.0 as f64 / middle.0.max(1) as f64;
    Some(Finding {
        message: format!("step {} takes {ratio:.1} times as long as the others ({} beside {middle})", first.number, first.duration),
        fix: "leave warm-up steps out of the recording: `schedule(wait=1, warmup=1, active=3)`".to_owned(),
        evidence: context.steps.iter().take(4).map(|step| row(format!("ProfilerStep#{}", step.number), step)).collect(),
        gain: None,
        confidence: Confidence::High,
    })
}
