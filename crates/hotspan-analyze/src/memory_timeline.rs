//! Memory over time: how much of each device was held and for what, when it was most, and who held it then.
//!
//! Blocks and their uses come from [`crate::memory_blocks`]. What was there before the recording counts where the trace tells of it: as
//! a block, or as a total of the allocator.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Bytes, Category, SpanId, Timestamp, Trace};

use crate::intervals::Interval;
use crate::memory_blocks::{Blocks, Change};
use crate::memory_category::MemoryCategory;
use crate::model::Model;
use crate::model::memory_events::MemoryDevice;
use crate::model::source::{file_and_line, is_users};
use crate::model::stacks::Stacks;
use crate::report::schema::Schema;
use crate::report::{Line, Series, Table, Unit};

/// Longer stacks are cut at the outer end.
const STACK_DEPTH: usize = 64;

/// What holds memory that the allocator had handed out before the recording.
const BEFORE: &str = "(before the recording)";

/// Memory that one operator held at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The operator that allocated it; empty when none was running, in brackets when it is not known for being older than the recording.
    pub operator: String,
    /// How much.
    pub bytes: Bytes,
    /// In how many blocks.
    pub blocks: u64,
    /// What it is used for.
    pub category: MemoryCategory,
    /// Where in the Python program it was allocated, innermost first, when stacks were recorded.
    pub stack: Vec<String>,
}

impl Holder {
    /// The innermost function of the program in its stack, else the innermost of all.
    fn called_from(&self) -> Option<&String> {
        let is_own = |entry: &&String| file_and_line(entry).is_some_and(|(file, _)| is_users(file));
        self.stack.iter().find(is_own).or_else(|| self.stack.first())
    }
}

/// Memory that begins or ends to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    /// When.
    pub time: Timestamp,
    /// How much; negative when it was released.
    pub bytes: Bytes,
    /// What it is used for.
    pub category: MemoryCategory,
    /// Whether it was there before the recording.
    pub is_earlier: bool,
}

/// The memory of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimeline {
    /// Which device.
    pub device: MemoryDevice,
    /// Allocations and releases, in order of time.
    pub changes: Vec<MemoryChange>,
    /// What was held all the time besides: the allocator counts it, but nothing is known of it.
    pub unseen: Bytes,
    /// The most that was held.
    pub peak: Bytes,
    /// When that was.
    pub peak_time: Timestamp,
    /// How much of it was used for what, in the order of [`MemoryCategory::ALL`].
    pub peak_use: [Bytes; 8],
    /// Who held it, most first.
    pub holders: Vec<Holder>,
}

/// The memory of each device over time, in order of the devices.
pub(crate) fn find(model: &Model) -> Vec<DeviceTimeline> {
    find_within(model, None)
}

/// The same with the peak of a stretch of time, and who held that.
#[must_use]
pub fn memory_within(model: &Model, window: Interval) -> Vec<DeviceTimeline> {
    find_within(model, Some(window))
}

fn find_within(model: &Model, window: Option<Interval>) -> Vec<DeviceTimeline> {
    let found = model.memory_blocks();
    let mut devices: BTreeMap<MemoryDevice, Vec<&Change>> =
        found.blocks.iter().map(|block| (block.device, Vec::new())).collect();
    for change in &found.changes {
        devices.entry(found.blocks[change.block].device).or_default().push(change);
    }
    let stacks = recorded_stacks(model);
    devices
        .into_iter()
        .map(|(device, changes)| timeline(model, device, &changes, found, stacks.as_ref(), window))
        .collect()
}

impl DeviceTimeline {
    /// Bytes held after each change.
    pub fn held(&self) -> impl Iterator<Item = (Timestamp, Bytes)> {
        self.changes.iter().scan(self.unseen, |sum, change| {
            *sum += change.bytes;
            Some((change.time, *sum))
        })
    }

    /// Bytes held for each use after each moment at which something changed; the moments are `step` nanoseconds long.
    #[must_use]
    pub fn by_category(&self, step: i64) -> Vec<(Timestamp, [Bytes; 8])> {
        let step = step.max(1);
        let mut points: Vec<(Timestamp, [Bytes; 8])> = Vec::new();
        let mut before = [Bytes(0); 8];
        before[MemoryCategory::Unknown.index()] = self.unseen;
        for change in &self.changes {
            let time = Timestamp(change.time.0.div_euclid(step) * step);
            match points.last().copied() {
                Some((last, _)) if last == time => {}
                Some((_, sums)) => points.push((time, sums)),
                None => points.push((time, before)),
            }
            if let Some((_, sums)) = points.last_mut() {
                sums[change.category.index()] += change.bytes;
            }
        }
        points
    }

    /// The same as lines over time for a picture: at most `points` moments, each with the most that was held in its time.
    #[must_use]
    pub fn series(&self, points: usize) -> Series {
        let all = self.by_category(1);
        let total = |sums: &[Bytes; 8]| sums.iter().copied().sum::<Bytes>();
        let bounds = all.first().zip(all.last()).map_or((0, 0), |(first, last)| (first.0.0, last.0.0));
        let width = (bounds.1.saturating_sub(bounds.0) / points.max(1) as i64).saturating_add(1);
        let mut times: Vec<Timestamp> = Vec::new();
        let mut sums: Vec<[Bytes; 8]> = Vec::new();
        let mut bucket = i64::MIN;
        for (time, held) in &all {
            let index = time.0.saturating_sub(bounds.0) / width;
            if index == bucket && all.len() > points {
                if let (Some(shown), Some(shown_time)) = (sums.last_mut(), times.last_mut())
                    && total(held) >= total(shown)
                {
                    (*shown, *shown_time) = (*held, *time);
                }
                continue;
            }
            bucket = index;
            times.push(*time);
            sums.push(*held);
        }
        let line = |category: MemoryCategory| Line {
            key: category.key().to_owned(),
            title: category.title().to_owned(),
            values: sums.iter().map(|held| held[category.index()].0).collect(),
        };
        let used = MemoryCategory::ALL.into_iter().map(line);
        Series {
            title: format!("Memory of {}", self.device.name()),
            unit: Unit::Bytes,
            times,
            lines: used.filter(|line| line.values.iter().any(|&value| value != 0)).collect(),
        }
    }

