//! Files merged chunk by chunk: the same as traces merged in memory, with args near and far from their events.

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, Duration, EventRow, FileMerge, FlowPhase, FlowRow, Ident, Loss, SpanRow, Survey,
    Timestamp, Trace, TraceBuilder, file, first_difference, keys, merge_with_names,
};

use crate::sample::{describe, push_event, read};

/// A recording in chunks of a few events.
fn recording(events: i64, in_a_chunk: i64, unix: Option<i64>) -> Vec<u8> {
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    for number in 0..events {
        push_event(&mut builder, number);
        if number % in_a_chunk == 0 {
            writer.append(&mut builder).unwrap();
        }
    }
    describe(&mut builder);
    builder.clock.base_unix = unix;
    writer.finish(&mut builder).unwrap()
}

fn better_name(library: &str, name: &str) -> Option<String> {
    name.ends_with('3').then(|| format!("{name} of {library}"))
}

/// What the launcher writes of these files.
fn merged(files: &[Vec<u8>], moves_on: bool) -> Trace {
    let surveys: Vec<Survey> = files.iter().map(|bytes| Survey::of(bytes.as_slice()).unwrap()).collect();
    let mut merge = FileMerge::new(&surveys);
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    for (bytes, survey) in files.iter().zip(&surveys) {
        let mut move_on = |builder: &mut TraceBuilder| match moves_on {
            true => writer.append(builder),
            false => Ok(()),
        };
        merge.add(bytes.as_slice(), survey, &mut better_name, &mut move_on).unwrap();
        move_on(merge.builder()).unwrap();
    }
    let mut builder = merge.into_builder();
    if !moves_on {
        return builder.finish();
    }
    read(&writer.finish(&mut builder).unwrap()).unwrap()
}

#[track_caller]
fn assert_equal(files: &[Vec<u8>]) {
    let traces: Vec<Trace> = files.iter().map(|bytes| read(bytes).unwrap()).collect();
    let expected = merge_with_names(&traces, &mut better_name);
    for moves_on in [false, true] {
        let found = merged(files, moves_on);
        assert_eq!(first_difference(&found, &expected), None);
        assert_eq!(found.losses(), expected.losses());
        assert_eq!(found.source(), expected.source());
    }
}

#[test]
fn files_merge_as_traces_do() {
    let unix = Some(1_700_000_000_000_000_000);
    assert_equal(&[]);
    assert_equal(&[recording(60, 7, unix)]);
    assert_equal(&[recording(300, 7, unix), recording(90, 1_000, Some(1_600_000_000_000_000_000))]);
    // Without Unix time, each begins with its own first event.
    assert_equal(&[recording(120, 5, None), recording(60, 9, unix)]);
}

#[test]
fn what_a_killed_process_left_merges_too() {
    let whole = recording(300, 7, Some(1_700_000_000_000_000_000));
    let cut = whole[..whole.len() * 2 / 3].to_vec();
    assert_equal(&[cut.clone(), whole]);
    assert_eq!(Survey::of(cut.as_slice()).unwrap().losses.counts()[0].loss.name(), "truncated_file");
}

#[test]
fn events_may_refer_to_args_of_long_ago() {
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    let track = builder.track(Ident::Int(1), Ident::Int(1));
    let (name, category) = (builder.intern("late"), builder.category("cpu_op"));
    let mut pending = PendingArgs::default();
    builder.push_arg(&mut pending, ArgOrigin::Args, b"small", Arg::Int(77));
    let args = builder.commit_args(&mut pending);
    pending.clear();
    for number in 1..50 {
        push_event(&mut builder, number);
        builder.push_arg(&mut pending, ArgOrigin::Args, b"small", Arg::Int(number));
        builder.commit_args(&mut pending);
        pending.clear();
        writer.append(&mut builder).unwrap();
    }
    let event = EventRow { time: Timestamp(5_000), name, category, track, args };
    builder.push_span(SpanRow { event, duration: Duration(1) });
    assert_equal(&[writer.finish(&mut builder).unwrap()]);
}

