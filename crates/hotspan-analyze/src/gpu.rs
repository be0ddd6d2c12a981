//! Everything about the time of devices in one walk: the parts of `hotspan gpu`.

use crate::intervals::Interval;
use crate::launch_statistics::{LaunchStatistics, launch_statistics};
use crate::model::Model;
use crate::roofline::{Roofline, roofline};
use crate::streams::{StreamRow, streams};
use crate::utilisation::{Utilisation, utilisation};

/// The device time of a trace.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// The time that was recorded.
    pub window: Interval,
    /// How well each device was used.
    pub devices: Vec<Utilisation>,
    /// What launching cost.
    pub launches: Vec<LaunchStatistics>,
    /// What each stream did.
    pub streams: Vec<StreamRow>,
    /// What operators could have taken at best.
    pub roofline: Roofline,
}

/// Analyses the device time of a trace; `None` when no device did anything.
#[must_use]
pub fn gpu(model: &Model) -> Option<Gpu> {
    if model.device_work().is_empty() {
        return None;
    }
    Some(Gpu {
        window: *model.recording(),
        devices: utilisation(model),
        launches: launch_statistics(model),
        streams: streams(model),
        roofline: roofline(model),
    })
}
