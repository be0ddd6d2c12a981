//! All spans in order of time.
//!
//! A file has several things that are in order by themselves: operators, the calls that launch kernels, kernels; one behind the
//! other for each step, or in turns. Taken apart into such runs and merged again, millions of spans are in order after a few passes,
//! which takes a fraction of the time of sorting them. Who is inside whom is left to [`super::nesting`].

use std::cmp::Reverse;

use hotspan_store::{SpanId, Spans, Timestamp};

/// A file of more runs than this is sorted.
const MOST_RUNS: usize = 32;

/// What comes first: the earlier beginning, then the later end. Spans with the same of both stay as in the file.
type Key = (Timestamp, Reverse<Timestamp>);

/// Spans by their beginnings, longer ones first, then as in the file.
pub(super) fn time_order(spans: &Spans) -> Vec<SpanId> {
    let key = |span: SpanId| (spans.time(span), Reverse(spans.end(span)));
    runs(spans.ids(), key).map(|runs| merged(runs, key)).unwrap_or_else(|| {
        let mut order: Vec<SpanId> = spans.ids().collect();
        order.sort_by_key(|&span| key(span));
        order
    })
}

/// Each span goes to the first run that it continues. `None`: there are too many.
fn runs(spans: impl Iterator<Item = SpanId>, key: impl Fn(SpanId) -> Key) -> Option<Vec<Vec<SpanId>>> {
    let mut runs: Vec<Vec<SpanId>> = Vec::new();
    let mut ends: Vec<Key> = Vec::new();
    for span in spans {
        let own = key(span);
        match ends.iter().position(|&end| end <= own) {
            Some(run) => {
                runs[run].push(span);
                ends[run] = own;
            }
            None if runs.len() == MOST_RUNS => return None,
            None => {
                runs.push(vec![span]);
                ends.push(own);
            }
        }
    }
    Some(runs)
}

/// Merges neighbouring runs until there is one.
fn merged(mut runs: Vec<Vec<SpanId>>, key: impl Fn(SpanId) -> Key) -> Vec<SpanId> {
    while runs.len() > 1 {
        let mut fewer = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            fewer.push(match rest.next() {
                Some(right) => merge(&left, &right, &key),
                None => left,
            });
        }
        runs = fewer;
    }
    runs.pop().unwrap_or_default()
}

fn merge(mut left: &[SpanId], mut right: &[SpanId], key: impl Fn(SpanId) -> Key) -> Vec<SpanId> {
    let mut order = Vec::with_capacity(left.len() + right.len());
    while let (Some((&one, after_one)), Some((&other, after_other))) =
        (left.split_first(), right.split_first())
    {
        if (key(one), one) < (key(other), other) {
            order.push(one);
            left = after_one;
        } else {
            order.push(other);
            right = after_other;
        }
    }
    order.extend_from_slice(left);
    order.extend_from_slice(right);
    order
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Duration, EventRow, Ident, SpanRow, Trace, TraceBuilder};

    use super::*;

    fn trace(spans: impl Iterator<Item = (i64, i64)>) -> Trace {
        let mut builder = TraceBuilder::new();
        for (begin, duration) in spans {
            let (track, name) = (builder.track(Ident::Int(1), Ident::Int(1)), builder.intern("name"));
            let (category, args) = (builder.category("cpu_op"), builder.no_args());
            let event = EventRow { time: Timestamp(begin), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
        builder.finish()
    }

    fn order(spans: &[(i64, i64)]) -> Vec<u32> {
        time_order(trace(spans.iter().copied()).spans()).into_iter().map(|span| span.0).collect()
    }

    #[test]
    fn operators_of_a_step_come_before_its_launches_in_a_file() {
        let step = [(0, 100), (10, 20), (40, 20), (11, 5), (41, 5), (110, 90), (120, 20), (121, 5)];
        assert_eq!(order(&step), [0, 1, 3, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn the_longer_one_is_first_and_equals_stay_as_in_the_file() {
        assert_eq!(order(&[(5, 1), (0, 3), (0, 9), (5, 1), (0, 3), (5, 2)]), [2, 1, 4, 5, 0, 3]);
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn it_is_the_order_of_sorting_however_many_runs_there_are() {
        let mut state = 7_u64;
        for spread in [1, 3, 40, 5_000] {
            let spans: Vec<(i64, i64)> = (0..3_000)
                .map(|row| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (row - (state >> 33) as i64 % spread, (state >> 20) as i64 % 3)
                })
                .collect();
            let trace = trace(spans.into_iter());
            let mut sorted: Vec<SpanId> = trace.spans().ids().collect();
            sorted.sort_by_key(|&span| (trace.spans().time(span), Reverse(trace.spans().end(span))));
            assert_eq!(time_order(trace.spans()), sorted, "{spread}");
        }
    }
}
