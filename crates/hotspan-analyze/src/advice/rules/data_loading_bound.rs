//! `data-loading-bound`: the loop waits for its DataLoader.

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "data-loading-bound",
    title: "The loop waits for its DataLoader",
    finds: "Time in the DataLoader's `__next__` on the thread that trains. The name of the iterator tells whether there are worker \
        processes (`_MultiProcessingDataLoaderIter`) or not (`_SingleProcessDataLoaderIter`).",
    costs: "Without workers each batch is loaded and transformed while model and device wait. With workers, `__next__` takes long only when \
        they cannot keep up.",
    fix: "Without workers: `num_workers=4` (about the number of cores), `persistent_workers=True`, `pin_memory=True` for a GPU. With workers: \
        more of them, a larger `prefetch_factor`, cheaper transforms, decoded or tensor data on disk.",
    measured: "All `enumerate(DataLoader)#….__next__` ranges; reported from 5 % of the time on. The gain is that time, \
        since loading can overlap with training.",
    needs: &[Need::Operators],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    let mut tally = Tally::default();
    let mut is_single = false;
    for &span in context.model.nesting().order() {
        let name = context.model.span_name(span);
        let waits = name.starts_with("enumerate(Data") && context.model.role(span).is_host();
        if waits && context.is_in_range(spans.time(span)) {
            is_single |= name.contains("_SingleProcess");
            tally.add(context, name, span, context.time(span));
        }
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 {
        return None;
    }
    let time = tally.time();
    let (state, fix) = if is_single {
        ("without worker processes (num_workers=0)", "load in worker processes: `DataLoader(…, num_workers=4, persistent_workers=True)`")
    } else {
        (
            "although it has worker processes",
            "more workers, a larger `prefetch_factor`, or less work per sample: the workers cannot keep up",
        )
    };
    Some(Finding {
        message: format!("{percent:.0} % of {} waits for the DataLoader, {state}", context.basis()),
        fix: fix.to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time in `__next__`, which loading ahead would hide"),
        confidence: if percent >= 10.0 { Confidence::High } else { Confidence::Medium },
    })
}
