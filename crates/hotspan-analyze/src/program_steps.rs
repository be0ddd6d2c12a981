//! The steps of a program: those it marks, or, where it marks none, from one step of its optimizer to the next.
//!
//! A step of the second kind ends when `Optimizer.step` returns and begins where the one before ended. The first begins with
//! the first batch or `zero_grad`; where the program has neither, its beginning is unknown and it is left out.

use hotspan_store::{Category, Duration, Timestamp, Trace};

use crate::summary::{Step, summary};

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

/// The steps in order of time, and what they are.
#[must_use]
pub fn program_steps(trace: &Trace) -> (Vec<Step>, StepSource) {
    let marked = summary(trace).steps;
    if !marked.is_empty() {
        return (marked, StepSource::Marks);
    }
    let steps = optimizer_steps(trace);
    let source = if steps.is_empty() { StepSource::Nothing } else { StepSource::Optimizer };
    (steps, source)
}

fn optimizer_steps(trace: &Trace) -> Vec<Step> {
    let spans = trace.spans();
    let mut ends: Vec<(hotspan_store::TrackId, Timestamp, Timestamp)> = Vec::new();
    let mut first_begin: Option<Timestamp> = None;
    for span in spans.ids() {
        if !matches!(trace.span_category(span), Category::UserAnnotation | Category::Operator) {
            continue;
        }
        let name = trace.span_name(span);
        if name.starts_with("Optimizer.step#") {
            ends.push((spans.track(span), spans.time(span), spans.end(span)));
        } else if name.starts_with("Optimizer.zero_grad#") || name.starts_with("enumerate(DataLoader)#") {
            let begin = spans.time(span);
            first_begin = Some(first_begin.map_or(begin, |known| known.min(begin)));
        }
    }
    // Processes that train side by side have steps of their own: the busiest one stands for all.
    let Some(track) = busiest(&ends) else { return Vec::new() };
    ends.retain(|&(other, ..)| other == track);
    ends.sort_unstable_by_key(|&(_, begin, end)| (begin, end));
    let mut steps = Vec::new();
    let mut begin = first_begin.filter(|&begin| ends.first().is_some_and(|&(_, first, _)| begin <= first));
    for (_, _, end) in ends {
        if let Some(begin) = begin.filter(|&begin| begin < end) {
            let number = steps.len() as i64;
            steps.push(Step { number, begin, duration: Duration(end.since(begin).0) });
        }
        begin = Some(end);
    }
    steps
}

fn busiest(ends: &[(hotspan_store::TrackId, Timestamp, Timestamp)]) -> Option<hotspan_store::TrackId> {
    let mut counts: Vec<(hotspan_store::TrackId, u64)> = Vec::new();
    for &(track, ..) in ends {
        match counts.iter_mut().find(|(known, _)| *known == track) {
            Some(known) => known.1 += 1,
            None => counts.push((track, 1)),
        }
    }
    let most = counts.iter().map(|&(_, count)| count).max()?;
    counts.into_iter().find(|&(_, count)| count == most).map(|(track, _)| track)
}

#[cfg(test)]
mod tests {
    use hotspan_store::{EventRow, Ident, SpanRow, TraceBuilder};

    use super::*;

    fn trace(spans: &[(i64, &str, i64, i64)]) -> Trace {
        let mut builder = TraceBuilder::new();
        for &(thread, name, from, to) in spans {
            let (track, name) = (builder.track(Ident::Int(1), Ident::Int(thread)), builder.intern(name));
            let (category, args) = (builder.category("user_annotation"), builder.no_args());
            let event = EventRow { time: Timestamp(from), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(to - from) });
        }
        builder.finish()
    }

    fn times(trace: &Trace) -> Vec<(i64, i64)> {
        let first = trace.window().0.0;
        program_steps(trace).0.iter().map(|step| (step.begin.0 - first, step.duration.0)).collect()
    }

    #[test]
    fn a_step_goes_from_one_optimizer_step_to_the_next() {
        let step = "Optimizer.step#SGD.step";
        let found =
            trace(&[(1, step, 100, 110), (1, step, 210, 230), (2, step, 300, 310), (1, step, 330, 340)]);
        assert_eq!(times(&found), [(10, 120), (130, 110)]);
        assert_eq!(program_steps(&found).1, StepSource::Optimizer);
        // The first batch says when the first step began.
        let found = trace(&[(1, "enumerate(DataLoader)#_Single.__next__", 40, 60), (1, step, 100, 110)]);
        assert_eq!(times(&found), [(0, 70)]);
    }

    #[test]
    fn marks_win() {
        let found = trace(&[(1, "ProfilerStep#3", 0, 50), (1, "Optimizer.step#SGD.step", 40, 45)]);
        assert_eq!(program_steps(&found).1, StepSource::Marks);
        assert_eq!(program_steps(&trace(&[(1, "other", 0, 1)])).1, StepSource::Nothing);
    }
}
