//! The call tree: which function called which, and how long each took, from whatever the trace has.
//!
//! Samples say it best and are taken where there are some. Without them the spans of the host do: Python functions, operators
//! and annotations, nested as they ran, below the recorded call stack of an operator where it has one.
//!
//! `show` prints a tree, `shape` leaves calls out or turns it upside down, `sandwich` turns it around one function, `compare` lays two over each other; `time_order` adds nothing up.

mod compare;
mod sandwich;
mod shape;
mod show;
mod time_order;

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameKind, SampleState, SpanId, StackId, Trace, TrackId};

use crate::model::Model;
use crate::model::events::Role;

pub use compare::{ComparedNode, compare_trees};
pub use sandwich::{FunctionTime, Sandwich};
pub use shape::{Origin, Shape};
pub use show::ShowOptions;
pub use time_order::{TimedCall, TimedThread, time_order, timed_threads};

/// What tells two nodes under one parent apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callee {
    /// The function, operator or thread.
    pub name: String,
    /// Its file, where it has one.
    pub file: String,
    /// The line it begins at, or the line being executed where lines are told apart; 0 where unknown.
    pub line: u32,
    /// What kind of code it is.
    pub kind: FrameKind,
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub callee: Callee,
    /// Its parent; `None` for the outermost.
    pub parent: Option<usize>,
    /// What it called, longest first.
    pub children: Vec<usize>,
    /// Its own time.
    pub own: Duration,
    /// Its own time and that of all it called.
    pub total: Duration,
    /// Samples or calls that ended here.
    pub count: u64,
}

/// What the tree is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeSource {
    /// Samples of threads.
    Samples,
    /// Spans of the host.
    Spans,
    /// The trace has neither.
    Nothing,
}

/// How to build the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// Tell lines of a function apart.
    pub lines: bool,
    /// Put each thread at the root.
    pub threads: bool,
    /// Leave out samples of threads that waited.
    pub busy_only: bool,
    /// Add up the calls of all steps: `ProfilerStep#7` is not told from `ProfilerStep#8`.
    pub merge_steps: bool,
}

/// The tree. Parents come before their children.
#[derive(Clone, Debug)]
pub struct CallTree {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// The outermost ones, longest first.
    pub roots: Vec<usize>,
    /// The time of all roots.
    pub total: Duration,
    /// How many samples or spans went in.
    pub count: u64,
    /// What it is made from.
    pub source: TreeSource,
}

/// Builds the tree of a trace.
#[must_use]
pub fn call_tree(model: &Model, options: &TreeOptions) -> CallTree {
    let mut builder = TreeBuilder::default();
    if !model.profile().samples.is_empty() {
        builder.source = TreeSource::Samples;
        builder.add_samples(model, options);
    } else if !model.spans().is_empty() {
        builder.source = TreeSource::Spans;
        builder.add_spans(model, options);
    }
    builder.finish()
}

/// A tree that grows.
#[derive(Debug)]
struct TreeBuilder {
    nodes: Vec<Node>,
    ids: HashMap<(Option<usize>, Callee), usize>,
    source: TreeSource,
    count: u64,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        Self { nodes: Vec::new(), ids: HashMap::new(), source: TreeSource::Nothing, count: 0 }
    }
}

impl TreeBuilder {
    fn node(&mut self, parent: Option<usize>, callee: Callee) -> usize {
        let next = self.nodes.len();
        let nodes = &mut self.nodes;
        *self.ids.entry((parent, callee)).or_insert_with_key(|(parent, callee)| {
            let (callee, parent) = (callee.clone(), *parent);
            let (own, total, count) = (Duration::ZERO, Duration::ZERO, 0);
            nodes.push(Node { callee, parent, children: Vec::new(), own, total, count });
            next
        })
    }

    fn thread(&mut self, trace: &Trace, track: TrackId) -> usize {
        self.node(
            None,
            Callee {
                name: thread_name(trace, track),
                file: String::new(),
                line: 0,
                kind: FrameKind::Builtin,
            },
        )
    }

