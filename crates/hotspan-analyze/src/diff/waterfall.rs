//! From the step of one recording to that of another, by cause: what each activity adds or takes away. The changes add up to that
//! of the step.
//!
//! Where devices worked in both, a step is that of the devices, with idle time by cause; else that of the host; without steps, the
//! wall time of the program. Medians do not add up, so these are means, of the steps without warm-up.

use hotspan_store::Duration;

use crate::model::Model;
use crate::verdict::{Bar, Part, mean_device_step, mean_host_step};

/// One activity on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseChange {
    /// What programs call it.
    pub key: String,
    /// What people call it.
    pub title: String,
    /// Its time before.
    pub before: Duration,
    /// Its time after.
    pub after: Duration,
    /// Whether a device had nothing to do meanwhile, and this is why.
    pub is_idle: bool,
}

/// A step of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepDot {
    /// Its number.
    pub number: i64,
    /// How long it took.
    pub time: Duration,
    /// Whether it is warm-up, which nothing is judged by.
    pub is_warm_up: bool,
}

/// What lies between two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waterfall {
    /// What the times are.
    pub measure: &'static str,
    /// All of it before.
    pub before: Duration,
    /// All of it after.
    pub after: Duration,
    /// The activities, largest change first.
    pub causes: Vec<CauseChange>,
    /// The steps of each side, in order of time.
    pub steps: (Vec<StepDot>, Vec<StepDot>),
}

/// What makes the second recording take more or less time than the first; `None` where that is not known.
#[must_use]
pub fn waterfall(before: &Model, after: &Model) -> Option<Waterfall> {
    let described = |model| Model::job(model).as_ref().map_or(model, |job| &job.model);
    let (before, after) = (described(before), described(after));
    let both = |bar: fn(&Model) -> Option<Bar>| bar(before).zip(bar(after));
    let (measure, (left, right)) = both(mean_device_step)
        .map(|bars| ("Mean step on the device", bars))
        .or_else(|| both(mean_host_step).map(|bars| ("Mean step on the host", bars)))
        .or_else(|| both(wall_bar).map(|bars| ("Wall time", bars)))?;
    let mut causes: Vec<CauseChange> = Vec::new();
    for (bar, is_after) in [(&left, false), (&right, true)] {
        for Part { key, title, time, is_idle } in &bar.parts {
            let index = causes.iter().position(|cause| cause.key == *key && cause.is_idle == *is_idle);
            let index = index.unwrap_or_else(|| {
                let (before, after) = (Duration::ZERO, Duration::ZERO);
                let (key, title) = (key.to_string(), title.to_string());
                causes.push(CauseChange { key, title, before, after, is_idle: *is_idle });
                causes.len() - 1
            });
            let side = if is_after { &mut causes[index].after } else { &mut causes[index].before };
            *side += *time;
        }
    }
    causes.sort_by_key(|cause| std::cmp::Reverse((cause.after - cause.before).0.saturating_abs()));
    let steps = (dots(before), dots(after));
    Some(Waterfall { measure, before: left.time, after: right.time, causes, steps })
}

fn wall_bar(model: &Model) -> Option<Bar> {
    let wall_time = model.wall_time().as_ref()?;
    let parts = wall_time.parts.iter().map(|part| {
        let title = part.activity.title();
        Part { key: title.clone().into(), title: title.into(), time: part.time, is_idle: false }
    });
    Some(Bar { title: String::new(), time: wall_time.total, parts: parts.collect() })
}

fn dots(model: &Model) -> Vec<StepDot> {
    let steps = model.steps();
    let dot = |(index, step): (usize, &crate::model::steps::Step)| StepDot {
        number: step.number,
        time: step.duration,
        is_warm_up: index < steps.warm_up,
    };
    steps.all.iter().enumerate().map(dot).collect()
}
