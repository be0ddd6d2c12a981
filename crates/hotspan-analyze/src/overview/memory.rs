//! Memory at its peak: of each process, and of tensors where they were recorded, with who held most of it.

use hotspan_store::{Bytes, Duration, Trace};

use crate::memory_timeline::memory_timeline;
use crate::report::{Cell, Column, Table};

/// How many of those who hold memory are named.
const HOLDERS: usize = 3;

pub(super) fn memory(trace: &Trace) -> Option<Table> {
    let mut table = Table::new("Memory at its peak");
    table.columns = vec![
        Column::text("what", "What"),
        Column::bytes("bytes", "Bytes"),
        Column::duration("after", "After"),
        Column::text("holder", "Held by"),
    ];
    for peak in process_peaks(trace) {
        let what = Cell::Text(format!("process {}", peak.process));
        table.add_row(vec![what, Cell::Bytes(peak.bytes), Cell::Duration(peak.after), Cell::Missing]);
    }
    for timeline in memory_timeline(trace) {
        let holders: Vec<String> = timeline
            .holders
            .iter()
            .take(HOLDERS)
            .map(|holder| {
                let operator = if holder.operator.is_empty() { "no operator" } else { &holder.operator };
                format!("{operator} ({})", holder.bytes)
            })
            .collect();
        let device = if timeline.device.kind == 0 {
            "CPU tensors".to_owned()
        } else {
            format!("device {}", timeline.device.index)
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

/// The most a process held.
pub(super) struct Peak {
    pub(super) process: String,
    pub(super) bytes: Bytes,
    pub(super) after: Duration,
}

pub(super) fn process_peaks(trace: &Trace) -> Vec<Peak> {
    let resident = trace.arg("resident bytes");
    let mut peaks: Vec<Peak> = Vec::new();
    for row in trace.counters().events() {
        let Some(bytes) = resident.int(row.args) else { continue };
        let process = trace.process(trace.track(row.track).process).ident.display(trace.strings());
        let after = Duration(row.time.0);
        match peaks.iter_mut().find(|known| known.process == process) {
            Some(known) if known.bytes.0 >= bytes => {}
            Some(known) => (known.bytes, known.after) = (Bytes(bytes), after),
            None => peaks.push(Peak { process, bytes: Bytes(bytes), after }),
        }
    }
    peaks
}
