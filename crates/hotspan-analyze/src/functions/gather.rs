//! Where functions are read from: calls added up while recording, else spans of Python functions, else samples.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Category, Duration, FrameId, FrameKind, SpanId, StringId, Trace};

use super::{Calls, FunctionName, Functions};

pub(super) fn gather(trace: &Trace) -> Functions {
    if !trace.profile().calls.is_empty() {
        return from_calls(trace);
    }
    let found = from_spans(trace);
    if found.is_empty() { from_samples(trace) } else { found }
}

pub(super) fn spans_of(trace: &Trace, function: &FunctionName) -> Vec<SpanId> {
    if !trace.profile().calls.is_empty() {
        return Vec::new();
    }
    let spans = trace.spans();
    let mut is_wanted: HashMap<StringId, bool> = HashMap::new();
    let is_call = |&span: &SpanId| {
        trace.span_category(span) == Category::PythonFunction
            && *is_wanted.entry(spans.name(span)).or_insert_with(|| parse(trace.span_name(span)) == *function)
    };
    spans.ids().filter(is_call).collect()
}

fn frame_names(trace: &Trace) -> Vec<FunctionName> {
    let name = |frame: hotspan_store::FrameRow| {
        let is_builtin = frame.kind == FrameKind::Builtin;
        FunctionName {
            file: if is_builtin { "~".to_owned() } else { trace.str(frame.file).to_owned() },
            line: if is_builtin { 0 } else { frame.first_line },
            name: trace.str(frame.name).to_owned(),
        }
    };
    trace.profile().frames.rows().map(name).collect()
}

fn from_calls(trace: &Trace) -> Functions {
    let names = frame_names(trace);
    let mut functions = Functions::default();
    let mut callers: Vec<Vec<(FunctionName, Calls)>> = vec![Vec::new(); names.len()];
    for row in trace.profile().calls.rows() {
        let sums = Calls {
            calls: row.calls,
            primitive: row.primitive_calls,
            own: row.self_time,
            total: row.total_time,
        };
        if row.caller == FrameId::NONE {
            functions.add_calls(&names[row.callee.index()], sums);
        } else {
            callers[row.callee.index()].push((names[row.caller.index()].clone(), sums));
        }
    }
    for (name, callers) in names.iter().zip(callers) {
        if !callers.is_empty() {
            functions.add_callers(name, callers);
        }
    }
    functions
}

/// Adds one call at a time; what is added for callers is kept by name until the end.
#[derive(Default)]
struct Sums {
    names: Vec<FunctionName>,
    calls: Vec<Calls>,
    edges: HashMap<(usize, usize), Calls>,
    /// Edges in order of appearance.
    order: Vec<(usize, usize)>,
}

impl Sums {
    fn edge(&mut self, caller: usize, callee: usize) -> &mut Calls {
        self.edges.entry((caller, callee)).or_insert_with(|| {
            self.order.push((caller, callee));
            Calls::default()
        })
    }

    fn finish(self) -> Functions {
        let mut functions = Functions::default();
        for (name, calls) in self.names.iter().zip(&self.calls) {
            if calls.calls > 0 {
                functions.add_calls(name, *calls);
            }
        }
        let mut callers: Vec<Vec<(FunctionName, Calls)>> = vec![Vec::new(); self.names.len()];
        for (caller, callee) in self.order {
            if let Some(&calls) = self.edges.get(&(caller, callee)) {
                callers[callee].push((self.names[caller].clone(), calls));
            }
        }
        for (name, callers) in self.names.iter().zip(callers) {
            if !callers.is_empty() {
                functions.add_callers(name, callers);
            }
        }
        functions
    }
}

/// `torch/nn/functional.py(1766): relu` has a file and a line; `<built-in function len>` and `nn.Module: Linear_0` have none.
pub(super) fn parse(name: &str) -> FunctionName {
    let location = name.split_once("): ").and_then(|(location, function)| {
        let (file, line) = location.rsplit_once('(')?;
        Some(FunctionName { file: file.to_owned(), line: line.parse().ok()?, name: function.to_owned() })
    });
    location.unwrap_or_else(|| FunctionName { file: "~".to_owned(), line: 0, name: name.to_owned() })
}

/// How often each function, and each pair of caller and callee, is open on the current thread.
#[derive(Default)]
struct Depth {
    functions: HashMap<usize, i64>,
    edges: HashMap<(usize, usize), i64>,
}

