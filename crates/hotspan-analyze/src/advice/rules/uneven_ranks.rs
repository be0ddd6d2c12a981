//! `uneven-ranks`: the others wait for the same ranks in every step.

use hotspan_store::Duration;

use crate::advice::context::{Context, part};
use crate::advice::{Confidence, Evidence, Finding, Need, Rule};
use crate::job::{Late, More};

pub(super) const RULE: Rule = Rule {
    id: "uneven-ranks",
    title: "The same rank is late in nearly all steps, and the others wait for it",
    finds: "Ranks of one job, recorded together, of which the same ones join collectives late in at least four of five steps, while all others wait.",
    costs: "A collective ends when the last rank has joined. The others stand still, so that every step takes as long as that of the slowest rank.",
    fix: "Give the ranks the same amount of work: a `DistributedSampler`, batches of similar length, no extra work (evaluation, logs, files) on one rank. Where the same calls take longer on one rank, give it a processor \
        or device like those of the others.",
    measured: "In each step, the time that a rank is in a collective before the last rank has joined it, and computes nothing. A rank is late where it waits for less than a quarter of the longest wait; a step counts \
        where all others wait for 10 % of it. Reported when the same ranks are late in four of five steps, more often than luck explains (one case in a thousand), and do something more often, or for twice as long, that explains half of the wait; \
        else when they are late in nine of ten steps, of thirty at least. Ranks that take turns do not count, nor the time after the last has joined, which is communication. \
        The gain is what the one waits that waits least, less the share of the work that it would take over.",
    needs: &[Need::Program],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let late = context.job?.late.as_ref()?;
    let (ranks, waiting) = (context.ranks(), context.ranks().saturating_sub(late.ranks.len() as u64));
    let gain = part(late.wait.wait, waiting as f64 / ranks.max(1) as f64);
    let of_step = Duration(late.wait.wait.0 / (late.wait.late_steps.max(1) as i64));
    let more = cause(late, of_step);
    let does_more = more.is_some_and(|more| more.is_more_work);
    if !does_more && !is_long(late) {
        return None;
    }
    let names = names(&late.ranks);
    let row = |what: String, count: u64, time: Duration, source: Option<String>| Evidence {
        what,
        count,
        time,
        bytes: None,
        at: None,
        span: None,
        gap: None,
        source,
    };
    let line = late.line.as_ref().map(|line| line.what.clone());
    let mut evidence =
        vec![row(format!("waiting for {names}, the rank that waits least"), late.wait.late_steps, late.wait.wait, None)];
    for more in late.call.iter().chain(&late.line) {
        let label = format!("{names}: more than the others in {}", place(&more.what));
        evidence.push(row(label, late.wait.steps, Duration(more.time.0.saturating_mul(late.wait.steps as i64)), line.clone()));
    }
    let doing = more.map(|more| format!(", which spends {} a step more in {}", more.time, place(&more.what))).unwrap_or_default();
    Some(Finding {
        message: format!(
            "{names} {} late in {} of {} steps, and the others wait {of_step} for it each time{doing}",
            if late.ranks.len() > 1 { "are" } else { "is" },
            late.wait.late_steps,
            late.wait.steps
        ),
        fix: if does_more {
            "give all ranks the same amount of work".to_owned()
        } else {
            "the same work takes longer there than on the others: give it a processor or device as fast and as free as theirs".to_owned()
        },
        evidence,
        gain: context.gain(gain, "what the others wait, less their share of the work"),
        confidence: if does_more { Confidence::High } else { Confidence::Medium },
    })
}

/// What explains half of the wait or more: a call, else a line.
fn cause(late: &Late, wait: Duration) -> Option<&More> {
    late.call.iter().chain(&late.line).find(|more| more.time.0.saturating_mul(2) >= wait.0)
}

/// Whether it goes on for so long that no neighbour on the machine explains it.
fn is_long(late: &Late) -> bool {
    const STEPS: u64 = 30;
    late.wait.steps >= STEPS && late.wait.late_steps * 10 >= late.wait.steps * 9
}

/// Lines without their folders: the source of the finding has them.
fn place(what: &str) -> &str {
    what.rsplit('/').next().unwrap_or(what)
}

fn names(ranks: &[i64]) -> String {
    let list = ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if ranks.len() > 1 { format!("ranks {list}") } else { format!("rank {list}") }
}
