//! Advice and comparisons on traces that no program records: hostile ones, and ones with samples.

use hotspan_analyze::Model;
use hotspan_analyze::advice::{Finding, RULES, Selection, advise};
use hotspan_analyze::diff::{By, Verdict, diff};
use hotspan_store::{
    Duration, EventRow, FrameKind, FrameRow, Ident, SampleRow, SampleState, SpanRow, StackId, Timestamp,
    TraceBuilder, TrackId,
};
use serde_json::json;

use crate::kineto::{self, memory, operator, span};

const WAYS: [By; 6] = [By::Operator, By::Shape, By::Module, By::Kernel, By::Function, By::Line];

#[test]
fn rules_have_names_for_command_lines_and_say_everything() {
    for (place, rule) in RULES.iter().enumerate() {
        assert!(
            rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
        assert!(RULES[..place].iter().all(|other| other.id != rule.id), "{} twice", rule.id);
        for text in [rule.title, rule.finds, rule.costs, rule.fix, rule.measured] {
            assert!(text.len() > 15 && !text.contains("  "), "{}: {text:?}", rule.id);
        }
        assert!(!rule.needs.is_empty(), "{}", rule.id);
    }
}

#[test]
fn absurd_traces_do_not_panic() {
    let mut events = vec![
        operator("aten::resolve_conj", i64::MIN, i64::MAX, 1),
        operator("aten::resolve_neg", i64::MAX, i64::MIN, 1),
        operator("aten::lift_fresh", i64::MAX, i64::MAX, 1),
        operator("aten::softmax", 0, 0, 1),
        span(
            "cpu_op",
            "aten::copy_",
            5,
            6,
            1,
            &json!({"Input type": 5, "Input Dims": [[i64::MAX, i64::MAX]]}),
        ),
        span(
            "cpu_op",
            "aten::conv2d",
            7,
            9,
            1,
            &json!({"Input type": ["double", null], "Input Dims": [[], [], [3]]}),
        ),
        span("cpu_op", "aten::batch_norm", 9, 9, 1, &json!({"Input Dims": "x", "Input type": ["double"]})),
        span("cpu_op", "aten::select", 9, 8, 1, &json!({"Input Dims": [], "Sequence number": i64::MAX})),
        span("cpu_op", "aten::select", 9, 8, 1, &json!({"Input Dims": [], "Sequence number": i64::MIN})),
        span("cuda_runtime", "cudaMemcpyAsync", 0, i64::MAX, 1, &json!({"correlation": 1})),
        span(
            "gpu_memcpy",
            "Memcpy DtoH (Device -> Pageable)",
            i64::MAX,
            i64::MIN,
            7,
            &json!({"correlation": 1, "bytes": -1}),
        ),
        span("kernel", "ncclKernel_x", i64::MIN, i64::MAX, 7, &json!({"correlation": i64::MIN})),
        span("python_function", "train.py(x): f", 0, 5, 1, &json!({"CallFrom": 3, "Call stack": ";;;"})),
        memory(0, i64::MAX, 0, 1),
        memory(1, i64::MAX, 0, 1),
    ];
    for step in 0..8 {
        let name = format!("ProfilerStep#{}", if step == 3 { i64::MAX } else { step });
        events.push(span("user_annotation", &name, step - 4, i64::MAX, 1, &json!({})));
    }
    let trace = kineto::model(&events);
    let _ = advise(&trace, &Selection::default());
    let empty = kineto::model(&[]);
    assert!(advise(&empty, &Selection::default()).findings.is_empty());
    for by in WAYS {
        for (before, after) in [(&trace, &trace), (&trace, &empty), (&empty, &trace), (&empty, &empty)] {
            let _ = diff(before, after, by).report(0, true);
        }
    }
}

#[test]
fn ten_thousand_levels_end_in_time() {
    let names = ["aten::mm", "aten::_local_scalar_dense", "aten::copy_", "aten::contiguous", "aten::softmax"];
    let deep: Vec<_> =
        (0..10_000).map(|level| operator(names[level % 5], level as i64, 40_000 - level as i64, 1)).collect();
    let trace = kineto::model(&deep);
    let _ = advise(&trace, &Selection::default());
    assert_eq!(diff(&trace, &trace, By::Operator).total.change(), Duration::ZERO);
}

/// A thread that calls `.numpy()` at 0 and `from_numpy` at 1 ms, with a sample of NumPy every 100 us between.
fn sampled(line: u32, file: &str) -> Model {
    let mut builder = TraceBuilder::new();
    let track = builder.track(Ident::Int(1), Ident::Int(1));
    for (name, begin, duration) in
        [("aten::resolve_conj", 0, 10), ("aten::resolve_neg", 10, 10), ("aten::lift_fresh", 1_000_000, 10)]
    {
        push(&mut builder, track, name, begin, duration, "cpu_op");
    }
    push(&mut builder, track, "step", 0, 1_000_100, "user_annotation");
    let mut frame = |name: &str, file: &str, line: u32, kind: FrameKind| {
        let (name, file) = (builder.intern(name), builder.intern(file));
        builder.frame(FrameRow { name, file, line, first_line: 1, kind })
    };
    let main = frame("main", "train.py", line, FrameKind::Python);
    let fetch = frame("fetch", "/env/site-packages/torch/utils/data/_utils/fetch.py", 50, FrameKind::Python);
    let argwhere = frame("argwhere", file, 600, FrameKind::Python);
    let native = frame("nonzero", file, 0, FrameKind::Native);
    let outer = builder.stack(StackId::NONE, main);
    let loader = builder.stack(outer, fetch);
    let middle = builder.stack(loader, argwhere);
    let stack = builder.stack(middle, native);
    for place in 1..10 {
        builder.push_sample(SampleRow {
            time: Timestamp(place * 100_000),
            track,
            stack,
            weight: Duration(100_000),
            state: SampleState::Running,
            gil: true,
        });
    }
    builder.finish().into()
}

fn push(builder: &mut TraceBuilder, track: TrackId, name: &str, begin: i64, duration: i64, category: &str) {
    let (name, category, args) = (builder.intern(name), builder.category(category), builder.no_args());
    let event = EventRow { time: Timestamp(begin), name, category, track, args };
    builder.push_span(SpanRow { event, duration: Duration(duration) });
}

fn found(trace: &Model, rule: &str) -> Option<Finding> {
    let mut findings = advise(trace, &Selection::default()).findings;
    let place = findings.iter().position(|(known, _)| known.id == rule)?;
    Some(findings.swap_remove(place).1)
}

#[test]
fn samples_name_the_numpy_function_and_the_users_line() {
    let finding =
        found(&sampled(42, "/env/site-packages/numpy/core/numeric.py"), "numpy-round-trip").unwrap();
    assert_eq!(finding.source(), Some("train.py:42"));
    assert_eq!(finding.evidence[0].what, "argwhere (samples)");
    assert_eq!((finding.evidence[0].count, finding.evidence[0].time), (9, Duration(900_000)));
}

#[test]
fn samples_in_picture_libraries_are_transforms() {
    let trace = sampled(7, "/env/site-packages/PIL/Image.py");
    let finding = found(&trace, "per-sample-transforms").unwrap();
    assert_eq!(finding.source(), Some("train.py:7"));
    assert!(found(&sampled(7, "other.py"), "per-sample-transforms").is_none());
}

#[test]
fn samples_are_compared_by_function_and_line() {
    let (before, after) = (sampled(42, "/x/numpy/a.py"), sampled(42, "/x/numpy/b.py"));
    let rows = diff(&before, &after, By::Line).rows;
    let told: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.change().0, row.verdict)).collect();
    assert_eq!(
        told,
        [("/x/numpy/a.py:600", -900_000, Verdict::Gone), ("/x/numpy/b.py:600", 900_000, Verdict::New)]
    );
    let functions = diff(&before, &before, By::Function);
    assert_eq!(functions.rows[0].key, "argwhere (/x/numpy/a.py)");
    assert_eq!(functions.rows[0].verdict, Verdict::Unknown);
}
