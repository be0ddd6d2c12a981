//! How well devices were used, where their time went, and how much of their communication was hidden.

use hotspan_store::Duration;

use crate::report::Table;
use crate::report::schema::{Schema, share};
use crate::utilisation::Utilisation;

pub(super) fn devices(devices: &[Utilisation]) -> Table {
    Schema::<Utilisation>::new("devices", "Devices")
        .text("device", "Device", |row| row.device.to_string())
        .help("The number of the device.")
        .text("name", "Name", |row| row.name.as_deref())
        .help("What the device calls itself.")
        .duration("time", "Recording", |row| row.time.time)
        .help("From the first step mark or device work to the last; without marks, from the first span to the last.")
        .duration("busy", "Busy", Utilisation::busy)
        .help("The device did anything: computed, communicated or copied.")
        .percent("busy_share", "Busy %", |row| share(row.busy(), row.time.time))
        .help("Part of the recording in which the device did anything: computed, communicated or copied.")
        .percent("utilisation", "GPU Utilization", |row| share(row.kernels, row.time.time))
        .help("Part of the recording in which a kernel ran; copies do not count.")
        .percent("sm_efficiency", "Est. SM Efficiency", |row| row.sm_efficiency)
        .help("Part of its multiprocessors that had work, as estimated from the size of kernels; the mean over the recording.")
        .percent("occupancy", "Est. Achieved Occupancy", |row| row.occupancy)
        .help("Part of the warps a multiprocessor can hold that were there, as the trace estimates it, weighted by duration.")
        .percent("tensor_cores", "Tensor Cores", |row| share(row.tensor_total, row.kernel_total))
        .help("Part of the kernel time in kernels whose names say that they use tensor cores.")
        .table(devices)
}

/// A device, a part of its time and how long that is: parts do not overlap and add up.
type Part<'a> = (&'a Utilisation, &'static str, Duration);

pub(super) fn time<'a>(devices: &'a [Utilisation]) -> Table {
    let parts = |row: &'a Utilisation| {
        let time = &row.time;
        [
            (row, "compute", time.compute),
            (row, "exposed communication", time.communication),
            (row, "exposed copy", time.copy),
            (row, "idle", time.idle),
        ]
    };
    let rows: Vec<Part<'_>> = devices.iter().flat_map(parts).collect();
    Schema::<Part<'_>>::new("time", "Device time")
        .text("device", "Device", |row| row.0.device.to_string())
        .help("The number of the device.")
        .text("part", "Part", |row| row.1)
        .help("What the device did; communication and copies are exposed where nothing computes beside them.")
        .duration("total", "Total", |row| row.2)
        .help("How long it did that; the parts add up to the recording.")
        .percent("share", "Recording %", |row| share(row.2, row.0.time.time))
        .help("The part as a share of the recording.")
        .table(&rows)
}

/// No rows where nothing communicates.
pub(super) fn communication(devices: &[Utilisation]) -> Table {
    let exposed = |row: &Utilisation| row.communication - row.overlapped;
    Schema::<Utilisation>::new("communication", "Communication")
        .text("device", "Device", |row| row.device.to_string())
        .help("The number of the device.")
        .duration("total", "Total", |row| row.communication)
        .help("How long a kernel communicated.")
        .duration("overlapped", "Beside compute", |row| row.overlapped)
        .help("Communication while a kernel computed, too.")
        .duration("exposed", "Exposed", exposed)
        .help("Communication while nothing computed: what overlapping would hide.")
        .percent("overlap", "Overlap %", |row| share(row.overlapped, row.communication))
        .help("The share of communication that runs beside a computing kernel.")
        .percent("exposed_share", "Exposed, of recording", move |row| share(exposed(row), row.time.time))
        .help("Exposed communication as a share of the recording.")
        .table(devices.iter().filter(|row| row.communication > Duration::ZERO))
}
