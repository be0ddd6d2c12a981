//! What is behind the rows of tables: the same numbers as the row, and the calls they are made of.

use std::collections::BTreeMap;

use hotspan_analyze::memory_events::MemoryEvents;
use hotspan_analyze::{Cell, Door, Model, Report, ReportOptions, Table, Thing, describe};
use hotspan_store::{Bytes, Duration, FrameKind, FrameRow, LineRow, TraceBuilder};
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

/// A training of two steps: modules, Python functions, kernels with gaps between them, and memory.
fn training() -> Model {
    let python = |name: &str, from: i64, to: i64| span("python_function", name, from, to, 1, &json!({}));
    let mut events = Vec::new();
    for step in 0..2 {
        let at = step * 10_000;
        let mark = format!("ProfilerStep#{step}");
        events.push(span("user_annotation", &mark, at, at + 9000, 1, &json!({})));
        events.push(python("train.py(7): main", at + 10, at + 8900));
        events.push(python("nn.Module: Net_0", at + 20, at + 8000));
        events.push(python("nn.Module: Linear_1", at + 30, at + 3000 + step * 100));
        for (number, begin) in [(1, 100), (2, 2000), (3, 5000)] {
            let link = json!({"correlation": step * 3 + number});
            events.push(span("cpu_op", "aten::mm", at + begin, at + begin + 500, 1, &json!({})));
            events.push(span("cuda_runtime", "cudaLaunchKernel", at + begin + 50, at + begin + 80, 1, &link));
            events.push(span("kernel", "gemm", at + begin + 100, at + begin + 400, 7, &link));
            events.push(kineto::memory(at + begin + 20, 512 * number, 1, 1));
        }
    }
    kineto::model(&events)
}

#[test]
fn modules_functions_gaps_and_allocations_have_the_numbers_of_their_rows() {
    let model = training();
    let report = |id: &str| (Report::named(id).unwrap().tables)(&model, &ReportOptions::default()).unwrap();
    let mut tables: Vec<Table> = ["module_tree", "functions", "gpu"].into_iter().flat_map(report).collect();
    tables.push(MemoryEvents::of(&model, None).events_table());
    tables.retain(|table| !table.doors.is_empty());
    let ids: Vec<&str> = tables.iter().map(|table| table.id.as_str()).collect();
    assert_eq!(ids, ["modules", "functions", "culprits", "gaps", "events"]);
    for table in &tables {
        assert!(table.rows.len() > 1, "{}", table.id);
        for (row, door) in table.rows.iter().zip(&table.doors) {
            let thing = describe(&model, door.as_ref().unwrap()).unwrap();
            let cells: BTreeMap<_, _> = table.columns.iter().map(|column| column.key).zip(row).collect();
            for (column, cell) in thing.row.columns.iter().zip(&thing.row.rows[0]) {
                assert_eq!(Some(&cell), cells.get(column.key), "{} {}", table.id, column.key);
            }
            let count = ["calls", "ncalls", "pieces"].iter().find_map(|key| cells.get(key));
            if let Some(&count) = count {
                assert_eq!(Cell::Count(thing.calls.count), *count, "{} {}", table.id, thing.name);
            }
        }
    }
}

#[test]
fn a_module_has_its_operators_and_kernels_and_a_function_its_callers() {
    let model = training();
    let linear = describe(&model, &Door::new("module").with("path", "Net_0/Linear_1")).unwrap();
    assert_eq!((linear.calls.count, linear.calls.slowest[0].step), (2, Some(1)));
    let rows = |thing: &Thing| -> Vec<(String, Cell, Cell)> {
        let first = |table: &Table| (table.id.clone(), table.rows[0][0].clone(), table.rows[0][1].clone());
        thing.tables.iter().map(first).collect()
    };
    let named = |id: &str, name: &str, count| (id.to_owned(), Cell::text(name), Cell::Count(count));
    assert_eq!(
        rows(&linear),
        [
            named("launched", "gemm", 4),
            named("called", "aten::mm", 4),
            named("modules", "Net_0 / Linear_1", 2),
        ]
    );
    let main = Door::new("function").with("file", "train.py").with("line", "7").with("name", "main");
    let main = describe(&model, &main).unwrap();
    assert_eq!((main.source.as_deref(), main.calls.count), (Some("train.py:7"), 2));
    assert_eq!(rows(&main)[0], named("callees", "nn.Module: Net_0", 2));
}

#[test]
fn a_line_stands_among_those_of_its_function() {
    let mut builder = TraceBuilder::new();
    let kind = FrameKind::Python;
    let (name, file) = (builder.intern("count"), builder.intern("/code/words.py"));
    let function = builder.frame(FrameRow { name, file, line: 0, first_line: 3, kind });
    for (line, hits, time) in [(4, 1, 10), (5, 20, 300), (7, 20, 90)] {
        let (time, memory, increment) = (Duration(time), Bytes(0), Bytes(0));
        builder.push_line(LineRow { function, line, hits, time, memory, increment });
    }
    let model = Model::new(builder.finish());
    let table = table(&model, "lines");
    assert_eq!((table.rows.len(), table.doors.len()), (3, 3));
    let line = describe(&model, table.doors[1].as_ref().unwrap()).unwrap();
    assert_eq!((line.name.as_str(), line.source.as_deref()), ("words.py:5", Some("/code/words.py:5")));
    assert_eq!(line.row.rows, [table.rows[1].clone()]);
    assert_eq!((line.tables[0].title.as_str(), line.tables[0].rows.len()), ("Lines of count", 3));
    assert_eq!(line.tables[0].doors, table.doors);
}

#[test]
fn a_gap_says_when_it_was_and_what_was_behind_it() {
    let model = training();
    let table = hotspan_analyze::idle::gaps(&model, 0);
    let gap = describe(&model, table.doors[0].as_ref().unwrap()).unwrap();
    let stretch = gap.stretch.unwrap();
    assert_eq!(Cell::Duration(stretch.length()), table.rows[0][2]);
    let causes = &gap.tables[0];
    let sum: i64 =
        causes.rows.iter().map(|row| if let Cell::Duration(time) = row[1] { time.0 } else { 0 }).sum();
    assert_eq!(sum, stretch.length().0);
    assert!(gap.related.iter().any(|(what, _)| *what == "Next work"));
    let culprit = describe(&model, causes.doors.iter().flatten().next().unwrap()).unwrap();
    assert!(culprit.calls.total <= model.idle()[0].idle);
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
