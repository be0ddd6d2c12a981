//! A row of the operator table, however that is grouped: an operator, a marked range, or a kernel.

use super::{Thing, places};
use crate::averages::{DeviceKind, KeyAverages};
use crate::model::Model;
use crate::report::door::Door;
use crate::reports::operators::grouped_by;

pub(super) fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let group_by = grouped_by(door);
    let (averages, row, calls) =
        KeyAverages::compute_with_calls(model, &group_by, |row| row.door(&group_by) == *door)?;
    let row = &averages.rows[row];
    let on_device = row.device != DeviceKind::Cpu;
    let kind = match (row.is_user_annotation, on_device) {
        (true, _) => "Marked range",
        (false, true) => "Kernel",
        (false, false) => "Operator",
    };
    let launch = if on_device { places::launched_by } else { places::launched };
    let tables = [launch, places::shapes, places::modules];
    let mut thing = Thing::new(kind, &row.key, averages.schema().table([row])).with_calls(model, &calls);
    thing.tables = tables.iter().filter_map(|table| table(model, &calls)).collect();
    Some(thing)
}