fn from_spans(trace: &Trace) -> Functions {
    struct Open {
        span: SpanId,
        function: usize,
        caller: Option<usize>,
        inner: Duration,
    }
    let spans = trace.spans();
    let is_python: Vec<bool> =
        trace.categories().map(|(_, _, category)| category == Category::PythonFunction).collect();
    let mut order: Vec<SpanId> = spans
        .ids()
        .filter(|&span| is_python.get(spans.category(span).index()).copied().unwrap_or(false))
        .collect();
    order.sort_by_key(|&span| (spans.track(span), spans.time(span), Reverse(spans.end(span))));
    let mut sums = Sums::default();
    let mut ids = HashMap::new();
    let mut depth = Depth::default();
    let mut open: Vec<Open> = Vec::new();
    let close = |sums: &mut Sums, open: &mut Vec<Open>, depth: &mut Depth| {
        let Some(ended) = open.pop() else { return };
        let duration = Duration(spans.duration(ended.span).0.max(0));
        let own = Duration(duration.0.saturating_sub(ended.inner.0));
        let count = |calls: &mut Calls, depth: &mut i64| {
            *depth -= 1;
            let outermost = *depth == 0;
            let total = if outermost { duration } else { Duration(0) };
            calls.add(Calls { calls: 1, primitive: i64::from(outermost), own, total });
        };
        count(&mut sums.calls[ended.function], depth.functions.entry(ended.function).or_insert(1));
        if let Some(caller) = ended.caller {
            let pair = (caller, ended.function);
            count(sums.edge(caller, ended.function), depth.edges.entry(pair).or_insert(1));
        }
        if let Some(outer) = open.last_mut() {
            outer.inner.0 = outer.inner.0.saturating_add(duration.0);
        }
    };
    let mut track = None;
    for span in order {
        if track != Some(spans.track(span)) {
            while !open.is_empty() {
                close(&mut sums, &mut open, &mut depth);
            }
            track = Some(spans.track(span));
        }
        let (begin, end) = (spans.time(span), spans.end(span));
        while open.last().is_some_and(|outer| begin >= spans.end(outer.span) || end > spans.end(outer.span)) {
            close(&mut sums, &mut open, &mut depth);
        }
        let function = *ids.entry(spans.name(span)).or_insert_with(|| {
            sums.names.push(parse(trace.span_name(span)));
            sums.calls.push(Calls::default());
            sums.names.len() - 1
        });
        *depth.functions.entry(function).or_insert(0) += 1;
        let caller = open.last().map(|outer| outer.function);
        if let Some(caller) = caller {
            *depth.edges.entry((caller, function)).or_insert(0) += 1;
        }
        open.push(Open { span, function, caller, inner: Duration(0) });
    }
    while !open.is_empty() {
        close(&mut sums, &mut open, &mut depth);
    }
    sums.finish()
}

/// A call of a sampled function is a sample that saw it.
fn from_samples(trace: &Trace) -> Functions {
    let profile = trace.profile();
    // Frames that differ only in the line being executed are one function.
    let all = frame_names(trace);
    let mut sums = Sums::default();
    let mut ids: HashMap<&FunctionName, usize> = HashMap::new();
    let places: Vec<usize> = all
        .iter()
        .map(|name| {
            *ids.entry(name).or_insert_with(|| {
                sums.names.push(name.clone());
                sums.calls.push(Calls::default());
                sums.names.len() - 1
            })
        })
        .collect();
    let (mut seen, mut seen_edges) = (HashSet::new(), HashSet::new());
    for sample in profile.samples.rows() {
        seen.clear();
        seen_edges.clear();
        let weight = Duration(sample.weight.0.max(0));
        let mut callee: Option<(usize, Duration)> = None;
        let mut own = weight;
        for frame in profile.stacks.frames(sample.stack) {
            let function = places[frame.index()];
            if let Some((callee, callee_own)) = callee
                && seen_edges.insert((function, callee))
            {
                sums.edge(function, callee).add(Calls {
                    calls: 1,
                    primitive: 1,
                    own: callee_own,
                    total: weight,
                });
            }
            if seen.insert(function) {
                sums.calls[function].add(Calls { calls: 1, primitive: 1, own, total: weight });
            }
            callee = Some((function, own));
            own = Duration(0);
        }
    }
    sums.finish()
}
