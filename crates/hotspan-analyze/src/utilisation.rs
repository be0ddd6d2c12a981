//! How well a device was used: busy time, multiprocessors, occupancy, tensor cores, and how much communication hid
//! behind computing.

use hotspan_store::{Category, Duration, Timestamp};

use crate::intervals::{Interval, Intervals};
use crate::kernels::Weighted;
use crate::model::Model;
use crate::model::device_work::{DeviceId, DeviceWork, WorkKind};
use crate::steps::{DeviceStep, Exposed};
use crate::tensor_cores::uses_tensor_cores;

/// How well one device was used.
#[derive(Clone, Debug, PartialEq)]
pub struct Utilisation {
    /// Which device.
    pub device: DeviceId,
    /// Its name, where the trace knows it.
    pub name: Option<String>,
    /// The recording, taken apart like a step.
    pub time: DeviceStep,
    /// A kernel runs, computing or communicating; copies do not count, as in nvidia-smi's utilisation.
    pub kernels: Duration,
    /// The time of all kernels added up, each for itself.
    pub kernel_total: Duration,
    /// That of kernels that use tensor cores.
    pub tensor_total: Duration,
    /// Est. SM efficiency in percent: at each moment the blocks per multiprocessor of all running kernels, at most one.
    pub sm_efficiency: Option<f64>,
    /// Est. achieved occupancy in percent, weighted by duration.
    pub occupancy: Option<f64>,
    /// When it communicates.
    pub communication: Duration,
    /// When it communicates and computes at once.
    pub overlapped: Duration,
}

impl Utilisation {
    /// When it does anything.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.time.time - self.time.idle
    }
}

/// How well each device was used in the recording.
#[must_use]
pub fn utilisation(model: &Model) -> Vec<Utilisation> {
    model.device_work().iter().map(|device| of_device(model, device, *model.recording())).collect()
}

fn of_device(model: &Model, device: &DeviceWork, window: Interval) -> Utilisation {
    let spans = model.spans();
    let (blocks, occupancy) = (model.blocks_per_sm(), model.occupancy());
    let mut tensor: Vec<Option<bool>> = vec![None; model.strings().len()];
    let mut mean_occupancy = Weighted::default();
    let (mut kernel_total, mut tensor_total) = (Duration::ZERO, Duration::ZERO);
    let mut changes: Vec<(Timestamp, f64)> = Vec::new();
    let mut kernels: Vec<Interval> = Vec::new();
    for work in device.work.iter().filter(|work| work.kind != WorkKind::Copy) {
        let length = work.interval.length();
        kernels.push(work.interval);
        kernel_total += length;
        let name = spans.name(work.span);
        let uses = tensor
            .get_mut(name.index())
            .map(|uses| *uses.get_or_insert_with(|| uses_tensor_cores(model.str(name))));
        if uses == Some(true) && model.span_category(work.span) == Category::Kernel {
            tensor_total += length;
        }
        mean_occupancy.add(occupancy.of(work.span), length);
        if let Some(blocks) = blocks.of(work.span).filter(|blocks| blocks.is_finite() && *blocks > 0.0) {
            let part = work.interval.within(window);
            if !part.is_empty() {
                changes.extend([(part.begin, blocks), (part.end, -blocks)]);
            }
        }
    }
    let kernels: Intervals = kernels.into_iter().collect();
    Utilisation {
        device: device.id,
        name: device.name.clone(),
        time: Exposed::of(device).within(window, None, device.id),
        kernels: kernels.length_within(window),
        kernel_total,
        tensor_total,
        sm_efficiency: sm_efficiency(changes, window),
        occupancy: mean_occupancy.mean(),
        communication: device.communication.length_within(window),
        overlapped: device.communication.intersect(&device.compute).length_within(window),
    }
}

/// The mean over the window of the blocks that run on a multiprocessor, counted up to one.
fn sm_efficiency(mut changes: Vec<(Timestamp, f64)>, window: Interval) -> Option<f64> {
    if changes.is_empty() || window.is_empty() {
        return None;
    }
    changes.sort_by_key(|&(time, _)| time);
    let (mut blocks, mut running, mut area) = (0.0_f64, 0_u64, 0.0_f64);
    for (index, &(time, change)) in changes.iter().enumerate() {
        blocks += change;
        running = if change > 0.0 { running + 1 } else { running.saturating_sub(1) };
        if running == 0 {
            // Fractions leave a little behind; nothing runs, so nothing may stay.
            blocks = 0.0;
        }
        if let Some(&(next, _)) = changes.get(index + 1) {
            area += blocks.clamp(0.0, 1.0) * next.since(time).0 as f64;
        }
    }
    Some(area * 100.0 / window.length().0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_blocks_count_up_to_one() {
        let at = Timestamp;
        // 0..10 half a block, 10..20 a block and a half (counts as one), 20..30 one, 30..40 nothing.
        let changes = vec![(at(0), 0.5), (at(10), 1.0), (at(20), -0.5), (at(30), -1.0)];
        assert_eq!(sm_efficiency(changes, Interval::new(at(0), at(40))), Some(62.5));
        assert_eq!(sm_efficiency(Vec::new(), Interval::new(at(0), at(40))), None);
    }
}
