//! Traces to test with: every kind of row, every type of arg, names in many alphabets.

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, Args, Bytes, CallRow, Duration, EventRow, FlowPhase, FlowRow, FrameId, FrameKind,
    FrameRow, Ident, InstantRow, InstantScope, LineRow, Loss, SampleRow, SampleState, SpanRow, StackId,
    Timestamp, Trace, TraceBuilder, file,
};

/// Adds the event number `number` of an endless recording; the kind, the args and the thread follow from the number.
pub(crate) fn push_event(builder: &mut TraceBuilder, number: i64) {
    let track = builder.track(Ident::Int(number % 3), Ident::Int(7));
    let name = builder.intern(["aten::add", "größe", "行列積", "🔥", ""][number as usize % 5]);
    let category = builder.category(["cpu_op", "kernel", "日本"][number as usize % 3]);
    let args = push_args(builder, number);
    let event = EventRow { time: Timestamp(1_000 + number * 10), name, category, track, args };
    push_profile(builder, number, event.time, track);
    match number % 4 {
        0 => builder.push_span(SpanRow { event, duration: Duration(number) }),
        1 => builder.push_instant(InstantRow { event, scope: InstantScope::Process }),
        2 => builder.push_counter(event),
        _ => builder.push_flow(FlowRow {
            event,
            id: -number,
            phase: FlowPhase::End,
            binds_enclosing: number % 8 == 3,
        }),
    }
}

fn push_profile(builder: &mut TraceBuilder, number: i64, time: Timestamp, track: hotspan_store::TrackId) {
    let mut frame = |line: i64, kind| {
        let (name, file) = (builder.intern(&format!("function {}", line % 5)), builder.intern("größe.py"));
        builder.frame(FrameRow { name, file, line: line as u32, first_line: 3, kind })
    };
    let outer = frame(number % 13, FrameKind::Python);
    let inner = frame(number % 17, FrameKind::Native);
    match number % 3 {
        0 => {
            let stack = builder.stack(StackId::NONE, outer);
            let stack = if number % 2 == 0 { builder.stack(stack, inner) } else { stack };
            let (weight, state) = (Duration(number), SampleState::Lock);
            builder.push_sample(SampleRow { time, track, stack, weight, state, gil: number % 2 == 0 });
        }
        1 => builder.push_calls(CallRow {
            caller: if number % 2 == 0 { outer } else { FrameId::NONE },
            callee: inner,
            calls: number,
            primitive_calls: number / 2,
            self_time: Duration(number * 3),
            total_time: Duration(number * 5),
        }),
        _ => builder.push_line(LineRow {
            function: outer,
            line: number as u32,
            hits: number,
            time: Duration(-number),
            memory: Bytes(number << 33),
            increment: Bytes(-number),
        }),
    }
}

fn push_args(builder: &mut TraceBuilder, number: i64) -> Args {
    let mut pending = PendingArgs::default();
    if number % 7 == 0 {
        return builder.no_args();
    }
    let text = builder.intern(&format!("text {}", number % 11));
    let json = builder.intern("[[8, 3, 224, 224], []]");
    builder.push_arg(&mut pending, ArgOrigin::Args, b"small", Arg::Int(number));
    // Wide from event 50 on only, so that one chunk has it small and a later one wide.
    let wide = if number < 50 { number } else { -(1 << 40) - number };
    builder.push_arg(&mut pending, ArgOrigin::Args, b"wide", Arg::Int(wide));
    if number % 2 == 0 {
        builder.push_arg(&mut pending, ArgOrigin::Args, b"ratio", Arg::Float(number as f64 / 3.0));
        builder.push_arg(&mut pending, ArgOrigin::Args, "Größe".as_bytes(), Arg::Text(text));
    }
    builder.push_arg(&mut pending, ArgOrigin::Args, b"Input Dims", Arg::Json(json));
    builder.push_arg(&mut pending, ArgOrigin::Event, b"id", Arg::Text(text));
    builder.commit_args(&mut pending)
}

