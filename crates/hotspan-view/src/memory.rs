//! The memory view: who held the peak and for what, and what was allocated, of all time or of a stretch.

use hotspan_analyze::Model;
use hotspan_analyze::Table;
use hotspan_analyze::intervals::Interval;
use hotspan_analyze::memory_events::{MemoryEvents, peak_table};

use crate::api::Page;
use crate::reports::page;

const RECORD: &str = "with hotspan.profiler.profile(profile_memory=True) as prof: …";

/// The tables of the memory view. Blocks are followed through the whole trace even where only a stretch is listed, so that what was
/// allocated before it keeps its operator.
pub(crate) fn memory(model: &Model, window: Option<Interval>) -> Page {
    let devices = model.memory_timeline();
    let events = MemoryEvents::of(model, window);
    let mut tables: Vec<(String, Table)> = vec![("peak".to_owned(), peak_table(devices))];
    tables.extend(devices.iter().map(|device| (device.device.name(), device.report())));
    tables.push(("statistics".to_owned(), events.statistics_table()));
    tables.push(("events".to_owned(), events.events_table()));
    tables.push(("processes".to_owned(), model.process_memory().report()));
    page(tables, RECORD)
}
