//! `workers-restarted`: the DataLoader starts its worker processes again for every epoch.

use hotspan_store::Duration;

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::loading::{starts, waits};
use crate::advice::{Confidence, Finding, Need, Rule};
use crate::model::source::users_line;

pub(super) const RULE: Rule = Rule {
    id: "workers-restarted",
    title: "The DataLoader starts new worker processes for every epoch",
    finds: "Samples of the program in starting worker processes and in waiting for their end, three times or more, and the wait for the first batch after each.",
    costs: "Each epoch starts processes, waits for their first batch, and ends them. With short epochs that takes longer than loading.",
    fix: "`DataLoader(…, persistent_workers=True)`, and one DataLoader for all epochs; or `num_workers=0` where samples are cheap.",
    measured: "Time of these samples, and of the first waits beyond the middle one of the others; reported from three starts and 5 % of the time on. The gain is that time \
        without one start.",
    needs: &[Need::Operators],
    check,
};

const FEWEST: usize = 3;

fn check(context: &Context<'_>) -> Option<Finding> {
    let waits = waits(context);
    let starts = starts(context, &waits);
    if starts.len() < FEWEST {
        return None;
    }
    let mut others: Vec<Duration> = waits
        .iter()
        .filter(|wait| !starts.iter().any(|start| start.first_wait == Some(**wait)))
        .map(|&wait| context.time(wait))
        .collect();
    others.sort_unstable();
    let usual = others.get(others.len() / 2).copied().unwrap_or(Duration::ZERO);
    let mut tally = Tally::default();
    let mut dearest = Duration::ZERO;
    for start in &starts {
        let source = users_line(context.model, start.sample);
        tally.add_time("starting and ending workers (samples)", start.at, start.time, source);
        let first = start.first_wait.map_or(Duration::ZERO, |wait| (context.time(wait) - usual).max(Duration::ZERO));
        if let Some(wait) = start.first_wait {
            tally.add(context, "waiting for the first batch", wait, first);
        }
        dearest = dearest.max(start.time + first);
    }
    let time = (tally.time() - dearest).max(Duration::ZERO);
    let percent = context.percent(time);
    if percent < 5.0 {
        return None;
    }
    Some(Finding {
        message: format!("worker processes are started {} times, which takes {percent:.0} % of {}", starts.len(), context.basis()),
        fix: "`DataLoader(…, persistent_workers=True)`, or `num_workers=0` where samples are cheap".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "starting, ending and first batches, without one start"),
        confidence: Confidence::High,
    })
}
