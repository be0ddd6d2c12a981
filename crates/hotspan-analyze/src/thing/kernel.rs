//! A row of the kernel table.

use super::{Thing, places};
use crate::kernels::{kernels, runs_of};
use crate::model::Model;
use crate::report::door::Door;

pub(super) fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let name = door.get("name")?;
    let kernels = kernels(model);
    let row = kernels.rows.iter().find(|row| row.name == name)?;
    let runs = runs_of(model, name);
    let tables = [places::launched_by, places::shapes, places::modules];
    let mut thing = Thing::new("Kernel", name, kernels.schema().table([row])).with_calls(model, &runs);
    thing.tables = tables.iter().filter_map(|table| table(model, &runs)).collect();
    Some(thing)
}
