//! Files and lines of source with all that the trace has about each.

use std::collections::BTreeMap;

use hotspan_store::Bytes;

use super::Report;
use crate::model::source::is_users;
use crate::report::Table;
use crate::report::schema::{Schema, unless_zero};
use crate::source_lines::{LineCost, SourceLine, SourceLines};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "source",
    by: None,
    record: "hotspan run train.py    # or, for lines of chosen functions alone: python -m hotspan.lines train.py",
    tables: |model, options| {
        let lines = model.source_lines();
        if !options.my_code {
            return Ok(vec![source_files_table(lines), source_line_table(lines)]);
        }
        let mine = lines.iter().filter(|(line, _)| is_users(&line.file));
        let mine = mine.map(|(line, cost)| (line.clone(), *cost)).collect();
        Ok(vec![source_files_table(&mine), source_line_table(&mine)])
    },
}];

/// Files: their lines added up, most time first.
#[must_use]
pub fn source_files_table(lines: &SourceLines) -> Table {
    let mut files: BTreeMap<&str, LineCost> = BTreeMap::new();
    for (line, cost) in lines {
        // A call's time is at its own line and at those around it: only own times add up.
        let sum = files.entry(&line.file).or_default();
        sum.own += cost.own;
        sum.program += cost.program;
        sum.device += cost.device;
        sum.allocated += cost.allocated;
        sum.hits += cost.hits;
        sum.time += cost.time;
    }
    let mut rows: Vec<(&str, LineCost)> = files.into_iter().collect();
    rows.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.own.max(cost.time)));
    let schema = Schema::<(&str, LineCost)>::new("files", "Files")
        .text("file", "File", |row| row.0)
        .help("The source file.");
    with_costs(schema, |row| &row.1).table(&rows)
}

/// Lines, most time first.
#[must_use]
pub fn source_line_table(lines: &SourceLines) -> Table {
    let mut rows: Vec<(&SourceLine, &LineCost)> = lines.iter().collect();
    rows.sort_by_key(|(_, cost)| std::cmp::Reverse((cost.own.max(cost.time), cost.device, cost.total)));
    let schema = Schema::<(&SourceLine, &LineCost)>::new("lines", "Lines of source")
        .text("file", "File", |row| &row.0.file)
        .help("The source file.")
        .ordinal("line", "Line #", |row| u64::from(row.0.line))
        .help("The number of the line.")
        .text("function", "Function", |row| &row.0.function)
        .help("The function that the line is in.");
    with_costs(schema, |row| row.1).table(&rows)
}

/// Adds the columns of costs. Those without a value in any row are left out.
fn with_costs<'a, R>(schema: Schema<'a, R>, cost: fn(&R) -> &LineCost) -> Schema<'a, R> {
    let amount = |bytes: Bytes| (bytes.0 != 0).then_some(bytes);
    schema
        .duration("own", "Self CPU", move |row| unless_zero(cost(row).own))
        .help("Samples while this was the innermost line of Python.")
        .if_any()
        .duration("total", "CPU total", move |row| unless_zero(cost(row).total))
        .help("Samples while this was anywhere in the stack.")
        .if_any()
        .duration("program", "With library calls", move |row| unless_zero(cost(row).program))
        .help("Samples while this was the innermost line of the program's own files: its own time, and that of library code it called.")
        .if_any()
        .duration("device", "Device time launched", move |row| unless_zero(cost(row).device))
        .help("Time of the device work that was launched from here.")
        .if_any()
        .bytes("allocated", "Allocated", move |row| amount(cost(row).allocated))
        .help("Memory that was allocated from here, on all devices.")
        .if_any()
        .count("hits", "Hits", move |row| Some(cost(row).hits).filter(|&hits| hits > 0))
        .help("How often a line profiler saw it executed.")
        .if_any()
        .duration("time", "Time", move |row| unless_zero(cost(row).time))
        .help("The time that a line profiler saw it take.")
        .if_any()
        .bytes("increment", "Increment", move |row| amount(cost(row).increment))
        .help("By how much the process grew on it.")
        .if_any()
}
