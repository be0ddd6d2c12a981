//! One thing, as the side panel shows it. What it is made of is in [`hotspan_analyze::thing`].

use hotspan_analyze::thing::{Call, Thing, is_of_whole};
use hotspan_analyze::{Door, Model, describe};
use hotspan_store::{SpanId, Timestamp, TraceBuilder};

use crate::api::{BucketData, CallData, StackData, StepData, ThingData};
use crate::opened::{Area, Opened};
use crate::reports::table_data;
use crate::timeline::track_names;

/// Letters of a name.
const LONGEST_NAME: usize = 400;

/// What is behind a door, in all of a trace or in a stretch of it. Spans are those of the whole trace, which the timeline shows.
pub(crate) fn thing(whole: &Opened, stretch: Option<(i64, i64)>, door: &Door) -> Option<ThingData> {
    let Some((from, to)) = stretch.filter(|_| !is_of_whole(door)) else {
        return Some(data(&whole.model, describe(&whole.model, door)?, &|span| span));
    };
    let part = whole.part(&Area { from, to, tracks: None });
    let thing = describe(&part.model, door)?;
    let kept = if part.model.spans().len() == whole.model.spans().len() {
        Vec::new()
    } else {
        whole.model.spans_between(Timestamp(from), Timestamp(to))
    };
    Some(data(&part.model, thing, &|span| kept.get(span.index()).copied().unwrap_or(span)))
}

/// What several traces have in common: no span of one of them stands for it.
pub(crate) fn thing_of_ranks(thing: Thing) -> ThingData {
    data(&Model::new(TraceBuilder::new().finish()), thing, &|span| span)
}

fn data(model: &Model, thing: Thing, in_whole: &dyn Fn(SpanId) -> SpanId) -> ThingData {
    let call = |what: &str, call: Call| {
        let track = call.span.map(|span| track_names(model, model.spans().track(span)));
        let (process, track) = track.unwrap_or_default();
        CallData {
            what: what.to_owned(),
            name: call.span.map(|span| shorten(model.span_name(span))).unwrap_or_default(),
            span: call.span.map(|span| in_whole(span).0),
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
        source: thing.source,
        begin: thing.stretch.map(|stretch| stretch.begin.0),
        end: thing.stretch.map(|stretch| stretch.end.0),
        related: thing.related.into_iter().map(|(what, related)| call(what, related)).collect(),
        count: thing.calls.count,
        total: thing.calls.total.0,
        histogram: buckets.collect(),
        slowest: thing.calls.slowest.into_iter().map(|slow| call("", slow)).collect(),
        steps: steps.collect(),
        step_share: trend.share,
        stacks: stacks.collect(),
        tables: thing.tables.iter().map(table_data).collect(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
