//! `autograd-in-evaluation`: the graph for a backward pass is built, and no backward pass comes.

use hashbrown::HashMap;
use hotspan_store::{Duration, TrackId};

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "autograd-in-evaluation",
    title: "Gradients are prepared that nobody asks for",
    finds: "Operators that create autograd nodes (their `Sequence number` rises) in a recording without any backward pass or optimizer.",
    costs: "Each node is an allocation, and keeps the inputs of its operator alive: evaluation needs a multiple of the memory, \
        and fresh memory costs time.",
    fix: "Evaluate under `with torch.inference_mode():` (or `torch.no_grad()`), and call `model.eval()`.",
    measured: "How far the sequence numbers of each thread rise; reported from 10 nodes on. The gain is one microsecond per node, \
        what a node costs at least; the saved memory comes on top.",
    needs: &[Need::Operators],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let trace = context.model;
    let trains = |name: &str| {
        name.starts_with("autograd::engine::") || name.starts_with("Optimizer.step") || name.contains("AccumulateGrad")
    };
    if trace.spans().ids().any(|span| trains(trace.span_name(span))) {
        return None;
    }
    let sequence = trace.sequence();
    let mut last: HashMap<TrackId, i64> = HashMap::new();
    let mut tally = Tally::default();
    let mut before = HashMap::new();
    for span in context.calls() {
        let Some(number) = sequence.of(span) else { continue };
        let track = trace.spans().track(span);
        // The number rises after the call that made the node.
        if let Some(known) = last.insert(track, number)
            && number > known
            && let Some(&maker) = before.get(&track)
        {
            tally.add(context, context.name(maker), maker, Duration::ZERO);
        }
        before.insert(track, span);
    }
    let count = tally.count();
    if count < 10 {
        return None;
    }
    let time = Duration(i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(1000));
    Some(Finding {
        message: format!("{count} operators prepare gradients, and nothing in the recording uses them"),
        fix: "if this is evaluation, run it under `torch.inference_mode()`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "one microsecond per autograd node; memory comes on top"),
        confidence: Confidence::Medium,
    })
}