    /// Who held the peak, as a table.
    #[must_use]
    pub fn report(&self) -> Table {
        let title = format!("Held at the peak of {}", self.device.name());
        Schema::<Holder>::new(self.device.name(), title)
            .text("operator", "Allocated by", |holder| match holder.operator.as_str() {
                "" => "(outside of operators)",
                name => name,
            })
            .help("The operator that allocated the memory.")
            .text("category", "Used for", |holder| holder.category.title())
            .help("What the memory was used for.")
            .bytes("bytes", "Bytes", |holder| holder.bytes)
            .help("How much of it was held at the peak.")
            .count("blocks", "Blocks", |holder| holder.blocks)
            .help("In how many allocations.")
            .text("stack", "Called from", Holder::called_from)
            .help("The Python function of the program that it was allocated from, else of a library.")
            .if_any()
            .table(&self.holders)
    }
}

fn timeline(
    trace: &Trace,
    device: MemoryDevice,
    mine: &[&Change],
    found: &Blocks,
    stacks: Option<&Stacks>,
    window: Option<Interval>,
) -> DeviceTimeline {
    let mut changes = Vec::new();
    // What is held after a change is held until the next.
    let is_seen = |position: usize| {
        let next = mine.get(position + 1).map_or(Timestamp(i64::MAX), |change| change.time);
        window.is_none_or(|window| mine[position].time <= window.end && next > window.begin)
    };
    let unseen = found.unseen.get(&device).copied().unwrap_or_default();
    let (mut sum, mut peak, mut peak_time, mut peak_at) = (unseen, Bytes(0), Timestamp(0), None);
    for (position, change) in mine.iter().enumerate() {
        let block = &found.blocks[change.block];
        let bytes = if change.is_release { Bytes(block.bytes.0.saturating_neg()) } else { block.bytes };
        let is_earlier = !change.is_release && block.allocated.is_none();
        changes.push(MemoryChange { time: change.time, bytes, category: block.category, is_earlier });
        sum += bytes;
        if is_seen(position) && (peak_at.is_none() || sum > peak) {
            (peak, peak_time, peak_at) = (sum, change.time, Some(position));
        }
    }
    let mut live: Vec<usize> = Vec::new();
    let mut released: HashSet<usize> = HashSet::new();
    mine.iter().take(peak_at.map_or(0, |position| position + 1)).for_each(|change| {
        if change.is_release {
            released.insert(change.block);
        } else {
            live.push(change.block);
        }
    });
    live.retain(|block| !released.contains(block));
    let mut peak_use = [Bytes(0); 8];
    for &block in &live {
        peak_use[found.blocks[block].category.index()] += found.blocks[block].bytes;
    }
    peak_use[MemoryCategory::Unknown.index()] += unseen;
    let holders = holders(trace, found, &live, stacks, unseen);
    DeviceTimeline { device, changes, unseen, peak, peak_time, peak_use, holders }
}

/// Blocks that share operator, use and stack are one holder.
fn holders(
    trace: &Trace,
    found: &Blocks,
    live: &[usize],
    stacks: Option<&Stacks>,
    unseen: Bytes,
) -> Vec<Holder> {
    let mut indices: HashMap<(&str, MemoryCategory, &str, u32), usize> = HashMap::new();
    let mut holders: Vec<Holder> = Vec::new();
    for &block in live {
        let block = &found.blocks[block];
        let name = |span: Option<SpanId>| span.map_or("", |span| trace.span_name(span));
        let (operator, function) = (name(block.operator), name(block.function));
        let called = block.function.or(block.operator);
        let stack = called.zip(stacks).map_or(0, |(span, stacks)| stacks.id(span));
        let index = *indices.entry((operator, block.category, function, stack)).or_insert_with(|| {
            let own = Some(function).filter(|name| !name.is_empty()).map(str::to_owned);
            let around = stacks.map_or(&[][..], |stacks| stacks.entries(stack));
            holders.push(Holder {
                operator: operator.to_owned(),
                bytes: Bytes(0),
                blocks: 0,
                category: block.category,
                stack: own.into_iter().chain(around.iter().cloned()).collect(),
            });
            holders.len() - 1
        });
        holders[index].bytes += block.bytes;
        holders[index].blocks += 1;
    }
    if unseen > Bytes(0) {
        let (operator, category) = (BEFORE.to_owned(), MemoryCategory::Unknown);
        holders.push(Holder { operator, bytes: unseen, blocks: 0, category, stack: Vec::new() });
    }
    holders.sort_by(|left, right| {
        right.bytes.0.cmp(&left.bytes.0).then_with(|| left.operator.cmp(&right.operator))
    });
    holders
}

fn recorded_stacks(model: &Model) -> Option<Stacks> {
    let has_python = model.categories().any(|(_, _, category)| category == Category::PythonFunction);
    let has_stacks = has_python || model.call_stack().occurs();
    has_stacks.then(|| Stacks::of(model, model.nesting(), STACK_DEPTH))
}
