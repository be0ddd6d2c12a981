//! One thing, as the side panel shows it. What it is made of is in [`hotspan_analyze::thing`].

use hotspan_analyze::thing::{Call, Thing};
use hotspan_analyze::{Door, Model, describe};
use hotspan_store::{SpanId, Timestamp};

use crate::api::{BucketData, CallData, StackData, StepData, ThingData};
use crate::opened::Opened;
use crate::reports::table_data;
use crate::timeline::track_names;

/// What is behind a door, in all of a trace or in a stretch of it. Spans are those of the whole trace, which the timeline shows.
pub(crate) fn thing(whole: &Opened, stretch: Option<(i64, i64)>, door: &Door) -> Option<ThingData> {
    let Some((from, to)) = stretch else {
        return Some(data(&whole.model, describe(&whole.model, door)?, &|span| span));
    };
    let part = whole.part(from, to);
    let thing = describe(&part.model, door)?;
    let kept = if part.model.spans().len() == whole.model.spans().len() {
        Vec::new()
    } else {
        whole.model.spans_between(Timestamp(from), Timestamp(to))
    };
    Some(data(&part.model, thing, &|span| kept.get(span.index()).copied().unwrap_or(span)))
}

fn data(model: &Model, thing: Thing, in_whole: &dyn Fn(SpanId) -> SpanId) -> ThingData {
    let call = |call: Call| {
        let (process, track) = track_names(model, model.spans().track(call.span));
        CallData {
            span: in_whole(call.span).0,
            process,
            track,
            begin: call.begin.0,
            duration: call.duration.0,
            step: call.step,
            source: call.source,
        }
    };
    let buckets = thing.calls.histogram.iter().map(|bucket| BucketData {
        from: bucket.from.0,
        to: bucket.to.0,
        count: bucket.count,
        time: bucket.time.0,
    });
    let trend = thing.trend.unwrap_or_default();
    let steps = trend.parts.iter().map(|part| StepData {
        first: part.first,
        last: part.last,
        begin: part.begin.0,
        end: part.end.0,
        calls: part.calls,
        time: part.time.0,
        share: part.share(),
    });
    let stacks = thing.stacks.into_iter().map(|stack| StackData {
        source: stack.source,
        calls: stack.calls,
        total: stack.total.0,
        entries: stack.entries,
    });
    ThingData {
        kind: thing.kind.to_owned(),
        name: thing.name,
        row: table_data(&thing.row),
        count: thing.calls.count,
        total: thing.calls.total.0,
        histogram: buckets.collect(),
        slowest: thing.calls.slowest.into_iter().map(call).collect(),
        steps: steps.collect(),
        step_share: trend.share,
        stacks: stacks.collect(),
        tables: thing.tables.iter().map(table_data).collect(),
    }
}
