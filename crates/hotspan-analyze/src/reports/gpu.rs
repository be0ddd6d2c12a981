//! Everything about the time of devices: the tables of `hotspan gpu`.

mod launches;
mod roofline;
mod utilisation;

use super::{DEVICE, Report, streams};
use crate::model::Model;
use crate::gpu::{Gpu, gpu};
use crate::idle::{causes, culprits, gaps};
use crate::report::Table;

/// Rows of long tables, unless somebody says how many.
const LIMIT: usize = 100;

pub(super) const REPORTS: &[Report] = &[Report {
    id: "gpu",
    by: None,
    record: DEVICE,
    tables: |model, options| {
        let limit = options.limit.unwrap_or(LIMIT);
        Ok(gpu(model).map_or_else(Vec::new, |gpu| gpu.report(model, limit)))
    },
}];

impl Gpu {
    /// The tables that have rows; `limit` rows of those that are long, 0 for all.
    #[must_use]
    pub fn report(&self, model: &Model, limit: usize) -> Vec<Table> {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let shortened = |mut table: Table| {
            table.rows.truncate(limit);
            table
        };
        let tables = [
            utilisation::devices(&self.devices),
            utilisation::time(&self.devices),
            utilisation::communication(&self.devices),
            causes(model.idle()),
            shortened(culprits(model)),
            gaps(model, limit),
            launches::launches(&self.launches),
            streams::schema(self.window).table(&self.streams),
            roofline::utilisation(&self.roofline),
            shortened(roofline::roofline(&self.roofline)),
        ];
        tables.into_iter().filter_map(Table::filled).collect()
    }
}
