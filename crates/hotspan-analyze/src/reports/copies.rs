//! Copies and fills by kind.

use hotspan_store::Duration;

use super::{DEVICE, Report};
use crate::copies::{CopyRow, copies};
use crate::report::schema::{Schema, share, unless_empty};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "copies",
    by: Some(("copy", "Copies and fills of a kind")),
    record: DEVICE,
    tables: |model, options| {
        let rows = copies(model);
        Ok(vec![schema(&rows).show(&rows, options)?])
    },
}];

fn schema(copies: &[CopyRow]) -> Schema<'_, CopyRow> {
    let total: Duration = copies.iter().map(|row| row.total).sum();
    Schema::<CopyRow>::new("copies", "Copies")
        .text("kind", "Kind", |row| &row.kind)
        .help("From where to where: host to device (HtoD), device to host (DtoH) …; Fill sets memory to a value.")
        .text("from", "From", |row| unless_empty(&row.from))
        .help("The kind of memory it reads; copies from pageable memory block the host.")
        .text("to", "To", |row| unless_empty(&row.to))
        .help("The kind of memory it writes.")
        .count("calls", "Calls", |row| row.count)
        .help("How many there were.")
        .duration("total", "Total", |row| row.total)
        .help("The time of all of them.")
        .percent("share", "Copies %", move |row| share(row.total, total))
        .help("Its total as a share of that of all copies and fills.")
        .bytes("bytes", "Bytes", |row| row.bytes)
        .help("How many bytes in all.")
        .number("rate", "GB/s", CopyRow::rate)
        .help("All bytes over all time, in 10^9 bytes a second.")
        .number("min_rate", "Min GB/s", |row| Some(row.rates?.0))
        .help("The rate of the slowest.")
        .number("max_rate", "Max GB/s", |row| Some(row.rates?.1))
        .help("The rate of the fastest.")
        .bytes("min_bytes", "Min Bytes", |row| Some(row.sizes?.0))
        .help("The size of the smallest.")
        .bytes("max_bytes", "Max Bytes", |row| Some(row.sizes?.1))
        .help("The size of the largest.")
        .duration("min", "Min", |row| row.min)
        .help("The time of the shortest.")
        .duration("max", "Max", |row| row.max)
        .help("The time of the longest.")
}
