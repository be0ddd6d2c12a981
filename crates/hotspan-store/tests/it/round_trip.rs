//! What is written is read again.

use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, ArgOrigin, Duration, EventRow, Ident, SpanRow, Timestamp, TraceBuilder, file};

use crate::sample::{assert_same, read, trace, write};

#[test]
fn every_kind_of_row_and_arg() {
    let trace = trace(200);
    let bytes = write(&trace);
    assert!(file::is_hotspan(&bytes[..bytes.len().min(8_192)]));
    assert_same(&trace, &read(&bytes).unwrap());
}

#[test]
fn an_empty_trace() {
    let trace = TraceBuilder::new().finish();
    let again = read(&write(&trace)).unwrap();
    assert_same(&trace, &again);
    assert!(again.losses().is_empty());
}

#[test]
fn more_rows_than_fit_one_chunk() {
    let trace = trace(4 * 70_000);
    let bytes = write(&trace);
    let mut steps = Vec::new();
    let again = file::read(bytes.as_slice(), &mut |offset| {
        steps.push(offset);
        true
    });
    assert_same(&trace, &again.unwrap());
    assert!(steps.len() >= 5, "schema, several chunks, end: {steps:?}");
    assert!(steps.is_sorted());
}

#[test]
fn writing_what_was_read_gives_the_same_bytes() {
    let bytes = write(&trace(1_000));
    assert_eq!(write(&read(&bytes).unwrap()), bytes);
}

#[test]
fn packed_args() {
    let mut builder = TraceBuilder::new();
    let track = builder.track(Ident::Int(1), Ident::Int(1));
    let (name, category) = (builder.intern("event"), builder.category("cpu_op"));
    for number in 0..6_000 {
        let mut pending = PendingArgs::default();
        builder.push_arg(
            &mut pending,
            ArgOrigin::Args,
            format!("key {}", number % 100).as_bytes(),
            Arg::Int(number),
        );
        builder.push_arg(&mut pending, ArgOrigin::Args, format!("key {number}").as_bytes(), Arg::Int(number));
        let args = builder.commit_args(&mut pending);
        let event = EventRow { time: Timestamp(number), name, category, track, args };
        builder.push_span(SpanRow { event, duration: Duration(1) });
    }
    let trace = builder.finish();
    assert!(
        trace
            .arg_schemas()
            .iter()
            .any(|layout| layout.keys()[..].iter().any(|key| key.origin == ArgOrigin::Packed))
    );
    assert_same(&trace, &read(&write(&trace)).unwrap());
}

#[test]
fn many_strings_need_several_chunks() {
    let mut builder = TraceBuilder::new();
    for number in 0..200_000 {
        let text = builder.intern(&format!("string {number}"));
        builder.push_verbatim(text);
    }
    let trace = builder.finish();
    assert_same(&trace, &read(&write(&trace)).unwrap());
}

#[test]
fn extreme_numbers() {
    let mut builder = TraceBuilder::new();
    let track = builder.track(Ident::Int(i64::MIN), Ident::Int(i64::MAX));
    let (name, category) = (builder.intern("x"), builder.category(""));
    let mut pending = PendingArgs::default();
    builder.push_arg(&mut pending, ArgOrigin::Args, b"low", Arg::Int(i64::MIN));
    builder.push_arg(&mut pending, ArgOrigin::Args, b"float", Arg::Float(f64::MIN_POSITIVE));
    let args = builder.commit_args(&mut pending);
    for time in [i64::MIN, 0, i64::MAX] {
        let event = EventRow { time: Timestamp(time), name, category, track, args };
        builder.push_span(SpanRow { event, duration: Duration(i64::MAX) });
    }
    let trace = builder.finish();
    assert_same(&trace, &read(&write(&trace)).unwrap());
}

#[test]
fn reading_stops_when_asked() {
    let bytes = write(&trace(10));
    let stopped = file::read(bytes.as_slice(), &mut |_| false);
    assert!(matches!(stopped, Err(file::FileError::Stopped { .. })));
}
