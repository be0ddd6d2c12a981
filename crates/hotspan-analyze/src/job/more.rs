//! What one rank does more than others in its steps: operators, loading data, lines of the program.

use hashbrown::HashMap;
use hotspan_store::{Duration, Timestamp};

use crate::intervals::Intervals;
use crate::model::Model;
use crate::model::host_activity::HostKind;
use crate::model::source::users_line;
use crate::ranks::RankSummary;
use crate::wall_time::program_thread;

/// What people call the time of DataLoaders.
const LOADING: &str = "loading data (DataLoader)";

/// Something that a rank does more than the others.
#[derive(Clone, Debug, PartialEq)]
pub struct More {
    /// An operator, loading data, or a line of the program.
    pub what: String,
    /// How much more time that takes in a step.
    pub time: Duration,
    /// Whether it is done more often than by the others, or takes twice as long: otherwise the same work may only be slower there.
    pub is_more_work: bool,
}

/// What is done in the steps of a rank.
#[derive(Debug, Default)]
pub(super) struct StepWork {
    steps: f64,
    calls: HashMap<String, (u64, Duration)>,
    lines: HashMap<String, Duration>,
}

impl StepWork {
    pub(super) fn of(model: &Model, summary: &RankSummary) -> Self {
        let steps: Intervals = summary.steps.iter().copied().collect();
        let is_in = |times: &Intervals, time: Timestamp| {
            let after = times.parts().partition_point(|part| part.begin <= time);
            after.checked_sub(1).is_some_and(|index| time < times.parts()[index].end)
        };
        let mut work = Self { steps: summary.steps.len().max(1) as f64, ..Self::default() };
        let (spans, activity) = (model.spans(), model.host_activity());
        for span in spans.ids().filter(|&span| is_in(&steps, spans.time(span))) {
            let (name, time) = match activity.kind(span) {
                HostKind::DataLoader => (LOADING, spans.duration(span)),
                HostKind::Operator => {
                    let inner = model.children().of_span(span).iter();
                    let inner = inner.filter(|&&child| activity.kind(child) == HostKind::Operator);
                    let inside: Duration = inner.map(|&child| spans.duration(child)).sum();
                    (model.name(span), spans.duration(span) - inside)
                }
                _ => continue,
            };
            let row = work.calls.entry_ref(name).or_default();
            *row = (row.0 + 1, row.1 + time);
        }
        let main = program_thread(model);
        for (index, sample) in model.profile().samples.rows().enumerate() {
            let counts = Some(sample.track) == main && is_in(&steps, sample.time);
            if counts
                && !is_in(&summary.exposed, sample.time)
                && let Some(line) = users_line(model, index)
            {
                *work.lines.entry(line).or_default() += sample.weight;
            }
        }
        work
    }

    fn call(&self, name: &str) -> (f64, f64) {
        let (count, time) = self.calls.get(name).copied().unwrap_or_default();
        (count as f64 / self.steps, time.0 as f64 / self.steps)
    }

    fn line(&self, line: &str) -> f64 {
        self.lines.get(line).copied().unwrap_or_default().0 as f64 / self.steps
    }

    /// The call and the line that take most time more than in the others, on average.
    pub(super) fn more_than(&self, others: &[Self]) -> (Option<More>, Option<More>) {
        let mean =
            |of: &dyn Fn(&Self) -> f64| others.iter().map(of).sum::<f64>() / others.len().max(1) as f64;
        let call = |name: &String| {
            let (count, time) = self.call(name);
            let usual = (mean(&|other| other.call(name).0), mean(&|other| other.call(name).1));
            let is_more_work = count > usual.0 * 1.2 || time > usual.1 * 2.0;
            More { what: name.clone(), time: Duration((time - usual.1) as i64), is_more_work }
        };
        let line = |line: &String| {
            let (time, usual) = (self.line(line), mean(&|other| other.line(line)));
            More {
                what: line.clone(),
                time: Duration((time - usual) as i64),
                is_more_work: time > usual * 2.0,
            }
        };
        let most = |rows: Vec<More>| {
            let most = rows.into_iter().max_by(|one, two| (one.time, &two.what).cmp(&(two.time, &one.what)));
            most.filter(|row| row.time.0 > 0)
        };
        (most(self.calls.keys().map(call).collect()), most(self.lines.keys().map(line).collect()))
    }
}
