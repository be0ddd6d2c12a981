//! Everything about one span, or one call that samples saw: what was recorded, what it is inside of, what it belongs to.

use hotspan_analyze::thing::door_of;
use hotspan_analyze::{Door, Model};
use hotspan_store::{ArgValue, SpanId, TrackId, digits};

use crate::api::{ArgData, Caller, Link, Place, SpanDetails};
use crate::flows::FlowIndex;
use crate::timeline::{Timeline, idle_at, process_name, track_names};

const MOST_LINKS: usize = 50;
const LONGEST_VALUE: usize = 20_000;

/// A trace, and how its spans are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<'a> {
    pub(crate) model: &'a Model,
    pub(crate) timeline: &'a Timeline,
    pub(crate) flows: &'a FlowIndex,
}

/// Everything about a span.
pub(crate) fn details(drawn: Drawn<'_>, span: SpanId) -> Option<SpanDetails> {
    let model = drawn.model;
    let spans = model.spans();
    if span.index() >= spans.len() {
        return None;
    }
    let track = spans.track(span);
    let (process, track_name) = track_names(model, track);
    let args = model.args(spans.args(span)).map(|(key, arg)| ArgData {
        key: model.str(key.name).to_owned(),
        value: shorten(match arg.resolve(model.strings()) {
            ArgValue::Int(number) => number.to_string(),
            ArgValue::Float(number) if number.fract() == 0.0 => number.to_string(),
            ArgValue::Float(number) => digits(number, 6),
            ArgValue::Text(text) | ArgValue::Json(text) => text.to_owned(),
        }),
    });
    // What a device does is understood from where it was launched.
    let host = drawn.model.launch_calls().call(span).unwrap_or(span);
    let stack = callers(drawn, spans.track(host), spans.time(host).0);
    let own = |caller: &Caller| caller.span == i64::from(span.0);
    let depth = timeline_depth(drawn, span);
    Some(SpanDetails {
        id: span.0.into(),
        name: model.span_name(span).to_owned(),
        category: model.category_name(spans.category(span)).to_owned(),
        process,
        track: track_name,
        track_id: track.0,
        depth,
        begin: spans.time(span).0,
        duration: spans.duration(span).0,
        args: args.collect(),
        linked: links(drawn, span),
        stack: stack.into_iter().take_while(|caller| !own(caller)).collect(),
        sampled: frames(drawn, spans.track(host), spans.time(host).0),
        door: query(door_of(model, span)),
    })
}

fn query(door: Option<Door>) -> String {
    door.and_then(|door| door.query()).unwrap_or_default()
}

/// Why a device was idle at a moment, and what was behind it.
pub(crate) fn idle_time(drawn: Drawn<'_>, id: u32, time: i64) -> Option<SpanDetails> {
    let (model, timeline) = (drawn.model, drawn.timeline);
    let number = timeline.idle_device(id)?;
    let (device, idle) = (model.device_work().get(number)?, model.idle().get(number)?);
    let (gap, piece) = idle_at(idle, time)?;
    let behind = piece.named().map(|span| link(drawn, "behind it", span));
    let next = gap.next.map(|span| link(drawn, "ended by", span));
    let host = piece.culprit.or(gap.operator);
    let around = |find: fn(Drawn<'_>, TrackId, i64) -> Vec<Caller>| {
        host.map_or_else(Vec::new, |span| find(drawn, model.spans().track(span), model.spans().time(span).0))
    };
    let arg = |key: &str, value: String| ArgData { key: key.to_owned(), value };
    Some(SpanDetails {
        id: -1,
        name: piece.cause.title().to_owned(),
        category: "idle".to_owned(),
        process: process_name(model, device.process),
        track: "Idle, by cause".to_owned(),
        track_id: id,
        depth: 0,
        begin: piece.interval.begin.0,
        duration: piece.interval.length().0,
        args: vec![arg("Whole gap", gap.interval.length().to_string())],
        linked: behind.into_iter().chain(next).collect(),
        stack: around(callers),
        sampled: around(frames),
        door: query(Some(idle.door(gap))),
    })
}

/// Everything about a call that samples saw, found by where it is drawn.
pub(crate) fn sampled_call(drawn: Drawn<'_>, id: u32, depth: u32, time: i64) -> Option<SpanDetails> {
    let (model, timeline) = (drawn.model, drawn.timeline);
    let track = timeline.sampled_track(id)?;
    let piece = timeline.lanes(id)?.lanes.get(depth as usize)?.at(time)?;
    let (process, track_name) = track_names(model, track);
    Some(SpanDetails {
        id: -1,
        name: model.str(piece.name).to_owned(),
        category: "sample".to_owned(),
        process,
        track: track_name,
        track_id: id,
        depth,
        begin: piece.begin,
        duration: piece.end.saturating_sub(piece.begin),
        args: Vec::new(),
        linked: Vec::new(),
        stack: callers(drawn, track, time),
        sampled: frames(drawn, track, time).into_iter().take(depth as usize + 1).collect(),
        door: String::new(),
    })
}

