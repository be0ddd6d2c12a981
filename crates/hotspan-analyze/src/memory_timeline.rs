//! Memory over time: how much of each device was held, when it was most, and which operators held it then.
//!
//! Counted from the start of the recording: what was there before is not in the trace, so releasing it goes below zero.

use hashbrown::HashMap;
use hotspan_store::{Bytes, SpanId, Timestamp, Trace};

use crate::events::Events;
use crate::nesting::Nesting;

/// A device by torch's numbers for its kind and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryDevice {
    /// torch's `DeviceType`: 0 is the CPU, 1 is CUDA.
    pub kind: i64,
    /// Which one; -1 for the CPU.
    pub index: i64,
}

/// Memory that one operator held at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The operator that allocated it, empty when none was running.
    pub operator: String,
    /// How much.
    pub bytes: Bytes,
    /// In how many blocks.
    pub blocks: u64,
}

/// The memory of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimeline {
    /// Which device.
    pub device: MemoryDevice,
    /// Bytes held after each allocation and release, in order of time.
    pub held: Vec<(Timestamp, Bytes)>,
    /// The most that was held.
    pub peak: Bytes,
    /// When that was.
    pub peak_time: Timestamp,
    /// Who held it, most first.
    pub holders: Vec<Holder>,
}

struct Report {
    time: Timestamp,
    device: MemoryDevice,
    address: i64,
    bytes: i64,
    operator: Option<SpanId>,
}

/// The memory of each device over time, in order of the devices.
#[must_use]
pub fn memory_timeline(trace: &Trace) -> Vec<DeviceTimeline> {
    let reports = reports(trace);
    let mut devices: Vec<MemoryDevice> = reports.iter().map(|report| report.device).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.into_iter().map(|device| timeline(trace, device, &reports)).collect()
}

fn timeline(trace: &Trace, device: MemoryDevice, reports: &[Report]) -> DeviceTimeline {
    let mine = || reports.iter().filter(|report| report.device == device);
    let mut held = Vec::new();
    let (mut sum, mut peak, mut peak_time, mut peak_at) = (0_i64, 0_i64, Timestamp(0), 0_usize);
    for (position, report) in mine().enumerate() {
        sum = sum.saturating_add(report.bytes);
        held.push((report.time, Bytes(sum)));
        if position == 0 || sum > peak {
            (peak, peak_time, peak_at) = (sum, report.time, position);
        }
    }
    let mut live: HashMap<i64, &Report> = HashMap::new();
    for report in mine().take(peak_at + 1) {
        if report.bytes > 0 {
            live.insert(report.address, report);
        } else {
            live.remove(&report.address);
        }
    }
    DeviceTimeline { device, held, peak: Bytes(peak), peak_time, holders: holders(trace, &live) }
}

fn holders(trace: &Trace, live: &HashMap<i64, &Report>) -> Vec<Holder> {
    let mut blocks: Vec<&&Report> = live.values().collect();
    blocks.sort_unstable_by_key(|report| (report.time, report.address));
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut holders: Vec<Holder> = Vec::new();
    for report in blocks {
        let operator = report.operator.map_or("", |span| trace.span_name(span));
        let place = *places.entry(operator).or_insert_with(|| {
            holders.push(Holder { operator: operator.to_owned(), bytes: Bytes(0), blocks: 0 });
            holders.len() - 1
        });
        holders[place].bytes.0 = holders[place].bytes.0.saturating_add(report.bytes);
        holders[place].blocks += 1;
    }
    holders.sort_by(|left, right| {
        right.bytes.0.cmp(&left.bytes.0).then_with(|| left.operator.cmp(&right.operator))
    });
    holders
}

/// Every `[memory]` instant in order of time, with the operator that ran around it.
fn reports(trace: &Trace) -> Vec<Report> {
    let Some(name) = trace.strings().find("[memory]") else { return Vec::new() };
    let [bytes, kind, index, address] =
        ["Bytes", "Device Type", "Device Id", "Addr"].map(|key| trace.arg(key));
    let mut instants: Vec<_> = trace.instants().events().filter(|event| event.name == name).collect();
    instants.sort_by_key(|event| event.time);
    let events = Events::of(trace);
    let nesting = Nesting::of(trace, &events);
    let spans = trace.spans();
    let mut starting = nesting.order().iter().copied().filter(|&span| events.role(span).is_host()).peekable();
    let mut open: Vec<Vec<SpanId>> = vec![Vec::new(); trace.tracks().len()];
    let mut reports = Vec::with_capacity(instants.len());
    for instant in instants {
        while let Some(span) = starting.next_if(|&span| spans.time(span) <= instant.time) {
            let open = &mut open[spans.track(span).index()];
            while open.last().is_some_and(|&last| spans.end(last) < spans.time(span)) {
                open.pop();
            }
            open.push(span);
        }
        let around = &mut open[instant.track.index()];
        while around.last().is_some_and(|&last| spans.end(last) < instant.time) {
            around.pop();
        }
        // `aten::empty` says nothing: who called it wanted the memory.
        let telling = around.iter().rev().find(|&&span| !trace.span_name(span).starts_with("aten::empty"));
        let Some(amount) = bytes.int(instant.args) else { continue };
        reports.push(Report {
            time: instant.time,
            device: MemoryDevice {
                kind: kind.int(instant.args).unwrap_or(0),
                index: index.int(instant.args).unwrap_or(-1),
            },
            address: address.int(instant.args).unwrap_or(0),
            bytes: amount,
            operator: telling.or(around.last()).copied(),
        });
    }
    reports
}
