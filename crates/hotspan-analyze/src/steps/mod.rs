//! Where the time of a step goes, exactly: on each device, and on the host. In both views the parts do not overlap and add
//! up to the step.
//!
//! On a device, computing comes first, then communication, then copies: what runs beside a kernel is free, so only
//! the *exposed* rest counts. On the host, at each moment the first of these that any thread does: loading data, waiting
//! for the device, other runtime calls, operators, Python.

mod host;

use hotspan_store::{Duration, Timestamp};

use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::device_work::{DeviceId, DeviceWork};

pub use host::HostStep;

/// The time of one device in one step: `compute + communication + copy + idle == time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceStep {
    /// The step's number; `None` when the trace has no steps and the recording counts as one.
    pub step: Option<i64>,
    /// Which device.
    pub device: DeviceId,
    /// When the step begins for devices.
    pub begin: Timestamp,
    /// How long it takes.
    pub time: Duration,
    /// A kernel computes.
    pub compute: Duration,
    /// Communication, and no kernel computes.
    pub communication: Duration,
    /// A copy or fill, and neither of the above.
    pub copy: Duration,
    /// Nothing.
    pub idle: Duration,
}

/// The steps of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Each step on each device, in order of time.
    pub devices: Vec<DeviceStep>,
    /// Each step on the host, in order of time.
    pub host: Vec<HostStep>,
}

/// When one device does what, the parts apart from each other.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// A kernel computes.
    pub compute: Intervals,
    /// Communication, and no kernel computes.
    pub communication: Intervals,
    /// A copy or fill, and neither of the above.
    pub copy: Intervals,
}

impl Exposed {
    /// Takes the work of a device apart.
    #[must_use]
    pub fn of(device: &DeviceWork) -> Self {
        let communication = device.communication.subtract(&device.compute);
        let copy = device.copy.subtract(&device.compute).subtract(&device.communication);
        Self { compute: device.compute.clone(), communication, copy }
    }

    /// The time of the device in a window.
    #[must_use]
    pub fn within(&self, window: Interval, step: Option<i64>, device: DeviceId) -> DeviceStep {
        let compute = self.compute.length_within(window);
        let communication = self.communication.length_within(window);
        let copy = self.copy.length_within(window);
        let time = window.length();
        let idle = time - compute - communication - copy;
        DeviceStep { step, device, begin: window.begin, time, compute, communication, copy, idle }
    }
}

/// Takes apart the steps of a trace; a trace without steps counts as one.
#[must_use]
pub fn steps(model: &Model) -> Steps {
    let (devices, windows) = (model.device_work(), model.step_windows());
    let exposed: Vec<Exposed> = devices.iter().map(Exposed::of).collect();
    let mut steps = Steps { devices: Vec::new(), host: host::host_steps(model) };
    for window in windows {
        for (device, exposed) in devices.iter().zip(&exposed) {
            steps.devices.push(exposed.within(window.device, window.number, device.id));
        }
    }
    steps
}
