//! Where the time of steps goes: one table for devices, one for the host.

use hotspan_store::Duration;

use super::Report;
use crate::report::Table;
use crate::report::schema::{Schema, share};
use crate::steps::{DeviceStep, HostStep, Steps};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "steps",
    by: None,
    record: "call prof.step() after each step of the loop, with a schedule passed to hotspan.profiler.profile",
    tables: |model, _| Ok(model.step_times().report()),
}];

impl Steps {
    /// The tables that have rows.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        let devices = Schema::<DeviceStep>::new("devices", "Steps on the device")
            .text("step", "Step", |row| name(row.step))
            .help("The number of the step; all, where the trace has no marks.")
            .text("device", "Device", |row| row.device.to_string())
            .help("The number of the device.")
            .duration("begin", "Begin", |row| Duration(row.begin.0))
            .help("When the step began on the device, from the start of the trace.")
            .duration("time", "Time", |row| row.time)
            .help("How long it took: compute, exposed communication, exposed copy and idle add up to it.")
            .duration("compute", "Compute", |row| row.compute)
            .help("A kernel computed.")
            .duration("communication", "Exposed communication", |row| row.communication)
            .help("Communication while nothing computed: what overlapping would hide.")
            .duration("copy", "Exposed copy", |row| row.copy)
            .help("Copies while nothing computed or communicated.")
            .duration("idle", "Idle", |row| row.idle)
            .help("The device did nothing on any stream.")
            .percent("compute_share", "Compute %", |row| share(row.compute, row.time))
            .help("Compute as a share of the step.")
            .percent("idle_share", "Idle %", |row| share(row.idle, row.time))
            .help("Idle time as a share of the step.");
        let host = Schema::<HostStep>::new("host", "Steps on the host")
            .text("step", "Step", |row| name(row.step))
            .help("The number of the step; all, where the trace has no marks.")
            .duration("begin", "Begin", |row| Duration(row.begin.0))
            .help("When the step began, from the start of the trace.")
            .duration("time", "Time", |row| row.time)
            .help("How long it took; the parts that follow add up to it.")
            .duration("data_loader", "DataLoader", |row| row.data_loader)
            .help("A thread waited for a batch of a DataLoader.")
            .duration("waiting", "Waiting for device", |row| row.waiting)
            .help("A thread waited for the device in a call that synchronizes.")
            .duration("runtime", "Runtime", |row| row.runtime)
            .help("A thread was in another call of the runtime or the driver.")
            .duration("operators", "Operators", |row| row.operators)
            .help("A thread ran an operator.")
            .duration("python", "Python", |row| row.python)
            .help("A thread that launches work ran a Python function; known where stacks were recorded.")
            .duration("other", "Other", |row| row.other)
            .help("Nothing that was recorded ran.");
        [devices.table(&self.devices), host.table(&self.host)].into_iter().filter_map(Table::filled).collect()
    }
}

fn name(number: Option<i64>) -> String {
    number.map_or_else(|| "all".to_owned(), |number| number.to_string())
}
