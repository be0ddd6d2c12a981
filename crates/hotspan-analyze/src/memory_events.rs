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
use crate::report::{Cell, Column, Table};

const OUTSIDE: &str = "(outside of operators)";

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
        let touched = |block: &&Block| self.is_within(block.allocated) || self.is_within(block.released);
        let mut blocks: Vec<&Block> = self.model.memory_blocks().blocks.iter().filter(touched).collect();
        blocks.sort_by_key(|block| (std::cmp::Reverse(block.bytes.0), block.allocated));
        let moment =
            |time: Option<Timestamp>| time.map_or(Cell::Missing, |time| Cell::Duration(Duration(time.0)));
        let rows = || blocks.iter();
        let mut table = Table::new("Allocations");
        table.add_column(
            Column::text("operator", "Allocated by"),
            rows().map(|block| Cell::text(self.operator(block))),
        );
        table.add_column(
            Column::text("device", "Device"),
            rows().map(|block| Cell::Text(block.device.name())),
        );
        table.add_column(
            Column::text("category", "Used for"),
            rows().map(|block| Cell::text(block.category.title())),
        );
        table.add_column(Column::bytes("bytes", "Bytes"), rows().map(|block| Cell::Bytes(block.bytes)));
        table.add_column(
            Column::duration("allocated_at", "Allocated at"),
            rows().map(|block| moment(block.allocated)),
        );
        table.add_column(
            Column::duration("released_at", "Released at"),
            rows().map(|block| moment(block.released)),
        );
        let held = |block: &&Block| match (block.allocated, block.released) {
            (Some(begin), Some(end)) => Cell::Duration(end.since(begin)),
            _ => Cell::Missing,
        };
        table.add_column(Column::duration("held", "Held"), rows().map(held));
        table
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
        let mut table = Table::new("Memory by operator");
        table.columns = vec![
            Column::text("operator", "Operator"),
            Column::text("device", "Device"),
            Column::count("allocations", "Allocations"),
            Column::bytes("allocated", "Allocated"),
            Column::count("releases", "Releases"),
            Column::bytes("released", "Released"),
            Column::bytes("increase", "Increase"),
            Column::bytes("largest", "Largest"),
        ];
        for ((device, operator), row) in sorted {
            table.add_row(vec![
                Cell::text(operator),
                Cell::Text(device.name()),
                Cell::Count(row.allocations),
                Cell::Bytes(row.allocated),
                Cell::Count(row.releases),
                Cell::Bytes(row.released),
                Cell::Bytes(row.allocated - row.released),
                Cell::Bytes(row.largest),
            ]);
        }
        table
    }
}

/// What the peak of each device was used for.
#[must_use]
pub fn peak_table(devices: &[DeviceTimeline]) -> Table {
    let mut table = Table::new("Used for, at the peak");
    table.columns = vec![
        Column::text("device", "Device"),
        Column::text("category", "Used for"),
        Column::bytes("bytes", "Bytes"),
        Column::percent("share", "Peak %"),
        Column::duration("at", "At"),
    ];
    for device in devices {
        let share = |bytes: Bytes| match device.peak.0 {
            0 => Cell::Missing,
            whole => Cell::Percent(bytes.0 as f64 * 100.0 / whole as f64),
        };
        for category in MemoryCategory::ALL {
            let bytes = device.peak_use[category.index()];
            if bytes.0 != 0 {
                table.add_row(vec![
                    Cell::Text(device.device.name()),
                    Cell::text(category.title()),
                    Cell::Bytes(bytes),
                    share(bytes),
                    Cell::Duration(Duration(device.peak_time.0)),
                ]);
            }
        }
    }
    table
}
