//! What the model says once, and analyses therefore cannot say differently.

use hotspan_analyze::idle::Cause;
use hotspan_analyze::{GroupBy, KeyAverages, MemoryDevice, Model, overview};
use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, Bytes, Duration, EventRow, Ident, SpanRow, Timestamp, TraceBuilder, keys, merge,
};
use serde_json::json;

use crate::kineto::{self, memory, operator, span};

/// gloo's collectives begin on one thread and end on another, while the first goes on with other operators.
#[test]
fn asynchronous_ranges_enclose_nothing_and_have_no_time_of_their_own() {
    let range = span("user_annotation", "gloo:all_reduce", 0, 100, 1, &json!({"Async": 1}));
    let model = kineto::model(&[range, operator("aten::add", 10, 30, 1), operator("aten::mm", 90, 150, 1)]);
    let nesting = model.nesting();
    assert!(model.spans().ids().all(|span| nesting.parent(span).is_none()));
    let rows = &model.averages().rows;
    let times: Vec<_> = rows
        .iter()
        .map(|row| (row.key.as_str(), row.is_async, row.cpu_time_total.0, row.self_cpu_time_total.0))
        .collect();
    let expected =
        [("gloo:all_reduce", true, 100, 0), ("aten::add", false, 20, 20), ("aten::mm", false, 60, 60)];
    assert_eq!(times, expected);
    // 20 and 60 nanoseconds are in operators, and the range is no reason to count the others.
    assert_eq!(hotspan_analyze::steps::steps(&model).host[0].operators, Duration(80));
}

#[test]
fn a_recorded_scope_counts_more_than_names() {
    let node = |args| span("cpu_op", "MyBackward", 0, 10, 1, &args);
    let model = kineto::model(&[node(json!({"hotspan scope": 1})), node(json!({}))]);
    let scopes: Vec<_> = model.spans().ids().map(|span| model.scope(span) as u8).collect();
    assert_eq!(scopes, [1, 0]);
}

/// A file with very many distinct lists of keys packs the args of further events into one text each.
#[test]
fn packed_inputs_are_told_apart() {
    let mut builder = TraceBuilder::new();
    let track = builder.track(Ident::Int(1), Ident::Int(1));
    let mut push = |key: &str, name: &str, dims: &str, time: i64| {
        let mut pending = PendingArgs::default();
        builder.push_arg(&mut pending, ArgOrigin::Args, key.as_bytes(), Arg::Int(1));
        let dims = Arg::Json(builder.intern(dims));
        builder.push_arg(&mut pending, ArgOrigin::Args, keys::INPUT_DIMS.as_bytes(), dims);
        let args = builder.commit_args(&mut pending);
        let (name, category) = (builder.intern(name), builder.category("cpu_op"));
        let event = EventRow { time: Timestamp(time), name, category, track, args };
        builder.push_span(SpanRow { event, duration: Duration(5) });
    };
    for number in 0..5_000 {
        push(&format!("key {number}"), "aten::relu", "[[1]]", number * 10);
    }
    push("last", "aten::mm", "[[2, 3], [3, 5]]", 100_000);
    push("very last", "aten::mm", "[[20, 3], [3, 5]]", 100_010);
    let model = Model::new(builder.finish());
    let products = model.averages().rows.iter().find(|row| row.key == "aten::mm").map(|row| row.flops);
    assert_eq!(products, Some(2 * 2 * 3 * 5 + 2 * 20 * 3 * 5));
}

/// Kineto of 2021 gives no addresses.
#[test]
fn allocations_without_an_address_are_paired_by_size() {
    let event = |time: i64, bytes: i64| memory(time, bytes, 0, 1);
    let model =
        kineto::model(&[event(0, 100), event(10, 100), event(20, 40), event(30, -100), event(40, -40)]);
    let blocks = &model.memory_blocks().blocks;
    assert!(blocks.iter().all(|block| block.allocated.is_some()), "nothing is from before the recording");
    let timeline = &model.memory_timeline()[0];
    assert_eq!(timeline.peak, Bytes(240));
    assert_eq!(timeline.held().last().map(|(_, bytes)| bytes), Some(Bytes(100)));
}

#[test]
fn devices_of_two_processes_are_two() {
    let trains = |pid: i64, begin: i64| {
        let mut call =
            span("cuda_runtime", "cudaLaunchKernel", begin, begin + 5, 1, &json!({"correlation": 3}));
        let mut kernel =
            span("kernel", "gemm", begin + 10, begin + 40, 7, &json!({"correlation": 3, "device": 0}));
        let mut tensor = memory(begin, 64, 0, 1);
        tensor["args"]["Addr"] = json!(4096);
        call["pid"] = json!(pid);
        tensor["pid"] = json!(pid);
        kernel["pid"] = json!(0);
        kineto::trace(&[call, kernel, tensor])
    };
    let model = Model::new(merge(&[trains(11, 0), trains(12, 100)]));
    let devices: Vec<_> =
        model.device_work().iter().map(|device| (device.id.to_string(), device.busy.length())).collect();
    let busy = Duration(30);
    assert_eq!(devices, [("0 (process 11)".to_owned(), busy), ("0 (process 12)".to_owned(), busy)]);
    // What one host does explains nothing about the device of the other.
    let mut wait = span("cuda_runtime", "cudaDeviceSynchronize", 0, 50, 1, &json!({"correlation": 9}));
    wait["pid"] = json!(11);
    let waiting = Model::new(merge(&[trains(11, 0), trains(12, 100), kineto::trace(&[wait])]));
    let waits: Vec<i64> = waiting.idle().iter().map(|device| device.total(Cause::Synchronise).0).collect();
    // Each trace begins at 0, and the wait with it; the first kernel runs from 10 to 40.
    assert_eq!(waits, [10, 0]);
    // Addresses are a process's own, too.
    let device = |process| MemoryDevice { kind: 0, index: -1, process: Some(process) };
    let held: Vec<_> =
        model.memory_timeline().iter().map(|timeline| (timeline.device, timeline.peak)).collect();
    assert_eq!(held, [(device(11), Bytes(64)), (device(12), Bytes(64))]);
}

/// Of a program, the wall time is that of the program, not from the first event to the last.
#[test]
fn there_is_one_wall_time() {
    let mut trace = kineto::trace(&[operator("aten::mm", 100, 150, 1)]);
    let origin = trace.clock().unix_origin();
    assert_eq!(origin, None, "a trace without a clock has the wall time of its events");
    assert_eq!(Model::new(trace.clone()).wall(), Duration(50));
    let mut builder = TraceBuilder::new();
    builder.clock.base_unix = Some(0);
    builder.append(&trace, 1_700_000_000_000_000_000);
    trace = builder.finish();
    let start = trace.clock().unix_origin().unwrap();
    trace.set_metadata(
        "hotspan.run",
        &json!({"start_unix_ns": start - 50, "end_unix_ns": start + 150}).to_string(),
    );
    let model = Model::new(trace);
    let whole = Duration(200);
    assert_eq!(model.wall(), whole);
    assert_eq!(model.summary().wall_time, whole);
    assert_eq!(KeyAverages::compute(&model, &GroupBy::default()).wall_time, whole);
    assert_eq!(model.wall_time().as_ref().map(|wall_time| wall_time.total), Some(whole));
    assert_eq!(overview(&model).wall_time.map(|wall_time| wall_time.total), Some(whole));
    // A stretch of it has its own.
    let part = model.between(Timestamp(0), Timestamp(20));
    assert_eq!(
        (part.wall(), part.wall_time().as_ref().map(|time| time.total)),
        (Duration(20), Some(Duration(20)))
    );
}
