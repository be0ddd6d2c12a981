//! Everything about the time of devices in one walk: the parts of `hotspan gpu`.

use hotspan_store::Trace;

use crate::device_work::DeviceWork;
use crate::events::Events;
use crate::host_activity::HostActivity;
use crate::idle::{DeviceIdle, idle_of};
use crate::intervals::Interval;
use crate::launch_calls::LaunchCalls;
use crate::launch_statistics::{LaunchStatistics, launch_statistics};
use crate::nesting::Nesting;
use crate::roofline::{Roofline, roofline};
use crate::steps::recording;
use crate::streams::{StreamRow, streams_of};
use crate::utilisation::{Utilisation, utilisation};

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