/// Describes processes, threads, clock and metadata, as importers do late.
pub(crate) fn describe(builder: &mut TraceBuilder) {
    let word = builder.intern("Spans");
    builder.track(Ident::Text(word), Ident::Text(word));
    let name = builder.intern("python");
    let label = builder.intern("CPU");
    let process = builder.process(Ident::Int(0));
    let process = builder.process_mut(process);
    (process.name, process.labels, process.sort_index) = (Some(name), Some(label), Some(-5));
    let track = builder.track(Ident::Int(0), Ident::Int(7));
    let track = builder.track_mut(track);
    (track.name, track.sort_index) = (Some(name), Some(i64::MAX));
    builder.metadata.set("schemaVersion", "1");
    builder.metadata.set("deviceProperties", r#"[{"id": 0, "name": "H200"}]"#);
    builder.clock.base_unix = Some(1_700_000_000_000_000_000);
    let verbatim = builder.intern(r#"{"ph": "N", "name": "object", "ts": 5}"#);
    builder.push_verbatim(verbatim);
    builder.losses.add_many(Loss::KeptVerbatim, 3, Some(77));
    builder.losses.add(Loss::RoundedTime, None);
    builder.source.format = "Kineto trace".into();
    builder.source.path = Some("trace.json".into());
    builder.source.bytes = 12_345;
}

pub(crate) fn trace(events: i64) -> Trace {
    let mut builder = TraceBuilder::new();
    (0..events).for_each(|number| push_event(&mut builder, number));
    describe(&mut builder);
    builder.finish()
}

pub(crate) fn write(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    file::write_trace(trace, &mut bytes).unwrap();
    bytes
}

pub(crate) fn read(bytes: &[u8]) -> Result<Trace, file::FileError> {
    file::read(bytes, &mut |_| true)
}

/// Like `first_difference`, and source and losses too, which a file keeps.
#[track_caller]
pub(crate) fn assert_same(left: &Trace, right: &Trace) {
    assert_eq!(hotspan_store::first_difference(left, right), None);
    assert_eq!(left.losses(), right.losses());
    assert_eq!(left.source(), right.source());
    assert_eq!(left.clock(), right.clock());
    let rows = |trace: &Trace| -> Vec<_> {
        trace.arg_schemas().iter().map(hotspan_store::ArgSchema::rows).collect()
    };
    assert_eq!(rows(left), rows(right));
}

/// Whether `part` holds the first events of `whole` and nothing else.
pub(crate) fn is_prefix(part: &Trace, whole: &Trace) -> bool {
    let shift = part.clock().origin - whole.clock().origin;
    let spans = |trace: &Trace, shift: i64| -> Vec<_> {
        let row = |span| {
            let spans = trace.spans();
            let args: Vec<_> = trace
                .args(spans.args(span))
                .map(|(key, value)| {
                    (trace.str(key.name).to_owned(), value.resolve(trace.strings()).to_json())
                })
                .collect();
            (spans.time(span).0 + shift, spans.duration(span), trace.span_name(span).to_owned(), args)
        };
        trace.spans().ids().map(row).collect()
    };
    let times = |events: &mut dyn Iterator<Item = EventRow>, shift: i64| -> Vec<i64> {
        events.map(|event| event.time.0 + shift).collect()
    };
    let other = |trace: &Trace, shift: i64| {
        [
            times(&mut trace.instants().events(), shift),
            times(&mut trace.counters().events(), shift),
            times(&mut trace.flows().events(), shift),
        ]
    };
    let empty = part.spans().is_empty();
    let shift = if empty { 0 } else { shift };
    spans(whole, 0).starts_with(&spans(part, shift))
        && other(whole, 0).iter().zip(other(part, shift)).all(|(whole, part)| whole.starts_with(&part))
}
