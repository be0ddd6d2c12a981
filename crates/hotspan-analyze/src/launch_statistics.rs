//! What launching costs: how long calls take, how long until the device begins, and which work is not worth its launch.
//!
//! Everything counts per call. A graph is one call for many kernels: its delay is that of its first kernel, and it is worth
//! the launch when all its kernels together take longer than the call.

use hotspan_store::{Duration, SpanId, Timestamp};

use crate::averages::Distribution;
use crate::model::Model;
use crate::model::device_work::{DeviceId, DeviceWork, Work};
use crate::model::runtime_calls::CallKind;

/// The launches of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchStatistics {
    /// Which device.
    pub device: DeviceId,
    /// Kernels, copies and fills.
    pub work: u64,
    /// Those of which the call is known.
    pub launched: u64,
    /// Calls that gave the device work.
    pub calls: u64,
    /// Those of them that launched graphs.
    pub graphs: u64,
    /// Kernels, copies and fills that graphs launched.
    pub graph_work: u64,
    /// The calls' durations.
    pub call_time: Distribution,
    /// All calls added up.
    pub call_total: Duration,
    /// From the end of the call to the beginning of its first work; zero when work began before the call returned.
    pub delay: Distribution,
    /// All delays added up.
    pub delay_total: Duration,
    /// Calls that launched kernels or graphs, not copies or fills.
    pub kernel_calls: u64,
    /// Those of them that took longer than the work they launched. A call that copies may wait for the copy, so copies do not
    /// count.
    pub short: u64,
    /// How much longer, all together.
    pub short_excess: Duration,
}

/// One call and what it launched.
#[derive(Clone, Copy, Debug)]
struct Launched {
    call: SpanId,
    begin: Timestamp,
    time: Duration,
    work: u64,
}

/// The launches of every device.
#[must_use]
pub fn launch_statistics(model: &Model) -> Vec<LaunchStatistics> {
    model.device_work().iter().map(|device| of_device(model, device)).collect()
}

fn of_device(model: &Model, device: &DeviceWork) -> LaunchStatistics {
    let spans = model.spans();
    let one = |work: &Work| {
        let call = model.launch_calls().call(work.span)?;
        Some(Launched { call, begin: work.interval.begin, time: work.interval.length(), work: 1 })
    };
    let mut launched: Vec<Launched> = device.work.iter().filter_map(one).collect();
    let with_call = launched.len() as u64;
    launched.sort_by_key(|launched| (launched.call, launched.begin));
    launched.dedup_by(|next, first| {
        let same = next.call == first.call;
        if same {
            first.time += next.time;
            first.work += 1;
        }
        same
    });
    let mut statistics = LaunchStatistics {
        device: device.id,
        work: device.work.len() as u64,
        launched: with_call,
        calls: launched.len() as u64,
        ..LaunchStatistics::default()
    };
    let (mut times, mut delays) = (Vec::new(), Vec::new());
    for launch in &launched {
        let took = spans.duration(launch.call);
        let delay = launch.begin.since(spans.end(launch.call)).max(Duration::ZERO);
        times.push(took.0);
        delays.push(delay.0);
        statistics.call_total += took;
        statistics.delay_total += delay;
        let kind = CallKind::of(model.span_name(launch.call));
        if !matches!(kind, CallKind::Copy | CallKind::Fill) {
            statistics.kernel_calls += 1;
            if took > launch.time {
                statistics.short += 1;
                statistics.short_excess += took - launch.time;
            }
        }
        if kind == CallKind::GraphLaunch {
            statistics.graphs += 1;
            statistics.graph_work += launch.work;
        }
    }
    statistics.call_time = Distribution::of(&mut times);
    statistics.delay = Distribution::of(&mut delays);
    statistics
}
