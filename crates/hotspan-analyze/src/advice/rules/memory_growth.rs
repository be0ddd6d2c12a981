//! `memory-growth`: each step leaves more memory behind.

use hotspan_store::{Bytes, Duration};

use crate::advice::context::Context;
use crate::advice::{Confidence, Evidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "memory-growth",
    title: "Memory grows from step to step",
    finds: "Tensor memory that is higher at the end of every step than at the end of the one before.",
    costs: "The program runs out of memory, sooner or later; on the way caches and allocators get slower.",
    fix: "Look for tensors kept across steps, most often with their graph: `total += loss` or `losses.append(loss)` instead of \
        `loss.item()` or `loss.detach()`; hooks and caches that collect; `retain_graph=True`.",
    measured: "Bytes held at the end of each step, the first one left out; reported when five steps or more rise without exception, each by at \
        least a third of the average rise, and by 64 KiB together. It has no gain in time.",
    needs: &[Need::Steps, Need::Memory],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    for timeline in context.model.memory_timeline() {
        let curve: Vec<_> = timeline.held().collect();
        let at_end = |step: &crate::model::steps::Step| {
            let end = step.begin.plus(step.duration);
            let after = curve.partition_point(|&(time, _)| time <= end);
            after.checked_sub(1).map_or(0, |index| curve[index].1.0)
        };
        let held: Vec<i64> = context.steps.iter().skip(1).map(at_end).collect();
        let rises: Vec<i64> = held.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        let total = rises.iter().fold(0_i64, |sum, &rise| sum.saturating_add(rise));
        let Some(average) = total.checked_div(rises.len() as i64) else { continue };
        if rises.len() < 4 || total < 65_536 || rises.iter().any(|&rise| rise <= 0 || rise < average / 3) {
            continue;
        }
        let mut evidence = Vec::new();
        for (step, &bytes) in context.steps.iter().skip(1).zip(&held) {
            evidence.push(Evidence {
                what: format!("held at the end of step {}", step.number),
                count: 1,
                time: Duration::ZERO,
                bytes: Some(Bytes(bytes)),
                at: Some(step.begin.plus(step.duration)),
                span: None,
                gap: None,
                source: None,
            });
        }
        evidence.truncate(5);
        for holder in timeline.holders.iter().take(3) {
            evidence.push(Evidence {
                what: format!("at the peak, held by {}", if holder.operator.is_empty() { "no operator" } else { &holder.operator }),
                count: holder.blocks,
                time: Duration::ZERO,
                bytes: Some(holder.bytes),
                at: Some(timeline.peak_time),
                span: None,
                gap: None,
                source: None,
            });
        }
        let device = if timeline.device.kind == 0 { "the CPU" } else { "the device" };
        return Some(Finding {
            message: format!("tensor memory on {device} grows by {} with every step, over {} steps", Bytes(average), held.len()),
            fix: "unless these tensors are meant to be kept: `loss.detach()` or `loss.item()` instead of `loss`, no tensors with their graph across steps".to_owned(),
            evidence,
            gain: None,
            confidence: Confidence::High,
        });
    }
    None
}
