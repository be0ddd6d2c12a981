//! Traces that no profiler should write: nothing panics, and what can be counted is.

use hotspan_analyze::gpu::gpu;
use hotspan_analyze::steps::steps;
use hotspan_analyze::{GroupBy, KeyAverages, TableOptions, kernels, table};
use serde_json::json;

use crate::kineto::{self, memory, operator, span};

fn everything() -> GroupBy {
    GroupBy {
        input_shapes: true,
        stack_depth: 3,
        overload_name: true,
        module: true,
        thread: true,
        device: true,
        event: false,
        python_functions: true,
    }
}

#[test]
fn absurd_times_and_args_do_not_panic() {
    let trace = kineto::model(&[
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
    ]);
    for group_by in [GroupBy::default(), everything()] {
        let averages = KeyAverages::compute(&trace, &group_by);
        assert_eq!(averages.rows.iter().map(|row| row.count).sum::<u64>(), 9);
        let options = TableOptions {
            max_name_column_width: Some(0),
            max_shapes_column_width: Some(0),
            max_src_column_width: Some(0),
            distribution: true,
            wall_share: true,
            flops: Some(true),
            ..TableOptions::default()
        };
        assert!(table(&averages, &options).unwrap().contains("Self CPU time total"));
        assert_eq!(averages.report().rows.len(), averages.rows.len());
    }
    assert_eq!(kernels(&trace).rows.len(), 1);
    assert_eq!(trace.summary().spans, 9);
    assert_eq!(steps(&trace).devices.len(), 1);
    assert!(gpu(&trace).is_some_and(|gpu| gpu.report(&trace, 0).len() > 3));
}

#[test]
fn ten_thousand_levels_are_as_good_as_one() {
    let deep: Vec<_> =
        (0..10_000).map(|level| operator(&format!("op{}", level % 7), level, 40_000 - level, 1)).collect();
    let averages = KeyAverages::compute(&kineto::model(&deep), &everything());
    assert_eq!(averages.self_cpu_time_total().0, 40_000);
}
