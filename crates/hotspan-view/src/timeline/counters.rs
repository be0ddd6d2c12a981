//! Values over time: the counters of the trace, the memory of devices, and how busy devices were.

use hotspan_analyze::Model;
use std::collections::HashMap;

use hotspan_analyze::Unit;
use hotspan_analyze::busy_curve::busy_curve;
use hotspan_analyze::intervals::Interval;
use hotspan_store::{Arg, ProcessId, StringId, TrackId};

/// Parts of the recording for which a busy share is told, and those of all devices together: a file may name any number of them.
const PARTS: usize = 2000;
const ALL_PARTS: usize = 128 * PARTS;
/// More counters than this are not shown; a hostile trace could name each value differently.
const MOST: usize = 2000;

/// A value over time.
#[derive(Debug)]
pub(super) struct Counter {
    /// What it belongs to; devices' memory belongs to no process of the trace.
    pub(super) process: Option<ProcessId>,
    pub(super) name: String,
    pub(super) unit: &'static str,
    /// In order of time.
    points: Vec<(i64, f64)>,
}

/// All counters, and how many were left out.
pub(super) fn counters(model: &Model) -> (Vec<Counter>, u64) {
    let mut all = device_counters(model);
    let mut indices: HashMap<(TrackId, StringId, StringId), usize> = HashMap::new();
    let mut hidden = 0;
    for event in model.counters().events() {
        for (key, arg) in model.args(event.args) {
            let value = match arg {
                Arg::Int(number) => number as f64,
                Arg::Float(number) if number.is_finite() => number,
                _ => continue,
            };
            let known = indices.len();
            let index = *indices.entry((event.track, event.name, key.name)).or_insert(all.len());
            if index == all.len() {
                if known >= MOST {
                    indices.remove(&(event.track, event.name, key.name));
                    hidden += 1;
                    continue;
                }
                let (name, key) = (model.str(event.name), model.str(key.name));
                let name =
                    if key == name || key == "value" { key.to_owned() } else { format!("{name} {key}") };
                all.push(Counter {
                    process: Some(model.track(event.track).process),
                    unit: unit_of(&name).name(),
                    name,
                    points: Vec::new(),
                });
            }
            all[index].points.push((event.time.0, value));
        }
    }
    for counter in &mut all {
        counter.points.sort_by_key(|point| point.0);
    }
    (all, hidden)
}

/// A counter has no unit of its own; its name is all there is, and may end in one.
fn unit_of(name: &str) -> Unit {
    let name = name.to_lowercase();
    match name.rsplit(' ').next() {
        Some("%") => Unit::Percent,
        Some("mhz" | "w" | "c") => Unit::None,
        _ if ["memory", "rss", "bytes", "alloc"].iter().any(|word| name.contains(word)) => Unit::Bytes,
        _ => Unit::None,
    }
}

fn device_counters(model: &Model) -> Vec<Counter> {
    let mut all = Vec::new();
    for device in model.memory_timeline() {
        all.push(Counter {
            process: None,
            name: format!("Memory of {}", device.device.name()),
            unit: Unit::Bytes.name(),
            points: device.held().map(|(time, bytes)| (time.0, bytes.0 as f64)).collect(),
        });
    }
    let (begin, length) = model.window();
    let window = Interval::new(begin, begin.plus(length));
    let work = model.device_work();
    let parts = (ALL_PARTS / work.len().max(1)).clamp(1, PARTS);
    for device in work {
        let curve = busy_curve(&device.busy, window, parts);
        all.push(Counter {
            process: Some(device.process),
            name: "Busy".to_owned(),
            unit: Unit::Percent.name(),
            points: curve.into_iter().map(|(time, share)| (time.0, share)).collect(),
        });
    }
    all
}

impl Counter {
    /// The largest value; zero where all are below.
    pub(super) fn most(&self) -> f64 {
        self.points.iter().fold(0.0, |most, point| most.max(point.1))
    }

    /// The smallest value; zero where all are above.
    pub(super) fn least(&self) -> f64 {
        self.points.iter().fold(0.0, |least, point| least.min(point.1))
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Tells `show` the value before the stretch, and of each column of `1 << shift` nanoseconds the largest value and the last.
    pub(super) fn draw(&self, (from, to): (i64, i64), shift: u32, mut show: impl FnMut(i64, f64)) {
        let first = self.points.partition_point(|point| point.0 < from).saturating_sub(1);
        let last = self.points.partition_point(|point| point.0 < to);
        let column = |point: &(i64, f64)| point.0 >> shift;
        for group in self.points[first.min(last)..last].chunk_by(|one, two| column(one) == column(two)) {
            let Some(&end) = group.last() else { continue };
            let most = group.iter().copied().reduce(|most, next| if next.1 > most.1 { next } else { most });
            if let Some(most) = most.filter(|most| most.0 < end.0) {
                show(most.0, most.1);
            }
            show(end.0, end.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_units() {
        assert_eq!(unit_of("GPU memory utilization %"), Unit::Percent);
        assert_eq!(unit_of("GPU memory clock MHz"), Unit::None);
        assert_eq!(unit_of("GPU memory used bytes"), Unit::Bytes);
        assert_eq!(unit_of("Process memory resident"), Unit::Bytes);
        assert_eq!(unit_of("queue length"), Unit::None);
    }

    #[test]
    fn peaks_and_last_values_stay() {
        let points = vec![(0, 1.0), (9, 2.0), (17, 8.0), (18, 3.0), (40, 4.0)];
        let counter = Counter { process: None, name: String::new(), unit: "", points };
        let mut shown = Vec::new();
        counter.draw((16, 64), 4, |time, value| shown.push((time, value)));
        assert_eq!(shown, [(9, 2.0), (17, 8.0), (18, 3.0), (40, 4.0)]);
        assert_eq!((counter.least(), counter.most()), (0.0, 8.0));
    }
}
