//! Makes traces for tests from Kineto's JSON, in the plainest way. The real importer is not needed here.

use hotspan_analyze::Model;
use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, Duration, EventRow, Ident, InstantRow, InstantScope, SpanRow, Timestamp,
};
use hotspan_store::{Trace, TraceBuilder};
use serde_json::{Value, json};

/// The trace that the golden tables are of.
pub(crate) fn golden_step() -> Model {
    let file: Value = serde_json::from_str(include_str!("golden/step.trace.json")).unwrap();
    read(&file).into()
}

/// The model of a trace of these events.
pub(crate) fn model(events: &[Value]) -> Model {
    trace(events).into()
}

/// A trace of these events.
pub(crate) fn trace(events: &[Value]) -> Trace {
    read(&json!({ "traceEvents": events }))
}

/// A complete event on thread `thread` of process 1, or on a stream of device 0; times in nanoseconds.
pub(crate) fn span(category: &str, name: &str, begin: i64, end: i64, thread: i64, args: &Value) -> Value {
    let process = i64::from(!matches!(category, "kernel" | "gpu_memcpy" | "gpu_memset" | "Kernel"));
    json!({"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread,
        "ns": begin, "duration_ns": end.wrapping_sub(begin), "args": args})
}

/// An operator.
pub(crate) fn operator(name: &str, begin: i64, end: i64, thread: i64) -> Value {
    span("cpu_op", name, begin, end, thread, &json!({}))
}

/// An allocation or release; device type 0 is the CPU, 1 is CUDA.
pub(crate) fn memory(time: i64, bytes: i64, device_type: i64, thread: i64) -> Value {
    json!({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": thread,
        "ns": time, "args": {"Bytes": bytes, "Device Type": device_type}})
}

/// What no profiler should write.
pub(crate) fn absurd() -> Model {
    model(&[
        operator("late", i64::MAX, i64::MAX, 1),
        operator("early", i64::MIN, i64::MAX, 1),
        operator("backwards", 100, -100, 1),
        operator("", 0, 0, 1),
        span("cpu_op", "aten::mm", 5, 6, 1, &json!({"Input Dims": "nonsense", "Call stack": 5})),
        span("cpu_op", "aten::mm", 5, 6, 1, &json!({"Input Dims": [[i64::MAX, i64::MAX], [i64::MAX, -1]]})),
        span(
            "cpu_op",
            "aten::conv2d",
            5,
            6,
            1,
            &json!({
                "Input Dims": [[1, 1, i64::MAX, 1], [1, 1, i64::MIN, 1], [], [], [], [], []],
                "Concrete Inputs": ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]", "0"],
            }),
        ),
        span("cpu_op", "aten::bmm", 5, 6, 1, &json!({"Input Dims": [[[1], 2], null]})),
        span(
            "kernel",
            "k",
            5,
            i64::MAX,
            7,
            &json!({"External id": i64::MIN, "correlation": -1, "blocks per SM": 1e308}),
        ),
        memory(0, i64::MAX, 0, 1),
        memory(0, i64::MAX, 77, 1),
        memory(1, i64::MIN, 0, 1),
    ])
}

fn read(file: &Value) -> Trace {
    let mut builder = TraceBuilder::new();
    for (key, value) in file.as_object().unwrap() {
        if key != "traceEvents" {
            builder.metadata.set(key, &value.to_string());
        }
    }
    for event in file["traceEvents"].as_array().unwrap() {
        let time =
            |nanos: &str, micros: &str| event[nanos].as_i64().or(event[micros].as_i64().map(|us| us * 1000));
        let ident = |key: &str| Ident::Int(event[key].as_i64().unwrap());
        let track = builder.track(ident("pid"), ident("tid"));
        let name = builder.intern(event["name"].as_str().unwrap());
        let category = builder.category(event["cat"].as_str().unwrap());
        let mut pending = PendingArgs::default();
        for (key, value) in event["args"].as_object().unwrap() {
            let value = match value {
                Value::Number(number) if number.is_i64() => Arg::Int(number.as_i64().unwrap()),
                Value::Number(number) => Arg::Float(number.as_f64().unwrap()),
                Value::String(text) => Arg::Text(builder.intern(text)),
                other => Arg::Json(builder.intern(&other.to_string())),
            };
            builder.push_arg(&mut pending, ArgOrigin::Args, key.as_bytes(), value);
        }
        let args = builder.commit_args(&mut pending);
        let row = EventRow { time: Timestamp(time("ns", "ts").unwrap()), name, category, track, args };
        match time("duration_ns", "dur") {
            Some(duration) => builder.push_span(SpanRow { event: row, duration: Duration(duration) }),
            None => builder.push_instant(InstantRow { event: row, scope: InstantScope::Thread }),
        }
    }
    builder.finish()
}
