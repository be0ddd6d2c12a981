//! `one-thread`: torch uses one core of many.

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::parallel::{computing_processes, long_operators};
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "one-thread",
    title: "torch computes with one thread although there are more cores",
    finds: "One intra-op thread on a machine where the process may use several cores, and operators long enough to be divided.",
    costs: "Large matrix products and convolutions divide well: the other cores stand idle.",
    fix: "Remove `torch.set_num_threads(1)` and `OMP_NUM_THREADS=1`, or set them to the number of cores divided by the number of processes \
        that compute side by side. (One thread per process is right where many processes share the machine.)",
    measured: "Calls on the CPU of a kind and shape whose middle one takes 1 ms or more, without the calls inside them, and without random numbers, which torch does not divide; \
        reported when they make 30 % of the time, and there are two cores or more for each process that computes, ranks of one job included. The gain assumes that three \
        quarters of their work divide among these cores.",
    needs: &[Need::Operators, Need::Threads],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let threads = context.threads().filter(|threads| threads.torch == 1 && threads.cores >= 2)?;
    let mut tally = Tally::default();
    for (span, time) in long_operators(context) {
        tally.add(context, context.name(span), span, time);
    }
    let percent = context.percent(tally.time());
    let cores = threads.cores / computing_processes(context).max(1);
    if percent < 30.0 || Need::Device.is_met(context) || cores < 2 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("torch computes with 1 thread on {} cores; {percent:.0} % of {} is in long operators", threads.cores, context.basis()),
        fix: "remove `torch.set_num_threads(1)` or `OMP_NUM_THREADS=1`, unless other processes need the cores".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.75 * (1.0 - 1.0 / cores as f64)), "three quarters of the long operators, divided among the cores"),
        confidence: Confidence::Medium,
    })
}
