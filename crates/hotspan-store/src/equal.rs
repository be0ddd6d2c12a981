//! Whether two traces say the same, whatever their ids: the test of every round trip.

use crate::args::{Arg, ArgKey, ArgOrigin, ArgValue, Args};
use crate::events::EventRow;
use crate::ids::{FrameId, Ident, TrackId};
use crate::trace::{Process, Trace, Track};

/// Describes the first difference between two traces, `None` when they say the same.
///
/// Ids may differ, losses and source are not compared, and a whole number equals the same number as a fraction, as in
/// JSON. The order of events within each table counts.
#[must_use]
pub fn first_difference(left: &Trace, right: &Trace) -> Option<String> {
    let counts = |trace: &Trace| {
        [
            trace.spans.len(),
            trace.instants.len(),
            trace.counters.len(),
            trace.flows.len(),
            trace.verbatim.len(),
            trace.profile.samples.len(),
            trace.profile.calls.len(),
            trace.profile.lines.len(),
        ]
    };
    if counts(left) != counts(right) {
        return Some(format!(
            "counts of spans, instants, counters, flows, verbatim events, samples, calls, lines: {:?} and {:?}",
            counts(left),
            counts(right)
        ));
    }
    if left.clock != right.clock {
        return Some(format!("clocks: {:?} and {:?}", left.clock, right.clock));
    }
    let metadata = |trace: &Trace| -> Vec<_> {
        trace.metadata.iter().map(|(key, _)| (key.to_owned(), trace.metadata.value(key))).collect()
    };
    if metadata(left) != metadata(right) {
        return Some(format!("metadata: {:?} and {:?}", metadata(left), metadata(right)));
    }
    if describe_tracks(left) != describe_tracks(right) {
        return Some(format!("threads: {:?} and {:?}", describe_tracks(left), describe_tracks(right)));
    }
    rows_differ("span", left, right, left.spans.len(), |trace, index| {
        (describe(trace, trace.spans.event(index)), trace.spans.duration[index], 0, None)
    })
    .or_else(|| {
        rows_differ("instant", left, right, left.instants.len(), |trace, index| {
            let row = trace.instants.row(index);
            (describe(trace, row.event), 0, row.scope as u8, None)
        })
    })
    .or_else(|| {
        rows_differ("counter", left, right, left.counters.len(), |trace, index| {
            (describe(trace, trace.counters.event(index)), 0, 0, None)
        })
    })
    .or_else(|| {
        rows_differ("flow", left, right, left.flows.len(), |trace, index| {
            let row = trace.flows.row(index);
            // Ids of arrows that are words are compared as args.
            let id = (!has_text_id(trace, row.event.args)).then_some(row.id);
            (describe(trace, row.event), i64::from(row.binds_enclosing), row.phase as u8, id)
        })
    })
    .or_else(|| verbatim_differ(left, right))
    .or_else(|| profiles_differ(left, right))
}

type Row<'a> = (Described<'a>, i64, u8, Option<i64>);

fn rows_differ(
    what: &str,
    left: &Trace,
    right: &Trace,
    count: usize,
    row: impl for<'a> Fn(&'a Trace, usize) -> Row<'a>,
) -> Option<String> {
    (0..count)
        .find(|&index| row(left, index) != row(right, index))
        .map(|index| format!("{what} {index}: {:?} and {:?}", row(left, index), row(right, index)))
}

fn verbatim_differ(left: &Trace, right: &Trace) -> Option<String> {
    let verbatim = left.verbatim().zip(right.verbatim()).position(|(left, right)| left != right);
    verbatim.map(|index| format!("verbatim event {index}"))
}

