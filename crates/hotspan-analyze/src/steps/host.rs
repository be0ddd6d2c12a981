//! The host's side of a step.

use hotspan_store::{Duration, Timestamp};

use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::host_activity::HostKind;
use crate::model::runtime_calls::CallKind;
use crate::model::windows::StepWindow;

/// The time of the host in one step; the parts add up to `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStep {
    /// The step's number; `None` when the trace has no steps.
    pub step: Option<i64>,
    /// When the mark begins.
    pub begin: Timestamp,
    /// From the beginning to the end of the mark.
    pub time: Duration,
    /// Waiting for the next batch.
    pub data_loader: Duration,
    /// In a synchronising call.
    pub waiting: Duration,
    /// In another runtime or driver call.
    pub runtime: Duration,
    /// In an operator, but in none of the above.
    pub operators: Duration,
    /// In a Python function, but in none of the above. Zero when Python was not recorded.
    pub python: Duration,
    /// In nothing that was recorded.
    pub other: Duration,
}

/// Takes the steps apart. Operators and calls of all threads count; Python only of threads that drive a device or
/// mark steps, since a thread that waits for something is in a Python function all the time.
pub(super) fn host_steps(model: &Model) -> Vec<HostStep> {
    let (spans, activity) = (model.spans(), model.host_activity());
    let (mut loading, mut waiting, mut runtime) = (Vec::new(), Vec::new(), Vec::new());
    let (mut operators, mut python) = (Vec::new(), Vec::new());
    for span in spans.ids() {
        let list = match activity.kind(span) {
            HostKind::DataLoader => &mut loading,
            HostKind::Call(CallKind::Synchronise) => &mut waiting,
            HostKind::Call(_) => &mut runtime,
            HostKind::Operator | HostKind::Communication => &mut operators,
            HostKind::Python if activity.drives(spans.track(span)) => &mut python,
            HostKind::Python | HostKind::Step | HostKind::Other => continue,
        };
        list.push(Interval::new(spans.time(span), spans.end(span)));
    }
    // Each part is what the parts before it leave.
    let mut taken = Intervals::default();
    let parts: Vec<Intervals> = [loading, waiting, runtime, operators, python]
        .into_iter()
        .map(|list| {
            let all: Intervals = list.into_iter().collect();
            let part = all.subtract(&taken);
            taken = taken.union(&all);
            part
        })
        .collect();
    let step = |window: &StepWindow| {
        let length = |part: usize| parts[part].length_within(window.host);
        let time = window.host.length();
        HostStep {
            step: window.number,
            begin: window.host.begin,
            time,
            data_loader: length(0),
            waiting: length(1),
            runtime: length(2),
            operators: length(3),
            python: length(4),
            other: time - taken.length_within(window.host),
        }
    };
    model.step_windows().iter().map(step).collect()
}
