//! The text of tables. `golden/make_tables.py`, beside the trace, had torch print what is expected here.

use hotspan::torch_table::{TableOptions, TimeUnit, table};
use hotspan_analyze::{GroupBy, KeyAverages};

use crate::kineto;

fn print(group_by: &GroupBy, options: &TableOptions) -> String {
    table(&KeyAverages::compute(&kineto::golden_step(), group_by), options).unwrap()
}

/// Like `assert_eq`, but shows the first line that differs.
fn assert_same(ours: &str, torch: &str) {
    for (number, (ours, torch)) in ours.lines().zip(torch.lines()).enumerate() {
        assert_eq!(ours, torch, "line {}", number + 1);
    }
    assert_eq!(ours, torch);
}

#[test]
fn by_name() {
    assert_same(
        &print(&GroupBy::default(), &TableOptions::default()),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.name.txt"),
    );
}

#[test]
fn sorted_and_limited() {
    let options = TableOptions {
        sort_by: Some("self_cuda_time_total".to_owned()),
        row_limit: Some(4),
        ..TableOptions::default()
    };
    assert_same(
        &print(&GroupBy::default(), &options),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.sorted.txt"),
    );
}

#[test]
fn top_level_with_header_in_one_unit() {
    let options = TableOptions {
        top_level_events_only: true,
        header: Some("One step".to_owned()),
        time_unit: Some(TimeUnit::Milliseconds),
        row_limit: None,
        ..TableOptions::default()
    };
    assert_same(
        &print(&GroupBy::default(), &options),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.top_level.txt"),
    );
}

#[test]
fn narrow_names() {
    let options = TableOptions {
        max_name_column_width: Some(20),
        time_unit: Some(TimeUnit::Seconds),
        ..TableOptions::default()
    };
    assert_same(
        &print(&GroupBy::default(), &options),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.narrow.txt"),
    );
}

#[test]
fn by_shapes() {
    let group_by = GroupBy { input_shapes: true, ..GroupBy::default() };
    let options = TableOptions { max_shapes_column_width: Some(30), ..TableOptions::default() };
    assert_same(
        &print(&group_by, &options),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.shapes.txt"),
    );
}

#[test]
fn by_overload() {
    let group_by = GroupBy { overload_name: true, ..GroupBy::default() };
    assert_same(
        &print(&group_by, &TableOptions::default()),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.overload.txt"),
    );
}

#[test]
fn by_stack() {
    let group_by = GroupBy { stack_depth: 2, ..GroupBy::default() };
    let options =
        TableOptions { max_src_column_width: Some(60), flops: Some(false), ..TableOptions::default() };
    assert_same(
        &print(&group_by, &options),
        include_str!("../../../hotspan-analyze/tests/it/golden/step.stack.txt"),
    );
}

/// torch prints FLOPs under `Source Location` and the location under FLOPs.
#[test]
fn stacks_and_flops_stand_under_their_own_titles() {
    let group_by = GroupBy { stack_depth: 1, ..GroupBy::default() };
    let text = print(&group_by, &TableOptions::default());
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let titles = cells(text.lines().nth(1).unwrap());
    let row = cells(text.lines().find(|line| line.contains("aten::addmm")).unwrap());
    assert_eq!(titles[titles.len() - 2..], ["Source Location", "Total KFLOPs"]);
    assert_eq!(row[row.len() - 2..], ["model.py(12): forward", "524.288"]);
}

#[test]
fn more_than_torch_only_when_asked() {
    let options = TableOptions {
        sort_by: Some("max".to_owned()),
        row_limit: Some(3),
        extra: vec!["min", "p50", "p99", "max", "wall_percent"],
        ..TableOptions::default()
    };
    let text = print(&GroupBy::default(), &options);
    let shown: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(shown[1][14..], ["# of Calls", "Min", "p50", "p99", "Max", "Wall %", "Total KFLOPs"]);
    let step = ["1", "1.500ms", "1.500ms", "1.500ms", "1.500ms", "100.00%", "--"];
    assert_eq!(shown[3][14..], step);
}

#[test]
fn nothing_gives_nothing() {
    let averages = KeyAverages::compute(&kineto::model(&[]), &GroupBy::default());
    assert_eq!(table(&averages, &TableOptions::default()), Ok(String::new()));
}

#[test]
fn an_unknown_key_says_which_are_known() {
    let averages = KeyAverages::compute(&kineto::golden_step(), &GroupBy::default());
    let options = TableOptions { sort_by: Some("speed".to_owned()), ..TableOptions::default() };
    let error = table(&averages, &options).unwrap_err();
    let keys = [
        "key",
        "count",
        "cpu_time",
        "cpu_time_total",
        "self_cpu_time_total",
        "device_time",
        "device_time_total",
        "self_device_time_total",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "device_memory_usage",
        "self_device_memory_usage",
        "flops",
        "input_shapes",
        "overload_name",
        "stack",
        "min",
        "p50",
        "p99",
        "max",
        "wall",
        "scope",
    ];
    for key in keys {
        assert!(error.valid.contains(&key), "{key}");
        assert!(averages.sorted(Some(key)).is_ok(), "{key}");
    }
    assert!(averages.sorted(Some("self_cuda_time_total")).is_ok());
    let words = error.to_string();
    assert!(words.starts_with("cannot sort by `speed`; valid keys: key, overload_name, device,"), "{words}");
}

#[test]
fn absurd_times_and_widths_do_not_panic() {
    let everything = GroupBy { input_shapes: true, stack_depth: 3, module: true, ..GroupBy::default() };
    let averages = KeyAverages::compute(&kineto::absurd(), &everything);
    let options = TableOptions {
        max_name_column_width: Some(0),
        max_shapes_column_width: Some(0),
        max_src_column_width: Some(0),
        flops: Some(true),
        ..TableOptions::default()
    };
    assert!(table(&averages, &options.wide()).unwrap().contains("Self CPU time total"));
}
