//! Everything about the time of devices in one walk: the parts of `hotspan gpu`.

use crate::idle;
use crate::intervals::Interval;
use crate::launch_statistics::{LaunchStatistics, launch_statistics, launch_table};
use crate::model::Model;
use crate::report::Table;
use crate::roofline::{Roofline, roofline};
use crate::streams::{StreamRow, stream_table, streams};
use crate::utilisation::{Utilisation, communication_table, time_table, utilisation, utilisation_table};

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

impl Gpu {
    /// The tables, with the name that programs call each by; `limit` rows of those that are long, 0 for all.
    #[must_use]
    pub fn report(&self, model: &Model, limit: usize) -> Vec<(&'static str, Table)> {
        let mut tables = vec![
            ("devices", utilisation_table(&self.devices)),
            ("time", time_table(&self.devices)),
            ("communication", communication_table(&self.devices)),
            ("idle", idle::causes(model.idle())),
            ("culprits", idle::culprits(model)),
            ("gaps", idle::gaps(model, limit)),
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
