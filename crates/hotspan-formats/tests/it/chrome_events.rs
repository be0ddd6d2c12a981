//! Every kind of event and every spelling, in small traces written by hand.

use hotspan_store::{
    ArgOrigin, ArgValue, Category, Duration, FlowPhase, Ident, InstantScope, Loss, Timestamp,
};

use crate::{check, read};

fn events(list: &str) -> String {
    format!(r#"{{"schemaVersion": 1, "traceEvents": [{list}]}}"#)
}

#[test]
fn complete_events_keep_their_args_in_order() {
    let trace = check(events(
        r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100.001, "dur": 2.5, "tts": 9,
            "args": {"stream": 7, "grid": [1, 2, 3], "est. achieved occupancy %": 0.5, "new in 2030": "yes", "flag": true}}"#,
    ));
    let spans = trace.spans();
    assert_eq!(spans.len(), 1);
    assert_eq!(spans.duration(0.into()), Duration(2_500));
    assert_eq!(trace.clock().origin, 100_001);
    assert_eq!(trace.span_category(0.into()), Category::Kernel);
    let args: Vec<_> = trace
        .args(spans.args(0.into()))
        .map(|(key, value)| (trace.str(key.name), key.origin, value.resolve(trace.strings())))
        .collect();
    assert_eq!(
        args,
        [
            ("tts", ArgOrigin::Event, ArgValue::Int(9)),
            ("stream", ArgOrigin::Args, ArgValue::Int(7)),
            ("grid", ArgOrigin::Args, ArgValue::Json("[1, 2, 3]")),
            ("est. achieved occupancy %", ArgOrigin::Args, ArgValue::Float(0.5)),
            ("new in 2030", ArgOrigin::Args, ArgValue::Text("yes")),
            ("flag", ArgOrigin::Args, ArgValue::Json("true")),
        ]
    );
    assert!(trace.losses().is_empty());
}

#[test]
fn begin_and_end_become_a_span_with_the_args_of_both() {
    let trace = check(
        r#"[{"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 0, "args": {"a": 1}},
            {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 1},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 2},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 5, "args": {"b": 2}},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 6},
            {"ph": "B", "name": "open", "pid": 1, "tid": 2, "ts": 3}]"#,
    );
    let names: Vec<_> = trace.spans().ids().map(|span| trace.span_name(span)).collect();
    assert_eq!(names, ["inner", "outer", "open"]);
    assert_eq!(trace.spans().duration(1.into()), Duration(5_000));
    assert_eq!(trace.arg("a").int(trace.spans().args(1.into())), Some(1));
    assert_eq!(trace.arg("b").int(trace.spans().args(1.into())), Some(2));
    assert_eq!(trace.spans().end(2.into()), Timestamp(5_000), "an open span ends with the trace");
    assert_eq!(trace.losses().count(Loss::UnmatchedEnd), 1);
    assert_eq!(trace.losses().count(Loss::UnfinishedSpan), 1);
}

#[test]
fn instants_counters_and_flows_have_tables_of_their_own() {
    let trace = check(events(
        r#"{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5.5,
            "args": {"Total Reserved": 0, "Total Allocated": 64, "Bytes": -64, "Device Id": -1, "Device Type": 0, "Addr": 140000000000000}},
           {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 6, "args": {"busy": 0.75}},
           {"ph": "s", "id": 12, "pid": 1, "tid": 1, "ts": 6, "cat": "ac2g", "name": "ac2g"},
           {"ph": "t", "id": "0xff", "pid": 1, "tid": 1, "ts": 6, "cat": "async", "name": "step"},
           {"ph": "f", "id": 12, "pid": 0, "tid": 7, "ts": 7, "cat": "ac2g", "name": "ac2g", "bp": "e"}"#,
    ));
    let memory = trace.instants().row(0);
    assert_eq!(memory.scope, InstantScope::Thread);
    assert_eq!(trace.arg("Bytes").int(memory.event.args), Some(-64));
    assert_eq!(trace.arg("Addr").int(memory.event.args), Some(140_000_000_000_000));
    assert_eq!(trace.arg("busy").float(trace.counters().event(0).args), Some(0.75));
    let flows = trace.flows();
    assert_eq!(
        (flows.row(0).id, flows.row(0).phase, flows.row(0).binds_enclosing),
        (12, FlowPhase::Start, false)
    );
    assert_eq!(
        (flows.row(2).id, flows.row(2).phase, flows.row(2).binds_enclosing),
        (12, FlowPhase::End, true)
    );
}

