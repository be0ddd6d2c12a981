//! `numpy-round-trip`: tensors that leave torch for NumPy inside a step, and come back.

use hotspan_store::{Duration, SpanId, Timestamp};

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::model::source::users_line;
use crate::advice::{Confidence, Finding, Need, Rule};
use crate::model::events::Role;

pub(super) const RULE: Rule = Rule {
    id: "numpy-round-trip",
    title: "Tensor data goes through NumPy inside a step",
    finds: "`tensor.cpu().numpy()`, work on the array (`np.argwhere`, `np.where` …), and `torch.from_numpy(…)` back, within one step or \
        marked range. With samples or Python stacks also which NumPy functions the time went to.",
    costs: "NumPy runs on one core of the CPU, whatever the tensor was on. On a GPU both ways are copies, and the first one waits for all \
        work that was queued. torch's operators do not show this time: it is between them.",
    fix: "Stay on the tensor: `torch.nonzero` for `np.argwhere`, `torch.where`, `torch.unique`, `torch.topk`; they run on the tensor's device.",
    measured: "From the call that `.numpy()` leaves in a trace (`aten::resolve_conj`, `aten::resolve_neg`) to the `aten::lift_fresh` of the \
        `from_numpy` that follows on the same thread in the same range: the time between operators, and the copies at both ends. Reported from \
        3 % on. The gain is that time: the tensor operator that replaces it costs little beside it.",
    needs: &[Need::Operators],
    check,
};

/// Operators that belong to leaving and returning, and that people use on the way.
const MOST_CALLS_BETWEEN: usize = 24;

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    let loading = context.inside("enumerate(DataLoader)");
    let optimizer = context.inside("Optimizer.");
    let mut by_thread: Vec<Vec<SpanId>> = vec![Vec::new(); context.model.tracks().len()];
    for span in context.outermost_calls() {
        if loading.of(span).is_none() && optimizer.of(span).is_none() {
            by_thread[spans.track(span).index()].push(span);
        }
    }
    let mut tally = Tally::default();
    let (mut trips, mut outside) = (0_u64, Duration::ZERO);
    for calls in &by_thread {
        let mut position = 0;
        while position + 1 < calls.len() {
            if !(context.name(calls[position]) == "aten::resolve_conj"
                && context.name(calls[position + 1]) == "aten::resolve_neg")
            {
                position += 1;
                continue;
            }
            let left = position + 1;
            let range = |span: SpanId| context.around(span).next();
            let window = &calls[left + 1..calls.len().min(left + 1 + MOST_CALLS_BETWEEN)];
            let back = window.iter().position(|&span| context.name(span) == "aten::lift_fresh");
            let Some(back) = back.map(|offset| left + 1 + offset) else {
                position = left + 1;
                continue;
            };
            if range(calls[back]) != range(calls[left]) && shared_range(context, calls[left], calls[back]).is_none() {
                position = left + 1;
                continue;
            }
            trips += 1;
            for pair in calls[left..=back].windows(2) {
                let (from, to) = (spans.end(pair[0]), spans.time(pair[1]));
                let gap = to.since(from);
                if gap.0 > 0 {
                    outside += gap;
                    note_gap(context, &mut tally, pair[0], from, to);
                }
            }
            for &copy in &copies_at_both_ends(context, calls, left, back) {
                tally.add(context, &format!("{} (copy)", context.name(copy)), copy, context.time(copy));
            }
            position = back + 1;
        }
    }
    let percent = context.percent(tally.time());
    if trips == 0 || percent < 3.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!(
            "{percent:.0} % of {} passes in {trips} round trips of tensors through NumPy, {outside} of it outside torch",
            context.basis()
        ),
        fix: "stay on the tensor: `torch.nonzero` instead of `np.argwhere`, `torch.where`, `torch.topk` …; no `.cpu().numpy()` and \
            `from_numpy` in the step"
            .to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time between `.numpy()` and `from_numpy`, and the copies at both ends"),
        confidence: Confidence::High,
    })
}

/// The nearest range or function around both.
fn shared_range(context: &Context<'_>, left: SpanId, right: SpanId) -> Option<SpanId> {
    let of_right: Vec<SpanId> = context.around(right).collect();
    context.around(left).find(|span| of_right.contains(span))
}

/// Says what the thread did between two calls, from samples or Python functions where there are any.
fn note_gap(context: &Context<'_>, tally: &mut Tally, before: SpanId, from: Timestamp, to: Timestamp) {
    let trace = context.model;
    let profile = trace.profile();
    let track = trace.spans().track(before);
    let mut sampled = false;
    for sample in context.model.sources().between(track, from, to) {
        let row = profile.samples.row(sample);
        let frames = profile.stacks.frames(row.stack).map(|frame| profile.frames.row(frame));
        let numpy = frames
            .filter(|frame| trace.str(frame.file).contains("numpy"))
            .last()
            .map_or("Python code", |frame| trace.str(frame.name));
        tally.add_time(&format!("{numpy} (samples)"), row.time, row.weight, users_line(trace, sample));
        sampled = true;
    }
    if sampled {
        return;
    }
    // Python functions that begin in the gap, whatever encloses them: the longest is the outermost of NumPy's.
    let spans = trace.spans();
    let begins_in_gap = |outer: SpanId| {
        let children = context.children(outer);
        let first = children.partition_point(|&child| spans.time(child) < from);
        children[first..].iter().copied().take_while(|&child| spans.time(child) < to)
    };
    let longest = context
        .around(before)
        .flat_map(begins_in_gap)
        .filter(|&span| context.model.role(span) == Role::Python)
        .max_by_key(|&span| context.time(span));
    match longest {
        Some(function) => tally.add(context, context.name(function), function, to.since(from)),
        None => {
            let label = range_name(context, before);
            tally.add_time(&format!("between operators{label}"), from, to.since(from), context.source(before));
        }
    }
}

fn range_name(context: &Context<'_>, span: SpanId) -> String {
    let range = context.around(span).find(|&outer| context.model.role(outer).is_annotation());
    range.map_or(String::new(), |range| format!(", in {}", context.name(range)))
}

/// The copy to the CPU before and the copy back after, where they did something.
fn copies_at_both_ends(context: &Context<'_>, calls: &[SpanId], left: usize, back: usize) -> Vec<SpanId> {
    let is_copy = |span: &&SpanId| {
        ["aten::to", "aten::cpu", "aten::cuda", "aten::copy_"].contains(&context.name(**span))
            && !context.is_leaf(**span)
    };
    let before = calls[left.saturating_sub(6)..left].iter().rev().find(is_copy);
    let after = calls[back + 1..calls.len().min(back + 3)].iter().find(is_copy);
    before.into_iter().chain(after).copied().collect()
}