    fn add_samples(&mut self, trace: &Trace, options: &TreeOptions) {
        let profile = trace.profile();
        // Many samples share a stack: each stack is walked once.
        let mut weights: HashMap<(Option<TrackId>, StackId), (Duration, u64)> = HashMap::new();
        for sample in profile.samples.rows() {
            if options.busy_only && !matches!(sample.state, SampleState::Running | SampleState::Unknown) {
                continue;
            }
            let key = (options.threads.then_some(sample.track), sample.stack);
            let (weight, count) = weights.entry(key).or_default();
            *weight += sample.weight;
            *count += 1;
            self.count += 1;
        }
        let mut stacks: Vec<_> = weights.into_iter().collect();
        stacks.sort_unstable_by_key(|&(key, _)| key);
        let mut known: HashMap<(Option<TrackId>, StackId), usize> = HashMap::new();
        let mut path = Vec::new();
        for ((track, stack), (weight, count)) in stacks {
            path.clear();
            let mut node = track.map(|track| self.thread(trace, track));
            let mut at = Some(stack).filter(|&stack| stack != StackId::NONE);
            while let Some(stack) = at {
                if let Some(&found) = known.get(&(track, stack)) {
                    node = Some(found);
                    break;
                }
                path.push(stack);
                at = profile.stacks.parent(stack);
            }
            for &stack in path.iter().rev() {
                let frame = profile.frames.row(profile.stacks.frame(stack));
                let line = if options.lines { frame.line } else { frame.first_line };
                let callee = Callee {
                    name: trace.str(frame.name).to_owned(),
                    file: trace.str(frame.file).to_owned(),
                    line,
                    kind: frame.kind,
                };
                let found = self.node(node, callee);
                known.insert((track, stack), found);
                node = Some(found);
            }
            if let Some(node) = node {
                self.nodes[node].own += weight;
                self.nodes[node].count += count;
            }
        }
    }

    fn add_spans(&mut self, model: &Model, options: &TreeOptions) {
        let (spans, events, nesting) = (model.spans(), model.events(), model.nesting());
        let recorded = model.call_stack();
        let mut nodes: HashMap<SpanId, usize> = HashMap::new();
        for &span in nesting.order() {
            if !events.role(span).is_host() || events.is_async(span) || spans.duration(span).0 < 0 {
                continue;
            }
            let outer = nesting.parent(span).and_then(|outer| nodes.get(&outer).copied());
            let around = outer.or_else(|| {
                let thread = options.threads.then(|| self.thread(model, spans.track(span)));
                let stack = recorded.of(span).unwrap_or_default();
                // Recorded stacks have the innermost entry first.
                let entries = stack.split(';').filter(|entry| !entry.is_empty());
                entries.rev().fold(thread, |outer, entry| Some(self.node(outer, python_callee(entry))))
            });
            let name = model.span_name(span);
            let is_step = options.merge_steps && name.starts_with("ProfilerStep#");
            let name = if is_step { "ProfilerStep*" } else { name };
            let callee = match events.role(span) {
                Role::Python => python_callee(name),
                _ => Callee { name: name.to_owned(), file: String::new(), line: 0, kind: FrameKind::Builtin },
            };
            let node = self.node(around, callee);
            nodes.insert(span, node);
            self.count += 1;
            self.nodes[node].count += 1;
            self.nodes[node].own += spans.duration(span);
            // Time inside is the inner call's own, not the outer's.
            if let Some(outer) = outer {
                self.nodes[outer].own -= spans.duration(span);
            }
        }
        for node in &mut self.nodes {
            node.own = node.own.max(Duration::ZERO);
        }
    }

    fn finish(mut self) -> CallTree {
        let mut roots = Vec::new();
        for index in (0..self.nodes.len()).rev() {
            let (own, parent) = (self.nodes[index].own, self.nodes[index].parent);
            self.nodes[index].total += own;
            let total = self.nodes[index].total;
            match parent {
                Some(parent) => {
                    self.nodes[parent].total += total;
                    self.nodes[parent].children.push(index);
                }
                None => roots.push(index),
            }
        }
        let totals: Vec<Duration> = self.nodes.iter().map(|node| node.total).collect();
        let longest_first = |nodes: &mut Vec<usize>| {
            nodes.sort_unstable_by_key(|&node| (std::cmp::Reverse(totals[node]), node));
        };
        for node in &mut self.nodes {
            longest_first(&mut node.children);
        }
        longest_first(&mut roots);
        let total = roots.iter().map(|&root| totals[root]).sum();
        CallTree { nodes: self.nodes, roots, total, count: self.count, source: self.source }
    }
}

/// A thread as a person knows it.
fn thread_name(trace: &Trace, track: TrackId) -> String {
    let row = trace.track(track);
    let strings = trace.strings();
    let number = row.ident.display(strings);
    let process = trace.process(row.process).ident.display(strings);
    let several = trace.processes().len() > 1;
    let thread = match row.name.map(|name| trace.str(name)).filter(|name| !name.is_empty()) {
        Some(name) if name.starts_with("thread ") => name.to_owned(),
        Some(name) => format!("thread {number} ({name})"),
        None => format!("thread {number}"),
    };
    if several { format!("process {process}, {thread}") } else { thread }
}

/// `path/file.py(12): function`, as torch names Python functions.
fn python_callee(text: &str) -> Callee {
    let parse = || {
        let (callee, name) = text.split_once("): ")?;
        let (file, line) = callee.rsplit_once('(')?;
        Some((name, file, line.parse().ok()?))
    };
    let (name, file, line) = parse().unwrap_or((text, "", 0));
    Callee { name: name.to_owned(), file: file.to_owned(), line, kind: FrameKind::Python }
}