#[test]
fn processes_and_threads_are_named() {
    let trace = check(events(
        r#"{"name": "process_name", "ph": "M", "ts": 0, "pid": 42, "tid": 0, "args": {"name": "python"}},
           {"name": "process_labels", "ph": "M", "ts": 0, "pid": 42, "tid": 0, "args": {"labels": "CPU"}},
           {"name": "process_sort_index", "ph": "M", "ts": 0, "pid": 42, "tid": 0, "args": {"sort_index": 5}},
           {"name": "thread_name", "ph": "M", "ts": 0, "pid": 42, "tid": "43", "args": {"name": "thread 43 (python)"}},
           {"name": "thread_sort_index", "ph": "M", "ts": 0, "pid": 42, "tid": 43, "args": {"sort_index": -1}},
           {"name": "something_else", "ph": "M", "ts": 0, "pid": 42, "tid": 43, "args": {"x": 1}},
           {"ph": "X", "name": "a", "pid": "Spans", "tid": 43, "ts": 1, "dur": 1}"#,
    ));
    let process = trace.processes()[0];
    assert_eq!(process.ident, Ident::Int(42));
    assert_eq!(process.name.map(|name| trace.str(name)), Some("python"));
    assert_eq!(process.labels.map(|labels| trace.str(labels)), Some("CPU"));
    assert_eq!(process.sort_index, Some(5));
    let thread = trace.tracks()[0];
    assert_eq!((thread.ident, thread.sort_index), (Ident::Int(43), Some(-1)));
    assert_eq!(trace.verbatim().count(), 1);
    assert!(trace.losses().is_empty(), "{:?}", trace.losses());
}

#[test]
fn old_and_new_category_names_mean_the_same() {
    for (spelling, category) in [
        ("Kernel", Category::Kernel),
        ("kernel", Category::Kernel),
        ("Runtime", Category::Runtime),
        ("cuda_runtime", Category::Runtime),
        ("xpu_runtime", Category::Runtime),
        ("Memcpy", Category::Memcpy),
        ("gpu_memcpy", Category::Memcpy),
        ("Operator", Category::Operator),
        ("cpu_op", Category::Operator),
        ("mtia_ccp_events", Category::Kernel),
        ("who knows", Category::Unknown),
    ] {
        let event = format!(
            r#"{{"ph": "X", "cat": "{spelling}", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}}"#
        );
        let trace = check(events(&event));
        assert_eq!(trace.span_category(0.into()), category, "{spelling}");
        assert_eq!(trace.category_name(trace.spans().category(0.into())), spelling);
    }
}

#[test]
fn events_of_other_kinds_are_kept_word_for_word() {
    let event = r#"{"ph": "b", "cat": "async", "name": "fetch", "id": 1, "pid": 1, "tid": 1, "ts": 1}"#;
    let trace = check(format!("[{event}]"));
    assert_eq!(trace.verbatim().collect::<Vec<_>>(), [event]);
    assert_eq!(trace.losses().count(Loss::KeptVerbatim), 1);
}

#[test]
fn metadata_may_stand_before_and_after_the_events() {
    let trace = check(
        r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H200"}], "with \"quotes\"": [1, {"a": null}],
            "traceEvents": [], "distributedInfo": {"rank": 3, "world_size": 8},
            "baseTimeNanoseconds": 1735632360000000000, "displayTimeUnit": "ms"}"#,
    );
    assert_eq!(trace.devices()[0].name, "H200");
    assert_eq!(trace.distributed().and_then(|distributed| distributed.rank), Some(3));
    assert_eq!(trace.clock().base_unix, Some(1_735_632_360_000_000_000));
    assert_eq!(trace.metadata().get("with \"quotes\""), Some(r#"[1, {"a": null}]"#));
    assert_eq!(trace.source().format, "Kineto trace");
}

#[test]
fn the_bare_list_is_a_chrome_trace() {
    let trace = read(r#"[{"ph": "X", "name": "a", "ts": 1, "dur": 1}]"#).unwrap();
    assert_eq!(trace.source().format, "Chrome trace");
    assert_eq!(trace.tracks()[0].ident, Ident::Int(0));
}

#[test]
fn numbers_of_any_size_survive() {
    let trace = check(events(
        r#"{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args":
            {"u64": 18446744073709551615, "big": 1e400, "long": 0.1234567890123456789, "min": -9223372036854775808,
             "tiny": 1e-300, "whole": 3.0}}"#,
    ));
    let json = |key| trace.arg(key).json(trace.spans().args(0.into())).unwrap();
    assert_eq!(json("u64"), u64::MAX);
    assert_eq!(json("min"), i64::MIN);
    assert_eq!(json("tiny"), 1e-300);
}
