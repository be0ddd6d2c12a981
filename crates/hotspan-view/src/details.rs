//! Everything about one span, or one call that samples saw: what was recorded, what it is inside of, what it belongs to.

use hotspan_analyze::Door;
use hotspan_analyze::thing::door_of;
use hotspan_store::{ArgValue, SpanId, TrackId, digits};

use crate::api::{ArgData, Caller, Link, Place, SpanDetails};
use crate::opened::Opened;
use crate::timeline::{idle_at, process_name, track_names};

const MOST_LINKS: usize = 50;
const LONGEST_VALUE: usize = 20_000;

/// Everything about a span.
pub(crate) fn details(opened: &Opened, span: SpanId) -> Option<SpanDetails> {
    let model = &opened.model;
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
    let host = opened.model.launch_calls().call(span).unwrap_or(span);
    let stack = callers(opened, spans.track(host), spans.time(host).0);
    let own = |caller: &Caller| caller.span == i64::from(span.0);
    let depth = timeline_depth(opened, span);
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
        linked: links(opened, span),
        stack: stack.into_iter().take_while(|caller| !own(caller)).collect(),
        sampled: frames(opened, spans.track(host), spans.time(host).0),
        door: query(door_of(model, span)),
    })
}

fn query(door: Option<Door>) -> String {
    door.and_then(|door| door.query()).unwrap_or_default()
}

/// Why a device was idle at a moment, and what was behind it.
pub(crate) fn idle_time(opened: &Opened, id: u32, time: i64) -> Option<SpanDetails> {
    let (model, timeline) = (&opened.model, opened.timeline());
    let number = timeline.idle_device(id)?;
    let (device, idle) = (model.device_work().get(number)?, model.idle().get(number)?);
    let (gap, piece) = idle_at(idle, time)?;
    let behind = piece.named().map(|span| link(opened, "behind it", span));
    let next = gap.next.map(|span| link(opened, "ended by", span));
    let host = piece.culprit.or(gap.operator);
    let around = |find: fn(&Opened, TrackId, i64) -> Vec<Caller>| {
        host.map_or_else(Vec::new, |span| find(opened, model.spans().track(span), model.spans().time(span).0))
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
pub(crate) fn sampled_call(opened: &Opened, id: u32, depth: u32, time: i64) -> Option<SpanDetails> {
    let (model, timeline) = (&opened.model, opened.timeline());
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
        stack: callers(opened, track, time),
        sampled: frames(opened, track, time).into_iter().take(depth as usize + 1).collect(),
        door: String::new(),
    })
}

fn timeline_depth(opened: &Opened, span: SpanId) -> u32 {
    let spans = opened.model.spans();
    let pieces = opened.timeline().at(spans.track(span).0, spans.time(span).0);
    pieces.iter().find(|(_, piece)| piece.span == span.0).map_or(0, |(depth, _)| *depth as u32)
}

/// The spans around a moment of a thread, the outermost first.
fn callers(opened: &Opened, track: TrackId, time: i64) -> Vec<Caller> {
    let pieces = opened.timeline().at(track.0, time).into_iter();
    let caller = |(depth, piece): (usize, crate::timeline::Piece)| Caller {
        name: opened.model.str(piece.name).to_owned(),
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
fn frames(opened: &Opened, track: TrackId, time: i64) -> Vec<Caller> {
    let profile = opened.model.profile();
    let covers = |sample: &hotspan_store::SampleRow| {
        sample.track == track && (sample.time.0..=sample.time.plus(sample.weight).0).contains(&time)
    };
    // One walk over all samples: this is asked for when somebody clicks.
    let Some(sample) = profile.samples.rows().find(covers) else { return Vec::new() };
    let caller = |frame| {
        let row = profile.frames.row(frame);
        let file = opened.model.str(row.file);
        let line = if row.line > 0 { row.line } else { row.first_line };
        Caller {
            name: opened.model.str(row.name).to_owned(),
            place: if line > 0 { format!("{file}:{line}") } else { file.to_owned() },
            span: -1,
            track: opened.timeline().sampled(track),
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

fn links(opened: &Opened, span: SpanId) -> Vec<Link> {
    let (model, launches) = (&opened.model, opened.model.launch_calls());
    let spans = model.spans();
    let mut found: Vec<Link> = Vec::new();
    if model.span_category(span).is_device() {
        found.extend(launches.call(span).map(|call| link(opened, "launched by", call)));
    } else {
        // The work of a call, and of all calls inside an operator.
        let (track, from, to) = (spans.track(span), spans.time(span), spans.end(span));
        let inside = |call: SpanId| spans.track(call) == track && (from..=to).contains(&spans.time(call));
        let device = spans.ids().filter(|&other| launches.call(other).is_some_and(inside));
        found.extend(device.take(MOST_LINKS).map(|other| {
            // The arrow leaves where the work was launched, not where the operator around that began.
            let launch = launches.call(other).map(|call| place(opened, call));
            Link { launch, ..link(opened, "launched", other) }
        }));
    }
    for end in opened.flows().of_span(model, opened.timeline(), span) {
        if found.iter().any(|known| known.span == end.span.0) || found.len() >= MOST_LINKS * 2 {
            continue;
        }
        let relation = match (end.is_backward, end.is_target) {
            (true, true) => "backward",
            (true, false) => "forward",
            (false, true) => "arrow to",
            (false, false) => "arrow from",
        };
        found.push(link(opened, relation, end.span));
    }
    found
}

fn link(opened: &Opened, relation: &str, other: SpanId) -> Link {
    let model = &opened.model;
    let spans = model.spans();
    Link {
        relation: relation.to_owned(),
        span: other.0,
        name: model.span_name(other).to_owned(),
        track: spans.track(other).0,
        depth: timeline_depth(opened, other),
        begin: spans.time(other).0,
        end: spans.end(other).0,
        launch: None,
    }
}

fn place(opened: &Opened, span: SpanId) -> Place {
    let spans = opened.model.spans();
    Place {
        track: spans.track(span).0,
        depth: timeline_depth(opened, span),
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
