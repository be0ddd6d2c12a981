//! The memory view: who held the peak and for what, and what was allocated, of all time or of a stretch.

use hotspan_analyze::DeviceTimeline;
use hotspan_analyze::Model;
use hotspan_analyze::intervals::Interval;
use hotspan_analyze::memory_events::{MemoryEvents, peak_table};
use hotspan_analyze::memory_timeline::memory_within;

use crate::api::Page;
use crate::reports::page;

/// How to record what fills it.
pub(crate) const RECORD: &str = "with hotspan.profiler.profile(profile_memory=True) as prof: …";

/// The tables of the memory view. Blocks are followed through the whole trace even where only a stretch is listed, so that what was
/// allocated before it keeps its operator.
pub(crate) fn memory(model: &Model, window: Option<Interval>) -> Page {
    let within = window.map(|window| memory_within(model, window));
    let devices = within.as_ref().unwrap_or_else(|| model.memory_timeline());
    let events = MemoryEvents::of(model, window);
    let mut tables = vec![peak_table(devices)];
    tables.extend(devices.iter().map(DeviceTimeline::report));
    tables.extend([events.statistics_table(), events.events_table(), model.process_memory().report()]);
    page(tables, RECORD)
}
