//! What is compared: for each way of grouping, the time of every occurrence and its key.
//!
//! Host times are self times, so that rows add up; what happens in the step outside of all calls is the row of the step itself.

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameKind, SpanId, Timestamp, Trace};

use crate::model::Model;
use crate::model::events::Role;

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// An operator or a marked range, by name.
    Operator,
    /// An operator with the shapes of its inputs.
    Shape,
    /// Calls in an `nn.Module`.
    Module,
    /// A kernel, copy or fill on a device.
    Kernel,
    /// A Python function.
    Function,
    /// A line of Python.
    Line,
}

/// One occurrence.
pub(super) struct Fact {
    /// An index into [`Measured::keys`].
    pub(super) key: usize,
    pub(super) at: Timestamp,
    pub(super) time: Duration,
    pub(super) calls: i64,
}

pub(super) struct Measured {
    pub(super) keys: Vec<String>,
    pub(super) facts: Vec<Fact>,
    /// What the times are.
    pub(super) what: &'static str,
}

#[derive(Default)]
struct Collector {
    keys: Vec<String>,
    indices: HashMap<String, usize>,
    facts: Vec<Fact>,
}

impl Collector {
    fn add(&mut self, key: &str, at: Timestamp, time: Duration, calls: i64) {
        let key = match self.indices.get(key) {
            Some(&index) => index,
            None => {
                self.indices.insert(key.to_owned(), self.keys.len());
                self.keys.push(key.to_owned());
                self.keys.len() - 1
            }
        };
        self.facts.push(Fact { key, at, time, calls });
    }

    fn finish(self, what: &'static str) -> Measured {
        Measured { keys: self.keys, facts: self.facts, what }
    }
}

pub(super) fn measure(model: &Model, by: By) -> Measured {
    match by {
        By::Operator | By::Shape | By::Module => calls(model, by),
        By::Kernel => kernels(model),
        By::Function => functions(model),
        By::Line => lines(model),
    }
}

fn kernels(trace: &Trace) -> Measured {
    let (mut collector, spans) = (Collector::default(), trace.spans());
    for span in spans.ids().filter(|&span| trace.span_category(span).is_device()) {
        collector.add(trace.span_name(span), spans.time(span), spans.duration(span), 1);
    }
    collector.finish("device time")
}

/// The time of each host span without what it encloses.
fn self_times(model: &Model, counts: impl Fn(SpanId) -> bool) -> Vec<Duration> {
    let (spans, nesting) = (model.spans(), model.nesting());
    let mut times: Vec<Duration> = spans.ids().map(|span| spans.duration(span)).collect();
    let around = nesting.innermost(&counts);
    for &span in nesting.order().iter().filter(|&&span| counts(span)) {
        if let Some(outer) = nesting.parent(span).and_then(|parent| around.of(parent)) {
            times[outer.index()] -= spans.duration(span);
        }
    }
    times
}

fn calls(model: &Model, by: By) -> Measured {
    let (spans, events, nesting) = (model.spans(), model.events(), model.nesting());
    let is_call = |span: SpanId| {
        matches!(events.role(span), Role::Operator | Role::Annotation) && !events.is_async(span)
    };
    let times = self_times(model, is_call);
    let shapes = model.input_dims();
    let modules = (by == By::Module).then(|| model.modules());
    let mut collector = Collector::default();
    let mut key = String::new();
    for &span in nesting.order().iter().filter(|&&span| is_call(span)) {
        key.clear();
        key.push_str(model.name(span));
        if let Some(modules) = modules {
            let module = modules.module(span).map_or("outside of modules", |module| model.str(module));
            key.clear();
            key.push_str(module.strip_prefix("nn.Module: ").unwrap_or(module));
        } else if by == By::Shape
            && let Some(shape) = shapes.of(span)
        {
            key.push(' ');
            key.push_str(shape);
        }
        collector.add(&key, spans.time(span), times[span.index()], 1);
    }
    collector.finish("self CPU time")
}

fn functions(model: &Model) -> Measured {
    let spans = model.spans();
    let is_python = |span: SpanId| model.role(span) == Role::Python;
    let mut collector = Collector::default();
    if spans.ids().any(is_python) {
        let times = self_times(model, is_python);
        for span in spans.ids().filter(|&span| is_python(span)) {
            let name = without_address(model.span_name(span));
            collector.add(&name, spans.time(span), times[span.index()], 1);
        }
        return collector.finish("self time of Python functions");
    }
    if !model.profile().samples.is_empty() {
        return samples(model, false);
    }
    let profile = model.profile();
    for row in profile.calls.rows().filter(|row| row.caller == hotspan_store::FrameId::NONE) {
        let frame = profile.frames.row(row.callee);
        let key = format!("{} ({})", model.str(frame.name), model.str(frame.file));
        collector.add(&key, model.window().0, row.self_time, row.calls);
    }
    collector.finish("self time of Python functions")
}

fn lines(trace: &Trace) -> Measured {
    if !trace.profile().samples.is_empty() {
        return samples(trace, true);
    }
    let (mut collector, profile) = (Collector::default(), trace.profile());
    for row in profile.lines.rows() {
        let file = trace.str(profile.frames.row(row.function).file);
        collector.add(&format!("{file}:{}", row.line), trace.window().0, row.time, row.hits);
    }
    collector.finish("time of lines")
}

/// Samples by their innermost Python frame.
fn samples(trace: &Trace, with_line: bool) -> Measured {
    let (mut collector, profile) = (Collector::default(), trace.profile());
    for row in profile.samples.rows() {
        let mut frames = profile.stacks.frames(row.stack).map(|frame| profile.frames.row(frame));
        let Some(frame) = frames.find(|frame| frame.kind == FrameKind::Python) else { continue };
        let (name, file) = (trace.str(frame.name), trace.str(frame.file));
        let key = if with_line { format!("{file}:{}", frame.line) } else { format!("{name} ({file})") };
        collector.add(&key, row.time, row.weight, 1);
    }
    collector.finish(if with_line { "sampled time of lines" } else { "sampled self time of functions" })
}

/// A built-in method of an object is the same function wherever the object lies.
fn without_address(name: &str) -> String {
    match name.split_once(" object at 0x") {
        Some((start, rest)) => {
            let end = rest.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(rest.len());
            format!("{start}{}", &rest[end..])
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_not_part_of_a_name() {
        assert_eq!(
            without_address("<built-in method sum of Tensor object at 0x7ff4>"),
            "<built-in method sum of Tensor>"
        );
        assert_eq!(without_address("train.py(3): step"), "train.py(3): step");
    }
}
