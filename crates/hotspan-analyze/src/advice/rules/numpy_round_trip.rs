//! `numpy-round-trip`: tensors that leave torch for NumPy inside a step, and come back.

use hotspan_store::{Duration, SampleState, SpanId, Timestamp};

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
    measured: "From what `.numpy()` leaves in a trace (`aten::detach`, `aten::to`, `aten::resolve_conj`, `aten::resolve_neg`) to the `aten::lift_fresh` of the \
        `from_numpy` that follows on the same thread in the same step or range (`.tolist()` and `torch.tensor(list)` leave other calls). Of the time between operators, \
        only samples or functions in NumPy count where there are any, so waiting and other code do not; else all of it, up to 50 ms a trip, with medium confidence. \
        Where nothing marks steps, a program that takes arrays in and gives arrays out is left alone. The copies at both ends are added. Reported from \
        3 % on. The gain is that time: the tensor operator that replaces it costs little beside it.",
    needs: &[Need::Operators],
    check,
};

/// Operators that belong to leaving and returning, and that people use on the way.
const MOST_CALLS_BETWEEN: usize = 24;
/// A longer pause has other reasons, where nothing says what it was.
const LONGEST_UNKNOWN: Duration = Duration(50_000_000);

/// From `.numpy()` to `from_numpy`, by the places of their calls on the thread.
struct Trip {
    left: usize,
    back: usize,
}

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
    let knows_functions = spans.ids().any(|span| context.model.role(span) == Role::Python);
    let mut tally = Tally::default();
    let (mut count, mut is_known) = (0_u64, true);
    for calls in &by_thread {
        let sampled = calls.first().is_some_and(|&call| context.model.sources().has_samples(spans.track(call)));
        for trip in trips(context, calls) {
            let (left, back) = (calls[trip.left], calls[trip.back]);
            let knows = sampled || knows_functions;
            let is_marked = context.step_at(spans.time(left)).is_some_and(|step| context.step_at(spans.time(back)) == Some(step))
                || shared_range(context, left, back).is_some();
            if !(is_marked || (knows && context.steps.is_empty() && ends_inside(context, calls))) {
                continue;
            }
            let before = tally.count();
            for pair in calls[trip.left..=trip.back].windows(2) {
                let (from, to) = (spans.end(pair[0]), spans.time(pair[1]));
                if to > from && (knows || to.since(from) <= LONGEST_UNKNOWN) {
                    note_gap(context, &mut tally, pair[0], from, to, sampled, knows_functions);
                }
            }
            if tally.count() == before {
                continue;
            }
            (count, is_known) = (count + 1, is_known && knows);
            for &copy in &copies_at_both_ends(context, calls, trip.left, trip.back) {
                tally.add(context, &format!("{} (copy)", context.name(copy)), copy, context.time(copy));
            }
        }
    }
    let percent = context.percent(tally.time());
    if count == 0 || percent < 3.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("{percent:.0} % of {} passes in round trips of tensors through NumPy ({count} seen)", context.basis()),
        fix: "stay on the tensor: `torch.nonzero` instead of `np.argwhere`, `torch.where`, `torch.topk` …; no `.cpu().numpy()` and \
            `from_numpy` in the step"
            .to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time between `.numpy()` and `from_numpy`, and the copies at both ends"),
        confidence: if is_known { Confidence::High } else { Confidence::Medium },
    })
}

/// Whether two calls in a row are the last ones of `.numpy()` or `.tolist()`.
fn is_exit(context: &Context<'_>, first: SpanId, second: SpanId) -> bool {
    context.name(first) == "aten::resolve_conj" && context.name(second) == "aten::resolve_neg"
}

/// The trips of one thread. Other calls than `.numpy()` and `from_numpy` end alike; those before tell them apart.
fn trips(context: &Context<'_>, calls: &[SpanId]) -> Vec<Trip> {
    let name = |place: usize| context.name(calls[place]);
    let mut trips = Vec::new();
    let mut position = 0;
    while position + 1 < calls.len() {
        let left = position + 1;
        position += 1;
        // `.tolist()` has no `to` before. Nobody converts what is on the CPU and of its type already, so that costs nothing.
        let is_numpy = left < 2 || name(left - 2) == "aten::to" || !has_conversions(context);
        if !is_exit(context, calls[left - 1], calls[left]) || !is_numpy {
            continue;
        }
        let last = calls.len().min(left + 1 + MOST_CALLS_BETWEEN);
        // `torch.tensor([…])` makes its tensor first.
        let is_list = |place: usize| name(place - 1) == "aten::to" && place >= 2 && name(place - 2) == "aten::empty";
        let back = (left + 1..last).find(|&place| name(place) == "aten::lift_fresh");
        if let Some(back) = back.filter(|&back| !is_list(back)) {
            trips.push(Trip { left, back });
            position = back + 1;
        }
    }
    trips
}

/// Whether this torch's `.numpy()` converts before it leaves: those before 2.0 do not.
fn has_conversions(context: &Context<'_>) -> bool {
    context.model.strings().find("aten::to").is_some()
}

/// Whether the thread's last crossing is into torch: a program that takes arrays in and gives arrays out ends with one out of it.
fn ends_inside(context: &Context<'_>, calls: &[SpanId]) -> bool {
    let out = calls.windows(2).rposition(|pair| is_exit(context, pair[0], pair[1]));
    let back = calls.iter().rposition(|&call| context.name(call) == "aten::lift_fresh");
    back > out
}

/// The nearest marked range around both. A function around both may be the loop of the program.
fn shared_range(context: &Context<'_>, left: SpanId, right: SpanId) -> Option<SpanId> {
    let of_right: Vec<SpanId> = context.around(right).collect();
    context.around(left).find(|span| context.model.role(*span).is_annotation() && of_right.contains(span))
}

/// Says what the thread did between two calls: in NumPy as far as samples or Python functions tell.
fn note_gap(
    context: &Context<'_>,
    tally: &mut Tally,
    before: SpanId,
    from: Timestamp,
    to: Timestamp,
    sampled: bool,
    knows_functions: bool,
) {
    let trace = context.model;
    let profile = trace.profile();
    if sampled {
        for sample in context.model.sources().between(trace.spans().track(before), from, to) {
            let row = profile.samples.row(sample);
            if matches!(row.state, SampleState::Sleep | SampleState::Io | SampleState::Lock) {
                continue;
            }
            let frames = profile.stacks.frames(row.stack).map(|frame| profile.frames.row(frame));
            let numpy = frames.filter(|frame| trace.str(frame.file).contains("numpy")).last();
            if let Some(frame) = numpy {
                let label = format!("{} (samples)", trace.str(frame.name));
                tally.add_time(&label, row.time, row.weight, users_line(trace, sample));
            }
        }
        return;
    }
    if !knows_functions {
        let label = range_name(context, before);
        tally.add_time(&format!("between operators{label}"), from, to.since(from), context.source(before));
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
        .filter(|&span| context.model.role(span) == Role::Python && context.model.span_name(span).contains("numpy"))
        .max_by_key(|&span| context.time(span));
    if let Some(function) = longest {
        tally.add(context, context.name(function), function, to.since(from));
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
