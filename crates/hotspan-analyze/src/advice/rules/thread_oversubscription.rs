//! `thread-oversubscription`: more threads compute than there are cores.

use hotspan_store::Duration;

use crate::advice::context::{Context, part};
use crate::advice::parallel::long_operators;
use crate::advice::{Confidence, Evidence, Finding, Need, Rule};
use crate::intervals::{Interval, Intervals};

pub(super) const RULE: Rule = Rule {
    id: "thread-oversubscription",
    title: "More threads compute than there are cores",
    finds: "More intra-op threads than cores the process may use (containers and batch systems give fewer than the machine has), \
        or several ranks of one job on this machine, each with all cores.",
    costs: "Threads of one operator wait for each other at its end: when one has to wait for a core, all do. Times become erratic.",
    fix: "`torch.set_num_threads(cores)`; with several ranks the cores divided by their number (`OMP_NUM_THREADS`).",
    measured: "Operators long enough to be divided (those of `one-thread`): intra-op threads times the ranks on this machine, beside the cores that the process \
        may use; reported from 1.5 times on, when they make 10 % of the time. The gain is a quarter of their time where several ranks compete, whose \
        threads spin while they wait for each other; a twentieth in one process, whose threads sleep where they are more than the cores.",
    needs: &[Need::Operators, Need::Threads],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let threads = context.threads()?;
    let spans = context.model.spans();
    let calls = long_operators(context);
    let times = calls.iter().map(|&(span, time)| Interval::new(spans.time(span), spans.time(span).plus(time)));
    let union = times.collect::<Intervals>().length();
    let sum: Duration = calls.iter().map(|&(_, time)| time).sum();
    if context.percent(union) < 10.0 || Need::Device.is_met(context) {
        return None;
    }
    let ranks = context.ranks();
    let wanted = threads.torch as f64 * ranks as f64;
    if wanted < threads.cores as f64 * 1.5 {
        return None;
    }
    let row = |what: String, time: Duration| Evidence { what, count: 1, time, bytes: None, at: None, span: None, gap: None, source: None };
    let (gained, how) = if ranks > 1 {
        (0.25, "a quarter of the time in long operators")
    } else {
        (0.05, "a twentieth of the time in long operators")
    };
    Some(Finding {
        message: format!(
            "{}operators are divided among {} threads, on {} cores",
            if ranks > 1 { format!("{ranks} ranks: ") } else { String::new() },
            threads.torch,
            threads.cores
        ),
        fix: format!("`torch.set_num_threads({})`", (threads.cores as f64 / ranks as f64).max(1.0) as u64),
        evidence: vec![
            row("long operators, all threads together".to_owned(), sum),
            row("long operators, each moment once".to_owned(), union),
        ],
        gain: context.gain(part(union, gained), how),
        confidence: Confidence::Medium,
    })
}
