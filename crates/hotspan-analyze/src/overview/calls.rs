//! What cost most according to recorded calls: operators, ranges that the program marks, modules, kernels, recorded lines.

use hotspan_store::Duration;

use crate::averages::{Average, GroupBy, KeyAverages};
use crate::kernels::kernels;
use crate::lines::line_table;
use crate::model::Model;
use crate::report::{Cell, Column, Table};

/// Ranges that torch marks by itself; other sections are about them.
const OF_TORCH: [&str; 4] = ["ProfilerStep", "Optimizer.", "enumerate(DataLoader)", "## "];

pub(super) fn operators(averages: &KeyAverages, limit: usize) -> Option<Table> {
    let mut table = averages.report();
    let operators =
        |row: &Average| !row.is_user_annotation && !OF_TORCH.iter().any(|name| row.key.starts_with(name));
    let mut rows: Vec<_> =
        averages.rows.iter().zip(std::mem::take(&mut table.rows)).filter(|(row, _)| operators(row)).collect();
    rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.self_cpu_time_total.max(row.self_device_time_total)));
    table.rows = rows.into_iter().map(|(_, cells)| cells).take(limit).collect();
    "Operators that cost most".clone_into(&mut table.title);
    keep(
        &mut table,
        &[
            "name",
            "self_cpu_percent",
            "self_cpu_time_total",
            "cpu_time_total",
            "self_device_time_total",
            "self_cpu_memory_usage",
            "count",
        ],
    );
    (!table.rows.is_empty()).then_some(table)
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
    let mut table = Table::new("Ranges that the program marks");
    table.columns = vec![
        Column::text("name", "Name"),
        Column::duration("cpu_time_total", "CPU total"),
        Column::percent("share", "Share"),
        Column::count("count", "# of Calls"),
    ];
    for row in rows {
        let (total, share) = (Cell::Duration(row.cpu_time_total), Cell::share(row.cpu_time_total, whole));
        table.add_row(vec![Cell::text(&row.key), total, share, Cell::Count(row.count)]);
    }
    (!table.rows.is_empty()).then_some(table)
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
    let mut table = Table::new("Modules that cost most");
    table.columns = vec![
        Column::text("module", "Module"),
        Column::duration("self_cpu_time_total", "Self CPU"),
        Column::duration("self_device_time_total", "Self device"),
        Column::count("count", "Operators"),
    ];
    for (module, cpu, device, count) in sums {
        let device = if device.0 > 0 { Cell::Duration(device) } else { Cell::Missing };
        let name = module.strip_prefix("nn.Module: ").unwrap_or(&module);
        table.add_row(vec![Cell::text(name), Cell::Duration(cpu), device, Cell::Count(count)]);
    }
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn device_work(model: &Model, limit: usize) -> Option<Table> {
    let mut table = kernels(model).report();
    table.rows.truncate(limit);
    "Kernels that cost most".clone_into(&mut table.title);
    keep(&mut table, &["name", "total", "share", "calls", "mean"]);
    (!table.rows.is_empty()).then_some(table)
}

/// Lines that were recorded one by one, most time first.
pub(super) fn recorded_lines(model: &Model, limit: usize) -> Option<Table> {
    if model.profile().lines.is_empty() {
        return None;
    }
    let mut table = line_table(model);
    let _ = table.sort_by("time").or_else(|_| table.sort_by("increment"));
    table.rows.truncate(limit);
    "Recorded lines that cost most".clone_into(&mut table.title);
    (!table.rows.is_empty()).then_some(table)
}

/// Leaves only some columns: what fits a terminal.
fn keep(table: &mut Table, keys: &[&str]) {
    let wanted: Vec<bool> = table.columns.iter().map(|column| keys.contains(&column.key.as_str())).collect();
    let mut kept = wanted.iter();
    table.columns.retain(|_| kept.next().copied().unwrap_or(false));
    for row in &mut table.rows {
        let mut kept = wanted.iter();
        row.retain(|_| kept.next().copied().unwrap_or(false));
    }
}