/// Whether a file belongs to a library rather than to the program.
#[must_use]
pub fn is_library(file: &str) -> bool {
    let installed = ["/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"];
    let is_generated = file.contains("/torchinductor_");
    installed.iter().any(|part| file.contains(part)) || file.starts_with("<frozen ") || is_generated
}

#[cfg(test)]
mod tests {
    use hotspan_store::{EventRow, FrameRow, Ident, SampleRow, SpanRow, Timestamp, TraceBuilder};

    use super::*;
    use crate::report::tree::Tree;

    /// Each stack outermost first: names with their files, the line, and how many samples of 10 ns.
    fn sampled(stacks: &[(&[(&str, &str)], i64)]) -> Model {
        let mut builder = TraceBuilder::new();
        for (thread, (names, count)) in stacks.iter().enumerate() {
            let mut stack = StackId::NONE;
            for (line, (name, file)) in (1_u32..).zip(names.iter()) {
                let (name, file) = (builder.intern(name), builder.intern(file));
                let row = FrameRow { name, file, line: line * 10, first_line: line, kind: FrameKind::Python };
                let frame = builder.frame(row);
                stack = builder.stack(stack, frame);
            }
            let track = builder.track(Ident::Int(1), Ident::Int(thread as i64 % 2));
            for _ in 0..*count {
                let (time, weight) = (Timestamp(0), Duration(10));
                let state = SampleState::Running;
                builder.push_sample(SampleRow { time, track, stack, weight, state, gil: true });
            }
        }
        builder.finish().into()
    }

    fn shown(tree: &Tree) -> Vec<(usize, &str, i64, i64)> {
        tree.rows.iter().map(|row| (row.depth, row.label.as_str(), row.total.0, row.own.0)).collect()
    }

    #[test]
    fn samples_add_up() {
        let (main, work, rest) = (("main", "a.py"), ("work", "a.py"), ("rest", "b.py"));
        let model =
            sampled(&[(&[main, work], 3), (&[main, rest], 5), (&[main], 2), (&[main, work, work], 1)]);
        let tree = call_tree(&model, &TreeOptions::default());
        assert_eq!((tree.total, tree.count, tree.source), (Duration(110), 11, TreeSource::Samples));
        let report = tree.report(&ShowOptions::default());
        let expected = [(0, "main", 110, 20), (1, "rest", 50, 50), (1, "work", 40, 30), (2, "work", 10, 10)];
        assert_eq!(shown(&report), expected);
        assert_eq!(report.rows[1].location, "b.py:2");
        let by_thread = call_tree(&model, &TreeOptions { threads: true, ..TreeOptions::default() });
        let roots: Vec<_> = by_thread.roots.iter().map(|&root| by_thread.nodes[root].total.0).collect();
        assert_eq!(roots, [60, 50]);
    }

    #[test]
    fn insides_of_libraries_are_passed_over() {
        let library = "/usr/lib/python3.11/threading.py";
        let stack: &[_] =
            &[("main", "a.py"), ("start", library), ("run", library), ("inner", library), ("work", "a.py")];
        let model = sampled(&[(stack, 4)]);
        let tree = call_tree(&model, &TreeOptions::default());
        let report = tree.report(&ShowOptions::default());
        assert_eq!(shown(&report), [(0, "main", 40, 0), (1, "start", 40, 0), (2, "work", 40, 40)]);
        assert_eq!(report.rows[1].hidden, 2);
        let all = tree.report(&ShowOptions { all: true, ..ShowOptions::default() });
        assert_eq!(all.rows.len(), 5);
    }

    #[test]
    fn spans_nest_below_their_recorded_stack() {
        let mut builder = TraceBuilder::new();
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        for (name, category, begin, duration) in [
            ("a.py(3): main", "python_function", 0, 100),
            ("aten::add", "cpu_op", 10, 30),
            ("aten::add", "cpu_op", 50, 20),
        ] {
            let (name, category) = (builder.intern(name), builder.category(category));
            let event = EventRow { time: Timestamp(begin), name, category, track, args: builder.no_args() };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
        let model = Model::new(builder.finish());
        let tree = call_tree(&model, &TreeOptions::default());
        let report = tree.report(&ShowOptions::default());
        assert_eq!(shown(&report), [(0, "main", 100, 50), (1, "aten::add", 50, 50)]);
        assert_eq!(report.rows[0].location, "a.py:3");
    }

    #[test]
    fn an_empty_trace_has_an_empty_tree() {
        let tree = call_tree(&TraceBuilder::new().finish().into(), &TreeOptions::default());
        assert!(tree.report(&ShowOptions::default()).rows.is_empty());
    }
}
