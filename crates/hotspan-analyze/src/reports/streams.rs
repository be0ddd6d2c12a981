//! What each stream did, and how much work was queued on it.

use super::{DEVICE, Report};
use crate::intervals::Interval;
use crate::report::schema::{Schema, share};
use crate::streams::{StreamRow, streams};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "streams",
    by: Some(("stream", "A stream of a device")),
    record: DEVICE,
    tables: |model, options| {
        let window = *model.recording();
        let rows = streams(model);
        Ok(vec![schema(window).show(&rows, options)?])
    },
}];

/// The columns; `window` is the recording.
pub(super) fn schema<'a>(window: Interval) -> Schema<'a, StreamRow> {
    Schema::<StreamRow>::new("streams", "Streams")
        .text("device", "Device", |row| row.device.to_string())
        .help("The number of the device.")
        .text("stream", "Stream", |row| &row.stream)
        .help("The stream as the trace calls it.")
        .count("kernels", "Kernels", |row| row.kernels)
        .help("How many kernels ran on it.")
        .count("copies", "Copies", |row| row.copies)
        .help("How many copies and fills ran on it.")
        .duration("busy", "Busy", |row| row.busy)
        .help("How long it did anything.")
        .percent("busy_share", "Busy %", move |row| share(row.busy, window.length()))
        .help("Part of the recording in which it did anything.")
        .duration("compute", "Compute", |row| row.by_kind[0])
        .help("How long kernels computed on it.")
        .duration("communication", "Communication", |row| row.by_kind[1])
        .help("How long kernels of communication libraries ran on it.")
        .duration("copy", "Copy", |row| row.by_kind[2])
        .help("How long it copied or filled memory.")
        .number("mean_queue", "Mean queue", |row| row.mean_queue)
        .help("Work that was launched but not begun, the mean over the recording.")
        .count("max_queue", "Max queue", |row| row.max_queue)
        .help("The most work that was launched but not begun.")
        .duration("full_queue", "Queue full", |row| row.full)
        .help("How long at least 1,022 pieces of work were queued, where CUDA makes launches wait.")
}
