//! Memory over time: the two JSON layouts of torch's `export_memory_timeline`, and a page with a picture.
//!
//! `memory-json` is `[times, sizes]`: microseconds of Unix time, and for each a list of a zero and the bytes of the
//! eight categories. `memory-raw` is a list of `[time, action, bytes, category]`: nanoseconds of Unix time (-1 for what
//! was there before), 1 for what was there before, 2 for an allocation, 4 for a release. torch also has 3, for tensors
//! that change in place; memory does not change then.

mod page;

use std::io::{self, Write};

use hotspan_analyze::memory_timeline::DeviceTimeline;
use hotspan_analyze::{MemoryCategory, MemoryDevice, Model};
use serde_json::json;

use super::Exporter;

/// Which device to write; none stands for the first that is not the CPU, or else the CPU.
pub type Device = Option<MemoryDevice>;

/// The exporter of bytes by category over time.
pub struct MemoryJson(pub Device);

/// The exporter of single allocations and releases.
pub struct MemoryRaw(pub Device);

/// The exporter of a page with a picture.
pub struct MemoryHtml(pub Device);

impl Exporter for MemoryJson {
    fn name(&self) -> &'static str {
        "memory-json"
    }

    fn help(&self) -> &'static str {
        "memory by category over time, as torch's export_memory_timeline writes it"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let timeline = chosen(model, self.0)?;
        let points = timeline.by_category(1000);
        let origin = model.clock().unix_origin().unwrap_or(0);
        let micros = |time: i64| origin.saturating_add(time).div_euclid(1000);
        let times: Vec<i64> = points.iter().map(|(time, _)| micros(time.0)).collect();
        let sizes: Vec<Vec<i64>> = points
            .iter()
            .map(|(_, sums)| std::iter::once(0).chain(sums.iter().map(|bytes| bytes.0)).collect())
            .collect();
        serde_json::to_writer(output, &json!([times, sizes])).map_err(io::Error::from)
    }
}

impl Exporter for MemoryRaw {
    fn name(&self) -> &'static str {
        "memory-raw"
    }

    fn help(&self) -> &'static str {
        "single allocations and releases, as torch's export_memory_timeline writes them"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        const EARLIER: i64 = 1;
        const CREATE: i64 = 2;
        const DESTROY: i64 = 4;
        let timeline = chosen(model, self.0)?;
        let origin = model.clock().unix_origin().unwrap_or(0);
        let rows: Vec<[i64; 4]> = timeline
            .changes
            .iter()
            .map(|change| {
                let time = if change.is_earlier { -1 } else { origin.saturating_add(change.time.0) };
                let action = match change.bytes.0 {
                    _ if change.is_earlier => EARLIER,
                    ..0 => DESTROY,
                    _ => CREATE,
                };
                [time, action, change.bytes.0, change.category.index() as i64]
            })
            .collect();
        serde_json::to_writer(output, &rows).map_err(io::Error::from)
    }
}

impl Exporter for MemoryHtml {
    fn name(&self) -> &'static str {
        "memory-html"
    }

    fn help(&self) -> &'static str {
        "a page with a picture of the memory over time, its peak, and who held it"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        page::write(chosen(model, self.0)?, output)
    }
}

fn chosen(model: &Model, device: Device) -> io::Result<&DeviceTimeline> {
    let timelines = model.memory_timeline();
    let refuse = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let Some(first) = timelines.first() else {
        return Err(refuse(
            "the trace has no memory events. hint: record with profile_memory=True".to_owned(),
        ));
    };
    let Some(device) = device else {
        return Ok(timelines.iter().find(|timeline| timeline.device.kind != 0).unwrap_or(first));
    };
    timelines.iter().find(|timeline| timeline.device == device).ok_or_else(|| {
        let names: Vec<String> = timelines.iter().map(|timeline| timeline.device.name()).collect();
        refuse(format!("the trace has no memory of {}, only of {}", device.name(), names.join(", ")))
    })
}

/// A colour for each category: like with like.
pub(crate) fn colour(category: MemoryCategory) -> &'static str {
    match category {
        MemoryCategory::Parameter => "#2f7d4f",
        MemoryCategory::OptimizerState => "#c9a227",
        MemoryCategory::Input => "#4a4e58",
        MemoryCategory::Temporary => "#9b7fd1",
        MemoryCategory::Activation => "#d1495b",
        MemoryCategory::Gradient => "#2763b8",
        MemoryCategory::AutogradDetail => "#6fa8dc",
        MemoryCategory::Unknown => "#a9adb5",
    }
}
