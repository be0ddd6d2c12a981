//! Everything about the time of devices in one walk: the parts of `hotspan gpu`.

use hotspan_store::Trace;

use crate::device_work::DeviceWork;
use crate::events::Events;
use crate::host_activity::HostActivity;
use crate::idle::{self, DeviceIdle, idle_of};
use crate::intervals::Interval;
use crate::launch_calls::LaunchCalls;
use crate::launch_statistics::{LaunchStatistics, launch_statistics, launch_table};
use crate::nesting::Nesting;
use crate::report::Table;
use crate::roofline::{Roofline, roofline};
use crate::steps::recording;
use crate::streams::{StreamRow, stream_table, streams_of};
use crate::utilisation::{Utilisation, communication_table, time_table, utilisation, utilisation_table};

/// The device time of a trace.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// The time that was recorded.
    pub window: Interval,
    /// How well each device was used.
    pub devices: Vec<Utilisation>,
    /// Why devices were idle.
    pub idle: Vec<DeviceIdle>,
    /// What launching cost.
    pub launches: Vec<LaunchStatistics>,
    /// What each stream did.
    pub streams: Vec<StreamRow>,
    /// What operators could have taken at best.
    pub roofline: Roofline,
}

/// Analyses the device time of a trace; `None` when no device did anything.
#[must_use]
pub fn gpu(trace: &Trace) -> Option<Gpu> {
    let devices = DeviceWork::of(trace);
    if devices.is_empty() {
        return None;
    }
    let calls = LaunchCalls::of(trace);
    let activity = HostActivity::of(trace, &calls);
    let events = Events::of(trace);
    let nesting = Nesting::of(trace, &events);
    let window = recording(trace, &devices);
    let used = utilisation(trace, &devices, window);
    Some(Gpu {
        window,
        idle: idle_of(trace, &devices, &calls, &activity, &events, &nesting),
        launches: launch_statistics(trace, &devices, &calls),
        streams: streams_of(trace, &devices, &calls, window),
        roofline: roofline(trace, &devices, &events, &nesting),
        devices: used,
    })
}

impl Gpu {
    /// The tables, with the name that programs call each by; `limit` rows of those that are long, 0 for all.
    #[must_use]
    pub fn report(&self, trace: &Trace, limit: usize) -> Vec<(&'static str, Table)> {
        let mut tables = vec![
            ("devices", utilisation_table(&self.devices)),
            ("time", time_table(&self.devices)),
            ("communication", communication_table(&self.devices)),
            ("idle", idle::causes(&self.idle)),
            ("culprits", idle::culprits(trace, &self.idle)),
            ("gaps", idle::gaps(trace, &self.idle, limit)),
            ("launches", launch_table(&self.launches)),
            ("streams", stream_table(&self.streams, self.window)),
            ("flops_utilisation", self.roofline.utilisation_table()),
            ("roofline", self.roofline.table()),
        ];
        let long = ["culprits", "gaps", "roofline"];
        for (_, table) in tables.iter_mut().filter(|(name, _)| limit > 0 && long.contains(name)) {
            table.rows.truncate(limit);
        }
        tables.retain(|(_, table)| !table.rows.is_empty());
        tables
    }
}
