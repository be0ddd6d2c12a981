//! Rows: grouping, Python functions, memory by thread, stacks, distributions.

use hotspan_analyze::{Average, Cell, GroupBy, KeyAverages, Model, RecordScope, Report, ReportOptions};
use hotspan_store::Duration;
use serde_json::json;

use crate::kineto::{self, golden_step, memory, operator, span};

fn rows(trace: &Model, group_by: &GroupBy) -> Vec<Average> {
    KeyAverages::compute(trace, group_by).rows
}

fn row<'a>(rows: &'a [Average], key: &str) -> &'a Average {
    let mut found = rows.iter().filter(|row| row.key == key);
    let row = found.next().unwrap_or_else(|| panic!("no row {key}"));
    assert!(found.next().is_none(), "several rows {key}");
    row
}

#[test]
fn python_functions_are_rows_only_when_asked_but_always_in_the_tree() {
    let none = json!({});
    let trace = kineto::model(&[
        span("user_annotation", "train", 0, 100, 1, &none),
        span("python_function", "train.py(3): step", 10, 90, 1, &none),
        span("cpu_op", "aten::mm", 20, 50, 1, &none),
    ]);
    let without = rows(&trace, &GroupBy::default());
    assert_eq!(without.len(), 2);
    assert_eq!(row(&without, "train").self_cpu_time_total.0, 20);
    assert!(!row(&without, "aten::mm").is_top_level);
    let with = rows(&trace, &GroupBy { python_functions: true, ..GroupBy::default() });
    assert_eq!(row(&with, "train.py(3): step").self_cpu_time_total.0, 50);
}

/// torch charges both operators with both allocations, because they overlap in time.
#[test]
fn memory_belongs_to_its_own_thread() {
    let trace = kineto::model(&[
        operator("left", 0, 100, 1),
        operator("inner", 10, 50, 1),
        operator("right", 0, 100, 2),
        memory(20, 1000, 0, 1),
        memory(60, 10, 1, 1),
        memory(30, 7, 0, 2),
        memory(200, 5, 0, 1),
    ]);
    let rows = rows(&trace, &GroupBy::default());
    let used = |key| {
        let row = row(&rows, key);
        (row.cpu_memory_usage.0, row.self_cpu_memory_usage.0, row.device_memory_usage.0)
    };
    assert_eq!(used("left"), (1000, 0, 10));
    assert_eq!(used("inner"), (1000, 1000, 0));
    assert_eq!(used("right"), (7, 7, 0));
    assert_eq!(used("[memory]"), (5, 5, 0));
    assert_eq!(rows.last().map(|row| row.key.as_str()), Some("[memory]"));
}

#[test]
fn steps_share_a_row_and_helpers_have_none() {
    let rows = rows(&golden_step(), &GroupBy::default());
    assert_eq!(row(&rows, "ProfilerStep*").count, 1);
    assert!(rows.iter().all(|row| !row.key.contains("_record_function_exit")));
    assert_eq!(row(&rows, "aten::to").count, 1, "the inner aten::to is the same call");
    assert_eq!(row(&rows, "AddmmBackward0").scope, RecordScope::Backward);
    assert_eq!(row(&rows, "backward").scope, RecordScope::User);
}

#[test]
fn the_total_is_the_sum_of_the_rows() {
    let averages = KeyAverages::compute(&golden_step(), &GroupBy::default());
    let total = averages.total_average();
    assert_eq!((total.key.as_str(), total.count), ("Total", 30));
    assert_eq!(total.self_cpu_time_total, averages.self_cpu_time_total());
    assert_eq!(total.flops, 3 * 2 * 32 * 64 * 128 + 2 * 32 * 128);
}

#[test]
fn rows_can_be_told_apart_by_thread_and_device() {
    let group_by = GroupBy { thread: true, device: true, ..GroupBy::default() };
    let rows = rows(&golden_step(), &group_by);
    let launches: Vec<_> = rows.iter().filter(|row| row.key == "cudaLaunchKernel").collect();
    let by_thread: Vec<_> = launches.iter().map(|row| (row.thread.as_deref(), row.count)).collect();
    assert_eq!(by_thread, [(Some("1"), 4), (Some("2"), 2)]);
    assert_eq!(row(&rows, "sgemm").device_index, Some(0));
}

