//! Memory at its peak: of each process, with what it was doing while it grew, and of tensors where they were recorded, with who
//! held most of it.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, Ident, SampleRow, Timestamp, Trace};

use crate::model::Model;
use crate::model::memory_events::MemoryDevice;
use crate::overview::hot::program_line;
use crate::overview::imports::imported;
use crate::process_memory::ProcessSeries;
use crate::report::{Cell, Column, Table};

/// How many of those who hold memory are named.
const HOLDERS: usize = 3;

pub(super) fn memory(model: &Model) -> Option<Table> {
    let mut table = Table::new("Memory at its peak");
    table.columns = vec![
        Column::text("what", "What"),
        Column::bytes("bytes", "Bytes"),
        Column::duration("after", "After"),
        Column::text("holder", "Held by, or grown in"),
    ];
    for process in &model.process_memory().processes {
        let Some((time, bytes)) = process.peak_point() else { continue };
        let what = Cell::Text(format!("process {}", process.pid));
        let grown = growth(model, process, time);
        let grown = grown.iter().take(HOLDERS).map(|(what, bytes)| format!("{what} ({bytes})"));
        let grown = grown.collect::<Vec<_>>().join(", ");
        let grown = if grown.is_empty() { Cell::Missing } else { Cell::Text(grown) };
        table.add_row(vec![what, Cell::Bytes(bytes), Cell::Duration(Duration(time.0)), grown]);
    }
    for timeline in model.memory_timeline() {
        let holders: Vec<String> = timeline
            .holders
            .iter()
            .take(HOLDERS)
            .map(|holder| {
                let operator = if holder.operator.is_empty() { "no operator" } else { &holder.operator };
                format!("{operator} ({})", holder.bytes)
            })
            .collect();
        let device = match timeline.device {
            MemoryDevice { kind: 0, process: None, .. } => "CPU tensors".to_owned(),
            MemoryDevice { kind: 0, process: Some(process), .. } => {
                format!("CPU tensors (process {process})")
            }
            MemoryDevice { index, process: None, .. } => format!("device {index}"),
            MemoryDevice { index, process: Some(process), .. } => {
                format!("device {index} (process {process})")
            }
        };
        table.add_row(vec![
            Cell::Text(device),
            Cell::Bytes(timeline.peak),
            Cell::Duration(Duration(timeline.peak_time.0)),
            if holders.is_empty() { Cell::Missing } else { Cell::Text(holders.join(", ")) },
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// By how much a process grew until its peak, by what most samples of its main thread between two readings say it was doing.
fn growth(trace: &Trace, process: &ProcessSeries, peak: Timestamp) -> Vec<(String, Bytes)> {
    let pid = Ident::Int(process.pid);
    let is_main = |row: &SampleRow| {
        let track = trace.track(row.track);
        track.ident == pid && trace.process(track.process).ident == pid
    };
    let mut samples: Vec<SampleRow> = trace.profile().samples.rows().filter(is_main).collect();
    samples.sort_unstable_by_key(|row| row.time);
    let mut grown: HashMap<String, i64> = HashMap::new();
    for pair in process.points.windows(2).take_while(|pair| pair[1].0 <= peak) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        if after <= before {
            continue;
        }
        let first = samples.partition_point(|row| row.time < from);
        let between = samples[first..].iter().take_while(|row| row.time < to);
        let mut weights: HashMap<String, i64> = HashMap::new();
        for row in between {
            if let Some(what) = doing_what(trace, row) {
                *weights.entry(what).or_default() += row.weight.0.max(1);
            }
        }
        if let Some((what, _)) =
            weights.into_iter().max_by(|left, right| (left.1, &left.0).cmp(&(right.1, &right.0)))
        {
            *grown.entry(what).or_default() += after.0 - before.0;
        }
    }
    let mut grown: Vec<(String, Bytes)> =
        grown.into_iter().map(|(what, bytes)| (what, Bytes(bytes))).collect();
    grown.sort_unstable_by(|left, right| (right.1, &left.0).cmp(&(left.1, &right.0)));
    grown
}

/// Which package is imported, or which line of the program runs.
fn doing_what(trace: &Trace, sample: &SampleRow) -> Option<String> {
    if let Some(packages) = imported(trace, sample.stack) {
        return packages.last().map(|package| format!("import {package}"));
    }
    let row = trace.profile().frames.row(program_line(trace, sample.stack)?);
    let file = trace.str(row.file);
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), row.line))
}