/// The same recording in several files, and in one.
#[test]
fn a_recording_in_several_files_is_the_same_recording() {
    let mut builder = TraceBuilder::new();
    let mut files = Vec::new();
    for part in 0..4 {
        let mut writer = file::Writer::create(Vec::new()).unwrap();
        for number in part * 40..part * 40 + 40 {
            push_with_flow(&mut builder, number);
            if number % 9 == 0 {
                writer.append(&mut builder).unwrap();
            }
        }
        if part == 3 {
            describe(&mut builder);
        }
        builder.clock.base_unix = Some(1_700_000_000_000_000_000);
        builder.metadata.set("part", &part.to_string());
        files.push(writer.finish(&mut builder).unwrap());
        builder.begin_file();
    }
    let whole = recording_with_flows();
    let surveys: Vec<Survey> = files.iter().map(|bytes| Survey::of(bytes.as_slice()).unwrap()).collect();
    let other = Survey::of(whole.as_slice()).unwrap();
    let mut merge = FileMerge::new(surveys.iter().chain([&other]));
    let open = |index: usize| Ok(files[index].as_slice());
    merge.add_segments(&surveys, open, &mut better_name, &mut |_| Ok(())).unwrap();
    merge.add(whole.as_slice(), &other, &mut better_name, &mut |_| Ok(())).unwrap();
    let whole = read(&whole).unwrap();
    let expected = merge_with_names(&[whole.clone(), whole], &mut better_name);
    assert_eq!(first_difference(&merge.into_builder().finish(), &expected), None);
}

/// An event, and an arrow whose number must go on from file to file.
fn push_with_flow(builder: &mut TraceBuilder, number: i64) {
    push_event(builder, number);
    let event = EventRow {
        time: Timestamp(number),
        name: builder.intern("arrow"),
        category: builder.category("ac2g"),
        track: builder.track(Ident::Int(1), Ident::Int(1)),
        args: builder.no_args(),
    };
    let (id, phase) = (number + 1, FlowPhase::Start);
    builder.push_flow(FlowRow { event, id, phase, binds_enclosing: false });
}

fn recording_with_flows() -> Vec<u8> {
    let mut builder = TraceBuilder::new();
    for number in 0..160 {
        push_with_flow(&mut builder, number);
    }
    builder.metadata.set("part", "3");
    describe(&mut builder);
    file::Writer::create(Vec::new()).unwrap().finish(&mut builder).unwrap()
}

#[test]
fn what_was_dropped_before_the_first_file_is_counted() {
    let mut builder = TraceBuilder::new();
    push_event(&mut builder, 1);
    builder.metadata.set(keys::SEGMENT, r#"{"number": 3, "events_before": 12345}"#);
    let bytes = file::Writer::create(Vec::new()).unwrap().finish(&mut builder).unwrap();
    let merged = merged(&[bytes.clone(), bytes], true);
    assert_eq!(merged.losses().count(Loss::DroppedEvents), 2 * 12_345);
}

/// Two processes, one after the other in the file, each with a span around everything and an event at every tenth moment.
fn long_recording() -> Vec<u8> {
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    let mut builder = TraceBuilder::new();
    builder.clock.base_unix = Some(5_000_000);
    for process in 1..=2 {
        for number in 0..1_000 {
            let mut args = PendingArgs::default();
            builder.push_arg(&mut args, ArgOrigin::Args, b"number", Arg::Int(number));
            let event = EventRow {
                time: Timestamp(10 * number),
                name: builder.intern("event"),
                category: builder.category("cpu_op"),
                track: builder.track(Ident::Int(process), Ident::Int(1)),
                args: builder.commit_args(&mut args),
            };
            let duration = if number == 0 { 10_000 } else { 5 };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
            if number % 50 == 49 {
                writer.append(&mut builder).unwrap();
            }
        }
    }
    writer.finish(&mut builder).unwrap()
}

#[test]
fn the_latest_stretch_of_all_processes_is_kept() {
    let content = long_recording();
    let survey = Survey::of(content.as_slice()).unwrap();
    let mut merge = FileMerge::new([&survey]);
    merge.keep_latest([&survey], 500);
    merge.add(content.as_slice(), &survey, &mut |_, _| None, &mut |_| Ok(())).unwrap();
    let latest = merge.into_builder().finish();

    let number = latest.arg("number");
    let numbers = |process: i64| -> Vec<i64> {
        let mut found = Vec::new();
        for span in latest.spans().ids() {
            let event = latest.spans().event(span.index());
            if latest.process(latest.track(event.track).process).ident == Ident::Int(process) {
                found.push(number.int(event.args).unwrap());
            }
        }
        found
    };
    // Ten chunks of fifty fit. The eleventh ends with 749, which is still running when that begins to be all there is.
    let expected: Vec<i64> = std::iter::once(0).chain(749..1_000).collect();
    assert_eq!(numbers(1), expected);
    assert_eq!(numbers(2), expected);
    assert_eq!(latest.losses().count(Loss::OlderEvents), 2_000 - 2 * 252);
    assert_eq!(latest.metadata().get(keys::READ_SINCE), Some("5007490"));
}
