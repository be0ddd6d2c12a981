//! What cost most according to recorded calls: operators, ranges that the program marks, modules, kernels, recorded lines.

use hotspan_store::Duration;

use crate::averages::{Average, DeviceKind, GroupBy, KeyAverages};
use crate::kernels::kernels;
use crate::lines::{LineFunction, line_functions};
use crate::model::Model;
use crate::report::Table;
use crate::report::schema::{ReportOptions, Schema, share, unless_zero};
use crate::reports::lines::line_table;

/// Ranges that torch marks by itself; other sections are about them.
const OF_TORCH: [&str; 4] = ["ProfilerStep", "Optimizer.", "enumerate(DataLoader)", "## "];

pub(super) fn operators(averages: &KeyAverages, limit: usize) -> Option<Table> {
    let operators = |row: &&Average| {
        let is_torchs = OF_TORCH.iter().any(|name| row.key.starts_with(name));
        row.device == DeviceKind::Cpu && !row.is_user_annotation && !is_torchs
    };
    let mut rows: Vec<&Average> = averages.rows.iter().filter(operators).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.self_cpu_time_total.max(row.self_device_time_total)));
    let columns = [
        "name",
        "self_cpu_percent",
        "self_cpu_time_total",
        "cpu_time_total",
        "self_device_time_total",
        "self_cpu_memory_usage",
        "count",
    ];
    let table = averages.schema().table(rows.into_iter().take(limit));
    table.titled("Operators that cost most").with_columns(&columns).filled()
}

/// Ranges of `record_function`.
pub(super) fn ranges(averages: &KeyAverages, whole: Duration, limit: usize) -> Option<Table> {
    let is_users = |row: &&Average| {
        let is_of_torch = OF_TORCH.iter().any(|name| row.key.starts_with(name));
        // torch.compile marks each of its own phases.
        row.is_user_annotation && !is_of_torch && !row.key.contains("compile_id=")
    };
    let mut rows: Vec<&Average> =
        averages.rows.iter().filter(is_users).filter(|row| row.cpu_time_total.0 > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.cpu_time_total));
    rows.truncate(limit);
    Schema::<Average>::new("ranges", "Ranges that the program marks")
        .text("name", "Name", |row| &row.key)
        .help("The name that record_function was given.")
        .duration("cpu_time_total", "CPU total", |row| row.cpu_time_total)
        .help("The time of the range, all calls together.")
        .percent("share", "Share", move |row| share(row.cpu_time_total, whole))
        .help("The same as a share of the wall time.")
        .count("count", "# of Calls", |row| row.count)
        .help("How often the range was entered.")
        .table(rows)
        .filled()
}

/// `nn.Module`s, where calls of them were recorded.
pub(super) fn modules(model: &Model, limit: usize) -> Option<Table> {
    let is_module = |name: &str| name.starts_with("nn.Module: ");
    if !model.strings().iter().any(is_module) {
        return None;
    }
    let by_module = KeyAverages::compute(model, &GroupBy { module: true, ..GroupBy::default() });
    let mut sums: Vec<(String, Duration, Duration, u64)> = Vec::new();
    for row in &by_module.rows {
        let Some(module) = &row.module else { continue };
        let (cpu, device) = (row.self_cpu_time_total, row.self_device_time_total);
        match sums.iter_mut().find(|(name, ..)| name == module) {
            Some(sum) => {
                sum.1 += cpu;
                sum.2 += device;
                sum.3 += row.count;
            }
            None => sums.push((module.clone(), cpu, device, row.count)),
        }
    }
    sums.sort_by_key(|&(_, cpu, device, _)| std::cmp::Reverse(cpu.max(device)));
    sums.truncate(limit);
    Schema::<(String, Duration, Duration, u64)>::new("modules", "Modules that cost most")
        .text("module", "Module", |row| row.0.strip_prefix("nn.Module: ").unwrap_or(&row.0))
        .help("The nn.Module.")
        .duration("self_cpu_time_total", "Self CPU", |row| row.1)
        .help("Time of its operators on the processor, without the modules in it.")
        .duration("self_device_time_total", "Self device", |row| unless_zero(row.2))
        .help("Time of the kernels that its operators launched.")
        .count("count", "Operators", |row| row.3)
        .help("How many operators it called.")
        .table(&sums)
        .filled()
}

pub(super) fn device_work(model: &Model, limit: usize) -> Option<Table> {
    let mut table = kernels(model).report();
    table.rows.truncate(limit);
    table.titled("Kernels that cost most").with_columns(&["name", "total", "share", "calls", "mean"]).filled()
}

/// Lines that were recorded one by one, most time first.
pub(super) fn recorded_lines(model: &Model, limit: usize) -> Option<Table> {
    if model.profile().lines.is_empty() {
        return None;
    }
    let most =
        |key: &str| ReportOptions { sort: Some(key.to_owned()), limit: Some(limit), ..Default::default() };
    let has_memory = line_functions(model).iter().any(LineFunction::has_memory);
    let table = line_table(model, &most(if has_memory { "increment" } else { "time" })).ok()?;
    table.titled("Recorded lines that cost most").filled()
}
