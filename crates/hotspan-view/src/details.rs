//! Single spans: everything about one, and those with a text in their name.

use hotspan_store::{ArgValue, SpanId, Trace};

use crate::api::{ArgData, Hit, Hits, Link, SpanDetails};
use crate::opened::Opened;
use crate::timeline::track_names;

const MOST_HITS: usize = 5000;
const MOST_LINKS: usize = 50;
const LONGEST_VALUE: usize = 20_000;

/// Everything about a span.
pub(crate) fn details(opened: &Opened, span: SpanId) -> Option<SpanDetails> {
    let trace = &opened.trace;
    let spans = trace.spans();
    if span.index() >= spans.len() {
        return None;
    }
    let track = spans.track(span);
    let (process, track_name) = track_names(trace, track);
    let args = trace.args(spans.args(span)).map(|(key, arg)| ArgData {
        key: trace.str(key.name).to_owned(),
        value: shorten(match arg.resolve(trace.strings()) {
            ArgValue::Int(number) => number.to_string(),
            ArgValue::Float(number) => number.to_string(),
            ArgValue::Text(text) | ArgValue::Json(text) => text.to_owned(),
        }),
    });
    Some(SpanDetails {
        id: span.0,
        name: trace.span_name(span).to_owned(),
        category: trace.category_name(spans.category(span)).to_owned(),
        process,
        track: track_name,
        track_id: track.0,
        begin: spans.time(span).0,
        duration: spans.duration(span).0,
        args: args.collect(),
        linked: links(opened, span),
    })
}

fn links(opened: &Opened, span: SpanId) -> Vec<Link> {
    let trace = &opened.trace;
    let launches = opened.launches();
    if trace.span_category(span).is_device() {
        return launches.call(span).map(|call| link(trace, "launched by", call)).into_iter().collect();
    }
    if !trace.span_category(span).is_launch() {
        return Vec::new();
    }
    let device = trace.spans().ids().filter(|&other| trace.span_category(other).is_device());
    let launched = device.filter(|&other| launches.call(other) == Some(span));
    launched.take(MOST_LINKS).map(|other| link(trace, "launched", other)).collect()
}

fn link(trace: &Trace, relation: &str, other: SpanId) -> Link {
    let spans = trace.spans();
    Link {
        relation: relation.to_owned(),
        span: other.0,
        name: trace.span_name(other).to_owned(),
        track: spans.track(other).0,
        begin: spans.time(other).0,
        end: spans.end(other).0,
    }
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// The spans whose name contains `text`, whatever the case, in order of time.
pub(crate) fn search(trace: &Trace, text: &str) -> Hits {
    let wanted = text.to_lowercase();
    let names = trace.strings();
    // Each name is looked at once, however often it occurs.
    let mut matches: Vec<Option<bool>> = vec![None; names.len()];
    let spans = trace.spans();
    let mut found: Vec<SpanId> = Vec::new();
    for span in spans.ids() {
        let name = spans.name(span);
        let matched = &mut matches[name.index()];
        if *matched.get_or_insert_with(|| names.get(name).to_lowercase().contains(&wanted)) {
            found.push(span);
        }
    }
    found.sort_by_key(|&span| spans.time(span));
    let total = found.len() as u64;
    let hit = |span: SpanId| Hit {
        span: span.0,
        track: spans.track(span).0,
        begin: spans.time(span).0,
        end: spans.end(span).0,
    };
    Hits { total, hits: found.into_iter().take(MOST_HITS).map(hit).collect() }
}
