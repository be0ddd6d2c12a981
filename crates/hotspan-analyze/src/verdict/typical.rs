//! A typical step: the host and the devices beside each other, in one list of activities.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_store::{Duration, Timestamp};

use crate::idle::{Cause, DeviceIdle};
use crate::intervals::Interval;
use crate::model::Model;
use crate::model::windows::StepWindow;
use crate::steps::{DeviceStep, HostStep, Steps};

/// One activity of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What programs call it.
    pub key: Cow<'static, str>,
    /// What people call it.
    pub title: Cow<'static, str>,
    /// How long.
    pub time: Duration,
    /// Whether a device had nothing to do meanwhile, and this is why.
    pub is_idle: bool,
}

/// What one side did in a step: the parts add up to the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Whose it is.
    pub title: String,
    /// How long the step took there.
    pub time: Duration,
    /// What it did, in the same order on every side.
    pub parts: Vec<Part>,
}

/// A step that is like most others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypicalStep {
    /// Its number; `None` where the whole recording stands for it.
    pub number: Option<i64>,
    /// When it began.
    pub begin: Timestamp,
    /// When it was over, on the host and on the devices.
    pub end: Timestamp,
    /// The host, then each device.
    pub bars: Vec<Bar>,
}

impl TypicalStep {
    /// The step with the median duration of those that are no warm-up; the whole recording where there are none.
    pub(super) fn of(model: &Model) -> Option<Self> {
        let windows = steady_windows(model);
        let mut order: Vec<&StepWindow> = windows.iter().collect();
        order.sort_by_key(|window| window.host.length());
        let window = *order.get(order.len().saturating_sub(1) / 2)?;
        let Steps { devices, host } = model.step_times();
        let mut bars: Vec<Bar> =
            host.iter().filter(|step| step.begin == window.host.begin).take(1).map(host_bar).collect();
        let of_step =
            devices.iter().filter(|step| step.begin == window.device.begin && step.step == window.number);
        for step in of_step {
            let idle = model.idle().iter().find(|idle| idle.device == step.device);
            let causes = idle.map(|idle| idle_within(idle, window.device)).unwrap_or_default();
            let several = model.device_work().len() > 1;
            let title = if several { format!("GPU {}", step.device) } else { "GPU".to_owned() };
            bars.push(device_bar(title, step, &causes));
        }
        let end = window.host.end.max(window.device.end);
        Some(Self { number: window.number, begin: window.host.begin.min(window.device.begin), end, bars })
    }
}

/// The steps without warm-up, as host and devices see them; the whole recording where there are none.
fn steady_windows(model: &Model) -> &[StepWindow] {
    model.step_windows().get(warm_up(model)..).unwrap_or_default()
}

/// How many of the windows are warm-up.
pub(super) fn warm_up(model: &Model) -> usize {
    model.steps().warm_up
}

/// How much of a time lies in steps of devices that are no warm-up. These follow each other and do not overlap.
pub(super) fn in_steps(model: &Model, time: Interval) -> Duration {
    let windows = steady_windows(model);
    let first = windows.partition_point(|window| window.device.end <= time.begin);
    let touching = windows[first..].iter().take_while(|window| window.device.begin < time.end);
    touching.map(|window| time.within(window.device).length()).sum()
}

fn part(key: &'static str, title: &'static str, time: Duration, is_idle: bool) -> Part {
    Part { key: key.into(), title: title.into(), time, is_idle }
}

fn host_bar(step: &HostStep) -> Bar {
    let parts = [
        part("operators", "Operators", step.operators, false),
        part("runtime", "Runtime calls", step.runtime, false),
        part("python", "Python", step.python, false),
        part("data_loader", "DataLoader", step.data_loader, false),
        part("waiting", "Waiting for the device", step.waiting, false),
        part("other", "Nothing recorded", step.other, false),
    ];
    Bar { title: "Host".to_owned(), time: step.time, parts: present(parts) }
}

/// The time of a device, with its idle time by cause.
fn device_bar(title: String, step: &DeviceStep, idle: &HashMap<Cause, Duration>) -> Bar {
    let mut parts = vec![
        part("compute", "Compute", step.compute, false),
        part("communication", "Exposed communication", step.communication, false),
        part("copy", "Exposed copy", step.copy, false),
    ];
    let mut known = Duration::ZERO;
    for cause in Cause::ALL.into_iter().filter(|cause| *cause != Cause::Unknown) {
        let time = idle.get(&cause).copied().unwrap_or_default();
        known += time;
        parts.push(part(cause.key(), cause.title(), time, true));
    }
    parts.push(part("unknown", "Unknown", step.idle - known, true));
    Bar { title, time: step.time, parts: present(parts) }
}

/// How long a device was idle in a window, by cause.
fn idle_within(idle: &DeviceIdle, window: Interval) -> HashMap<Cause, Duration> {
    let mut times: HashMap<Cause, Duration> = HashMap::new();
    let first = idle.pieces.partition_point(|piece| piece.interval.end <= window.begin);
    for piece in idle.pieces[first..].iter().take_while(|piece| piece.interval.begin < window.end) {
        *times.entry(piece.cause).or_default() += piece.interval.within(window).length();
    }
    times
}

fn present(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    parts.into_iter().filter(|part| part.time > Duration::ZERO).collect()
}

/// How long devices were idle in steps that are no warm-up, by cause.
pub(super) fn idle_in_steps(model: &Model) -> HashMap<Cause, Duration> {
    let mut totals: HashMap<Cause, Duration> = HashMap::new();
    for piece in model.idle().iter().flat_map(|device| &device.pieces) {
        *totals.entry(piece.cause).or_default() += in_steps(model, piece.interval);
    }
    totals
}

/// The mean of the devices' steps that are no warm-up; `None` without devices or steps.
pub(crate) fn mean_device_step(model: &Model) -> Option<Bar> {
    let all = &model.step_times().devices;
    let steady = all.get(warm_up(model) * model.device_work().len()..).unwrap_or_default();
    let first = steady.first().filter(|step| step.step.is_some())?;
    let count = steady.len() as i64;
    let mean =
        |part: fn(&DeviceStep) -> Duration| Duration(steady.iter().map(part).sum::<Duration>().0 / count);
    let (compute, communication) = (mean(|step| step.compute), mean(|step| step.communication));
    let (copy, idle) = (mean(|step| step.copy), mean(|step| step.idle));
    // What division leaves over belongs to no part.
    let time = compute + communication + copy + idle;
    let step = DeviceStep { time, compute, communication, copy, idle, ..*first };
    let causes = idle_in_steps(model).into_iter().map(|(cause, time)| (cause, Duration(time.0 / count)));
    Some(device_bar("GPU".to_owned(), &step, &causes.collect()))
}

/// The mean of the host's steps that are no warm-up; `None` without steps.
pub(crate) fn mean_host_step(model: &Model) -> Option<Bar> {
    let all = &model.step_times().host;
    let steady = all.get(warm_up(model)..).unwrap_or_default();
    let first = steady.first().filter(|step| step.step.is_some())?;
    let count = steady.len() as i64;
    let mean =
        |part: fn(&HostStep) -> Duration| Duration(steady.iter().map(part).sum::<Duration>().0 / count);
    let mut step = HostStep {
        data_loader: mean(|step| step.data_loader),
        waiting: mean(|step| step.waiting),
        runtime: mean(|step| step.runtime),
        operators: mean(|step| step.operators),
        python: mean(|step| step.python),
        other: mean(|step| step.other),
        ..*first
    };
    step.time = step.data_loader + step.waiting + step.runtime + step.operators + step.python + step.other;
    Some(host_bar(&step))
}
