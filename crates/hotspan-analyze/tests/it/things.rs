//! What is behind the rows of tables: the same numbers as the row, and the calls they are made of.

use std::collections::BTreeMap;

use hotspan_analyze::{Cell, Door, Model, Report, ReportOptions, Table, Thing, describe};
use serde_json::json;

use crate::kineto::{self, golden_step, span};

const REPORTS: [&str; 6] = ["operators", "shapes", "stacks", "modules", "threads", "kernels"];

fn table(model: &Model, report: &str) -> Table {
    let report = Report::named(report).unwrap();
    (report.tables)(model, &ReportOptions::default()).unwrap().swap_remove(0)
}

/// What all rows of all tables lead to, each with its row by the keys of columns.
fn opened(model: &Model) -> Vec<(BTreeMap<&'static str, Cell>, Thing)> {
    let mut found = Vec::new();
    for report in REPORTS {
        let table = table(model, report);
        assert_eq!(table.doors.len(), table.rows.len(), "{report}");
        for (row, door) in table.rows.iter().zip(&table.doors) {
            let thing = describe(model, door.as_ref().unwrap()).unwrap();
            let keys = table.columns.iter().map(|column| column.key);
            found.push((keys.zip(row.iter().cloned()).collect(), thing));
        }
    }
    found
}

fn door(kind: &str, name: &str) -> Door {
    let door = Door::new(kind).with("name", name);
    if kind == "operator" { door.with("device", "CPU") } else { door }
}

#[test]
fn a_thing_has_the_numbers_of_its_row() {
    let model = golden_step();
    let things = opened(&model);
    assert!(things.len() > 60);
    for (row, thing) in things {
        let shown = thing.row.columns.iter().map(|column| column.key).zip(&thing.row.rows[0]);
        for (key, cell) in shown {
            assert_eq!(Some(cell), row.get(key), "{} {key}", thing.name);
        }
        let number = |key: &str| row.get(key).cloned();
        let on_device = number("device").is_some_and(|device| device != Cell::text("CPU"));
        let total = if on_device { number("device_time_total") } else { number("cpu_time_total") };
        if thing.calls.count > 0 {
            assert_eq!(Some(Cell::Count(thing.calls.count)), number("count").or(number("calls")));
            assert_eq!(Some(Cell::Duration(thing.calls.total)), number("total").or(total), "{}", thing.name);
            assert_eq!(Some(Cell::Duration(thing.calls.slowest[0].duration)), number("max"));
        }
        assert_eq!(thing.calls.histogram.iter().map(|bucket| bucket.count).sum::<u64>(), thing.calls.count);
        assert_eq!(thing.calls.slowest.len() as u64, thing.calls.count.min(20));
        assert!(thing.calls.slowest.is_sorted_by(|one, two| one.duration >= two.duration));
    }
}

#[test]
fn a_kernel_leads_to_its_operator_module_and_stack() {
    let gemm = "sgemm";
    let launch = |at: i64, number: i64| {
        span("cuda_runtime", "cudaLaunchKernel", at, at + 10, 1, &json!({"correlation": number}))
    };
    let mm = |at: i64| span("cpu_op", "aten::mm", at, at + 50, 1, &json!({"Input Dims": [[2, 3], [3, 4]]}));
    let kernel = |at: i64, length: i64, number: i64| {
        span("kernel", gemm, at, at + length, 7, &json!({"correlation": number}))
    };
    let python = |name: &str, from: i64, to: i64| span("python_function", name, from, to, 1, &json!({}));
    let step = |number: i64, from: i64, to: i64| {
        span("user_annotation", &format!("ProfilerStep#{number}"), from, to, 1, &json!({}))
    };
    let model = kineto::model(&[
        step(3, 0, 1000),
        step(4, 1000, 2000),
        python("train.py(7): main", 0, 2000),
        python("nn.Module: Net_0", 50, 900),
        python("nn.Module: Linear_1", 60, 800),
        mm(100),
        launch(110, 1),
        mm(300),
        launch(310, 2),
        mm(1100),
        launch(1110, 3),
        kernel(400, 100, 1),
        kernel(600, 300, 2),
        kernel(1500, 200, 3),
    ]);
    let thing = describe(&model, &door("kernel", gemm)).unwrap();
    assert_eq!((thing.calls.count, thing.calls.total.0), (3, 600));
    let slowest: Vec<_> = thing.calls.slowest.iter().map(|call| (call.duration.0, call.step)).collect();
    assert_eq!(slowest, [(300, Some(3)), (200, Some(4)), (100, Some(3))]);
    assert_eq!(thing.calls.slowest[0].source.as_deref(), Some("train.py:7"));
    let trend = thing.trend.unwrap();
    let parts: Vec<_> =
        trend.parts.iter().map(|part| (part.first, part.calls, part.time.0, part.share())).collect();
    assert_eq!(parts, [(3, 2, 400, Some(40.0)), (4, 1, 200, Some(20.0))]);
    assert_eq!(trend.share, Some(30.0));
    let rows: Vec<_> =
        thing.tables.iter().map(|table| (table.id.as_str(), table.rows[0][0].clone())).collect();
    assert_eq!(
        rows,
        [
            ("launched_by", Cell::text("aten::mm")),
            ("shapes", Cell::text("[[2, 3], [3, 4]]")),
            ("modules", Cell::text("Net_0 / Linear_1")),
        ]
    );
    assert_eq!(thing.stacks[0].entries, ["nn.Module: Linear_1", "nn.Module: Net_0", "train.py(7): main"]);
    // And back: the operator's panel has the kernel.
    let operator = describe(&model, thing.tables[0].doors[0].as_ref().unwrap()).unwrap();
    assert_eq!((operator.kind, operator.name.as_str(), operator.calls.count), ("Operator", "aten::mm", 3));
    assert_eq!(
        operator.tables[0].rows[0][..3],
        [Cell::text(gemm), Cell::Count(3), Cell::Duration(thing.calls.total)]
    );
    assert_eq!(operator.tables[0].doors[0], Some(door("kernel", gemm)));
}

#[test]
fn doors_to_nothing_do_not_open() {
    let model = golden_step();
    for door in [
        Door::default(),
        door("kernel", "none"),
        door("operator", "none"),
        Door::new("kernel"),
        door("other", "x"),
    ] {
        assert_eq!(describe(&model, &door), None, "{door:?}");
    }
}

#[test]
fn absurd_traces_have_bounded_answers() {
    for (_, thing) in opened(&kineto::absurd()) {
        assert!(thing.calls.histogram.len() < 70);
    }
    let long = "x".repeat(5000);
    let many: Vec<_> = (0..3000)
        .flat_map(|number: i64| {
            let shape =
                json!({"Input Dims": [[number, 1]], "Call stack": format!("{long}.py(1): f{number}")});
            let step = format!("ProfilerStep#{number}");
            [
                span("user_annotation", &step, number * 100, number * 100 + 90, 1, &json!({})),
                span("cpu_op", "aten::mm", number * 100 + 10, number * 100 + 20 + number % 50, 1, &shape),
            ]
        })
        .collect();
    let thing = describe(&kineto::model(&many), &door("operator", "aten::mm")).unwrap();
    assert_eq!((thing.calls.count, thing.calls.slowest.len(), thing.tables[0].rows.len()), (3000, 20, 20));
    assert_eq!(thing.tables[0].title, "Input shapes (the first 20 of 3000)");
    assert_eq!(thing.trend.unwrap().parts.len(), 200);
    assert!(thing.stacks.len() <= 5);
    assert!(thing.stacks.iter().flat_map(|stack| &stack.entries).all(|entry| entry.len() < 2000));
}