#[test]
fn stacks_and_modules_come_from_python_functions_when_none_were_recorded() {
    let none = json!({});
    let mut events = vec![
        span("python_function", "train.py(9): <module>", 0, 1000, 1, &none),
        span("python_function", "nn.Module: Linear_0", 10, 400, 1, &none),
        span("python_function", "torch/nn/modules/linear.py(1): forward", 20, 390, 1, &none),
        span("cpu_op", "aten::linear", 30, 300, 1, &json!({"Sequence number": 5, "Fwd thread id": 0})),
        span("cpu_op", "aten::addmm", 40, 200, 1, &none),
    ];
    let node = json!({"Sequence number": 5, "Fwd thread id": 1});
    events.push(span("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 500, 600, 2, &node));
    events.push(span("cpu_op", "AddmmBackward0", 510, 590, 2, &node));
    events.push(span("cpu_op", "aten::mm", 520, 580, 2, &none));
    let trace = kineto::model(&events);
    let stacks = rows(&trace, &GroupBy { stack_depth: 2, ..GroupBy::default() });
    let expected = ["torch/nn/modules/linear.py(1): forward", "nn.Module: Linear_0"];
    for key in ["aten::addmm", "AddmmBackward0", "aten::mm"] {
        assert_eq!(row(&stacks, key).stack, expected, "{key}");
    }
    let modules = rows(&trace, &GroupBy { module: true, ..GroupBy::default() });
    assert_eq!(row(&modules, "aten::addmm").module.as_deref(), Some("nn.Module: Linear_0"));
    // Backward operators have the module of the forward operator they belong to.
    assert_eq!(row(&modules, "aten::mm").module.as_deref(), Some("nn.Module: Linear_0"));
}

#[test]
fn lists_of_tensors_have_no_shape_in_tables() {
    let shapes = |dims| span("cpu_op", "aten::cat", 0, 10, 1, &json!({ "Input Dims": dims }));
    let trace = kineto::model(&[shapes(json!([[[3, 4], [5, 4]], []])), shapes(json!([[[1, 4]], []]))]);
    let rows = rows(&trace, &GroupBy { input_shapes: true, ..GroupBy::default() });
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].input_shapes, Some(vec![vec![], vec![]]));
}

#[test]
fn calls_are_distributed() {
    let calls: Vec<_> = (1..=100).map(|call| operator("op", call * 1000, call * 1000 + call, 1)).collect();
    let rows = rows(&kineto::model(&calls), &GroupBy::default());
    let calls = rows[0].calls;
    assert_eq!((calls.min.0, calls.p50.0, calls.p99.0, calls.max.0), (1, 50, 99, 100));
}

#[test]
fn the_report_has_a_cell_for_every_column() {
    let report = KeyAverages::compute(&golden_step(), &GroupBy::default()).report();
    let keys: Vec<&str> = report.columns.iter().map(|column| column.key).collect();
    assert!(keys.contains(&"self_device_time_total") && keys.contains(&"flops") && !keys.contains(&"stack"));
    assert!(report.rows.iter().all(|row| row.len() == keys.len()));
}

#[test]
fn wide_tables_have_the_own_time_of_a_call() {
    let trace = kineto::model(&[
        operator("aten::linear", 0, 100, 1),
        operator("aten::addmm", 10, 70, 1),
        operator("aten::linear", 200, 220, 1),
    ]);
    let own_time = |wide| {
        let report = Report::named("operators").unwrap();
        let options = ReportOptions { wide, sort: Some("count".to_owned()), ..ReportOptions::default() };
        let table = (report.tables)(&trace, &options).unwrap().remove(0);
        let index = table.columns.iter().position(|column| column.key == "self_cpu_time")?;
        Some(table.rows[0][index].clone())
    };
    assert_eq!(own_time(false), None);
    assert_eq!(own_time(true), Some(Cell::Duration(Duration(30))), "60 of two calls");
}