fn timeline_depth(drawn: Drawn<'_>, span: SpanId) -> u32 {
    let spans = drawn.model.spans();
    let pieces = drawn.timeline.at(spans.track(span).0, spans.time(span).0);
    pieces.iter().find(|(_, piece)| piece.span == span.0).map_or(0, |(depth, _)| *depth as u32)
}

/// The spans around a moment of a thread, the outermost first.
fn callers(drawn: Drawn<'_>, track: TrackId, time: i64) -> Vec<Caller> {
    let pieces = drawn.timeline.at(track.0, time).into_iter();
    let caller = |(depth, piece): (usize, crate::timeline::Piece)| Caller {
        name: drawn.model.str(piece.name).to_owned(),
        place: String::new(),
        span: piece.span.into(),
        track: track.0,
        depth: depth as u32,
        begin: piece.begin,
        end: piece.end,
    };
    pieces.map(caller).collect()
}

/// The stack that samples saw at a moment of a thread, the outermost frame first.
fn frames(drawn: Drawn<'_>, track: TrackId, time: i64) -> Vec<Caller> {
    let profile = drawn.model.profile();
    let covers = |sample: &hotspan_store::SampleRow| {
        sample.track == track && (sample.time.0..=sample.time.plus(sample.weight).0).contains(&time)
    };
    // One walk over all samples: this is asked for when somebody clicks.
    let Some(sample) = profile.samples.rows().find(covers) else { return Vec::new() };
    let caller = |frame| {
        let row = profile.frames.row(frame);
        let file = drawn.model.str(row.file);
        let line = if row.line > 0 { row.line } else { row.first_line };
        Caller {
            name: drawn.model.str(row.name).to_owned(),
            place: if line > 0 { format!("{file}:{line}") } else { file.to_owned() },
            span: -1,
            track: drawn.timeline.sampled(track),
            depth: 0,
            begin: sample.time.0,
            end: sample.time.plus(sample.weight).0,
        }
    };
    let mut frames: Vec<Caller> = profile.stacks.frames(sample.stack).map(caller).collect();
    frames.reverse();
    for (depth, frame) in frames.iter_mut().enumerate() {
        frame.depth = depth as u32;
    }
    frames
}

fn links(drawn: Drawn<'_>, span: SpanId) -> Vec<Link> {
    let (model, launches) = (drawn.model, drawn.model.launch_calls());
    let spans = model.spans();
    let mut found: Vec<Link> = Vec::new();
    if model.span_category(span).is_device() {
        found.extend(launches.call(span).map(|call| link(drawn, "launched by", call)));
    } else {
        // The work of a call, and of all calls inside an operator.
        let (track, from, to) = (spans.track(span), spans.time(span), spans.end(span));
        let inside = |call: SpanId| spans.track(call) == track && (from..=to).contains(&spans.time(call));
        let device = spans.ids().filter(|&other| launches.call(other).is_some_and(inside));
        found.extend(device.take(MOST_LINKS).map(|other| {
            // The arrow leaves where the work was launched, not where the operator around that began.
            let launch = launches.call(other).map(|call| place(drawn, call));
            Link { launch, ..link(drawn, "launched", other) }
        }));
    }
    for end in drawn.flows.of_span(model, drawn.timeline, span) {
        if found.iter().any(|known| known.span == end.span.0) || found.len() >= MOST_LINKS * 2 {
            continue;
        }
        let relation = match (end.is_backward, end.is_target) {
            (true, true) => "backward",
            (true, false) => "forward",
            (false, true) => "arrow to",
            (false, false) => "arrow from",
        };
        found.push(link(drawn, relation, end.span));
    }
    found
}

fn link(drawn: Drawn<'_>, relation: &str, other: SpanId) -> Link {
    let model = drawn.model;
    let spans = model.spans();
    Link {
        relation: relation.to_owned(),
        span: other.0,
        name: model.span_name(other).to_owned(),
        track: spans.track(other).0,
        depth: timeline_depth(drawn, other),
        begin: spans.time(other).0,
        end: spans.end(other).0,
        launch: None,
    }
}

fn place(drawn: Drawn<'_>, span: SpanId) -> Place {
    let spans = drawn.model.spans();
    Place {
        track: spans.track(span).0,
        depth: timeline_depth(drawn, span),
        begin: spans.time(span).0,
        end: spans.end(span).0,
    }
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