/// Samples, calls and lines, with what their ids stand for.
fn profiles_differ(left: &Trace, right: &Trace) -> Option<String> {
    let differ = |what: &str, count: usize, row: &dyn Fn(&Trace, usize) -> String| {
        let index = (0..count).find(|&index| row(left, index) != row(right, index))?;
        Some(format!("{what} {index}: {} and {}", row(left, index), row(right, index)))
    };
    let profile = &left.profile;
    differ("sample", profile.samples.len(), &|trace, index| {
        let row = trace.profile.samples.row(index);
        let stack: Vec<String> =
            trace.profile.stacks.frames(row.stack).map(|frame| describe_frame(trace, frame)).collect();
        let track = describe_track(trace, row.track);
        format!("{} {} {:?} {} {track} {stack:?}", row.time.0, row.weight.0, row.state, row.gil)
    })
    .or_else(|| {
        differ("calls", profile.calls.len(), &|trace, index| {
            let row = trace.profile.calls.row(index);
            let (caller, callee) = (describe_frame(trace, row.caller), describe_frame(trace, row.callee));
            let times = (row.self_time.0, row.total_time.0);
            format!("{caller} {callee} {} {} {times:?}", row.calls, row.primitive_calls)
        })
    })
    .or_else(|| {
        differ("line", profile.lines.len(), &|trace, index| {
            let row = trace.profile.lines.row(index);
            let function = describe_frame(trace, row.function);
            let numbers = (row.line, row.hits, row.time.0, row.memory.0, row.increment.0);
            format!("{function} {numbers:?}")
        })
    })
}

fn describe_frame(trace: &Trace, id: FrameId) -> String {
    if id == FrameId::NONE {
        return "-".to_owned();
    }
    let row = trace.profile.frames.row(id);
    let (name, file) = (trace.str(row.name), trace.str(row.file));
    format!("{name} {file}:{} ({}) {:?}", row.line, row.first_line, row.kind)
}

fn has_text_id(trace: &Trace, args: Args) -> bool {
    trace.args(args).any(|(key, _)| key.origin == ArgOrigin::Event && trace.str(key.name) == "id")
}

type Described<'a> = (i64, &'a str, &'a str, String, Vec<(&'a str, ArgOrigin, Comparable<'a>)>);

fn describe(trace: &Trace, event: EventRow) -> Described<'_> {
    let arg = |(key, value): (ArgKey, Arg)| (trace.str(key.name), key.origin, comparable(trace, value));
    let mut args: Vec<_> = trace.args(event.args).map(arg).collect();
    // Keys beside `args` may stand before or after it: the order counts within each.
    args.sort_by_key(|(_, origin, _)| *origin == ArgOrigin::Args);
    let track = describe_track(trace, event.track);
    (event.time.0, trace.str(event.name), trace.category_name(event.category), track, args)
}

#[derive(Debug, PartialEq)]
enum Comparable<'a> {
    Number(f64),
    Int(i64),
    Text(&'a str),
    Json(serde_json::Value),
}

fn comparable(trace: &Trace, value: Arg) -> Comparable<'_> {
    match value.resolve(trace.strings()) {
        ArgValue::Int(number) if number.unsigned_abs() < 1 << 53 => Comparable::Number(number as f64),
        ArgValue::Int(number) => Comparable::Int(number),
        ArgValue::Float(number) => Comparable::Number(number),
        ArgValue::Text(text) => Comparable::Text(text),
        json @ ArgValue::Json(_) => Comparable::Json(json.to_json()),
    }
}

fn describe_track(trace: &Trace, id: TrackId) -> String {
    let track = trace.track(id);
    let show = |ident: Ident| ident.display(trace.strings());
    format!("{}/{}", show(trace.process(track.process).ident), show(track.ident))
}

/// What is said about processes and threads, sorted: the order of appearance may differ. Those that nothing is said
/// about are compared with the events on them.
fn describe_tracks(trace: &Trace) -> Vec<String> {
    let text = |id| Option::map_or(id, "-", |id| trace.str(id));
    let process = |process: &Process| {
        let said = process.name.is_some() || process.labels.is_some() || process.sort_index.is_some();
        let ident = process.ident.display(trace.strings());
        let (name, labels) = (text(process.name), text(process.labels));
        said.then(|| format!("process {ident}: {name}, {labels}, {:?}", process.sort_index))
    };
    let track = |(index, track): (usize, &Track)| {
        let said = track.name.is_some() || track.sort_index.is_some();
        let ident = describe_track(trace, TrackId::at(index));
        said.then(|| format!("thread {ident}: {}, {:?}", text(track.name), track.sort_index))
    };
    let processes = trace.processes().iter().filter_map(process);
    let mut all: Vec<_> = processes.chain(trace.tracks().iter().enumerate().filter_map(track)).collect();
    all.sort();
    all
}
