//! A row of the table of allocations: a block of memory, who allocated it, and from where.

use hotspan_store::SpanId;

use super::{Thing, places};
use crate::intervals::Interval;
use crate::memory_events::MemoryEvents;
use crate::model::Model;
use crate::report::door::Door;

pub(super) fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let number: usize = door.get("block")?.parse().ok()?;
    let block = model.memory_blocks().blocks.get(number)?;
    let row = MemoryEvents::of(model, None).event_row(number)?;
    let name = format!("{} on {}", block.bytes, block.device.name());
    let (first, length) = model.window();
    let (begin, end) = (block.allocated.unwrap_or(first), block.released.unwrap_or(first.plus(length)));
    let site = block.operator.or(block.function);
    let thing = Thing { stretch: Some(Interval::new(begin, end)), ..Thing::new("Allocation", &name, row) };
    let thing = thing.with_related(model, "Allocated by", site);
    let calls: Vec<SpanId> = site.into_iter().collect();
    let tables = [places::shapes(model, &calls), places::modules(model, &calls)];
    let tables = tables.into_iter().flatten().collect();
    Some(Thing { tables, stacks: places::stacks(model, &calls), ..thing })
}
