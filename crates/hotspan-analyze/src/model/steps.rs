//! The steps of a program: those it marks, or, where it marks none, from one step of its optimizer to the next.
//!
//! A step of the second kind ends when `Optimizer.step` returns and begins where the one before ended. The first begins with
//! the first batch or `zero_grad`; where the program has neither, its beginning is unknown and it is left out.
//!
//! Processes that train side by side have steps of their own: the one with the most steps stands for all.

use std::collections::BTreeMap;

use hotspan_store::{Duration, ProcessId, Timestamp};

use super::Model;
use super::events::Role;
use super::warm_up::warm_up;
use crate::intervals::Interval;

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// `ProfilerStep#` marks.
    Marks,
    /// Steps of an optimizer.
    Optimizer,
    /// The program has no steps that we know of.
    Nothing,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub number: i64,
    /// When it began.
    pub begin: Timestamp,
    /// How long it took.
    pub duration: Duration,
}

impl Step {
    /// From its beginning to its end.
    #[must_use]
    pub fn interval(&self) -> Interval {
        Interval::new(self.begin, self.begin.plus(self.duration))
    }
}

/// The steps of a program.
#[derive(Clone, Debug)]
pub struct ProgramSteps {
    /// All of them, in order of time.
    pub all: Vec<Step>,
    /// What they are.
    pub source: StepSource,
    /// How many of the first ones are warm-up.
    pub warm_up: usize,
}

impl ProgramSteps {
    pub(super) fn of(model: &Model) -> Self {
        let marks = marked(model);
        let (all, source) = if marks.is_empty() {
            let steps = of_optimizer(model);
            let source = if steps.is_empty() { StepSource::Nothing } else { StepSource::Optimizer };
            (steps, source)
        } else {
            (marks, StepSource::Marks)
        };
        let warm_up = warm_up(&all);
        Self { all, source, warm_up }
    }

    /// The steps without warm-up.
    #[must_use]
    pub fn steady(&self) -> &[Step] {
        &self.all[self.warm_up..]
    }

    /// The steps that the program marked.
    #[must_use]
    pub fn marked(&self) -> &[Step] {
        if self.source == StepSource::Marks { &self.all } else { &[] }
    }
}

/// The median of some times, which lies in the middle between two where their number is even; 0 of none.
pub(crate) fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    let middle = times.len() / 2;
    match times.get(middle) {
        Some(&upper) if times.len().is_multiple_of(2) => Duration(times[middle - 1].0.midpoint(upper.0)),
        Some(&middle) => middle,
        None => Duration::ZERO,
    }
}

fn marked(model: &Model) -> Vec<Step> {
    let spans = model.spans();
    let prefix = |name: &str| name.strip_prefix("ProfilerStep#").and_then(|number| number.parse().ok());
    // Names repeat: each is read once.
    let numbers: Vec<Option<i64>> = model.strings().iter().map(prefix).collect();
    if numbers.iter().all(Option::is_none) {
        return Vec::new();
    }
    let host = spans.ids().filter(|&span| model.role(span).is_host() && spans.duration(span).0 > 0);
    let mark = |span| {
        let (number, begin) = (numbers[spans.name(span).index()]?, spans.time(span));
        let process = model.track(spans.track(span)).process;
        Some((process, Step { number, begin, duration: spans.duration(span) }))
    };
    let mut steps = of_busiest(host.filter_map(mark).collect());
    steps.sort_by_key(|step| (step.begin, step.number));
    steps
}

fn of_optimizer(model: &Model) -> Vec<Step> {
    let spans = model.spans();
    let mut ends: Vec<(ProcessId, Interval)> = Vec::new();
    let mut first_begin: Option<Timestamp> = None;
    for span in spans.ids() {
        if !matches!(model.role(span), Role::Annotation | Role::Operator) {
            continue;
        }
        let name = model.span_name(span);
        if name.starts_with("Optimizer.step#") {
            let process = model.track(spans.track(span)).process;
            ends.push((process, Interval::new(spans.time(span), spans.end(span))));
        } else if name.starts_with("Optimizer.zero_grad#") || name.starts_with("enumerate(DataLoader)#") {
            let begin = spans.time(span);
            first_begin = Some(first_begin.map_or(begin, |earliest| earliest.min(begin)));
        }
    }
    let mut ends = of_busiest(ends);
    ends.sort_unstable_by_key(|step| (step.begin, step.end));
    let mut steps = Vec::new();
    let mut begin = first_begin.filter(|&begin| ends.first().is_some_and(|first| begin <= first.begin));
    for Interval { end, .. } in ends {
        if let Some(begin) = begin.filter(|&begin| begin < end) {
            steps.push(Step { number: steps.len() as i64, begin, duration: end.since(begin) });
        }
        begin = Some(end);
    }
    steps
}

/// What belongs to the process that has the most of it; of several, to the first.
fn of_busiest<T>(of_processes: Vec<(ProcessId, T)>) -> Vec<T> {
    let mut counts: BTreeMap<ProcessId, u64> = BTreeMap::new();
    for (process, _) in &of_processes {
        *counts.entry(*process).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|&(process, count)| (count, std::cmp::Reverse(process)));
    let busiest = most.map(|(process, _)| process);
    of_processes.into_iter().filter(|(process, _)| Some(*process) == busiest).map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use hotspan_store::{EventRow, Ident, SpanRow, TraceBuilder};

    use super::*;

    fn model(spans: &[(i64, &str, i64, i64)]) -> Model {
        let mut builder = TraceBuilder::new();
        for &(process, name, from, to) in spans {
            let (track, name) =
                (builder.track(Ident::Int(process), Ident::Int(process)), builder.intern(name));
            let (category, args) = (builder.category("user_annotation"), builder.no_args());
            let event = EventRow { time: Timestamp(from), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(to - from) });
        }
        Model::new(builder.finish())
    }

    fn times(model: &Model) -> Vec<(i64, i64)> {
        let first = model.window().0.0;
        model.steps().all.iter().map(|step| (step.begin.0 - first, step.duration.0)).collect()
    }

    #[test]
    fn a_step_goes_from_one_optimizer_step_to_the_next() {
        let step = "Optimizer.step#SGD.step";
        let found =
            model(&[(1, step, 100, 110), (1, step, 210, 230), (2, step, 300, 310), (1, step, 330, 340)]);
        assert_eq!(times(&found), [(10, 120), (130, 110)]);
        assert_eq!(found.steps().source, StepSource::Optimizer);
        // The first batch says when the first step began.
        let found = model(&[(1, "enumerate(DataLoader)#_Single.__next__", 40, 60), (1, step, 100, 110)]);
        assert_eq!(times(&found), [(0, 70)]);
    }

    #[test]
    fn marks_win() {
        let found = model(&[(1, "ProfilerStep#3", 0, 50), (1, "Optimizer.step#SGD.step", 40, 45)]);
        assert_eq!(found.steps().source, StepSource::Marks);
        assert_eq!(model(&[(1, "other", 0, 1)]).steps().source, StepSource::Nothing);
    }
}
