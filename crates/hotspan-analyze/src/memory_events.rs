//! Single allocations, and what operators allocated, in a stretch of time.
//!
//! [`crate::memory_blocks`] pairs allocations with releases; [`crate::memory_timeline`] knows the peak. Here are the tables that
//! list them: each block with its times, and sums by operator.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, Timestamp};

use crate::intervals::Interval;
use crate::memory_blocks::Block;
use crate::memory_category::MemoryCategory;
use crate::memory_timeline::DeviceTimeline;
use crate::model::Model;
use crate::model::memory_events::MemoryDevice;
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::Schema;

const OUTSIDE: &str = "(outside of operators)";

/// The kind of doors to allocations.
pub(crate) const ALLOCATION: &str = "allocation";

/// A block with its number among all of the trace.
type NumberedBlock<'a> = (usize, &'a Block);

/// The allocations and releases of a stretch of time.
#[derive(Debug)]
pub struct MemoryEvents<'a> {
    model: &'a Model,
    window: Option<Interval>,
}

/// What an operator allocated on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    allocations: u64,
    allocated: Bytes,
    releases: u64,
    released: Bytes,
    largest: Bytes,
}

impl<'a> MemoryEvents<'a> {
    /// Of a trace, or of a stretch of it.
    #[must_use]
    pub fn of(model: &'a Model, window: Option<Interval>) -> Self {
        Self { model, window }
    }

    fn is_within(&self, time: Option<Timestamp>) -> bool {
        let within = |window: Interval, time| window.begin <= time && time <= window.end;
        time.is_some_and(|time| self.window.is_none_or(|window| within(window, time)))
    }

    fn operator(&self, block: &Block) -> &'a str {
        block.operator.map_or(OUTSIDE, |span| self.model.span_name(span))
    }

    /// Each block that was allocated or released then, largest first.
    #[must_use]
    pub fn events_table(&self) -> Table {
        let touched =
            |block: &NumberedBlock<'_>| self.is_within(block.1.allocated) || self.is_within(block.1.released);
        let all = self.model.memory_blocks().blocks.iter().enumerate();
        let mut blocks: Vec<NumberedBlock<'_>> = all.filter(touched).collect();
        blocks.sort_by_key(|(_, block)| (std::cmp::Reverse(block.bytes.0), block.allocated));
        self.events_schema().table(&blocks)
    }

    /// The row of one block.
    pub(crate) fn event_row(&self, number: usize) -> Option<Table> {
        let block = self.model.memory_blocks().blocks.get(number)?;
        let row = [(number, block)];
        Some(self.events_schema().table(&row))
    }

    fn events_schema<'b>(&'b self) -> Schema<'b, NumberedBlock<'b>> {
        let moment = |time: Option<Timestamp>| time.map(|time| Duration(time.0));
        Schema::<NumberedBlock<'b>>::new("events", "Allocations")
            .text("operator", "Allocated by", |(_, block)| self.operator(block))
            .help("The operator that allocated the memory.")
            .text("device", "Device", |(_, block)| block.device.name())
            .help("The device whose memory it is.")
            .text("category", "Used for", |(_, block)| block.category.title())
            .help("What the memory was used for.")
            .bytes("bytes", "Bytes", |(_, block)| block.bytes)
            .help("How much was allocated.")
            .duration("allocated_at", "Allocated at", move |(_, block)| moment(block.allocated))
            .help("When it was allocated, from the start of the trace; empty when that was before.")
            .duration("released_at", "Released at", move |(_, block)| moment(block.released))
            .help("When it was released, from the start of the trace; empty when that was after it.")
            .duration("held", "Held", |(_, block)| Some(block.released?.since(block.allocated?)))
            .help("From the allocation to the release.")
            .door(|(number, _)| Some(Door::new(ALLOCATION).with("block", number.to_string())))
    }

    /// What each operator allocated on each device then, most first. A release counts for the operator that allocated.
    #[must_use]
    pub fn statistics_table(&self) -> Table {
        let mut sums: HashMap<(MemoryDevice, &str), Sums> = HashMap::new();
        for block in &self.model.memory_blocks().blocks {
            let key = (block.device, self.operator(block));
            if self.is_within(block.allocated) {
                let row = sums.entry(key).or_default();
                row.allocations += 1;
                row.allocated += block.bytes;
                row.largest = row.largest.max(block.bytes);
            }
            if self.is_within(block.released) {
                let row = sums.entry(key).or_default();
                row.releases += 1;
                row.released += block.bytes;
            }
        }
        let mut sorted: Vec<_> = sums.into_iter().collect();
        sorted.sort_by_key(|&(key, row)| (std::cmp::Reverse(row.allocated), key));
        Schema::<((MemoryDevice, &str), Sums)>::new("statistics", "Memory by operator")
            .text("operator", "Operator", |row| row.0.1)
            .help("The operator that allocated.")
            .text("device", "Device", |row| row.0.0.name())
            .help("The device whose memory it is.")
            .count("allocations", "Allocations", |row| row.1.allocations)
            .help("How many allocations it made.")
            .bytes("allocated", "Allocated", |row| row.1.allocated)
            .help("How much it allocated.")
            .count("releases", "Releases", |row| row.1.releases)
            .help("How many of its allocations were released.")
            .bytes("released", "Released", |row| row.1.released)
            .help("How much of what it allocated was released.")
            .bytes("increase", "Increase", |row| row.1.allocated - row.1.released)
            .help("How much more was allocated than released.")
            .bytes("largest", "Largest", |row| row.1.largest)
            .help("The largest single allocation.")
            .table(&sorted)
    }
}

/// What the peak of each device was used for.
#[must_use]
pub fn peak_table(devices: &[DeviceTimeline]) -> Table {
    let mut rows: Vec<(&DeviceTimeline, MemoryCategory, Bytes)> = Vec::new();
    for device in devices {
        let used = MemoryCategory::ALL.map(|category| (device, category, device.peak_use[category.index()]));
        rows.extend(used.into_iter().filter(|(_, _, bytes)| bytes.0 != 0));
    }
    Schema::<(&DeviceTimeline, MemoryCategory, Bytes)>::new("peak", "Used for, at the peak")
        .text("device", "Device", |row| row.0.device.name())
        .help("The device whose memory it is.")
        .text("category", "Used for", |row| row.1.title())
        .help("What the memory was used for.")
        .bytes("bytes", "Bytes", |row| row.2)
        .help("How much was held for that when the device held most.")
        .percent("share", "Peak %", |row| {
            (row.0.peak.0 != 0).then(|| row.2.0 as f64 * 100.0 / row.0.peak.0 as f64)
        })
        .help("The same as a share of the peak.")
        .duration("at", "At", |row| Duration(row.0.peak_time.0))
        .help("When the device held most, from the start of the trace.")
        .table(&rows)
}
