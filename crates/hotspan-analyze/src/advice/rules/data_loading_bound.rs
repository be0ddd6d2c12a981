//! `data-loading-bound`: the loop waits for its DataLoader.

use hotspan_store::{Duration, SpanId};

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::loading::{busy_share_of_workers, loading_times, starts, waits};
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "data-loading-bound",
    title: "The loop waits for its DataLoader",
    finds: "Time in the DataLoader's `__next__` on the thread that trains. The name of the iterator tells whether there are worker \
        processes (`_MultiProcessingDataLoaderIter`) or not (`_SingleProcessDataLoaderIter`).",
    costs: "Without workers each batch is loaded and transformed while model and device wait. With workers, `__next__` takes long only when \
        they cannot keep up, or have just been started (`workers-restarted`).",
    fix: "Without workers: `num_workers=4` (not more than there are cores), `persistent_workers=True`, `pin_memory=True` for a GPU. With workers: \
        more of them, a larger `prefetch_factor`, cheaper transforms, decoded or tensor data on disk.",
    measured: "All `enumerate(DataLoader)#….__next__` ranges. Garbage collections in them do not count. Without workers, what each takes beyond 2 ms, where that is spread over the batches: a batch from a worker has a price, too. With workers, \
        without the first batch after a start of workers, and only when samples of the workers show them busy for half of their time; where there are no such samples, only when \
        the waits are spread over the batches. Reported from 5 % of the time on. The gain is that time, since loading can overlap with training.",
    needs: &[Need::Operators],
    check,
};

/// What a batch costs that comes from a worker: two queues, shared memory.
const PRICE_OF_A_BATCH: Duration = Duration(2_000_000);

fn check(context: &Context<'_>) -> Option<Finding> {
    let all = waits(context);
    let is_single = |wait: &Wait| context.model.span_name(wait.0).contains("_SingleProcess");
    let (single, workers): (Vec<Wait>, Vec<Wait>) = loading_times(context, &all).into_iter().partition(is_single);
    if sum(&single) >= sum(&workers) { without_workers(context, &single) } else { with_workers(context, &all, &workers) }
}

/// A wait for a batch, and how long it took to load.
type Wait = (SpanId, Duration);

fn sum(waits: &[Wait]) -> Duration {
    waits.iter().map(|&(_, time)| time).sum()
}

fn without_workers(context: &Context<'_>, waits: &[Wait]) -> Option<Finding> {
    let cores = context.threads().map_or(4, |threads| threads.cores.min(4));
    let mut tally = Tally::default();
    for &(span, time) in waits.iter().filter(|&&(_, time)| time > PRICE_OF_A_BATCH) {
        tally.add(context, context.model.span_name(span), span, time - PRICE_OF_A_BATCH);
    }
    let (percent, time) = (context.percent(tally.time()), tally.time());
    if percent < 5.0 || cores < 2 || !is_spread(waits) {
        return None;
    }
    // What the steps show; the gain is less.
    let waited = context.percent(sum(waits));
    Some(Finding {
        message: format!("{waited:.0} % of {} waits for the DataLoader, without worker processes (num_workers=0)", context.basis()),
        fix: format!("load in worker processes: `DataLoader(…, num_workers={cores}, persistent_workers=True)`"),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time in `__next__`, which loading ahead would hide, less 2 ms a batch"),
        confidence: if percent >= 10.0 { Confidence::High } else { Confidence::Medium },
    })
}

fn with_workers(context: &Context<'_>, all: &[SpanId], waits: &[Wait]) -> Option<Finding> {
    let first: Vec<SpanId> = starts(context, all).iter().filter_map(|start| start.first_wait).collect();
    let rest: Vec<Wait> = waits.iter().copied().filter(|(wait, _)| !first.contains(wait)).collect();
    let mut tally = Tally::default();
    for &(span, time) in &rest {
        tally.add(context, context.model.span_name(span), span, time);
    }
    let busy = busy_share_of_workers(context);
    let keeps_up = busy.map_or_else(|| !is_spread(&rest), |share| share < 0.5);
    let (percent, time) = (context.percent(tally.time()), tally.time());
    if percent < 5.0 || keeps_up {
        return None;
    }
    Some(Finding {
        message: match busy {
            Some(share) => format!(
                "{percent:.0} % of {} waits for the DataLoader, whose workers are busy {:.0} % of their time",
                context.basis(),
                share * 100.0
            ),
            None => format!("{percent:.0} % of {} waits for the DataLoader, although it has worker processes", context.basis()),
        },
        fix: "less work per sample, or more workers where there are free cores: the workers cannot keep up".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time in `__next__`, which faster loading would hide"),
        confidence: if busy.is_some() && percent >= 10.0 { Confidence::High } else { Confidence::Medium },
    })
}

/// Whether many of the waits are long: after a start of workers only the first ones are, and other programs hold up a few.
fn is_spread(waits: &[Wait]) -> bool {
    let mut times: Vec<Duration> = waits.iter().map(|&(_, time)| time).collect();
    times.sort_unstable_by_key(|&time| std::cmp::Reverse(time));
    let longest: Duration = times[..times.len().div_ceil(8)].iter().copied().sum();
    let all: Duration = times.iter().copied().sum();
    longest.0 as f64 <= all.0 as f64 * 0.8
}
