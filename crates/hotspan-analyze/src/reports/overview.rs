//! The report of a whole program, for the dashboard: the tables of [`crate::overview`], by their titles.

use super::{Report, TORCH};
use crate::overview::overview;
use crate::report::Table;

pub(super) const REPORTS: &[Report] = &[Report {
    id: "overview",
    by: None,
    record: TORCH,
    tables: |model, _| Ok(overview(model).report().into_iter().map(by_title).collect()),
}];

/// The dashboard calls tables of facts by their titles.
pub(super) fn by_title(table: Table) -> Table {
    Table { id: table.title.clone(), ..table }
}
