//! Several traces as one: nothing lost, nothing mixed up.

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, Duration, EventRow, Ident, SpanRow, Timestamp, Trace, TraceBuilder, first_difference,
    merge,
};

use crate::sample::trace;

/// A process with one span whose args name others by number.
fn process(pid: i64, unix: Option<i64>, correlation: i64) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.clock.base_unix = unix;
    let track = builder.track(Ident::Int(pid), Ident::Int(1));
    let name = builder.intern(&format!("work of {pid}"));
    let category = builder.category("cuda_runtime");
    let mut pending = PendingArgs::default();
    builder.push_arg(&mut pending, ArgOrigin::Args, b"correlation", Arg::Int(correlation));
    builder.push_arg(&mut pending, ArgOrigin::Args, b"cbid", Arg::Int(correlation));
    let args = builder.commit_args(&mut pending);
    let event = EventRow { time: Timestamp(100), name, category, track, args };
    builder.push_span(SpanRow { event, duration: Duration(5) });
    builder.finish()
}

#[test]
fn one_trace_stays_itself() {
    let original = trace(60);
    let merged = merge(std::slice::from_ref(&original));
    assert_eq!(merged.clock().unix_origin(), original.clock().unix_origin());
    // The clock now counts Unix time itself; apart from that all is the same.
    let mut bytes = Vec::new();
    hotspan_store::file::write_trace(&merged, &mut bytes).unwrap();
    let mut again = hotspan_store::file::read_builder(bytes.as_slice(), &mut |_| true).unwrap();
    again.clock = original.clock();
    assert_eq!(first_difference(&again.finish(), &original), None);
}

#[test]
fn processes_meet_on_one_clock() {
    let second = 1_000_000_000;
    let merged =
        merge(&[process(1, Some(1_700_000_000 * second), 7), process(2, Some(1_700_000_001 * second), 7)]);
    let spans = merged.spans();
    assert_eq!(merged.str(spans.name(1.into())), "work of 2");
    assert_eq!((spans.time(0.into()).0, spans.time(1.into()).0), (0, second));
    assert_eq!(merged.clock().unix_origin(), Some(1_700_000_000 * second + 100));
    assert_eq!(merged.processes().len(), 2);
}

#[test]
fn numbers_that_link_events_do_not_meet_those_of_another_process() {
    let merged = merge(&[process(1, None, 7), process(2, None, 7), process(2, None, 0)]);
    let read = |key: &str| -> Vec<i64> {
        let reader = merged.arg(key);
        merged.spans().ids().map(|span| reader.int(merged.spans().args(span)).unwrap()).collect()
    };
    assert_eq!(read("correlation"), [7, 14, 0], "zero is no correlation");
    assert_eq!(read("cbid"), [7, 7, 0]);
}

/// Each process counts the devices that it sees from 0.
#[test]
fn devices_of_two_processes_stay_two() {
    let trains = |pid: i64| {
        let mut builder = TraceBuilder::new();
        let host = builder.track(Ident::Int(pid), Ident::Int(pid));
        let stream = builder.track(Ident::Int(0), Ident::Int(7));
        for (track, category) in [(host, "cuda_runtime"), (stream, "kernel")] {
            let (name, category, args) =
                (builder.intern(category), builder.category(category), builder.no_args());
            let event = EventRow { time: Timestamp(100), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(5) });
        }
        builder.finish()
    };
    // The second recording of process 1 is about the same device as its first.
    let merged = merge(&[trains(1), trains(2), trains(1)]);
    let names: Vec<String> =
        merged.processes().iter().map(|process| process.ident.display(merged.strings())).collect();
    assert_eq!(names, ["1", "0", "2", "0 of process 2"]);
}

#[test]
fn everything_of_everyone_is_there() {
    let (left, right) = (trace(40), trace(25));
    let merged = merge(&[left, right]);
    let profile = merged.profile();
    let counts = [
        merged.spans().len(),
        merged.instants().len(),
        merged.counters().len(),
        merged.flows().len(),
        profile.samples.len() + profile.calls.len() + profile.lines.len(),
        merged.verbatim().count(),
    ];
    assert_eq!(counts, [10 + 7, 10 + 6, 10 + 6, 10 + 6, 40 + 25, 2]);
    assert_eq!(profile.frames.len(), trace(40).profile().frames.len(), "equal frames are shared");
}
