//! Operators that several threads could share: long ones, of a kind that torch divides.

use hashbrown::HashMap;
use hotspan_store::{Duration, ProcessId, SpanId};

use crate::advice::context::Context;

/// Shorter ones are not worth dividing.
const LONG: Duration = Duration(1_000_000);

/// Random numbers come one after the other; views and reads compute nothing.
const UNDIVIDED: [&str; 22] = [
    "normal_",
    "uniform_",
    "random_",
    "bernoulli_",
    "exponential_",
    "randperm",
    "multinomial",
    "view",
    "reshape",
    "as_strided",
    "select",
    "slice",
    "transpose",
    "permute",
    "expand",
    "unsqueeze",
    "squeeze",
    "detach",
    "item",
    "_local_scalar_dense",
    "empty",
    "empty_strided",
];

/// Calls that take long by themselves. Any call may be held up once, so the middle one of its kind decides.
pub(crate) fn long_operators(context: &Context<'_>) -> Vec<(SpanId, Duration)> {
    let shapes = context.model.shapes();
    let mut kinds: HashMap<(&str, u32), Vec<(SpanId, Duration)>> = HashMap::new();
    for span in context.calls() {
        let name = context.name(span);
        let is_divided = name.strip_prefix("aten::").is_some_and(|name| !UNDIVIDED.contains(&name));
        if is_divided {
            kinds.entry((name, shapes.id(span))).or_default().push((span, context.self_time(span)));
        }
    }
    let mut long = Vec::new();
    for mut calls in kinds.into_values() {
        calls.sort_unstable_by_key(|&(span, time)| (time, span));
        // Of an even number the shorter one: two calls, one of them held up, are not long.
        if calls[(calls.len() - 1) / 2].1 >= LONG {
            long.append(&mut calls);
        }
    }
    long.sort_unstable();
    long
}

/// How many processes call operators for a tenth of the time of the program's own or more. Ranks of one job do.
pub(crate) fn computing_processes(context: &Context<'_>) -> u64 {
    let (model, spans) = (context.model, context.model.spans());
    let mut times: HashMap<ProcessId, i64> = HashMap::new();
    for span in spans.ids().filter(|&span| context.is_call(span) && context.is_outermost(span)) {
        let time = times.entry(model.track(spans.track(span)).process).or_default();
        *time = time.saturating_add(spans.duration(span).0);
    }
    let most = times.values().copied().max().unwrap_or(0);
    let here = times.values().filter(|&&time| time > most / 10).count() as u64;
    here.max(context.ranks())
}
